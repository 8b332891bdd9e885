"""Accuracy of pronoun translation (APT, Miculicich Werlen and Popescu-Belis 2017).

Word alignment maps source pronouns to their counterparts in the reference and the hypothesis, which are compared.
Cases, weights and the search for unaligned pronouns follow the authors' program. Words outside the lists do not: they
match if they are equal (docs/deviations.md).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Self

import yaml
from pydantic import Field, field_validator

from docmt.evaluation.external_programs import NotComputableError, find_program, missing_row
from docmt.evaluation.score_rows import ScoreRow, group_means
from docmt.evaluation.scoring import TranslatedTest
from docmt.evaluation.word_alignment import PROGRAM, Link, Pair, Text, align_words, describe_aligner, read_training
from docmt.evaluation.words import describe_words
from docmt.languages import language_of
from docmt.settings import Settings

WEIGHTS = {
    "identical": 1.0,
    "equivalent": 0.5,
    "different": 0.0,
    "no hypothesis": 0.0,
    "no reference": 0.0,
    "neither": 0.0,
}
"""Case weights. In the last three cases, the source pronoun has no counterpart on at least one side."""
WINDOW = 2  # number of words on either side that are searched for a pronoun
LISTS = Path(__file__).parent / "data/pronouns"


class PronounLists(Settings):
    """Pronouns for a language pair, in lower case. Nested lists are flattened."""

    source: list[str] = Field(min_length=1)
    """Source pronouns to evaluate."""
    target: list[str] = Field(min_length=1)
    """Target pronouns to search for if the alignment finds none."""
    identical: list[list[str]]
    """Groups with forms of the same pronoun."""
    equivalent: list[list[str]]
    """Groups of words that count half when they replace one another."""

    @classmethod
    def of(cls, src_lang: str, tgt_lang: str) -> Self:
        """Read the lists for a language pair. Raises NotComputableError if there are none."""
        path = LISTS / f"{language_of(src_lang)}-{language_of(tgt_lang)}.yaml"
        if not path.is_file():
            pairs = ", ".join(sorted(file.stem for file in LISTS.glob("*.yaml")))
            raise NotComputableError(f"there is no list of pronouns for {src_lang}-{tgt_lang} (only for {pairs})")
        return cls.load(yaml.safe_load(path.read_text(encoding="utf-8")), where=path.name)

    @field_validator("source", "target", mode="before")
    @classmethod
    def _flatten(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(part, list) for part in value):
            return list(chain.from_iterable(value))
        return value

    def normalize(self, word: str) -> str:
        """Return the first word in the group of identical words, or the word itself."""
        for group in self.identical:
            if word in group:
                return group[0]
        return word


Occurrence = tuple[str, str]
"""A source pronoun and its case (key in `WEIGHTS`)."""


def score_pronouns(test: TranslatedTest) -> list[ScoreRow]:
    """Return APT as the mean over eflomal alignments. Empty for hypotheses that are not aligned by sentence.

    Without aligner or pronoun lists, the value is None, and signature and log contain the reason.
    """
    if not test.is_aligned:
        return []
    try:
        lists = PronounLists.of(test.src_lang, test.tgt_lang)
    except NotComputableError as reason:
        return [missing_row("APT", reason)]
    program = find_program(PROGRAM)
    if program is None:
        return [missing_row("APT", "the word aligner is not installed: pip install eflomal (needs a C compiler)")]
    text = Text.of(test)
    # Aligned together with the test set, because more text improves the alignment.
    training = read_training(test)
    pairs = [*text.pairs, *training]
    occurrences = []
    for _ in range(test.settings.aligner_runs):
        links = align_words(pairs, program=program)[: len(text.pairs)]
        occurrences.append(find_occurrences(text, links, lists))
    weights = "+".join(f"{weight:g} {case}" for case, weight in WEIGHTS.items() if weight)
    languages = test.src_lang, test.tgt_lang
    words = " ".join(map(describe_words, languages))
    signature = (
        f"weights:{weights}|pronouns:{'-'.join(languages)}|search:as authors|other words:compared"
        f"|aligner:{describe_aligner()}|runs:{len(occurrences)}|training pairs:{len(training)}|case:lc|words:{words}"
    )
    documents = []
    for document, source in zip(test.documents, text.source, strict=True):
        documents += [document for word in source if word in lists.source]
    return describe_occurrences(occurrences, documents, signature=signature)


def find_occurrences(text: Text, links: Sequence[set[Link]], lists: PronounLists) -> list[Occurrence]:
    """Return the source pronouns with their cases, in order. `links` are alignments for `text.pairs`."""
    n = len(text.source)
    occurrences = []
    for i, source in enumerate(text.source):
        for position, word in enumerate(source):
            if word in lists.source:
                ours = find_counterparts(position, (source, text.hypothesis[i]), links[i], lists)
                theirs = find_counterparts(position, (source, text.reference[i]), links[n + i], lists)
                occurrences.append((word, classify(ours, theirs, lists)))
    return occurrences


def find_counterparts(position: int, pair: Pair, links: set[Link], lists: PronounLists) -> list[str]:
    """Return the target words that are aligned with a source pronoun, as in the authors' program."""
    source, target = pair
    positions = sorted(j for i, j in links if i == position)
    aligned_words = [target[j] for j in positions]
    # Only words in the lists count, unless no aligned word is in them.
    listed_words = set(chain(lists.target, *lists.identical, *lists.equivalent))
    words = [word for word in aligned_words if word in listed_words]
    # The authors' program should search around an unaligned source word, but its loop over the neighbors is empty.
    if not positions or not {*words}.isdisjoint(lists.target):
        return words
    near = range(max(positions[0] - WINDOW, 0), min(positions[-1] + WINDOW, len(target) - 1) + 1)
    linked = {j for i, j in links if source[i] in lists.source}
    free = [j for j in near if target[j] in lists.target and j not in linked]
    if free:
        # Two words in the middle of an even number of words, or three of an odd number, are equally near. The first is
        # used. The program joins aligned words that are in the lists, but are not target pronouns.
        double_center = near[0] + near[-1]
        words.append(target[min(free, key=lambda j: (max(abs(2 * j - double_center), 2 * (len(near) % 2)), j))])
    return words or aligned_words


def classify(hypothesis: Iterable[str], reference: Iterable[str], lists: PronounLists) -> str:
    """Return a source pronoun's case (key in `WEIGHTS`) from the counterparts in hypothesis and reference."""
    ours = set(map(lists.normalize, hypothesis))
    theirs = set(map(lists.normalize, reference))
    if not theirs:
        return "no reference" if ours else "neither"
    if not ours:
        return "no hypothesis"
    if ours & theirs:
        return "identical"
    for group in lists.equivalent:
        words = set(map(lists.normalize, group))
        if ours & words and theirs & words:
            return "equivalent"
    return "different"


def describe_occurrences(
    runs: Sequence[Sequence[Occurrence]], documents: Sequence[str], *, signature: str
) -> list[ScoreRow]:
    """Return APT rows: total, source pronouns (by `kind`), and case shares (`APT cases`, by `kind`).

    The runs have the same source pronouns, in these documents, with different alignments. A value is the mean over
    runs, or None without source pronouns. `low` and `high` are the lowest and the highest run.
    """
    pronouns = [pronoun for pronoun, _ in runs[0]]

    def row(name: str, weights: Mapping[str, float], *, of: str | None = None, kind: str | None = None) -> ScoreRow:
        scored = [index for index, pronoun in enumerate(pronouns) if of in (None, pronoun)]
        row: ScoreRow = {"metric": name, "value": None, "n": len(scored), "kind": kind, "signature": signature}
        if not scored:
            return {**row, "low": None, "high": None}
        points = []
        for run in runs:
            points.append([100 * weights[run[index][1]] for index in scored])
        values = list(map(fmean, points))
        means = list(map(fmean, zip(*points, strict=True)))
        groups = group_means(means, [documents[index] for index in scored])
        return {**row, "value": fmean(values), "low": min(values), "high": max(values), "groups": groups}

    rows = [row("APT", WEIGHTS)]
    if not pronouns:
        return rows
    for pronoun, _ in Counter(pronouns).most_common():
        rows.append(row("APT", WEIGHTS, of=pronoun, kind=pronoun))
    for case in WEIGHTS:
        rows.append(row("APT cases", dict.fromkeys(WEIGHTS, 0.0) | {case: 1.0}, kind=case))
    return rows
