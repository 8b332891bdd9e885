"""Test documents in the reader: source, reference, translations, trees."""

import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from docmt.corpora.documents import text_path
from docmt.discourse.discourse_documents import DiscourseDocument, iterate_discourse
from docmt.evaluation.hypotheses import Hypothesis, read_hypotheses
from docmt.evaluation.references import read_reference
from docmt.files import read_lines
from docmt.logs import Meter

# A translation of one or more sentences: `[text, chrF]`, or `[text, chrF, n]` for a block of n sentences that are
# translated together. None: the sentence belongs to the block of a sentence above.
Cell = list[Any] | None


def read_documents(
    prefix: Path,
    languages: Sequence[str],
    hypotheses: Mapping[int, Path],
    trees: Mapping[str, Sequence[Path]],
) -> list[dict[str, Any]]:
    """Read the documents in a test split.

    Args:
        prefix: raw text prefix.
        languages: source and target.
        hypotheses: files from `docmt decode translate`, by run number.
        trees: files with EDUs and trees, by name.

    Returns:
        In split order, objects with the keys `id`, `src` and `ref` (sentences), `runs` (a Cell per sentence, by run
        number) and `trees` (by name, `[sentence, text, head, relation]` per EDU).
    """
    src_lang, tgt_lang = languages
    index, reference = read_reference(prefix, languages=(src_lang, tgt_lang))
    source = read_lines(text_path(prefix, src_lang))
    documents = []
    start = 0
    for name, length in index:
        end = start + length
        documents.append({"id": name, "src": source[start:end], "ref": reference[start:end], "runs": {}, "trees": {}})
        start = end
    with Meter(len(hypotheses) * index.n_sentences, label="chrF", unit="sentences") as meter:
        for run, path in hypotheses.items():
            cells = iter(align(read_hypotheses(path, index), reference))
            for document in documents:
                document["runs"][run] = list(itertools.islice(cells, len(document["src"])))
            meter.add(index.n_sentences)
    for name, paths in trees.items():
        parses = {parse.id: parse for parse in itertools.chain.from_iterable(map(iterate_discourse, paths))}
        for document in documents:
            if document["id"] in parses:
                document["trees"][name] = list_edus(parses[document["id"]])
    return documents


@cache
def sentence_chrf(translation: str, reference: str) -> float:
    """Return a sentence's chrF2 by sacreBLEU, 0 to 100, rounded to a tenth."""
    return round(CHRF().sentence_score(translation, [reference]).score, 1)


def align(hypotheses: Sequence[Hypothesis], reference: Sequence[str]) -> list[Cell]:
    """Return one Cell per sentence in the split.

    Instances with as many sentences as the source are matched in order. If a model without sentence alignment wrote
    fewer or more, the whole translation is one block, scored against the joined references.
    """
    cells: list[Cell] = []
    for hypothesis in hypotheses:
        n = hypothesis.n_sentences
        references = reference[hypothesis.first_sentence : hypothesis.first_sentence + n]
        if len(hypothesis.sentences) == n:
            pairs = zip(hypothesis.sentences, references, strict=True)
            cells += [[text, sentence_chrf(text, expected)] for text, expected in pairs]
        else:
            text = " ".join(hypothesis.sentences)
            cells += [[text, sentence_chrf(text, " ".join(references)), n], *[None] * (n - 1)]
    return cells


def list_edus(document: DiscourseDocument) -> list[list[Any]]:
    """Return `[sentence, text, head, relation]` per EDU. The head is −1 for the root, None without a tree."""
    texts = [[edu.sentence, join_words(document.edu_words(number))] for number, edu in enumerate(document.edus)]
    if document.tree is None and document.arcs is None:
        return [[*text, None, ""] for text in texts]
    tree = document.dependencies
    return [[*text, head, name] for text, head, name in zip(texts, tree.heads, tree.relations, strict=True)]


def join_words(words: Sequence[str]) -> str:
    """Join words with spaces, except between two full-width characters."""
    pieces = list(words[:1])
    for before, word in itertools.pairwise(words):
        is_solid = before and word and _is_wide(before[-1]) and _is_wide(word[0])
        if not is_solid:
            pieces.append(" ")
        pieces.append(word)
    return "".join(pieces)


def _is_wide(character: str) -> bool:
    """True if a character is full-width, for example a Chinese character."""
    return unicodedata.east_asian_width(character) in "WF"
