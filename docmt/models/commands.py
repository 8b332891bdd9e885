"""`docmt models`: the catalog of published models, imports, and bundles with a parser."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from docmt.checksums import sha256_file
from docmt.commands import CommandGroup, Mirror, OutFile, SharedFolder, option, print_table, settings_at
from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.instances.settings import InstancesSettings

log = logging.getLogger(__name__)

commands = CommandGroup("models")


@commands.command(name="list")
def list_models(*, json_output: Annotated[bool, option("print JSON instead.", name="--json")] = False) -> None:
    """Print the catalog of published models as a table.

    Example:
        docmt models list
    """
    from docmt.models.published.catalog import load_models

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
    if json_output:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print_table(rows)


@commands.command
def fetch(*, model: str, out: SharedFolder | None = None, mirror: Mirror = None) -> None:
    """Download a published model, or copy it from a mirror.

    Example:
        docmt models fetch --model opus-mt-en-de --mirror /folder/with/models

    Args:
        model: name in the catalog.
        out: folder for the files. Default: resources/models/NAME/VERSION, which studies in this folder read.
    """
    from docmt.models.published.catalog import fetch_model, find_model, study_folder

    entry = find_model(model)
    out = out or Path(study_folder(model))
    log.info("fetching %s (about %s MB) into %s; license: %s", model, f"{entry.megabytes:,}", out, entry.license)
    fetch_model(model, out, mirror=mirror)


@commands.command(name="import")
def import_published(
    folder: str,
    /,
    *,
    out: OutFile,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    mirror: Mirror = None,
    codes: tuple[str, str] | None = None,
    keep_pieces_of: list[Path] | None = None,
) -> None:
    """Convert a published model (Marian, mBART, M2M100, NLLB) from transformers format (docs/pretrained.md).

    Example:
        docmt models import opus-mt-en-de --out model.pt

    Args:
        folder: folder with config.json, weights and SentencePiece models, or a name in the catalog to download.
        src_lang: source language. Default: as in the catalog or folder.
        tgt_lang: target language. Default: as in the catalog or folder.
        codes: language symbols of the model for source and target, for example eng_Latn. Default: derived from the
            languages.
        keep_pieces_of: text in both languages, one sentence per line. Pieces that do not occur in it are removed.
    """
    from docmt.models.model_file import save_model
    from docmt.models.published.catalog import find_model, is_in_catalog, study_folder
    from docmt.models.published.importing import import_model
    from docmt.text.published_text import PublishedText

    path, pair = Path(folder), None
    if is_in_catalog(folder):
        fetch(model=folder, mirror=mirror)
        path, pair = Path(study_folder(folder)), find_model(folder).pair
    pair = pair or PublishedText.read(path).languages or (None, None)
    src, tgt = src_lang or pair[0], tgt_lang or pair[1]
    if src is None or tgt is None:
        raise UserError(f"{folder}: the languages of the model are unknown: pass --src-lang and --tgt-lang")
    text = None
    if keep_pieces_of:
        text = [line for file in keep_pieces_of for line in iterate_lines(file)]
    save_model(out, import_model(path, languages=(src, tgt), codes=codes, text=text))


@commands.command
def import_for_study(
    folder: Path,
    /,
    *,
    settings: Annotated[InstancesSettings, settings_at("instances")] = InstancesSettings(),
    vocabulary: Path,
    pipeline: Path,
    fingerprint: str | None = None,
    out: OutFile,
) -> None:
    """Convert a published model for the text of a study with `text.pretrained`.

    Example:
        docmt models import-for-study models/opus-mt-en-de --vocabulary text/vocabulary.txt
        --pipeline text/pipeline.json --out model.pt

    Args:
        folder: folder with config.json and weights.
        vocabulary: vocabulary of the study.
        pipeline: text pipeline of the study.
        fingerprint: hash of all inputs, recorded in the model.
    """
    from docmt.models.model_file import save_model
    from docmt.models.published.importing import import_for_study
    from docmt.text.pipeline import TextPipeline
    from docmt.text.vocabulary import Vocabulary

    trained = import_for_study(folder, Vocabulary.load(vocabulary), TextPipeline.load(pipeline), settings)
    facts = {"vocabulary": sha256_file(vocabulary)} | ({"fingerprint": fingerprint} if fingerprint else {})
    save_model(out, replace(trained, provenance=trained.provenance | facts))


@commands.command
def add_parser(
    *, model: Path, segmenter: Path, parser: str, sentences: Literal["parser", "chain"] = "parser", out: OutFile
) -> None:
    """Add a segmenter and a parser to a model that reads trees, so that it can translate plain text.

    Example:
        docmt models add-parser --model model.pt --segmenter segmenter.pt --parser parser.pt --out bundled.pt

    Args:
        model: model file of a system that reads trees.
        segmenter: segmenter model.
        parser: parser model, or chain or random.
        sentences: tree over sentences, parsed, or a chain (every sentence depends on the preceding one).
    """
    from docmt.discourse.annotation import read_bundle
    from docmt.models.model_file import load_model, save_model

    trained = load_model(model)
    if not trained.model.settings.needs_trees:
        raise UserError(f"{model}: does not read trees and needs no segmenter or parser")
    bundled = read_bundle(segmenter, parser, sentences=sentences)
    parser = parser if isinstance(bundled.parser, str) else sha256_file(Path(parser))
    facts = {"segmenter": sha256_file(segmenter), "parser": parser, "sentences": sentences}
    save_model(out, replace(trained, discourse=bundled, provenance=trained.provenance | {"bundled": facts}))
