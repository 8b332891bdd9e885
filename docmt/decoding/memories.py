"""The keys and values of cross-attention in incremental decoding.

Shape letters: B documents, M beam, R = B × M rows, L layers with one pattern, H heads, K head width, G groups of the
batch, T longest source sentence (or window), S longest source instance.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor


def hide_padding(lengths: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
    """[rows, longest], 0 for the first entries of each row, as many as `lengths` says, and −inf for the rest."""
    positions = torch.arange(longest, device=lengths.device)
    bias = torch.zeros(len(lengths), longest, device=lengths.device)
    return bias.masked_fill(positions >= lengths[:, None], -torch.inf).to(dtype)


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

    Keys and values are those of every group of the batch, padded; `group_of` is the group of each target sentence. Each
    row has a copy of its group's, renewed when its sentence changes.
    """

    def __init__(self, keys_values_L2GHTK: Tensor, lengths_G: Tensor, group_of: np.ndarray) -> None:
        self.keys_values_L2GHTK = keys_values_L2GHTK
        self.group_of = torch.from_numpy(group_of).to(keys_values_L2GHTK.device)
        self.bias_GT = hide_padding(lengths_G, keys_values_L2GHTK.shape[4], keys_values_L2GHTK.dtype)
        self.groups_R: Tensor | None = None

    def turn(self, sentences_BM: Tensor) -> None:
        """See `Memory.turn`."""
        groups_R = self.group_of[sentences_BM.flatten()]
        if self.groups_R is None or not groups_R.is_cpu:
            # Which rows have changed is not asked on a GPU: it would have to wait for the answer.
            self.of_rows_L2RHTK = self.keys_values_L2GHTK.index_select(2, groups_R)
        else:
            changed = (groups_R != self.groups_R).nonzero()[:, 0]
            if not len(changed):
                return
            self.of_rows_L2RHTK[:, :, changed] = self.keys_values_L2GHTK.index_select(2, groups_R[changed])
        self.groups_R = groups_R
        self.bias_R11T = self.bias_GT[groups_R][:, None, None]

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """See `Memory.attend`."""
        keys_RHTK, values_RHTK = self.of_rows_L2RHTK[layer]
        scores = torch.matmul(query_RHK[:, :, None], keys_RHTK.transpose(-1, -2)).add_(self.bias_R11T)
        return torch.matmul(scores.softmax(-1), values_RHTK).flatten(1)

    def select_documents(self, documents: Tensor) -> None:
        """Gather afresh in the next step; sentences stay numbered over the batch."""
        self.groups_R = None


class DocumentMemory(Memory):
    """Cross-attention to the whole source instance, padded and stored once per document."""

    def __init__(self, keys_values_L2BHSK: Tensor, lengths_B: Tensor, beam: int, *, is_padded: bool) -> None:
        self.beam = beam
        self.keys_values_L2BHSK = keys_values_L2BHSK
        self.bias_BS: Tensor | None = None
        if is_padded:
            self.bias_BS = hide_padding(lengths_B, keys_values_L2BHSK.shape[4], keys_values_L2BHSK.dtype)

    def turn(self, sentences_BM: Tensor) -> None:
        """See `Memory.turn`: what a row sees does not depend on its sentence."""

    def attend(self, layer: int, query_RHK: Tensor) -> Tensor:
        """See `Memory.attend`."""
        keys_BHSK, values_BHSK = self.keys_values_L2BHSK[layer]
        query_BHMK = query_RHK.unflatten(0, (-1, self.beam)).transpose(1, 2)
        scores_BHMS = torch.matmul(query_BHMK, keys_BHSK.transpose(-1, -2))
        if self.bias_BS is not None:
            scores_BHMS.add_(self.bias_BS[:, None, None])
        return torch.matmul(scores_BHMS.softmax(-1), values_BHSK).transpose(1, 2).flatten(2).flatten(0, 1)

    def select_documents(self, documents: Tensor) -> None:
        """See `Memory.select_documents`."""
        self.keys_values_L2BHSK = self.keys_values_L2BHSK.index_select(2, documents)
        if self.bias_BS is not None:
            self.bias_BS = self.bias_BS[documents]
