"""The decoder one step at a time, with caches.

Shape letters: B documents, M beam, R = B × M rows, D width, H heads, K head width, V vocabulary, S packed source
tokens, G source sentences of the batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.decoding.caches import CACHES, DocumentMemory, Memory, SelfCache, SentenceMemory
from docmt.decoding.related import RelatedSentences
from docmt.models.layers import Attention, DecoderLayer, MultiHeadAttention, parts
from docmt.models.layout import Layout
from docmt.models.patterns import CacheKind, find_part
from docmt.models.transformer import Transformer


class Projections:
    """The linear maps of the parts of an attention, one product for all where all read the same queries.

    Queries are scaled beforehand by 1/√K. There are 3 outputs for queries, keys and values, 1 for queries alone.
    """

    def __init__(self, attention: Attention, n_outputs: int) -> None:
        members = parts(attention)
        heads, width = members[0].heads, members[0].out.out_features
        scale = (width // heads) ** -0.5
        self.weights = [_scale_query(part.in_weight[: n_outputs * width], width, scale) for part in members]
        self.biases = [_scale_query(part.in_bias[: n_outputs * width], width, scale) for part in members]
        self.numbers = {part.pattern: number for number, part in enumerate(members)}
        self.is_shared = attention.shares_queries
        if self.is_shared:
            self.weights, self.biases = [torch.cat(self.weights)], [torch.cat(self.biases)]
        self.shape = (-1, n_outputs, heads, width // heads)
        self.outputs: tuple[Tensor, ...] = ()

    def project(self, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        """[R, outputs, H, K] of a part. Parts come in order; shared ones all with the same queries."""
        number = self.numbers[part.pattern]
        if not self.is_shared:
            return self._linear(number, query_RD)[:, 0]
        if number == 0:
            self.outputs = self._linear(0, query_RD).unbind(1)
        return self.outputs[number]

    def _linear(self, number: int, query_RD: Tensor) -> Tensor:
        """[R, parts in this product, outputs, H, K]."""
        return F.linear(query_RD, self.weights[number], self.biases[number]).unflatten(1, self.shape)


class LayerState:
    """The caches of one decoder layer, and its projections put together so that each step has fewer products.

    Caches hold float32 when a CPU computes in bfloat16: its products of many small matrices are several times slower
    than float32 ones. Self-attention has a cache, cross-attention a memory for the pattern of each part.
    """

    def __init__(self, layer: DecoderLayer, caches: dict[str, SelfCache], memories: dict[str, Memory]) -> None:
        self.layer, self.caches, self.memories = layer, caches, memories
        self.self_projections = Projections(layer.self_attention, 3)
        self.cross_projections = Projections(layer.cross_attention, 1)
        self.dtype = self.self_projections.weights[0].dtype
        self.cache_dtype = cache_dtype(self.self_projections.weights[0])

    def step(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        """[R, D] → [R, D]."""
        layer = self.layer
        hidden_RD = layer.self_sublayer(hidden_RD, self._self_attention(hidden_RD, step))
        hidden_RD = layer.cross_sublayer(hidden_RD, self._cross_attention(hidden_RD, step))
        return layer.feed_forward_sublayer(hidden_RD, layer.feed_forward(hidden_RD))

    def _self_attention(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        def attend(part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
            query, key, value = self.self_projections.project(part, query_RD).to(self.cache_dtype).unbind(1)
            attended = self.caches[part.pattern].attend(query, key, value, step.biases_RW.get(part.pattern))
            return part.out(attended.to(self.dtype))

        return self.layer.self_attention.fuse(hidden_RD, attend)

    def _cross_attention(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        def attend(part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
            query = self.cross_projections.project(part, query_RD)[:, 0].to(self.cache_dtype)
            attended = self.memories[part.pattern].attend(query, step.sentences_R)
            return part.out(attended.to(self.dtype))

        return self.layer.cross_attention.fuse(hidden_RD, attend)


@dataclass
class Step:
    """What all layers of one step share.

    Attributes:
        sentences_R: int64 array, the source sentence (numbered over the batch) that each row translates.
        biases_RW: for each pattern, 0 or −inf over the columns of its caches; None or nothing when every row sees them
            all.
    """

    sentences_R: np.ndarray
    biases_RW: dict[str, Tensor | None]


class IncrementalDecoder:
    """Decodes all hypotheses of a batch of documents in step, with a model in evaluation mode.

    The target side of the layout is not used.
    """

    def __init__(self, model: Transformer, memory_SD: Tensor, layout: Layout, beam: int) -> None:
        self.model, self.memory_SD, self.layout, self.beam = model, memory_SD, layout, beam
        self.n_documents = len(layout.sentences_B)
        self.cache_like = torch.empty((), dtype=cache_dtype(self.memory_SD), device=self.memory_SD.device)
        self.layers = [self._layer_state(layer) for layer in model.decoder_layers]
        self.first_column = self.n_columns = 0
        self.ancestors_RC = np.empty((self.n_documents * beam, 0), dtype=np.int64)
        patterns = {part.pattern for layer in model.decoder_layers for part in parts(layer.self_attention)}
        kinds = {pattern: self._cache_kind(pattern) for pattern in sorted(patterns)}
        self.has_global = "document" in kinds.values()
        self.first_visible_G = {
            pattern: layout.first_visible_sentences(pattern) for pattern, kind in kinds.items() if kind == "range"
        }
        self.related = {
            pattern: RelatedSentences(layout, pattern, self.n_documents * beam, like=self.cache_like)
            for pattern, kind in kinds.items()
            if kind == "related"
        }

    def step(
        self, tokens_R: Tensor, positions_R: np.ndarray, sentences_R: np.ndarray, starts_R: dict[str, np.ndarray]
    ) -> Tensor:
        """Feed one token per row.

        Args:
            tokens_R: int64.
            positions_R: position of each token for its embedding.
            sentences_R: source sentence of each row, numbered over the batch.
            starts_R: for each pattern in `first_visible_G`, the first step (from 0) that each row sees.

        Returns:
            Logits, float32 [R, V].
        """
        n_positions = int(positions_R.max(initial=-1)) + 1
        hidden_RD = self.model.embed(tokens_R, torch.from_numpy(positions_R), n_positions=n_positions)
        self._forget_columns(starts_R)
        biases = {pattern: self._local_bias(starts) for pattern, starts in starts_R.items()}
        for pattern, related in self.related.items():
            biases[pattern] = self._related_bias(pattern, related, sentences_R)
        step = Step(sentences_R, biases)
        for state in self.layers:
            hidden_RD = state.step(hidden_RD, step)
        self.n_columns += 1
        if self.has_global:
            rows = np.arange(len(tokens_R))[:, None]
            self.ancestors_RC = np.concatenate((self.ancestors_RC, rows), axis=1)
        return self.model.logits(hidden_RD).float()

    def reorder(self, parents_R: np.ndarray) -> None:
        """Make row r continue the hypothesis of row parents_R[r] of the same document."""
        if np.array_equal(parents_R, np.arange(len(parents_R))):
            return
        rows = torch.from_numpy(parents_R).to(self.memory_SD.device)
        for cache in self._caches():
            cache.select_rows(rows)
        for related in self.related.values():
            related.select_rows(parents_R)
        if self.has_global:
            self.ancestors_RC = self.ancestors_RC[parents_R]
            self._share_past()

    def select_documents(self, documents: np.ndarray) -> None:
        """Keep only some documents, in the given order."""
        rows = (documents[:, None] * self.beam + np.arange(self.beam)).ravel()
        device = self.memory_SD.device
        documents_index, rows_index = torch.from_numpy(documents).to(device), torch.from_numpy(rows).to(device)
        for cache in self._caches():
            cache.select_documents(documents_index, rows_index)
        for state in self.layers:
            for memory in state.memories.values():
                memory.select_documents(documents_index)
        for related in self.related.values():
            related.select_rows(rows)
        self.ancestors_RC = self.ancestors_RC[rows]
        self.n_documents = len(documents)

    def _caches(self, pattern: str | None = None) -> list[SelfCache]:
        """The caches of all layers, or only those of a pattern."""
        caches = [item for state in self.layers for item in state.caches.items()]
        return [cache for name, cache in caches if pattern in (None, name)]

    def _share_past(self) -> None:
        """Find the columns that all hypotheses of every document have in common, and store them once."""
        by_document = self.ancestors_RC.reshape(self.n_documents, self.beam, -1)
        is_common = (by_document == by_document[:, :1]).all(axis=(0, 1))
        count = len(is_common) if is_common.all() else int(is_common.argmin())
        # Moving a few columns at each step costs more than reading them once per hypothesis.
        if count >= 8:
            for cache in self._caches():
                cache.share(count)
            self.ancestors_RC = self.ancestors_RC[:, count:]

    def _forget_columns(self, starts_R: dict[str, np.ndarray]) -> None:
        """Drop the local columns that no row sees any more."""
        count = min((int(starts.min()) for starts in starts_R.values()), default=0) - self.first_column
        if count >= 16:
            for cache in self._caches():
                cache.drop_first(count)
            self.first_column += count

    def _local_bias(self, starts_R: np.ndarray) -> Tensor | None:
        """0 where a row sees a local column, −inf elsewhere; this step's column included."""
        if int(starts_R.max()) <= self.first_column:
            return None
        columns = np.arange(self.first_column, self.n_columns + 1)
        hidden = torch.from_numpy(columns < starts_R[:, None]).to(self.cache_like.device)
        return self.cache_like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)

    def _related_bias(self, pattern: str, related: RelatedSentences, sentences_R: np.ndarray) -> Tensor | None:
        """As `_local_bias`, over the columns of the caches of a pattern that sees related sentences."""
        kept = related.forget(sentences_R)
        if kept is not None:
            columns = torch.from_numpy(kept).to(self.cache_like.device)
            for cache in self._caches(pattern):
                cache.keep(columns)
        related.add_column(sentences_R)
        return related.bias(sentences_R)

    def _cache_kind(self, pattern: str) -> CacheKind:
        return find_part(self.layout.resolve(pattern)).cache

    def _layer_state(self, layer: DecoderLayer) -> LayerState:
        caches = {part.pattern: self._cache(part) for part in parts(layer.self_attention)}
        return LayerState(layer, caches, {part.pattern: self._memory(part) for part in parts(layer.cross_attention)})

    def _cache(self, part: MultiHeadAttention) -> SelfCache:
        kind = CACHES[self._cache_kind(part.pattern)]
        return kind(self.n_documents, self.beam, part.heads, part.out.out_features // part.heads, like=self.cache_like)

    def _memory(self, part: MultiHeadAttention) -> Memory:
        """Keys and values of the source, padded per group of the pattern."""
        keys_SHK, values_SHK = part.project_memory(self.memory_SD)
        grouping = self.layout.grouping("cross", part.pattern)
        lengths = grouping.key_lengths_G
        longest = int(lengths.max())
        inside = np.arange(longest) < lengths[:, None]
        rows = np.zeros(inside.shape, dtype=np.int64)
        rows[inside] = grouping.key_rows
        index = torch.from_numpy(rows.ravel()).to(keys_SHK.device)
        padded = torch.stack((keys_SHK[index], values_SHK[index])).unflatten(1, (len(lengths), longest))
        keys_values = padded.transpose(2, 3).to(self.cache_like.dtype).contiguous()
        lengths_tensor = torch.from_numpy(lengths).to(keys_SHK.device)
        if self._cache_kind(part.pattern) == "document":
            return DocumentMemory(keys_values, lengths_tensor, self.beam)
        return SentenceMemory(keys_values, lengths_tensor, self.layout.sentence_groups(part.pattern))


def cache_dtype(like: Tensor) -> torch.dtype:
    """The dtype in which keys, values and attention are kept for a model that computes in the dtype of `like`."""
    return like.dtype if like.is_cuda else torch.float32


def _scale_query(parameter: Tensor, width: int, scale: float) -> Tensor:
    """A copy whose query part is scaled."""
    scaled = parameter.clone()
    scaled[:width] *= scale
    return scaled
