"""The training loss, computed chunk by chunk of the labels, so that the scores of all symbols are never stored.

Shape letters: N labels, D width, V vocabulary, C labels of a chunk.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from docmt.models.attention.compiled_layout import CompiledLayout
from docmt.models.attention.layout import AttentionLayout
from docmt.models.batch import Batch
from docmt.models.numerics import chunks, product_dtype
from docmt.models.systems.transformer import Transformer


class LossModule(nn.Module):
    """A model with its loss in one forward pass, so that wrappers for several devices see all of it."""

    def __init__(self, model: Transformer, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.compiled: Callable[[Batch], Tensor] | None = None
        """Computes the loss in place of `forward`."""

    def forward(self, batch: Batch) -> Tensor:
        """Label-smoothed cross-entropy in nats, summed over all labels; float32."""
        if self.compiled is not None:
            return self.compiled(batch)
        return self.loss(batch.src_tokens_S, batch.tgt_inputs_N, batch.tgt_labels_N, batch.layout)

    def loss(
        self, src_tokens_S: Tensor, tgt_inputs_N: Tensor, tgt_labels_N: Tensor, layout: AttentionLayout | CompiledLayout
    ) -> Tensor:
        """As `forward`, of the parts of a batch."""
        hidden_ND = self.model(src_tokens_S, tgt_inputs_N, layout)
        table_VD, bias_V, dtype = self.model.embedding.weight, self.model.output_bias, product_dtype(hidden_ND)
        return SummedLoss.apply(hidden_ND, table_VD, tgt_labels_N, self.label_smoothing, dtype, bias_V)

    @torch.no_grad()
    def validate(self, batch: Batch) -> tuple[float, float, int]:
        """Sum losses over words and `</s>`, the labels that every kind of target stream has.

        Returns:
            Label-smoothed loss, negative log likelihood (both in nats) and the number of labels.
        """
        hidden_ND = self.model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)
        dtype = product_dtype(hidden_ND)
        hidden_ND, table_VD = hidden_ND.to(dtype), self.model.embedding.weight.to(dtype)
        chosen_N = batch.is_word_or_end()
        # Sums stay on the device: reading them once at the end makes a GPU wait once.
        sums = torch.zeros(2, device=hidden_ND.device)
        for hidden_CD, labels_C, chosen_C in zip(
            *(chunks(rows, len(table_VD)) for rows in (hidden_ND, batch.tgt_labels_N, chosen_N)), strict=True
        ):
            scores_CV = _scores(hidden_CD, table_VD, self.model.output_bias)
            plain_C, even_C = _losses(scores_CV, scores_CV.logsumexp(1), labels_C)
            sums += (torch.stack((plain_C, even_C)) * chosen_C).sum(1)  # a product would be in half precision
        plain, even, count = *sums.tolist(), int(chosen_N.sum())
        return (1 - self.label_smoothing) * plain + self.label_smoothing * even, plain, count


class ReplicatedLoss(LossModule):
    """The loss, connected to the parameters that a batch does not use.

    A model with a context encoder also reads sentences, without it. DistributedDataParallel would wait for the
    gradients of the encoder, or search the whole graph in every update for parameters without any.
    """

    def forward(self, batch: Batch) -> Tensor:
        """As without other devices."""
        return _Connected.apply(super().forward(batch), *self.unused_parameters(batch))

    def unused_parameters(self, batch: Batch) -> list[nn.Parameter]:
        """The parameters without influence on the loss of a batch."""
        context = self.model.context
        return [] if context is None or batch.layout.context == "document" else list(context.parameters())

    def drop_unused_gradients(self, batch: Batch) -> None:
        """Drop the gradients of unused parameters, zeros after the exchange: Adam would move by its momentum."""
        for parameter in self.unused_parameters(batch):
            parameter.grad = None


class _Connected(torch.autograd.Function):
    """The loss as it is, and gradients for nothing else."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, *unused: Tensor) -> Tensor:
        ctx.n_unused = len(unused)
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return (*grad_outputs, *(None for _ in range(ctx.n_unused)))


class SummedLoss(torch.autograd.Function):
    """Label-smoothed cross-entropy of the scores h Wᵀ + b, summed; float32. There may be no bias b.

    As `F.cross_entropy(h @ W.T + b, labels, label_smoothing=…, reduction="sum")`. The gradients of a chunk, with
    respect to its scores softmax − (1 − ε) · one-hot − ε / V, are computed with its loss, and its scores dropped.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        table_VD: Tensor,
        labels_N: Tensor,
        smoothing: float,
        dtype: torch.dtype,
        bias_V: Tensor | None = None,
    ) -> Tensor:
        """The loss; `dtype` is that of the matrix products."""
        compute = _traced_loss if torch.compiler.is_compiling() else _loss_and_gradients
        loss, *gradients = compute(hidden_ND, table_VD, labels_N, smoothing, dtype, bias_V)
        ctx.has_bias = bias_V is not None
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that were computed with the loss."""
        hidden_gradient_ND, table_gradient_VD, bias_gradient_V = ctx.saved_tensors
        (scale,) = grad_outputs
        bias_gradient_V = bias_gradient_V * scale if ctx.has_bias else None
        return hidden_gradient_ND.to(scale.dtype) * scale, table_gradient_VD * scale, None, None, None, bias_gradient_V


def _loss_and_gradients(
    hidden_ND: Tensor, table_VD: Tensor, labels_N: Tensor, smoothing: float, dtype: torch.dtype, bias_V: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, and its gradients with respect to states, table and bias, chunk by chunk; see `SummedLoss`.

    Without a bias, its gradient has no entries.
    """
    n_symbols = len(table_VD)
    table_gradient_VD = torch.zeros_like(table_VD)
    bias_gradient_V = table_VD.new_empty(0) if bias_V is None else table_VD.new_zeros(n_symbols)
    hidden_ND, table_VD = hidden_ND.to(dtype), table_VD.to(dtype)
    hidden_gradient_ND = torch.empty_like(hidden_ND)
    loss = torch.zeros((), device=hidden_ND.device)
    rows = (chunks(tensor, n_symbols) for tensor in (hidden_ND, hidden_gradient_ND, labels_N))
    for hidden_CD, hidden_gradient_CD, labels_C in zip(*rows, strict=True):
        scores_CV = _scores(hidden_CD, table_VD, bias_V)
        total_C = scores_CV.logsumexp(1)
        plain_C, even_C = _losses(scores_CV, total_C, labels_C)
        loss += (1 - smoothing) * plain_C.sum() + smoothing * even_C.sum()
        # In place: scores of all symbols are the largest tensor of the training, and are not needed again.
        gradient_CV = scores_CV.sub_(total_C[:, None]).exp_()
        if smoothing:
            gradient_CV.sub_(smoothing / n_symbols)
        gradient_CV.scatter_add_(1, labels_C[:, None], gradient_CV.new_full((len(labels_C), 1), smoothing - 1))
        if bias_V is not None:
            bias_gradient_V += gradient_CV.sum(0)
        # After the sum for the bias, which stays in float32.
        gradient_CV = gradient_CV.to(dtype)
        torch.mm(gradient_CV, table_VD, out=hidden_gradient_CD)
        table_gradient_VD += gradient_CV.T @ hidden_CD
    return loss, hidden_gradient_ND, table_gradient_VD, bias_gradient_V


def _scores(hidden_CD: Tensor, table_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    """Float32 [C, V]."""
    scores_CV = (hidden_CD @ table_VD.T).float()
    return scores_CV if bias_V is None else scores_CV + bias_V


# The number of chunks depends on the batch, so a compiler must not look inside.
_traced_loss = torch.library.custom_op("docmt::loss_and_gradients", _loss_and_gradients, mutates_args=())


@_traced_loss.register_fake
def _(
    hidden_ND: Tensor, table_VD: Tensor, labels_N: Tensor, smoothing: float, dtype: torch.dtype, bias_V: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    loss = hidden_ND.new_empty((), dtype=torch.float32)
    bias_gradient_V = table_VD.new_empty(0 if bias_V is None else len(table_VD))
    return loss, torch.empty_like(hidden_ND, dtype=dtype), torch.empty_like(table_VD), bias_gradient_V


def _losses(scores_CV: Tensor, total_C: Tensor, labels_C: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log likelihood of each label, and its mean over all symbols of the vocabulary; both [C]."""
    return total_C - scores_CV.gather(1, labels_C[:, None])[:, 0], total_C - scores_CV.mean(1)
