"""Scores of runs: translations, contrastive and generative test sets, paired tests."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from docmt.config.artifacts.base import Artifact, UserFile, made_by
from docmt.config.artifacts.runs import CXMI_PREFIX, NO_RULES, RunArtifacts, run_folder
from docmt.config.references import is_generative
from docmt.config.systems import Run
from docmt.evaluation.metrics import COMET, CXMI, TRAINING, find_metric, scoring_packages

COMET_PREFIX = "comet_"
"""File-name prefix of COMET's scores of a test split."""

PAIRED_TESTS = 2
"""Raise it when the code of the paired tests changes what they find."""


class ScoreArtifacts(RunArtifacts):
    """Scores."""

    @made_by("evaluate_translation", stage="evaluation")
    def scores(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """Scores of a run on a test split."""
        settings = self._translation_settings()
        hypotheses, references = self.hypotheses(dataset, system, seed, split), self.dataset_split(dataset, split)
        reads_training = any(TRAINING in find_metric(name).needs for name in self.config.evaluation.metrics)
        training = [self.dataset_split(dataset, "train")] if reads_training else []
        # A system that docmt trains depends on this text anyway; its fingerprint stays as it was.
        own_training = training if self.config.systems[system].has_user_output else []
        more = self._more_references(dataset, split)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/{split}.json"],
            [settings, hypotheses, references, *more, self._packages, *own_training],
            {
                "text": references,
                "references": more,
                "training": training,
                "hypotheses": hypotheses,
            },
            {
                "settings": settings,
                **self.scoring_options(dataset, split),
                "training": self.prefix(dataset, "train") if reads_training else None,
            },
        )

    @made_by("evaluate_comet", stage="evaluation")
    def comet(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """COMET of a run on a test split."""
        chosen = self.config.evaluation.comet
        context = chosen.context if chosen else 0
        hypotheses, references = self.hypotheses(dataset, system, seed, split), self.dataset_split(dataset, split)
        model = UserFile.at(chosen.model_file if chosen else "", where="config.evaluation.comet.checkpoint")
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/{COMET_PREFIX}{split}.json"],
            [COMET, context, model, hypotheses, references],
            {"text": references, "hypotheses": hypotheses, "model": model},
            {
                "settings": self.config.evaluation.model_dump(mode="json", include={"comet"}),
                **self.scoring_options(dataset, split),
            },
        )

    @made_by("evaluate_contrast", stage="evaluation")
    def suite_scores(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Accuracy of a run on a contrastive test set."""
        probabilities = self.probabilities(dataset, system, seed, suite)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/suite_{suite}.json"],
            [probabilities, *self._ties],
            {"suite": self.suite(dataset, suite), "log_probabilities": probabilities},
            {"ties": self.config.evaluation.contrast.ties},
        )

    @made_by("evaluate_generation", stage="evaluation")
    def generation_scores(self, dataset: str, system: str, seed: str, suite: str) -> Artifact:
        """Accuracy of a run on a generative test set."""
        generated = self.generated_documents(dataset, system, seed, suite)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/generated_{suite}.json"],
            [generated, self._packages],
            {"suite": self.suite(dataset, suite), "translations": generated},
            {"tgt_lang": self.config.datasets[dataset].tgt_lang},
        )

    @made_by("compare_translation", stage="evaluation")
    def differences(self, dataset: str, system: str, baseline: str, split: str) -> Artifact:
        """Paired tests of a system against a baseline on a test split, over all seeds."""
        settings = self._translation_settings()
        pair = [self._of_runs(self.hypotheses, dataset, name, split) for name in (system, baseline)]
        references, more = self.dataset_split(dataset, split), self._more_references(dataset, split)
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}/{split}.json"],
            [settings, *pair, references, *more, self._packages, PAIRED_TESTS],
            {"text": references, "references": more, "system": pair[0], "baseline": pair[1]},
            {
                "settings": settings,
                **self.scoring_options(dataset, split),
            },
        )

    @made_by("compare_contrast", stage="evaluation")
    def suite_differences(self, dataset: str, system: str, baseline: str, suite: str) -> Artifact:
        """Paired tests of a system against a baseline on a contrastive test set, over all seeds."""
        pair = [self._of_runs(self.probabilities, dataset, name, suite) for name in (system, baseline)]
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}/suite_{suite}.json"],
            [*pair, *self._ties, PAIRED_TESTS],
            {"suite": self.suite(dataset, suite), "system": pair[0], "baseline": pair[1]},
            {"ties": self.config.evaluation.contrast.ties},
        )

    @made_by("compare_generation", stage="evaluation")
    def generation_differences(self, dataset: str, system: str, baseline: str, suite: str) -> Artifact:
        """Paired tests of a system against a baseline on a generative test set, over all seeds."""
        pair = [self._of_runs(self.generated_documents, dataset, name, suite) for name in (system, baseline)]
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}/generated_{suite}.json"],
            [*pair, self._packages, PAIRED_TESTS],
            {"suite": self.suite(dataset, suite), "system": pair[0], "baseline": pair[1]},
            {"tgt_lang": self.config.datasets[dataset].tgt_lang},
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

    def test_splits(self, dataset: str, *systems: str) -> list[str]:
        """The test splits of a dataset that all of these systems translate or have user output for."""
        rows = [self.config.systems[system] for system in systems]
        tests = self.config.datasets[dataset].test
        supplied = [row.hypotheses for row in rows if row.has_user_output]
        return [f"test_{test}" for test in tests if all(f"{dataset}/{test}" in files for files in supplied)]

    def suites_by_kind(self, dataset: str, *systems: str) -> tuple[list[str], list[str]]:
        """The contrastive and the generative test sets of a dataset for which all of these systems have output."""
        row, rows = self.config.datasets[dataset], [self.config.systems[system] for system in systems]
        names: tuple[list[str], list[str]] = ([], [])
        for suite in row.suite_names():
            generative = is_generative(self.config, row.suite_reference(suite))
            supplied = [row.log_probabilities for row in rows if row.has_user_output]
            if all(not generative and f"{dataset}/{suite}" in files for files in supplied):
                names[generative].append(suite)
        return names

    def run_scores(self, run: Run) -> dict[str, Artifact]:
        """All scores of a run, by test split, `suite_{suite}` or `generated_{suite}`; others have a prefix."""
        place = (run.dataset, run.system, str(run.seed))
        splits = self.test_splits(run.dataset, run.system)
        contrastive, generative = self.suites_by_kind(run.dataset, run.system)
        found = {split: self.scores(*place, split) for split in splits}
        found |= {f"suite_{suite}": self.suite_scores(*place, suite) for suite in contrastive}
        with_context = list(found)
        found |= {f"generated_{suite}": self.generation_scores(*place, suite) for suite in generative}
        if self.config.evaluation.comet is not None:
            found |= {f"{COMET_PREFIX}{split}": self.comet(*place, split) for split in splits}
        if CXMI in self.config.evaluation.metrics and not self.config.systems[run.system].has_user_output:
            found |= {f"{CXMI_PREFIX}{part}": self.cxmi(*place, part) for part in with_context}
        return found

    def _of_runs(self, make: Callable[..., Artifact], dataset: str, system: str, part: str) -> list[Artifact]:
        return [make(dataset, system, str(run.seed), part) for run in self.runs_of(dataset, system)]

    def _more_references(self, dataset: str, split: str) -> list[UserFile]:
        test = split.removeprefix("test_")
        where = f"config.datasets.{dataset}.references.{test}"
        return [UserFile.at(file, where=where) for file in self.config.datasets[dataset].references.get(test, [])]

    def _translation_settings(self) -> dict[str, Any]:
        # Other ties or another COMET model leave the scores of translations as they are.
        return self.config.evaluation.model_dump(mode="json", exclude={"contrast", "comet"})

    @cached_property
    def _packages(self) -> dict[str, str]:
        # Scores of two versions of a package do not belong in one table.
        return scoring_packages(self.config.evaluation.metrics)

    @property
    def _ties(self) -> list[str]:
        # Nothing at the default, which came later than the first fingerprints.
        ties = self.config.evaluation.contrast.ties
        return [] if ties == NO_RULES.ties else ["--ties", ties]
