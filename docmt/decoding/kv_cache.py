"""The keys and values of cross-attention in incremental decoding.

Shape letters: B documents, M beam, R = B × M rows, L layers with one pattern, H heads, K head width, N keys, G groups
of the batch, T longest source sentence (or window), S longest source instance, D slots of a document, C = D × T, P = G
× T, M packed source tokens in `make_source_cache`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from docmt.models.attention.distances import SentenceDistances
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.attention.patterns import Slot


def attend_side_by_side(query_BHMK: Tensor, keys_BHNK: Tensor, values_BHNK: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of the rows of each document to the same keys, with scaled queries; [R, H × K].

    The bias, 0 or −inf, has a shape that extends to [B, H, M, N].
    """
    # `scale=1.0`, because the queries carry the factor 1/√K already.
    output_BHMK = F.scaled_dot_product_attention(query_BHMK, keys_BHNK, values_BHNK, attn_mask=bias, scale=1.0)
    return output_BHMK.transpose(1, 2).flatten(2).flatten(0, 1)


class SourceKVCache(ABC):
    """The source keys and values of one pattern, in all layers that have it."""

    @abstractmethod
    def advance(self, sentences_BM: Tensor) -> None:
        """Take the sentences of the rows in the next step, numbered over the batch."""

    @abstractmethod
    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """Attention of each row in one of the layers to the visible source of its sentence; [R, H × K]."""

    @abstractmethod
    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""


class SentenceKVCache(SourceKVCache):
    """Cross-attention to a group of the current sentence of each row: its source sentence, window or related sentences.

    The hypotheses of a document are nearly always in the same sentence or in two neighboring ones. Each document has a
    few slots with the keys and values of a group, one for each sentence that a row is in, hidden from rows that are in
    another. Only slots that change are filled anew.

    Args:
        keys_values_L2GHTK: of all groups of the batch, padded.
        lengths_G: int64 array, keys of each group.
        group_of: int64 array, the group of each target sentence.
    """

    def __init__(self, keys_values_L2GHTK: Tensor, lengths_G: np.ndarray, group_of: np.ndarray) -> None:
        self.keys_values_L2GHTK = keys_values_L2GHTK
        self.group_of = torch.from_numpy(group_of).to(keys_values_L2GHTK.device)
        self.bias_GT = _hide_padding(lengths_G, keys_values_L2GHTK.shape[4], like=keys_values_L2GHTK)
        self.sentences_BM = self.groups_BD = self.group_of.new_empty(0, 0)

    @override
    def advance(self, sentences_BM: Tensor) -> None:
        # Only on a CPU: the comparison would make a GPU wait.
        if sentences_BM.is_cpu and torch.equal(sentences_BM, self.sentences_BM):
            return
        self.sentences_BM = sentences_BM
        if sentences_BM.is_cpu:
            n_slots = int((sentences_BM.amax(1) - sentences_BM.amin(1)).max()) + 1
            # n neighboring sentences have different remainders by n, so they never share a slot; and a sentence keeps
            # its slot while the beam moves on.
            slots_BM = sentences_BM % n_slots
        else:
            # A GPU would have to wait for the number of slots: every row gets its own.
            n_slots = sentences_BM.shape[1]
            slots_BM = torch.arange(n_slots, device=sentences_BM.device).expand(sentences_BM.shape)
        groups_BM = self.group_of[sentences_BM]
        self._fill(slots_BM, groups_BM, n_slots)
        is_own_BMD = slots_BM[:, :, None] == torch.arange(n_slots, device=slots_BM.device)
        bias_BMDT = self.bias_GT[groups_BM][:, :, None].masked_fill(~is_own_BMD[..., None], -torch.inf)
        self.bias_B1MC = bias_BMDT.flatten(2)[:, None]

    def _fill(self, slots_BM: Tensor, groups_BM: Tensor, n_slots: int) -> None:
        """Copy the keys and values of groups into their slots."""
        shape = (len(slots_BM), n_slots)
        if slots_BM.is_cpu and self.groups_BD.shape == shape:
            groups_BD = self.groups_BD.scatter(1, slots_BM, groups_BM)
            documents, slots = (groups_BD != self.groups_BD).nonzero(as_tuple=True)
            if len(documents):
                filled = self.keys_values_L2GHTK.index_select(2, groups_BD[documents, slots])
                # Indices at two places with slices between them: torch moves the indexed dimension to the front.
                self.slots_L2BHDTK[:, :, documents, :, slots] = filled.permute(2, 0, 1, 3, 4, 5)
        else:
            groups_BD = groups_BM.new_zeros(shape).scatter(1, slots_BM, groups_BM)
            filled = self.keys_values_L2GHTK.index_select(2, groups_BD.flatten())
            self.slots_L2BHDTK = filled.unflatten(2, shape).transpose(3, 4).contiguous()
        self.groups_BD = groups_BD

    @override
    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        keys_BHCK, values_BHCK = self.slots_L2BHDTK[layer].flatten(3, 4)
        query_BHMK = query_RHK.unflatten(0, (len(keys_BHCK), -1)).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHCK, values_BHCK, self.bias_B1MC)

    @override
    def select_documents(self, documents: Tensor) -> None:
        # Sentences stay numbered over the batch; the next step fills all slots anew.
        self.sentences_BM = self.groups_BD = self.group_of.new_empty(0, 0)


class DocumentKVCache(SourceKVCache):
    """Cross-attention to the whole source instance, padded and stored once per document."""

    def __init__(self, keys_values_L2BHSK: Tensor, lengths_B: np.ndarray) -> None:
        self.keys_values_L2BHSK = keys_values_L2BHSK
        length = keys_values_L2BHSK.shape[4]
        # Without padding there is nothing to hide, and attention without a bias has faster kernels.
        self.bias_B11S: Tensor | None = None
        if bool((lengths_B < length).any()):
            self.bias_B11S = _hide_padding(lengths_B, length, like=keys_values_L2BHSK)[:, None, None]

    @override
    def advance(self, sentences_BM: Tensor) -> None:
        pass  # every sentence sees the same

    @override
    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        keys_BHSK, values_BHSK = self.keys_values_L2BHSK[layer]
        query_BHMK = query_RHK.unflatten(0, (len(keys_BHSK), -1)).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHSK, values_BHSK, self.bias_B11S)

    @override
    def select_documents(self, documents: Tensor) -> None:
        self.keys_values_L2BHSK = self.keys_values_L2BHSK.index_select(2, documents)
        if self.bias_B11S is not None:
            self.bias_B11S = self.bias_B11S[documents]


def _hide_padding(lengths: np.ndarray, longest: int, *, like: Tensor) -> Tensor:
    """[rows, longest], 0 for the first `lengths` entries of each row and −inf for the rest."""
    return torch.from_numpy(np.where(np.arange(longest) < lengths[:, None], 0, -np.inf)).to(like)


def make_source_cache(
    members: Sequence[MultiHeadAttention], memory_MD: Tensor, layout: AttentionLayout, slot: Slot, *, like: Tensor
) -> SourceKVCache:
    """The keys and values of all layers of a pattern, padded per group; of the dtype and on the device of `like`."""
    pattern = members[0].pattern
    grouping = layout.grouping(slot, pattern)
    lengths = grouping.key_lengths_G
    longest = int(lengths.max())
    inside = np.arange(longest) < lengths[:, None]

    def pad(values: np.ndarray) -> Tensor:
        padded = np.zeros(inside.shape, dtype=np.int64)
        padded[inside] = values
        return torch.from_numpy(padded.ravel()).to(memory_MD.device)

    index_P = pad(grouping.key_rows)
    distances_P = None if grouping.distances is None else pad(grouping.distances)
    heads, inner = members[0].heads, members[0].out.in_features
    keys_values = like.new_empty(len(members), 2, len(lengths), heads, longest, inner // heads)
    for number, part in enumerate(members):
        keys_MHK, values_MHK = part.project_memory(memory_MD)
        padded = keys_MHK[index_P], values_MHK[index_P]
        if isinstance(part.distances, SentenceDistances) and distances_P is not None:
            padded = part.distances.add(*padded, distances_P)
        for place, rows_PHK in zip(keys_values[number], padded, strict=True):
            place.copy_(rows_PHK.unflatten(0, (len(lengths), longest)).transpose(1, 2))
    # With one group per document, as in a search of single sentences, all its rows read the same.
    if len(lengths) == len(layout.sentences_B):
        return DocumentKVCache(keys_values, lengths)
    return SentenceKVCache(keys_values, lengths, layout.sentence_groups(pattern, slot))
