"""`docmt translate`: translate plain text line by line."""

import contextlib
import itertools
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from docmt import checksums
from docmt.commands import CommandGroup, Threads
from docmt.decoding.commands import BatchTokens, Device, ModelFile, Settings, choose_device
from docmt.decoding.settings import DecodingSettings, Precision
from docmt.errors import UserError
from docmt.files import read_lines, write_lines
from docmt.models.settings import Context
from docmt.outputs import Output
from docmt.snakemake import last_configuration

if TYPE_CHECKING:
    from docmt.decoding.translation import Translator
    from docmt.discourse.bundle import DiscourseBundle
    from docmt.models.model_file import TrainedModel

log = logging.getLogger(__name__)

SMALL_VOCABULARY = 4000
"""Models for real text have more subwords than this."""
MAX_UNKNOWN_SHARE = 0.05
"""Share of unknown subwords above which there is a warning."""

EXAMPLES = """Examples:
  docmt translate --model model.pt < document.txt       to the terminal
  docmt translate --model model.pt talk.en --out talk.de
  docmt translate --model model.pt --out out/ *.txt     out/NAME for each file
  docmt translate --model nllb.pt --source-lang deu --target-lang rus a.txt
  docmt translate --model model.pt --precision float32 a.txt"""


command = CommandGroup("translate", help_epilogue=EXAMPLES)


@command.default
def translate(
    *files: Path,
    model: ModelFile,
    out: Annotated[str | None, Output(lambda out, arguments: output_paths(arguments["files"], out))] = None,
    context: Context = "document",
    discourse: str | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    beam_size: int | None = None,
    precision: Precision | None = None,
    settings: Settings = DecodingSettings(),
    threads: Threads = 1,
    device: Device = "auto",
    batch_tokens: BatchTokens = None,
) -> None:
    """Translate documents with one sentence per line and blank lines between documents.

    Args:
        files: text files in UTF-8. Default: standard input.
        out: output file, or output folder (for several files, or if it ends in /). Default: standard output.
        context: `none` translates every sentence separately. `joined`, for sentence models, translates each instance as
            one sentence.
        discourse: trees for models that read them: `auto` (segment and parse, with the parser from `docmt models
            add-parser` or from the study), `none`, or a file with one tree per document, in order. Default: `auto` if
            there is a parser.
        source_lang: source language for a multilingual model. Default: as imported.
        target_lang: target language for a multilingual model. Default: as imported.
        beam_size: beam size. Default: as in --settings.
        precision: matrix product precision. `float32` is exact. Default: as in --settings, otherwise the fastest
            measured on this CPU.
    """
    tree_file = None
    if discourse not in (None, "auto", "none"):
        tree_file = Path(discourse)
    if context == "none" and discourse not in (None, "none"):
        raise UserError(
            "--context none and --discourse: separate sentences have no document trees; pass only one of the two"
        )
    if tree_file and len(files) > 1:
        raise UserError(f"--discourse {tree_file}: the trees belong to one text: translate the files one at a time")
    if out is None and len(files) > 1:
        raise UserError("several input files: pass a folder for the translations, --out FOLDER/")
    targets = [None] if out is None else output_paths(files, out)
    texts = [_read_lines(path) for path in files] or [_read_lines(None)]
    torch_device = choose_device(device, threads)
    from docmt.decoding.translation import Translator

    trained = _load(model, source_lang, target_lang, discourse)
    if len(trained.vocabulary) < SMALL_VOCABULARY:
        log.warning(
            "%s: the vocabulary has only %d subwords, typical of a small or generated corpus: expect poor "
            "translations of other text",
            model,
            len(trained.vocabulary),
        )
    settings = _complete(settings, trained, context, {"beam_size": beam_size, "precision": precision}, torch_device)
    with_trees = discourse in (None, "auto") and context != "none"
    translator = Translator(trained, settings, device=torch_device, batch_tokens=batch_tokens, with_trees=with_trees)
    for lines, target in zip(texts, targets, strict=True):
        translated = _translate_lines(translator, lines, context, tree_file)
        if target is not None:
            write_lines(target, translated, checksum=False)
            checksums.record_file(target, suffix=checksums.EDITABLE)
        else:
            sys.stdout.writelines(line + "\n" for line in translated)
        where = f"{target}: " if len(files) > 1 else ""
        _summarize(translator, where)


def _load(file: Path, source_lang: str | None, target_lang: str | None, discourse: str | None) -> "TrainedModel":
    """Load a model for the requested languages."""
    from docmt.models.model_file import load_model

    model = load_model(file)
    try:
        model = model.for_languages(source_lang, target_lang)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    if discourse not in (None, "auto") or model.discourse is not None:
        return model
    bundle = None
    reason = "the model reads no trees"
    if model.model.settings.needs_trees:
        bundle, reason = _discourse_of_study(file)
    if bundle is None and discourse == "auto":
        raise UserError(
            f"--discourse auto: {file} contains no segmenter and parser, and {reason}: add them with `docmt models "
            "add-parser`, or pass a file with trees"
        )
    if bundle is None and model.model.settings.needs_trees:
        log.warning(
            "%s reads discourse trees, but --discourse is not set, and %s: translating without trees", file, reason
        )
    return replace(model, discourse=bundle)


def _complete(
    settings: DecodingSettings, model: "TrainedModel", context: Context, options: dict[str, Any], device: str
) -> DecodingSettings:
    """Return the settings, overridden by options. On a CPU, the default precision is the fastest."""
    from docmt.decoding.decoding_model import precision_for

    values = {key: value for key, value in options.items() if value is not None}
    if context == "none" and model.model.settings.context is None:
        # Models without a context encoder can only read whole instances, so every sentence becomes a document.
        values["context"] = "document"
    elif context != "document":
        values["context"] = context
    if device == "cpu" and values.get("precision", settings.precision) == "auto":
        values["precision"] = precision_for(model.model)
    return DecodingSettings.load(settings.model_dump() | values, where="decoding")


def _discourse_of_study(file: Path) -> "tuple[DiscourseBundle | None, str]":
    """Return the segmenter and parser that made a model's training trees, by its study's configuration.

    Models of a study are in results/DATASET/runs/SYSTEM/seedN/. Without a result, the second value is the reason.
    """
    *_, results, dataset, runs, system, _, _ = ("",) * 6 + file.absolute().parts
    if (results, runs) != ("results", "runs"):
        return None, "the file is not in the folder of its study"
    study = file.absolute().parents[5]
    configuration = last_configuration(study)
    if not configuration:
        return None, "its study has no previous run, so the origin of its trees is unknown"
    from docmt.config.artifacts.base import Study
    from docmt.config.artifacts.discourse import document_trees
    from docmt.config.loading import load_config, read_config_files
    from docmt.discourse.annotation import read_bundle

    with contextlib.chdir(study):
        config = load_config(read_config_files(configuration))
        if dataset not in config.datasets or system not in config.systems:
            return None, "the configuration of the last run in its study has no such system"
        trees = config.instances[config.systems[system].instances].trees
        artifact = document_trees(Study(config), dataset, trees, "train") if trees else None
        # Gold trees and trees from files have no segmenter.
        if artifact is None or "segmenter" not in artifact.inputs:
            return None, f"its study reads other trees than a parser's (`discourse.trees.{trees}`)"
        log.info("using the trees of `discourse.trees.%s`; --discourse none translates without trees", trees)
        (segmenter,) = artifact.input_files("segmenter")
        parser = next(iter(artifact.input_files("parser")), artifact.params["parser"])
        return read_bundle(Path(segmenter), parser, sentences=artifact.params["sentences"]), ""


def output_paths(files: Sequence[Path], output: str) -> list[Path]:
    """Return output files by text."""
    if len(files) < 2 and not output.endswith("/") and not Path(output).is_dir():
        return [Path(output)]
    if not files:
        raise UserError(f"--out {output}: is a folder: the translation of standard input needs a file")
    return [Path(output) / path.name for path in files]


def _translate_lines(translator: "Translator", lines: list[str], context: Context, trees: Path | None) -> list[str]:
    """Return one output line per input line. Blank lines are kept."""
    from docmt.discourse.discourse_documents import read_discourse

    # Documents are consecutive lines that are not blank, here as line numbers.
    documents: list[list[int]] = []
    for is_blank, rows in itertools.groupby(range(len(lines)), key=lambda number: not lines[number].strip()):
        if is_blank:
            continue
        if context == "none":
            for row in rows:
                documents.append([row])
        else:
            documents.append(list(rows))
    texts = []
    for rows in documents:
        texts.append([lines[row] for row in rows])
    document_trees = read_discourse(trees) if trees else None
    translated = translator.translate_documents(texts, document_trees)
    output = [""] * len(lines)
    for rows, sentences in zip(documents, translated, strict=True):
        for row, sentence in zip(rows, sentences, strict=True):
            output[row] = sentence
    return output


def _summarize(translator: "Translator", where: str) -> None:
    """Log counts, and warn if many words are unknown to the model."""
    from docmt.decoding.translation import TranslationCounts

    counts = translator.counts
    translator.counts = TranslationCounts()
    log.info(
        "%s%d sentences; %d length-limited sentences; %d of %d subwords unknown",
        where,
        counts.sentences,
        counts.forced_ends,
        counts.unknown,
        counts.subwords,
    )
    if counts.unknown > MAX_UNKNOWN_SHARE * counts.subwords:
        share = 100 * counts.unknown / counts.subwords
        log.warning("%.0f %% of the subwords are unknown: was the model trained on different text?", share)


def _read_lines(path: Path | None) -> list[str]:
    """Return the lines in a file or standard input, with CRLF line ends removed."""
    if path is not None:
        lines = read_lines(path)
    else:
        if sys.stdin.isatty():
            log.warning("reading from the terminal, one sentence per line: finish with Ctrl-D")
        try:
            lines = sys.stdin.buffer.read().decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"standard input: byte {error.start} is not UTF-8: convert the text to UTF-8") from None
        if lines[-1] == "":
            lines.pop()
    return [line.removesuffix("\r") for line in lines]
