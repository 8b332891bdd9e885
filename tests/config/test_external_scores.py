"""`evaluation.external`: scores from other programs, and the runs, differences and reports that read them."""

import re

import pytest
from smoke_study import smoke_config, smoke_study

from docmt.errors import UserError

METRIC = "MetricX ↓"
FILES = {"sentence_transformer": "s.txt", "rst_mix/seed1": "r.txt"}


def study(files, **changes):
    return smoke_study({"evaluation": {"external": {METRIC: {"smoke/smoke": files}}}, **changes})


def read(artifact):
    return artifact.input_files("external"), artifact.params["external"], artifact.options["external"]


def test_run_reads_its_own_file():
    view = study(FILES)
    name = f"smoke/{METRIC}"
    assert read(view.scores("smoke", "rst_mix", "1")) == (["r.txt"], [name], [f"{name}=r.txt"])
    assert read(view.scores("smoke", "document_transformer", "1")) == ([], [], [])


def test_difference_needs_files_of_both_systems():
    view = study(FILES)
    name = f"smoke/{METRIC}"
    files = view.differences("smoke", "rst_mix", "sentence_transformer")
    assert read(files) == (["r.txt", "s.txt"], [name, name], [f"{name}=r.txt", f"{name}=s.txt"])
    assert read(view.differences("smoke", "document_transformer", "sentence_transformer")) == ([], [], [])


def test_difference_needs_files_of_all_seeds():
    names = [f"rst_mix/seed{seed}" for seed in (1, 2)] + [f"sentence_transformer/seed{seed}" for seed in (1, 2)]
    for files, n_files in ((names, 4), (names[1:], 0)):
        view = study({name: f"{name[-1]}.txt" for name in files}, seeds=[1, 2])
        assert len(view.differences("smoke", "rst_mix", "sentence_transformer").input_files("external")) == n_files


@pytest.mark.parametrize(
    ("external", "message"),
    [
        ({"chrF": {}}, "'chrF' must not be a metric of docmt"),
        ({"a=b": {}}, "'a=b' must not be a metric of docmt, nor contain '='"),
        ({"X": {"smoke/tset": {}}}, "external.X: no test set 'smoke/tset'"),
        ({"X": {"smoke/smoke": {"rst_mux": "x"}}}, "external.X.smoke/smoke: no run 'rst_mux'"),
        ({"X": {"smoke/smoke": {"rst_mix/seed2": "x"}}}, "no run 'rst_mix/seed2'; did you mean 'rst_mix/seed1'?"),
        ({"X": {"smoke/smoke": {"rst_mix": "x", "rst_mix/seed1": "y"}}}, "'rst_mix' and 'rst_mix/seed1' are the same"),
        ({"X": {"smoke/smoke": {"rst_mix": "{x}"}}}, "a path must not contain braces"),
    ],
)
def test_unknown_names_are_refused(external, message):
    with pytest.raises(UserError, match=re.escape(message)):
        smoke_config({"evaluation": {"external": external}})


def test_system_with_seeds_is_named_with_seed():
    with pytest.raises(UserError, match="no run 'rst_mix'; did you mean 'rst_mix/seed"):
        study({"rst_mix": "x"}, seeds=[1, 2])


@pytest.mark.parametrize("metrics", [None, ["chrF"], [METRIC]])
def test_report_shows_external_metrics_by_default(metrics, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    view = study(FILES, report={"metrics": metrics} if metrics else {})
    names = view.report().params["settings"]["metrics"]
    assert (METRIC in names) == (metrics != ["chrF"])
    with pytest.raises(UserError, match="metrics: no metric 'Y'"):
        study(FILES, report={"metrics": ["Y"]})
