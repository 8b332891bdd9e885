"""Scores of runs: translations, contrastive and generative test sets, paired tests."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from docmt.commands import as_argument
from docmt.config.artifacts.base import Artifact, UserFile, artifact
from docmt.config.artifacts.runs import CXMI_PREFIX, NO_RULES, RunArtifacts, run_folder
from docmt.config.references import is_generative
from docmt.config.systems import Run
from docmt.evaluation.metrics import COMET, CXMI, TRAINING, find_metric, scoring_packages

COMET_PREFIX = "comet_"
"""File name prefix for COMET scores on a test split."""

COMET_RECORD = 2
"""Version of COMET's score files. Raise it if they record other facts."""
PAIRED_TESTS = 2
"""Version of the paired tests. Raise it if a code change affects their results."""


class ScoreArtifacts(RunArtifacts):
    """Scores."""

    @artifact("evaluate", stage="evaluation")
    def scores(self, dataset: str, system: str, seed: str) -> Artifact:
        """Scores of a run on all its test splits, contrastive and generative test sets."""
        parts = self.tested_parts(dataset, system)
        outputs = {part: [self.output(dataset, system, seed, part)] for part in parts}
        reads_training = any(TRAINING in find_metric(name).needs for name in self.config.evaluation.metrics)
        training = [self.dataset_split(dataset, "train")] if reads_training else []
        # A system that docmt trains depends on this text anyway.
        own_training = training if self.config.systems[system].has_user_output else []
        inputs, params = self._tests(dataset, outputs)
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores.json"],
            [params["settings"], *inputs.values(), self._packages, own_training],
            {**inputs, "training": training},
            {**params, "training": self.prefix(dataset, "train") if reads_training else None},
        )

    @artifact("evaluate_comet", stage="evaluation")
    def comet(self, dataset: str, system: str, seed: str, split: str) -> Artifact:
        """COMET scores of a run on a test split."""
        chosen = self.config.evaluation.comet
        context = chosen.context if chosen else 0
        hypotheses, references = self.hypotheses(dataset, system, seed, split), self.dataset_split(dataset, split)
        model = UserFile.at(chosen.model_file if chosen else "", where="config.evaluation.comet.checkpoint")
        return Artifact(
            [f"{run_folder(dataset, system, seed)}/scores/{COMET_PREFIX}{split}.json"],
            [COMET, COMET_RECORD, context, model, hypotheses, references],
            {"text": references, "hypotheses": hypotheses, "model": model},
            {
                "settings": self.config.evaluation.model_dump(mode="json", include={"comet"}),
                **self.scoring_options(dataset, split),
            },
        )

    @artifact("compare", stage="evaluation")
    def differences(self, dataset: str, system: str, baseline: str) -> Artifact:
        """Paired tests of a system against a baseline on all tests of both, over all seeds."""
        parts = self.tested_parts(dataset, system, baseline)
        ours, theirs = (
            {part: [self.output(*names, str(run.seed), part) for run in self.runs_of(*names)] for part in parts}
            for names in ((dataset, system), (dataset, baseline))
        )
        inputs, params = self._tests(dataset, ours, theirs)
        return Artifact(
            [f"results/{dataset}/runs/{system}/against/{baseline}.json"],
            [params["settings"], *inputs.values(), self._packages, PAIRED_TESTS],
            inputs,
            params,
        )

    def _tests(
        self,
        dataset: str,
        outputs: Mapping[str, Sequence[Artifact]],
        baseline: Mapping[str, Sequence[Artifact]] | None = None,
    ) -> tuple[dict[str, list[Artifact]], dict[str, Any]]:
        """Return inputs and parameters for commands that score outputs, by part."""
        texts: list[Artifact] = []
        tests: list[dict[str, Any]] = []
        for part, files in outputs.items():
            kind, _, name = part.partition("_")
            row: dict[str, Any] = {"test": name, "outputs": [made.file for made in files]}
            if kind == "test":
                references = self._more_references(dataset, name)
                texts += [self.dataset_split(dataset, part), *references]
                row |= {"prefix": self.prefix(dataset, part), "references": [own.file for own in references]}
            else:
                texts.append(self.suite(dataset, name))
                row["contrastive" if kind == "suite" else "generative"] = texts[-1].file
            if baseline is not None:
                row["baseline"] = [made.file for made in baseline[part]]
            tests.append(row)
        inputs = {"texts": texts, "outputs": [made for files in outputs.values() for made in files]}
        if baseline is not None:
            inputs["baseline"] = [made for files in baseline.values() for made in files]
        # These scores do not depend on the COMET model. Other contrastive scoring rules only matter in decoding.
        settings = self.config.evaluation.model_dump(
            mode="json", exclude={"comet": True, "contrast": {"score", "context"}}
        )
        return inputs, {"settings": settings, "tests": as_argument(tests), **self.language_pair(dataset)}

    def test_splits(self, dataset: str, *systems: str) -> list[str]:
        """Return the test splits that all of these systems have translations for."""
        rows = [self.config.systems[system] for system in systems]
        tests = self.config.datasets[dataset].test
        supplied = [row.hypotheses for row in rows if row.has_user_output]
        return [f"test_{test}" for test in tests if all(f"{dataset}/{test}" in files for files in supplied)]

    def suites_by_kind(self, dataset: str, *systems: str) -> tuple[list[str], list[str]]:
        """Return the contrastive and the generative test sets that all of these systems have output for."""
        row, rows = self.config.datasets[dataset], [self.config.systems[system] for system in systems]
        names: tuple[list[str], list[str]] = ([], [])
        for suite in row.suite_names():
            generative = is_generative(self.config, row.suite_reference(suite))
            supplied = [row.log_probabilities for row in rows if row.has_user_output]
            if all(not generative and f"{dataset}/{suite}" in files for files in supplied):
                names[generative].append(suite)
        return names

    def tested_parts(self, dataset: str, *systems: str) -> list[str]:
        """Tests on which all of these systems are scored: splits, `suite_{suite}` and `generated_{suite}`."""
        contrastive, generative = self.suites_by_kind(dataset, *systems)
        splits = self.test_splits(dataset, *systems)
        return [*splits, *(f"suite_{suite}" for suite in contrastive), *(f"generated_{suite}" for suite in generative)]

    def output(self, dataset: str, system: str, seed: str, part: str) -> Artifact:
        """A run's output for one of its `tested_parts`."""
        if part.startswith("test_"):
            return self.hypotheses(dataset, system, seed, part)
        kind, _, suite = part.partition("_")
        decoded = self.probabilities if kind == "suite" else self.generated_documents
        return decoded(dataset, system, seed, suite)

    def run_scores(self, run: Run) -> dict[str, Artifact]:
        """Return a run's scores by part. COMET and CXMI score names have a prefix."""
        place = (run.dataset, run.system, str(run.seed))
        parts = self.tested_parts(run.dataset, run.system)
        found = {part: self.scores(*place) for part in parts}
        splits = [part for part in parts if part.startswith("test_")]
        if self.config.evaluation.comet is not None:
            found |= {f"{COMET_PREFIX}{split}": self.comet(*place, split) for split in splits}
        if CXMI in self.config.evaluation.metrics and not self.config.systems[run.system].has_user_output:
            with_reference = [part for part in parts if not part.startswith("generated_")]
            found |= {f"{CXMI_PREFIX}{part}": self.cxmi(*place, part) for part in with_reference}
        return found

    def _more_references(self, dataset: str, test: str) -> list[UserFile]:
        where = f"config.datasets.{dataset}.references.{test}"
        return [UserFile.at(file, where=where) for file in self.config.datasets[dataset].references.get(test, [])]

    @cached_property
    def _packages(self) -> dict[str, str]:
        # Scores from different package versions do not belong in one table.
        return scoring_packages(self.config.evaluation.metrics)

    @property
    def _ties_option(self) -> list[str]:
        # The default is left out, because the key was added after the first fingerprints.
        ties = self.config.evaluation.contrast.ties
        return [] if ties == NO_RULES.ties else ["--ties", ties]
