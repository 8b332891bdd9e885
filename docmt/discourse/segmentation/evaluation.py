"""Precision, recall and F1 of EDU starts."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docmt.discourse.documents import read_discourse
from docmt.discourse.segmentation.examples import inner_starts
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.errors import UserError
from docmt.files import read_lines
from docmt.text.tokenizer import sentence_words


def score_starts(
    predicted: Iterable[Sequence[int]], gold: Iterable[Sequence[int]], *, n_sentences: int
) -> dict[str, dict[str, Any]]:
    """Compute micro-averaged scores of EDU starts.

    Args:
        predicted: for each sentence, the words other than the first at which a predicted EDU begins.
        gold: the same for gold EDUs.
        n_sentences: number of sentences that have words.

    Returns:
        Precision, recall and F1 in percent (0 where undefined), with the counts. `inside` scores starts inside
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
    sentences = [words for document in documents for words in document.sentences]
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
