"""The past of all hypotheses as trees of tokens, with the keys and values of decoder self-attention.

Hypotheses of a document differ only near their ends: what they have in common is one path of the tree, stored once.
Each step adds one node per hypothesis. When the search reorders hypotheses, no keys or values move; only the record of
who descends from which node changes, and it hides foreign nodes in attention. Now and then, nodes that no hypothesis
will see again are dropped; only this operation needs a size that the device computes.

Shape letters: B documents, M beam, R = B × M rows, L layers, H heads, K head width, C capacity, N nodes, G source
sentences of the batch, J previous sentences, W nodes that move.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from docmt.decoding.kv_cache import attend_side_by_side
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.patterns import find_part

MIN_CAPACITY = 64
# Nodes are dropped when at least this number can go in every document.
MIN_DROPPED = 16


class View:
    """The nodes that a pattern sees, given the sentence of each node, numbered over the batch; here, the whole past."""

    def sees(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        """Bool [B, M, N], whether a token of a row's sentence sees the node's sentence; None if all see all."""
        return None

    def will_see(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        """`sees` for a token of the row's sentence or of a later one."""
        return self.sees(sentences_BM, nodes_BN)


class RangeView(View):
    """A token sees its own sentence and a fixed number of sentences before it, none of which it regains later."""

    def __init__(self, first_G: np.ndarray, device: torch.device) -> None:
        self.first_G = torch.from_numpy(first_G).to(device)

    @override
    def sees(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return nodes_BN[:, None] >= self.first_G[sentences_BM][:, :, None]


class RelatedView(View):
    """A token sees any earlier sentences, such as those that are related to its own in the merged discourse tree."""

    def __init__(self, layout: AttentionLayout, pattern: str, device: torch.device) -> None:
        self.visible_GG = torch.from_numpy(layout.visible_sentences(pattern)).to(device)
        # From sentence g on, sentence h is of use as long as g or a later sentence sees it.
        self.useful_GG = self.visible_GG.flip(0).cummax(0).values.flip(0)

    @override
    def sees(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return self.visible_GG[sentences_BM[:, :, None], nodes_BN[:, None]]

    @override
    def will_see(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return self.useful_GG[sentences_BM[:, :, None], nodes_BN[:, None]]


def make_view(layout: AttentionLayout, pattern: str, device: torch.device) -> View:
    """The view of a pattern of decoder self-attention."""
    kind = find_part(layout.resolve(pattern)).cache
    if kind == "document":
        return View()
    if kind == "range":
        return RangeView(layout.first_visible_sentences(pattern), device)
    return RelatedView(layout, pattern, device)


class PrefixTree:
    """The nodes that one pattern of self-attention keeps, with the keys and values of all layers that have it.

    The shape is layers, documents, beam, heads and head width; keys and values are of the dtype and device of `like`.
    """

    def __init__(self, view: View, shape: tuple[int, int, int, int, int], *, like: Tensor) -> None:
        self.view, self.n, self.n_steps = view, 0, 0
        n_layers, n_documents, self.beam, heads, head_width = shape
        sizes = (n_documents, heads, MIN_CAPACITY, head_width)
        self.keys_values_L2BHCK = like.new_empty(n_layers, 2, *sizes)
        self.is_past_BMC = torch.zeros(n_documents, self.beam, MIN_CAPACITY, dtype=torch.bool, device=like.device)
        self.sentences_BC = torch.zeros(n_documents, MIN_CAPACITY, dtype=torch.int64, device=like.device)
        self.own_MM = torch.eye(self.beam, dtype=torch.bool, device=like.device)
        self.nothing, self.hidden = like.new_zeros(()), like.new_full((), -torch.inf)
        self.projected_shape = (-1, self.beam, 3, heads, head_width)

    def advance(self, sentences_BM: Tensor) -> None:
        """Add a node per row, a token of its sentence; `attend` then fills in keys and values."""
        start, self.n, self.n_steps = self.n, self.n + self.beam, self.n_steps + 1
        # The memory-efficient kernel of a GPU copies a bias in every layer unless its rows are multiples of 8.
        self.n_columns = self.n + -self.n % 8
        if self.n_columns > self.is_past_BMC.shape[2]:
            # Doubling, so that copying takes constant time per node on average.
            more = max(self.n_columns, 2 * self.is_past_BMC.shape[2]) - self.is_past_BMC.shape[2]
            self.keys_values_L2BHCK = F.pad(self.keys_values_L2BHCK, (0, 0, 0, more))
            self.is_past_BMC, self.sentences_BC = (F.pad(x, (0, more)) for x in (self.is_past_BMC, self.sentences_BC))
        self.is_past_BMC[:, :, start : self.n] = self.own_MM
        self.sentences_BC[:, start : self.n] = sentences_BM
        is_seen = self.view.sees(sentences_BM, self.sentences_BC[:, : self.n_columns])
        # Made once per step, for all layers of the pattern.
        self.bias_B1MN = self._bias(is_seen)[:, None]
        self.newest: tuple[Tensor, ...] = ()

    @property
    def position(self) -> Tensor:
        """int64 [1], position of the newest tokens in their instances; made on the device."""
        return torch.full((1,), self.n_steps - 1, device=self.own_MM.device)

    def _bias(self, is_seen: Tensor | None) -> Tensor:
        """0 for the nodes of each row's past that it sees, otherwise `hidden`: the first N of `n_columns` columns."""
        return torch.where(self._narrow(is_seen, self.n_columns), self.nothing, self.hidden)[..., : self.n]

    def _narrow(self, chosen_BMN: Tensor | None, n: int) -> Tensor:
        """Bool [B, M, n], the chosen nodes of each row's own past."""
        is_past_BMN = self.is_past_BMC[:, :, :n]
        return is_past_BMN if chosen_BMN is None else chosen_BMN.logical_and_(is_past_BMN)

    def attend(self, layer: int, projected_R3HK: Tensor) -> Tensor:
        """Attention of the newest tokens in one of the layers to the nodes they see, themselves included; [R, H × K].

        The layer is given by its number among those with this pattern, with queries (scaled), keys and values.
        """
        return attend_side_by_side(*self._add(layer, projected_R3HK), self.bias_B1MN)

    def _add(self, layer: int, projected_R3HK: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Fill in the newest keys and values; queries [B, H, M, K], all keys and all values [B, H, N, K]."""
        if not self.newest:
            keys_values_L2BHNK = self.keys_values_L2BHCK[:, :, :, :, : self.n]
            flat = keys_values_L2BHNK.flatten(0, 1).unbind()
            self.keys_values = list(zip(flat[::2], flat[1::2], strict=True))
            self.newest = keys_values_L2BHNK[:, :, :, :, self.n - self.beam :].unbind()
        projected_3BHMK = projected_R3HK.view(self.projected_shape).permute(2, 0, 3, 1, 4)
        self.newest[layer].copy_(projected_3BHMK[1:])
        return projected_3BHMK[0], *self.keys_values[layer]

    def follow(self, parents_R: Tensor) -> None:
        """Make row r continue the hypothesis of row `parents_R[r]` of the same document."""
        shape = self.is_past_BMC.shape
        # Ancestors only: the row takes over its parent's past, while keys and values stay where they are.
        self.is_past_BMC = self.is_past_BMC.flatten(0, 1).index_select(0, parents_R).view(shape)

    def survey(self, sentences_BM: Tensor) -> Tensor:
        """Mark the nodes that a row will see again; int64 [2] on the device, the arguments of `drop`."""
        useful_BMN = self.view.will_see(sentences_BM, self.sentences_BC[:, : self.n])
        self.is_kept_BN = self._narrow(useful_BMN, self.n).any(1)
        # The product is 1 up to the first node that no row needs; the sum counts these ones.
        first_gap = self.is_kept_BN.cumprod(1).sum(1).min()
        return torch.stack((self.is_kept_BN.sum(1).max(), first_gap))

    def drop(self, n_kept: int, first_gap: int) -> None:
        """Drop nodes after a `survey`: a document keeps at most `n_kept`, and all of them before `first_gap`."""
        if self.n - n_kept < MIN_DROPPED:
            return
        # Stable, so that the kept nodes stay in the order of time.
        order_BN = torch.argsort(self.is_kept_BN, dim=1, descending=True, stable=True)
        # Nodes before the first gap of any document stay where they are.
        moved_BW, moved = order_BN[:, first_gap:n_kept], slice(first_gap, n_kept)
        self.is_past_BMC[:, :, moved] = self.is_past_BMC.gather(2, moved_BW[:, None].expand(-1, self.beam, -1))
        self.is_past_BMC[:, :, n_kept : self.n] = False
        self.sentences_BC[:, moved] = self.sentences_BC.gather(1, moved_BW)
        n_layers, _, n_documents, heads, capacity, head_width = self.keys_values_L2BHCK.shape
        # Whole rows of the flat buffer are copied: on a CPU this is many times faster than `gather`.
        firsts = torch.arange(n_layers * 2 * n_documents * heads, device=moved_BW.device) * capacity
        rows = firsts.view(-1, n_documents, heads, 1) + moved_BW[:, None]
        kept = self.keys_values_L2BHCK.view(-1, head_width).index_select(0, rows.flatten())
        shape = (n_layers, 2, n_documents, heads, -1, head_width)
        self.keys_values_L2BHCK[:, :, :, :, moved] = kept.view(shape)
        self.n = n_kept

    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""
        self.keys_values_L2BHCK = self.keys_values_L2BHCK.index_select(2, documents)
        self.is_past_BMC = self.is_past_BMC.index_select(0, documents)
        self.sentences_BC = self.sentences_BC.index_select(0, documents)


class PerSentencePrefixTree(PrefixTree):
    """A prefix tree whose newest tokens attend to each of the J sentences before theirs separately."""

    def __init__(
        self, layout: AttentionLayout, n_before: int, shape: tuple[int, int, int, int, int], *, like: Tensor
    ) -> None:
        super().__init__(RangeView(layout.first_sentences(n_before), like.device), shape, like=like)
        self.ranks_J111 = torch.arange(1, n_before + 1, device=like.device)[:, None, None, None]
        # Finite, so that the attention to a sentence that does not exist gives numbers.
        self.hidden = like.new_full((), torch.finfo(like.dtype).min)

    @override
    def advance(self, sentences_BM: Tensor) -> None:
        super().advance(sentences_BM)
        distances = sentences_BM[:, :, None] - self.sentences_BC[:, None, : self.n_columns]
        self.bias_JBMN = self._bias(distances == self.ranks_J111)

    def attend_per_sentence(self, layer: int, projected_R3HK: Tensor) -> Tensor:
        """`attend` to each sentence separately; [J, R, H × K]."""
        added = self._add(layer, projected_R3HK)
        return torch.stack([attend_side_by_side(*added, bias_BMN[:, None]) for bias_BMN in self.bias_JBMN])
