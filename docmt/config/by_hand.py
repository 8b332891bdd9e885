"""Corpora of a study that cannot be downloaded."""

import os
from collections.abc import Container
from pathlib import Path

from docmt.commands import MIRROR_VARIABLE
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.study import planned_artifacts
from docmt.corpora.catalog import find_corpus
from docmt.corpora.fetching import mirrored


def describe_by_hand(study: Study, planned: Container[str] | None = None, *, folder: Path = Path()) -> list[str]:
    """Return lines on the catalog splits that the user has to obtain for a study. Empty if no file is missing.

    Files can be in the mirror or in the study folder, which is the working directory. `planned` are the outputs of a
    run (default: of the whole study). `folder` is the study folder, as the user's shell names it.
    """
    mirror = study.config.corpora.mirror or os.environ.get(MIRROR_VARIABLE)
    missing: dict[tuple[str, str], list[str]] = {}
    for artifact in planned_artifacts(study, planned):
        if "corpora_fetch" not in artifact.rules or Path(artifact.file).exists():
            continue
        corpus, split = artifact.wildcards
        entry = find_corpus(corpus)
        out = Path(artifact.file).with_name(split)
        folders = [out]
        if mirror:
            folders.append(Path(mirror, entry.family.mirror_folder))
        manual_files = [name for name in entry.file_names([split]) if not entry.family.files[name].addresses]
        if not all(any(mirrored(file_folder, name) for file_folder in folders) for name in manual_files):
            missing.setdefault((corpus, str(folder / out.parent)), []).append(split)
    if not missing:
        return []
    splits = []
    for (corpus, _), of_corpus in missing.items():
        for split in of_corpus:
            splits.append(f"{corpus}/{split}")
    lines = [f"by hand: {', '.join(sorted(splits))}. To print what to obtain, and where to put it:"]
    for (corpus, corpus_folder), of_corpus in sorted(missing.items()):
        command = f"docmt corpora fetch --corpus {corpus} --splits $split --out {corpus_folder}/$split"
        if len(of_corpus) == 1:
            command = command.replace("$split", of_corpus[0])
        else:
            command = f"for split in {' '.join(sorted(of_corpus))}; do {command}; done"
        lines.append(f"  {command}")
    return lines
