"""Commands refuse a model that was trained for another plan."""

import pytest
import torch
from core_fixtures import RECIPE, make_model, model_settings, train_arguments

from docmt.cli.main import main
from docmt.models.model_file import TrainedModel, load_model, save_model

RECORDED, OTHER = "0123456789ab", "ba9876543210"
RUN = ["--dataset", "d", "--system", "s", "--seed", "1", "--test", "t"]
READERS = {
    "translate": ["decode", "translate", "--instances", "missing"],
    "score-candidates": ["decode", "score-candidates", "--suite", "missing"],
    "translate-suite": ["decode", "translate-suite", "--suite", "missing"],
    "cxmi": ["evaluate", "cxmi", "--suite", "missing", *RUN],
}


@pytest.fixture
def model(study_files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = make_model("sentence_transformer", n_symbols=len(study_files.vocabulary))
    trained = TrainedModel(network, study_files.vocabulary, study_files.pipeline, {}, {"fingerprint": RECORDED})
    save_model(tmp_path / "model.pt", trained)
    return trained


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("expected", "is_refused"), [(OTHER, True), (RECORDED, False), (None, False)])
def test_readers_refuse_a_model_of_another_plan(words, expected, is_refused, model, tmp_path, capsys):
    option = ["--model-fingerprint", expected] if expected else []
    call = [*words, "--model", "model.pt", *option, "--device", "cpu", "--out", "out"]
    assert main(call) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    if is_refused:
        assert line.startswith("docmt: error: model.pt: was trained with other settings or data")
        assert f"(fingerprint {RECORDED}) than planned ({OTHER}): move it" in line
    else:
        assert "missing" in line  # what is read after the model
    assert not (tmp_path / "out").exists()


def test_damaged_provenance_has_no_fingerprint(model, tmp_path, capsys):
    content = torch.load("model.pt", weights_only=True)
    torch.save(content | {"provenance": {}}, "copy.pt")
    call = [*READERS["translate"], "--model", "copy.pt", "--model-fingerprint", OTHER, "--device", "cpu"]
    assert main([*call, "--out", "out"]) == 2
    assert "copy.pt: was trained with other settings or data (fingerprint None)" in capsys.readouterr().err


def test_training_checks_init_and_records_its_own(study_files, model, tmp_path, capsys):
    settings = {
        "model": model_settings("sentence_transformer").model_dump(),
        "training": RECIPE | {"max_steps": 1},
    }
    files = {"init": "model.pt", "init-fingerprint": OTHER, "fingerprint": "c0ffee"}
    folder = tmp_path / "tuned"
    assert main(train_arguments(study_files, folder, settings, **files)) == 2
    assert f"model.pt: was trained with other settings or data (fingerprint {RECORDED})" in capsys.readouterr().err
    assert not folder.exists()
    assert main(train_arguments(study_files, folder, settings, **files | {"init-fingerprint": RECORDED})) == 0
    assert load_model(folder / "model.pt").provenance["fingerprint"] == "c0ffee"
