"""The pronoun and discourse marker F1 of BlonDe (Jiang et al. 2022) for English, without the parts that need a model.

In each sentence, hypothesis and reference are compared by how many words of each kind they have; matches, and the words
of both sides, are summed over the corpus. Words are cut by Moses, in BlonDe by spaCy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

from docmt.evaluation.external_programs import missing_row
from docmt.evaluation.metrics import BLONDE, TranslatedTest
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.words import describe_words, lower_case_splitter

LISTS = Path(__file__).parent / "data/blonde/en.yaml"


@cache
def read_lists() -> dict[str, dict[str, tuple[tuple[str, ...], ...]]]:
    """The phrases of each list and kind, as tuples of words."""
    lists = yaml.safe_load(LISTS.read_text(encoding="utf-8"))
    return {
        key: {kind: tuple(tuple(phrase.split()) for phrase in phrases) for kind, phrases in kinds.items()}
        for key, kinds in lists.items()
    }


def score_blonde(test: TranslatedTest) -> list[ScoreRow]:
    """The metrics that the settings name, over sentence pairs; None for another target language than English."""
    names = [name for name in BLONDE if name in test.settings.metrics]
    if not test.is_aligned:
        return []
    if test.tgt_lang != "en":
        return [missing_row(name, f"BlonDe is for English, not {test.tgt_lang}") for name in names]
    split = lower_case_splitter("en")
    hypotheses, *references = ([*map(split, text)] for text in (test.sentences, *test.references))
    signature = f"F1|references:{len(references)}|words:{describe_words('en')}"
    values = {name: f1(hypotheses, references, read_lists()[name.removeprefix("BlonDe ")]) for name in names}
    return [{"metric": name, "value": values[name], "n": len(hypotheses), "signature": signature} for name in names]


def f1(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    kinds: Mapping[str, Sequence[Sequence[str]]],
) -> float | None:
    """F1 in percent over sentences of words, or None; of several references, the highest count of each kind."""
    matches = ours = theirs = 0
    for number, hypothesis in enumerate(hypotheses):
        found = count_kinds(hypothesis, kinds)
        expected: Counter[str] = Counter()
        for reference in references:
            expected |= count_kinds(reference[number], kinds)
        # `&` of counters takes the smaller count of each kind: a surplus on either side is no match.
        matches += (found & expected).total()
        ours, theirs = ours + found.total(), theirs + expected.total()
    return 200 * matches / (ours + theirs) if ours + theirs else None


def count_kinds(words: Sequence[str], kinds: Mapping[str, Iterable[Sequence[str]]]) -> Counter[str]:
    """How often the phrases of each kind occur in a sentence."""
    return Counter(
        {
            kind: sum(list(words[i : i + len(phrase)]) == list(phrase) for phrase in phrases for i in range(len(words)))
            for kind, phrases in kinds.items()
        }
    )
