"""Discourse trees of a batch, which RST attention follows: `see_related` in visibility.py.

Shape letters: B instances, G sentences of the batch, E EDUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from docmt.discourse.dependencies import NO_HEAD, number_through


@dataclass(frozen=True)
class BatchTrees:
    """The trees of the instances of a batch.

    Attributes:
        edu_lengths_E: int64, source tokens of each EDU; marks belong to the first and the last EDU of their sentence.
        edu_heads_E: int64, the row of each EDU's head in the batch, in the same instance; −1 for none.
        edu_counts_G: int64, EDUs of each sentence, at least 1.
        sentence_heads_G: as `edu_heads_E`, for the tree of sentences.
        open_B: bool, instances whose units see everything (dropped trees, decoding without a tree).
    """

    edu_lengths_E: np.ndarray
    edu_heads_E: np.ndarray
    edu_counts_G: np.ndarray
    sentence_heads_G: np.ndarray
    open_B: np.ndarray

    @classmethod
    def of_instance(
        cls, *, edu_lengths: np.ndarray, edu_heads: np.ndarray, edu_counts: np.ndarray, sentence_heads: np.ndarray
    ) -> "BatchTrees":
        """A batch of one closed instance; heads are rows in the instance."""
        arrays = (np.asarray(part, dtype=np.int64) for part in (edu_lengths, edu_heads, edu_counts, sentence_heads))
        return cls(*arrays, open_B=np.zeros(1, dtype=bool))

    @classmethod
    def of_open_instance(cls, src_lengths: np.ndarray) -> "BatchTrees":
        """A batch of one instance without trees, whose sentences have `src_lengths` source tokens."""
        lengths = np.asarray(src_lengths, dtype=np.int64)
        heads = np.full(len(lengths), NO_HEAD)
        return cls(lengths, heads, np.ones(len(lengths), dtype=np.int64), heads, np.ones(1, dtype=bool))

    @classmethod
    def join(cls, batches: Sequence["BatchTrees"]) -> "BatchTrees":
        """One batch of all instances of several."""
        return cls(
            np.concatenate([trees.edu_lengths_E for trees in batches]),
            number_through([trees.edu_heads_E for trees in batches]),
            np.concatenate([trees.edu_counts_G for trees in batches]),
            number_through([trees.sentence_heads_G for trees in batches]),
            np.concatenate([trees.open_B for trees in batches]),
        )

    @classmethod
    def join_known(
        cls, batches: Sequence["BatchTrees | None"], src_lengths: Sequence[np.ndarray]
    ) -> "BatchTrees | None":
        """`join`, with open instances (sentences of `src_lengths` tokens) where trees are missing; None if all are."""
        if all(trees is None for trees in batches):
            return None
        pairs = zip(batches, src_lengths, strict=True)
        return cls.join([cls.of_open_instance(lengths) if trees is None else trees for trees, lengths in pairs])

    def opened(self, open_B: np.ndarray) -> "BatchTrees":
        return replace(self, open_B=self.open_B | open_B)

    def marked(self, marks: tuple[int, int]) -> "BatchTrees":
        """The same trees, where `marks` are the numbers of marks before and after each sentence, instead of (1, 1)."""
        if marks == (1, 1):
            return self
        lengths_E, ends_G = self.edu_lengths_E.copy(), np.cumsum(self.edu_counts_G)
        # The stored lengths contain one mark on each side, which belongs to the first and the last EDU.
        lengths_E[ends_G - self.edu_counts_G] += marks[0] - 1
        lengths_E[ends_G - 1] += marks[1] - 1
        return replace(self, edu_lengths_E=lengths_E)

    def n_edus(self, sentences_B: np.ndarray) -> np.ndarray:
        """EDUs of each instance; int64."""
        # Every instance has a sentence: for an empty range, `reduceat` would give the next entry instead of 0.
        return np.add.reduceat(self.edu_counts_G, np.cumsum(sentences_B) - sentences_B)
