"""Case studies: sentences that one system translates better than another, chosen by rule."""

from pathlib import Path

import pandas as pd

from docmt.corpora.documents import text_path
from docmt.errors import UserError
from docmt.evaluation.hypotheses import read_hypotheses
from docmt.evaluation.references import read_reference
from docmt.files import read_lines
from docmt.report.input_files import read_table
from docmt.report.settings import CaseTable, ReportSettings
from docmt.report.tables import one_line

SOURCE = "source"
REFERENCE = "reference"
COLUMNS = ("case", "part", "chrF", "text")


def choose_cases(
    layout: CaseTable,
    settings: ReportSettings,
    *,
    prefix: Path,
    src_lang: str,
    tgt_lang: str,
    system: Path,
    baseline: Path,
) -> pd.DataFrame:
    """Choose the sentences with the largest sentence chrF difference.

    `prefix` is the split's raw text (`PREFIX.{lang}`). `system` and `baseline` are hypotheses files.

    Returns:
        One row per case with the columns `COLUMNS` (context, source, reference and translations). Empty if no sentence
        is better.
    """
    from sacrebleu.metrics.chrf import CHRF  # imported here, since the report only reads the result

    index, reference = read_reference(prefix, languages=(src_lang, tgt_lang))
    source = read_lines(text_path(prefix, src_lang))
    sides: list[list[str]] = []
    for path in (system, baseline):
        sentences: list[str] = []
        for hypothesis in read_hypotheses(path, index):
            if not hypothesis.aligned:
                raise UserError(f"{path}: a case study needs translations that are aligned sentence by sentence")
            sentences += hypothesis.sentences
        sides.append(sentences)
    ours, theirs = sides
    chrf = CHRF()
    our_scores = []
    their_scores = []
    differences = []
    for our_sentence, their_sentence, right in zip(ours, theirs, reference, strict=True):
        our_scores.append(chrf.sentence_score(our_sentence, [right]).score)
        their_scores.append(chrf.sentence_score(their_sentence, [right]).score)
        differences.append(our_scores[-1] - their_scores[-1])
    ranked = sorted(range(len(source)), key=lambda i: (-differences[i], i))[: layout.count]
    positions: list[tuple[str, int]] = []  # document and number in the document, by sentence
    for name, length in index:
        for number in range(length):
            positions.append((name, number))
    rows: list[tuple[str, str, float | None, str]] = []
    for i in ranked:
        if differences[i] <= 0:
            break
        name, number = positions[i]
        case = f"{name}, sentence {number + 1}"
        for k in range(i - min(number, layout.context), i):
            rows.append((case, f"{SOURCE} \N{MINUS SIGN}{i - k}", None, source[k]))
        rows.append((case, SOURCE, None, source[i]))
        rows.append((case, REFERENCE, None, reference[i]))
        rows.append((case, settings.label(layout.baseline), their_scores[i], theirs[i]))
        rows.append((case, settings.label(layout.system), our_scores[i], ours[i]))
    cases = pd.DataFrame(rows, columns=list(COLUMNS))
    return cases.assign(text=cases["text"].map(one_line))


def read_cases(path: Path) -> pd.DataFrame:
    """Read a case study that was written as CSV."""
    return read_table(path, needed=COLUMNS, words=("case", "part", "text")).fillna({"text": ""})
