"""Search caches: keys and values are computed once, so that a step feeds only the newest tokens.

In a step, every row (a hypothesis for an instance) has one new token. Its queries attend to earlier tokens
(self-attention) and to the source (cross-attention). One cache holds the keys and values for all layers with the same
pattern. A bias, 0 or −inf, hides keys that the pattern does not show to the row's sentence.

Example: 2 instances with up to 20 source tokens, with a beam of 3, after 3 steps, in 6 layers with 8 heads of width 64.

    query in a step                   [2, 8, 3, 64]         B instances, H heads, M rows, K
    PrefixTree.keys_values_L2BHCK     [6, 2, 2, 8, 64, 64]  room for C = 64 nodes, N = 9 are in use
    PrefixTree.bias_B1MN              [2, 1, 3, 9]          visible nodes per row
    DocumentKVCache.keys_values       [6, 2, 2, 8, 20, 64]  the source
    DocumentKVCache.bias              [2, 1, 3, 20]         visible source tokens per row

Self-attention in an instance uses a tree of tokens, since hypotheses differ only near their ends. Their common part is
one path, stored once. A step adds a node per row. Here, rows 0 and 1 continue the hypothesis that row 0 had after 2
steps, and row 2 continues row 1:

    node              0  1  2  3  4  5  6  7  8
    past of row 0     x        x        x
    past of row 1     x        x           x
    past of row 2     x           x           x

When the search reorders hypotheses, only these marks move, while keys and values stay. Now and then, nodes that no
hypothesis will see again are evicted. Only this operation needs a size that the device computes.

Shape letters: B instances, M beam, R = B × M rows, L layers with one pattern, H heads, K head width, N keys (nodes of
the tree or source keys), C tree capacity, W moved nodes, J previous sentences, G source sentences or groups in the
batch, T longest group, D copies in an instance, P pairs of a group and a key, Q padded rows. In `make_source_cache`, M
packed source tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import MultiHeadAttention, SentenceDistances
from docmt.models.attention.patterns import Slot, find_pattern
from docmt.ranges import expand_ranges, starts_of

MIN_CAPACITY = 64
# Nodes are dropped when at least this number can go in every instance.
MIN_DROPPED = 16
COPY_DEVICES = ("cpu",)
"""Kinds of devices on which rows in different sentences have copies of their keys."""


def attend_side_by_side(query_BHMK: Tensor, keys_BHNK: Tensor, values_BHNK: Tensor, bias: Tensor | None) -> Tensor:
    """Attend from the rows in an instance to the same keys, with scaled queries. [R, H × K].

    The bias, 0 or −inf, broadcasts to [B, H, M, N].
    """
    # `scale=1.0`, because the queries carry the factor 1/√K already.
    output_BHMK = F.scaled_dot_product_attention(query_BHMK, keys_BHNK, values_BHNK, attn_mask=bias, scale=1.0)
    _, heads, _, head_width = query_BHMK.shape
    return output_BHMK.transpose(1, 2).reshape(-1, heads * head_width)


class Visibility:
    """Visible tree nodes for a pattern, from the sentences of rows and nodes. Here, the whole past."""

    def is_visible(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        """Bool [B, M, N], true if a token in a row's sentence sees the node's sentence. None if all are visible."""
        return None

    def stays_visible(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        """The same for a token in the row's sentence or in a later one."""
        return self.is_visible(sentences_BM, nodes_BN)


class RangeVisibility(Visibility):
    """A token sees its own sentence and a fixed number of previous sentences.

    A sentence that is no longer visible never becomes visible again.
    """

    def __init__(self, first_G: np.ndarray, device: torch.device) -> None:
        self.first_G = torch.from_numpy(first_G).to(device)

    @override
    def is_visible(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return nodes_BN[:, None] >= self.first_G[sentences_BM][:, :, None]


class RelatedVisibility(Visibility):
    """A token sees any earlier sentences, for example those related to its own in the merged discourse tree."""

    def __init__(self, layout: AttentionLayout, pattern: str, device: torch.device) -> None:
        mask_GG = layout.sentence_grouping("decoder", pattern).dense_mask(len(layout.tgt_lengths_G))
        self.visible_GG = torch.from_numpy(mask_GG).to(device)
        # From sentence g on, sentence h is of use as long as g or a later sentence sees it.
        self.useful_GG = self.visible_GG.flip(0).cummax(0).values.flip(0)

    @override
    def is_visible(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return self.visible_GG[sentences_BM[:, :, None], nodes_BN[:, None]]

    @override
    def stays_visible(self, sentences_BM: Tensor, nodes_BN: Tensor) -> Tensor | None:
        return self.useful_GG[sentences_BM[:, :, None], nodes_BN[:, None]]


def make_visibility(layout: AttentionLayout, pattern: str, device: torch.device) -> Visibility:
    """Return the visibility of nodes for a pattern in decoder self-attention."""
    kind = find_pattern(layout.resolve(pattern)).cache
    if kind == "document":
        return Visibility()
    if kind == "range":
        grouping = layout.sentence_grouping("decoder", pattern)
        first_keys = starts_of(grouping.key_lengths_G)
        return RangeVisibility(np.repeat(grouping.key_rows[first_keys], grouping.query_lengths_G), device)
    return RelatedVisibility(layout, pattern, device)


class PrefixTree:
    """The tree nodes for one self-attention pattern, with keys and values for all layers that have the pattern.

    The shape is layers, instances, beam, heads and head width. Keys and values have the dtype and device of `like`.
    """

    def __init__(self, visibility: Visibility, shape: tuple[int, int, int, int, int], *, like: Tensor) -> None:
        self.visibility = visibility
        self.n = 0
        self.n_steps = 0
        n_layers, n_instances, self.beam, heads, head_width = shape
        sizes = (n_instances, heads, MIN_CAPACITY, head_width)
        self.keys_values_L2BHCK = like.new_empty(n_layers, 2, *sizes)
        self.is_past_BMC = torch.zeros(n_instances, self.beam, MIN_CAPACITY, dtype=torch.bool, device=like.device)
        self.sentences_BC = torch.zeros(n_instances, MIN_CAPACITY, dtype=torch.int64, device=like.device)
        self.own_MM = torch.eye(self.beam, dtype=torch.bool, device=like.device)
        self.visible_bias, self.hidden_bias = like.new_zeros(()), like.new_full((), -torch.inf)
        self.projected_shape = (-1, self.beam, 3, heads, head_width)

    def advance(self, sentences_BM: Tensor) -> None:
        """Add a node per row, a token in its sentence. `attend` then fills in keys and values."""
        start = self.n
        self.n += self.beam
        self.n_steps += 1
        # The memory-efficient kernel of a GPU copies a bias in every layer unless its rows are multiples of 8.
        self.n_columns = self.n + -self.n % 8
        if self.n_columns > self.is_past_BMC.shape[2]:
            # Doubling, so that copying takes constant time per node on average.
            more = max(self.n_columns, 2 * self.is_past_BMC.shape[2]) - self.is_past_BMC.shape[2]
            self.keys_values_L2BHCK = F.pad(self.keys_values_L2BHCK, (0, 0, 0, more))
            self.is_past_BMC = F.pad(self.is_past_BMC, (0, more))
            self.sentences_BC = F.pad(self.sentences_BC, (0, more))
        self.is_past_BMC[:, :, start : self.n] = self.own_MM
        self.sentences_BC[:, start : self.n] = sentences_BM
        is_seen = self.visibility.is_visible(sentences_BM, self.sentences_BC[:, : self.n_columns])
        # Made once per step, for all layers of the pattern.
        self.bias_B1MN = self._bias(is_seen)[:, None]
        self.newest: tuple[Tensor, ...] = ()

    @property
    def position(self) -> Tensor:
        """Position of the newest tokens in their instances, int64 [1], computed on the device."""
        return torch.full((1,), self.n_steps - 1, device=self.own_MM.device)

    def _bias(self, is_seen: Tensor | None) -> Tensor:
        """Return the biases of the first N of `n_columns` nodes. A row sees visible nodes in its own past."""
        return torch.where(self._in_past(is_seen, self.n_columns), self.visible_bias, self.hidden_bias)[..., : self.n]

    def _in_past(self, chosen_BMN: Tensor | None, n: int) -> Tensor:
        """Return the chosen nodes in a row's own past, bool [B, M, n]."""
        is_past_BMN = self.is_past_BMC[:, :, :n]
        if chosen_BMN is None:
            return is_past_BMN
        return chosen_BMN & is_past_BMN

    def attend(self, layer: int, projected_R3HK: Tensor) -> Tensor:
        """Attend from the newest tokens to visible nodes, including themselves, [R, H × K].

        `layer` counts only layers with this pattern. Queries are scaled.
        """
        return attend_side_by_side(*self._add(layer, projected_R3HK), self.bias_B1MN)

    def _add(self, layer: int, projected_R3HK: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Fill in the newest keys and values. Returns queries [B, H, M, K], and all keys and values [B, H, N, K]."""
        if not self.newest:
            keys_values_L2BHNK = self.keys_values_L2BHCK[:, :, :, :, : self.n]
            flat = keys_values_L2BHNK.flatten(0, 1).unbind()
            self.keys_values = list(zip(flat[::2], flat[1::2], strict=True))
            self.newest = keys_values_L2BHNK[:, :, :, :, self.n - self.beam :].unbind()
        projected_3BHMK = projected_R3HK.view(self.projected_shape).permute(2, 0, 3, 1, 4)
        self.newest[layer].copy_(projected_3BHMK[1:])
        return projected_3BHMK[0], *self.keys_values[layer]

    def reorder(self, parents_R: Tensor) -> None:
        """Make row r continue the hypothesis of row `parents_R[r]` in the same instance."""
        shape = self.is_past_BMC.shape
        # Ancestors only: the row takes over its parent's past, while keys and values stay where they are.
        self.is_past_BMC = self.is_past_BMC.flatten(0, 1).index_select(0, parents_R).view(shape)

    def count_live(self, sentences_BM: Tensor) -> Tensor:
        """Mark the nodes that a row will see again. Returns the arguments of `evict`, int64 [2], on the device."""
        useful_BMN = self.visibility.stays_visible(sentences_BM, self.sentences_BC[:, : self.n])
        self.is_kept_BN = self._in_past(useful_BMN, self.n).any(1)
        # The product is 1 up to the first node that no row needs. The sum counts these ones.
        first_gap = self.is_kept_BN.cumprod(1).sum(1).min()
        return torch.stack((self.is_kept_BN.sum(1).max(), first_gap))

    def evict(self, n_kept: int, first_gap: int) -> None:
        """Evict unmarked nodes. An instance keeps at most `n_kept`, and all nodes before `first_gap`."""
        if self.n - n_kept < MIN_DROPPED:
            return
        # Stable, so that the kept nodes stay in the order of time.
        order_BN = torch.argsort(self.is_kept_BN, dim=1, descending=True, stable=True)
        # Nodes before the first gap of any instance stay where they are.
        moved = slice(first_gap, n_kept)
        moved_BW = order_BN[:, moved]
        self.is_past_BMC[:, :, moved] = self.is_past_BMC.gather(2, moved_BW[:, None].expand(-1, self.beam, -1))
        self.is_past_BMC[:, :, n_kept : self.n] = False
        self.sentences_BC[:, moved] = self.sentences_BC.gather(1, moved_BW)
        n_layers, _, n_instances, heads, capacity, head_width = self.keys_values_L2BHCK.shape
        # Whole rows of the flat buffer are copied: on a CPU this is many times faster than `gather`.
        firsts = torch.arange(n_layers * 2 * n_instances * heads, device=moved_BW.device) * capacity
        rows = firsts.view(-1, n_instances, heads, 1) + moved_BW[:, None]
        rows_of_nodes = self.keys_values_L2BHCK.view(-1, head_width).index_select(0, rows.flatten())
        shape = (n_layers, 2, n_instances, heads, -1, head_width)
        self.keys_values_L2BHCK[:, :, :, :, moved] = rows_of_nodes.view(shape)
        self.n = n_kept

    def select_instances(self, instances: Tensor) -> None:
        self.keys_values_L2BHCK = self.keys_values_L2BHCK.index_select(2, instances)
        self.is_past_BMC = self.is_past_BMC.index_select(0, instances)
        self.sentences_BC = self.sentences_BC.index_select(0, instances)


class PerSentencePrefixTree(PrefixTree):
    """A prefix tree whose newest tokens attend separately to the J previous sentences."""

    def __init__(
        self, layout: AttentionLayout, n_before: int, shape: tuple[int, int, int, int, int], *, like: Tensor
    ) -> None:
        super().__init__(RangeVisibility(layout.first_sentences(n_before), like.device), shape, like=like)
        self.ranks_J111 = torch.arange(1, n_before + 1, device=like.device)[:, None, None, None]
        # Finite, so that the attention to a sentence that does not exist gives numbers.
        self.hidden_bias = like.new_full((), torch.finfo(like.dtype).min)

    @override
    def advance(self, sentences_BM: Tensor) -> None:
        super().advance(sentences_BM)
        distances = sentences_BM[:, :, None] - self.sentences_BC[:, None, : self.n_columns]
        self.bias_JBMN = self._bias(distances == self.ranks_J111)

    def attend_per_sentence(self, layer: int, projected_R3HK: Tensor) -> Tensor:
        """`attend` to separate sentences, [J, R, H × K]."""
        added = self._add(layer, projected_R3HK)
        return torch.stack([attend_side_by_side(*added, bias_BMN[:, None]) for bias_BMN in self.bias_JBMN])


class SourceKVCache(ABC):
    """Source keys and values for one pattern, in all layers that have it.

    Args:
        keys_values: padded, [L, 2, units, H, keys, K], where units are instances or groups.
        is_seen: bool array [G, keys], keys in its unit that a group sees.
        group_of: int64 array, group per target sentence. None if an instance has one group.

    Attributes:
        layers: keys and values [B, H, N, K] by layer, including all that the rows see.
        bias: in the dtype of the keys, broadcasts to [B, H, M, N]. None: the rows see all.
    """

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        self.keys_values = keys_values
        self.group_of = None if group_of is None else torch.from_numpy(group_of).to(keys_values.device)
        self.biases = torch.from_numpy(np.where(is_seen, 0, -np.inf)).to(keys_values)
        self.sentences_BM = torch.empty(0, 0)
        self.layers: list[tuple[Tensor, Tensor]] = []
        self.bias: Tensor | None = None

    def advance(self, sentences_BM: Tensor) -> None:
        """Set each row's source sentence in the next step, by number in the batch."""
        # The comparison would make a GPU wait.
        if self.group_of is None or (sentences_BM.is_cpu and torch.equal(sentences_BM, self.sentences_BM)):
            return
        self.sentences_BM = sentences_BM
        self._see(sentences_BM, self.group_of[sentences_BM])

    @abstractmethod
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        """Show every row the group of its sentence."""

    def _show(self, keys_values_L2BHNK: Tensor) -> None:
        """Set the keys and values to which rows attend."""
        self.keys_values_L2BHNK = keys_values_L2BHNK
        self.layers = [(keys, values) for keys, values in keys_values_L2BHNK]

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """Attend from the rows to the visible source of their sentences, [R, H × K]."""
        keys_BHNK, values_BHNK = self.layers[layer]
        query_BHMK = query_RHK.view(keys_BHNK.shape[0], -1, *query_RHK.shape[1:]).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHNK, values_BHNK, self.bias)

    @abstractmethod
    def select_instances(self, instances: Tensor) -> None:
        """Keep only some instances."""


class CopyKVCache(SourceKVCache):
    """Keys and values stored per group and copied per instance. Fastest on a CPU.

    The hypotheses for an instance are nearly always in the same sentence or in two neighboring ones. An instance has a
    few copies of a group's keys and values, one per sentence that a row is in, hidden from rows in other sentences.
    Only copies that change are made again.
    """

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        super().__init__(keys_values, is_seen, group_of)
        self.groups_BD = torch.empty(0, 0, dtype=torch.int64)

    @override
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        n_copies = int((sentences_BM.amax(1) - sentences_BM.amin(1)).max()) + 1
        # n neighboring sentences have different remainders by n, so they never share a copy. A sentence keeps its
        # copy while the beam moves on.
        copies_BM = sentences_BM % n_copies
        shape = (len(copies_BM), n_copies)
        if self.groups_BD.shape == shape:
            groups_BD = self.groups_BD.scatter(1, copies_BM, groups_BM)
            instances, copies = (groups_BD != self.groups_BD).nonzero(as_tuple=True)
            if len(instances):
                filled = self.keys_values.index_select(2, groups_BD[instances, copies])
                # Indices at two places with slices between them: torch moves the indexed dimension to the front.
                self.copies_L2BHDTK[:, :, instances, :, copies] = filled.permute(2, 0, 1, 3, 4, 5)
        else:
            groups_BD = groups_BM.new_zeros(shape).scatter(1, copies_BM, groups_BM)
            filled = self.keys_values.index_select(2, groups_BD.flatten())
            self.copies_L2BHDTK = filled.unflatten(2, shape).transpose(3, 4).contiguous()
            self._show(self.copies_L2BHDTK.flatten(4, 5))
        self.groups_BD = groups_BD
        is_own_BMD = copies_BM[:, :, None] == torch.arange(n_copies)
        bias_BMDT = self.biases[groups_BM][:, :, None].masked_fill(~is_own_BMD[..., None], -torch.inf)
        self.bias = bias_BMDT.flatten(2)[:, None]

    @override
    def select_instances(self, instances: Tensor) -> None:
        # Sentences stay numbered over the batch. The next step makes all copies again.
        self.sentences_BM = self.groups_BD = self.groups_BD.new_empty(0, 0)


class DocumentKVCache(SourceKVCache):
    """Keys and values stored once per instance. A bias hides keys from rows whose sentence does not see them."""

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        super().__init__(keys_values, is_seen, group_of)
        self._show(keys_values)
        # Without padding there is nothing to hide, and attention without a bias has faster kernels.
        self.bias = None if is_seen.all() else self.biases[:, None, None]

    @override
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        self.bias = self.biases[groups_BM][:, None]

    @override
    def select_instances(self, instances: Tensor) -> None:
        self.keys_values = self.keys_values.index_select(2, instances)
        self._show(self.keys_values)
        if self.group_of is None and self.bias is not None:
            self.bias = self.bias[instances]


def make_source_cache(
    members: Sequence[MultiHeadAttention], memory_MD: Tensor, layout: AttentionLayout, slot: Slot, *, like: Tensor
) -> SourceKVCache:
    """Return the cache for all layers with a pattern, with the dtype and device of `like`."""
    pattern = members[0].pattern
    grouping = layout.grouping(slot, pattern)
    n_groups = len(grouping.key_lengths_G)
    n_instances = len(layout.sentences_B)
    # Keys are stored per instance, or per group where rows have copies.
    unit_of = np.arange(n_groups)
    group_of = None
    has_copies = False
    if n_groups != n_instances:  # in a search of single sentences, every instance has one group
        lengths_G = layout.sentence_grouping(slot, pattern).query_lengths_G
        has_copies = like.device.type in COPY_DEVICES
        group_of = np.repeat(np.arange(n_groups), lengths_G)
        if not has_copies:
            unit_of[group_of] = np.repeat(np.arange(n_instances), layout.sentences_B)
    groups_P = np.repeat(np.arange(n_groups), grouping.key_lengths_G)
    fields = [unit_of[groups_P], grouping.key_rows]
    if grouping.distances is not None:
        # A key that an instance sees at several distances is stored several times.
        fields.append(grouping.distances)
    sizes = [int(field.max()) + 1 for field in fields]
    codes, places_P = np.unique(np.ravel_multi_index(fields, sizes), return_inverse=True)
    units, rows, *distances = np.unravel_index(codes, sizes)
    lengths = np.bincount(units)
    columns = expand_ranges(np.zeros_like(lengths), lengths)
    longest = int(lengths.max())
    if like.is_cuda:
        # The memory-efficient kernel of a GPU copies a bias in every layer unless its rows are multiples of 8.
        longest += -longest % 8
    is_seen = np.zeros((n_groups, longest), dtype=bool)
    is_seen[groups_P, columns[places_P]] = True

    def pad(values: np.ndarray) -> Tensor:
        padded = np.zeros((len(lengths), longest), dtype=np.int64)
        padded[units, columns] = values
        return torch.from_numpy(padded.ravel()).to(memory_MD.device)

    index_Q = pad(rows)
    distances_Q = list(map(pad, distances))
    heads = members[0].heads
    inner = members[0].out.in_features
    keys_values = like.new_empty(len(members), 2, len(lengths), heads, longest, inner // heads)
    for number, part in enumerate(members):
        keys_MHK, values_MHK = part.project_memory(memory_MD)
        padded = keys_MHK[index_Q], values_MHK[index_Q]
        if isinstance(part.distances, SentenceDistances):
            padded = part.distances.add(*padded, *distances_Q)
        for target_rows, rows_QHK in zip(keys_values[number], padded, strict=True):
            target_rows.copy_(rows_QHK.unflatten(0, (len(lengths), longest)).transpose(1, 2))
    if has_copies:
        return CopyKVCache(keys_values, is_seen, group_of)
    return DocumentKVCache(keys_values, is_seen, group_of)
