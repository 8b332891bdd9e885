"""The runs that a claim compares, and checks that they exist. Each error names its keys."""

from docmt.config.output_checks import check_output, check_trained
from docmt.config.references import is_generative
from docmt.config.schema import Config
from docmt.config.systems import Run, list_runs
from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACIES, COMET, CXMI, GENERATIVE, LOG_PROBABILITY, METRICS, OF_REFERENCES
from docmt.report.claims.claim import Claim
from docmt.settings import look_up

ALWAYS = [*ACCURACIES, *(name for name, metric in METRICS.items() if metric.always)]
"""Metrics that are computed without being named."""


def check_claims(config: Config) -> None:
    """Raises UserError when a claim names a system, dataset, test set or suite that the study does not have."""
    for name, claim in config.report.claims.items():
        _check_claim(config, claim, where=f"config.report.claims.{name}")


def claim_runs(config: Config, claim: Claim) -> list[Run]:
    """The runs that a claim is about: all seeds of its systems on the datasets that it names."""
    wanted = {(claim_dataset(config, claim, term.dataset), term.system) for term in claim.terms}
    return [run for run in list_runs(config) if (run.dataset, run.system) in wanted]


def claim_dataset(config: Config, claim: Claim, dataset: str | None) -> str | None:
    """The dataset that a claim's relation names, or else the claim, or else the only one of the study."""
    only = next(iter(config.datasets)) if len(config.datasets) == 1 else None
    return dataset or claim.dataset or only


def _check_claim(config: Config, claim: Claim, *, where: str) -> None:
    trained = {(run.dataset, run.system) for run in list_runs(config)}
    for term in claim.terms:
        system = look_up(config.systems, term.system, where=f"{where}.relations", what="system")
        dataset = claim_dataset(config, claim, term.dataset)
        if dataset is None:
            raise UserError(f"{where}: the study has several datasets; set dataset, or write {term.system}@DATASET")
        row = look_up(config.datasets, dataset, where=f"{where}.dataset", what="dataset")
        if (dataset, term.system) not in trained:
            raise UserError(f"{where}.relations: {term.system!r} is not trained on dataset {dataset!r}")
        if claim.is_of_history:
            check_trained(config, term.system, where=f"{where}.relations")
        if not claim.is_of_history and not system.scored:
            raise UserError(f"{where}.relations: {term.system!r} is not scored; leave it out")
        if claim.metric in ACCURACIES:
            wanted = claim.metric == GENERATIVE
            suites = [s for s in row.suite_names() if is_generative(config, row.suite_reference(s)) == wanted]
            look_up(dict.fromkeys(suites), claim.test, where=f"{where}.test", what="suite")
        elif not claim.is_of_history:
            look_up(row.test, claim.test, where=f"{where}.test", what="test set")
        if claim.metric in OF_REFERENCES and system.has_user_output:
            reason = f"has no model, its output is given, so it has no {claim.metric}"
            raise UserError(f"{where}.relations: {term.system!r} {reason}")
        test = f"{dataset}/{claim.test}"
        check_output(config, term.system, test, is_suite=claim.metric in ACCURACIES, where=f"{where}.relations")
    computed = [*config.evaluation.metrics, *ALWAYS, *([COMET] if config.evaluation.comet else [])]
    needed = CXMI if claim.metric == LOG_PROBABILITY else claim.metric  # they are measured together
    if not claim.is_of_history and needed not in computed:
        key = "comet" if needed == COMET else "metrics"
        raise UserError(f"{where}.metric: {claim.metric!r} is not computed; add {needed} to evaluation.{key}")
