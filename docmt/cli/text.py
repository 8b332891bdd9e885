"""`docmt text`: convert sentences to subwords and back, stage by stage."""

import argparse
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.files import write_json
from docmt.text import stages
from docmt.text.pipeline import TextPipeline
from docmt.text.roundtrip import measure_files
from docmt.text.settings import TextSettings


def add_commands(parser: CommandParser) -> None:
    """Add the subcommands of `docmt text`."""
    tokenize = parser.add_command("tokenize", run_tokenize, "normalize and tokenize a file")
    tokenize.add_settings("TextSettings")
    tokenize.add_argument("--lang", required=True, help="language code, such as `en`")
    _add_file(tokenize)
    _add_jobs(tokenize)

    summary = "learn from tokenized files how words are written inside sentences"
    learn_truecaser = parser.add_command("learn-truecaser", run_learn_truecaser, summary)
    learn_truecaser.add_settings("TextSettings")
    _add_files(learn_truecaser)
    _add_jobs(learn_truecaser)

    truecase = parser.add_command("truecase", run_truecase, "write the first word of a line as inside a sentence")
    truecase.add_paths(model="truecaser file")
    _add_file(truecase)
    _add_jobs(truecase)

    learn_bpe = parser.add_command(
        "learn-bpe", run_learn_bpe, "learn BPE merges, or SentencePiece, jointly on several files"
    )
    learn_bpe.add_settings("TextSettings")
    _add_files(learn_bpe)
    _add_languages(learn_bpe)

    apply_bpe = parser.add_command("apply-bpe", run_apply_bpe, "split tokens into subwords")
    apply_bpe.add_paths(codes="file of BPE merges, or of SentencePiece models")
    apply_bpe.add_argument("--lang", default="*", help="language code, where each language has its model")
    _add_file(apply_bpe)
    _add_jobs(apply_bpe)

    summary = "learn a vocabulary jointly on several files of subwords"
    learn_vocabulary = parser.add_command("learn-vocabulary", run_learn_vocabulary, summary)
    _add_files(learn_vocabulary)
    summary = "for cross-task training: add [MASK1], [MASK2] and a tag for each of these languages"
    learn_vocabulary.add_argument("--tags", nargs="+", default=[], metavar="LANG", help=summary)

    learn_vocabulary.add_argument("--pretrained", type=Path, help="take the symbols of a published model")
    learn_vocabulary.add_argument("--keep", choices=("all", "seen"), default="all", help="which of its pieces")
    _add_languages(learn_vocabulary)

    pack = parser.add_command("pack", run_pack, "write settings, truecasers and merges to one file")
    pack.add_settings("TextSettings")
    pack.add_argument("--src-lang", required=True, help="source language code")
    pack.add_argument("--tgt-lang", required=True, help="target language code")
    pack.add_argument("--truecasers", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    pack.add_paths(codes="file of BPE merges", out="file to write")

    restore = parser.add_command("restore", run_restore, "restore sentences from subwords")
    restore.add_paths(pipeline="file written by `docmt text pack`")
    restore.add_argument("--lang", required=True, help="language code")
    _add_file(restore)

    summary = "count the lines that are restored exactly from subwords"
    roundtrip = parser.add_command("roundtrip", run_roundtrip, summary)
    roundtrip.add_paths(pipeline="file written by `docmt text pack`")
    roundtrip.add_argument("--inputs", nargs="+", required=True, metavar="LANG=FILE", help="plain text files")
    roundtrip.add_paths(out="JSON file to write")


def _add_file(parser: CommandParser) -> None:
    parser.add_paths(input="file to read, one sentence per line", out="file to write")


def _add_files(parser: CommandParser) -> None:
    names = ("--inputs", "--input")
    parser.add_argument(*names, type=Path, nargs="+", required=True, metavar="FILE", help="files to read")
    parser.add_paths(out="file to write")


def _add_languages(parser: CommandParser) -> None:
    parser.add_argument("--src-lang", help="source language code, for a published model")
    parser.add_argument("--tgt-lang", help="target language code, for a published model")


def _add_jobs(parser: CommandParser) -> None:
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")


def _settings(options: argparse.Namespace) -> TextSettings:
    return TextSettings.from_argument(options.settings, where="text")


def run_tokenize(options: argparse.Namespace) -> None:
    """Tokenize a file."""
    settings = _settings(options)
    stages.tokenize_file(options.input, options.out, lang=options.lang, settings=settings, jobs=options.jobs)


def run_learn_truecaser(options: argparse.Namespace) -> None:
    """Learn a truecaser on tokenized files."""
    stages.learn_truecaser_file(options.inputs, options.out, settings=_settings(options), jobs=options.jobs)


def run_truecase(options: argparse.Namespace) -> None:
    """Truecase a tokenized file."""
    stages.truecase_file(options.input, options.out, model=options.model, jobs=options.jobs)


def run_learn_bpe(options: argparse.Namespace) -> None:
    """Learn BPE merges."""
    stages.learn_bpe_file(
        options.inputs, options.out, settings=_settings(options), languages=(options.src_lang, options.tgt_lang)
    )


def run_apply_bpe(options: argparse.Namespace) -> None:
    """Split a file into subwords."""
    stages.apply_bpe_file(options.input, options.out, codes=options.codes, lang=options.lang, jobs=options.jobs)


def run_learn_vocabulary(options: argparse.Namespace) -> None:
    """Learn a vocabulary on files of subwords, or take that of a published model."""
    if options.pretrained is not None:
        stages.published_vocabulary_file(
            options.inputs,
            options.out,
            folder=options.pretrained,
            languages=(options.src_lang, options.tgt_lang),
            keep=options.keep,
        )
        return
    stages.learn_vocabulary_file(options.inputs, options.out, tags=options.tags)


def run_pack(options: argparse.Namespace) -> None:
    """Write the text pipeline of two languages."""
    stages.pack_pipeline(
        options.out,
        settings=_settings(options),
        languages=(options.src_lang, options.tgt_lang),
        truecasers=options.truecasers,
        codes=options.codes,
    )


def run_restore(options: argparse.Namespace) -> None:
    """Restore sentences from a file of subwords."""
    stages.restore_file(options.input, options.out, pipeline=TextPipeline.load(options.pipeline), lang=options.lang)


def run_roundtrip(options: argparse.Namespace) -> None:
    """Count the lines that are restored exactly, and print how many."""
    results = measure_files(TextPipeline.load(options.pipeline), options.inputs)
    write_json(options.out, results)
    for lang, result in results["languages"].items():
        print(f"{lang}: {result['restored']} of {result['lines']} lines restored")
