"""Which earlier target sentences each hypothesis sees, and which it will never see again.

For patterns that see any earlier sentences, such as RST attention: it sees those that are related to the current one in
the merged tree. What sees what is known before decoding, since it does not depend on the words.

Shape letters: G sentences of the batch, R rows, C columns of the caches, one per step that is still kept.
"""

import numpy as np
import torch
from torch import Tensor

from docmt.models.layout import Layout

FORGET_SHARE = 0.25
"""Columns are forgotten when at least this share of them is no longer of use to any row …"""
MIN_FORGOTTEN = 16
"""… and at least so many are."""


class RelatedSentences:
    """The sentence of every cached column of every row; biases are of the dtype and on the device of `like`."""

    def __init__(self, layout: Layout, pattern: str, n_rows: int, *, like: Tensor) -> None:
        self.visible_GG = layout.visible_sentences(pattern)
        # From sentence g on, column sentence h is of use as long as g or a later sentence sees it.
        self.useful_GG = np.logical_or.accumulate(self.visible_GG[::-1])[::-1]
        self.sentences_RC = np.empty((n_rows, 0), dtype=np.int64)
        self.like = like

    def add_column(self, sentences_R: np.ndarray) -> None:
        """A step in which row r writes sentence `sentences_R[r]`."""
        self.sentences_RC = np.concatenate((self.sentences_RC, sentences_R[:, None]), axis=1)

    def bias(self, sentences_R: np.ndarray) -> Tensor | None:
        """[R, C], 0 where a row sees a column and −inf elsewhere; None when every row sees all."""
        visible = self.visible_GG[sentences_R[:, None], self.sentences_RC]
        if visible.all():
            return None
        hidden = torch.from_numpy(~visible).to(self.like.device)
        return self.like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)

    def forget(self, sentences_R: np.ndarray) -> np.ndarray | None:
        """Drop columns that no row will see again; returns those that stay, or None when too few would go."""
        kept = np.flatnonzero(self.useful_GG[sentences_R[:, None], self.sentences_RC].any(0))
        n_columns = self.sentences_RC.shape[1]
        if n_columns - len(kept) < max(MIN_FORGOTTEN, FORGET_SHARE * n_columns):
            return None
        self.sentences_RC = self.sentences_RC[:, kept]
        return kept

    def select_rows(self, rows: np.ndarray) -> None:
        """Follow a reordering of hypotheses, or keep only some."""
        self.sentences_RC = self.sentences_RC[rows]
