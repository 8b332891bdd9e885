"""`docmt report`: gather scores into tables, pictures and one HTML page."""

from pathlib import Path
from typing import Annotated

from docmt.commands import CommandGroup, OutFile, SrcLang, TgtLang, option, settings_at
from docmt.errors import UserError
from docmt.report.manifest import Manifest, ReaderManifest
from docmt.report.settings import ReportSettings
from docmt.settings import look_up

commands = CommandGroup("report")

Settings = Annotated[ReportSettings, settings_at("report")]
ScoreFiles = Annotated[list[Path], option("JSON files of `docmt evaluate`.")]
Fingerprints = Annotated[
    list[str] | None, option("expected fingerprints. Scores and differences with other fingerprints are refused.")
]
PaperColumns = Annotated[str, option("properties of systems from the config, as JSON: {SYSTEM: {COLUMN: WORD}}.")]
Histories = Annotated[str, option("other input files (docs/report.md) as JSON or @FILE.")]
TablePrefix = Annotated[Path, option("path without suffix; .csv, .md, .tex and .txt are written.")]


@commands.command
def collect(*, scores: ScoreFiles, fingerprints: Fingerprints = None, out: OutFile) -> None:
    """Collect score files into one long table (CSV).

    Example:
        docmt report collect --scores a/scores.json b/scores.json --out scores.csv
    """
    from docmt.report.score_files import gather_rows, write_scores_table

    write_scores_table(out, gather_rows(scores, fingerprints=fingerprints or []))


@commands.command
def table(
    *,
    settings: Settings = ReportSettings(),
    paper_columns: PaperColumns = "{}",
    name: str,
    scores: ScoreFiles,
    differences: list[Path] | None = None,
    fingerprints: Fingerprints = None,
    out: TablePrefix,
) -> None:
    """Build and print one table as in a paper.

    Example:
        docmt report table --settings @report.json --name table_1 --scores a/scores.json b/scores.json --out table_1

    Args:
        name: table name in `report.tables`.
        differences: JSON files from `docmt evaluate difference`.
    """
    from docmt.report.differences import read_differences
    from docmt.report.input_files import gather_scores
    from docmt.report.score_tables import paper_table
    from docmt.report.summary import read_paper_columns
    from docmt.report.tables import to_text, write_table

    look_up(settings.tables, name, where="report.tables", what="table")
    gathered = gather_scores(scores, fingerprints=fingerprints or [])
    tested = read_differences(differences or [], fingerprints=fingerprints or [])
    made = paper_table(gathered, name, settings, read_paper_columns(paper_columns), tested)
    if made is None:
        raise UserError(f"report.tables.{name}: the score files contain none of its systems, tests and metrics")
    write_table(out, made)
    print(to_text(made))


@commands.command
def cases(
    *,
    settings: Settings = ReportSettings(),
    name: str,
    prefix: Path,
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    system: Path,
    baseline: Path,
    out: TablePrefix,
) -> None:
    """Select the sentences of a case study.

    Example:
        docmt report cases --settings @report.json --name pronouns --prefix text/test --src-lang en --tgt-lang de
        --system b.jsonl --baseline a.jsonl --out cases

    Args:
        name: case study name in `report.cases`.
        prefix: raw test text, as PREFIX.{lang}.
        system: the better system's translations.
        baseline: the other system's translations.
    """
    from docmt.report.case_studies import choose_cases
    from docmt.report.study_tables import case_table
    from docmt.report.tables import write_table

    layout = look_up(settings.cases, name, where="report.cases", what="case study")
    files = {"prefix": prefix, "system": system, "baseline": baseline}
    values = choose_cases(layout, settings, src_lang=src_lang, tgt_lang=tgt_lang, **files)
    write_table(out, case_table(name, values, settings))


@commands.command
def figure(
    *,
    settings: Settings = ReportSettings(),
    paper_columns: PaperColumns = "{}",
    name: str,
    scores: Annotated[list[Path] | None, option("JSON files of `docmt evaluate`.")] = None,
    manifest: Histories = '{"runs": {}}',
    fingerprints: Fingerprints = None,
    out: Annotated[Path, option("path without suffix; .svg, .png and .csv are written.")],
) -> None:
    """Draw one figure as in a paper.

    Example:
        docmt report figure --settings @report.json --name lengths --scores a/scores.json b/scores.json --out lengths

    Args:
        name: figure name in `report.figures` or `report.curves`.
    """
    from docmt.report.figures import draw_plot, study_styles, write_plot
    from docmt.report.input_files import gather_scores, read_histories
    from docmt.report.summary import read_paper_columns

    pictures = {**settings.figures, **settings.curves}
    look_up(pictures, name, where="report.figures and report.curves", what="picture")
    plot = draw_plot(
        name,
        settings,
        study_styles(settings, []),
        scores=gather_scores(scores or [], fingerprints=fingerprints or []),
        paper_columns=read_paper_columns(paper_columns),
        histories=read_histories(Manifest.from_argument(manifest, where="manifest")),
    )
    if plot is None:
        raise UserError(f"{name}: the score files and histories contain no data for this figure")
    write_plot(out, plot)


@commands.command
def claims(
    *,
    settings: Settings = ReportSettings(),
    name: list[str] | None = None,
    scores: Annotated[list[Path] | None, option("JSON files of `docmt evaluate`.")] = None,
    manifest: Histories = '{"runs": {}}',
    fingerprints: Fingerprints = None,
    out: Annotated[Path, option("path without suffix; .csv, .md and .txt are written.")],
) -> None:
    """Test the study's claims against scores and training histories.

    Example:
        docmt report claims --settings @report.json --scores a/scores.json b/scores.json --manifest @manifest.json
        --out claims

    Args:
        name: claim names in `report.claims`. Default: all.
    """
    from docmt.report.claims.judging import claims_table
    from docmt.report.input_files import gather_scores, read_histories
    from docmt.report.tables import to_text, write_table

    for claim in name or []:
        look_up(settings.claims, claim, where="report.claims", what="claim")
    histories = read_histories(Manifest.from_argument(manifest, where="manifest"))
    gathered = gather_scores(scores or [], fingerprints=fingerprints or [])
    judged = claims_table(gathered, histories, settings, names=name)
    if judged is None:
        raise UserError("report.claims: the study has no claims; docs/claims.md explains how to add some")
    write_table(out, judged, suffixes=("csv", "md", "txt"))
    print(f"{to_text(judged)}\n\n{judged.caption}\n")


@commands.command
def render(
    *,
    settings: Settings = ReportSettings(),
    paper_columns: PaperColumns = "{}",
    scores: Path,
    manifest: Histories = '{"runs": {}}',
    fingerprints: Fingerprints = None,
    out: Path,
) -> None:
    """Write tables, figures and the page, and print the main tables.

    Example:
        docmt report render --settings @report.json --scores scores.csv --manifest @manifest.json --out report

    Args:
        scores: table written by `docmt report collect`.
        out: output folder.
    """
    from docmt.report.input_files import read_scores_table
    from docmt.report.page import build_report, write_report
    from docmt.report.summary import read_paper_columns

    report = build_report(
        read_scores_table(scores, fingerprints=fingerprints or []),
        settings,
        paper_columns=read_paper_columns(paper_columns),
        manifest=Manifest.from_argument(manifest, where="manifest"),
        fingerprints=fingerprints or [],
    )
    write_report(out, report)
    print(report.printed())


@commands.command
def reader(*, settings: Settings = ReportSettings(), manifest: str, out: OutFile) -> None:
    """Write the reader page, which shows translations and suite items.

    Example:
        docmt report reader --settings @report.json --manifest @manifest.json --out reader.html

    Args:
        manifest: input files (docs/reader.md) as JSON or @FILE.
    """
    from docmt.report.reader.reader_page import write_reader

    write_reader(out, ReaderManifest.from_argument(manifest, where="manifest"), settings)
