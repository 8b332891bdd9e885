"""`docmt instances`: split documents into instances, and count them."""

import argparse
import csv
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.errors import UserError
from docmt.files import atomic_writer


def add_commands(parser: CommandParser) -> None:
    """Add `build` and `statistics`."""
    build = parser.add_command("build", run_build, "cut a parallel or monolingual text into instances")
    build.add_settings("InstancesSettings")
    summary = "subwords, one sentence per line: source and target, or one file of monolingual text"
    build.add_argument("--texts", type=Path, nargs="+", required=True, metavar="FILE", help=summary)
    build.add_paths(documents="document index (.documents.tsv)")
    build.add_paths(vocabulary="vocabulary file; with masks, for monolingual text")
    build.add_argument("--discourse", type=Path, nargs="+", default=[], help="trees of the source documents")
    build.add_paths(out="folder to write")
    statistics = parser.add_command("statistics", run_statistics, "count instances")
    statistics.add_argument("--folders", nargs="+", required=True, metavar="DATASET/CUTTING/SPLIT=FOLDER")
    statistics.add_paths(out="CSV file to write")


def run_build(options: argparse.Namespace) -> None:
    """Build one folder of instances."""
    from docmt.instances.building import build_from_files
    from docmt.instances.settings import InstancesSettings

    build_from_files(
        options.texts,
        documents=options.documents,
        vocabulary=options.vocabulary,
        settings=InstancesSettings.from_argument(options.settings, where="instances"),
        out=options.out,
        discourse=options.discourse,
    )


def run_statistics(options: argparse.Namespace) -> None:
    """Write a table with one row per folder."""
    from docmt.instances.statistics import instance_statistics
    from docmt.instances.storage import read_manifest

    rows = []
    for item in options.folders:
        name, equals, folder = item.partition("=")
        parts = name.split("/")
        if not equals or len(parts) != 3:
            raise UserError(f"--folders {item}: write DATASET/CUTTING/SPLIT=FOLDER")
        keys = dict(zip(("dataset", "cutting", "split"), parts, strict=True))
        rows.append(keys | instance_statistics(read_manifest(Path(folder))))
    with atomic_writer(options.out) as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
