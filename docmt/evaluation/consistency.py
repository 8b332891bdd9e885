"""Consistency within documents, without annotation: of terms (by word alignment) and of forms of address (by lists).

A choice is the translation of a term, or the form of address of a sentence. Each repetition within a document is
compared with the occurrence before it. The accuracy of consistency is the share of repetitions with the same choice as
before, among those where the reference has the same choice as before. Controls are separate rows (by `kind`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from random import Random
from re import fullmatch
from typing import NamedTuple, Self

from pydantic import Field

from docmt.evaluation.bleu import describe_words, word_tokenizer
from docmt.evaluation.external_programs import NotComputableError, load_lists, missing_row
from docmt.evaluation.metrics import ADDRESS, TERMS, EvaluationSettings, TranslatedTest
from docmt.evaluation.pronouns import Text, read_training
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.word_alignment import Link, Pair, align_words, describe_aligner, find_aligner
from docmt.settings import Settings

FOLDER = Path(__file__).parent / "data/address"
MIN_LETTERS = {"zh": 2, "ja": 2}
"""Letters of the shortest term where four is too many."""
STEM = 5
"""Letters that decide whether two words are one choice: endings of German or Russian do not count."""
SEED = 1


@dataclass(frozen=True)
class TermUse:
    """Choices of reference and hypothesis for a term in a sentence; empty where nothing was found."""

    sentence: int
    document: str
    term: str
    reference: frozenset[str]
    hypothesis: frozenset[str]


class AddressForms(Settings):
    """Words that address somebody, of one language, by class (such as `singular`), in lower case."""

    informal: dict[str, list[str]] = Field(min_length=1)
    formal: dict[str, list[str]] = Field(min_length=1)
    """As written if `capitals_matter`."""
    capitals_matter: bool = False
    """Whether formal words count as written, and not at the beginning of a sentence."""
    by_source: dict[str, dict[str, str]] = {}
    """Words, as written, that address somebody if the source decides it and the next word has this pattern."""

    @classmethod
    def of(cls, lang: str) -> Self:
        """The lists of a language. Raises NotComputableError when there are none."""
        return load_lists(cls, FOLDER, lang, what="forms of address")

    def find(self, words: Sequence[str]) -> frozenset[str]:
        """The forms in a sentence: `informal`, `formal`, both or none."""
        found = {*self.classify(words)}
        return frozenset(name for name in ("informal", "formal") if found & getattr(self, name).keys())

    def classify(self, words: Sequence[str], *, is_clear: bool = False) -> list[str | None]:
        """The class of each word of a sentence; None where the word addresses nobody, or may mean somebody else.

        `is_clear` says that the source addresses somebody and has no third person whom such a word could mean.
        """
        informal, formal = ({word: name for name in of for word in of[name]} for of in (self.informal, self.formal))
        by_source = {word: (name, of[word]) for name, of in self.by_source.items() for word in of}
        found = []
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
            name, pattern = by_source.get(word, (None, ""))
            if not (is_clear and name and fullmatch(pattern, after)):
                name = informal.get(word.lower())
                # A capital counts only after a word or a comma: the first word of a sentence or quotation has one.
                if not self.capitals_matter:
                    name = name or formal.get(word.lower())
                elif any(map(str.isalnum, before)) or before == ",":
                    name = name or formal.get(word)
            found.append(name)
        return found


class SourceWords(Settings):
    """Words of a source language on which the need of context depends, in lower case."""

    you: list[str] = Field(min_length=1)
    """Words that address somebody without telling by which form."""
    others: list[str]
    """Third persons who may be meant by the same forms."""
    determiners: list[str]
    """Words before a noun."""
    function_words: list[str]
    """Words of at least four letters that are no terms."""

    @classmethod
    def of(cls, lang: str) -> Self:
        """The lists of a language. Raises NotComputableError when there are none."""
        return load_lists(cls, FOLDER.parent / "source", lang, what="source words")

    def find(self, words: Sequence[str]) -> tuple[bool, bool]:
        """Whether a sentence, in lower case, addresses somebody, and whether it does so without third persons."""
        says_you = not {*words}.isdisjoint(self.you)
        return says_you, says_you and {*words}.isdisjoint(self.others)


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
        rows += describe_consistency(name, occurrences, owners(test), signature=signature)
    return rows


def owners(test: TranslatedTest) -> list[str]:
    """The document of each sentence."""
    return [part.document for part in test.hypotheses for _ in range(part.n_sentences)]


def find_addresses(test: TranslatedTest) -> tuple[list[TermUse], str]:
    """The sentences in which the reference addresses somebody, and the signature."""
    forms, tokenize = AddressForms.of(test.tgt_lang), word_tokenizer(EvaluationSettings(), test.tgt_lang)
    occurrences = [
        TermUse(i, document, "address", *(forms.find(tokenize(sentence).split()) for sentence in pair))
        for i, (document, *pair) in enumerate(zip(owners(test), test.reference, test.sentences, strict=True))
    ]
    words = describe_words(EvaluationSettings(), test.tgt_lang)
    return [found for found in occurrences if found.reference], f"forms of address:{test.tgt_lang}|words:{words}"


class Alignment(NamedTuple):
    """The words of a test, the links of its pairs of sentences, and how they were found."""

    text: Text
    links: dict[Pair, set[Link]]
    signature: str


def align_test(test: TranslatedTest) -> Alignment:
    """Align source with reference and hypothesis. Raises NotComputableError without the aligner."""
    program = find_aligner()
    text = Text.of(test)
    training = read_training(test)
    # A translation that equals the reference gets the same links.
    pairs: list[Pair] = list(dict.fromkeys((tuple(src), tuple(tgt)) for src, tgt in [*text.pairs, *training]))
    links = dict(zip(pairs, align_words(pairs, program=program), strict=True))
    return Alignment(text, links, f"aligner:{describe_aligner()}|training pairs:{len(training)}|case:lc")


def find_terms(test: TranslatedTest) -> tuple[list[TermUse], str]:
    """The occurrences of source terms with their counterparts, and the signature."""
    text, links, signature = test.alignment
    uses = list_terms(text, owners(test), links, test.src_lang, test.tgt_lang)
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
