"""Artifacts of instances, training and decoding, most of them once per run (dataset × system × seed)."""

from pathlib import Path

from docmt.config.artifacts.base import Artifact, UserFile, artifact
from docmt.config.artifacts.discourse import DiscourseArtifacts
from docmt.config.study_rows import MONOLINGUAL, SENTENCES, PretrainedInit
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
from docmt.evaluation.metrics import CXMI, ContrastSettings
from docmt.text.published_text import MODEL_FILES

SCORING_KEYS = {"context"}
"""Section `decoding` keys that affect forced decoding."""
NO_RULES = ContrastSettings()
"""Default contrastive scoring settings."""

CXMI_PREFIX = "cxmi_"
"""File name prefix for CXMI scores on a test split or suite."""


class RunArtifacts(DiscourseArtifacts):
    """Instances, models, translations and scores."""

    @artifact("instances_build", stage="instances")
    def instances(self, dataset: str, instances: str, split: str) -> Artifact:
        """Instances of a split for a row of section `instances`, with trees if the row has any."""
        chosen = self.config.instances[instances].instances()
        if split == SENTENCES:  # pairs stay single
            chosen = chosen.model_copy(update={"max_sentences": 1})
        # Documents are only chosen for training. Fingerprints for other splits contain the defaults for these keys.
        if split != "train":
            chosen = chosen.model_copy(
                update={"min_document_tokens": None, "subset": None, "subset_seed": 1, "shuffled": False}
            )
        texts = [self.subwords(dataset, split, lang) for lang in self.config.datasets[dataset].part_languages(split)]
        trees = []
        if (name := self.config.instances[instances].trees) and split != MONOLINGUAL:
            trees = [self.trees(dataset, name, split)]
        return Artifact(
            [f"results/{dataset}/instances/{instances}/{split}/manifest.json"],
            [chosen, texts[0], *trees],
            {
                "texts": texts,
                "documents": self.dataset_split(dataset, split).select_suffix(".documents.tsv"),
                "vocabulary": self.vocabulary(dataset),
                "discourse": trees,
            },
            {"settings": chosen},
        )

    @artifact("instances_count", stage="instances")
    def instance_statistics(self, dataset: str) -> Artifact:
        """Counts of all instances of a dataset."""
        made = {
            f"{dataset}/{instances}/{part}": self.instances(dataset, instances, part)
            for instances, part in dataset_instances(self.config, dataset)
        }
        return Artifact(
            [f"results/{dataset}/instances/statistics.csv"],
            [list(made.values())],
            {"folders": list(made.values())},
            {"folders": [f"{name}={made.file}" for name, made in made.items()]},
        )

    @artifact("train", stage="training")
    def model(self, dataset: str, system: str, seed: str) -> Artifact:
        """Trained model and training history of a run. With `use_model_of`, they belong to the other system."""
        owner = model_owner(self.config, system)
        row = self.config.systems[owner]
        model, training = model_settings(self.config, owner), training_settings(self.config, owner)
        folders = {split: self.instances(dataset, row.instances, split) for split in ("train", "dev")}
        (monolingual_lang,) = self.config.datasets[dataset].part_languages(MONOLINGUAL)
        init: list[Artifact] = []
        if isinstance(row.init, PretrainedInit):
            where = f"config.systems.{owner}.init.pretrained"
            init = self.published_files(row.init.pretrained, MODEL_FILES, where=where)
        elif row.init is not None:
            init = [self.model(dataset, row.init, seed)]
        # Inputs by task, because a training without a task must not depend on the task's data.
        more = {
            option: [self.instances(dataset, row.instances, PARTS_OF_TASKS[task])] if task in training.tasks else []
            for task, option in (("pairs", "pairs"), ("restoration", "monolingual"))
        }
        folder = run_folder(dataset, owner, seed)
        return Artifact(
            [f"{folder}/model.pt", f"{folder}/history.csv"],
            [
                model,
                training,
                int(seed),  # a wildcard is text, and 1 must have the same hash as in a config
                [folders["train"], folders["dev"]],
                *(init or [None]),
                *more["pairs"],
                *more["monolingual"],
            ],
            {
                **folders,
                "vocabulary": self.vocabulary(dataset),
                "pipeline": self.pipeline(dataset),
                "init": [file.select_suffix("model.pt") for file in init[:1]] if row.init_system else init[:1],
                "pretrained": init[1:],
                **more,
            },
            {
                "settings": {"model": model, "training": training},
                "monolingual_lang": monolingual_lang if more["monolingual"] else None,
                "loggers": self.config.training[row.recipe].loggers if row.recipe else [],
            },
        )

    @artifact("import_output", stage="decoding")
    def user_output(self, dataset: str, system: str, seed: str, file: str) -> Artifact:
        """Output of an external system, converted to the format of trained systems."""
        part, _, _ = file.partition(".")
        kind, _, test = part.partition("_")
        key = "hypotheses" if kind == "test" else "log_probabilities"
        path = getattr(self.config.systems[system], key)[f"{dataset}/{test}"]
        own = UserFile.at(path, where=f"config.systems.{system}.{key}.{dataset}/{test}")
        if kind == "test":
            text = self.dataset_split(dataset, part)
            tested, params = text.select_suffix(".documents.tsv"), {"prefix": self.prefix(dataset, part)}
        else:
            text = tested = self.suite(dataset, test)
            params = {"suite": text.file}
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/decoding/{file}"],
            [own, Path(path).suffix, text],
            {"own": own, "tested": tested},
            params,
        )

    @artifact("translate", stage="decoding")
    def hypotheses(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """Translations of a split by a run, or by an external system."""
        if self.config.systems[system].has_user_output:
            return self.user_output(dataset, system, seed, f"{split}.jsonl")
        settings = decoding_settings(self.config, system)
        model = self.model(dataset, system, seed).select_suffix("model.pt")
        instances = self.instances(dataset, self.config.systems[system].instances, split)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/decoding/{split}.jsonl"],
            [settings, model, instances],
            {"model": model, "instances": instances},
            {"settings": settings},
        )

    @artifact("score_candidates", stage="decoding")
    def probabilities(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Log probabilities of the candidates of a contrastive test set."""
        if self.config.systems[system].has_user_output:
            return self.user_output(dataset, system, seed, f"suite_{suite}.json")
        settings, rules = decoding_settings(self.config, system), self.config.evaluation.contrast
        model, items = self.model(dataset, system, seed).select_suffix("model.pt"), self.suite(dataset, suite)
        # Search settings only matter if the search translates the context. Default rules do not change the fingerprint.
        own = [settings] if rules.context == "own" else []
        given = [rules.score, rules.context]
        given = given if given != [NO_RULES.score, NO_RULES.context] else []
        trees = self._read_trees(dataset, system, f"suite_{suite}")
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/decoding/suite_{suite}.json"],
            [settings.context, model, items, *trees, *given, *own],
            {"model": model, "suite": items, "discourse": trees},
            {
                "settings": own[0] if own else settings.model_dump(mode="json", include=SCORING_KEYS),
                "score": rules.score,
                "target_context": rules.context,
            },
        )

    @artifact("translate_suite", stage="decoding")
    def generated_documents(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Translations of the documents of a generative test set by a run."""
        settings = decoding_settings(self.config, system)
        model, items = self.model(dataset, system, seed).select_suffix("model.pt"), self.suite(dataset, suite)
        trees = self._read_trees(dataset, system, f"suite_{suite}")
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/decoding/generated_{suite}.jsonl"],
            [settings, model, items, *trees],
            {"model": model, "suite": items, "discourse": trees},
            {"settings": settings},
        )

    @artifact("evaluate_cxmi", stage="decoding")
    def cxmi(self, dataset: str, system: str, seed: str, part: str) -> Artifact:
        """Gain in reference log probability from context (CXMI) on a test split, or on `suite_{suite}`."""
        settings = decoding_settings(self.config, system)
        model = self.model(dataset, system, seed).select_suffix("model.pt")
        suite = part.removeprefix("suite_") if part.startswith("suite_") else None
        text = self.dataset_split(dataset, part) if suite is None else self.suite(dataset, suite)
        trees = self._read_trees(dataset, system, part)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/{CXMI_PREFIX}{part}.json"],
            [CXMI, settings.context, model, text, *trees],
            {"model": model, "text": text, "discourse": trees},
            {
                "settings": settings.model_dump(mode="json", include=SCORING_KEYS),
                **(self.scoring_options(dataset, part) if suite is None else {"suite": text.file, "test": suite}),
            },
        )

    def runs_of(self, dataset: str, system: str) -> list[Run]:
        """Return a system's runs on a dataset, one per seed."""
        return [run for run in list_runs(self.config) if (run.dataset, run.system) == (dataset, system)]

    @property
    def trained(self) -> list[Run]:
        """Runs that train a model."""
        return [run for run in list_runs(self.config) if is_trained(self.config, run.system)]

    @property
    def scored(self) -> list[Run]:
        """Runs whose translations are scored."""
        return [run for run in list_runs(self.config) if self.config.systems[run.system].evaluate]

    def _read_trees(self, dataset: str, system: str, part: str) -> list[Artifact]:
        name = self.config.instances[self.config.systems[system].instances].trees
        return [self.trees(dataset, name, part)] if name else []


def run_folder(dataset: str, system: str, seed: str | int) -> str:
    """Return the run folder."""
    return f"results/{dataset}/runs/{system}/seed{int(seed)}"
