# ruff: noqa: E501 (rows of a table)
"""Studies that start from published models: keys, files and jobs."""

import json
import re

import pytest
from smoke_study import StudyView, smoke_values

from docmt.cli.main import main
from docmt.config.loading import load_config, merge
from docmt.config.paper_columns import paper_columns
from docmt.config.plan import Plan
from docmt.config.systems import Run, model_settings
from docmt.config.user_files import content_digest
from docmt.errors import UserError
from docmt.models.presets import SIZES
from docmt.models.published.catalog import load_models, study_folder
from docmt.models.published.families import FAMILIES
from docmt.models.settings import ModelSettings

TEXT = {"tokenization": "sentencepiece", "truecase": False, "normalize": True, "pretrained": "opus"}
INIT = {"init": {"pretrained": "opus"}, "size": "opus_mt"}
RUN = ("smoke", "sentence_transformer", "1")


def study(text=TEXT, system=INIT):
    return smoke_values({"text": text, "systems": {"sentence_transformer": system, **sizes()}})


def sizes():
    """Systems that start from the changed system, with its size."""
    return {
        name: {"size": "opus_mt"}
        for name, row in smoke_values()["systems"].items()
        if row.get("init") == "sentence_transformer"
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content_digest.cache_clear()
    path = tmp_path / "opus"
    path.mkdir()
    for name in ("config.json", "pytorch_model.bin", "vocab.json", "source.spm", "target.spm", "README.md"):
        (path / name).write_text(name)
    yield path
    content_digest.cache_clear()


def test_the_first_training_reads_the_folder(folder):
    (folder / "adapter.safetensors").write_text("sorts before config.json")
    view = StudyView(load_config(study()))
    assert view.model(*RUN).input_files("init") == ["opus/config.json"]
    assert view.model(*RUN).input_files("pretrained") == ["opus/adapter.safetensors", "opus/pytorch_model.bin"]
    assert view.codes("smoke").params.items() >= {"src_lang": "en", "tgt_lang": "de"}.items()
    expected = {"pretrained": "opus", "keep": "all", "src_lang": "en", "tgt_lang": "de"}
    assert view.vocabulary("smoke").params.items() >= expected.items()
    files = {user_file.file for user_file in view.user_files()}
    expected = {"config.json", "adapter.safetensors", "pytorch_model.bin", "vocab.json", "source.spm", "target.spm"}
    assert files == {f"opus/{name}" for name in expected}


@pytest.mark.parametrize(
    ("name", "changed"),
    [("pytorch_model.bin", {"model"}), ("source.spm", {"model", "codes"}), ("README.md", set())],
)
def test_what_depends_on_a_file_is_made_again(folder, name, changed):
    def fingerprints():
        content_digest.cache_clear()
        view = StudyView(load_config(study()))
        return {"model": view.model(*RUN).fingerprint, "codes": view.codes("smoke").fingerprint}

    before = fingerprints()
    (folder / name).write_text("other")
    after = fingerprints()
    assert {key for key in before if before[key] != after[key]} == changed


def test_catalog_model_is_fetched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "opus-mt-en-de"
    values = study({**TEXT, "pretrained": name}, {"init": {"pretrained": name}, "size": "opus_mt"})

    def plan():
        return StudyView(Plan.load(values, files=[]).config)

    view, folder = plan(), study_folder(name)
    assert view.model(*RUN).input_files("init") == [f"{folder}/config.json"]
    assert view.model(*RUN).input_files("pretrained") == []
    assert view.codes("smoke").input_files("pretrained") == [f"{folder}/config.json"]
    assert view.codes("smoke").params["settings"]["pretrained"] == folder
    assert view.vocabulary("smoke").params["pretrained"] == folder
    assert not view.user_files()
    before = view.model(*RUN).fingerprint, view.codes("smoke").fingerprint
    monkeypatch.setitem(load_models(), name, load_models()[name].model_copy(update={"version": "other"}))
    again = plan()
    assert again.model(*RUN).fingerprint != before[0]
    assert again.codes("smoke").fingerprint != before[1]
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f"{name}/config.json: no such file"):
        plan()


PUBLISHED = {"instances": "sentences", "init": {"pretrained": "opus"}}


def with_row(row):
    return merge(study(), {"systems": {"opus": row}})


def test_published_model_is_a_row_without_training(folder):
    config = load_config(merge(with_row(PUBLISHED), {"seeds": [1, 2]}))
    view = StudyView(config)
    assert [run for run in view.scored if run.system == "opus"] == [Run("smoke", "opus", 1)]
    assert "opus" not in {run.system for run in view.trained}
    model = view.model("smoke", "opus", "1")
    assert (model.rules, model.files) == (("models_import_for_study",), ["results/smoke/runs/opus/seed1/model.pt"])
    assert model.input_files("published") == ["opus/config.json", "opus/pytorch_model.bin"]
    assert model.file in view.hypotheses("smoke", "opus", "1", "test_smoke").input_files("model")
    assert model.file in view.probabilities("smoke", "opus", "1", "pronoun").input_files("model")
    before = model.fingerprint
    (folder / "pytorch_model.bin").write_text("other")
    content_digest.cache_clear()
    assert StudyView(config).model("smoke", "opus", "1").fingerprint != before


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"init": {"pretrained": "opus"}}, "instances is missing"),
        (PUBLISHED | {"size": "base"}, "a published model without architecture and recipe is not trained: remove size"),
        (PUBLISHED | {"training": {"max_steps": 1}}, "is not trained: remove training"),
        (PUBLISHED | {"recipe": "scratch"}, "architecture is missing"),
        (PUBLISHED | {"init": {"pretrained": "other"}}, "init.pretrained is 'other', but text.pretrained of dataset"),
        (PUBLISHED | {"decoding": {"context": "none"}}, "decoding.context 'none' skips the context module"),
        (PUBLISHED | {"instances": "documents_with_trees"}, None),
    ],
)
def test_published_row_has_no_settings_of_models(folder, row, message):
    if message is None:
        load_config(with_row(row))
        return
    with pytest.raises(UserError, match=re.escape(message)):
        load_config(with_row(row))


WINDOWS = {
    "instances": {"windows": {"max_sentences": 3, "max_tokens": 100}},
    "systems": {"windows": {**PUBLISHED, "instances": "windows", "decoding": {"context": "joined"}}},
    "evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)", "CXMI"]},
}


def test_windows_are_rows_of_a_published_model(folder):
    config = load_config(merge(with_row(PUBLISHED), WINDOWS))
    view = StudyView(config)
    run = ("smoke", "windows", "1")
    assert view.model(*run).params["settings"] == {"max_sentences": 3, "max_tokens": 100}
    assert view.hypotheses(*run, "test_smoke").params["settings"].context == "joined"
    assert view.probabilities(*run, "pronoun").params["settings"] == {"context": "joined"}
    assert paper_columns(config, "windows") == {"Input": "windows"}
    assert paper_columns(config, "opus") == {"Input": "sentences"}


def test_windows_have_no_cxmi(folder):
    values = merge(with_row(PUBLISHED), WINDOWS)
    view = StudyView(load_config(values))
    parts = {system: view.run_scores(Run("smoke", system, 1)) for system in ("opus", "windows")}
    assert {*parts["opus"]} - {*parts["windows"]} == {"cxmi_test_smoke", "cxmi_suite_pronoun"}
    claim = {"statement": "c", "metric": "CXMI", "test": "smoke", "comparisons": ["windows@smoke > opus@smoke"]}
    with pytest.raises(UserError, match="'windows' joins sentences, so it has no CXMI"):
        load_config(merge(values, {"report": {"claims": {"windows": claim}}}))


@pytest.mark.parametrize("changes", [{"decoding": {"context": "joined"}}, {"use": True}])
def test_trained_models_join_nothing(folder, changes):
    if "use" in changes:
        row = {"use_model_of": "sentence_transformer", "instances": "sentences", "decoding": {"context": "joined"}}
        changes = {"systems": {"other": row}}
    with pytest.raises(UserError, match=r"decoding\.context 'joined' is for published models: remove the key"):
        load_config(merge(study(), changes))


@pytest.mark.parametrize("key", ["init", "use_model_of"])
def test_no_system_starts_from_a_published_row(folder, key):
    row = {"instances": "sentences", key: "opus"}
    if key == "init":
        row |= {"architecture": "sentence_transformer", "recipe": "scratch", "size": "opus_mt"}
    with pytest.raises(UserError, match="'opus' is a published model, which is not trained"):
        load_config(merge(with_row(PUBLISHED), {"systems": {"other": row}}))


def test_missing_folder_is_reported_early(folder):
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(UserError, match=r"pretrained: opus/config.json: no such file"):
        Plan.load(study(), files=[])


def test_misspelt_model_is_no_missing_folder(folder):
    folder.rename("elsewhere")
    with pytest.raises(UserError, match=r"pretrained: opus: not a folder in .* and not a model in the catalog"):
        Plan.load(study(), files=[])
    name = next(iter(load_models()))
    misspelt = study(TEXT | {"pretrained": name[:-1]}, INIT | {"init": {"pretrained": name[:-1]}})
    with pytest.raises(UserError, match=f"did you mean '{name}'"):
        Plan.load(misspelt, files=[])


def write_sizes(folder, **others):
    sizes = {"d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "model_type": "marian", "scale_embedding": True}
    sizes |= {
        f"{side}_{key}": n
        for side in ("encoder", "decoder")
        for key, n in {"attention_heads": 8, "ffn_dim": 2048}.items()
    }
    (folder / "config.json").write_text(json.dumps(sizes | {"activation_function": "swish"} | others))


def test_sizes_are_those_of_the_folder(folder):
    names = ["sentence_transformer", *sizes()]

    def settings(size):
        values = merge(study(), {"systems": {name: {"size": size} for name in names}})
        values["systems"] |= {name: values["systems"][name] | {"model": {}} for name in names}
        config = load_config(values)
        return [model_settings(config, name) for name in names]

    write_sizes(folder)
    assert settings("pretrained") == settings("opus_mt")
    write_sizes(folder, encoder_layers=2, d_model=64, dropout=0.3)
    for model in settings("pretrained"):
        assert (model.encoder_layers, model.decoder_layers, model.width, model.dropout) == (2, 6, 64, 0.3)
        assert model.positions == "sentence"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT | {"pretrained": "opus-mt-en-de"}, "the model size is unknown: docmt models fetch --model opus-mt-en-de, or set size"),
        (TEXT | {"pretrained": "elsewhere"}, "elsewhere/config.json: no such file, so the model size is unknown: give its folder"),
        (TEXT, "opus/config.json: has no 'decoder_layers'"),
        ({}, "systems.sentence_transformer.size: 'pretrained' copies the size of text.pretrained, which must be set"),
    ],
)  # fmt: skip
def test_a_size_that_cannot_be_read_is_refused(folder, text, message):
    write_sizes(folder)
    config = json.loads((folder / "config.json").read_text())
    del config["decoder_layers"]
    (folder / "config.json").write_text(json.dumps(config))
    system = {"size": "pretrained"} | ({"init": {"pretrained": text["pretrained"]}} if text else {})
    with pytest.raises(UserError, match=message):
        load_config(study(text, system))


def test_any_language_has_sentencepiece():
    values = smoke_values({"datasets": {"smoke": {"tgt_lang": "ja"}}})
    with pytest.raises(UserError, match="'ja' does not separate words by blanks"):
        load_config(values)
    with pytest.raises(UserError, match="smoke") as error:  # of the corpus, which has no Japanese
        load_config(merge(values, {"text": {"tokenization": "sentencepiece", "truecase": False}}))
    assert "unknown language" not in str(error.value)


def test_show_prints_the_start(tmp_path, capsys):
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(study()))
    assert main(["config", "show", str(file), "sentence_transformer"]) == 0
    assert json.loads(capsys.readouterr().out)["init"] == {"pretrained": "opus"}
    values = study()
    row = {"use_model_of": "sentence_transformer", "instances": "sentences", "decoding": {"beam_size": 12}}
    values["systems"]["wide"] = row
    file.write_text(json.dumps(values))
    assert main(["config", "show", str(file), "wide"]) == 0
    settings = json.loads(capsys.readouterr().out)
    assert (settings["init"], settings["decoding"]["beam_size"]) == ({"pretrained": "opus"}, 12)


def test_published_sizes_have_their_form():
    settings = model_settings(load_config(study()), "sentence_transformer")
    assert settings.form.zero_start
    for size, family in (("opus_mt", "marian"), ("mbart", "mbart")):
        assert SIZES[size]["marks"] == FAMILIES[family].marks
        assert FAMILIES[family].form.items() <= SIZES[size]["form"].items()


def test_model_settings_survive_writing_and_reading():
    assert ModelSettings.load(ModelSettings().model_dump(), where="test") == ModelSettings()
    changed = ModelSettings.load({"form": {"norm": "pre"}}, where="test")
    assert changed.model_dump()["form"]["norm"] == "pre"
    assert ModelSettings.load(changed.model_dump(), where="test") == changed
