"""`docmt translate`: a text file in, a text file out."""

import argparse
import io
import itertools
import logging
import sys
from pathlib import Path

from docmt.cli.decode import add_batch_option, add_device_options, choose_device
from docmt.cli.options import CommandParser
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.files import read_lines, write_lines

log = logging.getLogger(__name__)


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_paths(model="model file")
    parser.add_argument("--input", type=Path, help="UTF-8 text, one sentence per line, a blank line between documents")
    parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
    parser.add_argument(
        "--sentences",
        action="store_true",
        help="treat the lines as a list of sentences: translate each by itself, without the context encoder if there "
        "is one",
    )
    parser.add_argument("--discourse", type=Path, help="trees of the documents; by default, decode without trees")
    parser.add_settings("DecodingSettings")
    add_device_options(parser)
    add_batch_option(parser)
    parser.epilog = (
        """On a CPU, --settings '{"precision": "int8"}' makes wide models 1.6 to 2.7 times as fast, at some cost in """
        "quality (docs/decoding.md)."
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """One output line per input line; blank lines stay where they are."""
    device = choose_device(options)
    from docmt.decoding.translation import Translator
    from docmt.discourse.documents import read_discourse
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    if options.sentences and options.discourse:
        raise UserError(
            "--sentences and --discourse: a list of sentences has no document trees; give only one of the two"
        )
    lines = _read(options.input)
    model = load_model(options.model)
    if model.model.settings.needs_trees and options.discourse is None:
        log.warning("%s reads trees, but there is no --discourse: it translates without them", options.model)
    documents = split_at_blanks(lines)
    if options.sentences:
        documents = [[row] for rows in documents for row in rows]
        settings = settings.model_copy(
            update={"context": "document" if model.model.settings.context is None else "none"}
        )
    translator = Translator(model, settings, device=device, batch_tokens=options.batch_tokens)
    trees = read_discourse(options.discourse) if options.discourse else None
    translated = translator.translate_documents([[lines[i] for i in rows] for rows in documents], trees)
    output = [""] * len(lines)
    for rows, sentences in zip(documents, translated, strict=True):
        for row, sentence in zip(rows, sentences, strict=True):
            output[row] = sentence
    if options.output is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.writelines(line + "\n" for line in output)
    else:
        write_lines(options.output, output, checksum=False)


def split_at_blanks(lines: list[str]) -> list[list[int]]:
    """The line numbers of each document: runs of lines that are not blank."""
    groups = itertools.groupby(range(len(lines)), key=lambda number: not lines[number].strip())
    return [list(numbers) for is_blank, numbers in groups if not is_blank]


def _read(path: Path | None) -> list[str]:
    """The lines of a file or of standard input, without the CR of CRLF line ends."""
    if path is not None:
        lines = read_lines(path)
    else:
        if sys.stdin.isatty():
            log.info("reading from the terminal, one sentence per line; end with Ctrl-D")
        try:
            lines = sys.stdin.buffer.read().decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"standard input: byte {error.start} is not UTF-8: convert the text first") from None
        if lines[-1] == "":
            lines.pop()
    return [line.removesuffix("\r") for line in lines]
