"""Paths in a study that are declared and read, as templates with names in braces, relative to the study folder."""

import re
from collections.abc import Iterable
from pathlib import Path

from docmt.errors import UserError

RUN = "results/{dataset}/runs/{system}/seed{seed}"
MODEL = f"{RUN}/model.pt"
HISTORY = f"{RUN}/history.csv"
OUTPUT = f"{RUN}/decoding/{{output}}"
CORPUS = "results/corpora/{corpus}/{languages}"
CORPUS_COUNTS = f"{CORPUS}/{{split}}.counts.json"
SPLIT = "results/{dataset}/corpora/{languages}/{split}"
SPLIT_COUNTS = f"{SPLIT}.counts.json"
INDEX = f"{SPLIT}.documents.tsv"
OVERLAP = "results/{dataset}/corpora/overlap.json"
ROUNDTRIP = "results/{dataset}/text/roundtrip.json"
INSTANCES = "results/{dataset}/instances/{instances}/{split}/manifest.json"
SEGMENTER_SCORES = "results/discourse/segmenters/{segmenter}/evaluation.json"
PARSER_SCORES = "results/discourse/parsers/{parser}/evaluation.json"


def names_in_path(template: str, path: str | Path) -> dict[str, str] | None:
    """Return the names in a path that ends like a template, or None for another path.

    `results/` in front of a template is not compared, so that a study can be read from another folder. For example,
    `a/talks/runs/base/seed1/history.csv` ends like `HISTORY`.
    """
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.removeprefix("results/")))
    pattern = pattern.replace("(?P<seed>[^/]+)", r"(?P<seed>\d{1,18})")
    match = re.search(rf"(?:^|/){pattern}$", Path(path).as_posix())
    return match and match.groupdict()


def name_paths(template: str, paths: Iterable[Path]) -> dict[tuple[str, ...], Path]:
    """Return paths by the names in them, in order.

    Raises UserError for a path that does not end like the template, or that has the same names as another.
    """
    named: dict[tuple[str, ...], Path] = {}
    for path in paths:
        names = names_in_path(template, path)
        if names is None:
            raise UserError(f"{path}: the path must end like {template.removeprefix('results/')}: move the file")
        key = tuple(names.values())
        if key in named:
            raise UserError(f"{path}: {named[key]} has the same names: pass one of them")
        named[key] = path
    return named
