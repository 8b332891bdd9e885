"""The decoder one step at a time, with caches.

Shape letters: B documents, M beam, R = B × M rows, D width, H heads, K head width, V vocabulary, S packed source
tokens, G source sentences of the batch.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.decoding.caches import DocumentMemory, GlobalCache, LocalCache, SentenceMemory
from docmt.models.layers import Attention, CombinedAttention, DecoderLayer, MultiHeadAttention
from docmt.models.layout import Layout
from docmt.models.settings import Pattern
from docmt.models.transformer import Transformer, sinusoids

SelfCache = LocalCache | GlobalCache
Memory = SentenceMemory | DocumentMemory


def parts(attention: Attention) -> list[MultiHeadAttention]:
    """The multi-head attentions of an attention module."""
    if isinstance(attention, CombinedAttention):
        return [attention.group, attention.global_]
    return [attention]


class LayerState:
    """The caches of one decoder layer, and its projections put together so that each step has fewer products.

    Queries are scaled beforehand by 1/√K. Caches hold float32 when a CPU computes in bfloat16: its products of many
    small matrices are several times slower than float32 ones.
    """

    def __init__(self, layer: DecoderLayer, caches: list[SelfCache], memories: list[Memory]) -> None:
        self.layer, self.caches, self.memories = layer, caches, memories
        self_parts, cross_parts = parts(layer.self_attention), parts(layer.cross_attention)
        self.heads = self_parts[0].heads
        width = self_parts[0].out.out_features
        scale = (width // self.heads) ** -0.5
        self.self_weight = torch.cat([_scale_query(part.in_weight, width, scale) for part in self_parts])
        self.self_bias = torch.cat([_scale_query(part.in_bias, width, scale) for part in self_parts])
        self.cross_weight = torch.cat([part.in_weight[:width] * scale for part in cross_parts])
        self.cross_bias = torch.cat([part.in_bias[:width] * scale for part in cross_parts])
        self.dtype, self.cache_dtype = self.self_weight.dtype, cache_dtype(self.self_weight)

    def step(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        """[R, D] → [R, D]."""
        layer = self.layer
        hidden_RD = layer.self_sublayer(hidden_RD, self._self_attention(hidden_RD, step))
        hidden_RD = layer.cross_sublayer(hidden_RD, self._cross_attention(hidden_RD, step))
        return layer.feed_forward_sublayer(hidden_RD, layer.feed_forward(hidden_RD))

    def _self_attention(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        attention = self.layer.self_attention
        projected = F.linear(hidden_RD, self.self_weight, self.self_bias)
        projected = projected.unflatten(1, (len(self.caches), 3, self.heads, -1)).to(self.cache_dtype)
        outputs = []
        for number, (cache, part) in enumerate(zip(self.caches, parts(attention), strict=True)):
            query, key, value = projected[:, number].unbind(1)
            if isinstance(cache, GlobalCache):
                attended = cache.attend(query, key, value)
            else:
                attended = cache.attend(query, key, value, step.biases_RW[part.pattern])
            outputs.append(part.out(attended.to(self.dtype)))
        return attention.combine(*outputs) if isinstance(attention, CombinedAttention) else outputs[0]

    def _cross_attention(self, hidden_RD: Tensor, step: "Step") -> Tensor:
        attention = self.layer.cross_attention
        projected = F.linear(hidden_RD, self.cross_weight, self.cross_bias)
        queries = projected.unflatten(1, (len(self.memories), self.heads, -1)).to(self.cache_dtype).unbind(1)
        outputs = []
        for query, memory, part in zip(queries, self.memories, parts(attention), strict=True):
            if isinstance(memory, SentenceMemory):
                attended = memory.attend(query, step.sentences_R)
            else:
                attended = memory.attend(query)
            outputs.append(part.out(attended.to(self.dtype)))
        return attention.combine(*outputs) if isinstance(attention, CombinedAttention) else outputs[0]


class Step:
    """What all layers of one step share.

    Attributes:
        sentences_R: int64 array, the source sentence (numbered over the batch) that each row translates.
        biases_RW: of each local pattern, 0 or −inf over the columns of the local caches; None when every row sees them
            all.
    """

    def __init__(self, sentences_R: np.ndarray, biases_RW: dict[Pattern, Tensor | None]) -> None:
        self.sentences_R, self.biases_RW = sentences_R, biases_RW


class IncrementalDecoder:
    """Decodes all hypotheses of a batch of documents in step.

    Args:
        model: in evaluation mode.
        src_tokens_S: int64 source tokens of the batch, packed.
        layout: of the source; its target side is not used.
        beam: M.
    """

    def __init__(self, model: Transformer, src_tokens_S: Tensor, layout: Layout, beam: int) -> None:
        self.model, self.layout, self.beam = model, layout, beam
        self.n_documents = len(layout.sentences_B)
        self.memory_SD = model.encode(src_tokens_S, layout)
        self.cache_like = torch.empty((), dtype=cache_dtype(self.memory_SD), device=self.memory_SD.device)
        self.layers = [self._layer_state(layer) for layer in model.decoder]
        self.first_column = self.n_columns = 0
        self.ancestors_RC = np.empty((self.n_documents * beam, 0), dtype=np.int64)
        patterns = {part.pattern for layer in model.decoder for part in parts(layer.self_attention)}
        self.has_global, self.local_patterns = "global" in patterns, patterns - {"global"}

    def step(
        self, tokens_R: Tensor, positions_R: np.ndarray, sentences_R: np.ndarray, starts_R: dict[Pattern, np.ndarray]
    ) -> Tensor:
        """Feed one token per row.

        Args:
            tokens_R: int64.
            positions_R: position of each token for its embedding.
            sentences_R: source sentence of each row, numbered over the batch.
            starts_R: for each of `local_patterns` the first step (from 0) that each row sees.

        Returns:
            Logits, float32 [R, V].
        """
        model = self.model
        table = sinusoids(int(positions_R.max()) + 1, model.settings.width, device=tokens_R.device)
        hidden_RD = model.embedding(tokens_R) * math.sqrt(model.settings.width)
        hidden_RD = hidden_RD + table[torch.from_numpy(positions_R)].to(hidden_RD.dtype)
        self._forget_columns(starts_R)
        step = Step(sentences_R, {pattern: self._local_bias(starts) for pattern, starts in starts_R.items()})
        for state in self.layers:
            hidden_RD = state.step(hidden_RD, step)
        self.n_columns += 1
        if self.has_global:
            rows = np.arange(len(tokens_R))[:, None]
            self.ancestors_RC = np.concatenate((self.ancestors_RC, rows), axis=1)
        return model.logits(hidden_RD).float()

    def reorder(self, parents_R: np.ndarray) -> None:
        """Make row r continue the hypothesis of row parents_R[r] of the same document."""
        if np.array_equal(parents_R, np.arange(len(parents_R))):
            return
        rows = torch.from_numpy(parents_R).to(self.memory_SD.device)
        for cache in self._caches():
            cache.select_rows(rows)
        if self.has_global:
            self.ancestors_RC = self.ancestors_RC[parents_R]
            self._share_past()

    def select_documents(self, documents: np.ndarray) -> None:
        """Keep only some documents, in the given order."""
        rows = (documents[:, None] * self.beam + np.arange(self.beam)).ravel()
        device = self.memory_SD.device
        documents_index, rows_index = torch.from_numpy(documents).to(device), torch.from_numpy(rows).to(device)
        for state in self.layers:
            for cache in state.caches:
                cache.select_documents(documents_index, rows_index)
            for memory in state.memories:
                memory.select_documents(documents_index)
        self.ancestors_RC = self.ancestors_RC[rows]
        self.n_documents = len(documents)

    def _caches(self) -> list[SelfCache]:
        return [cache for state in self.layers for cache in state.caches]

    def _share_past(self) -> None:
        """Find the columns that all hypotheses of every document have in common, and store them once."""
        by_document = self.ancestors_RC.reshape(self.n_documents, self.beam, -1)
        is_common = (by_document == by_document[:, :1]).all(axis=(0, 1))
        count = len(is_common) if is_common.all() else int(is_common.argmin())
        # Moving a few columns at each step costs more than reading them once per hypothesis.
        if count >= 8:
            for cache in self._caches():
                if isinstance(cache, GlobalCache):
                    cache.share(count)
            self.ancestors_RC = self.ancestors_RC[:, count:]

    def _forget_columns(self, starts_R: dict[Pattern, np.ndarray]) -> None:
        """Drop the local columns that no row sees any more."""
        count = min((int(starts.min()) for starts in starts_R.values()), default=0) - self.first_column
        if count >= 16:
            for cache in self._caches():
                if isinstance(cache, LocalCache):
                    cache.drop_first(count)
            self.first_column += count

    def _local_bias(self, starts_R: np.ndarray) -> Tensor | None:
        """0 where a row sees a local column, −inf elsewhere; this step's column included."""
        if int(starts_R.max()) <= self.first_column:
            return None
        columns = np.arange(self.first_column, self.n_columns + 1)
        hidden = torch.from_numpy(columns < starts_R[:, None]).to(self.cache_like.device)
        return self.cache_like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)

    def _layer_state(self, layer: DecoderLayer) -> LayerState:
        caches: list[SelfCache] = []
        for part in parts(layer.self_attention):
            width = part.out.out_features // part.heads
            if part.pattern == "global":
                cache = GlobalCache(self.n_documents, self.beam, part.heads, width, like=self.cache_like)
            else:
                cache = LocalCache(self.n_documents * self.beam, part.heads, width, like=self.cache_like)
            caches.append(cache)
        return LayerState(layer, caches, [self._memory(part) for part in parts(layer.cross_attention)])

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
        if part.pattern == "global":
            return DocumentMemory(keys_values, lengths_tensor, self.beam)
        return SentenceMemory(keys_values, lengths_tensor)


def cache_dtype(like: Tensor) -> torch.dtype:
    """The dtype in which keys, values and attention are kept for a model that computes in the dtype of `like`."""
    return like.dtype if like.is_cuda else torch.float32


def _scale_query(parameter: Tensor, width: int, scale: float) -> Tensor:
    """A copy whose query part is scaled."""
    scaled = parameter.clone()
    scaled[:width] *= scale
    return scaled
