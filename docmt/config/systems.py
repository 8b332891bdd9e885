"""Full system settings: presets with overrides.

The last functions check systems that other rows name.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.config.schema import Config
from docmt.config.study_rows import MONOLINGUAL, SENTENCES
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.published.catalog import CONFIG, is_in_catalog, published_folder
from docmt.models.published.families import SAME, read_settings
from docmt.models.settings import ModelSettings
from docmt.settings import look_up
from docmt.text.settings import TextSettings
from docmt.training.settings import WITHOUT_EFFECT, TaskName, TrainingSettings

PARTS_OF_TASKS: dict[TaskName, str] = {"pairs": SENTENCES, "restoration": MONOLINGUAL}
"""Dataset parts that training tasks read in addition to the training split."""
PRETRAINED = "pretrained"
"""Size name for the `text.pretrained` size."""
UNTRAINED_SEED = 1
"""Seed of external systems and published models in paths."""


@dataclass(frozen=True)
class Run:
    """A run (dataset × system × seed): one training, a published model, or an external system's output."""

    dataset: str
    system: str
    seed: int


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` overridden by `over`. Mappings are merged by key, and other values are replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def trained_system(config: Config, system: str) -> str:
    """Return the system that trains the models: the system itself, unless it has `use_model_of`."""
    return config.systems[system].use_model_of or system


def is_trained(config: Config, system: str) -> bool:
    """True if docmt trains models for this system: it has no `use_model_of`, and is not published or external."""
    row = config.systems[system]
    return row.use_model_of is None and not row.has_user_output and not row.is_published


def model_settings(config: Config, system: str) -> ModelSettings:
    """Return a system's model settings: size, overridden by the architecture, then by the row's keys."""
    system = trained_system(config, system)
    row = config.systems[system]
    where = f"config.systems.{system}"
    if row.is_published:  # its layers and widths are in its folder, which may not have been fetched yet
        return ModelSettings.load(SIZES["base"] | ARCHITECTURES["sentence_transformer"], where=where)
    if row.size == PRETRAINED:
        size = _published_size(config, system, where=f"{where}.size")
    else:
        size = look_up(SIZES | {PRETRAINED: {}}, row.size, where=f"{where}.size", what="size")
    architecture = look_up(ARCHITECTURES, row.architecture, where=f"{where}.architecture", what="architecture")
    return ModelSettings.load(merge({**size, **architecture}, row.model), where=f"{where}.model")


def _published_size(config: Config, system: str, *, where: str) -> dict[str, Any]:
    """Return layers, widths, form and marks for `text.pretrained` in a system's datasets."""
    names = {text_settings(config, run.dataset).pretrained for run in system_runs(config, system)}
    name = None
    if len(names) == 1:
        name = names.pop()
    if name is None:
        raise UserError(
            f"{where}: {PRETRAINED!r} copies the size of text.pretrained, which must be set to a single model"
        )
    folder = Path(published_folder(name))
    if not (folder / CONFIG).is_file():
        hint = "give its folder as text.pretrained"
        if is_in_catalog(name):
            hint = f"docmt models fetch --model {name}"
        raise UserError(f"{where}: {folder / CONFIG}: no such file, so the model size is unknown: {hint}, or set size")
    return read_settings(folder).model_dump(include={*SAME, "dropout"}) | {"positions": "sentence"}


def training_settings(config: Config, system: str) -> TrainingSettings:
    """Return a system's training settings: the recipe, overridden by the row's keys."""
    system = trained_system(config, system)
    row = config.systems[system]
    where = f"config.systems.{system}"
    recipe = look_up(config.training, row.recipe, where=f"{where}.recipe", what="recipe")
    return TrainingSettings.load(
        merge(recipe.model_dump(exclude={*WITHOUT_EFFECT}), row.training), where=f"{where}.training"
    )


def longest_chain(config: Config, system: str) -> list[str]:
    """Return the longest chain of systems that starts here. Every system is initialized from its predecessor.

    Between chains with equal length, the chain with more updates is returned (see `count_updates`).
    """
    chains = [longest_chain(config, name) for name, row in config.systems.items() if row.init_system == system]
    return [system, *max(chains, key=lambda chain: (len(chain), count_updates(config, chain)), default=[])]


def count_updates(config: Config, systems: list[str]) -> int:
    """Return the systems' total number of updates. Trainings without `max_steps` count as 0."""
    return sum(training_settings(config, name).max_steps or 0 for name in systems)


def training_chain(config: Config, system: str) -> list[str]:
    """Return the systems whose trainings contribute to a system's models. Each is initialized from the next."""
    system = trained_system(config, system)
    init = config.systems[system].init_system
    if init is None:
        return [system]
    return [system, *training_chain(config, init)]


def is_generated(config: Config, dataset: str) -> bool:
    """True if a dataset's training and test documents are both generated."""
    row = config.datasets[dataset]
    for references in (row.train, itertools.chain.from_iterable(row.test.values())):
        corpora = {reference.split("/")[0] for reference in references}
        if corpora.isdisjoint(config.corpora.controlled):
            return False
    return True


def decoding_settings(config: Config, system: str) -> DecodingSettings:
    """Return a system's decoding settings: section `decoding`, overridden by the row's keys."""
    over = config.systems[system].decoding
    section = config.decoding.model_dump(exclude={"n_shards"})
    return DecodingSettings.load(merge(section, over), where=f"config.systems.{system}.decoding")


def has_cxmi(config: Config, system: str) -> bool:
    """True if CXMI is defined: the system has a model, and scores single sentences."""
    return not config.systems[system].has_user_output and decoding_settings(config, system).context != "joined"


def text_settings(config: Config, dataset: str) -> TextSettings:
    """Return a dataset's text settings: section `text`, overridden by the row's keys."""
    row = config.datasets[dataset]
    return TextSettings.load(merge(config.text.model_dump(), row.text), where=f"config.datasets.{dataset}.text")


def list_runs(config: Config) -> list[Run]:
    """Return all runs in config order: by dataset, then system, then seed."""
    runs = []
    for dataset in config.datasets:
        for system, row in config.systems.items():
            seeds = row.seeds or config.seeds
            if row.has_user_output or row.is_published:
                seeds = [UNTRAINED_SEED]
            if row.runs_on(dataset):
                for seed in seeds:
                    runs.append(Run(dataset, system, seed))
    return runs


def system_runs(config: Config, system: str) -> list[Run]:
    """Return a system's runs in config order."""
    return [run for run in list_runs(config) if run.system == system]


def run_names(run: Run) -> tuple[str, str]:
    """Return the names of a run in `evaluation.external`. The second is for a system with a single seed."""
    return f"{run.system}/seed{run.seed}", run.system


def dataset_instances(config: Config, dataset: str) -> list[tuple[str, str]]:
    """Return the (`instances` row, part) pairs that a dataset needs, without duplicates.

    Sentence pairs and monolingual documents are only included if a training has their task.
    """
    pairs: dict[tuple[str, str], None] = {}
    systems = {name: row for name, row in config.systems.items() if row.runs_on(dataset)}
    for row in systems.values():
        if not row.has_user_output:
            for part in config.datasets[dataset].parts():
                pairs[row.instances, part] = None
    for name, row in systems.items():
        if not is_trained(config, name):
            continue
        tasks = training_settings(config, name).tasks
        for task, part in PARTS_OF_TASKS.items():
            if task in tasks:
                pairs[row.instances, part] = None
    return list(pairs)


def check_output(config: Config, system: str, test: str, *, is_suite: bool, where: str) -> None:
    """Raise UserError if an external system has no output for this test set or suite (`DATASET/TEST`)."""
    row = config.systems[system]
    key = "log_probabilities" if is_suite else "hypotheses"
    if row.has_user_output and test not in getattr(row, key):
        raise UserError(f"{where}: {system!r} has no output for {test!r}; add it to systems.{system}.{key}")


def check_scored(config: Config, system: str, *, where: str) -> None:
    """Raise UserError unless the system exists and is scored."""
    if not look_up(config.systems, system, where=where, what="system").evaluate:
        raise UserError(f"{where}: {system!r} is not scored; remove it, or choose another system")


def check_trained(config: Config, system: str, *, where: str) -> None:
    """Raise UserError unless docmt trains a system's models."""
    row = look_up(config.systems, system, where=where, what="system")
    if row.has_user_output:
        raise UserError(f"{where}: {system!r} is an external system without a model; choose a trained system")
    if row.use_model_of is not None:
        raise UserError(f"{where}: {system!r} trains no model; use {row.use_model_of!r}")
    if row.is_published:
        raise UserError(f"{where}: {system!r} is a published model, which is not trained: choose a trained system")
