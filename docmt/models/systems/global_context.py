"""The global context encoder of cross-task pre-training (Chen et al. 2021, §2.2.1).

A second encoder reads the document in addition to the sentence encoder. In its layers, words attend to their sentence
(Eq. 1), a weighted sum of their states is the sentence vector (Eq. 2–3), words attend to the vectors of all sentences
in the document (Eq. 4), and a feed-forward module follows (Eq. 5). A gate combines its output G with the sentence
encoder's output H: H′ = λ ⊙ H + (1 − λ) ⊙ G with λ = σ([H; G] W) (Eq. 6–7). The decoder reads H′.

Shape letters: S packed source tokens, C sentences in the batch, D width.
"""

from functools import partial

import torch
from torch import Tensor, nn

from docmt.models.attention.multi_head import Gate, MultiHeadAttention
from docmt.models.layers import Sublayer
from docmt.models.numerics import call_layer
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule, SourceBatch


class SentenceVectors(nn.Module):
    """One vector per sentence, a weighted sum of its states (Eq. 2–3), without residual and layer norm.

    All sentences share the learned query, W² in Eq. 2. Sums and exponentials are in float32 or a wider input dtype.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width, bias=False)
        self.query = nn.Parameter(torch.empty(width))
        nn.init.xavier_uniform_(self.inner.weight)
        nn.init.xavier_uniform_(self.query.data[None])

    def forward(self, hidden_SD: Tensor, sentences_S: Tensor, n_sentences: int) -> Tensor:
        """[S, D] → [C, D]. `sentences_S`, int64, is the sentence number of every word."""
        key_SD = torch.tanh(self.inner(hidden_SD))
        dtype = torch.promote_types(key_SD.dtype, torch.float32)
        scores_S = (key_SD * self.query).sum(1, dtype=dtype)
        fixed_S = scores_S.detach()  # the softmax is the same whatever is subtracted
        highest_C = fixed_S.new_zeros(n_sentences).scatter_reduce(0, sentences_S, fixed_S, "amax", include_self=False)
        weights_S = (scores_S - highest_C[sentences_S]).exp()
        sums_C = weights_S.new_zeros(n_sentences).index_add(0, sentences_S, weights_S)
        weighted_SD = weights_S[:, None] * hidden_SD
        vectors_CD = weighted_SD.new_zeros(n_sentences, weighted_SD.shape[1]).index_add(0, sentences_S, weighted_SD)
        return (vectors_CD / sums_C[:, None]).to(hidden_SD.dtype)


class ContextEncoder(ContextModule):
    """Layers that read a document, and the gate between their output and the sentence encoder's.

    Self-attention and feed-forward in a layer, with their layer norms, are shared with the corresponding sentence
    encoder layer. All layers share the attention to sentence vectors, but compute their own vectors. For
    English–German, this comes closest to the published number of parameters (docs/experiments/models.md).
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        assert settings.context is not None
        width, self.settings = settings.width, settings.context
        self.vectors = nn.ModuleList(SentenceVectors(width) for _ in range(settings.context_layers))
        self.attention = MultiHeadAttention(width, settings.heads, "global")
        # At first the context adds nothing: noise would teach the gate to close before the context is of any use.
        nn.init.zeros_(self.attention.out.weight)
        self.sublayer = Sublayer(width, settings.dropout)
        if not self.settings.norm:
            self.sublayer.norm = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
        self.gate = Gate(width, bias=False)

    def after_encoder(self, source: SourceBatch, encoded_SD: Tensor) -> Tensor:
        """Return H′ for the sentence encoder's output H (Eq. 6–7), see `ContextModule.after_encoder`."""
        hidden_SD, layout = source.embedded_SD, source.layout
        if self.settings.positions == "instance":
            hidden_SD = source.embed(source.tokens_S, layout, "src", within="instance")
        sentences_S = layout.index("src", "in_batch")
        to_vectors = partial(layout.grouping, "context")

        def attend(vectors: nn.Module, hidden_SD: Tensor) -> Tensor:
            vectors_CD = vectors(hidden_SD, sentences_S, layout.n_sentences)
            return self.sublayer(hidden_SD, self.attention(hidden_SD, vectors_CD, to_vectors))

        for layer, vectors in zip(source.layers, self.vectors, strict=False):
            hidden_SD = call_layer(layer, hidden_SD, partial(layout.grouping, "encoder"), partial(attend, vectors))
        return self.gate(encoded_SD, hidden_SD)
