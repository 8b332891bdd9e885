"""Studies that start from published models: keys, files, and the jobs that follow."""

import json
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.plan import Plan
from docmt.config.systems import model_settings
from docmt.config.user_files import content_digest
from docmt.errors import UserError
from docmt.models.presets import SIZES
from docmt.models.published.catalog import load_models, study_folder
from docmt.models.published.families import FAMILIES
from docmt.models.settings import ModelSettings

SMOKE = read_config_file(Path(__file__).parents[2] / "config/examples/smoke.yaml")
TEXT = {"tokenization": "sentencepiece", "truecase": False, "normalise": True, "pretrained": "opus"}
INIT = {"init": {"pretrained": "opus"}, "size": "opus_mt"}
RUN = ("controlled", "sentence_transformer", "1")


def study(text=TEXT, system=INIT):
    return merge(SMOKE, {"text": text, "systems": {"sentence_transformer": system, **sizes()}})


def sizes():
    """The systems that start from the changed one, in its size."""
    return {
        name: {"size": "opus_mt"} for name, row in SMOKE["systems"].items() if row.get("init") == "sentence_transformer"
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content_digest.cache_clear()
    made = tmp_path / "opus"
    made.mkdir()
    for name in ("config.json", "pytorch_model.bin", "vocab.json", "source.spm", "target.spm", "README.md"):
        (made / name).write_text(name)
    yield made
    content_digest.cache_clear()


def test_the_first_training_reads_the_folder(folder):
    made = StudyArtifacts(load_config(study()))
    assert made.model(*RUN).input_files("init") == ["opus/config.json"]
    assert made.model(*RUN).input_files("pretrained") == ["opus/pytorch_model.bin"]
    assert made.codes("controlled").params.items() >= {"src_lang": "en", "tgt_lang": "de"}.items()
    expected = {"pretrained": "opus", "keep": "all", "src_lang": "en", "tgt_lang": "de"}
    assert made.vocabulary("controlled").params.items() >= expected.items()
    files = {own.file for own in made.user_files()}
    expected = {"config.json", "pytorch_model.bin", "vocab.json", "source.spm", "target.spm"}
    assert files == {f"opus/{name}" for name in expected}


@pytest.mark.parametrize(
    ("name", "changed"),
    [("pytorch_model.bin", {"model"}), ("source.spm", {"model", "codes"}), ("README.md", set())],
)
def test_what_depends_on_a_file_is_made_again(folder, name, changed):
    def fingerprints():
        content_digest.cache_clear()
        made = StudyArtifacts(load_config(study()))
        return {"model": made.model(*RUN).fingerprint, "codes": made.codes("controlled").fingerprint}

    before = fingerprints()
    (folder / name).write_text("other")
    after = fingerprints()
    assert {key for key in before if before[key] != after[key]} == changed


def test_a_name_of_the_catalog_is_fetched_into_the_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "opus-mt-en-de"
    values = study({**TEXT, "pretrained": name}, {"init": {"pretrained": name}, "size": "opus_mt"})

    def plan():
        return Plan.load(values, files=[]).artifacts

    made, folder = plan(), study_folder(name)
    assert made.model(*RUN).input_files("init") == [f"{folder}/config.json"]
    assert made.model(*RUN).input_files("pretrained") == []
    assert made.codes("controlled").input_files("published") == [f"{folder}/config.json"]
    assert json.loads(made.codes("controlled").params["settings"])["pretrained"] == folder
    assert made.vocabulary("controlled").params["pretrained"] == folder
    assert not made.user_files()
    before = made.model(*RUN).fingerprint, made.codes("controlled").fingerprint
    monkeypatch.setitem(load_models(), name, load_models()[name].model_copy(update={"version": "other"}))
    again = plan()
    assert again.model(*RUN).fingerprint != before[0]
    assert again.codes("controlled").fingerprint != before[1]
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f"{name}/config.json: no such file"):
        plan()


def test_a_missing_folder_is_named_before_the_first_job(folder):
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(UserError, match=r"pretrained: opus/config.json: no such file"):
        Plan.load(study(), files=[])


def test_a_misspelt_model_is_told_from_a_missing_folder(folder):
    folder.rename("elsewhere")
    with pytest.raises(UserError, match=r"pretrained: opus: neither a folder in .* nor a model of the catalog"):
        Plan.load(study(), files=[])
    name = next(iter(load_models()))
    misspelt = study(TEXT | {"pretrained": name[:-1]}, INIT | {"init": {"pretrained": name[:-1]}})
    with pytest.raises(UserError, match=f"did you mean '{name}'"):
        Plan.load(misspelt, files=[])


def test_any_language_has_sentencepiece():
    values = merge(SMOKE, {"datasets": {"controlled": {"tgt_lang": "ja"}}})
    with pytest.raises(UserError, match="'ja' separates no words by blanks"):
        load_config(values)
    with pytest.raises(UserError, match="controlled") as error:  # of the corpus, which has no Japanese
        load_config(merge(values, {"text": {"tokenization": "sentencepiece", "truecase": False}}))
    assert "unknown language" not in str(error.value)


def test_show_prints_the_start(tmp_path, capsys):
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(study()))
    assert main(["config", "show", str(file), "sentence_transformer"]) == 0
    assert json.loads(capsys.readouterr().out)["init"] == {"pretrained": "opus"}


def test_sizes_of_published_models_have_their_form_and_marks():
    settings = model_settings(load_config(study()), "sentence_transformer")
    assert settings.form.zero_start
    for size, family in (("opus_mt", "marian"), ("mbart", "mbart")):
        assert SIZES[size]["marks"] == FAMILIES[family].marks
        assert FAMILIES[family].form.items() <= SIZES[size]["form"].items()


def test_new_keys_at_their_defaults_are_not_written():
    values = ModelSettings().model_dump()
    assert not {"form", "marks"} & set(values)
    assert ModelSettings.load(values, where="test") == ModelSettings()
    changed = ModelSettings.load({"form": {"norm": "pre"}}, where="test")
    assert changed.model_dump()["form"]["norm"] == "pre"
    assert ModelSettings.load(changed.model_dump(), where="test") == changed
