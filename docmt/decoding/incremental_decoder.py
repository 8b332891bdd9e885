"""States of the newest tokens in a search step, with caches for all earlier ones.

Shape letters: B instances, M beam, R = B × M rows, D width, H heads, K head width, V vocabulary, G source sentences in
the batch. N as in the interfaces of models, where it counts rows here.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor
from typing_extensions import override

from docmt.decoding.caches import PerSentencePrefixTree, PrefixTree, SourceKVCache, make_source_cache, make_visibility
from docmt.decoding.decoder_step import DecoderStep
from docmt.decoding.decoding_model import DecodingModel, FusedProjections
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import Attend, Attention, MultiHeadAttention, parts
from docmt.models.layers import DecoderLayer
from docmt.models.systems.context_module import ContextReader, DecoderPass
from docmt.models.systems.context_transformer import ContextTransformer

Cache = TypeVar("Cache")
# The cache of each attention, and the number of its layer in that cache.
CachePlaces: TypeAlias = dict[MultiHeadAttention, tuple[Cache, int]]


class IncrementalDecoder:
    """Decodes all hypotheses for a batch of instances in step, with a model in evaluation mode.

    The target side of the layout is not used. Nothing here reads from the device. `source` contains the encoder states,
    or a pass that replaces the first pass.
    """

    def __init__(self, model: DecodingModel, source: Tensor | DecoderPass, layout: AttentionLayout, beam: int) -> None:
        self.transformer = model.transformer
        self.output = model.output
        self.n_steps = 0
        if isinstance(source, DecoderPass):
            stack = source
        elif isinstance(self.transformer, ContextTransformer):
            stack = self.transformer.first_pass(source, layout)
        else:
            stack = DecoderPass(self.transformer.decoder_layers, source)
        self.context = stack.context
        memory_MD = stack.memory_MD
        self.layers: list[tuple[DecoderLayer, Attend, Attend]] = []
        for layer in stack.layers:
            self_projection, cross = model.projections[layer]
            attend = (
                functools.partial(self._attend_to_past, self_projection),
                functools.partial(self._attend_to_source, cross),
            )
            self.layers.append((layer, *attend))
        # Keys and values are float32 even if a CPU computes in bfloat16: its many small products are several times
        # slower in bfloat16.
        dtype = memory_MD.dtype if memory_MD.is_cuda else torch.float32
        self.like = torch.empty((), dtype=dtype, device=memory_MD.device)
        self.trees: list[PrefixTree] = []
        self.caches: list[SourceKVCache] = []
        self.past: CachePlaces[PrefixTree] = {}
        self.source: CachePlaces[SourceKVCache] = {}

        def tree_shape(members: Sequence[MultiHeadAttention]) -> tuple[int, int, int, int, int]:
            return len(members), len(layout.sentences_B), beam, members[0].heads, members[0].key_width

        for members in _by_pattern(layer.self_attention for layer in stack.layers):
            visibility = make_visibility(layout, members[0].pattern, self.like.device)
            self.trees.append(PrefixTree(visibility, tree_shape(members), like=self.like))
            self.past |= _places(self.trees[-1], members)
        for members in _by_pattern(layer.cross_attention for layer in stack.layers):
            self.caches.append(make_source_cache(members, memory_MD, layout, stack.slots[0], like=self.like))
            self.source |= _places(self.caches[-1], members)
        self.reader: StepContextReader | None = None
        if self.context is not None:
            self.reader = StepContextReader(layout, like=self.like)
            members = self.context.context_attentions()
            if members and stack.rows_CD is not None:
                self.caches.append(make_source_cache(members, stack.rows_CD, layout, stack.slots[1], like=self.like))
                self.reader.rows |= _places(self.caches[-1], members)
            members = self.context.previous_attentions()
            if members:
                tree = PerSentencePrefixTree(layout, layout.settings.n_before, tree_shape(members), like=self.like)
                self.trees.append(tree)
                self.reader.trees |= _places(tree, members)
        # Caches that get the sentences of the rows at the start of a step.
        self.states: list[PrefixTree | SourceKVCache | StepContextReader] = [*self.trees, *self.caches]
        if self.reader is not None:
            self.states.append(self.reader)
        self.compiled = None
        if self.context is None:
            self.compiled = DecoderStep.of(model, stack.layers, self.past, self.source)

    def step(self, tokens_R: Tensor, positions_R: Tensor, sentences_BM: Tensor) -> Tensor:
        """Feed one token per row. Returns states [R, D] for `logits`.

        Positions are below the number of steps. `sentences_BM` are the source sentences that the rows translate,
        numbered over the batch.
        """
        self.n_steps += 1
        hidden_RD = self.transformer.embed(tokens_R, positions_R, n_positions=self.n_steps)
        # The nodes and masks of a step are the same for all layers: set them once, before the first layer.
        for state in self.states:
            state.advance(sentences_BM)
        if self.compiled is not None:
            return self.transformer.decoder_norm(self.compiled(hidden_RD))
        for number, (layer, attend_to_past, attend_to_source) in enumerate(self.layers):
            sublayer = layer.self_sublayer
            hidden_RD = sublayer(hidden_RD, layer.self_attention.fuse(sublayer.enter(hidden_RD), attend_to_past))
            if self.context is not None and self.reader is not None:
                hidden_RD = self.context.in_decoder(number, hidden_RD, self.reader)
            sublayer = layer.cross_sublayer
            hidden_RD = sublayer(hidden_RD, layer.cross_attention.fuse(sublayer.enter(hidden_RD), attend_to_source))
            sublayer = layer.feed_forward_sublayer
            hidden_RD = sublayer(hidden_RD, layer.feed_forward(sublayer.enter(hidden_RD)))
        hidden_RD = self.transformer.decoder_norm(hidden_RD)
        if self.context is not None and self.reader is not None:
            hidden_RD = self.context.after_decoder(hidden_RD, self.reader)
        return hidden_RD

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Return logits for the next symbol, float32 [R, V]."""
        return self.output(hidden_RD).float()

    def _attend_to_past(self, projections: FusedProjections, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        projected_R3HK = projections.project(part, query_RD).to(self.like.dtype)
        tree, number = self.past[part]
        if part.distances is None:
            return part.out(tree.attend(number, projected_R3HK).to(query_RD.dtype))
        # Some distances widen queries, keys and values. `finish` removes the added columns from the output.
        extended = part.distances.extend_step(projected_R3HK, tree.position)
        output_RHE = tree.attend(number, extended).unflatten(1, extended.shape[2:])
        return part.out(part.distances.finish(output_RHE).flatten(1).to(query_RD.dtype))

    def _attend_to_source(self, projections: FusedProjections, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        query_RHK = projections.project(part, query_RD)[:, 0].to(self.like.dtype)
        cache, number = self.source[part]
        return part.out(cache.attend(number, query_RHK).to(query_RD.dtype))

    def reorder(self, parents_R: Tensor) -> None:
        """Make row r continue the hypothesis of row `parents_R[r]` in the same instance."""
        for tree in self.trees:
            tree.reorder(parents_R)

    def count_live(self, sentences_BM: Tensor) -> Tensor:
        """Return the arguments of `evict` for rows in these sentences, int64 [2 × trees], on the device."""
        return torch.cat([tree.count_live(sentences_BM) for tree in self.trees])

    def evict(self, counts: Sequence[int]) -> None:
        """Evict cache entries that no row will see again. `counts` comes from `count_live`."""
        for number, tree in enumerate(self.trees):
            tree.evict(*counts[2 * number : 2 * number + 2])

    def select_instances(self, instances: Tensor) -> None:
        """Keep only some instances, in the given order."""
        for state in (*self.trees, *self.caches):
            state.select_instances(instances)


class StepContextReader(ContextReader):
    """Reads context for the newest token in every row, for context modules such as HAN."""

    def __init__(self, layout: AttentionLayout, *, like: Tensor) -> None:
        self.numbers_G = torch.from_numpy(layout.sentence_numbers()).to(like.device)
        self.dtype = like.dtype
        self.rows: CachePlaces[SourceKVCache] = {}
        self.trees: CachePlaces[PerSentencePrefixTree] = {}

    def advance(self, sentences_BM: Tensor) -> None:
        """Set the sentences of the rows in the next step, numbered over the batch."""
        self.numbers_R = self.numbers_G[sentences_BM.flatten()]

    @override
    def numbers(self) -> Tensor:
        return self.numbers_R

    @override
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        cache, number = self.rows[part]
        return part.out(cache.attend(number, self._scaled_query(part, query_ND)).to(query_ND.dtype))

    @override
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        tree, number = self.trees[part]
        query_RHK = self._scaled_query(part, query_ND)
        key_RHK, value_RHK = part.project_memory(states_ND)
        projected_R3HK = torch.stack((query_RHK, key_RHK.to(self.dtype), value_RHK.to(self.dtype)), dim=1)
        return part.out(tree.attend_per_sentence(number, projected_R3HK).to(query_ND.dtype))

    def _scaled_query(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        query_RHK = part.project_query(query_ND).to(self.dtype)
        # These projections are not fused, so their weights do not contain the factor 1/√K.
        return query_RHK * query_RHK.shape[-1] ** -0.5


def _by_pattern(attentions: Iterable[Attention]) -> list[list[MultiHeadAttention]]:
    """Group the parts in all layers by pattern and number of heads, in layer order."""
    groups: dict[tuple[str, int], list[MultiHeadAttention]] = {}
    for attention in attentions:
        for part in parts(attention):
            groups.setdefault((part.pattern, part.heads), []).append(part)
    return list(groups.values())


def _places(cache: Cache, members: Sequence[MultiHeadAttention]) -> CachePlaces[Cache]:
    return {part: (cache, number) for number, part in enumerate(members)}
