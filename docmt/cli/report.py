"""`docmt report`: gather scores into tables, pictures and one HTML page."""

import argparse
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.config.systems import look_up
from docmt.errors import UserError
from docmt.report.manifest import Manifest
from docmt.report.settings import ReportSettings


def add_commands(parser: CommandParser) -> None:
    """Add `gather`, `table` and `render`."""
    gather = parser.add_command("gather", run_gather, "gather score files into one long table")
    _add_score_files(gather)
    gather.add_paths(out="CSV file to write")
    _add_fingerprints(gather)

    table = parser.add_command("table", run_table, "make one table of the study, laid out as in a paper")
    _add_settings(table)
    table.add_argument("--name", required=True, help="key of the table in the settings' `tables`")
    _add_score_files(table)
    table.add_paths(out="path without suffix; .csv, .md, .tex and .txt are written")
    _add_fingerprints(table)

    render = parser.add_command("render", run_render, "make tables, pictures and the page")
    _add_settings(render)
    render.add_paths(scores="the long table of `docmt report gather`")
    render.add_argument(
        "--manifest", default='{"runs": {}}', help="other files to read (docs/report.md): JSON or @FILE"
    )
    render.add_paths(out="folder to write into")
    _add_fingerprints(render)


def _add_score_files(command: CommandParser) -> None:
    command.add_argument("--scores", nargs="+", type=Path, required=True, help="JSON files of `docmt evaluate`")


def _add_fingerprints(command: CommandParser) -> None:
    summary = "fingerprints of the study's scores: any other is refused"
    command.add_argument("--fingerprints", nargs="+", default=[], metavar="HEX", help=summary)


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
    from docmt.report.gathering import gather_scores, refuse_other_studies
    from docmt.report.layouts import laid_out_table, read_facts, write_table
    from docmt.report.tables import to_text

    settings = ReportSettings.from_argument(options.settings, where="report")
    look_up(settings.tables, options.name, where="report.tables", what="table")
    scores = gather_scores(options.scores)
    refuse_other_studies(scores, options.fingerprints)
    table = laid_out_table(scores, options.name, settings, read_facts(options.facts))
    if table is None:
        raise UserError(
            f"report.tables.{options.name}: the given scores contain none of its systems, tests and metrics"
        )
    write_table(options.out, table)
    print(to_text(table))


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
