"""The layout of a batch: where sentences and instances are in the packed tokens, and all groupings and indexes.

Shape letters: N packed target tokens, S packed source tokens, G sentences of the batch, B instances.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from docmt.instances.storage import expand_ranges
from docmt.models.attention.grouping import Grouping, Kernel
from docmt.models.attention.patterns import Index, Side, Slot, find_part, part_names
from docmt.models.attention.visibility import GROUPINGS, PackedLengths, positions_within
from docmt.models.buffers import map_leaves
from docmt.models.settings import Context, Positions

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Drafts:
    """Translations of all sentences by the sentence model: int64 inputs and labels, and a layout without context."""

    inputs_N: Tensor
    labels_N: Tensor
    layout: "AttentionLayout"


class AttentionLayout(PackedLengths):
    """Lengths of a batch, with its groupings and indexes, derived on demand.

    Attributes:
        context: whether a model with a context module reads instances as documents or as single sentences.
        drafts: for a model that reads drafts; None lets it make them, as long as the target.
        groupings, indexes: the ones made so far, or set beforehand.
    """

    def __init__(
        self, *lengths: Any, context: Context = "document", drafts: Drafts | None = None, **options: Any
    ) -> None:
        super().__init__(*lengths, **options)
        self.context: Context = context
        self.drafts = drafts
        self.groupings: dict[tuple[Slot, str], Grouping] = {}
        self.indexes: dict[tuple[Side, Index], Tensor] = {}

    @classmethod
    def of_source(cls, src_lengths_G: np.ndarray, sentences_B: np.ndarray, **options: Any) -> Self:
        """The layout of instances whose target is still to be made: one token per target sentence."""
        is_free = options["settings"].target_stream == "free"
        n_targets = len(sentences_B) if is_free else len(src_lengths_G)
        return cls(src_lengths_G, np.ones(n_targets), sentences_B, **options)

    def _replace(self, **changes: Any) -> "AttentionLayout":
        """A copy with some constructor arguments changed."""
        names = (
            "src_lengths_G",
            "tgt_lengths_G",
            "sentences_B",
            "settings",
            "trees",
            "documents_B",
            "context",
            "drafts",
        )
        return AttentionLayout(**{name: getattr(self, name) for name in names} | changes)

    def one_by_one(self) -> "AttentionLayout":
        """The same sentences, each an instance, without trees; context modules see their documents."""
        alone = self._replace(sentences_B=np.ones_like(self.src_lengths_G), trees=None)
        # The rows of context are the same, and on their device.
        alone.indexes = {key: made for key, made in self.indexes.items() if key[1] == "row"}
        return alone

    def opened(self, open_B: np.ndarray) -> "AttentionLayout":
        """The same layout with more instances open to RST attention; bool [B]."""
        return self._replace(trees=None if self.trees is None else self.trees.opened(open_B))

    def map_tensors(self, function: Callable[[Any], Any], *, kind: type = Tensor) -> "AttentionLayout":
        """A copy with `function` applied to each index tensor that has been made, as `map_leaves` does."""
        copy = self._replace()
        copy.groupings = map_leaves(self.groupings, function, kind=kind)
        copy.indexes = map_leaves(self.indexes, function, kind=kind)
        copy.drafts = map_leaves(self.drafts, function, kind=kind)
        return copy

    @override
    def draft_lengths(self) -> np.ndarray:
        return self.tgt_lengths_G if self.drafts is None else self.drafts.layout.tgt_lengths_G

    @property
    def reads_context(self) -> bool:
        """Whether the model has a context module, and it reads this batch."""
        return self.settings.context is not None and self.context == "document"

    def resolve(self, pattern: str) -> str:
        """The pattern that applies to this batch: without trees, patterns that need them see the whole instance."""
        return "global" if self.trees is None and find_part(pattern).needs_trees else pattern

    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        """The grouping of an attention with one pattern. A fusion has one grouping for each of its parts."""
        key = slot, self.resolve(pattern)
        if key not in self.groupings:
            self.groupings[key] = GROUPINGS[key[1]](self, slot)
        return self.groupings[key]

    @cached_property
    def _of_sentences(self) -> "AttentionLayout":
        """The same sentences with one target token each, so that rows of target groupings are sentences."""
        return self._replace(tgt_lengths_G=np.ones_like(self.tgt_lengths_G))

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

    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        """int64, see `Index`, for each item of a side; made once for a device."""
        found = self.indexes.get((side, kind))
        if found is None or found.device != device:
            found = self.indexes[side, kind] = torch.from_numpy(self._make_index(side, kind)).to(device)
        return found

    def _make_index(self, side: Side, kind: Index) -> np.ndarray:
        lengths_G = self.sentence_lengths(side)
        if kind == "in_batch":
            return np.repeat(np.arange(len(lengths_G)), lengths_G)
        if kind == "number":
            return np.repeat(self.sentence_numbers(), lengths_G)
        if kind == "row":
            return self.rows_before[0]
        if kind == "is_word":
            before, after = self.settings.src_marks
            positions = positions_within(lengths_G)
            is_word = (positions >= before) & (positions < np.repeat(lengths_G - after, lengths_G))
            return is_word.astype(np.int64)
        if kind == "place":
            lengths_B = self.instance_lengths(side)
            # Row of each token in a padded [instances × longest] table.
            return expand_ranges(np.arange(len(lengths_B)) * self.padded_sizes[1], lengths_B)
        return positions_within(self.instance_lengths(side) if kind == "instance" else lengths_G)

    def positions(self, side: Side, device: torch.device, *, within: Positions | None = None) -> Tensor:
        """int64 [S] or [N], the position of each token in its instance or sentence, from 0; None asks the settings."""
        return self.index(side, within or self.settings.positions, device)

    def n_positions(self, side: Side, *, within: Positions | None = None) -> int:
        """The highest position + 1."""
        is_instance = (within or self.settings.positions) == "instance"
        lengths = self.instance_lengths(side) if is_instance else self.sentence_lengths(side)
        return int(lengths.max(initial=0))

    def most_positions(self) -> int:
        """The highest position + 1, of all positions that the model needs."""
        kinds = self.index_kinds()
        return max(self.n_positions(side, within=kind) for side, kind in kinds if kind in ("instance", "sentence"))

    def index_kinds(self) -> set[tuple[Side, Index]]:
        """Side and kind of each index that the model needs."""
        kinds: set[tuple[Side, Index]] = {(side, self.settings.positions) for side in ("src", "tgt")}
        if self.settings.form.learned_sentences is not None:
            kinds.add(("src", "number"))
        if (context := self.settings.context) is not None and self.reads_context:
            kinds |= {("src", context.positions), *context.traits.indexes}
        return kinds

    def attention_parts(self) -> list[tuple[Slot, str]]:
        """Each attention that the model computes with each pattern that one of its layers has."""
        context = self.settings.context if self.reads_context else None
        return [*(context.traits.attentions if context else ())] + [
            (slot, part)
            for slot, attention in self.settings.attentions.items()
            for pattern in attention.patterns()
            for part in part_names(pattern)
        ]

    def prepare(self, kernel: Kernel) -> None:
        """Compute on the CPU every index tensor that the model needs with this attention kernel."""
        for side, kind in self.index_kinds():
            self.index(side, kind, CPU)
        for slot, part in self.attention_parts():
            self.grouping(slot, part).inputs_for(kernel, CPU)
