"""Hierarchical attention networks (HAN, Miculicich et al. 2018): attention to words, then to previous sentences.

On the encoder output h, and in the joint model also on the decoder output, a token attends to the words in each of the
J previous sentences (three in the paper), and then to the J results: s_j = MHA(LN h; states in sentence j), d =
FFN(MHA(LN h; LN s_1…J)). A gate combines both: LN(g ⊙ h + (1 − g) ⊙ d) with g = σ(W [h; d]). Gradients reach h only
through the gate. Queries and context states have none.

Shape letters: N packed tokens on a side, J previous sentences, H heads, K head width, D width.
"""

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.multi_head import Gate, MultiHeadAttention
from docmt.models.layers import FeedForward
from docmt.models.numerics import dropout
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule, ContextReader, PackedReader, SourceBatch


class HierarchicalAttention(nn.Module):
    """Attention to the words in each of the J previous sentences, then to the J results, combined with the input."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, self.dropout, self.n_before = settings.width, settings.dropout, settings.n_before
        self.words = MultiHeadAttention(width, settings.heads, "group")
        self.sentences = MultiHeadAttention(width, settings.heads, "group")
        self.feed_forward = FeedForward(settings)
        self.gate = Gate(width, bias=False)
        self.words_norm, self.sentences_norm, self.vectors_norm, self.norm = (nn.LayerNorm(width) for _ in range(4))

    def forward(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """[N, D] → [N, D]. Sentences without context do not change."""
        fixed_ND, numbers_N = hidden_ND.detach(), reader.numbers()
        vectors_JND = reader.attend_previous(self.words, self.words_norm(fixed_ND), fixed_ND, self.n_before)
        ranks_J = torch.arange(self.n_before, device=numbers_N.device)
        read_ND = self._attend_to_sentences(fixed_ND, vectors_JND, is_there_JN=numbers_N > ranks_J[:, None])
        hidden_NF = self.feed_forward.activation(self.feed_forward.inner(read_ND))
        hidden_NF = dropout(hidden_NF, self.dropout, self.training)
        read_ND = dropout(self.feed_forward.outer(hidden_NF), self.dropout, self.training)
        joined_ND = self.norm(self.gate(hidden_ND, read_ND))
        return torch.where((numbers_N > 0)[:, None], joined_ND, hidden_ND)

    def _attend_to_sentences(self, fixed_ND: Tensor, vectors_JND: Tensor, *, is_there_JN: Tensor) -> Tensor:
        attention = self.sentences
        query_NHK = attention.project_query(self.sentences_norm(fixed_ND))
        projected = attention.project_memory(self.vectors_norm(vectors_JND).flatten(0, 1))
        key_JNHK, value_JNHK = (states.unflatten(0, (self.n_before, -1)) for states in projected)
        dtype = torch.promote_types(query_NHK.dtype, torch.float32)
        scores_JNH = (query_NHK.to(dtype) * key_JNHK).sum(-1) * query_NHK.shape[-1] ** -0.5
        # Finite, so that tokens without any sentence get numbers, which nobody reads.
        lowest = torch.finfo(dtype).min
        weights_JNH = scores_JNH.masked_fill(~is_there_JN[..., None], lowest).softmax(0)
        weights_JNH = dropout(weights_JNH, self.dropout, self.training)
        output_NHK = (weights_JNH[..., None] * value_JNHK).sum(0)
        return attention.out(output_NHK.flatten(1).to(value_JNHK.dtype))


class EncoderHan(ContextModule):
    """Hierarchical attention on the encoder output."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.encoder = HierarchicalAttention(settings)

    @override
    def after_encoder(self, source: SourceBatch, encoded_SD: Tensor) -> Tensor:
        return self.encoder(encoded_SD, PackedReader(source.layout, "src"))


class JointHan(EncoderHan):
    """Hierarchical attention on the encoder and decoder outputs."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.decoder = HierarchicalAttention(settings)

    @override
    def after_decoder(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        return self.decoder(hidden_ND, reader)

    @override
    def previous_attentions(self) -> list[MultiHeadAttention]:
        return [self.decoder.words]
