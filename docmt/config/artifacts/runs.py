"""Artifacts of instances, training and decoding, most of them once per run (dataset × system × seed)."""

from pathlib import Path
from typing import Any

from docmt import paths
from docmt.config.artifacts.base import Artifact, Study, UserFile, artifact
from docmt.config.artifacts.corpora import INDEX, dataset_split, dataset_suite, language_pair, published_files
from docmt.config.artifacts.discourse import document_trees
from docmt.config.artifacts.text import pipeline, subwords, vocabulary
from docmt.config.study_rows import MONOLINGUAL, SENTENCES, PretrainedInit
from docmt.config.systems import (
    UNTRAINED_SEED,
    Run,
    dataset_instances,
    decoding_settings,
    is_trained,
    list_runs,
    model_settings,
    trained_system,
    training_settings,
)
from docmt.evaluation.metrics import CXMI
from docmt.models.published.catalog import published_folder
from docmt.text.published_text import MODEL_FILES
from docmt.training.settings import WITHOUT_EFFECT, TrainingSettings

SCORING_KEYS = {"context"}
"""Section `decoding` keys that affect forced decoding."""

CXMI_PREFIX = "cxmi_"
"""File name prefix for CXMI scores on a test split or suite."""


@artifact("instances_build", stage="instances")
def instances(study: Study, dataset: str, instances: str, split: str) -> Artifact:
    """Instances of a split for a row of section `instances`, with trees if the row has any."""
    row = study.config.instances[instances]
    settings = row.instances()
    if split == SENTENCES:  # pairs stay single
        settings = settings.model_copy(update={"max_sentences": 1})
    # Documents are only chosen for training.
    if split != "train":
        settings = settings.model_copy(update={"min_document_tokens": None, "subset": None, "shuffled": False})
    if settings.subset is None:
        settings = settings.model_copy(update={"subset_seed": 1})
    trees = []
    if row.trees is not None and split != MONOLINGUAL:
        trees.append(document_trees(study, dataset, row.trees, split))
    languages = study.config.datasets[dataset].part_languages(split)
    return Artifact(
        [paths.INSTANCES.format(dataset=dataset, instances=instances, split=split)],
        {
            "texts": [subwords(study, dataset, split, lang) for lang in languages],
            "documents": dataset_split(study, dataset, split).select(INDEX),
            "vocabulary": vocabulary(study, dataset),
            "discourse": trees,
        },
        {"settings": settings},
    )


@artifact("instances_count", stage="instances")
def instance_statistics(study: Study, dataset: str) -> Artifact:
    """Counts of all instances of a dataset."""
    rows = dataset_instances(study.config, dataset)
    return Artifact(
        [f"results/{dataset}/instances/statistics.csv"],
        {"manifests": [instances(study, dataset, name, part) for name, part in rows]},
        reads_paths=True,
    )


@artifact("models_import_for_study", stage="training")
def published_model(study: Study, dataset: str, system: str) -> Artifact:
    """Published model as it is, for the text of a dataset."""
    row = study.config.systems[system]
    init = row.init
    limits = study.config.instances[row.instances].instances()
    assert isinstance(init, PretrainedInit)
    where = f"config.systems.{system}.init.pretrained"
    return Artifact(
        [paths.MODEL.format(dataset=dataset, system=system, seed=UNTRAINED_SEED)],
        {
            "published": published_files(study, init.pretrained, MODEL_FILES, where=where),
            "vocabulary": vocabulary(study, dataset),
            "pipeline": pipeline(study, dataset),
        },
        {
            "folder": published_folder(init.pretrained),
            "settings": limits.model_dump(include={"max_tokens", "max_sentences"}),
        },
    )


@artifact("train", stage="training")
def model(study: Study, dataset: str, system: str, seed: str) -> Artifact:
    """Trained model and training history of a run. With `use_model_of`, they belong to the other system."""
    system = trained_system(study.config, system)
    row = study.config.systems[system]
    if row.is_published:
        return published_model(study, dataset, system)
    training = _used_settings(study, system)
    recipe = study.config.training[row.recipe or ""]
    monolingual_lang = None

    def of_split(split: str) -> Artifact:
        return instances(study, dataset, row.instances, split)

    inputs: dict[str, Any] = {
        "train": of_split("train"),
        "dev": of_split("dev"),
        "pairs": [],
        "monolingual": [],
        "vocabulary": vocabulary(study, dataset),
        "pipeline": pipeline(study, dataset),
        "init": [],
        "pretrained": [],
    }
    # Inputs by task, because a training without a task must not depend on the task's data.
    if "pairs" in training.tasks:
        inputs["pairs"] = of_split(SENTENCES)
    if "restoration" in training.tasks:
        inputs["monolingual"] = of_split(MONOLINGUAL)
        (monolingual_lang,) = study.config.datasets[dataset].part_languages(MONOLINGUAL)
    if isinstance(row.init, PretrainedInit):
        where = f"config.systems.{system}.init.pretrained"
        files = published_files(study, row.init.pretrained, MODEL_FILES, where=where)
        inputs |= {"init": files[:1], "pretrained": files[1:]}
    elif row.init is not None:
        inputs["init"] = model(study, dataset, row.init, seed).select("model.pt")
    run = {"dataset": dataset, "system": system, "seed": int(seed)}
    return Artifact(
        [paths.MODEL.format(**run), paths.HISTORY.format(**run)],
        inputs,
        {
            "settings": {"model": model_settings(study.config, system), "training": training},
            "seed": int(seed),  # a wildcard is text, and 1 must have the same hash as in a config
            "monolingual_lang": monolingual_lang,
        },
        {name: getattr(recipe, name) for name in WITHOUT_EFFECT},
    )


def _used_settings(study: Study, system: str) -> TrainingSettings:
    """Return a system's training settings, with default values for keys without effect, which then rerun nothing."""
    training = training_settings(study.config, system)
    unused = []
    if not model_settings(study.config, system).needs_trees:
        unused.append("drop_rst")
    if study.config.systems[system].init is None:
        unused += ["pretrained_learning_rate", "init_new_parameters"]
    if "restoration" not in training.tasks:
        unused.append("restoration")
    default = TrainingSettings()
    return training.model_copy(update={name: getattr(default, name) for name in unused})


@artifact("import_output", stage="decoding")
def user_output(study: Study, dataset: str, system: str, seed: str, file: str) -> Artifact:
    """Output of an external system, converted to the format of trained systems."""
    part = file.partition(".")[0]
    kind, _, test = part.partition("_")
    key = "hypotheses" if kind == "test" else "log_probabilities"
    path = getattr(study.config.systems[system], key)[f"{dataset}/{test}"]
    inputs: dict[str, Any] = {
        "user_file": UserFile.at(path, where=f"config.systems.{system}.{key}.{dataset}/{test}"),
        "texts": [],
        "suite": [],
    }
    params = {"suffix": Path(path).suffix}  # determines the format
    if kind == "test":
        # Other sentences than in the reference are aligned to it.
        tgt_lang = study.config.datasets[dataset].tgt_lang
        inputs["texts"] = dataset_split(study, dataset, part).select(INDEX, f".{tgt_lang}")
        params["tgt_lang"] = tgt_lang
    else:
        inputs["suite"] = dataset_suite(study, dataset, test)
    output = paths.OUTPUT.format(dataset=dataset, system=system, seed=int(seed), output=file)
    return Artifact([output], inputs, params)


@artifact("translate", "translate_shard", "join_translations", stage="decoding")
def hypotheses(study: Study, dataset: str, system: str, seed: str, split: str) -> Artifact:
    """Translations of a split by a run, or by an external system."""
    output = f"{split}.jsonl"
    if study.config.systems[system].has_user_output:
        return user_output(study, dataset, system, seed, output)
    return Artifact(
        [paths.OUTPUT.format(dataset=dataset, system=system, seed=int(seed), output=output)],
        {
            "model": model(study, dataset, system, seed).select("model.pt"),
            "instances": instances(study, dataset, study.config.systems[system].instances, split),
        },
        {"settings": decoding_settings(study.config, system)},
    )


@artifact("score_candidates", stage="decoding")
def probabilities(study: Study, dataset: str, system: str, seed: str, suite: str) -> Artifact:
    """Log probabilities of the candidates of a contrastive test set."""
    output = f"suite_{suite}.json"
    if study.config.systems[system].has_user_output:
        return user_output(study, dataset, system, seed, output)
    settings = decoding_settings(study.config, system)
    rules = study.config.evaluation.contrast
    # Search settings only matter if the search translates the context.
    keys = None if rules.context == "own" else SCORING_KEYS
    return Artifact(
        [paths.OUTPUT.format(dataset=dataset, system=system, seed=int(seed), output=output)],
        _suite_inputs(study, dataset, system, seed, suite),
        {
            "settings": settings.model_dump(mode="json", include=keys),
            "score": rules.score,
            "target_context": rules.context,
        },
    )


@artifact("translate_suite", stage="decoding")
def generated_documents(study: Study, dataset: str, system: str, seed: str, suite: str) -> Artifact:
    """Translations of the documents of a generative test set by a run."""
    output = f"generated_{suite}.jsonl"
    return Artifact(
        [paths.OUTPUT.format(dataset=dataset, system=system, seed=int(seed), output=output)],
        _suite_inputs(study, dataset, system, seed, suite),
        {"settings": decoding_settings(study.config, system)},
    )


@artifact("evaluate_cxmi", stage="decoding")
def cxmi(study: Study, dataset: str, system: str, seed: str, part: str) -> Artifact:
    """Gain in reference log probability from context (CXMI) on a test split, or on `suite_{suite}`."""
    run = {"dataset": dataset, "system": system, "seed": int(seed)}
    kind, _, test = part.partition("_")
    inputs: dict[str, Any] = {
        "model": model(study, dataset, system, seed).select("model.pt"),
        "texts": [],
        "suite": [],
        "discourse": _read_trees(study, dataset, system, part),
    }
    settings = decoding_settings(study.config, system).model_dump(mode="json", include=SCORING_KEYS)
    params = {"settings": settings, "metric": CXMI, "test": test, **run}
    if kind == "suite":
        inputs["suite"] = dataset_suite(study, dataset, test)
    else:
        inputs["texts"] = dataset_split(study, dataset, part)
        params |= language_pair(study, dataset)
    return Artifact([f"{paths.RUN.format(**run)}/scores/{CXMI_PREFIX}{part}.json"], inputs, params)


def runs_of(study: Study, dataset: str, system: str) -> list[Run]:
    """Return a system's runs on a dataset, one per seed."""
    return [run for run in list_runs(study.config) if (run.dataset, run.system) == (dataset, system)]


def trained_runs(study: Study) -> list[Run]:
    """Return the runs that train a model."""
    return [run for run in list_runs(study.config) if is_trained(study.config, run.system)]


def scored_runs(study: Study) -> list[Run]:
    """Return the runs whose translations are scored."""
    return [run for run in list_runs(study.config) if study.config.systems[run.system].evaluate]


def run_folder(dataset: str, system: str, seed: str | int) -> str:
    """Return the run folder."""
    return paths.RUN.format(dataset=dataset, system=system, seed=int(seed))


def _suite_inputs(study: Study, dataset: str, system: str, seed: str, suite: str) -> dict[str, Any]:
    return {
        "model": model(study, dataset, system, seed).select("model.pt"),
        "suite": dataset_suite(study, dataset, suite),
        "discourse": _read_trees(study, dataset, system, f"suite_{suite}"),
    }


def _read_trees(study: Study, dataset: str, system: str, part: str) -> list[Artifact]:
    name = study.config.instances[study.config.systems[system].instances].trees
    if not name:
        return []
    return [document_trees(study, dataset, name, part)]
