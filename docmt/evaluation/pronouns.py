"""Accuracy of pronoun translation, APT (Miculicich Werlen and Popescu-Belis 2017).

Each source pronoun is mapped by word alignment to its counterparts in the reference and in the hypothesis, which are
compared. Cases, weights and, in the metric `APT`, the search for pronouns that the alignment misses follow the authors'
program.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Self

from pydantic import Field, field_validator

from docmt.corpora.documents import text_path
from docmt.errors import UserError
from docmt.evaluation.bleu import describe_words, word_tokenizer
from docmt.evaluation.external_programs import NotComputableError, load_lists, missing_row
from docmt.evaluation.metrics import EvaluationSettings, TranslatedTest
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.word_alignment import Link, Pair, align_words, describe_aligner, find_aligner
from docmt.files import iterate_lines, read_lines
from docmt.settings import Settings

FOLDER = Path(__file__).parent / "data" / "pronouns"
WEIGHTS = {
    "identical": 1.0,
    "equivalent": 0.5,
    "different": 0.0,
    "no hypothesis": 0.0,
    "no reference": 0.0,
    "neither": 0.0,
}
"""Weight of each case; in the last three the source pronoun has no counterpart on at least one side."""
WINDOW = 2
"""Number of words on each side that are searched for a pronoun."""


class PronounLists(Settings):
    """Pronouns of a language pair, in lower case. Nested lists are flattened."""

    source: list[str] = Field(min_length=1)
    """Source pronouns to evaluate."""
    target: list[str] = Field(min_length=1)
    """Target pronouns to look for where the alignment finds none."""
    identical: list[list[str]]
    """Groups of forms of the same pronoun."""
    equivalent: list[list[str]]
    """Groups of words that count half for each other."""
    ambiguous: dict[str, dict[str, list[str]]]
    """By source pronoun, the target pronouns among which it does not decide, each with its other sources."""

    @field_validator("source", "target", mode="before")
    @classmethod
    def _flatten(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(part, list) for part in value):
            return [word for part in value for word in part]
        return value

    @classmethod
    def of(cls, src_lang: str, tgt_lang: str) -> Self:
        """The lists of a language pair. Raises NotComputableError when there are none."""
        return load_lists(cls, FOLDER, f"{src_lang}-{tgt_lang}", what="pronouns")

    def normalize(self, word: str) -> str:
        """The first word of the group of identical ones, or the word itself."""
        return next((group[0] for group in self.identical if word in group), word)

    def is_target(self, word: str) -> bool:
        """Whether a target word counts as a pronoun where it is aligned."""
        return any(word in group for group in (self.target, *self.identical, *self.equivalent))


Search = Callable[[int, Pair, set[Link], PronounLists], list[str]]
"""Finds the counterparts of the source pronoun at a position in a target sentence."""


@dataclass(frozen=True)
class Occurrence:
    """A source pronoun and its case, a key of `WEIGHTS`."""

    pronoun: str
    case: str


@dataclass(frozen=True)
class Text:
    """Words of a test set, by sentence and in lower case."""

    source: list[list[str]]
    hypothesis: list[list[str]]
    reference: list[list[str]]

    @classmethod
    def of(cls, test: TranslatedTest) -> Self:
        """The words of a test whose hypotheses are aligned."""
        cut_source, cut_target = word_cutter(test.src_lang), word_cutter(test.tgt_lang)
        return cls(
            source=[cut_source(sentence) for sentence in read_source(test)],
            hypothesis=[cut_target(sentence) for sentence in test.sentences],
            reference=[cut_target(sentence) for sentence in test.reference],
        )

    @property
    def pairs(self) -> list[Pair]:
        """Source and hypothesis of each sentence, then source and reference of each."""
        return [*zip(self.source, self.hypothesis, strict=True), *zip(self.source, self.reference, strict=True)]


def word_cutter(lang: str) -> Callable[[str], list[str]]:
    """A function from a sentence to its words in lower case: by jieba for Chinese, by Moses otherwise."""
    tokenize = word_tokenizer(EvaluationSettings(), lang)
    return lambda sentence: tokenize(sentence).lower().split()


def score_pronouns(test: TranslatedTest) -> list[ScoreRow]:
    """APT, by each search that the settings name (`APT` if they name none), as the mean over alignments by eflomal.

    Hypotheses that are not aligned by sentences give no rows. Without the aligner or lists of pronouns, a row has the
    value None, and its signature and the log say why.
    """
    # Aligned together with the test: the aligner learns from it which words belong together.
    training = read_training(test)
    if not test.is_aligned:
        return []
    metrics = [name for name in SEARCHES if name in test.settings.metrics] or ["APT"]
    try:
        lists, program = PronounLists.of(test.src_lang, test.tgt_lang), find_aligner()
    except NotComputableError as reason:
        return [missing_row(metric, reason) for metric in metrics]
    text = Text.of(test)
    pairs = [*text.pairs, *training]
    runs = [align_words(pairs, program=program)[: len(text.pairs)] for _ in range(test.settings.aligner_runs)]
    weights = "+".join(f"{weight:g} {case}" for case, weight in WEIGHTS.items() if weight)
    languages = test.src_lang, test.tgt_lang
    words = " ".join(describe_words(EvaluationSettings(), lang) for lang in languages)
    rows = []
    for metric in metrics:
        search = SEARCHES[metric]
        signature = (
            f"weights:{weights}|pronouns:{'-'.join(languages)}"
            f"|search:{search.__name__.removeprefix('find_').replace('_', ' ')}"
            f"|aligner:{describe_aligner()}|runs:{len(runs)}|training pairs:{len(training)}|case:lc|words:{words}"
        )
        found = [find_occurrences(text, links, lists, search=search) for links in runs]
        rows += describe_occurrences(found, metric=metric, signature=signature)
    return rows


def read_source(test: TranslatedTest) -> list[str]:
    """The source sentences. Raises UserError where they are not as many as those of the reference."""
    path = text_path(test.prefix, test.src_lang)
    lines = read_lines(path)
    if len(lines) != len(test.reference):  # a file of the user, like the reference, may separate documents by blanks
        lines = [line for line in lines if line.strip()]
    if len(lines) != len(test.reference):
        raise UserError(f"{path}: {len(lines)} sentences, but the reference has {len(test.reference)}")
    return lines


def read_training(test: TranslatedTest) -> list[Pair]:
    """The words of the first sentence pairs of the training text, if there is any."""
    if test.training is None:
        return []
    languages = test.src_lang, test.tgt_lang
    files = [iterate_lines(text_path(test.training, lang)) for lang in languages]
    lines = [list(islice(file, test.settings.aligner_sentences)) for file in files]
    if len(lines[0]) != len(lines[1]):
        raise UserError(
            f"{test.training}: {len(lines[0])} lines of {test.src_lang} for {len(lines[1])} of {test.tgt_lang}: these "
            "are not the two sides of one text"
        )
    cut_source, cut_target = map(word_cutter, languages)
    return [(cut_source(src), cut_target(tgt)) for src, tgt in zip(*lines, strict=True)]


def find_occurrences(
    text: Text, links: Sequence[set[Link]], lists: PronounLists, *, search: Search
) -> list[Occurrence]:
    """The case of each source pronoun, in order; `links` are alignments of `text.pairs`."""
    n = len(text.source)
    pronouns = set(lists.source)
    found = []
    for i, source in enumerate(text.source):
        for position, word in enumerate(source):
            if word in pronouns:
                ours = search(position, (source, text.hypothesis[i]), links[i], lists)
                theirs = search(position, (source, text.reference[i]), links[n + i], lists)
                found.append(Occurrence(word, classify(ours, theirs, lists)))
    return found


def find_as_authors(position: int, pair: Pair, links: set[Link], lists: PronounLists) -> list[str]:
    """The target words aligned with a source pronoun, as the authors' program finds them."""
    _, target = pair
    positions = sorted(j for i, j in links if i == position)
    # Only words of the lists count, unless no aligned word is in them.
    words = [target[j] for j in positions if lists.is_target(target[j])]
    # The program was meant to search around a source word without links, but its loop over the neighbors is empty.
    if not positions or any(word in lists.target for word in words):
        return words
    near = _near(positions, target)
    if free := _free_pronouns(near, pair, links, lists):
        # Two words in the middle of an even number, and three of an odd one, are equally near; the first one is taken.
        # It joins aligned words that are in the lists, but no target pronouns.
        double_center = near[0] + near[-1]
        words.append(target[min(free, key=lambda j: (max(abs(2 * j - double_center), 2 * (len(near) % 2)), j))])
    return words or [target[j] for j in positions]


def find_beside_neighbors(position: int, pair: Pair, links: set[Link], lists: PronounLists) -> list[str]:
    """The pronouns aligned with a source pronoun, or else the nearest free one, or else the aligned words."""
    _, target = pair
    positions = sorted(j for i, j in links if i == position)
    pronouns = [target[j] for j in positions if lists.is_target(target[j])]
    if pronouns:
        return pronouns
    # A source word without a link is searched around the links of its two neighbors.
    place = positions or sorted(j for i, j in links if abs(i - position) == 1)
    if place:
        center = (place[0] + place[-1]) / 2
        if free := _free_pronouns(_near(place, target), pair, links, lists):
            return [target[min(free, key=lambda j: (abs(j - center), j))]]
    return [target[j] for j in positions]


def _near(positions: Sequence[int], target: Sequence[str]) -> range:
    return range(max(positions[0] - WINDOW, 0), min(positions[-1] + WINDOW, len(target) - 1) + 1)


def _free_pronouns(near: Iterable[int], pair: Pair, links: set[Link], lists: PronounLists) -> list[int]:
    source, target = pair
    owned = {j for i, j in links if source[i] in lists.source}
    return [j for j in near if target[j] in lists.target and j not in owned]


SEARCHES: dict[str, Search] = {"APT": find_as_authors, "APT (neighbors)": find_beside_neighbors}
"""How each metric finds the counterparts of a pronoun."""


def classify(hypothesis: Iterable[str], reference: Iterable[str], lists: PronounLists) -> str:
    """The case of a source pronoun, a key of `WEIGHTS`, from its counterparts in hypothesis and reference."""
    ours = {lists.normalize(word) for word in hypothesis}
    theirs = {lists.normalize(word) for word in reference}
    if not theirs:
        return "no reference" if ours else "neither"
    if not ours:
        return "no hypothesis"
    if ours & theirs:
        return "identical"
    groups = [{lists.normalize(word) for word in group} for group in lists.equivalent]
    return "equivalent" if any(ours & group and theirs & group for group in groups) else "different"


def describe_occurrences(
    runs: Sequence[Sequence[Occurrence]], *, signature: str, metric: str = "APT"
) -> list[ScoreRow]:
    """Rows of APT: the whole, each source pronoun (by `kind`), and the share of each case (`APT cases`, by `kind`).

    The runs are over the same source pronouns with different alignments. A value is their mean, None without source
    pronouns; `low` and `high` are the lowest and the highest run.
    """
    n = len(runs[0])

    def apt(run: Iterable[Occurrence]) -> float | None:
        weights = [WEIGHTS[occurrence.case] for occurrence in run]
        return 100 * fmean(weights) if weights else None

    def row(name: str, values: Sequence[float | None], *, n: int, kind: str | None = None) -> ScoreRow:
        known = [value for value in values if value is not None]
        value, low, high = (fmean(known), min(known), max(known)) if known else (None, None, None)
        return {"metric": name, "value": value, "n": n, "kind": kind, "low": low, "high": high, "signature": signature}

    rows = [row(metric, [apt(run) for run in runs], n=n)]
    for pronoun, count in Counter(occurrence.pronoun for occurrence in runs[0]).most_common():
        values = [apt(occurrence for occurrence in run if occurrence.pronoun == pronoun) for run in runs]
        rows.append(row(metric, values, n=count, kind=pronoun))
    for case in WEIGHTS if n else ():
        shares = [100 * sum(occurrence.case == case for occurrence in run) / n for run in runs]
        rows.append(row(f"{metric} cases", shares, n=n, kind=case))
    return rows
