"""Artifacts of the report stage."""

import json
from collections.abc import Iterable
from typing import Any

from docmt.config.artifacts.base import RULES, Artifact, Study, artifact, without_duplicates
from docmt.config.artifacts.corpora import dataset_split, dataset_suite, language_pair, overlap, text_counts
from docmt.config.artifacts.discourse import document_trees, parser_evaluation, segmenter_evaluation, tree_statistics
from docmt.config.artifacts.runs import hypotheses, instance_statistics, model, runs_of, scored_runs, trained_runs
from docmt.config.artifacts.scores import (
    differences,
    run_output,
    run_scores,
    suites_by_kind,
    test_splits,
    tested_parts,
)
from docmt.config.artifacts.text import roundtrip
from docmt.config.paper_columns import paper_columns
from docmt.config.references import suite_choices
from docmt.config.report_checks import claim_runs
from docmt.config.systems import Run, dataset_instances, is_generated, list_runs, model_settings, training_chain
from docmt.evaluation.metrics import ACCURACY, COMET, GENERATIVE, OF_REFERENCES
from docmt.report.settings import PaperTable, ScoreFigure, shows

PARTS = {ACCURACY: "suite", GENERATIVE: "generated", **dict.fromkeys(OF_REFERENCES, "cxmi"), COMET: "comet"}
"""Score file name prefixes by metric. Other metrics are in files that begin with `test`."""


@artifact("report_collect", stage="report")
def scores_table(study: Study, scope: str) -> Artifact:
    """Table of all scores of the study (`report`), of a `{dataset}`, or of `{dataset}/runs/{system}`."""
    scores: list[Artifact] = []
    for run in scored_runs(study):
        if scope in ("report", run.dataset, f"{run.dataset}/runs/{run.system}"):
            scores += run_scores(study, run).values()
    return Artifact([f"results/{scope}/scores.csv"], {"scores": without_duplicates(scores)}, reads_paths=True)


@artifact("report_table", stage="report")
def table(study: Study, table: str) -> Artifact:
    """One table of `report.tables`. Requires only the scores of its systems."""
    row = study.config.report.tables[table]
    return Artifact(
        [f"results/tables/{table}.{suffix}" for suffix in ("txt", "md", "csv", "tex")],
        {
            "scores": _shown_scores(study, row),
            "differences": _tested_differences(study, row.baseline or study.config.report.baseline, row),
        },
        _report_params(study),
        reads_paths=True,
    )


@artifact("report_cases", stage="report")
def case_study(study: Study, cases: str) -> Artifact:
    """One case study of `report.cases`, from the translations of its two systems."""
    row = study.config.report.cases[cases]
    dataset, test = row.test.split("/")

    def translations(name: str) -> Artifact:
        first = runs_of(study, dataset, name)[0]
        return hypotheses(study, dataset, name, str(first.seed), f"test_{test}")

    return Artifact(
        [f"results/tables/{cases}.{suffix}" for suffix in ("txt", "md", "csv", "tex")],
        {
            "texts": dataset_split(study, dataset, f"test_{test}"),
            "system": translations(row.system),
            "baseline": translations(row.baseline),
        },
        {
            "settings": {"cases": {cases: row}, "labels": study.config.report.labels},
            **language_pair(study, dataset),
        },
    )


@artifact("report_figure", stage="report")
def figure(study: Study, figure: str) -> Artifact:
    """One figure of `report.figures` or `report.curves`. Requires only the scores or histories of its systems."""
    files = [f"results/figures/{figure}.{suffix}" for suffix in ("svg", "png", "pdf", "csv")]
    inputs: dict[str, list[Artifact]] = {"scores": [], "histories": []}
    if figure in study.config.report.figures:
        inputs["scores"] = _shown_scores(study, study.config.report.figures[figure])
    else:
        curves = study.config.report.curves[figure]
        runs = []
        for run in trained_runs(study):
            if run.system in curves.systems and (curves.datasets is None or run.dataset in curves.datasets):
                runs.append(run)
        inputs["histories"] = _histories(study, runs)
    return Artifact(files, inputs, _report_params(study), reads_paths=True)


@artifact("report_claims", stage="report")
def judged_claims(study: Study, claims: str) -> Artifact:
    """All claims of `report.claims` (`claims`), or one claim (`claims/{claim}`). Requires only its systems."""
    rows = study.config.report.claims
    name = claims.removeprefix("claims").removeprefix("/")
    selected = list(rows.values())
    if name:
        selected = [rows[name]]
    controls = [rows[claim.control] for claim in selected if claim.control]
    scores: list[Artifact] = []
    trainings: dict[Run, None] = {}
    for claim in [*selected, *controls]:
        for run in claim_runs(study.config, claim):
            if claim.is_of_history:
                trainings[run] = None
                continue
            part = f"{PARTS.get(claim.metric, 'test')}_{claim.test}"
            if claim.metric in (*OF_REFERENCES, COMET):
                part = f"{PARTS[claim.metric]}_test_{claim.test}"
            scores.append(run_scores(study, run)[part])
    return Artifact(
        [f"results/{claims}.{suffix}" for suffix in ("txt", "md", "csv")],
        {"scores": without_duplicates(scores), "histories": _histories(study, trainings)},
        {"settings": study.config.report.model_dump(mode="json", include={"claims", "labels"}), "name": name},
        reads_paths=True,
    )


@artifact("report_render", stage="report")
def report(study: Study) -> Artifact:
    """Tables, figures and the report page."""
    config = study.config
    tested = _tested_differences(study, config.report.baseline)
    for row in config.report.tables.values():
        tested += _tested_differences(study, row.baseline, row)
    statistics = []
    relations = []
    segmenters: dict[str, Artifact] = {}
    parsers: dict[str, Artifact] = {}
    for dataset, trees in used_trees(study):
        counts = tree_statistics(study, dataset, trees)
        statistics.append(counts.select("/statistics.csv"))
        relations.append(counts.select("/relations.csv"))
        row = config.discourse.trees[trees]
        if row.segmenter:
            segmenters[row.segmenter] = segmenter_evaluation(study, row.segmenter)
        if row.parser in config.discourse.parsers:
            parsers[row.parser] = parser_evaluation(study, row.parser)
    generated = [name for name in config.datasets if is_generated(config, name)]
    instance_counts = []
    choices: dict[str, dict[str, str]] = {}
    for name, row in config.datasets.items():
        # Instances are built only where systems are trained, not for datasets whose translations the user supplies.
        if dataset_instances(config, name):
            instance_counts.append(instance_statistics(study, name))
        for suite in row.suite_names():
            choices[f"{name}/{suite}"] = suite_choices(config, row.suite_reference(suite))
    inputs = {
        "scores": scores_table(study, "report"),
        "histories": _histories(study, trained_runs(study)),
        "statistics": instance_counts,
        "overlaps": [overlap(study, name) for name in config.datasets],
        "counts": text_counts(study),
        "roundtrips": [roundtrip(study, name) for name in config.datasets],
        "tree_statistics": statistics,
        "tree_relations": relations,
        "segmenters": list(segmenters.values()),
        "parsers": list(parsers.values()),
        "differences": without_duplicates(tested),
        "cases": [case_study(study, name).select(".csv") for name in config.report.cases],
    }
    origins: dict[str, list[str]] = {}
    extended = []
    for system in dict.fromkeys(run.system for run in scored_runs(study)):
        chain = training_chain(config, system)
        origins[system] = chain
        if len(chain) > 1 and model_settings(config, chain[0]) != model_settings(config, chain[1]):
            extended.append(system)
    params = _report_params(
        study,
        systems=_colored_systems(study),
        origins=origins,
        extended=extended,
        generated=generated,
        choices=choices,
        stages=RULES,
    )
    files = ["results/report/report.html", "results/report/summary.txt"]
    folders = ["results/report/tables", "results/report/figures"]
    return Artifact([*files, *folders], inputs, params, reads_paths=True)


@artifact("report_reader", stage="report")
def reader(study: Study) -> Artifact:
    """Reader page with the translations and suite items of all scored runs."""
    config = study.config
    inputs: dict[str, list[Artifact]] = {"outputs": [], "texts": [], "suites": [], "generative": [], "trees": []}
    names: dict[str, list[str]] = {"suites": [], "generative": [], "trees": []}
    options: dict[str, list[str]] = {"suites": [], "generative": [], "trees": []}

    def add(kind: str, name: str, source: Artifact) -> None:
        inputs[kind].append(source)
        names[kind].append(name)
        options[kind] += [f"{name}={file}" for file in source.files]

    languages: dict[str, tuple[str, str]] = {}
    for dataset in dict.fromkeys(run.dataset for run in scored_runs(study)):
        languages[dataset] = config.datasets[dataset].languages
        for split in test_splits(study, dataset):
            inputs["texts"].append(dataset_split(study, dataset, split))
            for tree_dataset, trees in used_trees(study):
                if tree_dataset == dataset:
                    name = f"{dataset}/{split.removeprefix('test_')}/{trees}"
                    add("trees", name, document_trees(study, dataset, trees, split))
        contrastive, generative = suites_by_kind(study, dataset)
        for kind, suites in (("suites", contrastive), ("generative", generative)):
            for suite in suites:
                add(kind, f"{dataset}/{suite}", dataset_suite(study, dataset, suite))
        for system in dict.fromkeys(run.system for run in scored_runs(study) if run.dataset == dataset):
            for run in runs_of(study, dataset, system)[: config.report.reader.seeds]:
                for part in tested_parts(study, dataset, system):
                    inputs["outputs"].append(run_output(study, dataset, system, str(run.seed), part))
    facts = {"systems": [*config.report.legend, *_colored_systems(study)], "languages": languages}
    facts["ties"] = config.evaluation.contrast.ties
    settings = config.report.model_dump(mode="json", include={"title", "labels", "reader", "baseline"})
    return Artifact(
        ["results/report/reader.html"],
        inputs,
        {"settings": settings, "study": json.dumps(facts, ensure_ascii=False), "names": names},
        options,
        reads_paths=True,
    )


def used_trees(study: Study) -> list[tuple[str, str]]:
    """Return datasets with the trees that their systems read."""
    pairs = {}
    for run in list_runs(study.config):
        row = study.config.systems[run.system]
        if row.has_user_output:
            continue
        trees = study.config.instances[row.instances].trees
        if trees is not None:
            pairs[run.dataset, trees] = None
    return list(pairs)


def _histories(study: Study, runs: Iterable[Run]) -> list[Artifact]:
    return [model(study, run.dataset, run.system, str(run.seed)).select("history.csv") for run in runs]


def _colored_systems(study: Study) -> list[str]:
    # Scored systems first, so that a pre-training without scores does not shift the colors of all tables.
    return list(dict.fromkeys(run.system for run in [*scored_runs(study), *trained_runs(study)]))


def _shown_scores(study: Study, layout: PaperTable | ScoreFigure) -> list[Artifact]:
    scores = []
    for run in scored_runs(study):
        for part, score in run_scores(study, run).items():
            if _is_shown(layout, run, part):
                scores.append(score)
    return without_duplicates(scores)


def _tested_differences(study: Study, baseline: str | None, table: PaperTable | None = None) -> list[Artifact]:
    """Return paired tests against a baseline for all systems, or for the systems in a table."""
    if baseline is None:
        return []
    pairs = dict.fromkeys((run.dataset, run.system) for run in scored_runs(study))
    artifacts = []
    for dataset, system in pairs:
        if system == baseline or (dataset, baseline) not in pairs:
            continue
        parts = tested_parts(study, dataset, system, baseline)
        if table is not None:
            parts = [part for part in parts if _is_shown(table, Run(dataset, system, 0), part)]
        if parts:
            artifacts.append(differences(study, dataset, system, baseline))
    return artifacts


def _report_params(study: Study, **facts: Any) -> dict[str, Any]:
    """Return the report settings, and facts on systems for tables."""
    report = study.config.report
    systems: dict[str, None] = {}
    for layout in (*report.tables.values(), *report.figures.values()):
        systems |= dict.fromkeys(layout.systems)
    facts["paper_columns"] = {name: paper_columns(study.config, name) for name in systems}
    settings = report.model_dump(mode="json", exclude={"reader"})
    if "metrics" not in report.model_fields_set:
        settings["metrics"] += study.config.evaluation.external
    return {
        "settings": settings,
        # Unsorted, because the report shows stages and systems in this order.
        "study": json.dumps(facts, ensure_ascii=False),
    }


def _is_shown(table: PaperTable | ScoreFigure, run: Run, name: str) -> bool:
    kind, _, test = name.partition("_")
    if kind in ("cxmi", PARTS[COMET]):
        test = test.partition("_")[2]
    kinds = {PARTS.get(metric, "test") for metric in table.metrics}
    return run.system in table.systems and kind in kinds and shows(table, run.dataset, test)
