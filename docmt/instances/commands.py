"""`docmt instances`: cut documents into instances, and count them."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from docmt.commands import CommandGroup, OutFile, settings_at
from docmt.errors import UserError
from docmt.files import atomic_writer
from docmt.instances.settings import InstancesSettings
from docmt.outputs import Output
from docmt.paths import INSTANCES, names_in_path

commands = CommandGroup("instances")


def _written_folder(out: Path, _: Mapping[str, Any]) -> list[Path]:
    from docmt.instances.storage import folder_of

    return [folder_of(out)]


@commands.command
def build(
    *,
    settings: Annotated[InstancesSettings, settings_at("instances")] = InstancesSettings(),
    texts: list[Path],
    documents: Path,
    vocabulary: Path,
    discourse: list[Path] | None = None,
    out: Annotated[Path, Output(_written_folder, is_folder=True)],
) -> None:
    """Split a parallel or monolingual text into instances.

    Example:
        docmt instances build --texts train.bpe.en train.bpe.de --documents train.documents.tsv
        --vocabulary vocabulary.txt --out instances/train

    Args:
        texts: subwords, one sentence per line: source and target file, or one file for monolingual text.
        documents: document index (.documents.tsv).
        vocabulary: vocabulary file (for monolingual text, with mask symbols).
        discourse: trees of the source documents.
        out: folder to write, or its manifest.json.
    """
    from docmt.instances.building import build_from_files
    from docmt.instances.storage import folder_of

    folder, trees = folder_of(out), discourse or []
    build_from_files(texts, documents=documents, vocabulary=vocabulary, settings=settings, out=folder, discourse=trees)


@commands.command
def count(*, manifests: list[Path], out: OutFile) -> None:
    """Count instances. Writes a CSV file with one row per folder.

    Example:
        docmt instances count --manifests ende/instances/documents/*/manifest.json --out statistics.csv

    Args:
        manifests: DATASET/instances/INSTANCES/SPLIT/manifest.json files.
    """
    from docmt.instances.storage import read_manifest

    rows = []
    for path in manifests:
        names = names_in_path(INSTANCES, path)
        if names is None:
            raise UserError(f"--manifests {path}: expected DATASET/instances/INSTANCES/SPLIT/manifest.json")
        keys = {"dataset": names["dataset"], "cutting": names["instances"], "split": names["split"]}
        rows.append(keys | instance_statistics(read_manifest(path)["counts"]))
    with atomic_writer(out) as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def instance_statistics(counts: Mapping[str, int]) -> dict[str, int | float]:
    """Return the counts and means for a split as in Table 1 of G-Transformer, from the manifest counts."""
    return {
        "sentences": counts["sentences"],
        "documents": counts["documents"],
        "instances": counts["instances"],
        "sentences_per_instance": round(counts["sentences"] / counts["instances"], 2),
        "tokens_per_instance": round(counts["tokens"] / counts["instances"], 1),
        "longest_instance_tokens": counts["longest_instance_tokens"],
        "sentences_over_limit": counts["sentences_over_limit"],
        "instances_left_out": counts["instances_left_out"],
        "src_unknown_tokens": counts["src_unknown_tokens"],
        "tgt_unknown_tokens": counts["tgt_unknown_tokens"],
    }
