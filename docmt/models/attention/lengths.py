"""Lengths of a batch: how many tokens each sentence has, and how many sentences each instance.

Shape letters: G sentences of the batch, B instances.
"""

from functools import cached_property
from typing import Any

import numpy as np

from docmt.instances.storage import expand_ranges
from docmt.models.attention.batch_trees import BatchTrees
from docmt.models.attention.patterns import Side
from docmt.models.settings import ModelSettings


class PackedLengths:
    """Lengths of the packed sentences of a batch, from which the patterns derive groupings.

    (No dataclass: in mixed precision, Fabric would take one apart and convert its fields in every call of a model.)

    Attributes:
        src_lengths_G: int64, tokens of each source sentence (marks included), in packed order.
        tgt_lengths_G: int64, decoder inputs of each target sentence; in a free stream one length per instance.
        sentences_B: int64, source sentences of each instance.
        settings: of the model.
        trees: discourse trees, for RST attention; None leaves every instance open, so that it sees all.
        documents_B: int64, source sentences of each document for its context module; by default `sentences_B`.
    """

    def __init__(
        self,
        src_lengths_G: Any,
        tgt_lengths_G: Any,
        sentences_B: Any,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        documents_B: np.ndarray | None = None,
    ) -> None:
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        self.settings, self.trees = settings, trees
        self.documents_B = self.sentences_B if documents_B is None else documents_B

    @property
    def n_sentences(self) -> int:
        """G, source sentences of the batch."""
        return len(self.src_lengths_G)

    def draft_lengths(self) -> np.ndarray:
        """Tokens of the draft of each target sentence, for a model that drafts; int64 [G]."""
        return self.tgt_lengths_G

    @property
    def padded_sizes(self) -> tuple[int, int, int]:
        """Instances, source tokens of the longest (2 or more), and sentences of the one with the most."""
        longest = max(2, int(self.instance_lengths("src").max()))
        return len(self.sentences_B), longest, int(self.sentences_B.max())

    def sentence_lengths(self, side: Side) -> np.ndarray:
        """Items of each sentence of a side; int64 [G]."""
        if side == "src":
            return self.src_lengths_G
        if side == "before":
            return self.rows_before[1]
        return np.ones_like(self.src_lengths_G) if side == "vectors" else self.tgt_lengths_G

    def instance_lengths(self, side: Side) -> np.ndarray:
        """Items of each instance of a side; int64 [B]."""
        if side == "tgt" and self.settings.target_stream == "free":
            return self.tgt_lengths_G
        return np.add.reduceat(self.sentence_lengths(side), np.cumsum(self.sentences_B) - self.sentences_B)

    def first_sentences(self, n_before: int) -> np.ndarray:
        """The sentence `n_before` sentences before each one, never before its document; int64 [G]."""
        own_G = np.arange(len(self.src_lengths_G))
        return own_G - np.minimum(n_before, self.sentence_numbers())

    def sentence_numbers(self) -> np.ndarray:
        """The number of each source sentence in its document, from 0; int64 [G]."""
        assert self.documents_B is not None
        return expand_ranges(np.zeros_like(self.documents_B), self.documents_B)

    @cached_property
    def rows_before(self) -> tuple[np.ndarray, np.ndarray]:
        """The source rows of the side `before`, and the number of them that each sentence has; int64."""
        starts_G = self.src_lengths_G.cumsum() - self.src_lengths_G
        firsts_G = starts_G[self.first_sentences(self.settings.n_before)]
        # Attention needs keys, so a sentence with nothing before it has its own first token. Context modules discard
        # the output there.
        lengths_G = np.maximum(starts_G - firsts_G, 1)
        return expand_ranges(firsts_G, lengths_G), lengths_G
