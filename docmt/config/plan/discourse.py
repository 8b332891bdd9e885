"""The plan of the discourse stage."""

from typing import Any

from docmt.config.discourse import TREEBANKS, TreesRow
from docmt.config.fingerprints import Place, Wildcards
from docmt.config.plan.corpora import CorporaPlan
from docmt.config.plan.paths import as_argument, dataset_prefix, one_of
from docmt.config.schema import Config
from docmt.config.systems import list_runs

TREEBANK_SPLIT = "all"
"""The split of the catalogue that holds all files of a treebank."""


class DiscoursePlan:
    """Treebanks, segmenters, parsers, and the trees of each dataset."""

    def __init__(self, config: Config, corpora: CorporaPlan) -> None:
        self.config = config
        self._corpora = corpora

    # Constraints of wildcards.

    def treebanks(self) -> str:
        """Treebanks of the catalogue."""
        return one_of(TREEBANKS)

    def names(self, section: str) -> str:
        """Rows of a section of `discourse`."""
        return one_of(getattr(self.config.discourse, section))

    def annotated(self) -> str:
        """Trees that a segmenter and a parser of ours make."""
        return one_of(name for name, row in self.config.discourse.trees.items() if row.segmenter)

    def gold(self) -> str:
        """Trees that a generated corpus comes with."""
        return one_of(name for name, row in self.config.discourse.trees.items() if row.gold)

    # Treebanks.

    def treebank_folder(self, wildcards: Wildcards) -> str:
        """The folder with the files of a treebank as fetched."""
        return self._corpora.folder(Place(corpus=wildcards.treebank, split=TREEBANK_SPLIT))

    def treebank_fetched(self, wildcards: Wildcards) -> str:
        """The mark that all files are there."""
        return self._corpora.fetched(Place(corpus=wildcards.treebank, split=TREEBANK_SPLIT))

    def treebank_format(self, wildcards: Wildcards) -> str:
        """The name of its format."""
        return TREEBANKS[wildcards.treebank]

    # Segmenters and parsers.

    def segmenter_settings(self, wildcards: Wildcards) -> str:
        """The settings of a segmenter."""
        return as_argument(self.config.discourse.segmenters[wildcards.segmenter].settings.model_dump(mode="json"))

    def segmenter_treebank(self, wildcards: Wildcards) -> list[str]:
        """The files a segmenter is trained on."""
        return self._treebank_files(self.config.discourse.segmenters[wildcards.segmenter].treebank)

    def segmenter_prefix(self, wildcards: Wildcards) -> str:
        """The folder of these files."""
        return self._treebank_prefix(self.config.discourse.segmenters[wildcards.segmenter].treebank)

    def segmenter_seed(self, wildcards: Wildcards) -> int:
        """The seed of a segmenter."""
        return self.config.discourse.segmenters[wildcards.segmenter].seed

    def parser_settings(self, wildcards: Wildcards) -> str:
        """The settings of a parser."""
        return as_argument(self.config.discourse.parsers[wildcards.parser].settings.model_dump(mode="json"))

    def parser_treebank(self, wildcards: Wildcards) -> list[str]:
        """The files a parser is trained on."""
        return self._treebank_files(self.config.discourse.parsers[wildcards.parser].treebank)

    def parser_prefix(self, wildcards: Wildcards) -> str:
        """The folder of these files."""
        return self._treebank_prefix(self.config.discourse.parsers[wildcards.parser].treebank)

    def parser_seed(self, wildcards: Wildcards) -> int:
        """The seed of a parser."""
        return self.config.discourse.parsers[wildcards.parser].seed

    def parser_segmenter(self, wildcards: Wildcards) -> list[str]:
        """The segmenter whose states a parser reads: one, or none."""
        name = self.config.discourse.parsers[wildcards.parser].segmenter
        return [self._segmenter(name)] if name else []

    def segmenter_option(self, wildcards: Wildcards, input: Any) -> str:
        """`--segmenter MODEL`, or nothing."""
        return f"--segmenter {input.segmenter}" if input.segmenter else ""

    def _treebank_prefix(self, treebank: str) -> str:
        if treebank in self.config.corpora.controlled:
            return f"results/corpora/{treebank}/en-de"
        return f"results/treebanks/{treebank}"

    def _treebank_files(self, treebank: str) -> list[str]:
        return [f"{self._treebank_prefix(treebank)}/{split}.discourse.jsonl" for split in ("train", "dev", "test")]

    @staticmethod
    def _segmenter(name: str) -> str:
        return f"results/discourse/segmenters/{name}/segmenter.pt"

    # Trees.

    def models(self, wildcards: Wildcards) -> list[str]:
        """The segmenter and, when it is a trained one, the parser of some trees."""
        row = self._row(wildcards)
        files = [self._segmenter(row.segmenter)]
        if row.parser in self.config.discourse.parsers:
            files += [f"results/discourse/parsers/{row.parser}/parser.pt"]
        return files

    def model_options(self, wildcards: Wildcards) -> str:
        """`--segmenter MODEL --parser MODEL-or-name`."""
        files = self.models(wildcards)
        return f"--segmenter {files[0]} --parser {files[1] if len(files) > 1 else self._row(wildcards).parser}"

    def text(self, wildcards: Wildcards) -> str:
        """The source text of a split."""
        prefix = dataset_prefix(self.config, wildcards.dataset, wildcards.split)
        return f"{prefix}.{self.config.datasets[wildcards.dataset].src_lang}"

    def src_lang(self, wildcards: Wildcards) -> str:
        """The source language of a dataset."""
        return self.config.datasets[wildcards.dataset].src_lang

    def gold_files(self, wildcards: Wildcards) -> list[str]:
        """The gold trees of the corpora behind a split."""
        return [f"{prefix}.discourse.jsonl" for prefix in self._corpora.members(wildcards)]

    def trees_of_split(self, wildcards: Wildcards) -> list[str]:
        """The trees that the instances of a segmentation take: the files of all shards, or none."""
        trees = self.config.instances[wildcards.segmentation].trees
        return self.tree_files(wildcards.dataset, trees, wildcards.split) if trees else []

    def trees_option(self, wildcards: Wildcards, input: Any) -> str:
        """`--discourse FILE …`, or nothing."""
        return f"--discourse {' '.join(input.trees)}" if input.trees else ""

    def trees_of_suite(self, wildcards: Wildcards) -> list[str]:
        """The trees of a contrastive set for a system: one file, or none."""
        trees = self.config.instances[self.config.systems[wildcards.system].segmentation].trees
        return self._suite_files(wildcards.dataset, trees, wildcards.suite) if trees else []

    def tree_files(self, dataset: str, trees: str, split: str) -> list[str]:
        """The files that hold the trees of a split, in order."""
        row = self.config.discourse.trees[trees]
        if row.files:
            return [row.files[f"{dataset}/{split}"]]
        folder = f"results/{dataset}/discourse/{trees}"
        n_shards = row.n_shards if row.segmenter and split == "train" else 1
        return [f"{folder}/{split}.{shard}-of-{n_shards}.discourse.jsonl" for shard in range(1, n_shards + 1)]

    def _split_files(self, dataset: str, trees: str) -> list[str]:
        splits = self.config.datasets[dataset].parts()
        return [file for split in splits for file in self.tree_files(dataset, trees, split)]

    def _suite_files(self, dataset: str, trees: str, suite: str) -> list[str]:
        row = self.config.discourse.trees[trees]
        if row.files:
            return [row.files[f"{dataset}/suite_{suite}"]]
        if row.gold:
            corpus, name = self.config.datasets[dataset].suite_reference(suite).split("/")
            return [f"results/corpora/{corpus}/en-de/suites/discourse/{name}.jsonl"]
        return [f"results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl"]

    def _row(self, wildcards: Wildcards) -> TreesRow:
        return self.config.discourse.trees[wildcards.trees]

    # Statistics and targets.

    def used(self) -> list[tuple[str, str]]:
        """Datasets with the trees that their systems read."""
        pairs = {}
        for run in list_runs(self.config):
            if trees := self.config.instances[self.config.systems[run.system].segmentation].trees:
                pairs[run.dataset, trees] = None
        return list(pairs)

    def statistics_files(self, wildcards: Wildcards) -> list[str]:
        """The trees of all splits of a dataset."""
        return self._split_files(wildcards.dataset, wildcards.trees)

    def named_statistics_files(self, wildcards: Wildcards) -> list[str]:
        """`DATASET/TREES/SPLIT=FILE` of each; the shards of a split have one name."""
        return [
            f"{wildcards.dataset}/{wildcards.trees}/{split}={file}"
            for split in self.config.datasets[wildcards.dataset].parts()
            for file in self.tree_files(wildcards.dataset, wildcards.trees, split)
        ]

    def statistics(self) -> list[str]:
        """The statistics of all trees that systems read."""
        return [f"results/{dataset}/discourse/{trees}/statistics.csv" for dataset, trees in self.used()]

    def relations(self) -> list[str]:
        """The relations of these trees."""
        return [f"results/{dataset}/discourse/{trees}/relations.csv" for dataset, trees in self.used()]

    def used_segmenters(self) -> list[str]:
        """The segmenters behind these trees."""
        names = (self.config.discourse.trees[trees].segmenter for _, trees in self.used())
        return list(dict.fromkeys(name for name in names if name))

    def used_parsers(self) -> list[str]:
        """The trained parsers behind these trees."""
        names = (self.config.discourse.trees[trees].parser for _, trees in self.used())
        return list(dict.fromkeys(name for name in names if name in self.config.discourse.parsers))

    def named_segmenter_evaluations(self) -> dict[str, str]:
        """The evaluation of each of `used_segmenters`."""
        return {name: f"results/discourse/segmenters/{name}/evaluation.json" for name in self.used_segmenters()}

    def named_parser_evaluations(self) -> dict[str, str]:
        """The evaluation of each of `used_parsers`."""
        return {name: f"results/discourse/parsers/{name}/evaluation.json" for name in self.used_parsers()}

    def named_pictures(self) -> dict[str, str]:
        """By `DATASET/TREES`, a picture of a tree of the development split; none of trees made elsewhere."""
        return {
            f"{dataset}/{trees}": f"results/{dataset}/discourse/{trees}/dev.svg"
            for dataset, trees in self.used()
            if not self.config.discourse.trees[trees].files
        }

    def reports(self) -> list[str]:
        """What says how good and of what kind the trees are: scores, counts, and a picture of one."""
        named = (self.named_segmenter_evaluations(), self.named_parser_evaluations(), self.named_pictures())
        return [*self.statistics(), *self.relations(), *(file for files in named for file in files.values())]

    def targets(self) -> list[str]:
        """All that the stage makes."""
        files = [file for dataset, trees in self.used() for file in self._split_files(dataset, trees)]
        files += [
            file
            for dataset, trees in self.used()
            for suite in self.config.datasets[dataset].suite_names()
            for file in self._suite_files(dataset, trees, suite)
        ]
        return [*files, *self.reports()]
