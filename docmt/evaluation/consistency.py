"""Consistency within documents, without annotation: of terms (by word alignment) and of forms of address (by lists).

A choice is the translation of a term, or the form of address of a sentence. Each repetition within a document is
compared with the occurrence before it. The accuracy of consistency is the share of repetitions with the same choice as
before, among those where the reference has the same choice as before. Controls are separate rows (by `kind`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from random import Random

from docmt.evaluation.external_programs import NotComputableError, missing_row
from docmt.evaluation.metrics import ADDRESS, TERMS, TranslatedTest
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.word_alignment import Link, Pair, Text
from docmt.evaluation.word_lists import AddressForms
from docmt.evaluation.words import describe_words, word_splitter

MIN_LETTERS = {"zh": 2, "ja": 2}  # of the shortest term where four is too many
STEM = 5  # letters that decide whether two words are one choice: endings of German or Russian do not count
SEED = 1


@dataclass(frozen=True)
class TermUse:
    """Choices of reference and hypothesis for a term in a sentence; empty where nothing was found."""

    sentence: int
    document: str
    term: str
    reference: frozenset[str]
    hypothesis: frozenset[str]


def score_consistency(test: TranslatedTest) -> list[ScoreRow]:
    """Rows of the metrics that the settings name; none for hypotheses that are not aligned by sentences."""
    rows: list[ScoreRow] = []
    makers = {ADDRESS: find_addresses, TERMS: find_terms}
    for name in test.settings.metrics if test.is_aligned else ():
        if name not in makers:
            continue
        try:
            occurrences, signature = makers[name](test)
        except NotComputableError as reason:
            rows.append(missing_row(name, reason))
            continue
        rows += describe_consistency(name, occurrences, test.documents, signature=signature)
    return rows


def find_addresses(test: TranslatedTest) -> tuple[list[TermUse], str]:
    """The sentences in which the reference addresses somebody, and the signature."""
    forms, split = AddressForms.of(test.tgt_lang), word_splitter(test.tgt_lang)
    occurrences = [
        TermUse(i, document, "address", *(forms.find(split(sentence)) for sentence in pair))
        for i, (document, *pair) in enumerate(zip(test.documents, test.reference, test.sentences, strict=True))
    ]
    signature = f"forms of address:{test.tgt_lang}|words:{describe_words(test.tgt_lang)}"
    return [found for found in occurrences if found.reference], signature


def find_terms(test: TranslatedTest) -> tuple[list[TermUse], str]:
    """The occurrences of source terms with their counterparts, and the signature."""
    text, links, signature = test.alignment
    uses = list_terms(text, test.documents, links, test.src_lang, test.tgt_lang)
    return uses, f"terms|stem:{STEM} letters|{signature}"


def list_terms(
    text: Text, documents: Sequence[str], links: dict[Pair, set[Link]], src_lang: str, tgt_lang: str
) -> list[TermUse]:
    """Occurrences of terms: words of at least four letters that at most half of the documents have."""
    in_documents = {(word, document) for words, document in zip(text.source, documents, strict=True) for word in words}
    spread = Counter(word for word, _ in in_documents)
    limit = max(1, len(set(documents)) // 2)
    found = []
    for number, (document, source, *sides) in enumerate(
        zip(documents, text.source, text.hypothesis, text.reference, strict=True)
    ):
        for position, word in enumerate(source):
            if spread[word] <= limit and is_content(word, src_lang):
                ours, theirs = (
                    # Cut before they are compared: a term keeps its stem where its ending follows the grammar.
                    frozenset(
                        side[j][:STEM]
                        for i, j in links[tuple(source), tuple(side)]
                        if i == position and is_content(side[j], tgt_lang)
                    )
                    for side in sides
                )
                found.append(TermUse(number, document, word, reference=theirs, hypothesis=ours))
    return found


def is_content(word: str, lang: str) -> bool:
    """Whether a word is long enough to mean something; numbers and marks are not."""
    return word.isalpha() and len(word) >= MIN_LETTERS.get(lang, 4)


def describe_consistency(
    metric: str, occurrences: Sequence[TermUse], documents: Sequence[str], *, signature: str
) -> list[ScoreRow]:
    """The accuracy of consistency, and its controls by `kind`; a value is None where nothing repeats."""

    def row(kind: str | None, results: Iterable[bool]) -> ScoreRow:
        found = list(results)
        value = 100 * sum(found) / len(found) if found else None
        return {"metric": metric, "value": value, "n": len(found), "kind": kind, "signature": signature}

    # The control keeps the choices and the lengths of documents, and breaks only the link of sentences to documents.
    shuffled = list(documents)
    Random(SEED).shuffle(shuffled)
    dealt = [replace(use, document=shuffled[use.sentence]) for use in occurrences]
    pairs = list(repetitions(occurrences))
    # One choice in common is enough: a term may have two translations in a sentence.
    ours = [bool(before.hypothesis & now.hypothesis) for before, now in pairs]
    theirs = [bool(before.reference & now.reference) for before, now in pairs]
    return [
        row(None, compress(ours, theirs)),
        row("hypothesis", ours),
        row("reference", theirs),
        row("shuffled documents", (bool(before.hypothesis & now.hypothesis) for before, now in repetitions(dealt))),
    ]


def repetitions(occurrences: Iterable[TermUse]) -> Iterable[tuple[TermUse, TermUse]]:
    """Each occurrence in another sentence than the one before it in its document, with that one."""
    before: dict[tuple[str, str], TermUse] = {}
    for use in occurrences:
        last = before.get((use.document, use.term))
        if last is not None and last.sentence != use.sentence:
            yield last, use
        before[use.document, use.term] = use
