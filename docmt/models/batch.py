"""A batch of instances as packed tensors.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch import Tensor

from docmt.discourse.dependencies import cut_heads
from docmt.instances.packing import BoundaryTokens, PackedSentences, gather
from docmt.instances.storage import InstanceSet
from docmt.models.attention.kernels import Kernel
from docmt.models.attention.layout import AttentionLayout, BatchTrees, DeviceLayout, Drafts
from docmt.models.buffers import BufferSlice, map_leaves, to_buffer, view_slices
from docmt.models.settings import Context, ModelSettings
from docmt.text.vocabulary import EOD

NO_LABEL = -1
"""The label of inputs without loss."""


@dataclass(frozen=True)
class Batch:
    """Inputs and labels for a model, on the CPU.

    Attributes:
        src_tokens_S: int64, sentences as `<s> w1 … wn </s>`. A model may have other boundary tokens.
        tgt_inputs_N: int64. Aligned stream: sentences as `<s> w1 … wn`. Free stream: instances as `<s> … </s> …`.
        tgt_labels_N: int64, the token to predict at every input: the next token, or `<eod>` after a free stream.
            NO_LABEL for inputs in masked sentences.
        is_word_or_end_N: bool, true for labels that are words or `</s>`, false for tokens that begin a sentence and for
            `<eod>`. All target streams have the true labels, so losses over them can be compared.
        has_masks: true if there are masked sentences.
    """

    src_tokens_S: Tensor
    tgt_inputs_N: Tensor
    tgt_labels_N: Tensor
    is_word_or_end_N: Tensor
    layout: AttentionLayout
    has_masks: bool = False

    def prepare(self, kernel: Kernel) -> "DeviceBatch":
        """Return what a model reads of the batch with an attention kernel.

        Raises UserError if an instance is longer than the learned positions.
        """
        layout = DeviceLayout.of(self.layout, kernel)
        self.layout.settings.form.check_positions(layout.n_positions)
        return DeviceBatch.of(self, layout)


class DeviceBatch:
    """The tensors of a batch on one device, for a model and its loss.

    It has the attributes of `Batch` and a `buffer`. After `pin_memory`, all tensors are in the buffer. The class is no
    dataclass, because Fabric copies every dataclass field by field when it calls a model.
    """

    def __init__(
        self,
        src_tokens_S: Tensor,
        tgt_inputs_N: Tensor,
        tgt_labels_N: Tensor,
        is_word_or_end_N: Tensor,
        layout: DeviceLayout,
        has_masks: bool,
        buffer: Tensor | None = None,
    ) -> None:
        self.src_tokens_S, self.tgt_inputs_N = src_tokens_S, tgt_inputs_N
        self.tgt_labels_N, self.is_word_or_end_N = tgt_labels_N, is_word_or_end_N
        self.layout, self.has_masks, self.buffer = layout, has_masks, buffer

    @classmethod
    def of(cls, batch: Batch, layout: DeviceLayout) -> "DeviceBatch":
        """Return the tensors of a batch on the CPU, with a layout made from the batch's layout."""
        labels = batch.tgt_labels_N, batch.is_word_or_end_N
        return cls(batch.src_tokens_S, batch.tgt_inputs_N, *labels, layout, batch.has_masks)

    def map_tensors(self, function: Callable[[Any], Any], *, kind: type = Tensor) -> "DeviceBatch":
        """Return a copy with `function` applied to all tensors, as `map_leaves` does, and without a buffer."""
        parts = vars(self) | {"buffer": None}
        return DeviceBatch(**map_leaves(parts, function, kind=kind))

    def pin_memory(self) -> "DeviceBatch":
        """Return the batch with all tensors in one buffer of pinned memory. DataLoader calls this method by name."""
        if self.buffer is not None and self.buffer.is_pinned():
            return self
        placed, buffer = self._placed()
        return placed._filled(buffer.pin_memory())

    def to(self, device: torch.device | str) -> "DeviceBatch":
        """Return the batch on a device, moved in a single copy. From pinned memory, the copy does not block the CPU."""
        if torch.device(device) == self.src_tokens_S.device:
            return self
        placed, buffer = self._placed()
        moved = placed._filled(buffer.to(device, non_blocking=True))
        moved.buffer = None
        return moved

    def _placed(self) -> "tuple[DeviceBatch, Tensor]":
        """Return the batch with `BufferSlice` in place of tensors, and the buffer that contains them."""
        if self.buffer is None:
            return to_buffer(self)
        return map_leaves(self, BufferSlice.of), self.buffer

    def _filled(self, buffer: Tensor) -> "DeviceBatch":
        """Return the batch with views into a buffer in place of every `BufferSlice`."""
        batch = view_slices(self, buffer)
        batch.buffer = buffer
        return batch


def _send(batch: DeviceBatch) -> tuple[Any, ...]:
    placed, buffer = batch._placed()
    return _receive, (vars(placed) | {"buffer": buffer},)


def _receive(placed: dict[str, Any]) -> DeviceBatch:
    return DeviceBatch(**placed)._filled(placed["buffer"])


# A batch that a loader sends to another process is one piece of shared memory, not one for each tensor.
ForkingPickler.register(DeviceBatch, _send)


def collate(
    instance_set: InstanceSet,
    instances: Sequence[int],
    settings: ModelSettings,
    *,
    boundaries: BoundaryTokens | None = None,
    context: Context = "document",
) -> Batch:
    """Pack some instances, given by number, into one batch, with their trees if the model reads trees.

    `boundaries` replace the boundary tokens in the stored instances. For `context` see `AttentionLayout`.
    """
    sentences = gather(instance_set, instances)
    if boundaries not in (None, BoundaryTokens()):
        sentences = sentences.with_boundaries(boundaries)
    trees = None
    if settings.needs_trees and instance_set.trees is not None:
        trees = BatchTrees.join([instance_trees(instance_set, i) for i in instances]).with_boundaries(
            settings.n_src_boundaries
        )
    return pack(sentences, settings=settings, trees=trees, context=context)


def pack(
    sentences: PackedSentences,
    *,
    settings: ModelSettings,
    trees: BatchTrees | None = None,
    context: Context = "document",
    drafts: PackedSentences | None = None,
) -> Batch:
    """Make a batch from packed sentences that contain their boundary tokens.

    For `trees` and `context` see `AttentionLayout`. `drafts` are the same source sentences with draft translations, for
    a model that reads drafts.
    """
    tgt_tokens, tgt_lengths, counts = sentences.tgt_tokens_N, sentences.tgt_lengths_G, sentences.counts_B
    ends = np.cumsum(tgt_lengths)
    starts = ends - tgt_lengths
    is_start = np.zeros(len(tgt_tokens), dtype=bool)
    for position in range(settings.n_starts):
        is_start[starts[tgt_lengths > position] + position] = True
    if settings.target_stream == "free":
        stream_ends = ends[np.cumsum(counts) - 1]
        inputs = tgt_tokens
        labels = np.concatenate((tgt_tokens[1:], [EOD]))
        # The shifted tokens put the first token of the next instance here, a boundary token.
        labels[stream_ends - 1] = EOD
        is_word_or_end = np.append(~is_start[1:], False)
        lengths, input_lengths = np.diff(stream_ends, prepend=0), tgt_lengths
    else:
        is_input = np.ones(len(tgt_tokens), dtype=bool)
        # The inputs lack the last token of each sentence, the labels the first: the label is the token after the input.
        is_input[ends - 1] = False
        is_label = np.ones(len(tgt_tokens), dtype=bool)
        is_label[starts] = False
        inputs, labels = tgt_tokens[is_input], tgt_tokens[is_label]
        lengths = input_lengths = tgt_lengths - 1
        is_word_or_end = ~is_start[is_label]
    has_masks = False
    if sentences.masked_G is not None:
        has_masks = bool(sentences.masked_G.any())
        labels = np.where(np.repeat(sentences.masked_G, input_lengths), NO_LABEL, labels)
    drafted = None
    if drafts is not None:
        first = pack(drafts, settings=settings, context="none")
        drafted = Drafts(first.tgt_inputs_N, first.tgt_labels_N, first.layout)
    layout = AttentionLayout(
        sentences.src_lengths_G, lengths, counts, settings=settings, trees=trees, context=context, drafts=drafted
    )
    src_tokens_S, tgt_inputs_N, tgt_labels_N = (
        torch.from_numpy(np.asarray(array, dtype=np.int64)) for array in (sentences.src_tokens_S, inputs, labels)
    )
    return Batch(src_tokens_S, tgt_inputs_N, tgt_labels_N, torch.from_numpy(is_word_or_end), layout, has_masks)


def instance_trees(instance_set: InstanceSet, instance: int) -> BatchTrees:
    """Return the trees for one instance. Heads are rows in the instance. Raises ValueError if the set has no trees."""
    trees = instance_set.trees
    if trees is None:
        raise ValueError("the instances have no trees")
    start, end = int(instance_set.instances[instance]), int(instance_set.instances[instance + 1])
    first, last = int(trees.sentence_edus[start]), int(trees.sentence_edus[end])
    return BatchTrees.of_instance(
        edu_lengths=np.diff(trees.edu_offsets[first : last + 1]),
        edu_heads=cut_heads(trees.edu_heads, first, last),
        edu_counts=np.diff(trees.sentence_edus[start : end + 1]),
        sentence_heads=cut_heads(trees.sentence_heads, start, end),
    )
