"""Artifacts of the report stage, and the artifacts of a study as a whole."""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from docmt.commands import as_argument
from docmt.config.artifacts.base import STAGE_VERSIONS, Artifact, UserFile, ancestors, artifact, once, rules_by_stage
from docmt.config.artifacts.runs import run_folder
from docmt.config.artifacts.scores import ScoreArtifacts
from docmt.config.paper_columns import paper_columns
from docmt.config.references import suite_choices
from docmt.config.report_checks import claim_runs
from docmt.config.systems import Run, dataset_instances, is_generated, list_runs, model_settings, training_chain
from docmt.evaluation.metrics import ACCURACY, COMET, GENERATIVE, OF_REFERENCES
from docmt.report.settings import PaperTable, ScoreFigure, shows

PARTS = {ACCURACY: "suite", GENERATIVE: "generated", **dict.fromkeys(OF_REFERENCES, "cxmi"), COMET: "comet"}
"""Score file name prefixes by metric. Other metrics are in files that begin with `test`."""


class StudyArtifacts(ScoreArtifacts):
    """All artifacts of a study, up to the report."""

    @artifact("gather", stage="report")
    def scores_table(self, scope: str) -> Artifact:
        """Table of all scores of the study (`report`), of a `{dataset}`, or of `{dataset}/runs/{system}`."""
        runs = [run for run in self.scored if scope in ("report", run.dataset, f"{run.dataset}/runs/{run.system}")]
        scores = once(made for run in runs for made in self.run_scores(run).values())
        return Artifact([f"results/{scope}/scores.csv"], [scores], {"scores": scores})

    @artifact("study_table", stage="report")
    def table(self, table: str) -> Artifact:
        """One table of `report.tables`. Requires only the scores of its systems."""
        row = self.config.report.tables[table]
        scores = self._shown_scores(row)
        differences = self._differences(row.baseline or self.config.report.baseline, row)
        files = [f"results/tables/{table}.{suffix}" for suffix in ("txt", "md", "csv", "tex")]
        inputs = {"scores": scores, "differences": differences}
        hashed = self._report_params()
        return Artifact(files, [scores, *differences, *_as_text(hashed)], inputs, hashed)

    @artifact("study_cases", stage="report")
    def case_study(self, cases: str) -> Artifact:
        """One case study of `report.cases`, from the translations of its two systems."""
        row = self.config.report.cases[cases]
        dataset, test = row.test.split("/")
        split = f"test_{test}"
        system, baseline = (
            self.hypotheses(dataset, name, str(self.runs_of(dataset, name)[0].seed), split)
            for name in (row.system, row.baseline)
        )
        references = self.dataset_split(dataset, split)
        return Artifact(
            [f"results/tables/{cases}.{suffix}" for suffix in ("txt", "md", "csv", "tex")],
            [row, self.config.report.labels, system, baseline, references],
            {"text": references, "system": system, "baseline": baseline},
            {
                "settings": self.config.report.model_dump(mode="json", include={"cases", "labels"}),
                **self.scoring_options(dataset, split),
            },
        )

    @artifact("study_figure", stage="report")
    def figure(self, figure: str) -> Artifact:
        """One figure of `report.figures` or `report.curves`. Requires only the scores or histories of its systems."""
        files = [f"results/figures/{figure}.{suffix}" for suffix in ("svg", "png", "csv")]
        if (row := self.config.report.figures.get(figure)) is not None:
            read: list[Artifact] = self._shown_scores(row)
            inputs, hashed = {"scores": read, "histories": []}, self._figure_params()
        else:
            curves = self.config.report.curves[figure]
            runs = [
                run
                for run in self.trained
                if run.system in curves.systems and (curves.datasets is None or run.dataset in curves.datasets)
            ]
            read = [self.model(run.dataset, run.system, str(run.seed)).select_suffix("history.csv") for run in runs]
            inputs, hashed = {"scores": [], "histories": read}, self._figure_params(seeds_by_system(runs))
        return Artifact(files, [read, *_as_text(hashed)], inputs, hashed)

    @artifact("judge_claims", stage="report")
    def judged_claims(self, claims: str = "claims") -> Artifact:
        """All claims of `report.claims` (`claims`), or one claim (`claims/{claim}`). Requires only its systems."""
        rows, name = self.config.report.claims, claims.removeprefix("claims").removeprefix("/")
        scores, histories = {}, {}
        chosen = [rows[name]] if name else list(rows.values())
        for claim in [*chosen, *(rows[claim.control] for claim in chosen if claim.control)]:
            for run in claim_runs(self.config, claim):
                if claim.is_of_history:
                    histories[run] = self.model(run.dataset, run.system, str(run.seed)).select_suffix("history.csv")
                else:
                    part = f"{PARTS.get(claim.metric, 'test')}_{claim.test}"
                    if claim.metric in (*OF_REFERENCES, COMET):
                        part = f"{PARTS[claim.metric]}_test_{claim.test}"
                    scores[run, part] = self.run_scores(run)[part]
        inputs = {"scores": once(scores.values()), "histories": list(histories.values())}
        hashed = {
            "settings": self.config.report.model_dump(mode="json", include={"claims", "labels"}),
            "manifest": {"runs": seeds_by_system(histories)},
        }
        files = [f"results/{claims}.{suffix}" for suffix in ("txt", "md", "csv")]
        return Artifact(files, [*inputs.values(), *_as_text(hashed)], inputs, {**hashed, "name": name})

    @artifact("render", stage="report")
    def report(self) -> Artifact:
        """Tables, figures and the report page."""
        scores, counts = self.scores_table("report"), self.counts()
        differences = {made.file: made for made in self._differences(self.config.report.baseline)}
        for table in self.config.report.tables.values():
            differences |= {made.file: made for made in self._differences(table.baseline, table)}
        cases = {name: self.case_study(name).select_suffix(".csv") for name in self.config.report.cases}
        makers = {"statistics": self.instance_statistics, "overlaps": self.overlap, "roundtrips": self.roundtrip}
        data = {name: {dataset: make(dataset) for dataset in self.config.datasets} for name, make in makers.items()}
        # Instances are built only where systems are trained, not for datasets whose translations the user supplies.
        cut = [dataset for dataset in self.config.datasets if dataset_instances(self.config, dataset)]
        data["statistics"] = {dataset: data["statistics"][dataset] for dataset in cut}
        trees = self._tree_reports()
        origins = {run.system: training_chain(self.config, run.system) for run in self.scored}
        manifest = {
            "runs": seeds_by_system(self.trained),
            "counts": counts,
            "systems": self._colored_systems(),
            "origins": origins,
            "extended": [
                system
                for system, (owner, *inits) in origins.items()
                if inits and model_settings(self.config, owner) != model_settings(self.config, inits[0])
            ],
            "generated": [name for name in self.config.datasets if is_generated(self.config, name)],
            "choices": {
                f"{name}/{suite}": suite_choices(self.config, row.suite_reference(suite))
                for name, row in self.config.datasets.items()
                for suite in row.suite_names()
            },
            "reader": "reader.html",
            "differences": list(differences),
            "cases": {name: made.file for name, made in cases.items()},
            "stages": STAGES,
            "benchmarks": "results/benchmarks",
        }
        manifest |= {name: {key: made.file for key, made in group.items()} for name, group in (data | trees).items()}
        inputs = {
            "scores": scores,
            "histories": [f"{run_folder(run.dataset, run.system, run.seed)}/history.csv" for run in self.trained],
            "counts": list(counts.values()),
            **{name: list(group.values()) for name, group in data.items()},
            "trees": [made for group in trees.values() for made in group.values()],
            "differences": list(differences.values()),
            "cases": list(cases.values()),
        }
        parts = [scores, *inputs["differences"], *inputs["cases"], *(inputs[name] for name in (*data, "trees"))]
        # Other systems' histories are already inputs to their scores.
        parts += [
            self.model(run.dataset, run.system, str(run.seed))
            for run in self.trained
            if not self.config.systems[run.system].evaluate
        ]
        parts += _as_text(self._report_params())
        params = {
            **self._report_params(),
            "manifest": json.dumps(manifest, ensure_ascii=False),  # its order is that of the report
        }
        return Artifact(["results/report/report.html"], parts, inputs, params)

    @artifact("render_reader", stage="report")
    def reader(self) -> Artifact:
        """Reader page with the translations and suite items of all scored runs."""
        shown = seeds_by_system(self.scored)
        for systems in shown.values():
            for system, seeds in systems.items():
                systems[system] = seeds[: self.config.report.reader.seeds]
        legend = [*self.config.report.legend, *self._colored_systems()]
        manifest: dict[str, Any] = {"runs": shown, "legend": legend}
        manifest |= {"languages": {}, "tests": {}, "suites": {}, "trees": {}}
        parts: list[Artifact] = []
        for dataset, systems in shown.items():
            row = self.config.datasets[dataset]
            splits = self.test_splits(dataset)
            runs = [(dataset, system, str(seed)) for system, seeds in systems.items() for seed in seeds]
            suites, generative = (
                {suite: self.suite(dataset, suite) for suite in names} for names in self.suites_by_kind(dataset)
            )
            for system in systems:
                if self.config.systems[system].has_user_output:
                    scored = [f"suite_{suite}" for suite in self.suites_by_kind(dataset, system)[0]]
                    outputs = [*self.test_splits(dataset, system), *scored]
                    manifest.setdefault("given", {}).setdefault(dataset, {})[system] = outputs
            trees = {
                split: {name: self.trees(dataset, name, split) for of, name in self.used_trees if of == dataset}
                for split in splits
            }
            manifest["languages"][dataset] = list(row.languages)
            manifest["tests"][dataset] = {split.removeprefix("test_"): self.prefix(dataset, split) for split in splits}
            manifest["suites"][dataset] = {suite: made.file for suite, made in suites.items()}
            if generative:
                manifest.setdefault("generative", {})[dataset] = {name: made.file for name, made in generative.items()}
            manifest["trees"][dataset] = {
                split.removeprefix("test_"): {name: list(made.files) for name, made in named.items()}
                for split, named in trees.items()
            }
            parts += [self.dataset_split(dataset, split) for split in splits]
            parts += [self.hypotheses(*run, split) for run in runs for split in self.test_splits(*run[:2])]
            parts += [*suites.values(), *generative.values()]
            kinds = {run: self.suites_by_kind(*run[:2]) for run in runs}
            parts += [self.probabilities(*run, suite) for run, (names, _) in kinds.items() for suite in names]
            parts += [self.generated_documents(*run, suite) for run, (_, names) in kinds.items() for suite in names]
            parts += [made for named in trees.values() for made in named.values()]
        if self._ties_option:
            manifest["ties"] = self.config.evaluation.contrast.ties
        report = self.config.report
        settings = report.model_dump(mode="json", include={"title", "labels", "reader", "baseline"})
        params = {"settings": settings, "manifest": json.dumps(manifest, ensure_ascii=False)}
        hashed = [parts, as_argument(settings), params["manifest"]]
        return Artifact(["results/report/reader.html"], hashed, {"shown": parts}, params)

    def _colored_systems(self) -> list[str]:
        # Scored systems first, so that a pre-training without scores does not shift the colors of all tables.
        return list(dict.fromkeys(run.system for run in [*self.scored, *self.trained]))

    def _shown_scores(self, layout: PaperTable | ScoreFigure) -> list[Artifact]:
        return once(
            made for run in self.scored for name, made in self.run_scores(run).items() if _is_shown(layout, run, name)
        )

    def _differences(self, baseline: str | None, table: PaperTable | None = None) -> list[Artifact]:
        """Return paired tests against a baseline for all systems, or for the systems in a table."""
        if baseline is None:
            return []
        pairs = dict.fromkeys((run.dataset, run.system) for run in self.scored)
        return [
            self.differences(dataset, system, baseline)
            for dataset, system in pairs
            if system != baseline
            and (dataset, baseline) in pairs
            and any(
                table is None or _is_shown(table, Run(dataset, system, 0), part)
                for part in self.tested_parts(dataset, system, baseline)
            )
        ]

    def _tree_reports(self) -> dict[str, dict[str, Artifact]]:
        """Return files on trees, segmenters and parsers, by their names in the report's manifest."""
        discourse, used = self.config.discourse, self.used_trees
        rows = [discourse.trees[trees] for _, trees in used]
        counts = {f"{dataset}/{trees}": self.tree_statistics(dataset, trees) for dataset, trees in used}
        return {
            "tree_statistics": {name: made.select_suffix("/statistics.csv") for name, made in counts.items()},
            "tree_relations": {name: made.select_suffix("/relations.csv") for name, made in counts.items()},
            "segmenters": {row.segmenter: self.segmenter_evaluation(row.segmenter) for row in rows if row.segmenter},
            "parsers": {
                row.parser: self.parser_evaluation(row.parser)
                for row in rows
                if row.parser and row.parser in discourse.parsers
            },
        }

    @cached_property
    def final_outputs(self) -> list[Artifact]:
        """Final results of a study: report, reader and models. All other artifacts are their inputs."""
        # Models that are trained but never scored are not inputs to other final outputs.
        models = [self.model(run.dataset, run.system, str(run.seed)).select_suffix("model.pt") for run in self.trained]
        return [self.report(), self.reader(), *models]

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """Output files by stage that later stages or the user need."""
        files: dict[str, dict[str, None]] = {stage: {} for stage in STAGE_VERSIONS}
        read = [(source, reader.stage) for reader in ancestors(self.final_outputs) for source in reader.sources()]
        for made, stage in [*((final, None) for final in self.final_outputs), *read]:
            if isinstance(made, Artifact) and made.is_kept and made.stage != stage:
                files[made.stage] |= dict.fromkeys(made.files)
        return {stage: list(paths) for stage, paths in files.items()}

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """All study artifacts, without duplicates."""
        models = [self.model(run.dataset, run.system, str(run.seed)) for run in self.trained]
        report = self.config.report
        laid_out = [self.table(name) for name in report.tables]
        laid_out += [self.case_study(name) for name in report.cases]
        laid_out += [self.figure(name) for name in report.drawn]
        laid_out += [self.judged_claims(claims) for claims in ("claims", *(f"claims/{name}" for name in report.claims))]
        scopes = [scope for run in self.scored for scope in (run.dataset, f"{run.dataset}/runs/{run.system}")]
        more = [self.scores_table(scope) for scope in dict.fromkeys(scopes)]
        return list(ancestors([self.report(), self.reader(), *models, *laid_out, *more]))

    def user_files(self) -> list[UserFile]:
        """Return the study's user-supplied files."""
        return [artifact for artifact in self.artifacts if isinstance(artifact, UserFile)]

    @cached_property
    def used_trees(self) -> list[tuple[str, str]]:
        """Datasets with the trees that their systems read."""
        pairs = {}
        for run in list_runs(self.config):
            row = self.config.systems[run.system]
            if not row.has_user_output and (trees := self.config.instances[row.instances].trees):
                pairs[run.dataset, trees] = None
        return list(pairs)

    def _report_params(self) -> dict[str, Any]:
        """Return the report settings, and system properties for tables."""
        report = self.config.report
        layouts = [*report.tables.values(), *report.figures.values()]
        systems = dict.fromkeys(name for layout in layouts for name in layout.systems)
        return {
            "settings": report.model_dump(mode="json", exclude={"reader"}),
            "paper_columns": {name: paper_columns(self.config, name) for name in systems},
        }

    def _figure_params(self, runs: Mapping[str, Mapping[str, list[int]]] | None = None) -> dict[str, Any]:
        return {**self._report_params(), "manifest": {"runs": runs or {}}}


def seeds_by_system(runs: Iterable[Run]) -> dict[str, dict[str, list[int]]]:
    """Return seeds by dataset and system, as in a report manifest."""
    seeds: dict[str, dict[str, list[int]]] = {}
    for run in runs:
        seeds.setdefault(run.dataset, {}).setdefault(run.system, []).append(run.seed)
    return seeds


def _as_text(params: Mapping[str, Any]) -> list[str]:
    """Return parameters as text for fingerprints."""
    return [as_argument(value) for value in params.values()]


def _is_shown(table: PaperTable | ScoreFigure, run: Run, name: str) -> bool:
    kind, _, test = name.partition("_")
    test = test.partition("_")[2] if kind in ("cxmi", PARTS[COMET]) else test
    metrics = {metric for metric, part in PARTS.items() if part == kind}
    wanted = metrics & {*table.metrics} if metrics else not {*table.metrics} <= PARTS.keys()
    return run.system in table.systems and bool(wanted) and shows(table, run.dataset, test)


STAGES = rules_by_stage(StudyArtifacts)
"""Rules by stage, in workflow order."""
