"""Artifacts of the discourse stage: treebanks, segmenters, parsers, and the trees of each dataset."""

from dataclasses import replace
from typing import Any

from docmt import paths
from docmt.config.artifacts.base import Artifact, Study, UserFile, artifact
from docmt.config.artifacts.corpora import INDEX, dataset_split, dataset_suite, fetched, generated
from docmt.config.discourse import TREEBANKS
from docmt.config.references import CONTROLLED_SPLITS

TREEBANK_SPLIT = "all"
"""Catalog split with all treebank files."""


@artifact("read_treebank", stage="discourse")
def treebank(study: Study, treebank: str) -> Artifact:
    """Documents and trees of a treebank."""
    if treebank in study.config.corpora.controlled:
        files = [f"results/corpora/{treebank}/en-de/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS]
        return replace(generated(study, treebank), files=files)
    mark = fetched(study, treebank, TREEBANK_SPLIT)
    return Artifact(
        [f"results/treebanks/{treebank}/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS],
        {"fetched": mark},
        {"format": TREEBANKS[treebank]},
        {"files": mark.file.removesuffix(".fetched")},
    )


@artifact("train_segmenter", stage="discourse")
def segmenter_model(study: Study, segmenter: str) -> Artifact:
    """Trained segmenter."""
    row = study.config.discourse.segmenters[segmenter]
    return Artifact(
        [f"results/discourse/segmenters/{segmenter}/segmenter.pt"],
        _treebank_splits(study, row.treebank, "train", "dev"),
        {"settings": row.settings, "seed": row.seed},
    )


@artifact("train_parser", stage="discourse")
def parser_model(study: Study, parser: str) -> Artifact:
    """Trained parser, with its segmenter."""
    row = study.config.discourse.parsers[parser]
    return Artifact(
        [f"results/discourse/parsers/{parser}/parser.pt"],
        {**_treebank_splits(study, row.treebank, "train", "dev"), "segmenter": segmenter_model(study, row.segmenter)},
        {"settings": row.settings, "seed": row.seed},
    )


@artifact("evaluate_segmenter", stage="discourse")
def segmenter_evaluation(study: Study, segmenter: str) -> Artifact:
    """Scores of a segmenter on the test split of its treebank."""
    row = study.config.discourse.segmenters[segmenter]
    inputs = {**_treebank_splits(study, row.treebank, "test"), "model": segmenter_model(study, segmenter)}
    return Artifact([paths.SEGMENTER_SCORES.format(segmenter=segmenter)], inputs)


@artifact("evaluate_parser", stage="discourse")
def parser_evaluation(study: Study, parser: str) -> Artifact:
    """Scores of a parser on the test split of its treebank."""
    row = study.config.discourse.parsers[parser]
    inputs = {**_treebank_splits(study, row.treebank, "test"), "model": parser_model(study, parser)}
    return Artifact([paths.PARSER_SCORES.format(parser=parser)], inputs)


@artifact("annotate", "merge_trees", stage="discourse")
def document_trees(study: Study, dataset: str, trees: str, part: str) -> Artifact:
    """Trees of the source documents in a split or in `suite_{suite}`."""
    row = study.config.discourse.trees[trees]
    data = study.config.datasets[dataset]
    suite_name = None
    if part.startswith("suite_"):
        suite_name = part.removeprefix("suite_")
        text = dataset_suite(study, dataset, suite_name)
    else:
        text = dataset_split(study, dataset, part)
    if row.files:
        path = row.files[f"{dataset}/{part}"]
        # Read where it is, not copied: the file is the artifact.
        file = UserFile.at(path, where=f"config.discourse.trees.{trees}.files.{dataset}/{part}")
        return Artifact(file.files, {"user_file": file, "text": text})
    # The trees do not depend on the number of shards.
    n_shards = row.n_shards if row.segmenter and part == "train" else 1
    folder = f"results/{dataset}/discourse/{trees}"
    files = [f"{folder}/{part}.{shard}-of-{n_shards}.discourse.jsonl" for shard in range(1, n_shards + 1)]
    inputs: dict[str, Any] = {"text": [], "documents": [], "suite": []}
    if suite_name is None:
        inputs["documents"] = text.select(INDEX)
    else:
        inputs["suite"] = text
    if row.gold:
        if suite_name is not None:
            corpus, name = data.suite_reference(suite_name).split("/")
            return Artifact([f"results/corpora/{corpus}/en-de/suites/discourse/{name}.jsonl"], inputs)
        inputs["inputs"] = []
        for reference in data.parallel_parts()[part]:
            corpus, split = reference.split("/")
            inputs["inputs"].append(treebank(study, corpus).select(f"/{split}.discourse.jsonl"))
        return Artifact(files, inputs)
    if suite_name is None:
        inputs["text"] = text.select(f".{data.src_lang}")
    inputs["segmenter"] = segmenter_model(study, row.segmenter or "")
    inputs["parser"] = []
    params = {"parser": row.parser, "sentences": row.sentences, "lang": data.src_lang}
    if row.parser in study.config.discourse.parsers:
        inputs["parser"] = [parser_model(study, row.parser)]
        params["parser"] = ""
    return Artifact(files, inputs, params)


@artifact("count_trees", stage="discourse")
def tree_statistics(study: Study, dataset: str, trees: str) -> Artifact:
    """Counts of trees and relations in all splits of a dataset."""
    names = []
    artifacts = []
    files = []
    for split in study.config.datasets[dataset].parts():
        name = f"{dataset}/{trees}/{split}"
        artifact = document_trees(study, dataset, trees, split)
        names.append(name)
        artifacts.append(artifact)
        for file in artifact.files:
            files.append(f"{name}={file}")
    folder = f"results/{dataset}/discourse/{trees}"
    return Artifact(
        [f"{folder}/statistics.csv", f"{folder}/relations.csv"],
        {"trees": artifacts},
        {"names": names},
        {"files": files},
    )


def _treebank_splits(study: Study, name: str, *splits: str) -> dict[str, Artifact]:
    return {split: treebank(study, name).select(f"/{split}.discourse.jsonl") for split in splits}
