"""`docmt report`: gather scores into tables, pictures and one HTML page."""

import argparse
from pathlib import Path

from docmt.cli.main import HelpFormatter


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add `gather`, `table` and `render`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")

    gather = commands.add_parser("gather", help="gather score files into one long table", formatter_class=HelpFormatter)
    gather.add_argument("--scores", nargs="+", type=Path, required=True, help="JSON files of `docmt evaluate`")
    gather.add_argument("--out", type=Path, required=True, help="CSV file to write")
    gather.set_defaults(run=run_gather)

    table = commands.add_parser(
        "table", help="make one table of the study, laid out as in a paper", formatter_class=HelpFormatter
    )
    _add_settings(table)
    table.add_argument("--name", required=True, help="key of the table in the settings' `tables`")
    table.add_argument("--scores", nargs="+", type=Path, required=True, help="JSON files of `docmt evaluate`")
    table.add_argument(
        "--out", type=Path, required=True, help="path without suffix; .csv, .md, .tex and .txt are written"
    )
    table.set_defaults(run=run_table)

    render = commands.add_parser("render", help="make tables, pictures and the page", formatter_class=HelpFormatter)
    _add_settings(render)
    render.add_argument("--scores", type=Path, required=True, help="the long table of `docmt report gather`")
    render.add_argument(
        "--manifest", default='{"runs": {}}', help="other files to read (docs/report.md): JSON or @FILE"
    )
    render.add_argument("--out", type=Path, required=True, help="folder to write into")
    render.set_defaults(run=run_render)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", default="{}", help="ReportSettings as JSON or @FILE")
    parser.add_argument(
        "--facts", default="{}", help="facts about each system from the config, as JSON: {SYSTEM: {FACT: WORD}}"
    )


def run_gather(options: argparse.Namespace) -> None:
    """Write the long table."""
    from docmt.report.gathering import gather_scores, write_scores_table

    write_scores_table(options.out, gather_scores(options.scores))


def run_table(options: argparse.Namespace) -> None:
    """Write one table in four forms and print it."""
    from docmt.errors import UserError
    from docmt.report.gathering import gather_scores
    from docmt.report.layouts import laid_out_table, read_facts, write_table
    from docmt.report.settings import ReportSettings
    from docmt.report.tables import to_text
    from docmt.settings import nearest

    settings = ReportSettings.from_argument(options.settings, where="report")
    if options.name not in settings.tables:
        raise UserError(f"report.tables: no table {options.name!r}; {nearest(options.name, list(settings.tables))}")
    table = laid_out_table(gather_scores(options.scores), options.name, settings, read_facts(options.facts))
    if table is None:
        raise UserError(
            f"report.tables.{options.name}: the given scores contain none of its systems, tests and metrics"
        )
    write_table(options.out, table)
    print(to_text(table))


def run_render(options: argparse.Namespace) -> None:
    """Write the report and print its main tables."""
    from docmt.report.gathering import read_scores_table
    from docmt.report.layouts import read_facts
    from docmt.report.manifest import Manifest
    from docmt.report.page import build_report, write_report
    from docmt.report.settings import ReportSettings

    report = build_report(
        read_scores_table(options.scores),
        ReportSettings.from_argument(options.settings, where="report"),
        facts=read_facts(options.facts),
        manifest=Manifest.from_argument(options.manifest, where="manifest"),
    )
    write_report(options.out, report)
    print(report.printed())
