"""Artifacts of the discourse stage: treebanks, segmenters, parsers, and the trees of each dataset."""

from dataclasses import replace
from typing import Any

from docmt.config.artifacts.base import Artifact, UserFile, artifact
from docmt.config.artifacts.text import TextArtifacts
from docmt.config.discourse import TREEBANKS
from docmt.config.references import CONTROLLED_SPLITS
from docmt.corpora.catalog import load_catalog

TREEBANK_SPLIT = "all"
"""Catalog split with all treebank files."""


class DiscourseArtifacts(TextArtifacts):
    """Treebanks, segmenters, parsers and trees."""

    @artifact("read_treebank", stage="discourse")
    def treebank(self, treebank: str) -> Artifact:
        """Documents and trees of a treebank."""
        if treebank in self.config.corpora.controlled:
            generated = self.generated(treebank)
            files = [f"results/corpora/{treebank}/en-de/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS]
            return replace(generated, files=files)
        entry = load_catalog()[treebank]
        fetched = self.fetched(treebank, TREEBANK_SPLIT)
        return Artifact(
            [f"results/treebanks/{treebank}/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS],
            [treebank, entry.corpus.version, [file.check for file in entry.family.files.values()]],
            {"fetched": fetched},
            {"format": TREEBANKS[treebank], "files": fetched.file.removesuffix(".fetched")},
        )

    @artifact("train_segmenter", stage="discourse")
    def segmenter(self, segmenter: str) -> Artifact:
        """Trained segmenter."""
        row = self.config.discourse.segmenters[segmenter]
        treebank = self.treebank(row.treebank)
        return Artifact(
            [f"results/discourse/segmenters/{segmenter}/segmenter.pt"],
            [row, treebank],
            _training_splits(treebank),
            {"settings": row.settings, "seed": row.seed},
        )

    @artifact("train_parser", stage="discourse")
    def parser(self, parser: str) -> Artifact:
        """Trained parser, with its segmenter."""
        row = self.config.discourse.parsers[parser]
        treebank = self.treebank(row.treebank)
        segmenter = self.segmenter(row.segmenter)
        return Artifact(
            [f"results/discourse/parsers/{parser}/parser.pt"],
            [row.model_dump(mode="json", exclude={"segmenter"}), treebank, segmenter],
            {**_training_splits(treebank), "segmenter": segmenter},
            {"settings": row.settings, "seed": row.seed},
        )

    @artifact("evaluate_segmenter", stage="discourse")
    def segmenter_evaluation(self, segmenter: str) -> Artifact:
        """Scores of a segmenter on the test split of its treebank."""
        return self._evaluation(self.segmenter(segmenter), self.config.discourse.segmenters[segmenter].treebank)

    @artifact("evaluate_parser", stage="discourse")
    def parser_evaluation(self, parser: str) -> Artifact:
        """Scores of a parser on the test split of its treebank."""
        return self._evaluation(self.parser(parser), self.config.discourse.parsers[parser].treebank)

    @artifact("annotate", "gather_gold", stage="discourse")
    def trees(self, dataset: str, trees: str, part: str) -> Artifact:
        """Trees of the source documents in a split or in `suite_{suite}`."""
        row, data = self.config.discourse.trees[trees], self.config.datasets[dataset]
        suite = part.removeprefix("suite_") if part.startswith("suite_") else None
        text = self.dataset_split(dataset, part) if suite is None else self.suite(dataset, suite)
        if row.files:
            return self._user_trees(trees, f"{dataset}/{part}", text)
        # The trees do not depend on the number of shards.
        n_shards = row.n_shards if row.segmenter and part == "train" else 1
        folder = f"results/{dataset}/discourse/{trees}"
        files = [f"{folder}/{part}.{shard}-of-{n_shards}.discourse.jsonl" for shard in range(1, n_shards + 1)]
        inputs: dict[str, Any] = (
            {"suite": text} if suite is not None else {"documents": text.select_suffix(".documents.tsv")}
        )
        if row.gold and suite is not None:
            corpus, name = data.suite_reference(suite).split("/")
            files = [f"results/corpora/{corpus}/en-de/suites/discourse/{name}.jsonl"]
        elif row.gold:
            inputs["inputs"] = [
                self.treebank(corpus).select_suffix(f"/{split}.discourse.jsonl")
                for corpus, split in (reference.split("/") for reference in data.parallel_parts()[part])
            ]
        elif row.segmenter:
            inputs["models"] = self._models(trees)
            if suite is None:
                inputs["text"] = text.select_suffix(f".{data.src_lang}")
        return Artifact(files, [self._tree_parts(trees), text], inputs, self._annotation_params(dataset, trees))

    @artifact("count_trees", stage="discourse")
    def tree_statistics(self, dataset: str, trees: str) -> Artifact:
        """Counts of trees and relations in all splits of a dataset."""
        splits = {split: self.trees(dataset, trees, split) for split in self.config.datasets[dataset].parts()}
        folder = f"results/{dataset}/discourse/{trees}"
        named = [f"{dataset}/{trees}/{split}={file}" for split, made in splits.items() for file in made.files]
        return Artifact(
            [f"{folder}/statistics.csv", f"{folder}/relations.csv"],
            [list(splits.values())],
            {"trees": list(splits.values())},
            {"files": named},
        )

    def _evaluation(self, model: Artifact, treebank: str) -> Artifact:
        file = f"{model.file.rpartition('/')[0]}/evaluation.json"
        gold = self.treebank(treebank).select_suffix("/test.discourse.jsonl")
        return Artifact([file], model.parts, {"gold": gold, "model": model})

    def _tree_parts(self, trees: str) -> list[Any]:
        """Return the trees' origin: a segmenter and a parser, or gold."""
        row = self.config.discourse.trees[trees]
        # `sentences` was added later. Its default is left out, so that older fingerprints stay valid.
        later = [row.sentences] if row.sentences != "parser" else []
        return [*self._annotators(trees), row.gold, {}, *later]  # {}: once the names of files, see `_user_trees`

    def _annotators(self, trees: str) -> tuple[Artifact | None, Artifact | str | None]:
        """Return the trees' segmenter, and their parser or the name of an untrained control."""
        row = self.config.discourse.trees[trees]
        parser = self.parser(row.parser) if row.parser in self.config.discourse.parsers else row.parser
        return self.segmenter(row.segmenter) if row.segmenter else None, parser

    def _models(self, trees: str) -> list[Artifact]:
        return [model for model in self._annotators(trees) if isinstance(model, Artifact)]

    def _annotation_params(self, dataset: str, trees: str) -> dict[str, Any]:
        segmenter, parser = self._annotators(trees)
        if segmenter is None:
            return {}
        return {
            "segmenter": segmenter.file,
            "parser": parser.file if isinstance(parser, Artifact) else parser,
            "sentences": self.config.discourse.trees[trees].sentences,
            "lang": self.config.datasets[dataset].src_lang,
        }

    def _user_trees(self, trees: str, name: str, annotated: Artifact) -> Artifact:
        # Read where it is, not copied: the file is the artifact, and its content the fingerprint.
        path = self.config.discourse.trees[trees].files[name]
        own = UserFile.at(path, where=f"config.discourse.trees.{trees}.files.{name}")
        # Other files in the row are excluded, because trees for a new test set must not retrain any model.
        return Artifact(own.files, [annotated, own], {"own": own})


def _training_splits(treebank: Artifact) -> dict[str, Artifact]:
    return {split: treebank.select_suffix(f"/{split}.discourse.jsonl") for split in ("train", "dev")}
