"""Selective attention (SAN, Maruf et al. 2019): sparse attention to sentences in a document, then to their words.

On the encoder output h, a word weights the other sentences j in its document, and their words t: α = sparsemax_j(Q_s ·
K_s), where a sentence is the mean over its words, and β_j = softmax_t(Q_w · K_w). It reads c = LN(FFN(LN(W Σ_j α_j Σ_t
β_jt V_jt))), and a gate combines both: g ⊙ h + (1 − g) ⊙ c with g = σ(W [h; c]). The context excludes boundary tokens,
and its states have no gradient.

Shape letters: S packed source tokens, B documents, T tokens in the longest, G sentences in the longest, H heads, K head
width, D width.
"""

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.multi_head import Gate, MultiHeadAttention
from docmt.models.layers import FeedForward
from docmt.models.numerics import dropout
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule, SourceBatch

LOWEST = torch.finfo(torch.float32).min / 4
"""Score for invisible positions. Finite, so that tokens that see nothing get finite outputs. These are discarded."""


def sparsemax(scores: Tensor) -> Tensor:
    """Return the point on the simplex nearest to the scores, over the last dimension (Martins and Astudillo 2016)."""
    ordered = scores.sort(-1, descending=True).values
    totals = ordered.cumsum(-1) - 1
    # The threshold follows from the number of positive entries: the largest k with k · z_k > Σ_{j ≤ k} z_j − 1.
    counts = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    n_positive = (ordered * counts > totals).sum(-1, keepdim=True).clamp_min(1)  # 0 by rounding, far below 0
    return (scores - totals.gather(-1, n_positive - 1) / n_positive).clamp_min(0)


class SelectiveContext(ContextModule):
    """Attention on the encoder output, from every word to the words in all other sentences of its document."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        assert settings.context is not None
        width, self.dropout, self.sees_future = settings.width, settings.dropout, settings.context.future
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        for linear in (self.query, self.key):
            nn.init.xavier_uniform_(linear.weight, gain=2**-0.5)
            nn.init.zeros_(linear.bias)
        self.words = MultiHeadAttention(width, settings.heads, "global")
        self.read_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = FeedForward(settings)
        self.gate = Gate(width, bias=False)

    @override
    def after_encoder(self, source: SourceBatch, encoded_SD: Tensor) -> Tensor:
        layout, device = source.layout, encoded_SD.device
        rows_S, numbers_S, is_word_S = (layout.index("src", kind) for kind in ("padded_row", "number", "is_word"))
        n_documents, n_tokens, n_sentences = layout.padded_sizes

        def pad(rows: Tensor) -> Tensor:
            """[S, …] → [B, T, …], 0 where there are no tokens."""
            padded = rows.new_zeros(n_documents * n_tokens, *rows.shape[1:])
            return padded.index_copy(0, rows_S, rows).unflatten(0, (n_documents, n_tokens))

        numbers_BT, is_word_BT = pad(numbers_S), pad(is_word_S) > 0
        ranks_G = torch.arange(n_sentences, device=device)
        belongs_BTG = (numbers_BT[..., None] == ranks_G) & is_word_BT[..., None]
        own_BT1, has_words_B1G = numbers_BT[..., None], belongs_BTG.any(1)[:, None]
        sees_BTG = (ranks_G != own_BT1 if self.sees_future else ranks_G < own_BT1) & has_words_B1G
        # Keys and values of the context get no gradient, queries do.
        states_BTD = pad(encoded_SD.detach())
        alpha_BHTG = self._attend_to_sentences(pad(encoded_SD), states_BTD, belongs_BTG, sees_BTG)
        read_BTD = self._attend_to_words(pad(encoded_SD), states_BTD, alpha_BHTG, numbers_BT, is_word_BT)
        attended_SD = dropout(self.words.out(read_BTD.flatten(0, 1)[rows_S]), self.dropout, self.training)
        read_SD = self.feed_forward(self.read_norm(attended_SD))
        joined_SD = self.gate(encoded_SD, self.norm(dropout(read_SD, self.dropout, self.training)))
        return torch.where(sees_BTG.any(-1).flatten()[rows_S, None], joined_SD, encoded_SD)

    def _attend_to_sentences(
        self, query_BTD: Tensor, states_BTD: Tensor, belongs_BTG: Tensor, sees_BTG: Tensor
    ) -> Tensor:
        """Return the weights α, [B, H, T, G]."""
        sums_BGD = belongs_BTG.to(states_BTD.dtype).transpose(1, 2) @ states_BTD
        means_BGD = sums_BGD / belongs_BTG.sum(1).clamp_min(1)[..., None]
        heads = (self.words.heads, -1)
        query_BHTK = self.query(query_BTD).unflatten(-1, heads).transpose(1, 2)
        key_BHGK = self.key(means_BGD).unflatten(-1, heads).transpose(1, 2)
        return sparsemax(_scores(query_BHTK, key_BHGK).masked_fill(~sees_BTG[:, None], LOWEST))

    def _attend_to_words(
        self, query_BTD: Tensor, states_BTD: Tensor, alpha_BHTG: Tensor, numbers_BT: Tensor, is_word_BT: Tensor
    ) -> Tensor:
        """Return the concatenated head outputs from the sentence weights, [B, T, D]."""
        query_BHTK, key_BHTK, value_BHTK = (
            rows.unflatten(0, numbers_BT.shape).transpose(1, 2)
            for rows in (
                self.words.project_query(query_BTD.flatten(0, 1)),
                *self.words.project_memory(states_BTD.flatten(0, 1)),
            )
        )
        is_word_B11T = is_word_BT[:, None, None]
        scores_BHTT = _scores(query_BHTK, key_BHTK).masked_fill(~is_word_B11T, LOWEST)
        # A softmax for each sentence: powers over its highest score, and their sums.
        sentences_BHTT, nothing_BHTG = numbers_BT[:, None, None].expand_as(scores_BHTT), torch.zeros_like(alpha_BHTG)
        highest_BHTG = nothing_BHTG.scatter_reduce(-1, sentences_BHTT, scores_BHTT.detach(), "amax", include_self=False)
        powers_BHTT = (scores_BHTT - highest_BHTG.gather(-1, sentences_BHTT)).exp() * is_word_B11T
        sums_BHTG = nothing_BHTG.scatter_add(-1, sentences_BHTT, powers_BHTT)
        # Sentences without words have sum 0 and weight 0: the smallest float keeps 0 / 0 away.
        shares_BHTG = alpha_BHTG / sums_BHTG.clamp_min(torch.finfo(torch.float32).tiny)
        weights_BHTT = powers_BHTT * shares_BHTG.gather(-1, sentences_BHTT)
        weights_BHTT = dropout(weights_BHTT, self.dropout, self.training)
        return (weights_BHTT.to(value_BHTK.dtype) @ value_BHTK).transpose(1, 2).flatten(2)


def _scores(query_BHTK: Tensor, key_BHNK: Tensor) -> Tensor:
    """Return scaled products of queries and keys, in float32 or a wider input dtype, [B, H, T, rows]."""
    scores = query_BHTK @ key_BHNK.transpose(-1, -2)
    return scores.to(torch.promote_types(scores.dtype, torch.float32)) * query_BHTK.shape[-1] ** -0.5
