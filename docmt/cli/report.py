"""`docmt report`: gather scores into tables, pictures and one HTML page."""

import argparse
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.config.systems import look_up
from docmt.errors import UserError
from docmt.report.manifest import Manifest
from docmt.report.settings import ReportSettings


def add_commands(parser: CommandParser) -> None:
    """Add `gather`, `table`, `figure`, `render` and `reader`."""
    gather = parser.add_command("gather", run_gather, "gather score files into one long table")
    _add_score_files(gather)
    gather.add_paths(out="CSV file to write")
    _add_fingerprints(gather)

    table = parser.add_command("table", run_table, "make one table of the study, laid out as in a paper")
    _add_settings(table)
    table.add_argument("--name", required=True, help="key of the table in the settings' `tables`")
    _add_score_files(table)
    summary = "JSON files of `docmt evaluate difference` and `contrast-difference`"
    table.add_argument("--differences", nargs="+", type=Path, default=[], help=summary)
    table.add_paths(out="path without suffix; .csv, .md, .tex and .txt are written")
    _add_fingerprints(table)

    cases = parser.add_command("cases", run_cases, "choose the sentences of a case study")
    cases.add_settings("ReportSettings")
    cases.add_argument("--name", required=True, help="key of the case study in the settings' `cases`")
    cases.add_paths(prefix="raw text of the test split, as PREFIX.{lang}")
    cases.add_argument("--src-lang", required=True, help="source language")
    cases.add_argument("--tgt-lang", required=True, help="target language")
    cases.add_paths(
        system="hypotheses of the better system",
        baseline="hypotheses of the other system",
        out="path without suffix; .csv, .md, .tex and .txt are written",
    )

    figure = parser.add_command("figure", run_figure, "draw one picture of the study, laid out as in a paper")
    _add_settings(figure)
    figure.add_argument("--name", required=True, help="key of the picture in the settings' `figures` or `curves`")
    _add_score_files(figure, required=False)
    figure.add_argument("--manifest", default='{"runs": {}}', help="runs whose histories it shows: JSON or @FILE")
    figure.add_paths(out="path without suffix; .svg, .png and .csv are written")

    claims = parser.add_command("claims", run_claims, "judge the claims of the study by scores and training histories")
    claims.add_settings("ReportSettings")
    claims.add_argument("--name", nargs="*", help="keys of claims in the settings' `claims` (default: all)")
    claims.add_argument("--scores", nargs="*", type=Path, default=[], help="JSON files of `docmt evaluate`")
    _add_manifest(claims)
    claims.add_paths(out="path without suffix; .csv, .md and .txt are written")
    _add_fingerprints(claims)

    render = parser.add_command("render", run_render, "make tables, pictures and the page")
    _add_settings(render)
    render.add_paths(scores="the long table of `docmt report gather`")
    _add_manifest(render)
    render.add_paths(out="folder to write into")
    _add_fingerprints(render)

    reader = parser.add_command("reader", run_reader, "make the page in which one reads translations")
    reader.add_settings("ReportSettings")
    reader.add_argument("--manifest", required=True, help="files to read (docs/reader.md): JSON or @FILE")
    reader.add_paths(out="HTML file to write")


def _add_score_files(command: CommandParser, *, required: bool = True) -> None:
    summary = "JSON files of `docmt evaluate`"
    command.add_argument("--scores", nargs="+", type=Path, required=required, default=[], help=summary)


def _add_fingerprints(command: CommandParser) -> None:
    summary = "fingerprints of the study's scores: any other is refused"
    command.add_argument("--fingerprints", nargs="*", default=[], metavar="HEX", help=summary)


def _add_manifest(command: CommandParser) -> None:
    command.add_argument(
        "--manifest", default='{"runs": {}}', help="other files to read (docs/report.md): JSON or @FILE"
    )


def _add_settings(command: CommandParser) -> None:
    command.add_settings("ReportSettings")
    summary = "facts about each system from the config, as JSON: {SYSTEM: {FACT: WORD}}"
    command.add_argument("--facts", default="{}", help=summary)


def run_gather(options: argparse.Namespace) -> None:
    """Write the long table."""
    from docmt.report.score_files import check_fingerprints, gather_rows, write_scores_table

    rows = gather_rows(options.scores)
    check_fingerprints(rows, options.fingerprints)
    write_scores_table(options.out, rows)


def run_table(options: argparse.Namespace) -> None:
    """Write one table in four forms and print it."""
    from docmt.report.differences import read_differences
    from docmt.report.gathering import gather_scores, refuse_other_studies
    from docmt.report.layouts import laid_out_table, read_facts, write_table
    from docmt.report.tables import to_text

    settings = ReportSettings.from_argument(options.settings, where="report")
    look_up(settings.tables, options.name, where="report.tables", what="table")
    scores = gather_scores(options.scores)
    refuse_other_studies(scores, options.fingerprints)
    table = laid_out_table(
        scores, options.name, settings, read_facts(options.facts), read_differences(options.differences)
    )
    if table is None:
        raise UserError(
            f"report.tables.{options.name}: the given scores contain none of its systems, tests and metrics"
        )
    write_table(options.out, table)
    print(to_text(table))


def run_cases(options: argparse.Namespace) -> None:
    """Write one case study in four forms."""
    from docmt.report.cases import case_table, choose_cases
    from docmt.report.layouts import write_table

    settings = ReportSettings.from_argument(options.settings, where="report")
    layout = look_up(settings.cases, options.name, where="report.cases", what="case study")
    files = {"prefix": options.prefix, "system": options.system, "baseline": options.baseline}
    values = choose_cases(layout, settings, src_lang=options.src_lang, tgt_lang=options.tgt_lang, **files)
    write_table(options.out, case_table(options.name, values, settings))


def run_figure(options: argparse.Namespace) -> None:
    """Draw one picture and write its numbers."""
    from docmt.report.gathering import gather_scores, no_scores
    from docmt.report.layouts import read_facts
    from docmt.report.plots import draw_plot, study_styles, write_plot
    from docmt.report.sources import read_histories

    settings = ReportSettings.from_argument(options.settings, where="report")
    pictures = {**settings.figures, **settings.curves}
    look_up(pictures, options.name, where="report.figures and report.curves", what="picture")
    plot = draw_plot(
        options.name,
        settings,
        study_styles(settings, []),
        scores=gather_scores(options.scores) if options.scores else no_scores(),
        facts=read_facts(options.facts),
        histories=read_histories(Manifest.from_argument(options.manifest, where="manifest")),
    )
    if plot is None:
        raise UserError(f"{options.name}: the given scores and histories contain nothing that this picture shows")
    write_plot(options.out, plot)


def run_claims(options: argparse.Namespace) -> None:
    """Write the table of claims in three forms and print it."""
    from docmt.report.claims.table import claims_table, wrap_text, write_claims
    from docmt.report.gathering import gather_scores, no_scores, refuse_other_studies
    from docmt.report.sources import read_histories

    settings = ReportSettings.from_argument(options.settings, where="report")
    for name in options.name or []:
        look_up(settings.claims, name, where="report.claims", what="claim")
    histories = read_histories(Manifest.from_argument(options.manifest, where="manifest"))
    scores = gather_scores(options.scores) if options.scores else no_scores()
    refuse_other_studies(scores, options.fingerprints)
    table = claims_table(scores, histories, settings, names=options.name)
    if table is None:
        raise UserError("report.claims: the study has no claims; docs/claims.md explains how to add some")
    write_claims(options.out, table)
    print(wrap_text(table))


def run_render(options: argparse.Namespace) -> None:
    """Write the report and print its main tables."""
    from docmt.report.gathering import read_scores_table, refuse_other_studies
    from docmt.report.layouts import read_facts
    from docmt.report.page import build_report, write_report

    scores = read_scores_table(options.scores)
    refuse_other_studies(scores, options.fingerprints)
    report = build_report(
        scores,
        ReportSettings.from_argument(options.settings, where="report"),
        facts=read_facts(options.facts),
        manifest=Manifest.from_argument(options.manifest, where="manifest"),
    )
    write_report(options.out, report)
    print(report.printed())


def run_reader(options: argparse.Namespace) -> None:
    """Write the page with translations and items of suites."""
    from docmt.report.reader.manifest import ReaderManifest
    from docmt.report.reader.page import write_reader

    settings = ReportSettings.from_argument(options.settings, where="report")
    write_reader(options.out, ReaderManifest.from_argument(options.manifest, where="manifest"), settings)
