"""Precision, recall and F1 of EDU starts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.discourse.documents import read_discourse
from docmt.discourse.segmentation.examples import inner_starts
from docmt.discourse.segmentation.prediction import Segmenter


@dataclass(frozen=True)
class Counts:
    """EDU starts found, looked for, and both."""

    correct: int
    predicted: int
    gold: int

    def scores(self) -> dict[str, Any]:
        """Precision, recall and F1 in percent (0 where nothing was predicted, or nothing was there), and the counts."""
        precision = 100 * self.correct / self.predicted if self.predicted else 0.0
        recall = 100 * self.correct / self.gold if self.gold else 0.0
        f1 = 200 * self.correct / (self.predicted + self.gold) if self.correct else 0.0
        counts = {"correct": self.correct, "predicted": self.predicted, "gold": self.gold}
        return {"precision": precision, "recall": recall, "f1": f1, **counts}


def score_starts(
    predicted: Iterable[Sequence[int]], gold: Iterable[Sequence[int]], *, n_sentences: int
) -> dict[str, dict[str, Any]]:
    """Micro-averaged scores.

    Args:
        predicted, gold: the words other than the first at which an EDU begins, for each sentence.
        n_sentences: how many of the sentences have words.

    Returns `inside`: starts inside sentences only, as in Wang et al. (2018); `all`: the first words of sentences too,
    which are always right when sentences are given, as in the DISRPT shared tasks.
    """
    correct = n_predicted = n_gold = 0
    for found, wanted in zip(predicted, gold, strict=True):
        correct += len(set(found) & set(wanted))
        n_predicted += len(found)
        n_gold += len(wanted)
    inside = Counts(correct, n_predicted, n_gold)
    everything = Counts(correct + n_sentences, n_predicted + n_sentences, n_gold + n_sentences)
    return {"all": everything.scores(), "inside": inside.scores()}


def evaluate_file(segmenter: Segmenter, gold: Path) -> dict[str, Any]:
    """Segment the sentences of a `*.discourse.jsonl` anew and score them."""
    documents = read_discourse(gold)
    sentences = [words for document in documents for words in document.sentences]
    starts = [found for document in documents for found in inner_starts(document)]
    n_sentences = sum(map(bool, sentences))
    scores = score_starts(segmenter.segment(sentences), starts, n_sentences=n_sentences)
    counts = {
        "documents": len(documents),
        "sentences": n_sentences,
        "empty_sentences": len(sentences) - n_sentences,
        "words": sum(map(len, sentences)),
    }
    return {**scores, **counts}
