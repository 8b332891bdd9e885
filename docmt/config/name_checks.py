"""Checks of what a config names: paths, languages, metrics, and the jobs that follow. Errors name their keys."""

from docmt.config.schema import Config
from docmt.config.study_rows import USER_OUTPUT_KEYS, PretrainedInit
from docmt.config.systems import list_runs, text_settings
from docmt.errors import UserError
from docmt.evaluation.metrics import known_metrics, selectable_metrics
from docmt.settings import look_up
from docmt.text.tokenizer import check_language


def check_paths(config: Config) -> None:
    """Raises UserError for braces in a path: Snakemake takes them for a wildcard, however they are written."""
    paths = {
        f"corpora.custom.{name}.splits.{split}.files.{role}": path
        for name, corpus in config.corpora.custom.items()
        for split, row in corpus.splits.items()
        for role, path in row.files.items()
    } | {
        f"discourse.trees.{name}.files.{part}": path
        for name, trees in config.discourse.trees.items()
        for part, path in trees.files.items()
    }
    paths |= {
        f"datasets.{name}.references.{test}": path
        for name, dataset in config.datasets.items()
        for test, files in dataset.references.items()
        for path in files
    }
    paths |= {
        f"systems.{name}.{key}.{test}": path
        for name, system in config.systems.items()
        for key in sorted(USER_OUTPUT_KEYS)
        for test, path in getattr(system, key).items()
    }
    for key, path in paths.items():
        if "{" in path or "}" in path:
            raise UserError(f"config.{key}: {path!r} contains braces, which Snakemake takes for wildcards; rename it")


def check_languages(config: Config) -> None:
    """Raises UserError for a language that docmt cannot tokenize: otherwise only the fifth job would say so."""
    for name, dataset in config.datasets.items():
        for key in ("src_lang", "tgt_lang"):
            try:
                check_language(getattr(dataset, key), text_settings(config, name).tokenization)
            except UserError as error:
                raise UserError(f"config.datasets.{name}.{key}: {error}") from None


def check_pretrained(config: Config, name: str, init: PretrainedInit) -> None:
    """Raises UserError where a system starts from a published model that reads other text than its datasets have."""
    for dataset in dict.fromkeys(run.dataset for run in list_runs(config) if run.system == name):
        folder = text_settings(config, dataset).pretrained
        if folder != init.pretrained:
            raise UserError(
                f"config.systems.{name}.init.pretrained is {init.pretrained!r}, but text.pretrained of dataset "
                f"{dataset!r} is {folder!r}: a model reads the pieces that it was trained with"
            )


def check_job_names(config: Config) -> None:
    """Raises UserError when two jobs would share a log: logs and benchmarks are named by joining names with `_`."""
    runs = [(run.dataset, run.system) for run in list_runs(config)]
    parts = [(name, part) for name, dataset in config.datasets.items() for part in dataset.all_parts()]
    cuttings = [(dataset, cutting, part) for cutting in config.instances for dataset, part in parts]
    trees = [(dataset, tree, part) for tree in config.discourse.trees for dataset, part in parts]
    for names in (runs, parts, cuttings, trees):
        seen: dict[str, tuple[str, ...]] = {}
        for name in dict.fromkeys(names):
            joined = "_".join(name)
            if joined in seen:
                raise UserError(
                    f"config: {' + '.join(seen[joined])} and {' + '.join(name)} would share the log {joined}: rename "
                    "a dataset, a system, or what else they are made of"
                )
            seen[joined] = name


def check_metrics(config: Config) -> None:
    """Raises UserError when the report shows a metric that does not exist, or a table one that the study lacks."""
    report = config.report
    layouts = {f"tables.{name}": table for name, table in report.tables.items()}
    layouts |= {f"figures.{name}": figure for name, figure in report.figures.items()}
    known = known_metrics(*report.metrics, *(metric for layout in layouts.values() for metric in layout.metrics))
    for metric in report.metrics:
        look_up(known, metric, where="config.report.metrics", what="metric")
    for name, layout in layouts.items():
        where = f"config.report.{name}.metrics"
        for metric in layout.metrics:
            look_up(known, metric, where=where, what="metric")
            if metric in selectable_metrics(known) and metric not in config.evaluation.metrics:
                raise UserError(
                    f"{where}: {metric!r} is not computed; name it in evaluation.metrics too, or leave it out"
                )
