"""`docmt discourse statistics` and `docmt discourse draw`: discourse trees in tables and pictures."""

import argparse
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.cli.main import HelpFormatter

if TYPE_CHECKING:
    from docmt.discourse.documents import DiscourseDocument

FORMS = ("dependency", "constituent")


def add_picture_commands(subparsers: argparse._SubParsersAction) -> None:
    """Add `statistics` and `draw`."""
    summary = "count EDUs, trees and relations, one row per name"
    statistics = subparsers.add_parser("statistics", help=summary, description=summary, formatter_class=HelpFormatter)
    statistics.add_argument("--files", nargs="+", required=True, metavar="NAME=FILE", help=".discourse.jsonl files")
    statistics.add_argument("--out", type=Path, required=True, help="CSV file to write")
    statistics.add_argument("--relations", type=Path, help="CSV file to write with one row per name and relation")
    statistics.set_defaults(run=run_statistics)
    summary = "draw the tree of a document"
    draw = subparsers.add_parser("draw", help=summary, description=summary, formatter_class=HelpFormatter)
    draw.add_argument("--input", type=Path, required=True, help="file of trees (.discourse.jsonl)")
    which = draw.add_mutually_exclusive_group()
    which.add_argument("--document", help="id of the document")
    which.add_argument("--number", type=int, help="position of the document in the file, from 1 (the default)")
    draw.add_argument("--form", choices=FORMS, default="dependency", help="which tree to draw")
    draw.add_argument("--out", type=Path, required=True, help="SVG file to write")
    draw.set_defaults(run=run_draw)


def run_statistics(options: argparse.Namespace) -> None:
    """Write a table with one row per name and, if asked for, one with the relations of each."""
    import pandas as pd

    from docmt.discourse.documents import iterate_discourse
    from docmt.discourse.statistics import gather_statistics
    from docmt.errors import UserError
    from docmt.files import atomic_writer

    files: dict[str, list[Path]] = {}
    for item in options.files:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            raise UserError(f"--files {item}: write NAME=FILE")
        if Path(path) in files.setdefault(name, []):
            raise UserError(f"--files {item}: duplicate file")
        files[name].append(Path(path))
    rows, relations = [], []
    for name, paths in files.items():
        statistics = gather_statistics(itertools.chain.from_iterable(map(iterate_discourse, paths)))
        rows.append({"name": name} | statistics.row())
        relations += [{"name": name} | row for row in statistics.relation_rows()]
    with atomic_writer(options.out) as file:
        pd.DataFrame(rows).to_csv(file, index=False)
    if options.relations is not None:
        columns = ["name", "relation", "arcs", "percent", "between_sentences_percent"]
        with atomic_writer(options.relations) as file:
            pd.DataFrame(relations, columns=columns).to_csv(file, index=False)


def run_draw(options: argparse.Namespace) -> None:
    """Write one tree as SVG."""
    from docmt.discourse.drawing.constituents import draw_constituents
    from docmt.discourse.drawing.dependencies import draw_dependencies
    from docmt.files import atomic_writer

    draw = {"dependency": draw_dependencies, "constituent": draw_constituents}[options.form]
    picture = draw(_find_document(options.input, document_id=options.document, number=options.number))
    with atomic_writer(options.out) as file:
        file.write(picture)


def _find_document(path: Path, *, document_id: str | None, number: int | None) -> "DiscourseDocument":
    """Find a document by id or, without one, by number; the first one when neither is given."""
    from docmt.discourse.documents import iterate_discourse
    from docmt.errors import UserError

    number = 1 if number is None else number
    count, last = 0, ""
    for count, document in enumerate(iterate_discourse(path), start=1):
        if document.id == document_id or (document_id is None and count == number):
            return document
        last = document.id
    wanted = f"number {number}" if document_id is None else repr(document_id)
    found = f"it holds {count}, the last of them {last!r}" if count else "it is empty"
    raise UserError(f"{path}: there is no document {wanted}; {found}")
