"""Batches of few shapes, so that a GPU can repeat the recorded update of an earlier batch.

One more instance fills a batch up. Its labels are masked and no other instance attends to it, so loss and gradients
stay the same. The index tensors of attention are filled up, too. On the device, the tensors of a batch are views into
one buffer.

Shape letters: S packed source tokens, N packed target tokens, G sentences or groups, B instances.
"""

import pickle
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from docmt.discourse.dependencies import NO_HEAD
from docmt.models.attention.layout import AttentionLayout, BatchTrees, DeviceLayout
from docmt.models.attention.patterns import SIDES
from docmt.models.attention.varlen import MAX_LENGTH, VarlenIndexes, has_short_groups
from docmt.models.batch import NO_LABEL, Batch, DeviceBatch
from docmt.models.buffers import to_buffer, view_slices
from docmt.models.settings import ModelSettings
from docmt.models.systems.transformer import sinusoids
from docmt.text.vocabulary import EOS

TOKENS, SENTENCES, GROUPS, KEYS = 512, 64, 64, 1024
"""Source tokens, decoder inputs, sentences that a context module reads, groups, and gathered keys are multiples."""
LENGTHS = 640
"""Maximum lengths of long groups, and numbers of positions, are multiples. Filling instances are not longer."""
ROWS = 64
"""Maximum rows of a sentence or group that only fills."""
N_NUMBERS = 4
"""Numbers of the CPU for an update: the weight and the divisor of losses, and up to two learning rates."""


@dataclass
class FilledBatch:
    """The numbers for an update and a filled batch in one buffer, uint8 [bytes], as a loader sends it to the training.

    `key` contains both, pickled with `BufferSlice` in place of tensors. It contains all sizes and flags that a recorded
    update reads from the CPU, so equal keys mean that the same recorded update computes both batches.
    """

    key: bytes
    buffer: Tensor

    @classmethod
    def of(cls, batch: Batch) -> "FilledBatch":
        """Return the filled batch. Raises UserError if an instance is longer than the learned positions."""
        batch.layout.settings.form.check_positions(batch.layout.max_positions())  # filler may be longer
        filled = fill_up(batch)
        device_batch = DeviceBatch.of(filled, fill_layout(DeviceLayout.of(filled.layout, "varlen")))
        slices, buffer = to_buffer((torch.empty(N_NUMBERS), device_batch))
        return cls(pickle.dumps(slices), buffer)

    def __reduce__(self) -> tuple[Any, ...]:
        # By value: to receive shared memory takes longer than to copy so few bytes.
        return _receive, (self.key, self.buffer.numpy())

    def pin_memory(self) -> "FilledBatch":
        return replace(self, buffer=self.buffer.pin_memory())

    def write_numbers(self, numbers: list[float]) -> None:
        """Write the numbers of the CPU into the buffer, where they come first."""
        struct.pack_into(f"{len(numbers)}f", self.buffer.numpy(), 0, *numbers)  # pyright: ignore[reportArgumentType]

    def views(self, buffer: Tensor, settings: ModelSettings) -> tuple[Tensor, DeviceBatch]:
        """Return the numbers, float32 [N_NUMBERS], and the batch, with views into a copy of the buffer on a device."""
        numbers, batch = view_slices(pickle.loads(self.key), buffer)
        batch.layout = with_table(batch.layout, settings, buffer.device)
        return numbers, batch


def _receive(key: bytes, buffer: np.ndarray) -> FilledBatch:
    return FilledBatch(key, torch.from_numpy(buffer))


def fill_up(batch: Batch) -> Batch:
    """Return the batch with one more instance, so that numbers of tokens (and sentences with context) are multiples."""
    layout = batch.layout
    settings, n_sentences = layout.settings, layout.n_sentences
    least_src, least_tgt = sum(settings.n_src_boundaries), settings.n_starts
    count = 1
    if layout.reads_context:
        count = round_up(n_sentences + 1, SENTENCES) - n_sentences
    n_src = round_up(len(batch.src_tokens_S) + count * least_src, TOKENS) - len(batch.src_tokens_S)
    n_tgt = round_up(len(batch.tgt_inputs_N) + count * least_tgt, TOKENS) - len(batch.tgt_inputs_N)
    if not layout.reads_context:
        count = min(-(-max(n_src, n_tgt) // ROWS), n_src // least_src, n_tgt // least_tgt)
    src_lengths_G = _spread(n_src, count)
    tgt_lengths_G = _spread(n_tgt, 1 if settings.target_stream == "free" else count)
    trees = None
    if layout.trees is not None:
        # Not an open instance, whose sentences would form one long group.
        heads_G, counts_G = np.full(count, NO_HEAD), np.ones(count, dtype=np.int64)
        filler = BatchTrees.of_instance(
            edu_lengths=src_lengths_G, edu_heads=heads_G, edu_counts=counts_G, sentence_heads=heads_G
        )
        trees = BatchTrees.join([layout.trees, filler])
    return Batch(
        _append(batch.src_tokens_S, n_src, EOS),
        _append(batch.tgt_inputs_N, n_tgt, EOS),
        _append(batch.tgt_labels_N, n_tgt, NO_LABEL),
        _append(batch.is_word_or_end_N, n_tgt, False),
        AttentionLayout(
            np.append(layout.src_lengths_G, src_lengths_G),
            np.append(layout.tgt_lengths_G, tgt_lengths_G),
            np.append(layout.sentences_B, count),
            settings=settings,
            trees=trees,
            context=layout.context,
        ),
        has_masks=True,
    )


def with_table(layout: DeviceLayout, settings: ModelSettings, device: torch.device) -> DeviceLayout:
    """Return the layout with a table of positions for compiled code."""
    n_positions = layout.n_positions + settings.form.position_offset
    return replace(layout, table_TD=sinusoids(n_positions, settings.width, device=device))


def fill_layout(layout: DeviceLayout) -> DeviceLayout:
    """Return the layout of a filled batch with all other sizes rounded up. Maximum lengths become upper bounds."""
    indexes, n_more = dict(layout.indexes), 0
    if ("before", "row") in indexes:
        n_rows = len(indexes["before", "row"])
        n_more = round_up(n_rows, KEYS) - n_rows
        for kind in ("row", "sentence"):
            rows = indexes["before", kind]
            indexes["before", kind] = _append(rows, n_more, int(rows[-1]))
    sizes = (2, 2, 2)  # not read without `padded_row`
    if ("src", "padded_row") in indexes:
        n_instances, longest, most_sentences = layout.padded_sizes
        sizes = round_up(n_instances, 8), round_up(longest, 128), round_up(most_sentences, 32)
        rows = indexes["src", "padded_row"]
        indexes["src", "padded_row"] = rows // longest * sizes[1] + rows % longest
    groupings = {}
    for (slot, pattern), varlen_indexes in layout.groupings.items():
        assert isinstance(varlen_indexes, VarlenIndexes)
        more = (n_more if side == "before" else 0 for side in SIDES[slot])
        groupings[slot, pattern] = fill_indexes(varlen_indexes, *more)
    return replace(
        layout,
        groupings=groupings,
        indexes=indexes,
        n_sentences=layout.n_sentences if layout.reads_context else 2,
        padded_sizes=sizes,
        n_positions=round_up(layout.n_positions, LENGTHS),
    )


def fill_indexes(indexes: VarlenIndexes, more_queries: int, more_keys: int) -> VarlenIndexes:
    """Return indexes with more queries and keys, in more groups, so that sizes are multiples.

    Gathered keys are filled up with copies of the last key. Many of these groups have no queries, and some have no
    rows at all.
    """
    rows, distances = indexes.key_rows_M, indexes.distances_P
    if rows is not None:
        more_keys = round_up(len(rows), KEYS) - len(rows)
        rows = _append(rows, more_keys, int(rows[-1]))
        distances = None if distances is None else _append(distances, more_keys, int(distances[-1]))
    n_groups = len(indexes.query_offsets) - 1
    n_rows = int(max(indexes.query_offsets[-1], indexes.key_offsets[-1]))
    longest = max(indexes.max_queries, indexes.max_keys)
    # The bound also keeps the choice of kernels as it would be without more groups, which lower the mean length.
    bound = MAX_LENGTH if has_short_groups(n_rows, n_groups, longest) else round_up(longest, LENGTHS)
    n_more = round_up(n_groups + -(-max(more_queries, more_keys) // ROWS), GROUPS) - n_groups
    query_offsets, key_offsets = (
        torch.cat((offsets, offsets[-1] + torch.from_numpy(_spread(n, n_more)).cumsum(0).int()))
        for offsets, n in ((indexes.query_offsets, more_queries), (indexes.key_offsets, more_keys))
    )
    return replace(
        indexes,
        query_offsets=query_offsets,
        key_offsets=key_offsets,
        key_rows_M=rows,
        max_queries=bound,
        max_keys=bound,
        distances_P=distances,
    )


def round_up(number: int, step: int) -> int:
    """Return the lowest multiple of the step that is at least the number."""
    return -(-number // step) * step


def _spread(total: int, parts: int) -> np.ndarray:
    """Return nearly equal lengths with a sum, int64 [parts]."""
    return np.diff(np.arange(parts + 1) * total // max(parts, 1))


def _append(rows: Tensor, n: int, value: int) -> Tensor:
    """Return the rows, followed by n rows with a value."""
    return torch.cat((rows, rows.new_full((n,), value)))
