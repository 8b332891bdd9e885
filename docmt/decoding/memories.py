"""The keys and values of cross-attention in incremental decoding.

Shape letters: B documents, M beam, R = B × M rows, L layers with one pattern, H heads, K head width, N keys, G groups
of the batch, T longest source sentence (or window), S longest source instance, D slots of a document, C = D × T.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def hide_padding(lengths: np.ndarray, longest: int, *, like: Tensor) -> Tensor:
    """[rows, longest], 0 for the first entries of each row, as many as `lengths` says, and −inf for the rest."""
    bias = np.where(np.arange(longest) < lengths[:, None], 0, -np.inf)
    return torch.from_numpy(bias).to(like)


def attend_side_by_side(query_BHMK: Tensor, keys_BHNK: Tensor, values_BHNK: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of the rows of each document to the same keys, with scaled queries; [R, H × K].

    The bias, 0 or −inf, has a shape that extends to [B, H, M, N].
    """
    output_BHMK = F.scaled_dot_product_attention(query_BHMK, keys_BHNK, values_BHNK, attn_mask=bias, scale=1.0)
    return output_BHMK.transpose(1, 2).flatten(2).flatten(0, 1)


class Memory(ABC):
    """The source keys and values of one pattern, in all layers that have it."""

    @abstractmethod
    def turn(self, sentences_BM: Tensor) -> None:
        """A step in which each row writes a token of its sentence, numbered over the batch."""

    @abstractmethod
    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """Attend in one of the layers from each row to what its sentence sees of the source; [R, H × K]."""

    @abstractmethod
    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""


class SentenceMemory(Memory):
    """Cross-attention to what the current sentence of each row sees: its source sentence, window or related sentences.

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
        self.bias_GT = hide_padding(lengths_G, keys_values_L2GHTK.shape[4], like=keys_values_L2GHTK)
        self.sentences_BM = self.groups_BD = self.group_of.new_empty(0, 0)

    def turn(self, sentences_BM: Tensor) -> None:
        """See `Memory.turn`."""
        if sentences_BM.is_cpu and torch.equal(sentences_BM, self.sentences_BM):
            return
        self.sentences_BM = sentences_BM
        slots_BM, n_slots = self._slots(sentences_BM)
        groups_BM = self.group_of[sentences_BM]
        self._fill(slots_BM, groups_BM, n_slots)
        is_own_BMD = slots_BM[:, :, None] == torch.arange(n_slots, device=slots_BM.device)
        bias_BMDT = self.bias_GT[groups_BM][:, :, None].masked_fill(~is_own_BMD[..., None], -torch.inf)
        self.bias_B1MC = bias_BMDT.flatten(2)[:, None]

    def _slots(self, sentences_BM: Tensor) -> tuple[Tensor, int]:
        """The slot of each row, int64 [B, M], and how many there are."""
        if sentences_BM.is_cpu:
            n_slots = int((sentences_BM.amax(1) - sentences_BM.amin(1)).max()) + 1
            return sentences_BM % n_slots, n_slots
        # A GPU would have to wait for the answer: every row gets its own slot.
        n_slots = sentences_BM.shape[1]
        return torch.arange(n_slots, device=sentences_BM.device).expand(sentences_BM.shape), n_slots

    def _fill(self, slots_BM: Tensor, groups_BM: Tensor, n_slots: int) -> None:
        shape = (len(slots_BM), n_slots)
        if slots_BM.is_cpu and self.groups_BD.shape == shape:
            groups_BD = self.groups_BD.scatter(1, slots_BM, groups_BM)
            documents, slots = (groups_BD != self.groups_BD).nonzero(as_tuple=True)
            if len(documents):
                filled = self.keys_values_L2GHTK.index_select(2, groups_BD[documents, slots])
                self.slots_L2BHDTK[:, :, documents, :, slots] = filled.permute(2, 0, 1, 3, 4, 5)
        else:
            groups_BD = groups_BM.new_zeros(shape).scatter(1, slots_BM, groups_BM)
            filled = self.keys_values_L2GHTK.index_select(2, groups_BD.flatten())
            self.slots_L2BHDTK = filled.unflatten(2, shape).transpose(3, 4).contiguous()
        self.groups_BD = groups_BD

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """See `Memory.attend`."""
        keys_BHCK, values_BHCK = self.slots_L2BHDTK[layer].flatten(3, 4)
        query_BHMK = query_RHK.unflatten(0, (len(keys_BHCK), -1)).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHCK, values_BHCK, self.bias_B1MC)

    def select_documents(self, documents: Tensor) -> None:
        """Fill all slots anew in the next step; sentences stay numbered over the batch."""
        self.sentences_BM = self.groups_BD = self.group_of.new_empty(0, 0)


class DocumentMemory(Memory):
    """Cross-attention to the whole source instance, padded and stored once per document."""

    def __init__(self, keys_values_L2BHSK: Tensor, lengths_B: np.ndarray) -> None:
        self.keys_values_L2BHSK = keys_values_L2BHSK
        length = keys_values_L2BHSK.shape[4]
        self.bias_B11S: Tensor | None = None
        if bool((lengths_B < length).any()):
            self.bias_B11S = hide_padding(lengths_B, length, like=keys_values_L2BHSK)[:, None, None]

    def turn(self, sentences_BM: Tensor) -> None:
        """See `Memory.turn`: what a row sees does not depend on its sentence."""

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """See `Memory.attend`."""
        keys_BHSK, values_BHSK = self.keys_values_L2BHSK[layer]
        query_BHMK = query_RHK.unflatten(0, (len(keys_BHSK), -1)).transpose(1, 2)
        return attend_side_by_side(query_BHMK, keys_BHSK, values_BHSK, self.bias_B11S)

    def select_documents(self, documents: Tensor) -> None:
        """See `Memory.select_documents`."""
        self.keys_values_L2BHSK = self.keys_values_L2BHSK.index_select(2, documents)
        if self.bias_B11S is not None:
            self.bias_B11S = self.bias_B11S[documents]
