"""DocT (Zhang et al. 2018): a context encoder, and gated attention to its output in every layer.

The previous source sentences (two in the paper) form one token sequence for a context encoder with one layer, which
shares the source embeddings and has separate positions. After self-attention in every encoder and decoder layer, the
states x in a sentence attend to the states C of its context: y = MHA(x; C), x ← LN(g ⊙ x + (1 − g) ⊙ y) with g = σ(W
[x; y]).

Shape letters: S packed source tokens, N packed tokens on a side, C context states, D width.
"""

from functools import partial

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.multi_head import Gate, MultiHeadAttention
from docmt.models.layers import EncoderLayer
from docmt.models.numerics import call_layer, dropout
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule, ContextReader, SourceBatch


class ContextAttention(nn.Module):
    """Attention to context states, combined with its input by a gate."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.attention = MultiHeadAttention(settings.width, settings.heads, "group")
        self.gate = Gate(settings.width, bias=False)
        self.norm = nn.LayerNorm(settings.width)

    def forward(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """[N, D] → [N, D]. Sentences without context do not change."""
        read_ND = dropout(reader.attend_context(self.attention, hidden_ND), self.dropout, self.training)
        joined_ND = self.norm(self.gate(hidden_ND, read_ND))
        return torch.where((reader.numbers() > 0)[:, None], joined_ND, hidden_ND)


class DocumentContext(ContextModule):
    """A context encoder with one layer over the previous sentences, and attention to it in all layers."""

    has_context_states = True

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.layer = EncoderLayer(settings, pattern="group")
        self.encoder = nn.ModuleList(ContextAttention(settings) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(ContextAttention(settings) for _ in range(settings.decoder_layers))

    @override
    def before_encoder(self, source: SourceBatch) -> Tensor:
        """Return context states. A sentence without context has one state that is not read."""
        layout, tokens_S = source.layout, source.tokens_S
        tokens_C = tokens_S[layout.index("before", "row")]
        embedded_CD = source.embed(tokens_C, layout, "before", within="sentence")
        return call_layer(self.layer, embedded_CD, partial(layout.grouping, "before"))

    @override
    def in_encoder(self, number: int, hidden_SD: Tensor, reader: ContextReader) -> Tensor:
        return self.encoder[number](hidden_SD, reader)

    @override
    def in_decoder(self, number: int, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        return self.decoder[number](hidden_ND, reader)

    @override
    def context_attentions(self) -> list[MultiHeadAttention]:
        return [layer.attention for layer in self.decoder]  # pyright: ignore[reportReturnType]
