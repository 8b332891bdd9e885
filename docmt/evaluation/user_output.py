"""The output of systems made elsewhere, checked and brought into the form of docmt's own."""

from collections.abc import Sequence
from itertools import accumulate, groupby
from math import isnan
from pathlib import Path
from typing import Any

from docmt.corpora.documents import DocumentIndex, index_path, read_index
from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import read_log_probabilities
from docmt.evaluation.further_references import read_more_references, read_sentences
from docmt.evaluation.hypotheses import Hypothesis, read_hypotheses
from docmt.evaluation.metrics import ALIGNER, CONTEXT_WORDS, MODEL, find_metric
from docmt.files import read_lines


def check_user_metrics(metrics: Sequence[str], src_lang: str) -> None:
    """Raises UserError when a metric needs a model, or the source, whose language is empty."""
    for metric in metrics:
        needs = find_metric(metric).needs
        if MODEL in needs:
            raise UserError(f"--settings: metrics: {metric!r} needs the model: only a study computes it")
        if not src_lang and (ALIGNER in needs or metric in CONTEXT_WORDS):
            raise UserError(f"--settings: metrics: {metric!r} reads the source: give its language, --src-lang")


def read_user_references(paths: Sequence[Path]) -> tuple[DocumentIndex, list[list[str]], list[bool]]:
    """Read the references of a test set without a study.

    The first file has a line for each sentence. PREFIX.documents.tsv beside it tells its documents apart or, without
    such a file, its blank lines do.

    Returns:
        The documents, the sentences of each reference, and for each line of the first file whether it is blank between
        documents.
    """
    first, *others = paths
    lines = [line.removesuffix("\r") for line in read_lines(first)]
    beside = index_path(first.with_suffix(""))
    blank = [not beside.exists() and not line.strip() for line in lines]
    runs = [len(list(run)) for is_blank, run in groupby(blank) if not is_blank]
    index = read_index(beside) if beside.exists() else DocumentIndex(tuple(map(str, range(1, len(runs) + 1))), (*runs,))
    reference = [line for line, is_blank in zip(lines, blank, strict=True) if not is_blank]
    if len(reference) != index.n_sentences:
        raise UserError(f"{first}: {len(reference)} lines, but {beside} counts {index.n_sentences} sentences")
    if not reference:
        raise UserError(f"{first}: empty, there is nothing to score")
    return index, [reference, *read_more_references(others, index, reference, blank)], blank


def read_user_hypotheses(path: Path, index: DocumentIndex, blank: Sequence[bool] = ()) -> list[Hypothesis]:
    """Read translations of a split; each document becomes one instance.

    The file is docmt's own JSONL (its name ends in `.jsonl`; it keeps its instances), or text with a line
    for each sentence of the split, or with a line for each document, which is then not aligned by sentences.
    With `blank` (`read_user_references`), text may also have a line for each line of the reference.

    Raises UserError when the file does not fit the split.
    """
    if path.suffix == ".jsonl":
        return read_hypotheses(path, index)
    lines = read_sentences(path, blank)
    n_sentences, n_documents = index.n_sentences, len(index.ids)
    if len(lines) not in (n_sentences, n_documents):
        raise UserError(
            f"{path}: {len(lines)} lines, but the test set has {n_sentences} sentences in {n_documents} documents: "
            "write one line for each sentence, or one for each document"
        )
    # With one sentence in each document, lines are sentences: then all scores can be computed.
    is_aligned = len(lines) == n_sentences
    counts = index.lengths if is_aligned else [1] * n_documents
    starts = accumulate(index.lengths, initial=0)
    ends = list(accumulate(counts))
    return [
        Hypothesis(
            instance=number,
            document=name,
            first_sentence=start,
            n_sentences=length,
            aligned=is_aligned,
            sentences=lines[end - count : end],
        )
        for number, ((name, length), start, end, count) in enumerate(zip(index, starts, ends, counts, strict=False))
    ]


def read_user_log_probabilities(path: Path, items: Sequence[ContrastiveItem]) -> list[dict[str, Any]]:
    """Read scores of the candidates of a suite, in the order of the suite: `{"id", "scores"}` of each item.

    The file is JSON of `docmt decode contrast` (its name ends in `.json`), or text with a line for each item, with the
    scores of its candidates in their order; a higher score is better. Raises UserError when it does not fit the suite.
    """
    if path.suffix == ".json":
        known, _ = read_log_probabilities(path)
        missing = next((item.id for item in items if item.id not in known), None)
        if missing is not None or len(known) != len(items):
            problem = f"lacks item {missing!r}" if missing is not None else f"{len(known)} items for {len(items)}"
            raise UserError(f"{path}: {problem} of the suite: score the same suite")
        rows = [known[item.id] for item in items]
    else:
        lines = read_lines(path)
        if len(lines) != len(items):
            raise UserError(f"{path}: {len(lines)} lines for {len(items)} items: write one line for each item")
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                rows.append([float(word) for word in line.split()])
            except ValueError:
                raise UserError(
                    f"{path}: line {number}: {line!r} is not a list of numbers separated by spaces"
                ) from None
    for number, (item, row) in enumerate(zip(items, rows, strict=True), start=1):
        if len(row) != len(item.candidates) or any(map(isnan, row)):
            raise UserError(
                f"{path}: item {number} ({item.id}) has {len(item.candidates)} candidates, but its scores are {row}"
            )
    return [{"id": item.id, "scores": row} for item, row in zip(items, rows, strict=True)]
