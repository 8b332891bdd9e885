"""Beam search as in the published code, with whole-prefix caches per hypothesis for local and global attention.

It shares the weights with a docmt model (see `gpu.dense` for the loss). At every step, the caches are extended
by concatenation and reordered, including the source side.

Shape letters: B instances, T target tokens, S source tokens, M beam, R = B × M rows, H heads, K head width, D width.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gpu.dense import DenseLayout, masked_attention, mean_entropy, pad_instances
from torch import Tensor

from docmt.models.attention.multi_head import Attention, FusedAttention, MultiHeadAttention, parts
from docmt.models.systems.transformer import Transformer, sinusoids
from docmt.text.vocabulary import BOS, EOD, EOS, MASK, PAD, UNK

Masks = tuple[Tensor, Tensor | None]
"""Hidden keys for local and global attention. With None, no key is hidden."""


class DenseDecoder:
    """Beam search with whole-prefix caches per hypothesis, as in fairseq's generator, for several padded documents.

    A document leaves the batch when its number of finished hypotheses equals the beam width.
    """

    def __init__(self, model: Transformer, beam: int, *, with_entropies: bool = False) -> None:
        self.model, self.beam, self.with_entropies = model, beam, with_entropies

    @torch.inference_mode()
    def run(
        self, src_tokens: np.ndarray, src_lengths: np.ndarray, sentences_B: np.ndarray, limits: np.ndarray
    ) -> list[list[list[int]]]:
        """Best hypothesis per document, as token ids per sentence.

        Args:
            src_tokens: packed, with marks.
            src_lengths: per source sentence.
            sentences_B: number of sentences per document.
            limits: maximum number of words per target sentence.
        """
        n_documents, beam = len(sentences_B), self.beam
        src, src_tags = pad_instances(torch.from_numpy(src_tokens), src_lengths, sentences_B)
        with masked_attention():
            layout: Any = DenseLayout(src_tags, src_tags)  # in place of a `DeviceLayout`
            memory = self.model.encode(src, layout).repeat_interleave(beam, 0)
        self.src_tags = src_tags.repeat_interleave(beam, 0)
        self.is_padded = bool((src_tags == 0).any())
        self.caches: dict[int, list[Tensor]] = {}
        starts = np.cumsum(sentences_B) - sentences_B
        finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(n_documents)]
        running = list(range(n_documents))
        tokens = torch.full((n_documents * beam, 1), BOS)
        tags = torch.ones_like(tokens)
        words = np.zeros(n_documents * beam, dtype=int)
        scores = torch.full((n_documents, beam), -torch.inf)
        scores[:, 0] = 0
        while running:
            log_probabilities = self._step(tokens, tags, memory).float().log_softmax(-1)
            sentences = np.repeat(starts[running], beam) + tags[:, -1].numpy() - 1
            self._forbid(log_probabilities, words, limits[sentences])
            n_symbols = log_probabilities.shape[1]
            totals = log_probabilities.unflatten(0, (len(running), beam)) + scores[:, :, None]
            best = totals.flatten(1).topk(2 * beam)
            rows, symbols, kept_scores, still = [], [], [], []
            for index, document in enumerate(running):
                codes = best.indices[index] + index * beam * n_symbols
                is_last = (tags[:, -1] == int(sentences_B[document])).tolist()
                continuations = []
                for rank, (value, code) in enumerate(zip(best.values[index].tolist(), codes.tolist(), strict=True)):
                    row, token = divmod(code, n_symbols)
                    if token != EOS or not is_last[row]:
                        continuations.append((row, token, value))
                    elif rank < beam and value > -math.inf:
                        labels = [*tokens[row, 1:].tolist(), EOS]
                        finished[document].append((value / len(labels), labels))
                if len(finished[document]) < beam and continuations[0][2] > -math.inf:
                    still.append(document)
                    more = zip(*continuations[:beam], strict=True)
                    for entries, new in zip((rows, symbols, kept_scores), more, strict=True):
                        entries.extend(new)
            running = still
            if running:
                parents, newest = torch.tensor(rows), torch.tensor(symbols)
                memory = self._reorder(parents, memory)
                ended = newest == EOS
                tokens = torch.cat((tokens[parents], torch.where(ended, BOS, newest)[:, None]), 1)
                tags = torch.cat((tags[parents], (tags[parents, -1] + ended)[:, None]), 1)
                words = np.where(ended.numpy(), 0, words[rows] + 1)
                scores = torch.tensor(kept_scores).view(-1, beam)
        return [_split(max(entries)[1]) for entries in finished]

    @staticmethod
    def _forbid(log_probabilities: Tensor, words: np.ndarray, limits: np.ndarray) -> None:
        """Symbols that must not come next. A sentence has at least one word, and at most the limit."""
        log_probabilities[:, [PAD, UNK, MASK, BOS, EOD]] = -torch.inf
        must_end = torch.from_numpy(words >= limits)
        ends = log_probabilities[must_end, EOS]
        log_probabilities[must_end] = -torch.inf
        log_probabilities[must_end, EOS] = ends
        log_probabilities[torch.from_numpy(words == 0) & ~must_end, EOS] = -torch.inf

    def _step(self, tokens: Tensor, tags: Tensor, memory: Tensor) -> Tensor:
        model = self.model
        width = model.settings.width
        hidden = model.embedding(tokens[:, -1:]) * math.sqrt(width)
        hidden = hidden + sinusoids(tokens.shape[1], width)[tokens.shape[1] - 1].to(hidden.dtype)
        self_mask = tags[:, -1:, None] != tags[:, None]
        cross_mask = tags[:, -1:, None] != self.src_tags[:, None]
        padding = (self.src_tags == 0)[:, None] if self.is_padded else None
        for layer in model.decoder_layers:
            attended = self._attend(layer.self_attention, hidden, hidden, (self_mask, None), grows=True)
            hidden = layer.self_sublayer(hidden, attended)
            attended = self._attend(layer.cross_attention, hidden, memory, (cross_mask, padding), grows=False)
            hidden = layer.cross_sublayer(hidden, attended)
            hidden = layer.feed_forward_sublayer(hidden, layer.feed_forward(hidden))
        return model.logits(hidden[:, -1])

    def _attend(self, attention: Attention, query: Tensor, memory: Tensor, masks: Masks, *, grows: bool) -> Tensor:
        outputs = [
            self._one(part, query, memory, masks[part.pattern == "global"], grows=grows) for part in parts(attention)
        ]
        return attention.gate(*outputs) if isinstance(attention, FusedAttention) else outputs[0]

    def _one(
        self, part: MultiHeadAttention, query: Tensor, memory: Tensor, mask: Tensor | None, *, grows: bool
    ) -> Tensor:
        width = query.shape[-1]
        weights, biases = part.in_weight.split(width), part.in_bias.split(width)
        q = F.linear(query, weights[0], biases[0]).unflatten(-1, (part.heads, -1)).transpose(1, 2)
        cached = self.caches.get(id(part))
        if cached is None or grows:
            new = [
                F.linear(memory, w, b).unflatten(-1, (part.heads, -1)).transpose(1, 2)
                for w, b in zip(weights[1:], biases[1:], strict=True)
            ]
            cached = new if cached is None else [torch.cat(pair, 2) for pair in zip(cached, new, strict=True)]
            self.caches[id(part)] = cached
        k, v = cached
        scores = torch.matmul(q * (q.shape[-1] ** -0.5), k.transpose(-1, -2))
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        attended = scores.float().softmax(-1)
        if self.with_entropies:
            mean_entropy(attended)
        output = torch.matmul(attended.to(scores.dtype), v)
        return part.out(output.transpose(1, 2).flatten(2))

    def _reorder(self, rows: Tensor, memory: Tensor) -> Tensor:
        """Reorder all caches and the encoder output in the same way as the hypotheses."""
        for key, cached in self.caches.items():
            self.caches[key] = [tensor.index_select(0, rows) for tensor in cached]
        self.src_tags = self.src_tags.index_select(0, rows)
        return memory.index_select(0, rows)


def _split(labels: list[int]) -> list[list[int]]:
    """Token ids per sentence. In `labels`, the `<s>` of the next sentence stands for `</s>`."""
    sentences: list[list[int]] = [[]]
    for token in labels[:-1]:
        if token == BOS:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return sentences
