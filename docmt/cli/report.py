"""`docmt report`: gather scores into tables, pictures and one HTML page."""

import argparse
from pathlib import Path

from docmt.cli.main import HelpFormatter


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add `gather` and `render`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")

    gather = commands.add_parser("gather", help="make one long table of score files", formatter_class=HelpFormatter)
    gather.add_argument("--scores", nargs="+", type=Path, required=True, help="JSON files of `docmt evaluate`")
    gather.add_argument("--out", type=Path, required=True, help="CSV file to write")
    gather.set_defaults(run=run_gather)

    render = commands.add_parser("render", help="make tables, pictures and the page", formatter_class=HelpFormatter)
    render.add_argument("--settings", default="{}", help="ReportSettings as JSON or @FILE")
    render.add_argument("--scores", type=Path, required=True, help="the long table of `docmt report gather`")
    render.add_argument("--histories", nargs="*", default=[], metavar="DATASET/SYSTEM/seedN=FILE", help="of training")
    render.add_argument("--statistics", nargs="*", type=Path, default=[], help="CSV of `docmt instances statistics`")
    render.add_argument(
        "--overlaps", nargs="*", default=[], metavar="[DATASET=]FILE", help="JSON of `docmt corpora overlap`"
    )
    render.add_argument("--counts", nargs="*", default=[], metavar="[NAME=]FILE", help="counts.json files")
    render.add_argument("--roundtrips", nargs="*", default=[], metavar="DATASET=FILE", help="JSON of the round trip")
    render.add_argument("--tree-statistics", nargs="*", type=Path, default=[], help="CSV of `discourse statistics`")
    render.add_argument("--tree-relations", nargs="*", type=Path, default=[], help="CSV of its `--relations`")
    render.add_argument("--segmenters", nargs="*", default=[], metavar="NAME=FILE", help="evaluation.json files")
    render.add_argument("--parsers", nargs="*", default=[], metavar="NAME=FILE", help="evaluation.json files")
    render.add_argument("--tree-pictures", nargs="*", default=[], metavar="NAME=FILE", help="SVG of `discourse draw`")
    render.add_argument("--benchmarks", type=Path, metavar="FOLDER", help="of Snakemake: FOLDER/RULE/NAME.tsv")
    render.add_argument("--logs", type=Path, metavar="FOLDER", help="FOLDER/RULE/NAME.log: devices, resumed trainings")
    render.add_argument("--out", type=Path, required=True, help="folder to write into")
    render.set_defaults(run=run_render)


def run_gather(options: argparse.Namespace) -> None:
    """Write the long table."""
    from docmt.report.gathering import gather_scores, write_scores_table

    write_scores_table(options.out, gather_scores(options.scores))


def run_render(options: argparse.Namespace) -> None:
    """Write the report and print its main tables."""
    from docmt.report.gathering import read_scores_table
    from docmt.report.page import TreeFiles, build_report, write_report
    from docmt.report.settings import ReportSettings

    settings = ReportSettings.from_argument(options.settings, where="report")
    report = build_report(
        read_scores_table(options.scores),
        settings,
        histories=options.histories,
        statistics=options.statistics,
        overlaps=options.overlaps,
        counts=options.counts,
        roundtrips=options.roundtrips,
        trees=TreeFiles(
            statistics=options.tree_statistics,
            relations=options.tree_relations,
            segmenters=options.segmenters,
            parsers=options.parsers,
            pictures=options.tree_pictures,
        ),
        benchmarks=options.benchmarks,
        logs=options.logs,
    )
    write_report(options.out, report)
    print(report.printed())
