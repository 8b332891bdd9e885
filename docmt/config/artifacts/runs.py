"""Artifacts of instances, training, decoding and evaluation: what is made once per run (dataset × system × seed)."""

from typing import Any

from docmt.config.artifacts.base import Artifact, as_argument, made_by, own_files_of
from docmt.config.artifacts.discourse import DiscourseArtifacts
from docmt.config.rows import MONOLINGUAL, SENTENCES, PretrainedInit
from docmt.config.systems import (
    PARTS_OF_TASKS,
    Run,
    dataset_instances,
    decoding_settings,
    list_runs,
    model_owner,
    model_settings,
    training_settings,
)
from docmt.evaluation.metrics import needs_training_text
from docmt.text.published import MODEL_FILES

CONTRAST_KEYS = {"max_batch_tokens", "context", "precision"}
"""Keys of section `decoding` that matter when given targets are scored: beam and lengths play no part."""


class RunArtifacts(DiscourseArtifacts):
    """Instances, models, translations and scores."""

    @made_by("build_instances", stage="instances")
    def instances(self, dataset: str, cutting: str, split: str) -> Artifact:
        """The instances of a split in one cutting, with trees where it names some."""
        settings = self._instance_settings(cutting, split)
        texts = [self.subwords(dataset, split, lang) for lang in self.config.datasets[dataset].part_languages(split)]
        trees = []
        if (name := self.config.instances[cutting].trees) and split != MONOLINGUAL:
            trees = [self.trees(dataset, name, split)]
        return Artifact(
            [f"results/{dataset}/instances/{cutting}/{split}"],
            [settings, texts[0], *trees],
            {
                "texts": texts,
                "documents": self.dataset_split(dataset, split).only(".documents.tsv"),
                "vocabulary": self.vocabulary(dataset),
                "trees": trees,
            },
            {"settings": as_argument(settings)},
        )

    @made_by("count_instances", stage="instances")
    def instance_statistics(self, dataset: str) -> Artifact:
        """Counts of all instances of a dataset."""
        made = {
            f"{dataset}/{cutting}/{part}": self.instances(dataset, cutting, part)
            for cutting, part in dataset_instances(self.config, dataset)
        }
        return Artifact(
            [f"results/{dataset}/instances/statistics.csv"],
            [list(made.values())],
            {"folders": list(made.values())},
            {"folders": [f"{name}={instances.file}" for name, instances in made.items()]},
        )

    @made_by("train", stage="training")
    def model(self, dataset: str, system: str, seed: str) -> Artifact:
        """The trained model of a run with its history, or that of the system whose models it takes."""
        owner = model_owner(self.config, system)
        row = self.config.systems[owner]
        settings = {
            "model": model_settings(self.config, owner).model_dump(mode="json"),
            "training": training_settings(self.config, owner).model_dump(mode="json"),
        }
        train, dev = (self.instances(dataset, row.cutting, split) for split in ("train", "dev"))
        init: list[Artifact] = []
        if isinstance(row.init, PretrainedInit):
            init = own_files_of(row.init.pretrained, MODEL_FILES, where=f"config.systems.{owner}.init.pretrained")
        elif row.init is not None:
            init = [self.model(dataset, row.init, seed)]
        tasks = training_settings(self.config, owner).tasks
        more = {
            part: [self.instances(dataset, row.cutting, part)] if task in tasks else []
            for task, part in PARTS_OF_TASKS.items()
        }
        folder = run_folder(Run(dataset, owner, int(seed)))
        return Artifact(
            [f"{folder}/model.pt", f"{folder}/history.csv"],
            [
                settings["model"],
                settings["training"],
                int(seed),
                [train, dev],
                *(init or [None]),
                *more[SENTENCES],
                *more[MONOLINGUAL],
            ],
            {
                "train": train,
                "dev": dev,
                "vocabulary": self.vocabulary(dataset),
                "pipeline": self.pipeline(dataset),
                "init": [file.only("model.pt") for file in init[:1]] if row.init_system else init[:1],
                "pretrained": init[1:],
                **more,
            },
            {"settings": as_argument(settings)},
        )

    @made_by("translate", stage="decoding")
    def hypotheses(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """Translations of a split by a run."""
        settings = decoding_settings(self.config, system).model_dump(mode="json")
        model = self.model(dataset, system, seed).only("model.pt")
        instances = self.instances(dataset, self.config.systems[system].cutting, split)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/{split}.jsonl"],
            [settings, model, instances],
            {"model": model, "instances": instances},
            {"settings": as_argument(settings)},
        )

    @made_by("contrast", stage="decoding")
    def probabilities(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Log probabilities of a contrastive test set by a run."""
        settings = decoding_settings(self.config, system)
        model, items = self.model(dataset, system, seed).only("model.pt"), self.suite(dataset, suite)
        name = self.config.instances[self.config.systems[system].cutting].trees
        trees = [self.suite_trees(dataset, name, suite)] if name else []
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/suite_{suite}.json"],
            [settings.context, model, items, *trees],
            {"model": model, "suite": items, "trees": trees},
            {"settings": as_argument(settings.model_dump(mode="json", include=CONTRAST_KEYS))},
        )

    @made_by("evaluate_translation", stage="evaluation")
    def scores(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """Scores of a run on a test split."""
        settings = self.config.evaluation.model_dump(mode="json")
        hypotheses, references = self.hypotheses(dataset, system, seed, split), self.dataset_split(dataset, split)
        is_aligned = needs_training_text(self.config.evaluation.metrics)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/scores/{split}.json"],
            [settings, hypotheses, references],
            {
                "references": references,
                "training": [self.dataset_split(dataset, "train")] if is_aligned else [],
                "hypotheses": hypotheses,
            },
            {
                "settings": as_argument(settings),
                "languages": self.language_options(dataset),
                "prefix": self.prefix(dataset, split),
                "training": f"--training {self.prefix(dataset, 'train')}" if is_aligned else "",
                "test": split.removeprefix("test_"),
            },
        )

    @made_by("evaluate_contrast", stage="evaluation")
    def suite_scores(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Accuracy of a run on a contrastive test set."""
        probabilities = self.probabilities(dataset, system, seed, suite)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/scores/suite_{suite}.json"],
            [probabilities],
            {"suite": self.suite(dataset, suite), "probabilities": probabilities},
        )

    @made_by("compare_translation", stage="evaluation")
    def differences(self, dataset: str, system: str, baseline: str, split: str) -> Artifact:
        """Paired tests of a system against a baseline on a test split, over all seeds."""
        settings = self.config.evaluation.model_dump(mode="json")
        pair = [
            [self.hypotheses(dataset, name, str(run.seed), split) for run in self.runs_of(dataset, name)]
            for name in (system, baseline)
        ]
        references = self.dataset_split(dataset, split)
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}/{split}.json"],
            [settings, *pair, references],
            {"references": references, "system": pair[0], "baseline": pair[1]},
            {
                "settings": as_argument(settings),
                "languages": self.language_options(dataset),
                "prefix": self.prefix(dataset, split),
                "test": split.removeprefix("test_"),
            },
        )

    @made_by("compare_contrast", stage="evaluation")
    def suite_differences(self, dataset: str, system: str, baseline: str, suite: str) -> Artifact:
        """Paired tests of a system against a baseline on a contrastive test set, over all seeds."""
        pair = [
            [self.probabilities(dataset, name, str(run.seed), suite) for run in self.runs_of(dataset, name)]
            for name in (system, baseline)
        ]
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}/suite_{suite}.json"],
            [*pair],
            {"suite": self.suite(dataset, suite), "system": pair[0], "baseline": pair[1]},
        )

    @made_by("gather_dataset", stage="evaluation")
    def dataset_scores(self, dataset: str) -> Artifact:
        """All scores on a dataset in one table."""
        return self._table(f"results/{dataset}/scores.csv", [run for run in self.scored if run.dataset == dataset])

    @made_by("gather_system", stage="evaluation")
    def system_scores(self, dataset: str, system: str) -> Artifact:
        """All scores of a system on a dataset in one table."""
        runs = [run for run in self.scored if (run.dataset, run.system) == (dataset, system)]
        return self._table(f"results/{dataset}/runs/{system}/scores.csv", runs)

    def _table(self, file: str, runs: list[Run]) -> Artifact:
        scores = [made for run in runs for made in self.run_scores(run).values()]
        return Artifact([file], [scores], {"scores": scores})

    def run_scores(self, run: Run) -> dict[str, Artifact]:
        """All scores of a run, by test split or `suite_{suite}`."""
        row = self.config.datasets[run.dataset]
        place = (run.dataset, run.system, str(run.seed))
        splits = [split for split in row.parts() if split.startswith("test_")]
        return {split: self.scores(*place, split) for split in splits} | {
            f"suite_{suite}": self.suite_scores(*place, suite) for suite in row.suite_names()
        }

    def system_differences(self, dataset: str, system: str, baseline: str) -> dict[str, Artifact]:
        """All paired tests of a system against a baseline on a dataset, by test split or `suite_{suite}`."""
        row = self.config.datasets[dataset]
        splits = [split for split in row.parts() if split.startswith("test_")]
        return {split: self.differences(dataset, system, baseline, split) for split in splits} | {
            f"suite_{suite}": self.suite_differences(dataset, system, baseline, suite) for suite in row.suite_names()
        }

    def runs_of(self, dataset: str, system: str) -> list[Run]:
        """The runs of a system on a dataset, one per seed."""
        return [run for run in list_runs(self.config) if (run.dataset, run.system) == (dataset, system)]

    @property
    def trained(self) -> list[Run]:
        """The runs that train their own model."""
        return [run for run in list_runs(self.config) if model_owner(self.config, run.system) == run.system]

    @property
    def scored(self) -> list[Run]:
        """The runs whose translations are scored."""
        return [run for run in list_runs(self.config) if self.config.systems[run.system].scored]

    def _instance_settings(self, cutting: str, split: str) -> dict[str, Any]:
        """The settings of one split's instances: documents are chosen for training only; pairs stay single."""
        settings = self.config.instances[cutting].instances()
        if split == SENTENCES:
            settings = settings.model_copy(update={"max_sentences": 1})
        if split != "train":
            settings = settings.model_copy(update={"min_document_tokens": None, "subset": None, "subset_seed": 1})
        return settings.model_dump(mode="json")


def run_folder(run: Run) -> str:
    """The folder of a run."""
    return f"results/{run.dataset}/runs/{run.system}/seed{run.seed}"
