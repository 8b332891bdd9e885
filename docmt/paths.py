"""Paths in a study, as templates with names in braces, relative to the study folder."""

import re
from pathlib import Path

RUN = "results/{dataset}/runs/{system}/seed{seed}"
MODEL = f"{RUN}/model.pt"
HISTORY = f"{RUN}/history.csv"
OUTPUT = f"{RUN}/decoding/{{output}}"
DIFFERENCES = "results/{dataset}/runs/{system}/against/{baseline}.json"
CORPUS = "results/corpora/{corpus}/{languages}"
CORPUS_COUNTS = f"{CORPUS}/{{split}}.counts.json"
SPLIT = "results/{dataset}/corpora/{languages}/{split}"
SPLIT_COUNTS = f"{SPLIT}.counts.json"
INDEX = f"{SPLIT}.documents.tsv"
OVERLAP = "results/{dataset}/corpora/overlap.json"
ROUNDTRIP = "results/{dataset}/text/roundtrip.json"
INSTANCES = "results/{dataset}/instances/{instances}/{split}/manifest.json"
INSTANCE_COUNTS = "results/{dataset}/instances/statistics.csv"
TREES = "results/{dataset}/discourse/{trees}"
SEGMENTER_SCORES = "results/discourse/segmenters/{segmenter}/evaluation.json"
PARSER_SCORES = "results/discourse/parsers/{parser}/evaluation.json"
TABLE = "results/tables/{table}"
FIGURE = "results/figures/{figure}"


def names_in_path(template: str, path: str | Path) -> dict[str, str] | None:
    """Return the names in a path that ends like a template, or None for another path.

    `results/` in front of a template is not compared, so that a study can be read from another folder. For example,
    `a/talks/runs/base/seed1/history.csv` ends like `HISTORY`.
    """
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.removeprefix("results/")))
    match = re.search(rf"(?:^|/){pattern}$", Path(path).as_posix())
    return match and match.groupdict()
