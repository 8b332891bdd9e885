"""Words of a translation whose choice depends on earlier sentences, after MuDA (Fernandes et al. 2023).

MuDA finds them by models of syntax and coreference; here lists of words, a word alignment and rules do. Reference and
hypothesis are tagged each by itself, and the tagged words of the two are compared sentence by sentence.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from docmt.corpora.documents import DocumentIndex
from docmt.evaluation.consistency import STEM, list_terms
from docmt.evaluation.external_programs import NotComputableError, missing_row
from docmt.evaluation.metrics import CONTEXT_WORDS, SegmentCounts, TranslatedTest
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.word_lists import AddressForms, PronounLists, SourceWords
from docmt.evaluation.words import describe_words, lower_case_splitter, word_splitter

log = logging.getLogger(__name__)
Side = Literal["hypothesis", "reference"]


@dataclass(frozen=True)
class Tag:
    """A tagged word in a sentence of the split, from 0; words match if sentence and form do."""

    sentence: int
    word: str
    form: str
    why: str
    """The class of address, or the source word."""
    before: int | None = None
    """The earlier sentence that the rule asks for."""


def tag_addresses(test: TranslatedTest, side: Side) -> Iterator[Tag]:
    """Forms of address for an English *you* (or the like) whose class has occurred in an earlier sentence."""
    forms, source_words = AddressForms.of(test.tgt_lang), SourceWords.of(test.src_lang)
    split_source, split_target = lower_case_splitter(test.src_lang), word_splitter(test.tgt_lang)
    sentences = test.reference if side == "reference" else test.sentences
    before: dict[tuple[str, str], int] = {}
    for number, (document, src, tgt) in enumerate(zip(test.documents, test.read_source(), sentences, strict=True)):
        says_you, is_clear = source_words.find(split_source(src))
        words = split_target(tgt)
        classes = forms.classify(words, is_clear=is_clear)
        for word, name in zip(words, classes, strict=True):
            if says_you and name and (last := before.get((document, name))) is not None:
                yield Tag(number, word, word.lower(), name, last)
        before |= {(document, name): number for name in classes if name}


def tag_pronouns(test: TranslatedTest, side: Side) -> Iterator[Tag]:
    """Pronouns whose gender the source pronoun does not tell, without a noun before them in their sentence."""
    lists, source_words = PronounLists.of(test.src_lang, test.tgt_lang), SourceWords.of(test.src_lang)
    forms, split = AddressForms.of(test.tgt_lang), word_splitter(test.tgt_lang)
    text, links, _ = test.alignment
    sentences = test.reference if side == "reference" else test.sentences
    documents = ["", *test.documents]
    for number, (source, target, sentence) in enumerate(zip(text.source, getattr(text, side), sentences, strict=True)):
        if documents[number] != documents[number + 1]:
            continue  # nothing comes before the first sentence of a document
        words = split(sentence)
        classes = forms.classify(words)
        # A capital inside a sentence begins a noun or a name.
        nouns = [j for j, word in enumerate(words) if j and word[0].isupper() and not classes[j]]
        found: dict[int, Tag] = {}
        for i, j in sorted(links[tuple(source), tuple(target)]):
            others = lists.ambiguous.get(source[i], {}).get(target[j])
            if others is None or classes[j] or not {*source}.isdisjoint(others):
                continue  # the word stands for somebody else, or may do so
            if {*source[:i]}.isdisjoint(source_words.determiners) and not any(noun < j for noun in nouns):
                found[j] = Tag(number, words[j], target[j], source[i])
        yield from found.values()


def tag_terms(test: TranslatedTest, side: Side) -> Iterator[Tag]:
    """Translations of terms that the term has had in an earlier sentence of the document; not words that are copied."""
    text, links, _ = test.alignment
    function_words = SourceWords.of(test.src_lang).function_words
    before: dict[tuple[str, str, str], int] = {}
    for use in list_terms(text, test.documents, links, test.src_lang, test.tgt_lang):
        for stem in sorted(getattr(use, side) - {use.term[:STEM]}):
            last = before.setdefault((use.document, use.term, stem), use.sentence)
            if last < use.sentence and use.term not in function_words:
                word = next(word for word in getattr(text, side)[use.sentence] if word.startswith(stem))
                yield Tag(use.sentence, word, stem, use.term, last)


Tagger = Callable[[TranslatedTest, Side], Iterator[Tag]]
TAGGERS: dict[str, Tagger] = dict(zip(CONTEXT_WORDS, (tag_addresses, tag_pronouns, tag_terms), strict=True))


def list_tags(test: TranslatedTest, index: DocumentIndex) -> list[tuple[str, ...]]:
    """Document, sentence in the document, word, class and reason of each tag of the hypotheses, in their order."""
    places = [(name, number) for name, length in index for number in range(1, length + 1)]
    rows = []
    for metric, find_tags in TAGGERS.items():
        try:
            for tag in find_tags(test, "hypothesis"):
                why = tag.why if tag.before is None else f"{tag.why}, as in sentence {places[tag.before][1]}"
                rows.append((tag.sentence, *map(str, places[tag.sentence]), tag.word, metric, why))
        except NotComputableError as reason:
            log.warning("no tags of %s: %s", metric, reason)
    return [row[1:] for row in sorted(rows)]


def score_context_words(test: TranslatedTest, name: str) -> list[ScoreRow]:
    """F1 of a class and, by `kind`, its precision, its recall and the share of documents with tags."""
    if not test.is_aligned:
        return []
    try:
        counts = test.counts(name)
    except NotComputableError as reason:
        return [missing_row(name, reason)]
    matched, ours, theirs = map(int, counts.rows.sum(0))
    tagged = int((counts.rows[:, 2] > 0).sum())
    signature = f"F1|languages:{test.src_lang}-{test.tgt_lang}|words:{describe_words(test.tgt_lang)}"
    if name != CONTEXT_WORDS[0]:
        signature += f"|{test.alignment.signature}"

    def row(kind: str | None, part: float, whole: float, n: int) -> ScoreRow:
        value = 100 * part / whole if whole else None
        return {"metric": name, "value": value, "n": n, "kind": kind, "signature": signature}

    return [
        row(None, 2 * matched, ours + theirs, theirs),
        row("precision", matched, ours, ours),
        row("recall", matched, theirs, theirs),
        row("documents", tagged, len(counts.rows), len(counts.rows)),
    ]


def count_context_words(test: TranslatedTest, name: str) -> SegmentCounts:
    """Matched words, and tagged words of hypothesis and reference, of each document.

    Raises NotComputableError without lists, the aligner, or words of this class in the reference.
    """
    if not test.is_aligned:
        raise NotComputableError("the hypotheses are not aligned by sentences")
    ours, theirs = (Counter((tag.sentence, tag.form) for tag in TAGGERS[name](test, side)) for side in get_args(Side))
    if not theirs:
        raise NotComputableError("the reference has no such words")
    documents = test.documents
    numbers = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    rows = np.zeros((len(numbers), 3))
    # Each word of the reference matches one of the hypothesis.
    for column, counter in enumerate([ours & theirs, ours, theirs]):
        for (sentence, _), n in counter.items():
            rows[numbers[documents[sentence]], column] += n
    return SegmentCounts(rows, lambda sums: 200 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1))
