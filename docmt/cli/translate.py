"""`docmt translate`: a document in, the same document in another language out."""

import io
import itertools
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from docmt.commands import CommandGroup, Threads
from docmt.decoding.commands import BatchTokens, Device, ModelFile, Settings, ShortlistFile, choose_device
from docmt.decoding.settings import DecodingSettings, Precision
from docmt.errors import UserError
from docmt.files import read_bytes, read_lines, write_bytes, write_lines
from docmt.formats.registry import FORMATS, find_format
from docmt.models.settings import Context

if TYPE_CHECKING:
    from docmt.decoding.translation import Translator
    from docmt.formats.file_translation import FileCounts
    from docmt.models.model_file import TrainedModel

log = logging.getLogger(__name__)

SMALL_VOCABULARY = 4000
"""Fewer subwords than any model of real text has."""
MANY_UNKNOWN = 0.05
"""Share of unknown subwords above which there is a warning."""

EXAMPLES = """Examples:
  docmt translate --model model.pt film.srt            film.de.srt, if to German
  docmt translate --model model.pt --out out/ *.po     out/NAME for each file
  docmt translate --model model.pt --format lines a    a sentence per line
  docmt translate --model model.pt < document.txt      plain lines, with a
                                            blank line between documents
  docmt translate --model nllb.pt --source-lang deu --target-lang rus app.po
  docmt translate --model model.pt --precision float32 a.docx

docs/translation.md says what is translated in each format, and what stays."""


command = CommandGroup("translate", help_epilogue=EXAMPLES)


@command.default
def translate(
    *files: Path,
    model: ModelFile,
    format: Annotated[str | None, Parameter(choices=tuple(FORMATS))] = None,
    input: Path | None = None,
    output: Annotated[str | None, Parameter(name=("--out", "--output"))] = None,
    report: Path | None = None,
    strict: bool = False,
    force: bool = False,
    context: Context = "document",
    sentences: bool = False,
    discourse: str | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    beam_size: int | None = None,
    precision: Precision | None = None,
    settings: Settings = DecodingSettings(),
    threads: Threads = 1,
    device: Device = "auto",
    batch_tokens: BatchTokens = None,
    shortlist: ShortlistFile = None,
) -> int:
    """Translate files by their formats, or plain lines: one output line per input line.

    Args:
        files: documents; by default, standard input.
        format: format of the files; by default found by suffix.
        input: UTF-8 text, one sentence per line, a blank line between documents.
        output: file to write, or a folder: for several files, or if it ends in /; by default NAME.LANGUAGE.SUFFIX
            beside each file, and standard output for --input and standard input.
        report: table to write (TSV) of what was left untranslated: source, rejected output, reason, file.
        strict: end with exit code 1 if anything in a file was left untranslated.
        force: translate files that declare other languages than the model's.
        context: `none` translates each sentence by itself, without the context encoder if there is one.
        sentences: same as --context none.
        discourse: for models that read trees: `auto` (segment and parse with what `docmt models bundle` added to it, or
            else with the segmenter and parser of its study; the default where there is one), `none`, or a file with
            trees of the documents of plain lines.
        source_lang: source language, where the model has several; by default the one it was imported for.
        target_lang: target language, where the model has several; by default the one it was imported for.
        beam_size: hypotheses kept at each step; by default that of --settings.
        precision: of products of matrices; by default that of --settings, or else, on a CPU, the fastest as measured:
            `float32` is exact.
    """
    context = "none" if sentences else context
    by_format = bool(files or format)
    tree_file = None if discourse in (None, "auto", "none") else Path(discourse)
    if context == "none" and discourse not in (None, "none"):
        raise UserError(
            "--sentences and --discourse: a list of sentences has no document trees; give only one of the two"
        )
    if tree_file and by_format:
        raise UserError("--discourse: trees belong to plain lines: give the text with --input or as standard input")
    if (report or strict or force) and not by_format:
        raise UserError("--report, --strict and --force are for files: plain lines are all translated")
    if files and input:
        raise UserError("--input and files: --input is for plain lines; give only one of the two")
    for path in files:
        find_format(path, format)

    chosen = choose_device(device, threads)
    from docmt.decoding.translation import Translator, translate_bytes

    trained = _load(model, source_lang, target_lang, discourse)
    target = Path(output) if output else None
    targets = _targets(files, output, trained.pipeline.tgt_lang)
    if report and report.resolve() in {path.resolve() for path in (*files, *targets, input, target) if path}:
        raise UserError(f"--report {report}: is one of the other files: give another name")
    lines = [] if by_format else _read_lines(input)
    _warn(trained, model, discourse)
    settings = _complete(settings, trained, context, {"beam_size": beam_size, "precision": precision}, chosen)
    with_trees = discourse in (None, "auto") and context != "none"
    translator = Translator(
        trained, settings, device=chosen, batch_tokens=batch_tokens, with_trees=with_trees, shortlist=shortlist
    )

    has_context = context == "document"
    rows = []
    if not by_format:
        _write_lines(target, _translate_lines(translator, lines, context, tree_file))
        _summarize(translator, "")
        return 0
    try:
        for path, out in zip(files, targets, strict=True) if files else [(input or Path("standard input"), target)]:
            content = read_bytes(path) if files else _read_stream(input)
            data, counts = translate_bytes(
                translator, content, path, form=format, with_context=has_context, force=force
            )
            if out:
                write_bytes(out, data)
            else:
                sys.stdout.buffer.write(data)
            rows += [(*row, str(path)) for row in counts.left]
            _summarize(translator, f"{out}: " if files else "", counts)
    finally:  # files before one with an error are written, so they are in the report
        if report:
            cells = (("source", "output", "reason", "file"), *rows)
            write_lines(report, ("\t".join(" ".join(cell.split()) for cell in row) for row in cells), checksum=False)
    return int(strict and bool(rows))


def _load(file: Path, source_lang: str | None, target_lang: str | None, discourse: str | None) -> "TrainedModel":
    """The model for the languages that are asked for.

    Raises UserError when it does not have what options ask for.
    """
    from docmt.models.model_file import load_model

    model = load_model(file)
    try:
        model = model.for_languages(source_lang, target_lang)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    if discourse in (None, "auto") and model.discourse is None and model.model.settings.needs_trees:
        model = _with_discourse_of_study(model, file)
    if discourse == "auto" and model.discourse is None:
        raise UserError(
            "--discourse auto: most model files hold no segmenter and parser, as this one: add them with `docmt models "
            "bundle`, or give a file of trees"
        )
    return model


def _complete(
    settings: DecodingSettings, model: "TrainedModel", context: Context, options: dict[str, Any], device: str
) -> DecodingSettings:
    """The settings with the options that are given on top, and on a CPU with the fastest precision unless one is."""
    from docmt.decoding.translation import precision_for

    given = {key: value for key, value in options.items() if value is not None}
    if context == "none":
        # A model without a context encoder has no other way to read a document: its sentences are its documents.
        given["context"] = "document" if model.model.settings.context is None else "none"
    if device == "cpu" and given.get("precision", settings.precision) == "auto":
        given["precision"] = precision_for(model.model)
    return DecodingSettings.load(settings.model_dump() | given, where="decoding")


def _warn(model: "TrainedModel", file: Path, discourse: str | None) -> None:
    """Log why translations by a model may be worse than one expects."""
    if len(model.vocabulary) < SMALL_VOCABULARY:
        log.warning(
            "%s: its vocabulary has only %d subwords, like that of a model trained on a small or generated corpus: "
            "expect nonsense for other text",
            file,
            len(model.vocabulary),
        )
    if model.model.settings.needs_trees and discourse is None and model.discourse is None:
        log.warning("%s reads trees, but there is no --discourse: it translates without them", file)


def _with_discourse_of_study(model: "TrainedModel", file: Path) -> "TrainedModel":
    """The model with the segmenter and parser of its study, results/DATASET/runs/SYSTEM/seedN/, if it has one each."""
    from docmt.discourse.annotation import read_bundle

    folders = file.absolute().parents
    discourse = folders[min(4, len(folders) - 1)] / "discourse"
    segmenters, parsers = (sorted(discourse.glob(f"{kind}s/*/{kind}.pt")) for kind in ("segmenter", "parser"))
    if folders[min(2, len(folders) - 1)].name != "runs" or len(segmenters) != 1 or len(parsers) != 1:
        return model
    log.info("trees by %s and %s; --discourse none translates without them", segmenters[0], parsers[0])
    return replace(model, discourse=read_bundle(segmenters[0], str(parsers[0]), sentences="parser"))


def _targets(files: tuple[Path, ...], output: str | None, tgt_lang: str) -> list[Path]:
    """The file to write for each file. Raises UserError when two would be one, or a file would be overwritten."""
    is_folder = output is not None and (len(files) > 1 or output.endswith("/") or Path(output).is_dir())
    if is_folder and not files:
        raise UserError(f"--out {output}: is a folder, but standard input and --input are written to a file")
    sources, targets = {path.resolve() for path in files}, dict[Path, Path]()
    for path in files:
        is_template = path.suffix == ".pot"
        if output is None:  # the catalog of a template has the name of its language
            target = path.with_name(f"{'' if is_template else path.stem + '.'}{tgt_lang}{path.suffix}")
        else:
            target = Path(output) / path.name if is_folder else Path(output)
        if is_template and (output is None or is_folder):
            target = target.with_suffix(".po")
        if target.resolve() in sources:
            raise UserError(f"{target}: would be overwritten: give another --out")
        if target.resolve() in targets:
            raise UserError(f"{target}: would be written for two files: translate them one at a time")
        targets[target.resolve()] = target
    return list(targets.values())


def _read_stream(source: Path | None) -> bytes:
    if source is None and sys.stdin.isatty():
        log.warning("reading from the terminal: end the text with Ctrl-D")
    return sys.stdin.buffer.read() if source is None else read_bytes(source)


def _translate_lines(translator: "Translator", lines: list[str], context: Context, trees: Path | None) -> list[str]:
    """One output line per input line; blank lines stay where they are."""
    from docmt.discourse.documents import read_discourse

    documents = split_at_blanks(lines)
    if context == "none":
        documents = [[row] for rows in documents for row in rows]
    texts = [[lines[i] for i in rows] for rows in documents]
    translated = translator.translate_documents(texts, read_discourse(trees) if trees else None)
    output = [""] * len(lines)
    for rows, sentences in zip(documents, translated, strict=True):
        for row, sentence in zip(rows, sentences, strict=True):
            output[row] = sentence
    return output


def _write_lines(output: Path | None, lines: list[str]) -> None:
    if output is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.writelines(line + "\n" for line in lines)
    else:
        write_lines(output, lines, checksum=False)


def _summarize(translator: "Translator", where: str, counts: "FileCounts | None" = None) -> None:
    """Log what was not translated, what was, and whether the model does not know the words of the text."""
    from docmt.decoding.translation import TranslationCounts

    seen, translator.counts = translator.counts, TranslationCounts()
    if counts and counts.left:
        n_left, causes = len(counts.left), "; ".join(f"{number} {cause}" for cause, number in counts.untouched.items())
        log.warning(
            "%s%d of %d segments were left in the source language (%s): %s",
            where,
            n_left,
            counts.segments,
            translator.trained.pipeline.src_lang,
            causes if len(counts.untouched) > 1 else next(iter(counts.untouched)),
        )
    parts = [f"{counts.sentences if counts else seen.sentences} sentences"]
    if counts and counts.context:
        parts.append(f"{counts.context} read as context")
    parts += [f"{seen.forced_ends} forced ends", f"{seen.unknown} of {seen.subwords} subwords unknown"]
    if counts:
        parts += [f"{counts.lost} placeholders lost"] if counts.lost else []
        aligned = f", {counts.aligned} of them with markup put back by alignment" if counts.aligned else ""
        parts.append(f"{counts.segments - len(counts.left)} of {counts.segments} segments{aligned}")
    log.info("%s%s", where, "; ".join(parts))
    if seen.unknown > MANY_UNKNOWN * seen.subwords:
        share = 100 * seen.unknown / seen.subwords
        log.warning("%.0f %% of the subwords are unknown to the model: it was trained on other text", share)


def split_at_blanks(lines: list[str]) -> list[list[int]]:
    """The line numbers of each document: runs of lines that are not blank."""
    groups = itertools.groupby(range(len(lines)), key=lambda number: not lines[number].strip())
    return [list(numbers) for is_blank, numbers in groups if not is_blank]


def _read_lines(path: Path | None) -> list[str]:
    """The lines of a file or of standard input, without the CR of CRLF line ends."""
    if path is not None:
        lines = read_lines(path)
    else:
        if sys.stdin.isatty():
            log.warning("reading from the terminal, one sentence per line: end the text with Ctrl-D")
        try:
            lines = sys.stdin.buffer.read().decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"standard input: byte {error.start} is not UTF-8: convert the text first") from None
        if lines[-1] == "":
            lines.pop()
    return [line.removesuffix("\r") for line in lines]
