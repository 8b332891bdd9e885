"""A trained segmenter: its model file, the segmentation of sentences, and its scores.

Shapes: B sentences, T words of the longest, U word types, D width, L labels.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from docmt.batching import fill_batches
from docmt.discourse.documents import inner_starts, read_discourse, sentences_of
from docmt.discourse.segmentation.network import START, SegmenterNetwork, SentenceBatch, States
from docmt.discourse.segmentation.settings import SegmenterSettings
from docmt.discourse.segmentation.vocabulary import WordTypes, WordVocabulary, number_types
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes, read_lines
from docmt.tensor_files import read_tensors
from docmt.text.tokenizer import sentence_words

FORMAT = 1
KIND = "EDU segmenter"
KEYS = ("settings", "vocabulary", "weights", "scores", "provenance")
MAX_BATCH_WORDS = 2048
MAX_BATCH_TYPES = 1024
WINDOW_WORDS = 200
CONTEXT_WORDS = 50
"""Longer sentences are read in windows with context on both sides: time and memory grow linearly with their length."""


@dataclass(frozen=True)
class SentenceReading:
    """EDU starts and word states of a sentence."""

    starts: list[int]  # the words other than the first at which an EDU begins
    states_TD: Tensor  # float32, output of the upper BiLSTM, one row per word
    lower_TD: Tensor  # float32, output of the lower BiLSTM, nearer to words and parts of speech


class SentenceWindow(NamedTuple):
    """Words `start` to `end` − 1 of a sentence; results are used for words `core_start` to `core_end` − 1."""

    sentence: int
    start: int
    end: int
    core_start: int
    core_end: int

    @property
    def core(self) -> slice:
        """The words whose results are used, counted from the first word of the window."""
        return slice(self.core_start - self.start, self.core_end - self.start)


def cut_windows(sentence: int, n_words: int) -> Iterator[SentenceWindow]:
    """Cut a sentence into windows whose cores cover each word once; none without words."""
    if 0 < n_words <= WINDOW_WORDS + 2 * CONTEXT_WORDS:
        yield SentenceWindow(sentence, 0, n_words, 0, n_words)
        return
    for core in range(0, n_words, WINDOW_WORDS):
        end = min(n_words, core + WINDOW_WORDS)
        yield SentenceWindow(sentence, max(0, core - CONTEXT_WORDS), min(n_words, end + CONTEXT_WORDS), core, end)


@dataclass(frozen=True, eq=False)
class Segmenter:
    """A trained segmenter: one result per sentence, in order, which depends on that sentence only."""

    network: SegmenterNetwork  # on the CPU, in evaluation mode
    settings: SegmenterSettings  # of the network and its training
    vocabulary: WordVocabulary
    scores: dict[str, Any] = field(default_factory=dict)  # on the development set, with the training history
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, settings, seed and data of the training

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.from_bytes(read_bytes(path), where=str(path))

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> Self:
        """Read the content of a model file, which holds tensors and plain values: nothing in it can run code."""
        mend = "train it with `docmt discourse train-segmenter`"
        content = read_tensors(data, where=where, what="a segmenter", mend=mend, format=FORMAT, kind=KIND, keys=KEYS)
        settings = SegmenterSettings.load(content["settings"], where=f"{where}: settings")
        vocabulary = WordVocabulary.from_dict(content["vocabulary"])
        network = SegmenterNetwork(settings.network, vocabulary)
        try:
            network.load_state_dict(content["weights"])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise weights_refused(error, where=where) from None
        return cls(network.eval(), settings, vocabulary, content["scores"], content["provenance"])

    def save(self, path: Path) -> None:
        """Write a model file; it appears only when complete."""
        content = {
            "format": FORMAT,
            "kind": KIND,
            "settings": self.settings.model_dump(),
            "vocabulary": self.vocabulary.to_dict(),
            "weights": self.network.state_dict(),
            "scores": self.scores,
            "provenance": self.provenance,
        }
        with atomic_path(path) as temporary:
            torch.save(content, temporary)

    @property
    def width(self) -> int:
        """Width of the states of the upper BiLSTM."""
        return self.network.upper.width

    @property
    def lower_width(self) -> int:
        """Width of the states of the lower BiLSTM."""
        return self.network.lower.width

    def segment(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """List, for each sentence, the words other than the first at which an EDU begins, in ascending order."""
        starts: list[list[int]] = [[] for _ in sentences]
        for windows, batch, states in self._run(sentences):
            self._add_starts(starts, windows, batch, states)
        return list(map(sorted, starts))

    def read(self, sentences: Sequence[Sequence[str]]) -> list[SentenceReading]:
        """Compute EDU starts and states in one pass."""
        starts: list[list[int]] = [[] for _ in sentences]
        states: list[Tensor] = [torch.empty(len(words), self.width) for words in sentences]
        lower: list[Tensor] = [torch.empty(len(words), self.lower_width) for words in sentences]
        for windows, batch, found in self._run(sentences):
            self._add_starts(starts, windows, batch, found)
            for window, upper_TD, lower_TD in zip(windows, found.upper_BTD, found.lower_BTD, strict=True):
                words = slice(window.core_start, window.core_end)
                states[window.sentence][words] = upper_TD[window.core]
                lower[window.sentence][words] = lower_TD[window.core]
        return [SentenceReading(sorted(found), *both) for found, *both in zip(starts, states, lower, strict=True)]

    def _add_starts(
        self, starts: list[list[int]], windows: Sequence[SentenceWindow], batch: SentenceBatch, states: States
    ) -> None:
        """Add the starts found in the windows to their sentences, in any order."""
        with torch.no_grad():
            labels_BT = self.network.crf.viterbi(self.network.emissions(states), batch.lengths_B)
        for window, labels_T in zip(windows, labels_BT, strict=True):
            found = (labels_T[window.core] == START).nonzero()[:, 0] + window.core_start
            starts[window.sentence] += found.tolist()

    def _run(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[list[SentenceWindow], SentenceBatch, States]]:
        """Yield the states of all windows, in batches of similar length; empty sentences have no window."""
        names, words = number_types(sentences)
        types = WordTypes.encode(names, self.vocabulary)
        windows = [window for number, sentence in enumerate(words) for window in cut_windows(number, len(sentence))]
        if not windows:
            return
        lengths = [window.end - window.start for window in windows]
        order = sorted(range(len(windows)), key=lambda i: (lengths[i], i))
        with torch.no_grad():  # not inference mode: a parser may train on the states
            parts = map(types.select, torch.arange(len(names)).split(MAX_BATCH_TYPES))
            encoded_UD = torch.cat(list(map(self.network.encoder, parts)))
        for chosen in fill_batches(order, MAX_BATCH_WORDS, cost=lengths.__getitem__, padded=True):
            batch = SentenceBatch.pad([words[windows[i].sentence][windows[i].start : windows[i].end] for i in chosen])
            with torch.no_grad():
                states = self.network.states(encoded_UD[batch.index_BT], batch)
            yield [windows[i] for i in chosen], batch, states


def weights_refused(error: Exception, *, where: str) -> UserError:
    """The error for a model file whose weights do not fit its settings."""
    reason = " ".join(str(error).split())[:200]
    return UserError(f"{where}: weights and settings do not match ({reason}): train it again")


def score_starts(
    predicted: Iterable[Sequence[int]], gold: Iterable[Sequence[int]], *, n_sentences: int
) -> dict[str, dict[str, Any]]:
    """Compute micro-averaged scores of EDU starts.

    Both sides list, for each sentence, the words other than the first at which an EDU begins; `n_sentences` have words.
    Precision, recall and F1 are in percent (0 where undefined), with the counts. `inside` scores starts inside
    sentences only, as in Wang et al. (2018). `all` includes the first words of sentences, as in the DISRPT shared
    tasks; these are always right when sentences are given.
    """
    correct = n_predicted = n_gold = 0
    for found, wanted in zip(predicted, gold, strict=True):
        correct += len(set(found) & set(wanted))
        n_predicted += len(found)
        n_gold += len(wanted)
    scores = {}
    for name, more in (("all", n_sentences), ("inside", 0)):
        counts = {"correct": correct + more, "predicted": n_predicted + more, "gold": n_gold + more}
        both, found, wanted = counts.values()
        precision, recall = (100 * both / n if n else 0.0 for n in (found, wanted))
        f1 = 200 * both / (found + wanted) if both else 0.0
        scores[name] = {"precision": precision, "recall": recall, "f1": f1, **counts}
    return scores


def evaluate_segmenter(
    segmenter: Segmenter, gold: Path, *, text: Path | None = None, lang: str | None = None
) -> dict[str, Any]:
    """Segment sentences and score the result against a `*.discourse.jsonl`.

    Words and sentences come from the gold file or, with `text` and `lang`, from a plain text with the same sentences,
    one per line, which is tokenized here.
    """
    documents = read_discourse(gold)
    sentences = sentences_of(documents)
    starts = [found for document in documents for found in inner_starts(document)]
    n_sentences = sum(map(bool, sentences))
    counts = {
        "documents": len(documents),
        "sentences": n_sentences,
        "empty_sentences": len(sentences) - n_sentences,
        "words": sum(map(len, sentences)),
    }
    if text is None or lang is None:
        return {**score_starts(segmenter.segment(sentences), starts, n_sentences=n_sentences), **counts}
    lines = read_lines(text)
    if len(lines) != len(sentences):
        raise UserError(f"{text}: {len(lines)} lines, but {gold} has {len(sentences)} sentences")
    own = [sentence_words(line, lang) for line in lines]
    for number, (words, wanted) in enumerate(zip(own, sentences, strict=True), start=1):
        if "".join(words) != "".join(wanted):
            raise UserError(f"{text}: line {number} is not the text of sentence {number} of {gold}")
    # The tokenizer's words can differ from the gold words: starts are compared as character positions without spaces.
    places = []
    for words_of, starts_of in ((own, segmenter.segment(own)), (sentences, starts)):
        before = ([0, *itertools.accumulate(map(len, words))] for words in words_of)
        places.append([[ends[word] for word in found] for ends, found in zip(before, starts_of, strict=True)])
    counts["sentences_in_the_same_words"] = sum(words == wanted for words, wanted in zip(own, sentences, strict=True))
    return {**score_starts(*places, n_sentences=n_sentences), **counts}
