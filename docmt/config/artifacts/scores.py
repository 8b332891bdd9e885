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
    reads_training = any(TRAINING in find_metric(name).needs for name in study.config.evaluation.metrics)
    return Artifact(
        [f"{run_folder(dataset, system, seed)}/scores.json"],
        {
            "outputs": [run_output(study, dataset, system, seed, part) for part in parts],
            **_references(study, dataset, parts),
            "external": list(external.values()),
            "training": [dataset_split(study, dataset, "train")] if reads_training else [],
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
    run = {"dataset": dataset, "system": system, "seed": int(seed)}
    return Artifact(
        [f"{run_folder(dataset, system, seed)}/scores/{COMET_PREFIX}{split}.json"],
        {
            "texts": dataset_split(study, dataset, split),
            "hypotheses": hypotheses(study, dataset, system, seed, split),
            "model": UserFile.at(settings.model_file if settings else "", where="config.evaluation.comet.checkpoint"),
        },
        {
            "metric": COMET,
            "context": settings.context if settings else 0,
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
        runs = runs_of(study, dataset, name)
        return [run_output(study, dataset, name, str(run.seed), part) for part in parts for run in runs]

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
        for metric, by_test in study.config.evaluation.external.items() if kind == "test" else ():
            by_run = by_test.get(f"{dataset}/{test}", {})
            # A system with one seed can be named without it.
            named = {run: next((key for key in run_names(run) if key in by_run), None) for run in runs}
            if None not in named.values():
                where = f"config.evaluation.external.{metric}.{dataset}/{test}"
                for run, key in named.items():
                    files[f"{test}/{metric}", run] = UserFile.at(by_run[key or ""], where=f"{where}.{key}")
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
            inputs["references"] += [UserFile.at(file, where=where) for file in files]
        else:
            inputs["suites"].append(dataset_suite(study, dataset, name))
    return inputs


def _file_options(
    study: Study, dataset: str, parts: Iterable[str], external: Mapping[tuple[str, Run], UserFile]
) -> dict[str, list[str]]:
    references = study.config.datasets[dataset].references.items()
    words = [f"{name}={file}" for name, files in references if f"test_{name}" in parts for file in files]
    return {"references": words, "external": [f"{name}={file.file}" for (name, _), file in external.items()]}


def _scoring_params(study: Study, dataset: str, parts: list[str]) -> dict[str, Any]:
    # These scores do not depend on the COMET model. Other contrastive scoring rules only matter in decoding.
    settings = study.config.evaluation.model_dump(
        mode="json", exclude={"comet": True, "external": True, "contrast": {"score", "context"}}
    )
    # Scores from different package versions do not belong in one table.
    packages = installed_packages(tuple(study.config.evaluation.metrics))
    references = study.config.datasets[dataset].references
    n_references = {name: len(files) for name, files in references.items() if f"test_{name}" in parts}
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
    rows = [study.config.systems[system] for system in systems]
    tests = study.config.datasets[dataset].test
    supplied = [row.hypotheses for row in rows if row.has_user_output]
    return [f"test_{test}" for test in tests if all(f"{dataset}/{test}" in files for files in supplied)]


def suites_by_kind(study: Study, dataset: str, *systems: str) -> tuple[list[str], list[str]]:
    """Return the contrastive and the generative test sets that all of these systems have output for."""
    row, rows = study.config.datasets[dataset], [study.config.systems[system] for system in systems]
    names: tuple[list[str], list[str]] = ([], [])
    for suite in row.suite_names():
        generative = is_generative(study.config, row.suite_reference(suite))
        supplied = [row.log_probabilities for row in rows if row.has_user_output]
        if all(not generative and f"{dataset}/{suite}" in files for files in supplied):
            names[generative].append(suite)
    return names


def tested_parts(study: Study, dataset: str, *systems: str) -> list[str]:
    """Return the tests of all of these systems: splits, `suite_{suite}` and `generated_{suite}`."""
    contrastive, generative = suites_by_kind(study, dataset, *systems)
    splits = test_splits(study, dataset, *systems)
    return [*splits, *(f"suite_{suite}" for suite in contrastive), *(f"generated_{suite}" for suite in generative)]


def run_output(study: Study, dataset: str, system: str, seed: str, part: str) -> Artifact:
    """Return a run's output for one of its `tested_parts`."""
    kind, _, suite = part.partition("_")
    if kind == "test":
        return hypotheses(study, dataset, system, seed, part)
    declare = probabilities if kind == "suite" else generated_documents
    return declare(study, dataset, system, seed, suite)


def run_scores(study: Study, run: Run) -> dict[str, Artifact]:
    """Return a run's scores by part. COMET and CXMI score names have a prefix."""
    wildcards = (run.dataset, run.system, str(run.seed))
    parts = tested_parts(study, run.dataset, run.system)
    by_part = {part: scores(study, *wildcards) for part in parts}
    if study.config.evaluation.comet is not None:
        splits = [part for part in parts if part.startswith("test_")]
        by_part |= {f"{COMET_PREFIX}{split}": comet(study, *wildcards, split) for split in splits}
    if CXMI in study.config.evaluation.metrics and has_cxmi(study.config, run.system):
        with_reference = [part for part in parts if not part.startswith("generated_")]
        by_part |= {f"{CXMI_PREFIX}{part}": cxmi(study, *wildcards, part) for part in with_reference}
    return by_part
