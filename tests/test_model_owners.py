"""A configuration does not replace models of another configuration in the same folder."""

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.exceptions import WorkflowError

from docmt.current_run import RUN_KEY, RUN_VARIABLE
from docmt.errors import UserError
from docmt.files import write_json
from docmt.model_owners import (
    MERGED,
    MERGED_DRY_RUN,
    MERGED_HEAD,
    OWNER,
    REPLACE_VARIABLE,
    belongs_to_others,
    check_owners,
    configuration_names,
    guard_deletion,
    read_owner,
    record_owner,
)

RUN = "results/talks/runs/{}/seed1"
BASE, OTHER = RUN.format("base"), RUN.format("other")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    study = tmp_path / "study"
    study.mkdir()
    monkeypatch.chdir(study)
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    monkeypatch.delenv(REPLACE_VARIABLE, raising=False)
    return study


@pytest.fixture
def train(folder, monkeypatch):
    """Simulate a training for the test of owners. Without names, it is outside a workflow."""

    def train(names, *runs):
        file = folder / f"run{len(os.listdir(folder))}.json"
        write_json(file, {RUN_KEY: {"version": "1", "configuration": names}})
        with monkeypatch.context() as context:
            if names:
                context.setenv(RUN_VARIABLE, str(file))
            for run in runs:
                (folder / run).mkdir(parents=True, exist_ok=True)
                (folder / run / "model.pt").touch()
                record_owner(folder / run)

    return train


def models(*runs):
    return [f"{run}/model.pt" for run in runs]


def test_names_are_relative_to_the_study(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    files = [folder / "my.yaml", tmp_path / "link/sub/../my.yaml", tmp_path / "shared.yaml"]
    assert configuration_names(files) == ["my.yaml", "my.yaml", os.path.realpath(tmp_path / "shared.yaml")]


@pytest.mark.parametrize(
    ("head", "names"),
    [
        (MERGED_HEAD + json.dumps({"files": ["my.yaml", "more.yaml"], "--set": ["a=1"]}), ["my.yaml", "more.yaml"]),
        (MERGED_HEAD + "my.yaml", [str(MERGED)]),
        (MERGED_HEAD + "[1]", [str(MERGED)]),
        (MERGED_HEAD + '{"files": 1}', [str(MERGED)]),
        ("seeds: [1]", [str(MERGED)]),
        ("", [str(MERGED)]),
    ],
)
def test_merged_configuration_stands_for_its_files(head, names, folder):
    MERGED.parent.mkdir()
    MERGED.write_text(f"{head}\nseeds: [1]\n", encoding="utf-8")
    assert configuration_names([folder / MERGED]) == names


def test_dry_run_stands_for_its_files(folder, tmp_path):
    names = ["my.yaml", str(tmp_path / "shared.yaml")]
    for path in (MERGED_DRY_RUN, Path("copy.yaml")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{MERGED_HEAD}{json.dumps({'files': names, '--set': []})}\nseeds: [1]\n", encoding="utf-8")
    assert configuration_names([folder / MERGED_DRY_RUN]) == names
    assert configuration_names([folder / "copy.yaml"]) == ["copy.yaml"]


def test_models_of_another_configuration_are_kept(train):
    train(["a.yaml"], BASE, OTHER)
    with pytest.raises(UserError) as error:
        check_owners(models(BASE, OTHER), ["b.yaml"])
    message = str(error.value)
    assert message.startswith(f"2 model(s) of a.yaml would be replaced by b.yaml, such as {BASE}/model.pt: use another")
    assert "`docmt run --replace`" in message
    assert "\n" not in message


@pytest.mark.parametrize("names", [["a.yaml"], ["b.yaml"]])
def test_own_and_unknown_models_are_replaced(names, train):
    train(["a.yaml"], BASE)
    train(["b.yaml"], BASE)  # with --replace
    train(["a.yaml"], OTHER)
    train([], OTHER)  # by a command outside of the workflow
    check_owners(models(OTHER, "results/talks/runs/absent/seed1"), names)
    assert read_owner(Path(BASE)) == ["b.yaml"]
    assert not Path(OTHER, OWNER).exists()


@pytest.mark.parametrize(
    ("owner", "names", "is_same"),
    [
        ("a.yaml quick.yaml", "a.yaml", True),
        ("a.yaml", "a.yaml quick.yaml", True),
        ("a.yaml x.yaml quick.yaml", "a.yaml quick.yaml", True),
        ("a.yaml quick.yaml", "a.yaml x.yaml", False),
        ("a.yaml x.yaml quick.yaml", "a.yaml quick.yaml x.yaml", False),
        ("a.yaml quick.yaml", "b.yaml quick.yaml", False),
        ("a.yaml quick.yaml", "quick.yaml", False),
        ("a.yaml", "b.yaml a.yaml", False),
    ],
)
def test_further_files_keep_the_study(owner, names, is_same, train):
    train(owner.split(), BASE)
    assert belongs_to_others(Path(BASE), names.split()) is not is_same
    if not is_same:
        with pytest.raises(UserError, match=re.escape(f"1 model(s) of {owner} would be replaced by {names}, such")):
            check_owners(models(BASE), names.split())


def test_replacing_can_be_allowed(train, monkeypatch):
    train(["a.yaml"], BASE)
    monkeypatch.setattr("sys.argv", ["snakemake", "all", "--touch"])  # runs no job
    check_owners(models(BASE), ["b.yaml"])
    monkeypatch.setattr("sys.argv", ["snakemake", "all"])
    monkeypatch.setenv(REPLACE_VARIABLE, "1")
    check_owners(models(BASE), ["b.yaml"])


@pytest.mark.parametrize(
    ("options", "is_allowed"), [({}, False), ({"dryrun": True}, True), ({"only_temp": True}, True)]
)
@pytest.mark.parametrize("replace", ["", "1"])
def test_deleting_all_outputs_is_refused(options, is_allowed, replace, folder, monkeypatch):
    calls = []
    monkeypatch.setenv(REPLACE_VARIABLE, replace)
    workflow: Any = SimpleNamespace(delete_output=lambda **keywords: calls.append(keywords))
    guard_deletion(workflow)
    if is_allowed or replace:
        workflow.delete_output(**options)
        assert calls == [{"only_temp": False, "dryrun": False} | options]
    else:
        with pytest.raises(WorkflowError, match=r"would delete all results and models .* `docmt clean --delete`"):
            workflow.delete_output(**options)
        assert not calls
