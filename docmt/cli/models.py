"""`docmt models`: the catalog of published models, models in, and sentence models out to other programs."""

import argparse
import json
import logging
from dataclasses import replace
from pathlib import Path

from docmt.cli.options import SENTENCE_TREES, CommandParser, print_table
from docmt.errors import UserError
from docmt.files import iterate_lines, sha256_file

log = logging.getLogger(__name__)

FORMATS = ("marian", "ctranslate2")


def add_commands(parser: CommandParser) -> None:
    """Add the subcommands of `docmt models`."""
    listing = parser.add_command("list", run_list, "print the catalog of published models as a table")
    listing.add_argument("--json", action="store_true", help="print JSON instead")

    fetch = parser.add_command("fetch", run_fetch, "fetch the files of a published model, from a mirror or the network")
    fetch.add_argument("--model", required=True, metavar="NAME", help="name in the catalog")
    fetch.add_argument("--out", type=Path, help="folder for the files (default: where a study in this folder has them)")
    fetch.add_mirror()

    summary = "read a published model (Marian, mBART, M2M100, NLLB) in the format of transformers"
    load = parser.add_command("import", run_import, summary)
    load.add_argument(
        "folder",
        help="folder with config.json, weights and SentencePiece models, or a name in the catalog, which is fetched",
    )
    load.add_paths(out="model file to write")
    load.add_argument("--src-lang", help="source language; default: as catalog or folder say, if they do")
    load.add_argument("--tgt-lang", help="target language; default: as catalog or folder say, if they do")
    load.add_mirror()
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

    summary = "add a segmenter and a parser to a model that reads trees, so that it translates plain text with them"
    bundle = parser.add_command("bundle", run_bundle, summary)
    bundle.add_paths(model="model file of a system that reads trees", segmenter="segmenter model")
    bundle.add_argument("--parser", required=True, help="parser model, or chain, right_branching or flat")
    summary = "where the tree of sentences comes from: the parser, or each sentence depends on the one before"
    bundle.add_argument("--sentences", choices=SENTENCE_TREES, default=SENTENCE_TREES[0], help=summary)
    bundle.add_paths(out="model file to write")

    save = parser.add_command("export", run_export, "write a sentence model for another program")
    save.add_paths(model="model file", out="folder to write")
    save.add_argument("--format", choices=FORMATS, required=True, help="format of the folder")


def run_list(options: argparse.Namespace) -> None:
    """Print the catalog."""
    from docmt.models.catalogue import load_models

    rows = [
        {
            "model": name,
            "languages": "-".join(entry.pair) if entry.pair else str(len(entry.languages) or "many"),
            "MB": entry.megabytes,
            "kind": entry.kind,
            "terms": entry.terms,
            "license": entry.license,
            "title": entry.title,
        }
        for name, entry in load_models().items()
    ]
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print_table(rows)


def run_fetch(options: argparse.Namespace) -> None:
    """Fetch a model."""
    _fetch(options.model, options.out, options.mirror)


def _fetch(name: str, out: Path | None, mirror: str | None) -> Path:
    """Fetch a model of the catalog, where it is not in place yet; says its license. Returns its folder."""
    from docmt.models.catalogue import fetch_model, find_model, study_folder

    entry = find_model(name)
    out = out or Path(study_folder(name))
    log.info("%s, about %s MB into %s; license: %s", name, f"{entry.megabytes:,}", out, entry.license)
    fetch_model(name, out, mirror=Path(mirror) if mirror else None)
    return out


def run_import(options: argparse.Namespace) -> None:
    """Write a model file."""
    from docmt.models.catalogue import find_model, is_published
    from docmt.models.importing import import_model
    from docmt.models.model_file import save_model
    from docmt.text.published import PublishedText

    folder, known = Path(options.folder), None
    if is_published(options.folder):
        folder = _fetch(options.folder, None, options.mirror)
        known = find_model(options.folder).pair
    known = known or PublishedText.read(folder).languages or (None, None)
    src, tgt = options.src_lang or known[0], options.tgt_lang or known[1]
    if src is None or tgt is None:
        raise UserError(f"{options.folder} does not say its languages: give --src-lang and --tgt-lang")
    text = None
    if options.keep_pieces_of:
        text = [line for path in options.keep_pieces_of for line in iterate_lines(path)]
    save_model(options.out, import_model(folder, languages=(src, tgt), codes=options.codes, text=text))


def run_bundle(options: argparse.Namespace) -> None:
    """Write a model file that carries a segmenter and a parser."""
    from docmt.decoding.bundled import read_bundle
    from docmt.models.model_file import load_model, save_model

    trained = load_model(options.model)
    if not trained.model.settings.needs_trees:
        raise UserError(f"{options.model}: reads no trees, so it needs no segmenter and parser")
    bundle = read_bundle(options.segmenter, options.parser, sentences=options.sentences)
    parser = options.parser if isinstance(bundle.parser, str) else sha256_file(Path(options.parser))
    facts = {"segmenter": sha256_file(options.segmenter), "parser": parser, "sentences": options.sentences}
    save_model(options.out, replace(trained, discourse=bundle, provenance=trained.provenance | {"bundled": facts}))


def run_export(options: argparse.Namespace) -> None:
    """Write a folder."""
    from docmt.models.exporting import export_ctranslate2, export_marian
    from docmt.models.model_file import load_model

    export = {"marian": export_marian, "ctranslate2": export_ctranslate2}[options.format]
    export(load_model(options.model), options.out)
