"""The layout of a batch: where sentences and instances lie in the packed tokens, and the groupings that follow.

Shape letters: N packed target tokens, S packed source tokens, G sentences of the batch, B instances, E EDUs.

A side is a row of packed items, sentence after sentence: source tokens, target tokens, or one vector per sentence.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from docmt.models.grouping import Grouping, expand_ranges
from docmt.models.settings import Context, ModelSettings, Pattern, Positions
from docmt.models.trees import BatchTrees, related_grouping, unit_groups

Side = Literal["src", "tgt", "vectors"]
Slot = Literal["encoder", "decoder", "cross", "vectors", "context"]

SIDES: dict[Slot, tuple[Side, Side]] = {
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
    "vectors": ("vectors", "src"),
    "context": ("src", "vectors"),
}
"""Where the queries and the keys of an attention lie; `vectors` and `context` are those of the context encoder."""


class Layout:
    """Sentence lengths on both sides and sentences per instance; positions and groupings are derived on demand.

    Args:
        src_lengths_G: int64 array, tokens of each source sentence (marks included), in packed order.
        tgt_lengths_G: int64 array, decoder inputs of each target sentence; in a free stream one length per instance.
        sentences_B: int64 array, source sentences of each instance.
        settings: of the model; says what `window` means, how positions run and whether the target stream is free.
        trees: discourse trees, for RST attention; None leaves every instance open, so that it sees all.
        context: whether a model with a context encoder reads instances as documents or as single sentences.
        device: where index tensors go.
    """

    def __init__(
        self,
        src_lengths_G: np.ndarray,
        tgt_lengths_G: np.ndarray,
        sentences_B: np.ndarray,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        context: Context = "document",
        device: torch.device | str = "cpu",
    ) -> None:
        self.settings, self.trees, self.context = settings, trees, context
        self.device = torch.device(device)
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        is_free = settings.target_stream == "free"
        self.tgt_sentences_B = np.ones_like(self.sentences_B) if is_free else self.sentences_B
        self._groupings: dict[tuple[Slot, Pattern], Grouping] = {}

    @classmethod
    def of_source(
        cls,
        src_lengths_G: np.ndarray,
        sentences_B: np.ndarray,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        context: Context = "document",
        device: torch.device | str = "cpu",
    ) -> "Layout":
        """The layout of instances whose target is still to be made."""
        n_targets = len(sentences_B) if settings.target_stream == "free" else len(src_lengths_G)
        return cls(
            src_lengths_G,
            np.ones(n_targets),
            sentences_B,
            settings=settings,
            trees=trees,
            context=context,
            device=device,
        )

    def one_by_one(self) -> "Layout":
        """The layout of the same sentences as an instance each, without trees."""
        ones = np.ones_like(self.src_lengths_G)
        return Layout(
            self.src_lengths_G,
            self.tgt_lengths_G,
            ones,
            settings=self.settings,
            context=self.context,
            device=self.device,
        )

    def opened(self, open_B: np.ndarray) -> "Layout":
        """The same layout with more instances open to RST attention; bool [B]."""
        trees = None if self.trees is None else self.trees.opened(open_B)
        return Layout(
            self.src_lengths_G,
            self.tgt_lengths_G,
            self.sentences_B,
            settings=self.settings,
            trees=trees,
            context=self.context,
            device=self.device,
        )

    def positions(self, side: Literal["src", "tgt"], *, within: Positions | None = None) -> Tensor:
        """int64 [S] or [N], the position of each token in its instance or sentence, from 0; None asks the settings."""
        lengths = self._items(side)[0]
        if (within or self.settings.positions) == "instance":
            lengths = self._instance_lengths(side)
        return torch.from_numpy(expand_ranges(np.zeros_like(lengths), lengths)).to(self.device)

    def _items(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """Items of each sentence and sentences of each instance."""
        if side == "src":
            return self.src_lengths_G, self.sentences_B
        if side == "vectors":
            return np.ones_like(self.src_lengths_G), self.sentences_B
        return self.tgt_lengths_G, self.tgt_sentences_B

    def _instance_lengths(self, side: Side) -> np.ndarray:
        lengths, sentences = self._items(side)
        return np.add.reduceat(lengths, np.cumsum(sentences) - sentences)

    def grouping(self, slot: Slot, pattern: Pattern) -> Grouping:
        """The grouping of an attention; fusions have none, they ask for those of their parts."""
        if (slot, pattern) not in self._groupings:
            self._groupings[slot, pattern] = self._make_grouping(slot, pattern)
        return self._groupings[slot, pattern]

    def sentence_groups(self, pattern: Pattern) -> np.ndarray:
        """The group of each target sentence in decoder self-attention and cross-attention; int64 [G]."""
        if pattern in ("group", "window"):
            return np.arange(len(self.src_lengths_G))
        if pattern == "rst" and self.trees is not None:
            return unit_groups(self.sentences_B, self.trees.open_B)
        return np.repeat(np.arange(len(self.sentences_B)), self.sentences_B)

    def _make_grouping(self, slot: Slot, pattern: Pattern) -> Grouping:
        if pattern == "rst":
            return self._rst_grouping(slot)
        query_side, key_side = SIDES[slot]
        is_causal = slot == "decoder"
        if pattern == "global":
            queries, keys = self._instance_lengths(query_side), self._instance_lengths(key_side)
            starts = np.cumsum(keys) - keys
        else:
            queries, keys = self._items(query_side)[0], self._items(key_side)[0]
            starts = np.cumsum(keys) - keys
            if pattern == "window":
                ends = starts + keys
                starts = starts[self._window_first_sentences()]
                keys = ends - starts
        return Grouping.of_ranges(queries, starts, keys, is_causal=is_causal, device=self.device)

    def _rst_grouping(self, slot: Slot) -> Grouping:
        trees = self.trees
        if trees is None:
            return self.grouping(slot, "global")
        if slot == "encoder":
            heads, units = trees.edu_heads_E, trees.edus_B(self.sentences_B)
            queries = keys = trees.edu_lengths_E
        else:
            heads, units = trees.sentence_heads_G, self.sentences_B
            queries = self.tgt_lengths_G
            keys = self.tgt_lengths_G if slot == "decoder" else self.src_lengths_G
        return related_grouping(
            heads,
            unit_groups(units, trees.open_B),
            query_lengths_U=queries,
            key_lengths_U=keys,
            is_causal=slot == "decoder",
            device=self.device,
        )

    def _window_first_sentences(self) -> np.ndarray:
        """For each sentence the first one of its window, never before its instance."""
        first_B = np.cumsum(self.sentences_B) - self.sentences_B
        first_G = np.repeat(first_B, self.sentences_B)
        return np.maximum(np.arange(len(first_G)) - self.settings.window_sentences, first_G)
