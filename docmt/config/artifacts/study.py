"""The artifacts of a study as a whole."""

import os
from collections.abc import Container
from pathlib import Path

from docmt.config.artifacts.base import RULES, STAGE_VERSIONS, Artifact, Study, UserFile, ancestors
from docmt.config.artifacts.corpora import generated
from docmt.config.artifacts.report import case_study, figure, judged_claims, reader, report, scores_table, table
from docmt.config.artifacts.runs import model, scored_runs, trained_runs
from docmt.config.references import CONTROLLED_LANGUAGES
from docmt.errors import UserError
from docmt.paths import CORPUS

STAGES = RULES
"""Rules by stage, in workflow order. They are complete, because this module imports all stages."""
OUTPUT_FOLDERS = ("results", "resources")
"""Folders with outputs in a study folder, each of which can be a link."""


def final_outputs(study: Study) -> list[Artifact]:
    """Return the final results of a study: report, reader and models. All other artifacts are their inputs."""
    # Models that are trained but never scored are not inputs to other final outputs.
    runs = trained_runs(study)
    models = [model(study, run.dataset, run.system, str(run.seed)).select("model.pt") for run in runs]
    return [report(study), reader(study), *models]


def targets(final_outputs: list[Artifact]) -> dict[str, list[str]]:
    """Return output files by stage that later stages or the user need."""
    files: dict[str, dict[str, None]] = {stage: {} for stage in STAGE_VERSIONS}
    for output in final_outputs:
        files[output.stage] |= dict.fromkeys(output.files)
    for artifact in ancestors(final_outputs):
        for source in artifact.sources():
            if source.is_kept and source.stage != artifact.stage:
                files[source.stage] |= dict.fromkeys(source.files)
    return {stage: list(paths) for stage, paths in files.items()}


def planned_artifacts(study: Study, planned: Container[str] | None) -> list[Artifact]:
    """Return the artifacts of a study with a file among the outputs of a run, or all if `planned` is None."""
    artifacts = []
    for artifact in all_artifacts(study):
        if planned is None or any(path in planned for path in artifact.files):
            artifacts.append(artifact)
    return artifacts


def all_artifacts(study: Study) -> list[Artifact]:
    """Return all artifacts of a study, without duplicates."""
    layouts = study.config.report
    outputs = final_outputs(study)
    outputs += [table(study, name) for name in layouts.tables]
    outputs += [case_study(study, name) for name in layouts.cases]
    outputs += [figure(study, name) for name in layouts.drawn]
    outputs.append(judged_claims(study, "claims"))
    for name in layouts.claims:
        outputs.append(judged_claims(study, f"claims/{name}"))
    scopes: dict[str, None] = {}
    for run in scored_runs(study):
        scopes |= {run.dataset: None, f"{run.dataset}/runs/{run.system}": None}
    outputs += [scores_table(study, scope) for scope in scopes]
    return list(ancestors(outputs))


def user_files(study: Study) -> list[UserFile]:
    """Return the study's user-supplied files."""
    return [artifact for artifact in all_artifacts(study) if isinstance(artifact, UserFile)]


def check_user_files(study: Study) -> None:
    """Raise UserError if a user-supplied file is missing, or is an output of the study, which would be deleted."""
    files = user_files(study)
    if not files:
        return
    outputs: dict[str, Artifact] = {}
    for artifact in all_artifacts(study):
        user_paths = artifact.input_files("user_file")  # which can be the artifact itself
        for path in artifact.files:
            if artifact.rules and path not in user_paths:
                outputs[path] = artifact
    for corpus in study.config.corpora.controlled:  # one job writes all splits and suites, also unused ones
        folder = CORPUS.format(corpus=corpus, languages="-".join(CONTROLLED_LANGUAGES))
        outputs[folder] = generated(study, corpus)
    for file in files:
        path = Path(_path_in_study(file.file))
        for output_path in map(str, (path, *path.parents)):
            if output_path in outputs:
                output = outputs[output_path]
                names = " ".join(map(str, output.wildcards))
                raise UserError(
                    f"{file.where}: {file.file}: is an output of the study (rule {output.rules[0]}, {names}) and would "
                    "be deleted: move your file to another folder, and change its path here"
                )
        file.check()


def _path_in_study(path: str) -> str:
    """Return the path that outputs have, such as `results/…`, also for a file behind links. Others stay as they are."""
    real = os.path.realpath(path)
    for folder in OUTPUT_FOLDERS:
        if Path(real).is_relative_to(os.path.realpath(folder)):
            return os.path.normpath(os.path.join(folder, os.path.relpath(real, os.path.realpath(folder))))
    return path
