"""The keys and values of cross-attention in incremental decoding.

Shape letters: B documents, M beam, R = B × M rows, L layers with one pattern, H heads, K head width, N keys, G groups
of the batch, T longest group, S most keys of a document, D slots of a document, C = D × T, P pairs of a group and a
key, Q padded rows; in `make_source_cache`, M packed source tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from docmt.instances.storage import expand_ranges
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import MultiHeadAttention, SentenceDistances
from docmt.models.attention.patterns import Slot

SLOT_DEVICES = ("cpu",)
"""Kinds of devices on which rows in different sentences have copies of their keys."""


def attend_side_by_side(query_BHMK: Tensor, keys_BHNK: Tensor, values_BHNK: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of the rows of each document to the same keys, with scaled queries; [R, H × K].

    The bias, 0 or −inf, has a shape that extends to [B, H, M, N].
    """
    # `scale=1.0`, because the queries carry the factor 1/√K already.
    output_BHMK = F.scaled_dot_product_attention(query_BHMK, keys_BHNK, values_BHNK, attn_mask=bias, scale=1.0)
    _, heads, _, head_width = query_BHMK.shape
    return output_BHMK.transpose(1, 2).reshape(-1, heads * head_width)


class SourceKVCache(ABC):
    """The source keys and values of one pattern, in all layers that have it.

    Args:
        keys_values: padded, [L, 2, units, H, keys, K], where the units are documents or groups.
        is_seen: bool array [G, keys], the keys of its unit that each group sees.
        group_of: int64 array, the group of each target sentence; None if a document has one group.

    Attributes:
        layers: keys and values [B, H, N, K] of each layer, among them all that the rows see.
        bias: float32, extends to [B, H, M, N]; None: the rows see all.
    """

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        self.keys_values = keys_values
        self.group_of = None if group_of is None else torch.from_numpy(group_of).to(keys_values.device)
        self.biases = torch.from_numpy(np.where(is_seen, 0, -np.inf)).to(keys_values)
        self.sentences_BM = torch.empty(0, 0)
        self.layers: list[tuple[Tensor, Tensor]] = []
        self.bias: Tensor | None = None

    def advance(self, sentences_BM: Tensor) -> None:
        """Take the sentences of the rows in the next step, numbered over the batch."""
        # The comparison would make a GPU wait.
        if self.group_of is None or (sentences_BM.is_cpu and torch.equal(sentences_BM, self.sentences_BM)):
            return
        self.sentences_BM = sentences_BM
        self._see(sentences_BM, self.group_of[sentences_BM])

    @abstractmethod
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        """Let each row see a group, the one of its sentence."""

    def _show(self, keys_values_L2BHNK: Tensor) -> None:
        """Let the rows attend to these keys and values."""
        self.keys_values_L2BHNK = keys_values_L2BHNK
        self.layers = [(keys, values) for keys, values in keys_values_L2BHNK]

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """Attention of each row in one of the layers to the visible source of its sentence; [R, H × K]."""
        keys_BHNK, values_BHNK = self.layers[layer]
        query_BHMK = query_RHK.view(keys_BHNK.shape[0], -1, *query_RHK.shape[1:]).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHNK, values_BHNK, self.bias)

    @abstractmethod
    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""


class SlotKVCache(SourceKVCache):
    """Keys and values stored per group, and copied to slots of the documents; fastest on a CPU.

    The hypotheses of a document are nearly always in the same sentence or in two neighboring ones. Each document has a
    few slots with the keys and values of a group, one for each sentence that a row is in, hidden from rows that are in
    another. Only slots that change are filled anew.
    """

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        super().__init__(keys_values, is_seen, group_of)
        self.groups_BD = torch.empty(0, 0, dtype=torch.int64)

    @override
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        n_slots = int((sentences_BM.amax(1) - sentences_BM.amin(1)).max()) + 1
        # n neighboring sentences have different remainders by n, so they never share a slot; and a sentence keeps its
        # slot while the beam moves on.
        slots_BM = sentences_BM % n_slots
        shape = (len(slots_BM), n_slots)
        if self.groups_BD.shape == shape:
            groups_BD = self.groups_BD.scatter(1, slots_BM, groups_BM)
            documents, slots = (groups_BD != self.groups_BD).nonzero(as_tuple=True)
            if len(documents):
                filled = self.keys_values.index_select(2, groups_BD[documents, slots])
                # Indices at two places with slices between them: torch moves the indexed dimension to the front.
                self.slots_L2BHDTK[:, :, documents, :, slots] = filled.permute(2, 0, 1, 3, 4, 5)
        else:
            groups_BD = groups_BM.new_zeros(shape).scatter(1, slots_BM, groups_BM)
            filled = self.keys_values.index_select(2, groups_BD.flatten())
            self.slots_L2BHDTK = filled.unflatten(2, shape).transpose(3, 4).contiguous()
            self._show(self.slots_L2BHDTK.flatten(4, 5))
        self.groups_BD = groups_BD
        is_own_BMD = slots_BM[:, :, None] == torch.arange(n_slots)
        bias_BMDT = self.biases[groups_BM][:, :, None].masked_fill(~is_own_BMD[..., None], -torch.inf)
        self.bias = bias_BMDT.flatten(2)[:, None]

    @override
    def select_documents(self, documents: Tensor) -> None:
        # Sentences stay numbered over the batch; the next step fills all slots anew.
        self.sentences_BM = self.groups_BD = self.groups_BD.new_empty(0, 0)


class DocumentKVCache(SourceKVCache):
    """Keys and values stored once per document; a bias hides from each row what its sentence does not see."""

    def __init__(self, keys_values: Tensor, is_seen: np.ndarray, group_of: np.ndarray | None = None) -> None:
        super().__init__(keys_values, is_seen, group_of)
        self._show(keys_values)
        # Without padding there is nothing to hide, and attention without a bias has faster kernels.
        self.bias = None if is_seen.all() else self.biases[:, None, None]

    @override
    def _see(self, sentences_BM: Tensor, groups_BM: Tensor) -> None:
        self.bias = self.biases[groups_BM][:, None]

    @override
    def select_documents(self, documents: Tensor) -> None:
        self.keys_values = self.keys_values.index_select(2, documents)
        self._show(self.keys_values)
        if self.group_of is None and self.bias is not None:
            self.bias = self.bias[documents]


def make_source_cache(
    members: Sequence[MultiHeadAttention], memory_MD: Tensor, layout: AttentionLayout, slot: Slot, *, like: Tensor
) -> SourceKVCache:
    """The keys and values of all layers of a pattern; of the dtype and on the device of `like`."""
    pattern = members[0].pattern
    grouping = layout.grouping(slot, pattern)
    n_groups, n_documents = len(grouping.key_lengths_G), len(layout.sentences_B)
    # Keys are stored per document, or per group where rows have slots.
    unit_of, group_of, has_slots = np.arange(n_groups), None, False
    if n_groups != n_documents:  # in a search of single sentences, every document has one group
        group_of, has_slots = layout.sentence_groups(pattern, slot), like.device.type in SLOT_DEVICES
        if not has_slots:
            unit_of[group_of] = np.repeat(np.arange(n_documents), layout.sentences_B)
    groups_P = np.repeat(np.arange(n_groups), grouping.key_lengths_G)
    # A key that a document sees at several distances is stored several times.
    fields = [unit_of[groups_P], grouping.key_rows, *([] if grouping.distances is None else [grouping.distances])]
    sizes = [int(field.max()) + 1 for field in fields]
    codes, places_P = np.unique(np.ravel_multi_index(fields, sizes), return_inverse=True)
    units, rows, *distances = np.unravel_index(codes, sizes)
    lengths = np.bincount(units)
    columns = expand_ranges(np.zeros_like(lengths), lengths)
    # The memory-efficient kernel of a GPU copies a bias in every layer unless its rows are multiples of 8.
    longest = int(lengths.max()) + (-int(lengths.max()) % 8 if like.is_cuda else 0)
    is_seen = np.zeros((n_groups, longest), dtype=bool)
    is_seen[groups_P, columns[places_P]] = True

    def pad(values: np.ndarray) -> Tensor:
        padded = np.zeros((len(lengths), longest), dtype=np.int64)
        padded[units, columns] = values
        return torch.from_numpy(padded.ravel()).to(memory_MD.device)

    index_Q, distances_Q = pad(rows), [pad(values) for values in distances]
    heads, inner = members[0].heads, members[0].out.in_features
    keys_values = like.new_empty(len(members), 2, len(lengths), heads, longest, inner // heads)
    for number, part in enumerate(members):
        keys_MHK, values_MHK = part.project_memory(memory_MD)
        padded = keys_MHK[index_Q], values_MHK[index_Q]
        if isinstance(part.distances, SentenceDistances):
            padded = part.distances.add(*padded, *distances_Q)
        for place, rows_QHK in zip(keys_values[number], padded, strict=True):
            place.copy_(rows_QHK.unflatten(0, (len(lengths), longest)).transpose(1, 2))
    return (SlotKVCache if has_slots else DocumentKVCache)(keys_values, is_seen, group_of)
