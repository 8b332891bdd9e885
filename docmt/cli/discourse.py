"""`docmt discourse`: discourse treebanks."""

import argparse
from pathlib import Path

from docmt.cli.main import HelpFormatter

FORMATS = ("gum",)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add `treebank`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    summary = "read a treebank and write its splits"
    treebank = commands.add_parser("treebank", help=summary, description=summary, formatter_class=HelpFormatter)
    treebank.add_argument("--format", choices=FORMATS, required=True, help="which treebank")
    treebank.add_argument("--files", type=Path, required=True, help="folder with its files as fetched")
    treebank.add_argument("--out", type=Path, required=True, help="folder to write")
    treebank.set_defaults(run=run_treebank)


def run_treebank(options: argparse.Namespace) -> None:
    """Write {split}.discourse.jsonl, {split}.syntax.jsonl and counts.json."""
    from docmt.discourse.treebanks.collection import write_treebank
    from docmt.discourse.treebanks.gum import read_gum

    write_treebank(options.out, {"gum": read_gum}[options.format](options.files))
