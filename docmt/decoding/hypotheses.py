"""Finished translations, and how they are read from what a search on a device has left behind.

Shape letters: B documents that are still searched, M beam, C candidates per document, n steps of a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from docmt.decoding.streams import Stream


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


@dataclass(frozen=True)
class Ending:
    """A finished hypothesis whose words have not been read yet: the slot that it continued in its last step."""

    step: int
    slot: int
    log_probability: float
    score: float


class SearchRecord:
    """Follows a search from some steps behind: which hypotheses finish, and which documents are done.

    A document is done when it has M finished hypotheses of which the best beats the best running one, or none running.
    M finished ones alone are not enough: when a model is sure of its translation, the rest of the beam are bad
    hypotheses, and if those are shorter, they fill the list before the good one ends. What the device has searched
    beyond that point is ignored.
    """

    def __init__(self, n_documents: int, beam: int, n_symbols: int, length_penalty: float) -> None:
        self.beam, self.n_symbols, self.length_penalty = beam, n_symbols, length_penalty
        self.endings: list[list[Ending]] = [[] for _ in range(n_documents)]
        self.best = np.full(n_documents, -np.inf)
        """Score of the best finished hypothesis, for documents that have M of them."""
        self.is_done = np.zeros(n_documents, dtype=bool)
        self.n_steps = 0
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = []
        """Documents, and the codes of their hypotheses after each step; int32 [n, B, M]."""

    def add(self, documents: np.ndarray, signed_codes_nBC: np.ndarray, scores_nBC: np.ndarray) -> None:
        """Add a block of steps of some documents.

        Args:
            documents: int64 [B], their numbers.
            signed_codes_nBC: int32, the candidates of each step, best first: codes of `CandidateSearch.best`, inverted
                (`~code`) where the candidate ends its document. The others go on, up to M.
            scores_nBC: their log probabilities.
        """
        ends_nBC = signed_codes_nBC < 0
        codes_nBC = np.where(ends_nBC, ~signed_codes_nBC, signed_codes_nBC)
        order = np.argsort(ends_nBC, axis=2, kind="stable")[:, :, : self.beam]
        self.blocks.append((documents, np.take_along_axis(codes_nBC, order, 2)))
        running_nB = np.where(ends_nBC, -np.inf, scores_nBC.astype(np.float64)).max(2)
        for codes, scores, ends, running in zip(codes_nBC, scores_nBC, ends_nBC, running_nB, strict=True):
            length = (self.n_steps + 1) ** self.length_penalty
            for number, candidate in zip(*np.nonzero(ends[:, : self.beam]), strict=True):
                slot = int(codes[number, candidate]) // self.n_symbols
                self._finish(int(documents[number]), slot, float(scores[number, candidate]), length)
            self.is_done[documents] |= (running / length <= self.best[documents]) | ~np.isfinite(running)
            self.n_steps += 1

    def _finish(self, document: int, slot: int, log_probability: float, length: float) -> None:
        endings, score = self.endings[document], log_probability / length
        if self.is_done[document] or score <= self.best[document]:
            return
        endings.append(Ending(self.n_steps, slot, log_probability, score))
        if len(endings) >= self.beam:
            self.best[document] = max(ending.score for ending in endings)

    def hypotheses(self, stream: Stream) -> list[list[BeamHypothesis]]:
        """The finished hypotheses of each document, best first, at most M."""
        kept = [sorted(endings, key=lambda ending: -ending.score)[: self.beam] for endings in self.endings]
        owners = [document for document, endings in enumerate(kept) for _ in endings]
        flat = [ending for endings in kept for ending in endings]
        found: list[list[BeamHypothesis]] = [[] for _ in kept]
        for document, ending, labels in zip(owners, flat, self._read(owners, flat), strict=True):
            sentences, forced = stream.read(labels[: ending.step], document)
            found[document].append(BeamHypothesis(sentences, ending.log_probability, ending.score, forced))
        return found

    def _read(self, owners: Sequence[int], endings: Sequence[Ending]) -> np.ndarray:
        """The labels of each finished hypothesis, as many as it had before its last step; int32 [hypotheses, steps]."""
        trace = np.zeros((self.n_steps, len(self.endings), self.beam), dtype=np.int32)
        start = 0
        for documents, codes_nBM in self.blocks:
            trace[start : start + len(codes_nBM), documents] = codes_nBM
            start += len(codes_nBM)
        documents, last_steps = np.array(owners, dtype=np.int64), np.array([ending.step for ending in endings])
        slots = np.array([ending.slot for ending in endings])
        labels = np.zeros((len(endings), self.n_steps), dtype=np.int32)
        for step in range(self.n_steps - 1, -1, -1):
            codes = trace[step, documents, slots]
            is_inside = step < last_steps
            labels[is_inside, step] = codes[is_inside] % self.n_symbols
            slots = np.where(is_inside, codes // self.n_symbols, slots)
        return labels
