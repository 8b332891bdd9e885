"""Priorities and threads of jobs."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from docmt.config.loading import merge, read_config_file
from docmt.config.plan import (
    BYTES_PER_ANNOTATOR,
    BYTES_PER_PROCESS,
    MAX_PROCESSES,
    Plan,
    annotation_job_threads,
    text_job_threads,
)
from docmt.config.systems import longest_chain

ROOT = Path(__file__).parents[2]


def plan(file="config/config.yaml", **changes):
    return Plan.load(merge(read_config_file(ROOT / file), changes), files=[])


def order(study):
    """Trained systems by priority. The highest priority comes first."""
    systems = [name for name, row in study.config.systems.items() if row.use_model_of is None]
    return sorted(systems, key=lambda name: -study.training_priority(SimpleNamespace(system=name)))


def test_urgent_trainings_come_first():
    updates = {"scratch": {"max_steps": 250}, "finetune": {"max_steps": 200}}
    systems = order(plan(training=updates, systems={"g_transformer_finetuned": {"training": {"max_steps": 800}}}))
    assert systems[:2] == ["sentence_transformer", "g_transformer_finetuned"]
    assert set(systems[2:4]) == {"document_transformer", "g_transformer"}


def test_chain_of_trainings_is_followed():
    """A recipe without `max_steps` counts no updates."""
    study = plan(
        systems={
            "g_transformer_finetuned": {"init": "document_transformer"},
            "last": {
                "instances": "documents",
                "architecture": "g_transformer",
                "size": "tiny",
                "recipe": "finetune",
                "training": {"max_steps": None},
                "init": "g_transformer_finetuned",
            },
        }
    )
    assert longest_chain(study.config, "document_transformer") == [
        "document_transformer",
        "g_transformer_finetuned",
        "last",
    ]
    systems = order(study)
    assert systems[0] == "document_transformer"
    assert systems[-1] == "last"


def test_trainings_precede_jobs_without_priority():
    study = plan("config/examples/papers/paper_crosstask_zhen.yaml")
    assert all(study.training_priority(SimpleNamespace(system=name)) > 10 for name in study.config.systems)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], 1), ([0], 1), ([BYTES_PER_PROCESS - 1], 1), ([BYTES_PER_PROCESS, 5], 2), ([10**12], MAX_PROCESSES)],
)
def test_threads_grow_with_the_text(tmp_path, sizes, expected):
    files = []
    for number, size in enumerate(sizes):
        files.append(tmp_path / str(number))
        with files[-1].open("wb") as file:
            file.truncate(size)
    assert text_job_threads(None, [*files, tmp_path / "to be made"]) == expected


def test_parser_threads_grow_with_the_text(tmp_path):
    files = {"text": 10 * BYTES_PER_ANNOTATOR, "parser.pt": 10**9}
    for name, size in files.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    paths = [str(tmp_path / name) for name in [*files, "to be made"]]
    assert [annotation_job_threads({"n_shards": n}, paths) for n in ("1", "2", "20")] == [MAX_PROCESSES, 6, 1]
    assert annotation_job_threads({}, paths) == MAX_PROCESSES
