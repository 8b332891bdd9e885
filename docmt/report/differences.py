"""Paired tests against a baseline, as marks in tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from docmt.errors import UserError
from docmt.evaluation.significance import MIN_ITEMS, MIN_SEGMENTS, PairedDifference
from docmt.files import read_json
from docmt.report.score_files import other_study
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey

LEVELS = ((0.01, "**"), (0.05, "*"))  # significance level → mark for p values below it


@dataclass(frozen=True, kw_only=True)
class Difference(PairedDifference):
    """A paired difference with test and system names."""

    dataset: str
    test: str
    system: str
    baseline: str

    @property
    def key(self) -> tuple[str, str, ScoreKey]:
        """Baseline, system and score: the key for table lookups."""
        return self.baseline, self.system, ScoreKey(self.dataset, self.test, self.metric, self.phenomenon)

    @property
    def highest_p(self) -> float:
        """Largest p value of all tests. It determines the mark, since a single test can have false positives."""
        return max(self.p, self.randomization_p or 0.0)

    @property
    def mark(self) -> str:
        """`*`, `**` or nothing."""
        for level, mark in LEVELS:
            if self.highest_p < level:
                return mark
        return ""

    def is_zero(self, digits: int) -> bool:
        """True if the difference rounds to zero. One sentence can make 0.0001 BLEU significant, so it has no mark."""
        return round(self.difference, digits) == 0


ROW = TypeAdapter(Difference)
# A study's paired tests by `key`. Tables without a baseline look up None, which is never a key.
Differences = Mapping[tuple[str | None, str, ScoreKey], Difference]
UNTESTED: Differences = {}


def read_differences(paths: Sequence[Path], *, fingerprints: Sequence[str] = ()) -> Differences:
    """Read files from `docmt evaluate difference`. `fingerprints` are the study's fingerprints (default: any)."""
    differences: dict[tuple[str | None, str, ScoreKey], Difference] = {}
    for path in paths:
        for test in _read(path, fingerprints):
            if differences.setdefault(test.key, test) is not test:
                description = (
                    f"the {test.metric} of {test.system} on {test.dataset}/{test.test} against {test.baseline}"
                )
                raise UserError(f"{path}: {description} is a duplicate: pass each difference once")
    return differences


def _read(path: Path, fingerprints: Sequence[str]) -> Iterator[Difference]:
    content = read_json(path)
    rows: Any = content.get("differences") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"{path}: not an output of `docmt evaluate difference`: key 'differences' is missing")
    if fingerprints and content.get("provenance", {}).get("fingerprint") not in fingerprints:
        raise other_study(f"{path}: its fingerprint")
    for row in rows:
        try:
            yield ROW.validate_python(row)
        except ValidationError as error:
            problem = f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}"
            raise UserError(
                f"{path}: not an output of `docmt evaluate difference` in this version ({problem}): compute it again"
            ) from None


def describe_marks(tested: Sequence[Difference], settings: ReportSettings) -> str:
    """Return an explanation of a table's marks. Empty without tests."""
    if not tested:
        return ""
    baselines = ", ".join(dict.fromkeys(settings.label(test.baseline) for test in tested))
    methods = []
    for test in tested:
        method = test.method
        if test.randomization_p is not None:
            method += ", and by randomization"
        methods.append(method)
    return f"* and **: differs from {baselines} with p < 0.05 and p < 0.01 ({'; '.join(dict.fromkeys(methods))})."


def few_segments_footnote(tested: Sequence[Difference]) -> str:
    """Return a note on marks that are impossible with this few segments. Empty with enough segments."""
    named: dict[str, dict[str, None]] = {}
    for test in tested:
        # Minimum number of segments for `*` and `**`, or of suite items (without a randomization test).
        single, double = MIN_SEGMENTS
        if test.randomization_p is None:
            single, double = MIN_ITEMS
        if test.n < double:
            marks = f"** (takes {double})"
            if test.n < single:
                marks = f"any mark (* takes {single})"
            named.setdefault(marks, {})[f"{test.dataset}/{test.test} {test.metric} ({test.n})"] = None
    return " ".join(f"Too few segments or items for {marks}: {', '.join(names)}." for marks, names in named.items())
