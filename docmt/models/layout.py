"""The layout of a batch: where sentences and instances are in the packed tokens, and the groupings that follow.

Shape letters: N packed target tokens, S packed source tokens, G sentences of the batch, B instances, E EDUs.

A side is a row of packed items, sentence after sentence: source tokens, target tokens, or one vector per sentence.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges
from docmt.models.grouping import Grouping
from docmt.models.patterns import find_part, part_names
from docmt.models.plans import Kernel
from docmt.models.settings import Context, ModelSettings, Positions
from docmt.models.tensors import map_leaves
from docmt.models.trees import BatchTrees

Side = Literal["src", "tgt", "vectors"]
Slot = Literal["encoder", "decoder", "cross", "context"]

Counted = Positions | Literal["sentences"]
"""What the number of a token counts: tokens of its instance or sentence, or the sentences of its instance."""
SENTENCES: Counted = "sentences"

SIDES: dict[Slot, tuple[Side, Side]] = {
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
    "context": ("src", "vectors"),
}
"""Where the queries and the keys of an attention lie; `context` is that of the context encoder."""

CPU = torch.device("cpu")


class Layout:
    """Sentence lengths on both sides and sentences per instance; positions and groupings are derived on demand.

    Args:
        src_lengths_G: int64 array, tokens of each source sentence (marks included), in packed order.
        tgt_lengths_G: int64 array, decoder inputs of each target sentence; in a free stream one length per instance.
        sentences_B: int64 array, source sentences of each instance.
        settings: of the model; says what `window` means, how positions run and whether the target stream is free.
        trees: discourse trees, for RST attention; None leaves every instance open, so that it sees all.
        context: whether a model with a context encoder reads instances as documents or as single sentences.
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
    ) -> None:
        self.settings, self.trees = settings, trees
        self.context: Context = context
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        is_free = settings.target_stream == "free"
        self.tgt_sentences_B = np.ones_like(self.sentences_B) if is_free else self.sentences_B
        self._groupings: dict[tuple[Slot, str], Grouping] = {}
        self._positions: dict[tuple[Side, Counted], Tensor] = {}
        self._n_positions: dict[tuple[Side, Counted], int] = {}
        self._sentences: Tensor | None = None

    @classmethod
    def of_source(cls, src_lengths_G: np.ndarray, sentences_B: np.ndarray, **options: Any) -> Self:
        """The layout of instances whose target is still to be made: one token per target sentence."""
        is_free = options["settings"].target_stream == "free"
        n_targets = len(sentences_B) if is_free else len(src_lengths_G)
        return cls(src_lengths_G, np.ones(n_targets), sentences_B, **options)

    def _replace(self, **changes: Any) -> "Layout":
        """A copy with some arguments of `Layout` changed."""
        names = ("src_lengths_G", "tgt_lengths_G", "sentences_B", "settings", "trees", "context")
        return Layout(**{name: getattr(self, name) for name in names} | changes)

    def one_by_one(self) -> "Layout":
        """The layout of the same sentences, each an instance, without trees."""
        return self._replace(sentences_B=np.ones_like(self.src_lengths_G), trees=None)

    def opened(self, open_B: np.ndarray) -> "Layout":
        """The same layout with more instances open to RST attention; bool [B]."""
        return self._replace(trees=None if self.trees is None else self.trees.opened(open_B))

    @cached_property
    def _of_sentences(self) -> "Layout":
        """The same sentences with one target token each, so that rows of target groupings are sentences."""
        return self._replace(tgt_lengths_G=np.ones_like(self.tgt_lengths_G))

    def sentence_lengths(self, side: Side) -> np.ndarray:
        """Items of each sentence of a side; int64 [G]."""
        if side == "src":
            return self.src_lengths_G
        return np.ones_like(self.src_lengths_G) if side == "vectors" else self.tgt_lengths_G

    def instance_lengths(self, side: Side) -> np.ndarray:
        """Items of each instance of a side; int64 [B]."""
        sentences = self.tgt_sentences_B if side == "tgt" else self.sentences_B
        return np.add.reduceat(self.sentence_lengths(side), np.cumsum(sentences) - sentences)

    def first_sentences(self, n_before: int) -> np.ndarray:
        """The sentence `n_before` sentences before each one, never before its instance; int64 [G]."""
        first_B = np.cumsum(self.sentences_B) - self.sentences_B
        first_G = np.repeat(first_B, self.sentences_B)
        return np.maximum(np.arange(len(first_G)) - n_before, first_G)

    def positions(self, side: Side, device: torch.device, *, within: Counted | None = None) -> Tensor:
        """int64 [S] or [N], the number of each token in its instance or sentence, or of its sentence, from 0.

        `within` None asks the settings.
        """
        key = side, within or self.settings.positions
        found = self._positions.get(key)
        if found is None or found.device != device:
            found = self._positions[key] = torch.from_numpy(self._count(side, within)).to(device)
        return found

    def _count(self, side: Side, within: Counted | None) -> np.ndarray:
        """Each token's number; int64."""
        if within == SENTENCES:
            sentences_G = np.arange(len(self.src_lengths_G))
            return np.repeat(sentences_G - self.first_sentences(len(sentences_G)), self.sentence_lengths(side))
        lengths = self._stretches(side, within)
        return expand_ranges(np.zeros_like(lengths), lengths)

    def n_positions(self, side: Side, *, within: Counted | None = None) -> int:
        """The highest position + 1."""
        key = side, within or self.settings.positions
        if key not in self._n_positions:
            self._n_positions[key] = int(self._stretches(side, within).max(initial=0))
        return self._n_positions[key]

    def sentences(self, device: torch.device) -> Tensor:
        """int64 [S], the sentence of each source token, from 0 in the batch."""
        found = self._sentences
        if found is None or found.device != device:
            made = torch.from_numpy(np.repeat(np.arange(self.n_sentences), self.src_lengths_G))
            found = self._sentences = made.to(device)
        return found

    @property
    def n_sentences(self) -> int:
        """G, source sentences of the batch."""
        return len(self.src_lengths_G)

    def _stretches(self, side: Side, within: Counted | None) -> np.ndarray:
        """Tokens of each stretch that positions run through; int64."""
        is_long = (within or self.settings.positions) == "instance"
        return self.instance_lengths(side) if is_long else self.sentence_lengths(side)

    def prepare(self, kernel: Kernel) -> None:
        """Compute on the CPU every index tensor that the model of the settings reads with this attention kernel."""
        for side, within in self.position_kinds():
            self.positions(side, CPU, within=within)
            self.n_positions(side, within=within)
        if self.reads_context:
            self.sentences(CPU)
        for slot, part in self.attention_parts():
            self.grouping(slot, part).plan(kernel, CPU)

    @property
    def reads_context(self) -> bool:
        """Whether the model has a context encoder, and it reads this batch."""
        return self.settings.context is not None and self.context == "document"

    def position_kinds(self) -> set[tuple[Side, Counted]]:
        """The sides whose positions the model reads, and what they count."""
        kinds: set[tuple[Side, Counted]] = {(side, self.settings.positions) for side in ("src", "tgt")}
        if self.settings.form.learned_sentences is not None:
            kinds.add(("src", SENTENCES))
        if self.settings.context is not None and self.reads_context:
            kinds.add(("src", self.settings.context.positions))
        return kinds

    def attention_parts(self) -> list[tuple[Slot, str]]:
        """Each attention that the model computes with each pattern that one of its layers has."""
        context: list[tuple[Slot, str]] = [("context", "global")] if self.reads_context else []
        return context + [
            (slot, part)
            for slot, attention in self.settings.attentions.items()
            for pattern in attention.patterns()
            for part in part_names(pattern)
        ]

    def map_tensors(self, function: Callable[[Any], Any], *, kind: type = Tensor) -> "Layout":
        """A copy with `function` applied to each index tensor that has been made, as `map_leaves` does."""
        copy = self._replace()
        copy._groupings = map_leaves(self._groupings, function, kind=kind)
        copy._n_positions = self._n_positions
        copy._positions = map_leaves(self._positions, function, kind=kind)
        copy._sentences = map_leaves(self._sentences, function, kind=kind)
        return copy

    def resolve(self, pattern: str) -> str:
        """The pattern that applies to this batch: without trees, patterns that need them see the whole instance."""
        return "global" if self.trees is None and find_part(pattern).needs_trees else pattern

    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        """The grouping of an attention. Fusions have none: ask for those of their parts."""
        key = slot, self.resolve(pattern)
        if key not in self._groupings:
            self._groupings[key] = find_part(key[1]).grouping(self, slot)
        return self._groupings[key]

    def sentence_groups(self, pattern: str) -> np.ndarray:
        """The group of each target sentence in cross-attention; int64 [G]."""
        lengths = self._of_sentences.grouping("cross", pattern).query_lengths_G
        return np.repeat(np.arange(len(lengths)), lengths)

    def visible_sentences(self, pattern: str) -> np.ndarray:
        """Bool [G, G], whether target sentence g sees target sentence h ≤ g in decoder self-attention."""
        return self._of_sentences.grouping("decoder", pattern).dense_mask(len(self.tgt_lengths_G)).numpy()

    def first_visible_sentences(self, pattern: str) -> np.ndarray:
        """The first sentence that each target sentence sees in decoder self-attention; int64 [G]."""
        grouping = self._of_sentences.grouping("decoder", pattern)
        first_keys = np.cumsum(grouping.key_lengths_G) - grouping.key_lengths_G
        return np.repeat(grouping.key_rows[first_keys], grouping.query_lengths_G)
