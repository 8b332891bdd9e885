"""`docmt translate`: a document in, the same document in another language out."""

import argparse
import io
import itertools
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.cli.decode import add_batch_option, add_device_options, choose_device
from docmt.cli.options import CommandParser, HelpFormatter
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.files import read_bytes, read_lines, write_bytes, write_lines
from docmt.formats.build import FORMATS, find_format

if TYPE_CHECKING:
    from docmt.decoding.translation import Translator
    from docmt.formats.translation import FileCounts
    from docmt.models.model_file import TrainedModel

log = logging.getLogger(__name__)

SMALL_VOCABULARY = 4000
"""Fewer subwords than any model of real text has."""
MANY_UNKNOWN = 0.05
"""Share of unknown subwords above which there is a warning."""

EXAMPLES = """examples:
  docmt translate --model model.pt film.srt                     writes film.de.srt for a model from English to German
  docmt translate --model model.pt --out translated/ *.po *.md  writes translated/NAME for each file
  docmt translate --model model.pt --format lines list.txt      one sentence per line instead of paragraphs
  docmt translate --model model.pt < document.txt               one sentence per line, a blank line between documents
  docmt translate --model nllb.pt --source-lang deu --target-lang rus app.po
  docmt translate --model model.pt --context none --beam-size 1 --settings '{"precision": "int8"}' notes.docx

On a CPU, precision int8 makes wide models 1.6 to 2.7 times as fast, at some cost in quality (docs/decoding.md).
docs/translation.md says what is translated in each format, and what stays as it is."""


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="documents; by default, standard input")
    parser.add_paths(model="model file")
    parser.add_argument("--format", choices=tuple(FORMATS), help="format of the files (default: by suffix)")
    parser.add_argument("--input", type=Path, help="UTF-8 text, one sentence per line, a blank line between documents")
    parser.add_argument(
        "--out",
        "--output",
        dest="output",
        type=Path,
        help="file to write, or a folder for several (default: NAME.LANGUAGE.SUFFIX beside each file; standard output "
        "for --input and standard input)",
    )
    parser.add_argument(
        "--context",
        choices=("document", "none"),
        default="document",
        help="`none`: translate each sentence by itself, without the context encoder if there is one",
    )
    parser.add_argument("--sentences", action="store_const", dest="context", const="none", help="as --context none")
    parser.add_argument(
        "--discourse",
        metavar="TREES",
        help="for models that read trees: `auto` (segment and parse with what `docmt models bundle` added to it; "
        "the default where it has that), `none`, or a file with trees of the documents of plain lines",
    )
    help_of_pair = "language of the model, where it has several (default: those it was imported for)"
    parser.add_argument("--source-lang", metavar="LANG", help=help_of_pair)
    parser.add_argument("--target-lang", metavar="LANG", help=help_of_pair)
    parser.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept at each step (default: settings)")
    parser.add_settings("DecodingSettings")
    add_device_options(parser)
    add_batch_option(parser)
    parser.formatter_class = _ExamplesFormatter
    parser.epilog = EXAMPLES
    parser.set_defaults(run=run)


class _ExamplesFormatter(argparse.RawDescriptionHelpFormatter, HelpFormatter):
    """Help with examples whose lines stay as they are."""


def run(options: argparse.Namespace) -> None:
    """Translate files by their formats, or plain lines: one output line per input line."""
    device = choose_device(options)
    from docmt.decoding.translation import Translator

    settings = _settings(options)
    _check(options)
    model = _load(options)
    if not options.files and options.input is None and sys.stdin.isatty():
        log.warning("reading from the terminal: end the text with Ctrl-D")
    lines = [] if options.files or options.format else _read(options.input)
    if len(model.vocabulary) < SMALL_VOCABULARY:
        log.warning(
            "%s: its vocabulary has only %d subwords, like that of a model trained on a small or generated corpus: "
            "expect nonsense for other text",
            options.model,
            len(model.vocabulary),
        )
    if model.model.settings.needs_trees and options.discourse is None and model.discourse is None:
        log.warning("%s reads trees, but there is no --discourse: it translates without them", options.model)
    targets = _targets(options, model)
    if options.context == "none":
        skipped = "document" if model.model.settings.context is None else "none"
        settings = settings.model_copy(update={"context": skipped})
    with_trees = options.discourse in (None, "auto") and options.context != "none"
    translator = Translator(model, settings, device=device, batch_tokens=options.batch_tokens, with_trees=with_trees)
    if options.files or options.format:
        _translate_files(options, translator, targets)
    else:
        _translate_lines(options, translator, lines)
        _summarize(translator, "")


def _load(options: argparse.Namespace) -> "TrainedModel":
    """The model, for the languages that are asked for. Raises UserError when it does not have what options ask for."""
    from docmt.models.model_file import load_model

    model = load_model(options.model)
    try:
        model = model.for_languages(options.source_lang, options.target_lang)
    except UserError as error:
        raise UserError(f"{options.model}: {error}") from None
    if options.discourse == "auto" and model.discourse is None:
        raise UserError(
            "--discourse auto: most model files hold no segmenter and parser, as this one: add them with `docmt models "
            "bundle`, or give a file of trees"
        )
    return model


def _settings(options: argparse.Namespace) -> DecodingSettings:
    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    if options.beam_size is None:
        return settings
    return DecodingSettings.load(settings.model_dump() | {"beam_size": options.beam_size}, where="decoding")


def _check(options: argparse.Namespace) -> None:
    """Raises UserError when options contradict one another."""
    if options.context == "none" and options.discourse not in (None, "none"):
        raise UserError(
            "--sentences and --discourse: a list of sentences has no document trees; give only one of the two"
        )
    if _tree_file(options) and (options.files or options.format):
        raise UserError("--discourse: trees belong to plain lines: give the text with --input or as standard input")
    if options.files and options.input:
        raise UserError("--input and files: --input is for plain lines; give only one of the two")
    for path in options.files:
        find_format(path, options.format)


def _tree_file(options: argparse.Namespace) -> Path | None:
    """The file of trees, if one is given."""
    return None if options.discourse in (None, "auto", "none") else Path(options.discourse)


def _targets(options: argparse.Namespace, model: "TrainedModel") -> list[Path]:
    """The file to write for each file. Raises UserError when two would be one, or one would be overwritten."""
    is_folder = options.output is not None and (len(options.files) > 1 or options.output.is_dir())
    targets = []
    for path in options.files:
        if options.output is None:
            targets.append(path.with_suffix(f".{model.pipeline.tgt_lang}{path.suffix}"))
        else:
            targets.append(options.output / path.name if is_folder else options.output)
        if targets[-1].resolve() == path.resolve():
            raise UserError(f"{path}: would be overwritten: give another --out")
        if targets[-1] in targets[:-1]:
            raise UserError(f"{targets[-1]}: would be written for two files: translate them one at a time")
    return targets


def _translate_files(options: argparse.Namespace, translator: "Translator", targets: list[Path]) -> None:
    """Translate each file, or standard input in the format that was named."""
    from docmt.decoding.files import translate_bytes, translate_file

    keywords = {"form": options.format, "with_context": options.context == "document"}
    for path, target in zip(options.files, targets, strict=True):
        counts = translate_file(translator, path, target, **keywords)
        _summarize(translator, f"{target}: ", counts)
    if not options.files:
        content = sys.stdin.buffer.read() if options.input is None else read_bytes(options.input)
        data, counts = translate_bytes(translator, content, options.input or Path("standard input"), **keywords)
        if options.output is None:
            sys.stdout.buffer.write(data)
        else:
            write_bytes(options.output, data)
        _summarize(translator, "", counts)


def _summarize(translator: "Translator", where: str, counts: "FileCounts | None" = None) -> None:
    """One line about what was translated, and a warning if the model does not know the words of the text."""
    from docmt.decoding.translation import TranslationCounts

    seen, translator.counts = translator.counts, TranslationCounts()
    parts = [f"{counts.sentences if counts else seen.sentences} sentences"]
    if counts and counts.context:
        parts.append(f"{counts.context} read as context")
    parts += [f"{seen.forced_ends} forced ends", f"{seen.unknown} of {seen.subwords} subwords unknown"]
    if counts:
        left = [f"{number} left as they were ({cause})" for cause, number in counts.untouched.items()]
        simplified = [f"{counts.simplified} without changes of style"] if counts.simplified else []
        parts += [f"{counts.lost} placeholders lost", ", ".join([f"{counts.segments} segments", *left, *simplified])]
    log.info("%s%s", where, "; ".join(parts))
    if seen.unknown > MANY_UNKNOWN * seen.subwords:
        share = 100 * seen.unknown / seen.subwords
        log.warning("%.0f %% of the subwords are unknown to the model: it was trained on other text", share)


def _translate_lines(options: argparse.Namespace, translator: "Translator", lines: list[str]) -> None:
    """One output line per input line; blank lines stay where they are."""
    from docmt.discourse.documents import read_discourse

    documents = split_at_blanks(lines)
    if options.context == "none":
        documents = [[row] for rows in documents for row in rows]
    file = _tree_file(options)
    trees = read_discourse(file) if file else None
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
