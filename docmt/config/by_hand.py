"""Corpora of a study that cannot be downloaded."""

import os
from pathlib import Path

from docmt.commands import MIRROR_VARIABLE
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.study import all_artifacts
from docmt.corpora.catalog import find_corpus
from docmt.corpora.fetching import mirrored


def describe_by_hand(study: Study) -> str:
    """Return one line on the catalog splits that the user has to obtain for a study. Empty if no file is missing.

    Files can be in the mirror or in the study folder, which is the working directory.
    """
    mirror = study.config.corpora.mirror or os.environ.get(MIRROR_VARIABLE)
    commands = {}
    for artifact in all_artifacts(study):
        if "corpora_fetch" not in artifact.rules or Path(artifact.file).exists():
            continue
        corpus, split = artifact.wildcards
        entry = find_corpus(corpus)
        out = artifact.file.removesuffix(".fetched")
        folders = [Path(out)]
        if mirror:
            folders.append(Path(mirror, entry.family.mirror_folder))
        for name in entry.file_names([split]):
            is_manual = not entry.family.files[name].addresses
            if is_manual and not any(mirrored(folder, name) for folder in folders):
                commands[f"{corpus}/{split}"] = f"docmt corpora fetch --corpus {corpus} --splits {split} --out {out}"
    if not commands:
        return ""
    splits = sorted(commands)
    return f"by hand: {', '.join(splits)}. `{commands[splits[0]]}` prints what to obtain, and where to put it"
