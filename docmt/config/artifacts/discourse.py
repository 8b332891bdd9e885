"""Artifacts of the discourse stage: treebanks, segmenters, parsers, and the trees of each dataset."""

from typing import Any

from docmt.config.artifacts.base import Artifact, OwnFile, as_argument, made_by
from docmt.config.artifacts.text import TextArtifacts
from docmt.config.discourse import TREEBANKS
from docmt.config.references import CONTROLLED_SPLITS
from docmt.corpora.catalogue import load_catalogue

TREEBANK_SPLIT = "all"
"""The split of the catalogue that holds all files of a treebank."""


class DiscourseArtifacts(TextArtifacts):
    """EDUs and trees, and what is trained to find them."""

    @made_by("read_treebank", stage="discourse")
    def treebank(self, treebank: str) -> Artifact:
        """A treebank as documents with trees: of the catalogue, or a generated corpus."""
        if treebank in self.config.corpora.controlled:
            generated = self.generated(treebank)
            files = [f"results/corpora/{treebank}/en-de/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS]
            params = {"prefix": f"results/corpora/{treebank}/en-de"}
            return Artifact(files, generated.parts, params=params, stage=generated.stage, rules=generated.rules)
        entry = load_catalogue()[treebank]
        fetched = self.fetched(treebank, TREEBANK_SPLIT)
        prefix = f"results/treebanks/{treebank}"
        return Artifact(
            [f"{prefix}/{split}.discourse.jsonl" for split in CONTROLLED_SPLITS],
            [treebank, entry.corpus.version, [file.check for file in entry.family.files.values()]],
            {"fetched": fetched},
            {"format": TREEBANKS[treebank], "files": fetched.params["folder"], "prefix": prefix},
        )

    @made_by("train_segmenter", stage="discourse")
    def segmenter(self, segmenter: str) -> Artifact:
        """A trained segmenter."""
        row = self.config.discourse.segmenters[segmenter]
        treebank = self.treebank(row.treebank)
        return Artifact(
            [f"results/discourse/segmenters/{segmenter}/segmenter.pt"],
            [row.model_dump(mode="json"), treebank],
            {"files": treebank},
            _training_params(row, treebank),
        )

    @made_by("train_parser", stage="discourse")
    def parser(self, parser: str) -> Artifact:
        """A trained parser, with the segmenter that it reads."""
        row = self.config.discourse.parsers[parser]
        treebank = self.treebank(row.treebank)
        segmenter = self.segmenter(row.segmenter) if row.segmenter else None
        return Artifact(
            [f"results/discourse/parsers/{parser}/parser.pt"],
            [row.model_dump(mode="json", exclude={"segmenter"}), treebank, segmenter],
            {"files": treebank, "segmenter": [segmenter] if segmenter else []},
            _training_params(row, treebank),
        )

    @made_by("evaluate_segmenter", stage="discourse")
    def segmenter_evaluation(self, segmenter: str) -> Artifact:
        """The scores of a segmenter on the test split of its treebank."""
        return _evaluation(self.segmenter(segmenter))

    @made_by("evaluate_parser", stage="discourse")
    def parser_evaluation(self, parser: str) -> Artifact:
        """The scores of a parser on the test split of its treebank."""
        return _evaluation(self.parser(parser))

    @made_by("annotate", "gather_gold", stage="discourse")
    def trees(self, dataset: str, trees: str, split: str) -> Artifact:
        """The trees of a split of a dataset. The number of files does not matter to them."""
        row = self.config.discourse.trees[trees]
        text = self.dataset_split(dataset, split)
        if row.files:
            return self._made_elsewhere(trees, f"{dataset}/{split}", text)
        n_shards = row.n_shards if row.segmenter and split == "train" else 1
        folder = f"results/{dataset}/discourse/{trees}"
        files = [f"{folder}/{split}.{shard}-of-{n_shards}.discourse.jsonl" for shard in range(1, n_shards + 1)]
        inputs: dict[str, Any] = {"documents": text.only(".documents.tsv")}
        if row.gold:
            inputs["trees"] = [
                self._gold(reference) for reference in self.config.datasets[dataset].parallel_parts()[split]
            ]
        elif row.segmenter:
            inputs |= {"models": self._models(trees), "text": text.only(f".{self._src_lang(dataset)}")}
        return Artifact(files, [self._tree_parts(trees), text], inputs, self._annotation_params(dataset, trees))

    @made_by("annotate_suite", stage="discourse")
    def suite_trees(self, dataset: str, trees: str, suite: str) -> Artifact:
        """The trees of the source documents of a contrastive test set."""
        row = self.config.discourse.trees[trees]
        items = self.suite(dataset, suite)
        if row.files:
            return self._made_elsewhere(trees, f"{dataset}/suite_{suite}", items)
        if row.gold:
            corpus, name = self.config.datasets[dataset].suite_reference(suite).split("/")
            files = [f"results/corpora/{corpus}/en-de/suites/discourse/{name}.jsonl"]
        else:
            files = [f"results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl"]
        inputs: dict[str, Any] = {"suite": items} | ({"models": self._models(trees)} if row.segmenter else {})
        parts, params = [self._tree_parts(trees), items], self._annotation_params(dataset, trees)
        return Artifact(files, parts, inputs, params, is_recorded=not row.gold)

    @made_by("count_trees", stage="discourse")
    def tree_statistics(self, dataset: str, trees: str) -> Artifact:
        """Counts of the trees of all splits of a dataset, and of their relations."""
        splits = {split: self.trees(dataset, trees, split) for split in self.config.datasets[dataset].parts()}
        folder = f"results/{dataset}/discourse/{trees}"
        named = [f"{dataset}/{trees}/{split}={file}" for split, made in splits.items() for file in made.files]
        return Artifact(
            [f"{folder}/statistics.csv", f"{folder}/relations.csv"],
            [list(splits.values())],
            {"trees": list(splits.values())},
            {"files": named},
        )

    @made_by("draw_tree", stage="discourse")
    def tree_picture(self, dataset: str, trees: str, split: str) -> Artifact:
        """A picture of the first tree of a split."""
        drawn = self.trees(dataset, trees, split)
        return Artifact([f"results/{dataset}/discourse/{trees}/{split}.svg"], drawn.parts, {"trees": drawn})

    def _tree_parts(self, trees: str) -> list[Any]:
        """What makes trees: a segmenter and a parser, or gold, or files."""
        row = self.config.discourse.trees[trees]
        segmenter = self.segmenter(row.segmenter) if row.segmenter else None
        parser = self.parser(row.parser) if row.parser in self.config.discourse.parsers else row.parser
        return [segmenter, parser, row.gold, row.files, *([row.sentences] if row.sentences != "parser" else [])]

    def _models(self, trees: str) -> list[Artifact]:
        """The segmenter and, when it is a trained one, the parser."""
        return [part for part in self._tree_parts(trees)[:2] if isinstance(part, Artifact)]

    def _annotation_params(self, dataset: str, trees: str) -> dict[str, Any]:
        """How `docmt discourse annotate` is told of the models."""
        row = self.config.discourse.trees[trees]
        if not row.segmenter:
            return {}
        segmenter, parser = self._tree_parts(trees)[:2]
        parser = parser.file if isinstance(parser, Artifact) else parser
        models = f"--segmenter {segmenter.file} --parser {parser}"
        if row.sentences != "parser":
            models += f" --sentences {row.sentences}"
        return {"models": models, "lang": self._src_lang(dataset)}

    def _made_elsewhere(self, trees: str, name: str, annotated: Artifact) -> Artifact:
        """Trees in a file of the user's, which is read where it is."""
        path = self.config.discourse.trees[trees].files[name]
        own = OwnFile.at(path, where=f"config.discourse.trees.{trees}.files.{name}")
        return Artifact(own.files, [self._tree_parts(trees), annotated, own], {"own": own}, is_recorded=False)

    def _gold(self, reference: str) -> Artifact:
        corpus, split = reference.split("/")
        return self.treebank(corpus).only(f"/{split}.discourse.jsonl")

    def _src_lang(self, dataset: str) -> str:
        return self.config.datasets[dataset].src_lang


def _training_params(row: Any, treebank: Artifact) -> dict[str, Any]:
    settings = as_argument(row.settings.model_dump(mode="json"))
    return {"settings": settings, "prefix": treebank.params["prefix"], "seed": row.seed}


def _evaluation(model: Artifact) -> Artifact:
    """The test scores of a segmenter or parser, which lie beside it."""
    file = f"{model.file.rpartition('/')[0]}/evaluation.json"
    inputs = {"files": model.inputs["files"], "model": model}
    return Artifact([file], model.parts, inputs, {"prefix": model.params["prefix"]})
