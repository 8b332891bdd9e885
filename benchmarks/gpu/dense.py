"""A docmt model's loss, computed as in the published code: padded batches and a full mask in every attention.

Everything but the attention is the model's code, so that outputs and gradients can be compared. By default, the
published code also averages all attention weights over heads and computes their entropy (`with_entropies`).

Shape letters: B instances, T target tokens, S source tokens, Q queries, M keys, H heads, K head width, D width.
"""

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.attention.patterns import Side, Slot
from docmt.models.batch import Batch
from docmt.models.settings import Positions
from docmt.models.systems.transformer import Transformer


def dense_loss(model: Transformer, batch: Batch, label_smoothing: float, *, with_entropies: bool = False) -> Tensor:
    """Return the label-smoothed loss of a batch of aligned instances in nats, summed over labels as in `LossModule`."""
    packed, device = batch.layout, model.embedding.weight.device
    src_BS, src_tags_BS = pad_instances(batch.src_tokens_S.to(device), packed.src_lengths_G, packed.sentences_B)
    tgt_BT, tgt_tags_BT = pad_instances(batch.tgt_inputs_N.to(device), packed.tgt_lengths_G, packed.sentences_B)
    with masked_attention(with_entropies=with_entropies):
        hidden_BTD = model(src_BS, tgt_BT, DenseLayout(src_tags_BS, tgt_tags_BT))
    logits = model.logits(hidden_BTD[tgt_tags_BT > 0])
    labels_N = batch.tgt_labels_N.to(device)
    return F.cross_entropy(logits.float(), labels_N, label_smoothing=label_smoothing, reduction="sum")


def pad_instances(tokens_N: Tensor, lengths_G: np.ndarray, sentences_B: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return padded tokens [B, T] for packed instances, and tags [B, T]: sentence number, 0 for padding."""
    per_instance = np.split(lengths_G, np.cumsum(sentences_B)[:-1])
    tags = [torch.from_numpy(np.repeat(np.arange(len(part)) + 1, part)).to(tokens_N.device) for part in per_instance]
    tokens = tokens_N.split([len(tag) for tag in tags])
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(list(tokens), batch_first=True), pad(tags, batch_first=True)


class DenseLayout:
    """Padded batch layout, with bool masks [B, Q, M] for hidden keys in place of groupings."""

    def __init__(self, src_tags_BS: Tensor, tgt_tags_BT: Tensor) -> None:
        src, tgt = src_tags_BS, tgt_tags_BT
        self.n_tokens, self.device = {"src": src.shape[1], "tgt": tgt.shape[1]}, src.device
        self.n_positions, self.table_TD = max(src.shape[1], tgt.shape[1]), None
        future = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).triu(1)
        self.masks = {
            ("encoder", "group"): src[:, :, None] != src[:, None],
            ("encoder", "global"): (src == 0)[:, None],
            ("decoder", "group"): (tgt[:, :, None] != tgt[:, None]) | future,
            ("decoder", "global"): future[None],
            # Padding attends to everything, because softmax over a row without keys is NaN.
            ("cross", "group"): (tgt[:, :, None] != src[:, None]) & (tgt > 0)[:, :, None],
            ("cross", "global"): (src == 0)[:, None],
        }

    def grouping(self, slot: Slot, pattern: str) -> Tensor:
        return self.masks[slot, pattern]

    def positions(self, side: Side, *, within: Positions | None = None) -> Tensor:
        return torch.arange(self.n_tokens[side], device=self.device)


@contextlib.contextmanager
def masked_attention(*, with_entropies: bool = False) -> Iterator[None]:
    """Patch all attentions to compute with padded rows and the masks in a `DenseLayout`."""

    def forward(
        self: MultiHeadAttention, query_BQD: Tensor, memory_BMD: Tensor | None, masks: Callable[[str], Tensor]
    ) -> Tensor:
        """Attend like fairseq's MultiheadAttention: three projections, full QKᵀ, masked_fill and softmax."""
        inputs = (query_BQD, *([query_BQD if memory_BMD is None else memory_BMD] * 2))
        weights, biases = self.in_weight.chunk(3), self.in_bias.chunk(3)
        q, k, v = (
            F.linear(x, w, b).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for x, w, b in zip(inputs, weights, biases, strict=True)
        )
        scores = torch.matmul(q * (q.shape[-1] ** -0.5), k.transpose(-1, -2))
        scores = scores.masked_fill(masks(self.pattern)[:, None], -torch.inf)
        attended = scores.float().softmax(-1)
        if with_entropies:
            mean_entropy(attended)
        output = torch.matmul(attended.to(scores.dtype), v)
        return self.out(output.transpose(1, 2).flatten(2))

    with mock.patch.object(MultiHeadAttention, "forward", forward):
        yield


@torch.no_grad()
def mean_entropy(weights_BHQM: Tensor) -> Tensor:
    """Return the entropy in nats of head-averaged attention weights, as the mean over queries."""
    averaged = weights_BHQM.mean(1)
    return -(averaged * averaged.clamp_min(1e-9).log()).sum(-1).mean()
