"""Beam search over whole instances.

One search runs from the first to the last sentence of an instance. A hypothesis's group tag is the number of sentences
it has ended, so its group attention follows the source sentence by sentence; with an aligned target stream `</s>` leads
to the `<s>` of the next sentence, and the last `</s>` ends the hypothesis: there are as many target as source sentences
by construction. Unlike in the published code, a `</s>` forced by the length limit pays its probability, and a search
with M finished hypotheses continues as long as a running one is better.

Shape letters: B documents, M beam, R = B × M rows, C = 2 × M candidates per document, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.incremental import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.models.layout import Layout
from docmt.models.transformer import Transformer
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS

KEEP_SHARE = 0.75
"""Ended documents leave the batch when at most this share of it is still running."""


@dataclass(frozen=True)
class TargetSymbols:
    """What a vocabulary means to a search.

    Attributes:
        start: the symbol that begins every target sentence, given and not searched for: `<s>` or a language tag.
        n_specials: ids below it are specials; of these, only `</s>` and, in free streams, `start` and `<eod>` are
            generated.
    """

    start: int = BOS
    n_specials: int = N_SPECIALS


@dataclass(frozen=True)
class BeamHypothesis:
    """A finished translation of one instance.

    Attributes:
        sentences: token ids of each sentence, without marks.
        log_probability: of all labels, in nats.
        score: log probability divided by (number of labels) to the length penalty.
        forced_ends: sentences that were ended by the length limit.
    """

    sentences: list[list[int]]
    log_probability: float
    score: float
    forced_ends: int

    @classmethod
    def join(cls, hypotheses: Sequence["BeamHypothesis"], *, length_penalty: float) -> "BeamHypothesis":
        """All sentences of several hypotheses in one, scored as if searched together (aligned streams)."""
        sentences = [sentence for hypothesis in hypotheses for sentence in hypothesis.sentences]
        log_probability = sum(hypothesis.log_probability for hypothesis in hypotheses)
        n_labels = sum(len(sentence) + 1 for sentence in sentences)
        forced_ends = sum(hypothesis.forced_ends for hypothesis in hypotheses)
        return cls(sentences, log_probability, log_probability / n_labels**length_penalty, forced_ends)


@dataclass
class _Rows:
    """The running hypotheses, one entry per row; sentences are numbered inside the instance."""

    scores: np.ndarray
    sentence: np.ndarray
    words: np.ndarray
    position: np.ndarray
    labels: np.ndarray
    forced: np.ndarray
    starts: np.ndarray
    """int64 [R, sentences + 1], the step at which each sentence of the hypothesis began."""

    def take(self, rows: np.ndarray) -> "_Rows":
        return _Rows(**{name: values[rows] for name, values in vars(self).items()})


@dataclass
class _Trace:
    """Back-pointers of all steps, from which finished hypotheses are read."""

    tokens: list[np.ndarray] = field(default_factory=list)
    parents: list[np.ndarray] = field(default_factory=list)

    def read(self, row: int) -> list[int]:
        """The labels of a row, oldest first."""
        labels = []
        for tokens, parents in zip(reversed(self.tokens), reversed(self.parents), strict=True):
            labels.append(int(tokens[row]))
            row = int(parents[row])
        return labels[::-1]


class BeamSearch:
    """The search of one batch of instances, with a model in evaluation mode.

    The layout is that of the source (`Layout.of_source`); each of its instances is one search.
    """

    def __init__(
        self,
        model: Transformer,
        memory_SD: Tensor,
        layout: Layout,
        settings: DecodingSettings,
        symbols: TargetSymbols = TargetSymbols(),
    ) -> None:
        self.settings, self.symbols = settings, symbols
        self.beam = settings.beam_size
        self.is_free = model.settings.target_stream == "free"
        self.restarts_positions = model.settings.positions == "sentence"
        self.device = memory_SD.device
        self.forbidden_V = self._forbidden_symbols(model.embedding.num_embeddings)
        self.decoder = IncrementalDecoder(model, memory_SD, layout, self.beam)
        self._set_limits(layout.src_lengths_G, layout.sentences_B)
        self.finished: list[list[BeamHypothesis]] = [[] for _ in layout.sentences_B]

    def _forbidden_symbols(self, n_symbols: int) -> Tensor:
        """[V], −inf for symbols that are never generated, 0 for the rest."""
        allowed = [EOS, self.symbols.start, EOD] if self.is_free else [EOS]
        forbidden_V = torch.zeros(n_symbols)
        forbidden_V[: self.symbols.n_specials] = -torch.inf
        forbidden_V[allowed] = 0
        return forbidden_V.to(self.device)

    def _set_limits(self, src_lengths_G: np.ndarray, sentences_B: np.ndarray) -> None:
        """The documents of the batch, and how many words each target sentence (or free stream) may have."""
        words_G = src_lengths_G - 2
        limits_G = (self.settings.max_length_ratio * words_G).astype(np.int64) + self.settings.max_length_offset
        limits_G[words_G == 0] = 0
        self.documents = np.arange(len(sentences_B))
        self.first_sentence_B = np.cumsum(sentences_B) - sentences_B
        self.sentences_B = sentences_B
        if self.is_free:
            self.limits = np.add.reduceat(limits_G + 2, self.first_sentence_B)
        else:
            self.limits = limits_G

    @torch.inference_mode()
    def run(self) -> list[list[BeamHypothesis]]:
        """The finished hypotheses of each instance, best first, at most `beam_size`."""
        n_rows = len(self.documents) * self.beam
        n_starts = 1 if self.is_free else int(self.sentences_B.max()) + 1
        zeros = np.zeros(n_rows, dtype=np.int64)
        scores = np.full((len(self.documents), self.beam), -np.inf)
        scores[:, 0] = 0
        self.rows = _Rows(
            scores.ravel(),
            zeros,
            zeros.copy(),
            zeros.copy(),
            zeros.copy(),
            zeros.copy(),
            np.zeros((n_rows, n_starts), int),
        )
        self.trace = _Trace()
        self.tokens = np.full(n_rows, self.symbols.start)
        while len(self.documents):
            self._step()
        return [sorted(found, key=lambda hypothesis: -hypothesis.score)[: self.beam] for found in self.finished]

    def _step(self) -> None:
        """Feed the newest tokens, choose the next ones."""
        rows = self.rows
        document_R = np.repeat(np.arange(len(self.documents)), self.beam)
        source_R = document_R if self.is_free else self.first_sentence_B[self.documents][document_R] + rows.sentence
        starts_R = {
            pattern: self._starts(first_G[source_R] - source_R)
            for pattern, first_G in self.decoder.first_visible_G.items()
        }
        logits = self.decoder.step(torch.from_numpy(self.tokens).to(self.device), rows.position, source_R, starts_R)
        log_probabilities = logits.log_softmax(-1).add_(self.forbidden_V)
        is_forced = self._forbid(log_probabilities)
        scores, parents, tokens = self._candidates(log_probabilities)
        self._choose(scores, parents, tokens, is_forced)

    def _starts(self, distance_R: np.ndarray) -> np.ndarray:
        """int64 [R], the step at which the sentence began that is `distance_R` (≤ 0) from the current one."""
        return np.take_along_axis(self.rows.starts, (self.rows.sentence + distance_R)[:, None], 1)[:, 0]

    def _forbid(self, log_probabilities: Tensor) -> np.ndarray:
        """Rule out, in place, what may not come next; returns which rows must end by the length limit."""
        rows = self.rows
        minus_infinity = -torch.inf
        document_R = np.repeat(self.documents, self.beam)
        if self.is_free:
            after_end = torch.from_numpy(self.tokens == EOS).to(self.device)
            only = torch.full_like(log_probabilities, minus_infinity)
            between = [self.symbols.start, EOD]
            only[:, between] = log_probabilities[:, between]
            log_probabilities[:, between] = minus_infinity
            log_probabilities.copy_(torch.where(after_end[:, None], only, log_probabilities))
            must_end = rows.labels >= self.limits[document_R]
            # The stream can only stop after `</s>`.
            self._leave_only(log_probabilities, must_end & (self.tokens != EOS), EOS)
            self._leave_only(log_probabilities, must_end & (self.tokens == EOS), EOD)
            return must_end & (self.tokens != EOS)
        limit = self.limits[self.first_sentence_B[document_R] + rows.sentence]
        must_end = rows.words >= limit
        self._leave_only(log_probabilities, must_end, EOS)
        may_not_end = (rows.words == 0) & ~must_end
        if may_not_end.any():
            log_probabilities[torch.from_numpy(may_not_end).to(self.device), EOS] = minus_infinity
        return must_end & (limit > 0)

    def _leave_only(self, log_probabilities: Tensor, chosen_R: np.ndarray, token: int) -> None:
        if not chosen_R.any():
            return
        index = torch.from_numpy(np.flatnonzero(chosen_R)).to(self.device)
        kept = log_probabilities[index, token]
        log_probabilities[index] = -torch.inf
        log_probabilities[index, token] = kept

    def _candidates(self, log_probabilities: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The best 2 × M continuations of each document: scores, row in the document and token, each [B, C]."""
        n_symbols = log_probabilities.shape[1]
        scores_R = torch.from_numpy(self.rows.scores.astype(np.float32)).to(self.device)
        totals = (log_probabilities + scores_R[:, None]).unflatten(0, (-1, self.beam)).flatten(1)
        best = totals.topk(min(2 * self.beam, totals.shape[1]), dim=1)
        chosen = best.indices.cpu().numpy()
        return best.values.cpu().numpy().astype(np.float64), chosen // n_symbols, chosen % n_symbols

    def _choose(self, scores: np.ndarray, parents: np.ndarray, tokens: np.ndarray, is_forced: np.ndarray) -> None:
        """Set finished hypotheses aside and continue with the best M others of each document."""
        n_documents = len(scores)
        parents = parents + self.beam * np.arange(n_documents)[:, None]
        sentence = self.rows.sentence[parents]
        if self.is_free:
            ends = tokens == EOD
        else:
            ends = (tokens == EOS) & (sentence + 1 == self.sentences_B[self.documents][:, None])
        ends &= np.isfinite(scores)
        for number, candidate in zip(*np.nonzero(ends[:, : self.beam]), strict=True):
            self._finish(number, int(parents[number, candidate]), float(scores[number, candidate]), is_forced)
        order = np.argsort(ends, axis=1, kind="stable")[:, : self.beam]
        scores, parents, tokens = (np.take_along_axis(array, order, 1) for array in (scores, parents, tokens))
        scores = np.where(np.take_along_axis(ends, order, 1), -np.inf, scores)
        if scores.shape[1] < self.beam:
            pad = ((0, 0), (0, self.beam - scores.shape[1]))
            scores = np.pad(scores, pad, constant_values=-np.inf)
            parents, tokens = np.pad(parents, pad, mode="edge"), np.pad(tokens, pad, mode="edge")
        is_done = self._is_done(scores)
        scores[is_done] = -np.inf
        self._advance(scores.ravel(), parents.ravel(), tokens.ravel(), is_forced)
        self._drop_documents(is_done)

    def _is_done(self, scores: np.ndarray) -> np.ndarray:
        """Bool [B], documents with M finished hypotheses of which the best beats the best running one, or none running.

        M finished ones alone are not enough: when a model is sure of its translation, the rest of the beam are bad
        hypotheses, and if those are shorter, they fill the list before the good one ends.
        """
        running = scores.max(1) / (self.rows.labels[0] + 1) ** self.settings.length_penalty
        best = [
            max(hypothesis.score for hypothesis in finished) if len(finished) >= self.beam else -np.inf
            for finished in (self.finished[document] for document in self.documents)
        ]
        return (running <= best) | ~np.isfinite(running)

    def _finish(self, number: int, row: int, log_probability: float, is_forced: np.ndarray) -> None:
        """Keep a finished hypothesis of document `number` of the batch."""
        finished = self.finished[self.documents[number]]
        score = log_probability / (self.rows.labels[row] + 1) ** self.settings.length_penalty
        if len(finished) >= self.beam and score <= max(hypothesis.score for hypothesis in finished):
            return
        sentences: list[list[int]] = [[]]
        for token in self.trace.read(row):
            if token == EOS:
                sentences.append([])
            elif token != self.symbols.start:
                sentences[-1].append(token)
        if self.is_free:
            sentences.pop()
        forced = int(self.rows.forced[row] + is_forced[row])
        finished.append(BeamHypothesis(sentences, float(log_probability), float(score), forced))

    def _advance(self, scores: np.ndarray, parents: np.ndarray, tokens: np.ndarray, is_forced: np.ndarray) -> None:
        """Make the chosen continuations the running hypotheses."""
        self.trace.tokens.append(tokens)
        self.trace.parents.append(parents)
        self.decoder.reorder(parents)
        rows = self.rows.take(parents)
        rows.scores = scores
        rows.forced = rows.forced + is_forced[parents]
        rows.labels = rows.labels + 1
        rows.position = rows.position + 1
        rows.words = rows.words + 1
        next_tokens = tokens
        if not self.is_free:
            # The rows of ended documents stay inside their document, so that every index stays valid.
            last = np.repeat(self.sentences_B[self.documents] - 1, self.beam)
            ended = tokens == EOS
            rows.sentence = np.where(ended, np.minimum(rows.sentence + 1, last), rows.sentence)
            rows.words[ended] = 0
            if self.restarts_positions:
                rows.position[ended] = 0
            rows.starts[ended, rows.sentence[ended]] = len(self.trace.tokens)
            next_tokens = np.where(ended, self.symbols.start, tokens)
        self.rows, self.tokens = rows, next_tokens

    def _drop_documents(self, is_done: np.ndarray) -> None:
        """Drop ended documents when there are enough of them to be worth the copying."""
        running = np.flatnonzero(~is_done)
        if len(running) > KEEP_SHARE * len(is_done) and len(running):
            return
        self.documents = self.documents[running]
        if not len(running):
            return
        kept = (running[:, None] * self.beam + np.arange(self.beam)).ravel()
        self.decoder.select_documents(running)
        self.rows, self.tokens = self.rows.take(kept), self.tokens[kept]
        # The newest back-pointers are those of the rows that stay.
        self.trace.tokens[-1] = self.trace.tokens[-1][kept]
        self.trace.parents[-1] = self.trace.parents[-1][kept]


@torch.inference_mode()
def search_instances(
    model: Transformer,
    src_tokens: np.ndarray,
    layout: Layout,
    settings: DecodingSettings,
    symbols: TargetSymbols = TargetSymbols(),
) -> list[list[BeamHypothesis]]:
    """One search over all sentences of each instance, see `BeamSearch`; source tokens [S] are packed, with marks."""
    return BeamSearch(model, _encode(model, src_tokens, layout), layout, settings, symbols).run()


@torch.inference_mode()
def search_sentences(
    model: Transformer,
    src_tokens: np.ndarray,
    layout: Layout,
    settings: DecodingSettings,
    symbols: TargetSymbols = TargetSymbols(),
) -> list[BeamHypothesis]:
    """The best translation of each instance, with a separate search for each sentence, all side by side.

    For models whose target sentences do not see one another (`ModelSettings.decodes_sentences_alone`). The whole source
    is encoded once, so what the encoder sees of a document reaches every sentence. Arguments as `search_instances`.
    """
    memory_SD = _encode(model, src_tokens, layout)
    found = BeamSearch(model, memory_SD, layout.one_by_one(), settings, symbols).run()
    best = [hypotheses[0] for hypotheses in found]
    ends = np.cumsum(layout.sentences_B)
    return [
        BeamHypothesis.join(best[end - count : end], length_penalty=settings.length_penalty)
        for end, count in zip(ends, layout.sentences_B, strict=True)
    ]


def _encode(model: Transformer, src_tokens: np.ndarray, layout: Layout) -> Tensor:
    tokens_S = torch.from_numpy(np.asarray(src_tokens, dtype=np.int64))
    return model.encode(tokens_S.to(model.embedding.weight.device), layout)
