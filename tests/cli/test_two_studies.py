"""Two configurations in one folder. Runs and `docmt clean` in any order keep the files of the other configuration."""

import itertools
import os
from pathlib import Path

import pytest
import yaml
from smoke_study import SMOKE, smoke_config, smoke_study, smoke_values

from docmt.cli.main import main
from docmt.config.loading import load_config, read_config_file
from docmt.config.plan import Plan
from docmt.errors import UserError
from docmt.files import write_lines
from docmt.model_owners import OWNER, check_owners
from docmt.paths import RUN

SAME_NAMES = {"training": {"scratch": {"learning_rate": 2e-3}}}
SYSTEM = {
    "instances": "sentences",
    "architecture": "sentence_transformer",
    "size": "tiny",
    "recipe": "scratch",
}
MORE_SYSTEMS = {"systems": {"other": SYSTEM}}
STEPS = ("run b.yaml", "clean b.yaml", "clean")
"""Commands after a run of `a.yaml`. `clean` uses the configuration of the last run."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a configuration: write its training files, without training. Returns True if it was refused."""
    monkeypatch.chdir(tmp_path)
    last = []
    monkeypatch.setattr("docmt.cli.status.last_configuration", lambda folder: list(last))

    def run(name, changes, *, retrains):
        Path(name).write_text(yaml.safe_dump(smoke_values(changes)), encoding="utf-8")
        trainings = smoke_study(changes).trained
        runs = [Path(RUN.format(dataset=run.dataset, system=run.system, seed=run.seed)) for run in trainings]
        runs = [run for run in runs if retrains or not (run / "model.pt").exists()]
        try:
            check_owners([str(run / "model.pt") for run in runs if run.exists()], [name])
        except UserError:
            return True
        last[:] = [Path(name)]
        for run in runs:
            (run / "checkpoints/settings").mkdir(parents=True)
            for file in ("model.pt", "history.csv", "checkpoints/settings/step.pt"):
                (run / file).write_text(f"{name} {run}")
            write_lines(run / OWNER, [name], checksum=False)
        return False

    return run


def files():
    return {str(path): path.read_bytes() for path in Path("results").rglob("*") if path.is_file()}


@pytest.mark.parametrize(("changes", "is_refused"), [(SAME_NAMES, True), (MORE_SYSTEMS, False)])
def test_no_order_of_commands_loses_files(changes, is_refused, run, tmp_path, capsys):
    for number, order in enumerate(itertools.permutations(STEPS)):
        (tmp_path / str(number)).mkdir()
        os.chdir(tmp_path / str(number))
        run("a.yaml", {}, retrains=False)
        Path("b.yaml").write_text(yaml.safe_dump(smoke_values(changes)), encoding="utf-8")
        last = "a.yaml"
        for step in order:
            command, *name = step.split()
            before = files()
            if command == "run":
                assert run("b.yaml", changes, retrains=is_refused) == is_refused
                last = last if is_refused else "b.yaml"
            else:
                main(["clean", *name, "--delete"])
            after = files()
            lost = {path for path, content in before.items() if after.get(path) != content}
            # Its own finished trainings lose their checkpoints, and nothing else.
            assert all("/checkpoints/" in path for path in lost), (order, step)
            owners = {before[path].split()[0].decode() for path in lost}
            assert owners <= {*(name or [last])}, (order, step)


def test_demo_and_smoke_study_share_only_the_report():
    """The quick start runs both in one folder."""
    demo = load_config(read_config_file(SMOKE.parents[1] / "config.yaml"))
    shared = Plan(demo).files().keys() & Plan(smoke_config()).files().keys()
    assert "results/report/report.html" in shared
    assert [path for path in shared if not path.startswith(("results/report/", "results/claims."))] == []
