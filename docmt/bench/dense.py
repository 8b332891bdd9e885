"""The loss of a model computed the way the published code does it: padded batches and a full mask in every layer.

It shares the weights of a docmt model, so outputs and gradients can be compared and only the computation differs.
Unless told otherwise, the published code also averages the weights of every attention over its heads and takes their
entropy; `with_entropies` does so too.

Shape letters: B instances, T target tokens, S source tokens, R rows, H heads, K head width, D width.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.models.attention.multi_head import Attention, FusedAttention, MultiHeadAttention, parts
from docmt.models.batch import Batch
from docmt.models.systems.transformer import Transformer, sinusoids


class DenseTransformer:
    """Dense-mask computation of one docmt model."""

    def __init__(self, model: Transformer, *, with_entropies: bool = False) -> None:
        self.model, self.with_entropies = model, with_entropies

    def loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        """Summed label-smoothed loss of a batch of aligned instances, as `LossModule` gives it."""
        layout = batch.layout
        src, src_tags = self.padded(batch.src_tokens_S, layout.src_lengths_G, layout.sentences_B)
        tgt, tgt_tags = self.padded(batch.tgt_inputs_N, layout.tgt_lengths_G, layout.sentences_B)
        hidden = self._decode(tgt, tgt_tags, self._encode(src, src_tags), src_tags)
        logits = self.model.logits(hidden[tgt_tags > 0])
        return F.cross_entropy(logits.float(), batch.tgt_labels_N, label_smoothing=label_smoothing, reduction="sum")

    @staticmethod
    def padded(tokens: Tensor, lengths: np.ndarray, counts: np.ndarray) -> tuple[Tensor, Tensor]:
        """[B, T] tokens and tags: 1, 1, …, 2, 2, … for the groups of an instance, 0 for padding."""
        per_instance = np.split(lengths, np.cumsum(counts)[:-1])
        tags = [torch.from_numpy(np.repeat(np.arange(len(part)) + 1, part)).to(tokens.device) for part in per_instance]
        pieces = list(tokens.split([len(tag) for tag in tags]))
        pad = torch.nn.utils.rnn.pad_sequence
        return pad(pieces, batch_first=True), pad(tags, batch_first=True)

    def _encode(self, src: Tensor, tags: Tensor) -> Tensor:
        hidden = self._embed(src)
        local, everything = tags[:, :, None] != tags[:, None], (tags == 0)[:, None].expand(-1, tags.shape[1], -1)
        layers: Any = self.model.encoder
        for layer in layers:
            hidden = layer.self_sublayer(hidden, self._attend(layer.self_attention, hidden, hidden, local, everything))
            hidden = layer.feed_forward_sublayer(hidden, layer.feed_forward(hidden))
        return hidden

    def _decode(self, tgt: Tensor, tags: Tensor, memory: Tensor, src_tags: Tensor) -> Tensor:
        hidden = self._embed(tgt)
        future = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).triu(1)
        self_local, self_global = (tags[:, :, None] != tags[:, None]) | future, future.expand(len(tgt), -1, -1)
        cross_local = (tags[:, :, None] != src_tags[:, None]) & (tags > 0)[:, :, None]
        cross_global = (src_tags == 0)[:, None].expand(-1, tgt.shape[1], -1)
        layers: Any = self.model.decoder
        for layer in layers:
            attended = self._attend(layer.self_attention, hidden, hidden, self_local, self_global)
            hidden = layer.self_sublayer(hidden, attended)
            attended = self._attend(layer.cross_attention, hidden, memory, cross_local, cross_global)
            hidden = layer.cross_sublayer(hidden, attended)
            hidden = layer.feed_forward_sublayer(hidden, layer.feed_forward(hidden))
        return hidden

    def _embed(self, tokens: Tensor) -> Tensor:
        width = self.model.settings.width
        table = sinusoids(tokens.shape[1], width, device=tokens.device)[: tokens.shape[1]]
        return F.dropout(
            self.model.embedding(tokens) * math.sqrt(width) + table, self.model.settings.dropout, self.model.training
        )

    def _attend(self, attention: Attention, query: Tensor, memory: Tensor, local: Tensor, everything: Tensor) -> Tensor:
        outputs = [
            self._one(part, query, memory, everything if part.pattern == "global" else local)
            for part in parts(attention)
        ]
        return attention.gate(*outputs) if isinstance(attention, FusedAttention) else outputs[0]

    def _one(self, part: MultiHeadAttention, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Full QKᵀ, masked_fill, softmax, as fairseq's MultiheadAttention."""
        width = query.shape[-1]
        weights, biases = part.in_weight.split(width), part.in_bias.split(width)
        q, k, v = (
            F.linear(x, w, b).unflatten(-1, (part.heads, -1)).transpose(1, 2)
            for x, w, b in zip((query, memory, memory), weights, biases, strict=True)
        )
        scores = torch.matmul(q * (q.shape[-1] ** -0.5), k.transpose(-1, -2))
        scores = scores.masked_fill(mask[:, None], -torch.inf)
        weights = scores.float().softmax(-1)
        if self.with_entropies:
            mean_entropy(weights)
        output = torch.matmul(weights.to(scores.dtype), v)
        return part.out(output.transpose(1, 2).flatten(2))


@torch.no_grad()
def mean_entropy(weights: Tensor) -> Tensor:
    """Entropy of the weights averaged over heads, mean over queries; weights are [R, H, queries, keys]."""
    averaged = weights.mean(1)
    return -(averaged * averaged.clamp_min(1e-9).log()).sum(-1).mean()
