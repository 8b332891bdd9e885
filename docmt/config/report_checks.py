"""Checks for systems, tests and metrics in section `report`. Errors name the keys."""

from docmt.config.paper_columns import paper_columns
from docmt.config.references import is_generative
from docmt.config.schema import Config
from docmt.config.systems import (
    Run,
    check_output,
    check_scored,
    check_trained,
    has_cxmi,
    list_runs,
    model_settings,
    run_names,
)
from docmt.errors import UserError
from docmt.evaluation.metrics import (
    ACCURACIES,
    COMET,
    CXMI,
    GENERATIVE,
    LOG_PROBABILITY,
    METRICS,
    OF_REFERENCES,
)
from docmt.report.claims.claim import Claim
from docmt.report.settings import CaseTable, CurveFigure, PaperTable, ScoreFigure, shows
from docmt.settings import look_up

ALWAYS = [*ACCURACIES, *(name for name, metric in METRICS.items() if metric.always)]
"""Metrics that are always computed."""
UNALIGNED = "its sentences are not aligned with the source; choose another system"


def check_report(config: Config) -> None:
    """Raise UserError when the report names a system, test or metric that the study does not have."""
    report = config.report
    if report.baseline is not None:
        check_scored(config, report.baseline, where="config.report.baseline")
    for key in ("labels", "short_labels", "published"):
        for system in getattr(report, key):
            look_up(config.systems, system, where=f"config.report.{key}", what="system")
    by_label: dict[str, str] = {}
    for system in config.systems:
        label = report.label(system)
        if label in by_label:
            raise UserError(f"config.report.labels: {by_label[label]!r} and {system!r} would both be called {label!r}")
        by_label[label] = system
    tests = dict.fromkeys(config.datasets)  # a dataset without a test means all its tests
    for dataset in config.datasets:
        tests |= dict.fromkeys(f"{dataset}/{test}" for test in _tests(config, dataset))
    for name in report.datasets:
        look_up(tests, name, where="config.report.datasets", what="dataset or test")
    for name, table in report.tables.items():
        where = f"config.report.tables.{name}"
        if table.baseline is not None:
            check_scored(config, table.baseline, where=f"{where}.baseline")
        for system in table.systems:
            check_scored(config, system, where=f"{where}.systems")
    for name, cases in report.cases.items():
        _check_cases(config, cases, where=f"config.report.cases.{name}")
    for name, figure in report.figures.items():
        _check_figure(config, figure, where=f"config.report.figures.{name}")
    for name, curves in report.curves.items():
        _check_curves(config, curves, where=f"config.report.curves.{name}")
    for name, claim in report.claims.items():
        _check_claim(config, claim, where=f"config.report.claims.{name}")
    _check_columns(config, tests)


def _check_curves(config: Config, curves: CurveFigure, *, where: str) -> None:
    for system in curves.systems:
        check_trained(config, system, where=f"{where}.systems")
    for dataset in curves.datasets or []:
        look_up(config.datasets, dataset, where=f"{where}.datasets", what="dataset")
    datasets = {run.dataset for run in list_runs(config) if run.system in curves.systems}
    if curves.datasets is not None:
        datasets &= {*curves.datasets}
    if not datasets:
        raise UserError(f"{where}.datasets: none of the systems is trained on these datasets; remove the key")


def _check_columns(config: Config, tests: dict[str, None]) -> None:
    """Raise UserError when a table or figure shows a test or metric that does not exist, or is not computed."""
    report = config.report
    layouts: dict[str, PaperTable | ScoreFigure] = {}
    for name, table in report.tables.items():
        layouts[f"tables.{name}"] = table
    for name, figure in report.figures.items():
        layouts[f"figures.{name}"] = figure
    for metric in report.metrics:
        where = "config.report.metrics"
        look_up(METRICS | config.evaluation.external, metric, where=where, what="metric")
        if metric in ACCURACIES:
            raise UserError(f"{where}: {metric!r} has a table of its own; remove it here")
        if "metrics" in report.model_fields_set:  # by default, metrics without scores are left out
            _check_computed(config, metric, where=where)
    for name, layout in layouts.items():
        for test in layout.tests or []:
            look_up(tests, test, where=f"config.report.{name}.tests", what="dataset or test")
        where = f"config.report.{name}"
        for metric in layout.metrics:
            look_up(METRICS | config.evaluation.external, metric, where=f"{where}.metrics", what="metric")
            _check_computed(config, metric, where=f"{where}.metrics")
        metrics: list[str] = []
        for run in list_runs(config):
            for test in _tests(config, run.dataset):
                if run.system in layout.systems and shows(layout, run.dataset, test):
                    metrics += [metric for metric in layout.metrics if _has_score(config, run, test, metric)]
        if not metrics:
            raise UserError(f"{where}: none of its systems has any of its metrics on any of its tests; change one key")


def _check_computed(config: Config, metric: str, *, where: str) -> None:
    """Raise UserError unless the study computes a metric."""
    needed = CXMI if metric == LOG_PROBABILITY else metric
    computed = [*config.evaluation.metrics, *config.evaluation.external, *ALWAYS]
    if config.evaluation.comet:
        computed.append(COMET)
    if needed not in computed:
        remedy = "set evaluation.comet" if needed == COMET else f"add {needed!r} to evaluation.metrics"
        raise UserError(f"{where}: {metric!r} is not computed; {remedy}, or remove it here")


def _tests(config: Config, dataset: str) -> list[str]:
    row = config.datasets[dataset]
    return [*row.test, *row.suite_names()]


def _has_score(config: Config, run: Run, test: str, metric: str) -> bool:
    """True if a run has a computed metric on a test set or suite."""
    system = config.systems[run.system]
    row = config.datasets[run.dataset]
    if metric in config.evaluation.external:
        names = config.evaluation.external[metric].get(f"{run.dataset}/{test}", {})
        return any(name in names for name in run_names(run))
    is_suite = metric in ACCURACIES or test not in row.test
    if is_suite:
        if test not in row.suite_names():
            return False
        is_right_kind = is_generative(config, row.suite_reference(test)) == (metric == GENERATIVE)
        if not is_right_kind or metric not in (*ACCURACIES, *OF_REFERENCES):
            return False
    if metric in OF_REFERENCES and not has_cxmi(config, run.system):
        return False
    if system.has_user_output:
        outputs = system.log_probabilities if is_suite else system.hypotheses
        return f"{run.dataset}/{test}" in outputs
    # Sentences of a free target stream have no counterparts in the reference.
    is_aligned = model_settings(config, run.system).target_stream == "aligned"
    return is_aligned or METRICS[metric].unit != "sentences"


def claim_runs(config: Config, claim: Claim) -> list[Run]:
    """Return the runs for a claim: all seeds for its systems on its datasets."""
    pairs = {(_claim_dataset(config, claim, term.dataset), term.system) for term in claim.terms}
    return [run for run in list_runs(config) if (run.dataset, run.system) in pairs]


def _claim_dataset(config: Config, claim: Claim, dataset: str | None) -> str | None:
    """Return a comparison's dataset. Defaults: the claim's dataset, then the study's only dataset."""
    dataset = dataset or claim.dataset
    if not dataset and len(config.datasets) == 1:
        return next(iter(config.datasets))
    return dataset or None


def _check_claim(config: Config, claim: Claim, *, where: str) -> None:
    for term in claim.terms:
        system = look_up(config.systems, term.system, where=f"{where}.comparisons", what="system")
        dataset = _claim_dataset(config, claim, term.dataset)
        if dataset is None:
            raise UserError(f"{where}: the study has several datasets; set dataset, or write {term.system}@DATASET")
        row = look_up(config.datasets, dataset, where=f"{where}.dataset", what="dataset")
        if not system.runs_on(dataset):
            raise UserError(f"{where}.comparisons: {term.system!r} is not trained on dataset {dataset!r}")
        if claim.is_of_history:
            check_trained(config, term.system, where=f"{where}.comparisons")
            continue
        check_scored(config, term.system, where=f"{where}.comparisons")
        if claim.metric in ACCURACIES:
            suites = {}
            for reference in row.suites:
                if is_generative(config, reference) == (claim.metric == GENERATIVE):
                    suites[reference.split("/")[1]] = reference
            look_up(suites, claim.test, where=f"{where}.test", what="suite")
        else:
            look_up(row.test, claim.test, where=f"{where}.test", what="test set")
        if claim.metric in OF_REFERENCES and not has_cxmi(config, term.system):
            reason = "is an external system without a model" if system.has_user_output else "joins sentences"
            raise UserError(f"{where}.comparisons: {term.system!r} {reason}, so it has no {claim.metric}")
        test = f"{dataset}/{claim.test}"
        check_output(config, term.system, test, is_suite=claim.metric in ACCURACIES, where=f"{where}.comparisons")
        if claim.test is not None and not _has_score(config, Run(dataset, term.system, 0), claim.test, claim.metric):
            raise UserError(f"{where}.comparisons: {term.system!r} has no {claim.metric}: {UNALIGNED}")
    if not claim.is_of_history:
        _check_computed(config, claim.metric, where=f"{where}.metric")


def _check_cases(config: Config, cases: CaseTable, *, where: str) -> None:
    dataset = look_up(config.test_sets(), cases.test, where=f"{where}.test", what="test set")
    if cases.system == cases.baseline:
        raise UserError(f"{where}: system and baseline are both {cases.system!r}: compare two systems")
    for key, system in (("system", cases.system), ("baseline", cases.baseline)):
        check_scored(config, system, where=f"{where}.{key}")
        if not config.systems[system].runs_on(dataset):
            raise UserError(f"{where}.{key}: {system!r} has no run on dataset {dataset!r}")
        check_output(config, system, cases.test, is_suite=False, where=f"{where}.{key}")
        if not _has_score(config, Run(dataset, system, 0), cases.test.split("/")[1], "chrF"):
            raise UserError(f"{where}.{key}: {system!r} has no translations by sentence: {UNALIGNED}")


def _check_figure(config: Config, figure: ScoreFigure, *, where: str) -> None:
    for system in figure.systems:
        check_scored(config, system, where=f"{where}.series")
    for system in figure.x_values:
        look_up(dict.fromkeys(figure.systems), system, where=f"{where}.x_values", what="system in `series`")
    for system in figure.systems:
        if system not in figure.x_values and figure.x not in paper_columns(config, system):
            fact = f"the configuration contains no {figure.x!r} for it" if figure.x else "`x` is null"
            raise UserError(f"{where}: {system!r} has no value for the horizontal axis: {fact}; add one to `x_values`")
