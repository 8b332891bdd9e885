"""The decoder one step at a time, with caches.

Shape letters: B documents, M beam, R = B × M rows, D width, H heads, K head width, V vocabulary, S packed source
tokens, G source sentences of the batch.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.memories import DocumentMemory, Memory, SentenceMemory
from docmt.decoding.prefixes import PrefixTree, make_view
from docmt.decoding.prepared import PreparedTransformer, Projections
from docmt.decoding.reading import EachTree, StepReader
from docmt.models.context_module import ContextModule, DecoderPass
from docmt.models.distances import SentenceDistances
from docmt.models.layers import Attention, DecoderLayer, MultiHeadAttention, parts
from docmt.models.layout import Layout, Slot
from docmt.models.patterns import CacheKind, find_part
from docmt.models.transformer import Transformer

State = TypeVar("State")
Members: TypeAlias = tuple[MultiHeadAttention, ...]
Places: TypeAlias = dict[MultiHeadAttention, tuple[State, int]]
"""What attentions of all layers keep together, and the number of each in it."""


class LayerState:
    """One decoder layer with its past and its source.

    Keys and values are float32 when a CPU computes in bfloat16: its products of many small matrices are several times
    slower than float32 ones. They are kept for all layers of a pattern together.

    Args:
        layer: its parameters.
        projections: of its self-attention, and of its cross-attention.
        trees: the past of each part of its self-attention, and the number of the layer in it.
        memories: the source likewise, for each part of its cross-attention.
        between: what a context module computes between the two.
    """

    def __init__(
        self,
        layer: DecoderLayer,
        projections: tuple[Projections, Projections],
        trees: Places[PrefixTree],
        memories: Places[Memory],
        between: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self.layer, self.trees, self.memories, self.between = layer, trees, memories, between
        self.self_projections, self.cross_projections = projections
        weight = layer.self_sublayer.norm.weight
        self.dtype, self.cache_dtype = weight.dtype, cache_dtype(weight)

    def step(self, hidden_RD: Tensor) -> Tensor:
        """[R, D] → [R, D]."""
        layer, outer = self.layer, self.layer.self_sublayer
        hidden_RD = outer(hidden_RD, layer.self_attention.fuse(outer.enter(hidden_RD), self._attend_to_past))
        if self.between is not None:
            hidden_RD = self.between(hidden_RD)
        outer = layer.cross_sublayer
        hidden_RD = outer(hidden_RD, layer.cross_attention.fuse(outer.enter(hidden_RD), self._attend_to_source))
        outer = layer.feed_forward_sublayer
        return outer(hidden_RD, layer.feed_forward(outer.enter(hidden_RD)))

    def _attend_to_past(self, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        projected = self.self_projections.project(part, query_RD).to(self.cache_dtype)
        tree, number = self.trees[part]
        if part.distances is None:
            return part.out(tree.attend(number, projected).to(self.dtype))
        extended = part.distances.extend_step(projected, tree.position)
        output_RHE = tree.attend(number, extended).unflatten(1, extended.shape[2:])
        return part.out(part.distances.finish(output_RHE).flatten(1).to(self.dtype))

    def _attend_to_source(self, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        query = self.cross_projections.project(part, query_RD)[:, 0].to(self.cache_dtype)
        memory, number = self.memories[part]
        return part.out(memory.attend(number, query).to(self.dtype))


class IncrementalDecoder:
    """Decodes all hypotheses of a batch of documents in step, with a model in evaluation mode.

    The target side of the layout is not used. Nothing here reads from the device. `source` is what `Transformer.encode`
    gives, or another pass than the first one.
    """

    def __init__(self, model: Transformer, source: Tensor | DecoderPass, layout: Layout, beam: int) -> None:
        self.model, self.logits = PreparedTransformer.of(model), model.logits
        self.layout, self.beam, self.n_steps = layout, beam, 0
        stack = source if isinstance(source, DecoderPass) else self.model.first_pass(source, layout)
        memory_MD, layers, (slot, rows_slot) = stack.memory_MD, stack.layers, stack.slots
        self.like = torch.empty((), dtype=cache_dtype(memory_MD), device=memory_MD.device)
        trees = {members: self._tree(members) for members in _by_pattern(layer.self_attention for layer in layers)}
        memories = {
            members: self._memory(members, memory_MD, slot)
            for members in _by_pattern(layer.cross_attention for layer in layers)
        }
        self.trees, self.memories = list(trees.values()), list(memories.values())
        places = _places(trees), _places(memories)
        self.context = stack.context
        self.reader = None if self.context is None else self._reader(self.context, stack.rows_CD, rows_slot)
        self.layers = [
            LayerState(layer, self.model.projections[layer], *places, self._between(number))
            for number, layer in enumerate(layers)
        ]

    def step(self, tokens_R: Tensor, positions_R: Tensor, sentences_BM: Tensor) -> Tensor:
        """Feed one token per row.

        Args:
            tokens_R: int64.
            positions_R: int64, position of each token for its embedding, below the number of steps.
            sentences_BM: int64, source sentence that each row translates, numbered over the batch.

        Returns:
            Logits, float32 [R, V].
        """
        self.n_steps += 1
        hidden_RD = self.model.embed(tokens_R, positions_R, n_positions=self.n_steps)
        for tree in self.trees:
            tree.grow(sentences_BM)
        for memory in self.memories:
            memory.turn(sentences_BM)
        if self.reader is not None:
            self.reader.turn(sentences_BM)
        for layer in self.layers:
            hidden_RD = layer.step(hidden_RD)
        hidden_RD = self.model.decoder_norm(hidden_RD)
        if self.context is not None and self.reader is not None:
            hidden_RD = self.context.after_decoder(hidden_RD, self.reader)
        return self.logits(hidden_RD).float()

    def follow(self, parents_R: Tensor) -> None:
        """Make row r continue the hypothesis of row `parents_R[r]` of the same document."""
        for tree in self.trees:
            tree.follow(parents_R)

    def survey(self, sentences_BM: Tensor) -> Tensor:
        """What `drop` has to know of the past of rows in these sentences; int64, on the device."""
        return torch.cat([tree.survey(sentences_BM) for tree in self.trees])

    def drop(self, counts: Sequence[int]) -> None:
        """Drop what no row will see again, given what `survey` found."""
        for number, tree in enumerate(self.trees):
            tree.drop(*counts[2 * number : 2 * number + 2])

    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents, in the given order."""
        for state in (*self.trees, *self.memories):
            state.select_documents(documents)

    def _cache_kind(self, pattern: str) -> CacheKind:
        return find_part(self.layout.resolve(pattern)).cache

    def _tree(self, members: Members) -> PrefixTree:
        pattern = members[0].pattern
        view = make_view(self._cache_kind(pattern), self.layout, pattern, self.like.device)
        return PrefixTree(view, self._shape(members), like=self.like)

    def _shape(self, members: Members) -> tuple[int, int, int, int, int]:
        """That of the past of some attentions, see `PrefixTree`."""
        part = members[0]
        width = part.out.in_features // part.heads
        if part.distances is not None:
            width = part.distances.cache_width(width)
        return len(members), len(self.layout.sentences_B), self.beam, part.heads, width

    def _reader(self, context: ContextModule, rows_CD: Tensor | None, slot: Slot) -> StepReader:
        """What a context module reads; its past and its source become part of those of the decoder."""
        to_rows, to_each = tuple(context.row_parts()), tuple(context.each_parts())
        memories: dict[Members, Memory] = {}
        if to_rows and rows_CD is not None:
            memories[to_rows] = self._memory(to_rows, rows_CD, slot)
        trees: dict[Members, EachTree] = {}
        if to_each:
            n_before = self.layout.settings.n_before
            trees[to_each] = EachTree(self.layout, n_before, self._shape(to_each), like=self.like)
        self.trees += trees.values()
        self.memories += memories.values()
        return StepReader(self.layout, _places(memories), _places(trees), like=self.like)

    def _between(self, number: int) -> Callable[[Tensor], Tensor] | None:
        """What a context module computes in a layer."""
        if self.context is None or self.reader is None:
            return None
        return partial(self.context.in_decoder, number, reader=self.reader)

    def _memory(self, members: Members, memory_MD: Tensor, slot: Slot) -> Memory:
        """Keys and values of what all layers of a pattern read, padded per group."""
        pattern = members[0].pattern
        grouping = self.layout.grouping(slot, pattern)
        lengths = grouping.key_lengths_G
        longest = int(lengths.max())
        inside = np.arange(longest) < lengths[:, None]

        def pad(values: np.ndarray) -> Tensor:
            padded = np.zeros(inside.shape, dtype=np.int64)
            padded[inside] = values
            return torch.from_numpy(padded.ravel()).to(memory_MD.device)

        index = pad(grouping.key_rows)
        distances_P = None if grouping.distances is None else pad(grouping.distances)
        heads, inner = members[0].heads, members[0].out.in_features
        shape = (len(members), 2, len(lengths), heads, longest, inner // heads)
        keys_values = self.like.new_empty(shape)
        for number, part in enumerate(members):
            keys_MHK, values_MHK = part.project_memory(memory_MD)
            padded = keys_MHK[index], values_MHK[index]
            if isinstance(part.distances, SentenceDistances) and distances_P is not None:
                padded = part.distances.add(*padded, distances_P)
            for place, rows_PHK in zip(keys_values[number], padded, strict=True):
                place.copy_(rows_PHK.unflatten(0, (len(lengths), longest)).transpose(1, 2))
        # With one group per document, as in a search of single sentences, all its rows read the same.
        if len(lengths) == len(self.layout.sentences_B):
            return DocumentMemory(keys_values, lengths)
        return SentenceMemory(keys_values, lengths, self.layout.sentence_groups(pattern, slot))


def _by_pattern(attentions: Iterable[Attention]) -> list[Members]:
    """The parts of all layers with the same pattern and as many heads, in the order of the layers."""
    found: dict[tuple[str, int], Members] = {}
    for part in (part for attention in attentions for part in parts(attention)):
        key = part.pattern, part.heads
        found[key] = (*found.get(key, ()), part)
    return list(found.values())


def _places(states: dict[Members, State]) -> Places[State]:
    return {part: (state, number) for members, state in states.items() for number, part in enumerate(members)}


def cache_dtype(like: Tensor) -> torch.dtype:
    """The dtype in which keys, values and attention are kept for a model that computes in the dtype of `like`."""
    return like.dtype if like.is_cuda else torch.float32
