"""Artifacts of instances, training, decoding and evaluation: what is made once per run (dataset × system × seed)."""

from pathlib import Path
from typing import Any

from docmt.config.artifacts.base import Artifact, OwnFile, as_argument, made_by
from docmt.config.artifacts.discourse import DiscourseArtifacts
from docmt.config.rows import MONOLINGUAL, SENTENCES, PretrainedInit
from docmt.config.systems import (
    PARTS_OF_TASKS,
    Run,
    dataset_instances,
    decoding_settings,
    is_trained,
    list_runs,
    model_owner,
    model_settings,
    training_settings,
)
from docmt.decoding.settings import ContrastSettings
from docmt.evaluation.metrics import CXMI
from docmt.text.published import MODEL_FILES

CONTRAST_KEYS = {"max_batch_tokens", "context", "precision"}
"""Keys of section `decoding` that matter when given targets are scored: beam and lengths play no part."""
NO_RULES = ContrastSettings()
"""The rules of contrastive test sets at their defaults."""

CXMI_PREFIX = "cxmi_"
"""How the names of CXMI's files of a test split or suite begin."""


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
            where = f"config.systems.{owner}.init.pretrained"
            init = self.published_files(row.init.pretrained, MODEL_FILES, where=where)
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

    @made_by("translate", "take_hypotheses", stage="decoding")
    def hypotheses(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """Translations of a split by a run, or those of a system made elsewhere."""
        if self.config.systems[system].is_given:
            own, file = self._given(system, "hypotheses", f"{dataset}/{split.removeprefix('test_')}")
            text = self.dataset_split(dataset, split)
            return Artifact(
                [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/{split}.jsonl"],
                [own, Path(file).suffix, text],
                {"own": own, "documents": text.only(".documents.tsv")},
                {"prefix": self.prefix(dataset, split)},
            )
        settings = decoding_settings(self.config, system).model_dump(mode="json")
        model = self.model(dataset, system, seed).only("model.pt")
        instances = self.instances(dataset, self.config.systems[system].cutting, split)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/{split}.jsonl"],
            [settings, model, instances],
            {"model": model, "instances": instances},
            {"settings": as_argument(settings)},
        )

    @made_by("attend", stage="decoding")
    def attention(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """What a run looks at while it writes its translations of a sample of documents."""
        made = self.hypotheses(dataset, system, seed, split)
        settings = decoding_settings(self.config, system)
        n_documents = self.config.report.reader.attention
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/attention_{split}.json"],
            [settings.context, n_documents, made],
            {"hypotheses": made, **{name: made.inputs[name] for name in ("model", "instances")}},
            {
                "settings": as_argument(settings.model_dump(mode="json", include=CONTRAST_KEYS)),
                "documents": n_documents,
            },
        )

    @made_by("contrast", "take_log_probabilities", stage="decoding")
    def probabilities(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Log probabilities of a contrastive test set by a run, or by a system made elsewhere."""
        if self.config.systems[system].is_given:
            own, file = self._given(system, "log_probabilities", f"{dataset}/{suite}")
            items = self.suite(dataset, suite)
            return Artifact(
                [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/suite_{suite}.json"],
                [own, Path(file).suffix, items],
                {"own": own, "suite": items},
            )
        settings, rules = decoding_settings(self.config, system), self.config.evaluation.contrast
        model, items = self.model(dataset, system, seed).only("model.pt"), self.suite(dataset, suite)
        # The search matters where it makes the context; rules at their defaults leave the fingerprint as it was.
        own = [settings.model_dump(mode="json")] if rules.context == "own" else []
        given = [rules.score, rules.context]
        given = given if given != [NO_RULES.score, NO_RULES.context] else []
        trees = self._read_trees(dataset, system, suite=suite)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/suite_{suite}.json"],
            [settings.context, model, items, *trees, *given, *own],
            {"model": model, "suite": items, "trees": trees},
            {
                "settings": as_argument(settings.model_dump(mode="json", include=None if own else CONTRAST_KEYS)),
                "rules": f"--score {rules.score} --target-context {rules.context}" if given else "",
            },
        )

    @made_by("generate", stage="decoding")
    def generated_documents(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Translations of the documents of a generative test set by a run."""
        settings = decoding_settings(self.config, system).model_dump(mode="json")
        model, items = self.model(dataset, system, seed).only("model.pt"), self.suite(dataset, suite)
        trees = self._read_trees(dataset, system, suite=suite)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/decoding/generated_{suite}.jsonl"],
            [settings, model, items, *trees],
            {"model": model, "suite": items, "trees": trees},
            {"settings": as_argument(settings)},
        )

    @made_by("measure_context", stage="decoding")
    def cxmi(self, dataset: str, system: str, seed: str, part: str) -> Artifact:
        """What context adds to the log probability of the reference: scores of a test split, or of `suite_{suite}`."""
        settings = decoding_settings(self.config, system)
        model = self.model(dataset, system, seed).only("model.pt")
        suite = part.removeprefix("suite_") if part.startswith("suite_") else None
        text = self.dataset_split(dataset, part) if suite is None else self.suite(dataset, suite)
        trees = self._read_trees(dataset, system, split=part, suite=suite)
        return Artifact(
            [f"{run_folder(Run(dataset, system, int(seed)))}/scores/{CXMI_PREFIX}{part}.json"],
            [CXMI, settings.context, model, text, *trees],
            {"model": model, "text": text, "trees": trees},
            {
                "settings": as_argument(settings.model_dump(mode="json", include=CONTRAST_KEYS)),
                "source": f"--suite {text.file}"
                if suite is not None
                else f"--prefix {self.prefix(dataset, part)} {self.language_options(dataset)}",
                "test": suite or part.removeprefix("test_"),
            },
        )

    def runs_of(self, dataset: str, system: str) -> list[Run]:
        """The runs of a system on a dataset, one per seed."""
        return [run for run in list_runs(self.config) if (run.dataset, run.system) == (dataset, system)]

    @property
    def trained(self) -> list[Run]:
        """The runs that train their own model."""
        return [run for run in list_runs(self.config) if is_trained(self.config, run.system)]

    @property
    def scored(self) -> list[Run]:
        """The runs whose translations are scored."""
        return [run for run in list_runs(self.config) if self.config.systems[run.system].scored]

    def _read_trees(self, dataset: str, system: str, *, split: str = "", suite: str | None = None) -> list[Artifact]:
        """The trees that a system reads with a suite, or else with a split; none if it reads no trees."""
        name = self.config.instances[self.config.systems[system].cutting].trees
        if not name:
            return []
        return [self.trees(dataset, name, split) if suite is None else self.suite_trees(dataset, name, suite)]

    def _given(self, system: str, key: str, test: str) -> tuple[OwnFile, str]:
        """The file with the output of a system made elsewhere for a test set or suite, and its name."""
        file = getattr(self.config.systems[system], key)[test]
        return OwnFile.at(file, where=f"config.systems.{system}.{key}.{test}"), file

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
