"""`docmt discourse`: treebanks, segmenters, parsers, and the trees of a text."""

import argparse
from pathlib import Path

from docmt.cli.discourse_annotation import add_annotation_commands
from docmt.cli.discourse_parser import add_parser_commands
from docmt.cli.discourse_pictures import add_picture_commands
from docmt.cli.discourse_segmenter import add_segmenter_commands
from docmt.cli.main import HelpFormatter

FORMATS = ("gum", "gcdt", "rst_dt")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add all commands; those of segmenters, parsers, texts and pictures are in separate modules."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    summary = "read a treebank and write its splits"
    treebank = commands.add_parser("treebank", help=summary, description=summary, formatter_class=HelpFormatter)
    treebank.add_argument("--format", choices=FORMATS, required=True, help="which treebank")
    treebank.add_argument("--files", type=Path, required=True, help="folder with the files as fetched")
    treebank.add_argument("--out", type=Path, required=True, help="folder to write")
    treebank.set_defaults(run=run_treebank)
    summary = "convert GUM's trees to dependency trees and compare them with the published ones"
    check = commands.add_parser("check-conversion", help=summary, description=summary, formatter_class=HelpFormatter)
    check.add_argument("--files", type=Path, required=True, help="folder with the files of GUM as fetched")
    check.set_defaults(run=run_check_conversion)
    add_segmenter_commands(commands)
    add_parser_commands(commands)
    add_annotation_commands(commands)
    add_picture_commands(commands)


def run_treebank(options: argparse.Namespace) -> None:
    """Write {split}.discourse.jsonl, {split}.syntax.jsonl and counts.json."""
    from docmt.discourse.treebanks.collection import write_treebank
    from docmt.discourse.treebanks.gcdt import read_gcdt
    from docmt.discourse.treebanks.gum import read_gum
    from docmt.discourse.treebanks.rst_dt import read_rst_dt

    read = {"gum": read_gum, "gcdt": read_gcdt, "rst_dt": read_rst_dt}[options.format]
    write_treebank(options.out, read(options.files))


def run_check_conversion(options: argparse.Namespace) -> None:
    """Print the share of EDUs, and of documents, whose dependency arcs are the published ones."""
    from docmt.discourse.treebanks.checking import check_conversion

    names = {"rs4": "n-ary trees (.rs4)", "dis": "binary trees (.dis)"}
    for source, found in check_conversion(options.files).items():
        print(
            f"{names[source]}: heads {found.n_heads / found.n_edus:.3%}, heads and relations "
            f"{found.n_arcs / found.n_edus:.3%} of {found.n_edus} EDUs; {found.n_equal_documents} of "
            f"{found.n_documents} documents equal; {found.n_secondary_edges} secondary edges skipped, "
            f"{found.n_lifted} crossing edges lifted"
        )
