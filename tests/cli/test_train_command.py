"""`docmt train`. Tests of the training loop cover resuming."""

import pytest
from core_fixtures import RECIPE, model_settings, train_arguments

from docmt.cli.main import main
from docmt.files import read_json
from docmt.models.model_file import load_model

SETTINGS = {"model": model_settings().model_dump(), "training": RECIPE | {"max_steps": 2}}


def test_a_training_writes_model_and_history(study_files, tmp_path):
    assert main(train_arguments(study_files, tmp_path, SETTINGS)) == 0
    trained = load_model(tmp_path / "model.pt")
    assert trained.provenance["seed"] == 1
    assert trained.provenance["settings"]["training"]["max_steps"] == 2
    assert trained.provenance["fingerprint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".checksums",
        "checkpoints",
        "history.csv",
        "model.job.json",
        "model.pt",
    ]
    facts = read_json(tmp_path / "model.job.json")
    assert (facts["device"], facts["n_devices"]) == ("cpu", 1)
    assert [session["from_update"] for session in facts["sessions"]] == [0]
    assert facts["sessions"][0]["seconds"] > 0


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        ({"model": {}, "training": {"learning_rat": 1}}, {}, "train.training.learning_rat: unknown key"),
        ({"model": {"width": 10}, "training": {}}, {}, "train.model: width 10 must be a multiple"),
        ({"model": {}}, {}, "train.training: this key is missing"),
        (SETTINGS, {"train": "nowhere"}, "nowhere/manifest.json: no such file"),
        (SETTINGS, {"pipeline": "nowhere.json"}, "nowhere.json: no such file"),
        (SETTINGS, {"init": "nowhere.pt"}, "nowhere.pt: no such file"),
        (SETTINGS, {"seed": -3}, 'Invalid value "-3" for --seed. Must be >= 0.'),
        (SETTINGS, {"seed": 10**20}, f'Invalid value "{10**20}" for --seed. Must be < 1000000000.'),
        (SETTINGS, {"threads": 0}, 'Invalid value "0" for --threads. Must be >= 1.'),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(study_files, tmp_path, capsys, settings, changes, message):
    assert main(train_arguments(study_files, tmp_path, settings, **changes)) == 2
    lines = [line for line in capsys.readouterr().err.strip().splitlines() if line.startswith("docmt: error: ")]
    assert len(lines) == 1
    assert message in lines[0]
    assert list(tmp_path.iterdir()) == []
