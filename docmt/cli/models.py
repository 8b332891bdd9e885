"""`docmt models`: published models in, sentence models out to other programs."""

import argparse
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.errors import UserError
from docmt.files import iterate_lines

FORMATS = ("marian", "ctranslate2")


def add_commands(parser: CommandParser) -> None:
    """Add the subcommands of `docmt models`."""
    summary = "read a published model (Marian, mBART, M2M100, NLLB) in the format of transformers"
    load = parser.add_command("import", run_import, summary)
    load.add_argument("folder", type=Path, help="folder with config.json, weights and SentencePiece models")
    load.add_paths(out="model file to write")
    load.add_argument("--src-lang", help="source language; default: as the folder says, if it does")
    load.add_argument("--tgt-lang", help="target language; default: as the folder says, if it does")
    load.add_argument(
        "--codes",
        nargs=2,
        metavar=("SRC", "TGT"),
        help="symbols of the two languages in the model, where they do not follow from the languages, such as eng_Latn",
    )
    load.add_argument(
        "--keep-pieces-of",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="text of both languages, one sentence per line: drop all pieces that it does not have",
    )
    load.epilog = "Example: docmt models import opus-mt-en-de --out model.pt (docs/pretrained.md)."

    save = parser.add_command("export", run_export, "write a sentence model for another program")
    save.add_paths(model="model file", out="folder to write")
    save.add_argument("--format", choices=FORMATS, required=True, help="format of the folder")


def run_import(options: argparse.Namespace) -> None:
    """Write a model file."""
    from docmt.models.importing import import_model
    from docmt.models.model_file import save_model
    from docmt.text.published import PublishedText

    languages = (options.src_lang, options.tgt_lang)
    if None in languages:
        languages = PublishedText.read(options.folder).languages or languages
    if None in languages:
        raise UserError(f"{options.folder} does not say its languages: give --src-lang and --tgt-lang")
    text = None
    if options.keep_pieces_of:
        text = [line for path in options.keep_pieces_of for line in iterate_lines(path)]
    save_model(options.out, import_model(options.folder, languages=languages, codes=options.codes, text=text))


def run_export(options: argparse.Namespace) -> None:
    """Write a folder."""
    from docmt.models.exporting import export_ctranslate2, export_marian
    from docmt.models.model_file import load_model

    export = {"marian": export_marian, "ctranslate2": export_ctranslate2}[options.format]
    export(load_model(options.model), options.out)
