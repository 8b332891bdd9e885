"""Scores of runs: translations, contrastive and generative test sets, paired tests."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docmt.config.artifacts.base import Artifact, Study, UserFile, artifact
from docmt.config.artifacts.corpora import dataset_split, dataset_suite, language_pair
from docmt.config.artifacts.runs import (
    CXMI_PREFIX,
    cxmi,
    generated_documents,
    hypotheses,
    probabilities,
    run_folder,
    runs_of,
)
from docmt.config.references import is_generative
from docmt.config.study_rows import SystemSettings
from docmt.config.systems import Run, has_cxmi, run_names
from docmt.evaluation.metrics import COMET, CXMI, TRAINING, find_metric, scoring_packages

COMET_PREFIX = "comet_"
"""File name prefix for COMET scores on a test split."""

PAIRED_TESTS = 1
"""Version of the paired tests. Raise it if a code change affects their results."""


@artifact("evaluate_run", stage="evaluation")
def scores(study: Study, dataset: str, system: str, seed: str) -> Artifact:
    """Scores of a run on all its test splits, contrastive and generative test sets."""
    parts = tested_parts(study, dataset, system)
    external = _external_scores(study, dataset, parts, [Run(dataset, system, int(seed))])
    training = []
    if any(TRAINING in find_metric(name).needs for name in study.config.evaluation.metrics):
        training.append(dataset_split(study, dataset, "train"))
    return Artifact(
        [f"{run_folder(dataset, system, seed)}/scores.json"],
        {
            "outputs": [run_output(study, dataset, system, seed, part) for part in parts],
            **_references(study, dataset, parts),
            "external": list(external.values()),
            "training": training,
        },
        {
            **_scoring_params(study, dataset, parts),
            "external": [name for name, _ in external],
            "dataset": dataset,
            "system": system,
            "seed": int(seed),
        },
        _file_options(study, dataset, parts, external),
        reads_paths=True,
    )


@artifact("evaluate_comet", stage="evaluation")
def comet(study: Study, dataset: str, system: str, seed: str, split: str) -> Artifact:
    """COMET scores of a run on a test split."""
    settings = study.config.evaluation.comet
    file = ""
    context = 0
    if settings is not None:
        file = settings.model_file
        context = settings.context
    run = {"dataset": dataset, "system": system, "seed": int(seed)}
    return Artifact(
        [f"{run_folder(dataset, system, seed)}/scores/{COMET_PREFIX}{split}.json"],
        {
            "texts": dataset_split(study, dataset, split),
            "hypotheses": hypotheses(study, dataset, system, seed, split),
            "model": UserFile.at(file, where="config.evaluation.comet.checkpoint"),
        },
        {
            "metric": COMET,
            "context": context,
            "test": split.removeprefix("test_"),
            **run,
            **language_pair(study, dataset),
        },
        # The file of the model, batches and devices.
        {"settings": study.config.evaluation.model_dump(mode="json", include={"comet"})},
    )


@artifact("evaluate_difference", stage="evaluation")
def differences(study: Study, dataset: str, system: str, baseline: str) -> Artifact:
    """Paired tests of a system against a baseline on all tests of both, over all seeds."""
    parts = tested_parts(study, dataset, system, baseline)
    runs = [*runs_of(study, dataset, system), *runs_of(study, dataset, baseline)]
    external = _external_scores(study, dataset, parts, runs)

    def outputs(name: str) -> list[Artifact]:
        artifacts = []
        for part in parts:
            for run in runs_of(study, dataset, name):
                artifacts.append(run_output(study, dataset, name, str(run.seed), part))
        return artifacts

    return Artifact(
        [f"results/{dataset}/runs/{system}/against/{baseline}.json"],
        {
            "outputs": outputs(system),
            "baseline": outputs(baseline),
            **_references(study, dataset, parts),
            "external": list(external.values()),
        },
        {
            **_scoring_params(study, dataset, parts),
            "external": [name for name, _ in external],
            "dataset": dataset,
            "names": [system, baseline],
            "version": PAIRED_TESTS,
        },
        _file_options(study, dataset, parts, external),
        reads_paths=True,
    )


def _external_scores(
    study: Study, dataset: str, parts: Iterable[str], runs: Sequence[Run]
) -> dict[tuple[str, Run], UserFile]:
    """Return files with scores of other programs by `TEST/METRIC` and run, for tests on which all runs have them."""
    files = {}
    for part in parts:
        kind, _, test = part.partition("_")
        if kind != "test":
            continue
        for metric, by_test in study.config.evaluation.external.items():
            by_run = by_test.get(f"{dataset}/{test}", {})
            metric_files = {}
            for run in runs:
                # A system with one seed can be named without it.
                for name in by_run.keys() & run_names(run):
                    where = f"config.evaluation.external.{metric}.{dataset}/{test}.{name}"
                    metric_files[f"{test}/{metric}", run] = UserFile.at(by_run[name], where=where)
            if len(metric_files) == len(runs):
                files |= metric_files
    return files


def _references(study: Study, dataset: str, parts: Iterable[str]) -> dict[str, list[Artifact]]:
    """Return the texts and suites that outputs are compared with, and the user's additional references."""
    inputs: dict[str, list[Artifact]] = {"texts": [], "suites": [], "references": []}
    for part in parts:
        kind, _, name = part.partition("_")
        if kind == "test":
            where = f"config.datasets.{dataset}.references.{name}"
            files = study.config.datasets[dataset].references.get(name, [])
            inputs["texts"].append(dataset_split(study, dataset, part))
            for file in files:
                inputs["references"].append(UserFile.at(file, where=where))
        else:
            inputs["suites"].append(dataset_suite(study, dataset, name))
    return inputs


def _file_options(
    study: Study, dataset: str, parts: Iterable[str], external: Mapping[tuple[str, Run], UserFile]
) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {"references": [], "external": []}
    for name, files in study.config.datasets[dataset].references.items():
        if f"test_{name}" in parts:
            for file in files:
                options["references"].append(f"{name}={file}")
    for (name, _), user_file in external.items():
        options["external"].append(f"{name}={user_file.file}")
    return options


def _scoring_params(study: Study, dataset: str, parts: list[str]) -> dict[str, Any]:
    # These scores do not depend on the COMET model. Other contrastive scoring rules only matter in decoding.
    settings = study.config.evaluation.model_dump(
        mode="json", exclude={"comet": True, "external": True, "contrast": {"score", "context"}}
    )
    # Scores from different package versions do not belong in one table.
    packages = installed_packages(tuple(study.config.evaluation.metrics))
    n_references = {}
    for name, files in study.config.datasets[dataset].references.items():
        if f"test_{name}" in parts:
            n_references[name] = len(files)
    return {
        "settings": settings,
        "packages": packages,
        "n_references": n_references,
        **language_pair(study, dataset),
    }


@functools.cache
def installed_packages(metrics: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the installed packages that compute these metrics."""
    return scoring_packages(metrics)


def test_splits(study: Study, dataset: str, *systems: str) -> list[str]:
    """Return the test splits that all of these systems have translations for."""
    tests = list(study.config.datasets[dataset].test)
    for row in _external_systems(study, systems):
        tests = [test for test in tests if f"{dataset}/{test}" in row.hypotheses]
    return [f"test_{test}" for test in tests]


def suites_by_kind(study: Study, dataset: str, *systems: str) -> tuple[list[str], list[str]]:
    """Return the contrastive and the generative test sets that all of these systems have output for."""
    contrastive = []
    generative = []
    for reference in study.config.datasets[dataset].suites:
        suite = reference.split("/")[1]
        if is_generative(study.config, reference):
            generative.append(suite)
        else:
            contrastive.append(suite)
    for row in _external_systems(study, systems):
        contrastive = [suite for suite in contrastive if f"{dataset}/{suite}" in row.log_probabilities]
        generative = []
    return contrastive, generative


def _external_systems(study: Study, systems: Iterable[str]) -> list[SystemSettings]:
    rows = []
    for system in systems:
        row = study.config.systems[system]
        if row.has_user_output:
            rows.append(row)
    return rows


def tested_parts(study: Study, dataset: str, *systems: str) -> list[str]:
    """Return the tests of all of these systems: splits, `suite_{suite}` and `generated_{suite}`."""
    contrastive, generative = suites_by_kind(study, dataset, *systems)
    parts = test_splits(study, dataset, *systems)
    parts += [f"suite_{suite}" for suite in contrastive]
    parts += [f"generated_{suite}" for suite in generative]
    return parts


def run_output(study: Study, dataset: str, system: str, seed: str, part: str) -> Artifact:
    """Return a run's output for one of its `tested_parts`."""
    kind, _, suite = part.partition("_")
    if kind == "test":
        return hypotheses(study, dataset, system, seed, part)
    if kind == "suite":
        return probabilities(study, dataset, system, seed, suite)
    return generated_documents(study, dataset, system, seed, suite)


def run_scores(study: Study, run: Run) -> dict[str, Artifact]:
    """Return a run's scores by part. COMET and CXMI score names have a prefix."""
    wildcards = (run.dataset, run.system, str(run.seed))
    parts = tested_parts(study, run.dataset, run.system)
    by_part = dict.fromkeys(parts, scores(study, *wildcards))
    if study.config.evaluation.comet is not None:
        for part in parts:
            if part.startswith("test_"):
                by_part[COMET_PREFIX + part] = comet(study, *wildcards, part)
    if CXMI in study.config.evaluation.metrics and has_cxmi(study.config, run.system):
        for part in parts:
            if not part.startswith("generated_"):
                by_part[CXMI_PREFIX + part] = cxmi(study, *wildcards, part)
    return by_part
