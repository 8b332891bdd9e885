"""Key and value caches of incremental decoding, one kind per kind of attention pattern.

Self-attention caches hold one column per step, the same for all rows; a bias hides the columns that a row does not see.
Group, window and RST attention forget the columns that no row will see any more. Global attention stores what all
hypotheses of a document have in common once per document instead of once per hypothesis and never reorders it; beams
soon agree on their past, so only a short tail is ever copied.

Shape letters: B documents, M beam, R = B × M rows, H heads, K head width, C columns, W visible columns, L longest
source sentence (or window), S longest source instance.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from docmt.models.patterns import CacheKind

MIN_CAPACITY = 64


class Columns:
    """A growing buffer of keys and values, of the dtype and on the device of `like`, with one column per step.

    It has R rows, or B for the shared part of a global cache.
    """

    def __init__(self, n_rows: int, heads: int, head_width: int, *, like: Tensor) -> None:
        self.buffer_2RHCK = like.new_empty(2, n_rows, heads, MIN_CAPACITY, head_width)
        self.n = 0

    def append(self, block_2RHWK: Tensor) -> None:
        """Add columns at the end."""
        width = block_2RHWK.shape[3]
        capacity = self.buffer_2RHCK.shape[3]
        if self.n + width > capacity:
            shape = list(self.buffer_2RHCK.shape)
            shape[3] = max(2 * capacity, self.n + width)
            grown = self.buffer_2RHCK.new_empty(shape)
            grown[:, :, :, : self.n] = self.view()
            self.buffer_2RHCK = grown
        self.buffer_2RHCK[:, :, :, self.n : self.n + width] = block_2RHWK
        self.n += width

    def view(self) -> Tensor:
        """[2, R, H, n, K]."""
        return self.buffer_2RHCK[:, :, :, : self.n]

    def drop_first(self, count: int) -> None:
        """Forget the first columns."""
        if count:
            self.buffer_2RHCK[:, :, :, : self.n - count] = self.view()[:, :, :, count:].clone()
            self.n -= count

    def keep(self, columns: Tensor) -> None:
        """Forget all columns but some, given in rising order."""
        self.buffer_2RHCK[:, :, :, : len(columns)] = self.view().index_select(3, columns)
        self.n = len(columns)

    def select_rows(self, rows: Tensor) -> None:
        """Reorder, repeat or drop rows."""
        if len(rows) == self.buffer_2RHCK.shape[1]:
            self.buffer_2RHCK[:, :, :, : self.n] = self.view().index_select(1, rows)
        else:
            self.buffer_2RHCK = self.buffer_2RHCK.index_select(1, rows)


class SelfCache:
    """The keys and values of one self-attention, one column per step. Each kind drops columns in its own way."""

    def __init__(self, n_documents: int, beam: int, heads: int, head_width: int, *, like: Tensor) -> None:
        self.columns = Columns(n_documents * beam, heads, head_width, like=like)

    def attend(self, query_RHK: Tensor, key_RHK: Tensor, value_RHK: Tensor, bias_RW: Tensor | None) -> Tensor:
        """Add this step's column and attend to all visible ones; [R, H × K].

        Queries are scaled. The bias is 0 or −inf over the columns; None when every row sees them all.
        """
        self.columns.append(torch.stack((key_RHK, value_RHK))[:, :, :, None])
        keys, values = self.columns.view()
        scores = torch.matmul(query_RHK[:, :, None], keys.transpose(-1, -2))
        if bias_RW is not None:
            scores = scores + bias_RW[:, None, None]
        return torch.matmul(scores.softmax(-1), values).flatten(1)

    def select_rows(self, rows: Tensor) -> None:
        """Follow a reordering of hypotheses inside their documents."""
        self.columns.select_rows(rows)

    def select_documents(self, documents: Tensor, rows: Tensor) -> None:
        """Keep only some documents, whose hypotheses are `rows`."""
        self.columns.select_rows(rows)

    def share(self, count: int) -> None:
        """The first columns are the same in all hypotheses of each document."""

    def drop_first(self, count: int) -> None:
        """No row of a `range` pattern sees the first columns any more."""

    def keep(self, columns: Tensor) -> None:
        """Forget all columns but these, given in rising order: no row of this pattern will see others."""
        self.columns.keep(columns)


class LocalCache(SelfCache):
    """Self-attention inside the sentence or a window of sentences."""

    def drop_first(self, count: int) -> None:
        """Forget the first columns."""
        self.columns.drop_first(count)


class GlobalCache(SelfCache):
    """Self-attention over the whole document: a shared past and, in `columns`, a tail per hypothesis."""

    def __init__(self, n_documents: int, beam: int, heads: int, head_width: int, *, like: Tensor) -> None:
        super().__init__(n_documents, beam, heads, head_width, like=like)
        self.beam = beam
        self.shared = Columns(n_documents, heads, head_width, like=like)

    def attend(self, query_RHK: Tensor, key_RHK: Tensor, value_RHK: Tensor, bias_RW: Tensor | None) -> Tensor:
        """As `SelfCache.attend`, over the shared part too; every row sees all columns, so there is no bias."""
        n = self.shared.n
        if not n:
            return super().attend(query_RHK, key_RHK, value_RHK, None)
        self.columns.append(torch.stack((key_RHK, value_RHK))[:, :, :, None])
        tail_keys, tail_values = self.columns.view()
        tail_scores = torch.matmul(query_RHK[:, :, None], tail_keys.transpose(-1, -2))
        shared_keys, shared_values = self.shared.view()
        query_BHMK = query_RHK.unflatten(0, (-1, self.beam)).transpose(1, 2)
        shared_scores = torch.matmul(query_BHMK, shared_keys.transpose(-1, -2)).transpose(1, 2).flatten(0, 1)
        weights = torch.cat((shared_scores[:, :, None], tail_scores), dim=-1).softmax(-1)
        weights_BHMC = weights[:, :, 0, :n].unflatten(0, (-1, self.beam)).transpose(1, 2)
        output = torch.matmul(weights_BHMC, shared_values).transpose(1, 2).flatten(0, 1)
        return (output + torch.matmul(weights[..., n:], tail_values)[:, :, 0]).flatten(1)

    def select_documents(self, documents: Tensor, rows: Tensor) -> None:
        """See `SelfCache.select_documents`."""
        super().select_documents(documents, rows)
        self.shared.select_rows(documents)

    def share(self, count: int) -> None:
        """Move the first columns of the tail to the shared part."""
        self.shared.append(self.columns.view()[:, :: self.beam, :, :count])
        self.columns.drop_first(count)


CACHES: dict[CacheKind, type[SelfCache]] = {"document": GlobalCache, "range": LocalCache, "related": SelfCache}
"""The cache for each kind of pattern."""


def hide_padding(lengths: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
    """[rows, longest], 0 for the first entries of each row, as many as `lengths` says, and −inf for the rest."""
    positions = torch.arange(longest, device=lengths.device)
    bias = torch.zeros(len(lengths), longest, device=lengths.device)
    return bias.masked_fill(positions >= lengths[:, None], -torch.inf).to(dtype)


class Memory(ABC):
    """The keys and values of one cross-attention."""

    @abstractmethod
    def attend(self, query_RHK: Tensor, sentences_R: np.ndarray) -> Tensor:
        """Attend from each row to what its sentence, numbered over the batch, sees of the source; [R, H × K]."""

    @abstractmethod
    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""


class SentenceMemory(Memory):
    """Cross-attention to what the current sentence of each row sees: its source sentence, window or related sentences.

    Keys and values are those of every group of the batch, padded; `group_of` is the group of each target sentence.
    """

    def __init__(self, keys_values_2GHLK: Tensor, lengths_G: Tensor, group_of: np.ndarray) -> None:
        self.keys_values_2GHLK, self.group_of = keys_values_2GHLK, group_of
        self.bias_GL = hide_padding(lengths_G, keys_values_2GHLK.shape[3], keys_values_2GHLK.dtype)
        self.sentences: np.ndarray | None = None

    def attend(self, query_RHK: Tensor, sentences_R: np.ndarray) -> Tensor:
        """See `Memory.attend`."""
        if self.sentences is None or not np.array_equal(self.sentences, sentences_R):
            rows = torch.from_numpy(self.group_of[sentences_R]).to(query_RHK.device)
            self.keys, self.values = self.keys_values_2GHLK.index_select(1, rows)
            self.bias = self.bias_GL[rows][:, None, None]
            self.sentences = sentences_R.copy()
        scores = torch.matmul(query_RHK[:, :, None], self.keys.transpose(-1, -2)) + self.bias
        return torch.matmul(scores.softmax(-1), self.values).flatten(1)

    def select_documents(self, documents: Tensor) -> None:
        """Gather afresh in the next step; sentences stay numbered over the batch."""
        self.sentences = None


class DocumentMemory(Memory):
    """Cross-attention to the whole source instance, padded and stored once per document."""

    def __init__(self, keys_values_2BHSK: Tensor, lengths_B: Tensor, beam: int) -> None:
        self.beam = beam
        self.keys_values_2BHSK = keys_values_2BHSK
        length = keys_values_2BHSK.shape[3]
        self.bias_BS: Tensor | None = None
        if bool((lengths_B < length).any()):
            self.bias_BS = hide_padding(lengths_B, length, keys_values_2BHSK.dtype)

    def attend(self, query_RHK: Tensor, sentences_R: np.ndarray) -> Tensor:
        """See `Memory.attend`; each row sees its source instance."""
        keys, values = self.keys_values_2BHSK
        query_BHMK = query_RHK.unflatten(0, (-1, self.beam)).transpose(1, 2)
        scores = torch.matmul(query_BHMK, keys.transpose(-1, -2))
        if self.bias_BS is not None:
            scores = scores + self.bias_BS[:, None, None]
        return torch.matmul(scores.softmax(-1), values).transpose(1, 2).flatten(0, 1).flatten(1)

    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents."""
        self.keys_values_2BHSK = self.keys_values_2BHSK.index_select(1, documents)
        if self.bias_BS is not None:
            self.bias_BS = self.bias_BS[documents]
