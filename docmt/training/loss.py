"""The training loss, computed in chunks of labels, so that the scores for all symbols are never stored.

Shape letters: N labels, R padded labels, D width, V vocabulary, X padded vocabulary, C labels in a chunk.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from docmt.models.attention.layout import DeviceLayout
from docmt.models.attention.multi_head import Distances, MultiHeadAttention
from docmt.models.batch import NO_LABEL, DeviceBatch
from docmt.models.numerics import CHUNK_SCORES, chunks, convert, product_dtype, symbol_scores
from docmt.models.systems.transformer import Transformer

COMPILED_CHUNKS = ("cuda",)  # kinds of devices on which chunks are compiled, if the model is
ALIGNED = ("cuda",)  # kinds of devices on which rows of scores begin at multiples of 64
CHUNK_ROWS = 64
"""Numbers of labels in compiled chunks are multiples."""
CHUNK_SCORES_WITH_FEW_LAUNCHES = 2**29
"""Maximum scores of a compiled chunk. They and their gradients take 1 GiB each in half precision."""


class ValidationSums(NamedTuple):
    """Sums over the labels of development instances, in nats, and the numbers of labels.

    All target streams have words and `</s>` as labels, which count in the losses. Other labels (`<s>` and `<eod>` in a
    free stream) are summed separately.
    """

    smoothed: float
    plain: float
    labels: int
    other_plain: float
    n_other: int


class LossModule(nn.Module):
    """A model with its loss in one forward pass, so that autocast and the compiler cover both."""

    def __init__(self, model: Transformer, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.few_launches = False
        """Compiled code converts all weights by one operator, and computes the loss in one chunk if it fits.

        This takes fewer launches of kernels and more memory. It is for updates recorded as graphs.
        """
        # Parameters of matrix products, by name.
        self.halved = [
            f"{name}.{parameter}"
            for name, part in model.named_modules()
            if isinstance(part, nn.Linear | MultiHeadAttention | Distances)
            for parameter, _ in part.named_parameters(recurse=False)
        ]
        self.compiled: Callable[[DeviceBatch], Tensor] | None = None
        """Computes the loss in place of `forward`."""

    def forward(self, batch: DeviceBatch) -> Tensor:
        """Label-smoothed cross-entropy in nats, summed over all labels; float32."""
        if self.compiled is not None:
            return self.compiled(batch)
        return self.loss(
            batch.src_tokens_S, batch.tgt_inputs_N, batch.tgt_labels_N, batch.layout, has_masks=batch.has_masks
        )

    def loss(
        self,
        src_tokens_S: Tensor,
        tgt_inputs_N: Tensor,
        tgt_labels_N: Tensor,
        layout: DeviceLayout,
        *,
        has_masks: bool = True,
    ) -> Tensor:
        """`forward` for the parts of a batch. `has_masks` false: no label is NO_LABEL, so none is checked."""
        table_VD, bias_V = self.model.embedding.weight, self.model.output_bias
        dtype, inputs = product_dtype(table_VD), (src_tokens_S, tgt_inputs_N, layout)
        if torch.compiler.is_compiling() and self.few_launches and dtype != table_VD.dtype:
            parameters = dict(self.model.named_parameters())
            halves = convert([parameters[name] for name in self.halved], dtype)
            hidden_ND = functional_call(
                self.model, dict(zip(self.halved, halves, strict=True)), inputs, tie_weights=False
            )
        else:
            hidden_ND = self.model(*inputs)
        chunk_scores = 0
        if torch.compiler.is_compiling() and hidden_ND.device.type in COMPILED_CHUNKS:
            chunk_scores = CHUNK_SCORES_WITH_FEW_LAUNCHES if self.few_launches else CHUNK_SCORES["cuda"]
        options = self.label_smoothing, dtype, bias_V, chunk_scores, has_masks
        return loss_and_gradients(hidden_ND, table_VD, tgt_labels_N, *options)[0]

    @torch.no_grad()
    def validate(self, batch: DeviceBatch, states: Callable[[DeviceBatch], Tensor] | None = None) -> "ValidationSums":
        """The losses of a batch; `states` computes the decoder states [N, D] in place of the model."""
        hidden_ND = states(batch) if states else self.model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)
        dtype = product_dtype(hidden_ND)
        hidden_ND, table_VD = hidden_ND.to(dtype), self.model.embedding.weight.to(dtype)
        chosen_N = batch.is_word_or_end_N
        # Sums stay on the device: reading them once at the end makes a GPU wait once.
        sums = torch.zeros(3, device=hidden_ND.device)
        for hidden_CD, labels_C, chosen_C in zip(
            *(chunks(rows, len(table_VD)) for rows in (hidden_ND, batch.tgt_labels_N, chosen_N)), strict=True
        ):
            scores_CV = symbol_scores(hidden_CD, table_VD, self.model.output_bias)
            plain_C, uniform_C = _losses(scores_CV, scores_CV.logsumexp(1), labels_C)
            # A matrix product would be in half precision.
            parts = plain_C * chosen_C, uniform_C * chosen_C, plain_C * ~chosen_C
            sums += torch.stack(parts).sum(1)
        plain, uniform, other, count = *sums.tolist(), int(chosen_N.sum())
        smoothed = (1 - self.label_smoothing) * plain + self.label_smoothing * uniform
        return ValidationSums(smoothed, plain, count, other, len(chosen_N) - count)


# The number of chunks depends on the batch, so a compiler must not look inside. Unlike an `autograd.Function`, an
# operator lets torch keep compiled graphs for later trainings.
@torch.library.custom_op("docmt::loss_and_gradients", mutates_args=())
def loss_and_gradients(
    hidden_ND: Tensor,
    table_VD: Tensor,
    labels_N: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    bias_V: Tensor | None = None,
    chunk_scores: int = 0,
    has_masks: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Label-smoothed cross-entropy of the scores h Wᵀ + b, summed, float32, and its gradients. Scores are not kept.

    As `F.cross_entropy(h @ W.T + b, labels, label_smoothing=…, reduction="sum")` without rows whose label is NO_LABEL.
    The gradient with respect to the scores of a chunk is softmax − (1 − ε) · one-hot − ε / V. `dtype` is that of the
    matrix products. Without a bias b, the gradient of the bias has no entries. `chunk_scores` above 0: chunks of at
    most this number of scores go through `torch.compile`. `has_masks` false: no row has NO_LABEL.
    """
    if chunk_scores:
        return _in_compiled_chunks(hidden_ND, table_VD, labels_N, smoothing, dtype, bias_V, chunk_scores)
    n_symbols = len(table_VD)
    table_gradient_VD = torch.zeros_like(table_VD)
    bias_gradient_V = table_VD.new_empty(0) if bias_V is None else table_VD.new_zeros(n_symbols)
    hidden_ND, table_VD = hidden_ND.to(dtype), table_VD.to(dtype)
    hidden_gradient_ND = torch.empty_like(hidden_ND)
    loss = torch.zeros((), device=hidden_ND.device)
    rows = (chunks(tensor, n_symbols) for tensor in (hidden_ND, hidden_gradient_ND, labels_N))
    for hidden_CD, hidden_gradient_CD, labels_C in zip(*rows, strict=True):
        scores_CV = symbol_scores(hidden_CD, table_VD, bias_V)
        total_C = scores_CV.logsumexp(1)
        is_label_C = None
        if has_masks:
            is_label_C = labels_C != NO_LABEL
        labels_C = labels_C.clamp(min=0) if has_masks else labels_C
        plain_C, uniform_C = _losses(scores_CV, total_C, labels_C)
        if is_label_C is not None:
            plain_C, uniform_C = plain_C * is_label_C, uniform_C * is_label_C
        loss += (1 - smoothing) * plain_C.sum() + smoothing * uniform_C.sum()
        # In place: scores of all symbols are the largest tensor of the training, and are not needed again.
        gradient_CV = scores_CV.sub_(total_C[:, None]).exp_()
        if smoothing:
            gradient_CV.sub_(smoothing / n_symbols)
        gradient_CV.scatter_add_(1, labels_C[:, None], gradient_CV.new_full((len(labels_C), 1), smoothing - 1))
        if is_label_C is not None:
            gradient_CV.masked_fill_(~is_label_C[:, None], 0)
        if bias_V is not None:
            bias_gradient_V += gradient_CV.sum(0)
        # After the sum for the bias, which stays in float32.
        gradient_CV = gradient_CV.to(dtype)
        torch.mm(gradient_CV, table_VD, out=hidden_gradient_CD)
        table_gradient_VD += gradient_CV.T @ hidden_CD
    return loss, hidden_gradient_ND, table_gradient_VD, bias_gradient_V


@loss_and_gradients.register_fake
def _(hidden_ND, table_VD, labels_N, smoothing, dtype, bias_V=None, chunk_scores=0, has_masks=True):
    bias_gradient_V = table_VD.new_empty(0 if bias_V is None else len(table_VD))
    hidden_gradient_ND = torch.empty_like(hidden_ND, dtype=dtype)
    return hidden_ND.new_empty((), dtype=torch.float32), hidden_gradient_ND, torch.empty_like(table_VD), bias_gradient_V


def _keep_gradients(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    ctx.has_bias = inputs[5] is not None
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*output[1:])


def _scale_gradients(ctx: Any, scale: Tensor, *_: None) -> tuple[Tensor | None, ...]:
    hidden_gradient_ND, table_gradient_VD, bias_gradient_V = ctx.saved_tensors
    bias_gradient_V = bias_gradient_V * scale if ctx.has_bias else None
    dtype = torch.promote_types(hidden_gradient_ND.dtype, scale.dtype)
    gradients = hidden_gradient_ND.to(dtype) * scale, table_gradient_VD * scale
    return *gradients, None, None, None, bias_gradient_V, None, None


loss_and_gradients.register_autograd(_scale_gradients, setup_context=_keep_gradients)


def _in_compiled_chunks(
    hidden_ND: Tensor,
    table_VD: Tensor,
    labels_N: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    bias_V: Tensor | None,
    chunk_scores: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`loss_and_gradients` in as few chunks as fit, with one compiled graph. The last chunk is padded."""
    n_labels, n_symbols = len(hidden_ND), len(table_VD)
    n_chunks = -(-n_labels * n_symbols // chunk_scores)
    n_rows = -(-n_labels // (n_chunks * CHUNK_ROWS)) * CHUNK_ROWS
    # cuBLAS takes several times as long when rows of scores begin at any address.
    table_XD = F.pad(table_VD.to(dtype), (0, 0, 0, -n_symbols % 64 if table_VD.device.type in ALIGNED else 0))
    bias_X = None
    if bias_V is not None:
        bias_X = F.pad(bias_V, (0, len(table_XD) - n_symbols))
    hidden_RD = F.pad(hidden_ND.to(dtype), (0, 0, 0, -n_labels % n_rows))
    labels_R = F.pad(labels_N, (0, -n_labels % n_rows), value=NO_LABEL)
    loss = torch.zeros((), device=hidden_ND.device)
    table_gradient_XD = torch.zeros_like(table_XD, dtype=table_VD.dtype)
    bias_gradient_X = table_VD.new_zeros(0 if bias_X is None else len(bias_X))
    gradients = []
    for hidden_CD, labels_C in zip(hidden_RD.split(n_rows), labels_R.split(n_rows), strict=True):
        sums = (loss, table_gradient_XD, bias_gradient_X)
        for rows in (hidden_CD, labels_C):
            torch._dynamo.mark_dynamic(rows, 0)
        gradients.append(_compiled_chunk()(hidden_CD, table_XD, labels_C, bias_X, sums, n_symbols, smoothing))
    hidden_gradient_ND = torch.cat(gradients)[:n_labels]
    return loss, hidden_gradient_ND, table_gradient_XD[:n_symbols], bias_gradient_X[:n_symbols]


@cache
def _compiled_chunk() -> Callable[..., Tensor]:
    return torch.compile(_chunk, fullgraph=True)


def _chunk(
    hidden_CD: Tensor,
    table_XD: Tensor,
    labels_C: Tensor,
    bias_X: Tensor | None,
    sums: tuple[Tensor, Tensor, Tensor],
    n_symbols: int,
    smoothing: float,
) -> Tensor:
    """Return a chunk's gradient with respect to states. Its loss and other gradients are added to `sums`.

    Scores are not changed in place: the compiler fuses these operations without extra memory. Only `sums` are.
    """
    is_symbol_X = torch.arange(len(table_XD), device=table_XD.device) < n_symbols
    is_label_C = labels_C != NO_LABEL
    loss, table_gradient_XD, bias_gradient_X = sums
    scores_CX = symbol_scores(hidden_CD, table_XD, bias_X)
    total_C = scores_CX.masked_fill(~is_symbol_X, -torch.inf).logsumexp(1)
    plain_C = total_C - scores_CX.gather(1, labels_C.clamp(min=0)[:, None])[:, 0]
    uniform_C = total_C - scores_CX.masked_fill(~is_symbol_X, 0).sum(1) / n_symbols
    loss += (((1 - smoothing) * plain_C + smoothing * uniform_C) * is_label_C).sum()
    is_own_CX = torch.arange(len(table_XD), device=table_XD.device) == labels_C[:, None]
    gradient_CX = (scores_CX - total_C[:, None]).exp() - smoothing / n_symbols
    gradient_CX = torch.where(is_own_CX, gradient_CX - (1 - smoothing), gradient_CX)
    gradient_CX = gradient_CX.masked_fill(~(is_symbol_X & is_label_C[:, None]), 0)
    gradient_CX = gradient_CX.to(hidden_CD.dtype)
    if bias_X is not None:
        bias_gradient_X += gradient_CX.sum(0, dtype=bias_gradient_X.dtype)
    table_gradient_XD += gradient_CX.T @ hidden_CD
    return gradient_CX @ table_XD


def _losses(scores_CV: Tensor, total_C: Tensor, labels_C: Tensor) -> tuple[Tensor, Tensor]:
    """Return the negative log likelihood of every label, and the mean over all symbols, [C]."""
    return total_C - scores_CV.gather(1, labels_C[:, None])[:, 0], total_C - scores_CV.mean(1)
