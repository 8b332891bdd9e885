"""The plan of instances, training, decoding and evaluation: all that is made once per run."""

from dataclasses import replace
from typing import Any

from docmt.config.fingerprints import Fingerprints, Place, Wildcards, split_instances_settings
from docmt.config.plan.paths import as_argument, dataset_files, dataset_prefix
from docmt.config.rows import MONOLINGUAL
from docmt.config.schema import Config
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
from docmt.evaluation.contrast import METRIC as ACCURACY
from docmt.provenance import fingerprint
from docmt.report.settings import LaidOutTable
from docmt.training.settings import TaskName


class RunsPlan:
    """Runs: dataset × system × seed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.all = list_runs(config)
        self.scored = [run for run in self.all if config.systems[run.system].scored]
        self._fingerprints = Fingerprints(config)

    # Instances.

    def instances_settings(self, wildcards: Wildcards) -> str:
        """The settings of a split's instances."""
        return as_argument(split_instances_settings(self.config, wildcards.segmentation, wildcards.split))

    def named_instances(self, wildcards: Wildcards) -> list[str]:
        """`DATASET/SEGMENTATION/SPLIT=FOLDER` for all instances of a dataset."""
        prefix = f"results/{wildcards.dataset}/instances/"
        return [
            f"{wildcards.dataset}/{folder.removeprefix(prefix)}={folder}" for folder in self.instance_folders(wildcards)
        ]

    def instance_folders(self, wildcards: Wildcards) -> list[str]:
        """The folders of all instances of a dataset."""
        return self._instance_folders(wildcards.dataset)

    def _instance_folders(self, dataset: str) -> list[str]:
        return [
            f"results/{dataset}/instances/{segmentation}/{part}"
            for segmentation, part in dataset_instances(self.config, dataset)
        ]

    def instances_targets(self) -> list[str]:
        """All that the stage makes."""
        folders = [folder for dataset in self.config.datasets for folder in self._instance_folders(dataset)]
        return [*folders, *(f"results/{dataset}/instances/statistics.csv" for dataset in self.config.datasets)]

    # Training.

    def training_settings(self, wildcards: Wildcards) -> str:
        """The settings of a system's model and training."""
        settings = {
            "model": model_settings(self.config, wildcards.system).model_dump(mode="json"),
            "training": training_settings(self.config, wildcards.system).model_dump(mode="json"),
        }
        return as_argument(settings)

    def train_instances(self, wildcards: Wildcards) -> str:
        """The training instances of a run."""
        return self._instances(wildcards, "train")

    def dev_instances(self, wildcards: Wildcards) -> str:
        """The development instances of a run."""
        return self._instances(wildcards, "dev")

    def init(self, wildcards: Wildcards) -> list[str]:
        """The model that gives the first parameters of a run: one, or none."""
        origin = self.config.systems[wildcards.system].init
        return [f"{self.run_folder(Run(wildcards.dataset, origin, int(wildcards.seed)))}/model.pt"] if origin else []

    def init_option(self, wildcards: Wildcards, input: Any) -> str:
        """`--init MODEL`, or nothing."""
        return f"--init {input.init}" if input.init else ""

    def _instances(self, wildcards: Wildcards, split: str) -> str:
        segmentation = self.config.systems[wildcards.system].segmentation
        return f"results/{wildcards.dataset}/instances/{segmentation}/{split}"

    def sentence_instances(self, wildcards: Wildcards) -> list[str]:
        """The sentence pairs for the pre-training of a run: one folder, or none."""
        return self._instances_of_task(wildcards, "pairs")

    def monolingual_instances(self, wildcards: Wildcards) -> list[str]:
        """The monolingual documents for the pre-training of a run: one folder, or none."""
        return self._instances_of_task(wildcards, "restoration")

    def _instances_of_task(self, wildcards: Wildcards, task: TaskName) -> list[str]:
        has_task = task in training_settings(self.config, wildcards.system).tasks
        return [self._instances(wildcards, PARTS_OF_TASKS[task])] if has_task else []

    def pretraining_options(self, wildcards: Wildcards, input: Any) -> str:
        """`--sentences FOLDER` and `--monolingual FOLDER` with its language, as far as the run reads them."""
        options = []
        if input.sentences:
            options.append(f"--sentences {input.sentences}")
        if input.monolingual:
            (lang,) = self.config.datasets[wildcards.dataset].part_languages(MONOLINGUAL)
            options.append(f"--monolingual {input.monolingual} --monolingual-lang {lang}")
        return " ".join(options)

    def trained(self) -> list[Run]:
        """The runs that train a model of their own."""
        return [run for run in self.all if model_owner(self.config, run.system) == run.system]

    def training_targets(self) -> list[str]:
        """All models."""
        return [f"{self.run_folder(run)}/model.pt" for run in self.trained()]

    # Decoding.

    def model(self, wildcards: Wildcards) -> str:
        """The model of a run: its own, or that of the system it names."""
        owner = model_owner(self.config, wildcards.system)
        return f"{self.run_folder(Run(wildcards.dataset, owner, int(wildcards.seed)))}/model.pt"

    def test_instances(self, wildcards: Wildcards) -> str:
        """The instances of a test split, cut as for the training of the run."""
        return self._instances(wildcards, wildcards.split)

    def decoding_settings(self, wildcards: Wildcards) -> str:
        """The settings of beam search."""
        return as_argument(decoding_settings(self.config, wildcards.system).model_dump(mode="json"))

    def contrast_settings(self, wildcards: Wildcards) -> str:
        """The settings of scoring given targets: beam and lengths play no part."""
        settings = decoding_settings(self.config, wildcards.system)
        return as_argument(settings.model_dump(mode="json", include={"max_batch_tokens", "context", "precision"}))

    def decoding_targets(self) -> list[str]:
        """All hypotheses and log probabilities."""
        return [
            f"{self.run_folder(run)}/decoding/{name}"
            for run in self.scored
            for name in (
                *(f"{split}.jsonl" for split in self._test_splits(run.dataset)),
                *(f"suite_{suite}.json" for suite in self._suites(run.dataset)),
            )
        ]

    # Evaluation.

    def evaluation_settings(self, wildcards: Wildcards) -> str:
        """The settings of scores."""
        return as_argument(self.config.evaluation.model_dump(mode="json"))

    def reference_files(self, wildcards: Wildcards) -> list[str]:
        """Source, reference and document index of a test split."""
        return dataset_files(self.config, wildcards.dataset, wildcards.split)

    def alignment_files(self, wildcards: Wildcards) -> list[str]:
        """The training text that helps to align words for APT, where that is computed."""
        is_needed = "APT" in self.config.evaluation.metrics
        return dataset_files(self.config, wildcards.dataset, "train") if is_needed else []

    def alignment_option(self, wildcards: Wildcards) -> str:
        """`--training PREFIX` for `alignment_files`, or nothing."""
        if not self.alignment_files(wildcards):
            return ""
        return f"--training {dataset_prefix(self.config, wildcards.dataset, 'train')}"

    def test_name(self, wildcards: Wildcards) -> str:
        """The name of a test set without the `test_` of its path."""
        return wildcards.split.removeprefix("test_")

    def system_scores(self, wildcards: Wildcards) -> list[str]:
        """All scores of a system on a dataset."""
        return self._paths(self._scores(dataset=wildcards.dataset, system=wildcards.system))

    def system_fingerprint(self, wildcards: Wildcards) -> str:
        """The fingerprint of `system_scores`."""
        return self._fingerprint(self._scores(dataset=wildcards.dataset, system=wildcards.system))

    def dataset_scores(self, wildcards: Wildcards) -> list[str]:
        """All scores on a dataset."""
        return self._paths(self._scores(dataset=wildcards.dataset))

    def dataset_fingerprint(self, wildcards: Wildcards) -> str:
        """The fingerprint of `dataset_scores`."""
        return self._fingerprint(self._scores(dataset=wildcards.dataset))

    def table_scores(self, table: LaidOutTable) -> list[str]:
        """All scores that a table shows."""
        return self._paths(self._table_scores(table))

    def table_fingerprint(self, table: LaidOutTable) -> str:
        """The fingerprint of `table_scores`."""
        return self._fingerprint(self._table_scores(table))

    def _table_scores(self, table: LaidOutTable) -> list[tuple[Run, str]]:
        def is_shown(run: Run, name: str) -> bool:
            is_suite = name.startswith("suite_")
            wanted = ACCURACY in table.metrics if is_suite else set(table.metrics) != {ACCURACY}
            test = name.removeprefix("suite_" if is_suite else "test_")
            return run.system in table.systems and wanted and table.shows(run.dataset, test)

        return [(run, name) for run, name in self._scores() if is_shown(run, name)]

    def scores(self, wildcards: Wildcards | None = None) -> list[str]:
        """All scores."""
        return self._paths(self._scores())

    def fingerprint(self, wildcards: Wildcards) -> str:
        """The fingerprint of `scores`."""
        return self._fingerprint(self._scores())

    def _scores(self, *, dataset: str | None = None, system: str | None = None) -> list[tuple[Run, str]]:
        """Runs with the names of their score files."""
        return [
            (run, name)
            for run in self.scored
            if dataset in (None, run.dataset) and system in (None, run.system)
            for name in (*self._test_splits(run.dataset), *(f"suite_{suite}" for suite in self._suites(run.dataset)))
        ]

    def _paths(self, scores: list[tuple[Run, str]]) -> list[str]:
        return [f"{self.run_folder(run)}/scores/{name}.json" for run, name in scores]

    def _fingerprint(self, scores: list[tuple[Run, str]]) -> str:
        parts = []
        for run, name in scores:
            place = Place(dataset=run.dataset, system=run.system, seed=str(run.seed))
            if name.startswith("suite_"):
                parts.append(self._fingerprints.suite_scores(replace(place, suite=name.removeprefix("suite_"))))
            else:
                parts.append(self._fingerprints.scores(replace(place, split=name)))
        return fingerprint(parts)

    @staticmethod
    def run_folder(run: Run) -> str:
        """The folder of a run."""
        return f"results/{run.dataset}/runs/{run.system}/seed{run.seed}"

    def _test_splits(self, dataset: str) -> list[str]:
        return [split for split in self.config.datasets[dataset].parts() if split.startswith("test_")]

    def _suites(self, dataset: str) -> list[str]:
        return self.config.datasets[dataset].suite_names()
