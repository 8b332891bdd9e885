"""The global context encoder of cross-task pre-training (Chen et al. 2021, §2.2.1).

Shape letters: S packed source tokens, C sentences of the batch, D width.
"""

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn

from docmt.models.grouping import Grouping
from docmt.models.layers import EncoderLayer, Gate, MultiHeadAttention, Sublayer
from docmt.models.layout import Layout
from docmt.models.ragged import padded_attention


class SentenceVectors(nn.Module):
    """One vector for each sentence, a weighted sum of its states (Eq. 2–3); no residual, no layer norm.

    It is ragged attention with one head, in which each sentence has the same learned query, W² of Eq. 2.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width, bias=False)
        self.query = nn.Parameter(torch.empty(width))
        nn.init.xavier_uniform_(self.inner.weight)
        nn.init.xavier_uniform_(self.query.data[None])

    def forward(self, hidden_SD: Tensor, grouping: Grouping) -> Tensor:
        """[S, D] → [C, D]; each group of `grouping` is one query over the words of a sentence."""
        key_SD = torch.tanh(self.inner(hidden_SD))
        # Eq. 2 does not divide by √D, as attention does.
        query_D = (self.query * len(self.query) ** 0.5).to(key_SD.dtype)
        query_CHD = query_D.expand(grouping.n_queries, 1, -1)
        # The variable-length kernel does not support heads as wide as a layer.
        return padded_attention(query_CHD, key_SD[:, None], hidden_SD[:, None].to(key_SD.dtype), grouping)[:, 0]


class ContextEncoder(nn.Module):
    """Layers that read a document beside the sentence encoder, and the gate that joins the two.

    A layer is self-attention inside the sentence, sentence vectors, attention from words to the sentence vectors of
    their document, and feed-forward (Eq. 1–5). Self-attention and feed-forward, with their layer norms, are shared with
    the corresponding layer of the sentence encoder. All layers share the attention to the vectors, but each makes its
    own vectors: this comes closest to the published numbers of parameters (see docs/models.md).
    `heads` and `dropout` are those of this attention.
    """

    def __init__(self, n_layers: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.vectors = nn.ModuleList(SentenceVectors(width) for _ in range(n_layers))
        self.attention = MultiHeadAttention(width, heads, "global")
        # At first the context adds nothing: noise would teach the gate to close before the context is of any use.
        nn.init.zeros_(self.attention.out.weight)
        self.sublayer = Sublayer(width, dropout)
        self.gate = Gate(width, bias=False)

    def forward(
        self, embedded_SD: Tensor, encoded_SD: Tensor, layers: Iterable[EncoderLayer], layout: Layout
    ) -> Tensor:
        """What the decoder reads (Eq. 6–7).

        Args:
            embedded_SD: of the source tokens, as the first layer of the sentence encoder reads them.
            encoded_SD: output of the sentence encoder, H.
            layers: of the sentence encoder.
            layout: of the batch.

        Returns:
            [S, D], H′.
        """
        hidden_SD = embedded_SD
        to_words, to_vectors = layout.grouping("vectors", "group"), partial(layout.grouping, "context")
        for layer, vectors in zip(layers, self.vectors, strict=False):
            hidden_SD = layer.attend(hidden_SD, partial(layout.grouping, "encoder"))
            vectors_CD = vectors(hidden_SD, to_words)
            hidden_SD = self.sublayer(hidden_SD, self.attention(hidden_SD, vectors_CD, to_vectors))
            hidden_SD = layer.transform(hidden_SD)
        return self.gate(encoded_SD, hidden_SD)
