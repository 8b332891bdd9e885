"""`docmt text`: convert sentences to subwords and back, stage by stage."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.cli.main import HelpFormatter

if TYPE_CHECKING:
    from docmt.text.settings import TextSettings


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `docmt text`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    _add_stages(commands)
    _add_pipeline(commands)


def _add(
    commands: argparse._SubParsersAction, name: str, summary: str, run: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary, formatter_class=HelpFormatter)
    command.set_defaults(run=run)
    return command


def _add_stages(commands: argparse._SubParsersAction) -> None:
    tokenize = _add(commands, "tokenize", "normalize and tokenize a file", run_tokenize)
    _add_settings(tokenize)
    tokenize.add_argument("--lang", required=True, help="language code, such as `en`")
    _add_files(tokenize)
    _add_jobs(tokenize)

    summary = "learn from tokenized files how words are written inside sentences"
    learn_truecaser = _add(commands, "learn-truecaser", summary, run_learn_truecaser)
    _add_settings(learn_truecaser)
    _add_files(learn_truecaser, several=True)

    truecase = _add(commands, "truecase", "write the first word of a line as inside a sentence", run_truecase)
    truecase.add_argument("--model", type=Path, required=True, help="truecaser file")
    _add_files(truecase)
    _add_jobs(truecase)

    learn_bpe = _add(commands, "learn-bpe", "learn BPE merges jointly on several files", run_learn_bpe)
    _add_settings(learn_bpe)
    _add_files(learn_bpe, several=True)

    apply_bpe = _add(commands, "apply-bpe", "split tokens into subwords", run_apply_bpe)
    apply_bpe.add_argument("--codes", type=Path, required=True, help="file of BPE merges")
    _add_files(apply_bpe)
    _add_jobs(apply_bpe)

    summary = "learn a vocabulary jointly on several files of subwords"
    learn_vocabulary = _add(commands, "learn-vocabulary", summary, run_learn_vocabulary)
    _add_files(learn_vocabulary, several=True)
    learn_vocabulary.add_argument(
        "--tags",
        nargs="+",
        default=[],
        metavar="LANG",
        help="for cross-task training: add [MASK1], [MASK2] and a tag for each of these languages",
    )


def _add_pipeline(commands: argparse._SubParsersAction) -> None:
    pack = _add(commands, "pack", "write settings, truecasers and merges to one file", run_pack)
    _add_settings(pack)
    pack.add_argument("--src-lang", required=True, help="source language code")
    pack.add_argument("--tgt-lang", required=True, help="target language code")
    pack.add_argument("--truecasers", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    pack.add_argument("--codes", type=Path, required=True, help="file of BPE merges")
    pack.add_argument("--out", type=Path, required=True, help="file to write")

    restore = _add(commands, "restore", "restore sentences from subwords", run_restore)
    _add_packed(restore)
    restore.add_argument("--lang", required=True, help="language code")
    _add_files(restore)

    roundtrip = _add(commands, "roundtrip", "count the lines that are restored exactly from subwords", run_roundtrip)
    _add_packed(roundtrip)
    roundtrip.add_argument("--inputs", nargs="+", required=True, metavar="LANG=FILE", help="plain text files")
    roundtrip.add_argument("--out", type=Path, required=True, help="JSON file to write")


def _add_packed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pipeline", type=Path, required=True, help="file written by `docmt text pack`")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", default="{}", help="TextSettings as JSON or @FILE")


def _add_files(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    if several:
        parser.add_argument(
            "--inputs", "--input", type=Path, nargs="+", required=True, metavar="FILE", help="files to read"
        )
    else:
        parser.add_argument("--input", type=Path, required=True, help="file to read, one sentence per line")
    parser.add_argument("--out", type=Path, required=True, help="file to write")


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")


def _settings(options: argparse.Namespace) -> "TextSettings":
    from docmt.text.settings import TextSettings

    return TextSettings.from_argument(options.settings, where="text")


def run_tokenize(options: argparse.Namespace) -> None:
    """Tokenize a file."""
    from docmt.text.stages import tokenize_file

    settings = _settings(options)
    tokenize_file(options.input, options.out, lang=options.lang, settings=settings, jobs=options.jobs)


def run_learn_truecaser(options: argparse.Namespace) -> None:
    """Learn a truecaser on tokenized files."""
    from docmt.text.stages import learn_truecaser_file

    learn_truecaser_file(options.inputs, options.out, settings=_settings(options))


def run_truecase(options: argparse.Namespace) -> None:
    """Truecase a tokenized file."""
    from docmt.text.stages import truecase_file

    truecase_file(options.input, options.out, model=options.model, jobs=options.jobs)


def run_learn_bpe(options: argparse.Namespace) -> None:
    """Learn BPE merges."""
    from docmt.text.stages import learn_bpe_file

    learn_bpe_file(options.inputs, options.out, settings=_settings(options))


def run_apply_bpe(options: argparse.Namespace) -> None:
    """Split a file into subwords."""
    from docmt.text.stages import apply_bpe_file

    apply_bpe_file(options.input, options.out, codes=options.codes, jobs=options.jobs)


def run_learn_vocabulary(options: argparse.Namespace) -> None:
    """Learn a vocabulary on files of subwords."""
    from docmt.text.stages import learn_vocabulary_file

    learn_vocabulary_file(options.inputs, options.out, tags=options.tags)


def run_pack(options: argparse.Namespace) -> None:
    """Write the text pipeline of two languages."""
    from docmt.text.stages import pack_pipeline

    pack_pipeline(
        options.out,
        settings=_settings(options),
        languages=(options.src_lang, options.tgt_lang),
        truecasers=options.truecasers,
        codes=options.codes,
    )


def run_restore(options: argparse.Namespace) -> None:
    """Restore sentences from a file of subwords."""
    from docmt.text.pipeline import TextPipeline
    from docmt.text.stages import restore_file

    restore_file(options.input, options.out, pipeline=TextPipeline.load(options.pipeline), lang=options.lang)


def run_roundtrip(options: argparse.Namespace) -> None:
    """Count the lines that are restored exactly, and print how many."""
    from docmt.files import write_json
    from docmt.text.pipeline import TextPipeline
    from docmt.text.roundtrip import measure_files

    results = measure_files(TextPipeline.load(options.pipeline), options.inputs)
    write_json(options.out, results)
    for lang, result in results["languages"].items():
        print(f"{lang}: {result['restored']} of {result['lines']} lines restored")
