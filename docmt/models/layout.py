"""The layout of a batch: where sentences and instances are in the packed tokens, and the groupings that follow.

Shape letters: N packed target tokens, S packed source tokens, G sentences of the batch, B instances, E EDUs.

A side is a row of packed items, sentence after sentence: source tokens, target tokens, one vector per sentence, or
`before`, the source tokens of the sentences before it that a context module reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges
from docmt.models.grouping import Grouping
from docmt.models.patterns import Pattern, find_part, part_names
from docmt.models.plans import Kernel
from docmt.models.settings import Context, ModelSettings, Positions
from docmt.models.tensors import map_leaves
from docmt.models.trees import BatchTrees

Side = Literal["src", "tgt", "vectors", "before"]
Slot = Literal["encoder", "decoder", "cross", "context", "before", "src_before", "tgt_before", "near", "drafted"]
Index = Literal["instance", "sentence", "in_batch", "number", "row", "is_word", "place"]
"""What is known of each item of a side: its position in its instance or sentence; the number of its sentence in the
batch, or (`number`) in the document; of the side `before`, its row of the source; 1 for words and 0 for marks; its row
in instances that are padded to the longest."""

SIDES: dict[Slot, tuple[Side, Side]] = {
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
    "context": ("src", "vectors"),
    "before": ("before", "before"),
    "src_before": ("src", "before"),
    "tgt_before": ("tgt", "before"),
    "near": ("tgt", "src"),
    "drafted": ("tgt", "tgt"),
}
"""Where the queries and the keys of an attention lie; all but the first three are those of context modules. Behind the
keys of `drafted` are those of the drafts."""

ARGUMENTS = "src_lengths_G", "tgt_lengths_G", "sentences_B", "settings", "trees", "context", "documents_B", "drafts"
"""Of a layout, by their names."""
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Drafts:
    """Translations of all sentences by the sentence model.

    Attributes:
        inputs_N, labels_N: int64, as those of a batch.
        layout: likewise, read without context.
    """

    inputs_N: Tensor
    labels_N: Tensor
    layout: "Layout"


class Layout:
    """Sentence lengths on both sides and sentences per instance; positions and groupings are derived on demand.

    Args:
        src_lengths_G: int64 array, tokens of each source sentence (marks included), in packed order.
        tgt_lengths_G: int64 array, decoder inputs of each target sentence; in a free stream one length per instance.
        sentences_B: int64 array, source sentences of each instance.
        settings: of the model; says what `window` means, how positions run and whether the target stream is free.
        trees: discourse trees, for RST attention; None leaves every instance open, so that it sees all.
        context: whether a model with a context module reads instances as documents or as single sentences.
        documents_B: int64 array, source sentences of each document for its context module; None for `sentences_B`.
        drafts: for a model that reads drafts; None lets it make them, as long as the target.
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
        documents_B: np.ndarray | None = None,
        drafts: Drafts | None = None,
    ) -> None:
        self.settings, self.trees, self.drafts = settings, trees, drafts
        self.context: Context = context
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        self.documents_B = self.sentences_B if documents_B is None else documents_B
        is_free = settings.target_stream == "free"
        self.tgt_sentences_B = np.ones_like(self.sentences_B) if is_free else self.sentences_B
        self._groupings: dict[tuple[Slot, str], Grouping] = {}
        self._indexes: dict[tuple[Side, Index], Tensor] = {}
        self._n_positions: dict[tuple[Side, Positions], int] = {}

    @classmethod
    def of_source(cls, src_lengths_G: np.ndarray, sentences_B: np.ndarray, **options: Any) -> Self:
        """The layout of instances whose target is still to be made: one token per target sentence."""
        is_free = options["settings"].target_stream == "free"
        n_targets = len(sentences_B) if is_free else len(src_lengths_G)
        return cls(src_lengths_G, np.ones(n_targets), sentences_B, **options)

    def _replace(self, **changes: Any) -> "Layout":
        """A copy with some arguments of `Layout` changed."""
        return Layout(**{name: getattr(self, name) for name in ARGUMENTS} | changes)

    def one_by_one(self) -> "Layout":
        """The layout of the same sentences, each an instance, without trees; context modules see their documents."""
        alone = self._replace(sentences_B=np.ones_like(self.src_lengths_G), trees=None)
        # The rows of context are the same, and on their device.
        alone._indexes = {key: made for key, made in self._indexes.items() if key[1] == "row"}
        return alone

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
        if side == "before":
            return self._before[1]
        return np.ones_like(self.src_lengths_G) if side == "vectors" else self.tgt_lengths_G

    def instance_lengths(self, side: Side) -> np.ndarray:
        """Items of each instance of a side; int64 [B]."""
        sentences = self.tgt_sentences_B if side == "tgt" else self.sentences_B
        return np.add.reduceat(self.sentence_lengths(side), np.cumsum(sentences) - sentences)

    def first_sentences(self, n_before: int) -> np.ndarray:
        """The sentence `n_before` sentences before each one, never before its document; int64 [G]."""
        own_G = np.arange(len(self.src_lengths_G))
        return own_G - np.minimum(n_before, self.sentence_numbers())

    def sentence_numbers(self) -> np.ndarray:
        """The number of each source sentence in its document, from 0; int64 [G]."""
        return expand_ranges(np.zeros_like(self.documents_B), self.documents_B)

    @cached_property
    def _before(self) -> tuple[np.ndarray, np.ndarray]:
        """The source rows of the side `before`, and how many of them each sentence has; int64.

        Attention needs keys, so a sentence with nothing before it has its own first token, which nobody may use.
        """
        starts_G = self.src_lengths_G.cumsum() - self.src_lengths_G
        firsts_G = starts_G[self.first_sentences(self.settings.n_before)]
        lengths_G = np.maximum(starts_G - firsts_G, 1)
        return expand_ranges(firsts_G, lengths_G), lengths_G

    def positions(self, side: Side, device: torch.device, *, within: Positions | None = None) -> Tensor:
        """int64 [S] or [N], the position of each token in its instance or sentence, from 0; None asks the settings."""
        return self.index(side, within or self.settings.positions, device)

    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        """int64, see `Index`, for each item of a side; made once for a device."""
        found = self._indexes.get((side, kind))
        if found is None or found.device != device:
            found = self._indexes[side, kind] = torch.from_numpy(self._make_index(side, kind)).to(device)
        return found

    def _make_index(self, side: Side, kind: Index) -> np.ndarray:
        lengths_G = self.sentence_lengths(side)
        if kind == "in_batch":
            return np.repeat(np.arange(len(lengths_G)), lengths_G)
        if kind == "number":
            return np.repeat(self.sentence_numbers(), lengths_G)
        if kind == "row":
            return self._before[0]
        if kind == "is_word":
            before, after = self.settings.src_marks
            positions = expand_ranges(np.zeros_like(lengths_G), lengths_G)
            is_word = (positions >= before) & (positions < np.repeat(lengths_G - after, lengths_G))
            return is_word.astype(np.int64)
        if kind == "place":
            lengths_B = self.instance_lengths(side)
            return expand_ranges(np.arange(len(lengths_B)) * self.padded_sizes[1], lengths_B)
        lengths = self._stretches(side, kind)
        return expand_ranges(np.zeros_like(lengths), lengths)

    @property
    def padded_sizes(self) -> tuple[int, int, int]:
        """Instances, source tokens of the longest (2 or more), and sentences of the one with the most."""
        longest = max(2, int(self.instance_lengths("src").max()))
        return len(self.sentences_B), longest, int(self.sentences_B.max())

    def n_positions(self, side: Side, *, within: Positions | None = None) -> int:
        """The highest position + 1."""
        key = side, within or self.settings.positions
        if key not in self._n_positions:
            self._n_positions[key] = int(self._stretches(side, within).max(initial=0))
        return self._n_positions[key]

    @property
    def n_sentences(self) -> int:
        """G, source sentences of the batch."""
        return len(self.src_lengths_G)

    def _stretches(self, side: Side, within: Positions | None) -> np.ndarray:
        """Tokens of each stretch that positions run through; int64."""
        is_long = (within or self.settings.positions) == "instance"
        return self.instance_lengths(side) if is_long else self.sentence_lengths(side)

    def prepare(self, kernel: Kernel) -> None:
        """Compute on the CPU every index tensor that the model of the settings reads with this attention kernel."""
        for side, kind in self.index_kinds():
            self.index(side, kind, CPU)
        self.most_positions()
        for slot, part in self.attention_parts():
            self.grouping(slot, part).plan(kernel, CPU)

    @property
    def reads_context(self) -> bool:
        """Whether the model has a context module, and it reads this batch."""
        return self.settings.context is not None and self.context == "document"

    def index_kinds(self) -> set[tuple[Side, Index]]:
        """The sides and kinds of what the model asks `index` for."""
        kinds: set[tuple[Side, Index]] = {(side, self.settings.positions) for side in ("src", "tgt")}
        if self.settings.form.learned_sentences is not None:
            kinds.add(("src", "number"))
        if self.settings.context is not None and self.reads_context:
            kinds |= {("src", self.settings.context.positions), *self.settings.context.module.indexes}
        return kinds

    def most_positions(self) -> int:
        """The highest position + 1, of all that the model asks for."""
        return max(
            self.n_positions(side, within=kind)
            for side, kind in self.index_kinds()
            if kind == "instance" or kind == "sentence"
        )

    def attention_parts(self) -> list[tuple[Slot, str]]:
        """Each attention that the model computes with each pattern that one of its layers has."""
        context = self.settings.context if self.reads_context else None
        return [*(context.module.attentions if context else ())] + [
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
        copy._indexes = map_leaves(self._indexes, function, kind=kind)
        copy.drafts = map_leaves(self.drafts, function, kind=kind)
        return copy

    def resolve(self, pattern: str) -> str:
        """The pattern that applies to this batch: without trees, patterns that need them see the whole instance."""
        return "global" if self.trees is None and self._find(pattern).needs_trees else pattern

    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        """The grouping of an attention. Fusions have none: ask for those of their parts."""
        key = slot, self.resolve(pattern)
        if key not in self._groupings:
            self._groupings[key] = self._find(key[1]).grouping(self, slot)
        return self._groupings[key]

    def _find(self, pattern: str) -> Pattern:
        """A pattern of the context module, or one that every attention can have."""
        own = self.settings.context.module.patterns if self.settings.context is not None else {}
        return own.get(pattern) or find_part(pattern)

    def sentence_groups(self, pattern: str, slot: Slot = "cross") -> np.ndarray:
        """The group of each target sentence in an attention to the source; int64 [G]."""
        lengths = self._of_sentences.grouping(slot, pattern).query_lengths_G
        return np.repeat(np.arange(len(lengths)), lengths)

    def visible_sentences(self, pattern: str) -> np.ndarray:
        """Bool [G, G], whether target sentence g sees target sentence h ≤ g in decoder self-attention."""
        return self._of_sentences.grouping("decoder", pattern).dense_mask(len(self.tgt_lengths_G)).numpy()

    def first_visible_sentences(self, pattern: str) -> np.ndarray:
        """The first sentence that each target sentence sees in decoder self-attention; int64 [G]."""
        grouping = self._of_sentences.grouping("decoder", pattern)
        first_keys = np.cumsum(grouping.key_lengths_G) - grouping.key_lengths_G
        return np.repeat(grouping.key_rows[first_keys], grouping.query_lengths_G)
