"""`docmt report`: gather scores into tables, pictures and one HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from docmt.commands import CommandGroup, OutFile, SrcLang, TgtLang, option, settings_at
from docmt.corpora.documents import single_prefix
from docmt.errors import UserError
from docmt.outputs import Output, suffixed
from docmt.report.report_files import Differences, Histories, ReaderFiles, ReportFiles
from docmt.report.settings import ReportSettings
from docmt.report.study_facts import StudyFacts
from docmt.settings import look_up

commands = CommandGroup("report")

REPORT_PARTS = ("report.html", "tables", "figures")

Settings = Annotated[ReportSettings, settings_at("report")]
Study = Annotated[StudyFacts, settings_at("study", "facts on systems and datasets (docs/report.md) as JSON or @FILE.")]
ScoreFiles = Annotated[Sequence[Path], option("JSON files of `docmt evaluate`.", show_default=False)]
Fingerprints = Annotated[
    Sequence[str],
    option("expected fingerprints. Scores and differences with other fingerprints are refused.", show_default=False),
]
TablePrefix = Annotated[
    Path, option("path without suffix; .csv, .md, .tex and .txt are written."), suffixed("csv", "md", "tex", "txt")
]


@commands.command
def collect(*, scores: ScoreFiles, fingerprints: Fingerprints = (), out: OutFile) -> None:
    """Collect score files into one long table (CSV).

    Example:
        docmt report collect --scores a/scores.json b/scores.json --out scores.csv
    """
    from docmt.report.score_files import gather_rows, write_scores_table

    write_scores_table(out, gather_rows(scores, fingerprints=fingerprints))


@commands.command
def table(
    *,
    settings: Settings = ReportSettings(),
    study: Study = StudyFacts(),
    name: str,
    scores: ScoreFiles,
    differences: Differences = (),
    fingerprints: Fingerprints = (),
    out: TablePrefix,
) -> None:
    """Build and print one table as in a paper.

    Example:
        docmt report table --settings @report.json --name table_1 --scores a/scores.json b/scores.json --out table_1

    Args:
        name: table name in `report.tables`.
    """
    from docmt.report.differences import read_differences
    from docmt.report.input_files import gather_scores
    from docmt.report.markup import write_table
    from docmt.report.score_tables import paper_table
    from docmt.report.tables import to_text

    look_up(settings.tables, name, where="report.tables", what="table")
    gathered = gather_scores(scores, fingerprints=fingerprints)
    tested = read_differences(differences, fingerprints=fingerprints)
    scores_table = paper_table(gathered, name, settings, study.paper_columns, tested)
    if scores_table is None:
        raise UserError(f"report.tables.{name}: the score files contain none of its systems, tests and metrics")
    write_table(out, scores_table)
    print(to_text(scores_table))


@commands.command
def cases(
    *,
    settings: Settings = ReportSettings(),
    name: str,
    texts: Annotated[list[Path], option("raw text of the test split: PREFIX.documents.tsv, and PREFIX.LANG.")],
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    system: Path,
    baseline: Path,
    out: TablePrefix,
) -> None:
    """Select the sentences of a case study.

    Example:
        docmt report cases --settings @report.json --name pronouns --texts test.en test.de test.documents.tsv
        --src-lang en --tgt-lang de --system b.jsonl --baseline a.jsonl --out cases

    Args:
        name: case study name in `report.cases`.
        system: the better system's translations.
        baseline: the other system's translations.
    """
    from docmt.report.case_studies import choose_cases
    from docmt.report.markup import write_table
    from docmt.report.study_tables import case_table

    layout = look_up(settings.cases, name, where="report.cases", what="case study")
    files = {"prefix": single_prefix(texts, option="--texts"), "system": system, "baseline": baseline}
    values = choose_cases(layout, settings, src_lang=src_lang, tgt_lang=tgt_lang, **files)
    write_table(out, case_table(name, values, settings))


@commands.command
def figure(
    *,
    settings: Settings = ReportSettings(),
    study: Study = StudyFacts(),
    name: str,
    scores: ScoreFiles = (),
    histories: Histories = (),
    fingerprints: Fingerprints = (),
    out: Annotated[
        Path,
        option("path without suffix; .svg, .png, .pdf and .csv are written."),
        suffixed("svg", "png", "pdf", "csv"),
    ],
) -> None:
    """Draw one figure as in a paper.

    Example:
        docmt report figure --settings @report.json --name lengths --scores a/scores.json b/scores.json --out lengths

    Args:
        name: figure name in `report.figures` or `report.curves`.
    """
    from docmt.report.figures import draw_plot, study_styles, write_plot
    from docmt.report.input_files import gather_scores, read_histories

    pictures = {**settings.figures, **settings.curves}
    look_up(pictures, name, where="report.figures and report.curves", what="picture")
    plot = draw_plot(
        name,
        settings,
        study_styles(settings, study.systems),
        scores=gather_scores(scores, fingerprints=fingerprints),
        paper_columns=study.paper_columns,
        histories=read_histories(histories),
    )
    if plot is None:
        raise UserError(f"{name}: the score files and histories contain no data for this figure")
    write_plot(out, plot)


@commands.command
def claims(
    *,
    settings: Settings = ReportSettings(),
    name: list[str] | None = None,
    scores: ScoreFiles = (),
    histories: Histories = (),
    fingerprints: Fingerprints = (),
    out: Annotated[Path, option("path without suffix; .csv, .md and .txt are written."), suffixed("csv", "md", "txt")],
) -> None:
    """Test the study's claims against scores and training histories.

    Example:
        docmt report claims --settings @report.json --scores a/scores.json b/scores.json --out claims

    Args:
        name: claim names in `report.claims`. Default: all.
    """
    from docmt.report.claims.judging import claims_table
    from docmt.report.input_files import gather_scores, read_histories
    from docmt.report.markup import write_table
    from docmt.report.tables import to_text

    for claim in name or []:
        look_up(settings.claims, claim, where="report.claims", what="claim")
    gathered = gather_scores(scores, fingerprints=fingerprints)
    judged = claims_table(gathered, read_histories(histories), settings, names=name or None)
    if judged is None:
        raise UserError("report.claims: the study has no claims; docs/claims.md explains how to add some")
    write_table(out, judged, suffixes=("csv", "md", "txt"))
    print(f"{to_text(judged)}\n\n{judged.caption}\n")


@commands.command
def render(
    *,
    settings: Settings = ReportSettings(),
    study: Study = StudyFacts(),
    scores: Path,
    files: ReportFiles = ReportFiles(),
    reader: str | None = None,
    fingerprints: Fingerprints = (),
    out: Annotated[Path, Output(lambda out, _: [out / name for name in REPORT_PARTS], is_folder=True)],
) -> None:
    """Write tables, figures and the page, and print the main tables.

    Example:
        docmt report render --settings @report.json --scores scores.csv --histories ende/runs/base/seed1/history.csv
        --out report

    Args:
        scores: table written by `docmt report collect`.
        reader: link to the page with the translations. Default: no link.
        out: output folder.
    """
    from docmt.report.input_files import read_scores_table
    from docmt.report.page import build_report, write_report

    gathered = read_scores_table(scores, fingerprints=fingerprints)
    report = build_report(gathered, settings, files=files, study=study, reader=reader, fingerprints=fingerprints)
    write_report(out, report)
    print(report.printed())


@commands.command
def reader(
    *,
    settings: Settings = ReportSettings(),
    study: Study = StudyFacts(),
    files: ReaderFiles = ReaderFiles(),
    out: OutFile,
) -> None:
    """Write the reader page, which shows translations and suite items.

    Example:
        docmt report reader --study '{"languages": {"ende": ["en", "de"]}}'
        --outputs ende/runs/base/seed1/decoding/suite_gender.json --suites ende/gender=gender.jsonl --out reader.html
    """
    from docmt.report.reader.reader_page import write_reader

    write_reader(out, files, study, settings)
