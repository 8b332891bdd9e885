"""Models for other programs: the same output."""

import re
from pathlib import Path

import numpy as np
import pytest
from core_fixtures import DOCUMENTS, translate
from published_models import LINES, make_published

from docmt.cli.main import main
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Source, Translator
from docmt.errors import UserError
from docmt.models.model_file import TrainedModel, load_model, save_model
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.published.exporting import export_ctranslate2, export_marian, is_document_model
from docmt.models.published.importing import import_model
from docmt.models.settings import ModelSettings
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import SPECIALS

MAX_WORDS = 14


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    pytest.importorskip("sentencepiece")
    return make_published(tmp_path_factory.mktemp("marian"), "marian")


@pytest.fixture(scope="module")
def baseline(overfitted):
    """A trained sentence model with words and BPE."""
    return load_model(overfitted("sentence_transformer"))


def greedy(trained: TrainedModel) -> list[list[str]]:
    settings = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=MAX_WORDS, precision="float32")
    sources = [Source([trained.encode(line, "src")]) for line in LINES]
    found = dict(Translator(trained, settings).translate_sources(sources))
    return [trained.vocabulary.decode(found[number].sentences[0]) for number in range(len(sources))]


@pytest.mark.parametrize("name", ["marian", "baseline"])
def test_ctranslate2_translates_alike(name, request, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    trained = request.getfixturevalue(name)
    save_model(tmp_path / "model.pt", trained)
    command = ["models", "export", "--format", "ctranslate2", "--model", f"{tmp_path}/model.pt"]
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    translator = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32", intra_threads=1)
    found = translator.translate_batch(
        [trained.pipeline.prepare(line, lang="en") for line in LINES],
        beam_size=1,
        max_decoding_length=MAX_WORDS,
        min_decoding_length=1,
        suppress_sequences=[[symbol] for symbol in SPECIALS if symbol != "</s>"],
    )
    expected = greedy(trained)
    assert len({tuple(words) for words in expected}) > 5
    assert [result.hypotheses[0] for result in found] == expected


@pytest.mark.parametrize("name", ["marian", "baseline"])
def test_the_five_lines_beside_an_exported_model_translate(name, request, tmp_path, monkeypatch, capsys):
    pytest.importorskip("ctranslate2")
    trained = request.getfixturevalue(name)
    export_ctranslate2(trained, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    (lines,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(encoding="utf-8"), flags=re.S)
    assert lines.count("\n") == 5
    monkeypatch.setattr("builtins.input", lambda: LINES[0])
    exec(compile(lines, "README.md", "exec"), {})
    shown = capsys.readouterr().out.strip()
    assert shown
    assert TextPipeline.load(Path("pipeline.json")).prepare(LINES[0], lang="en") == trained.pipeline.prepare(
        LINES[0], lang="en"
    )
    if name == "baseline":  # it has learned these lines
        assert shown == trained.pipeline.restore(greedy(trained)[0], lang="de")


def test_documents_are_translated_alike(overfitted, tmp_path, monkeypatch, capsys):
    """By the lines beside the exported model, which gives docmt's own output; it has learned these documents."""
    pytest.importorskip("ctranslate2")
    trained = load_model(overfitted("document_transformer"))
    export_ctranslate2(trained, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    readme = Path("README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    settings = DecodingSettings(beam_size=1, precision="float32")
    sources = [Source([trained.encode(line, "src") for line in document]) for document in DOCUMENTS]
    found = dict(Translator(trained, settings).translate_sources(sources))
    for number, document in enumerate(DOCUMENTS):
        monkeypatch.setattr("sys.stdin", document)
        exec(compile(lines, "README.md", "exec"), {})
        words = map(trained.vocabulary.decode, found[number].sentences)
        shown = capsys.readouterr().out.splitlines()
        assert shown == [trained.pipeline.restore(sentence, lang="de") for sentence in words]
        assert shown == [*map(translate, document)]


def test_a_marian_folder_comes_back_as_the_same_model(marian, tmp_path):
    pytest.importorskip("safetensors")
    save_model(tmp_path / "model.pt", marian)
    command = ["models", "export", "--format", "marian", "--model", f"{tmp_path}/model.pt"]
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    again = import_model(tmp_path / "out", languages=("en", "de"))
    assert again.model.settings == marian.model.settings
    assert again.vocabulary.symbols == marian.vocabulary.symbols
    assert greedy(again) == greedy(marian)
    for name, value in marian.model.state_dict().items():
        rows = slice(6, None) if name in ("embedding.weight", "output_bias") else slice(None)
        np.testing.assert_array_equal(again.model.state_dict()[name][rows], value[rows])


def test_transformers_reads_an_exported_folder(marian, tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    export_marian(marian, tmp_path / "out")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    ours = marian.model.state_dict()
    assert torch.equal(theirs.model.shared.weight[6:], ours["embedding.weight"][6:])
    assert torch.equal(theirs.model.decoder.layers[1].fc1.weight, ours["decoder.1.feed_forward.inner.weight"])


def test_what_others_cannot_compute_is_refused(baseline, overfitted, tmp_path, capsys):
    with pytest.raises(UserError, match="use --format ctranslate2"):
        export_marian(baseline, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    model = overfitted("g_transformer")
    for format in ("marian", "ctranslate2"):
        command = ["models", "export", "--format", format, "--model", str(model), "--out", f"{tmp_path}/out"]
        assert main(command) == 2
        assert "this model cannot be exported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("architecture", "more", "is_document"),
    [
        ("sentence_transformer", {}, False),
        ("document_transformer", {}, True),
        ("g_transformer_no_locality", {}, True),
        ("document_transformer", {"positions": "sentence"}, None),
        ("document_transformer_aligned", {}, None),
        ("concatenation", {}, None),
        ("g_transformer_only_group", {}, None),  # its positions run through the instance
        ("rst_mix", {}, None),
        ("han", {}, None),
    ],
)
def test_only_plain_transformers_are_exported(architecture, more, is_document):
    settings = ModelSettings.model_validate(SIZES["tiny"] | ARCHITECTURES[architecture] | more)
    if is_document is None:
        with pytest.raises(UserError, match="cannot be exported"):
            is_document_model(settings)
    else:
        assert is_document_model(settings) is is_document


def test_a_model_with_other_marks_is_refused_by_ctranslate2(tmp_path):
    pytest.importorskip("sentencepiece")
    pytest.importorskip("ctranslate2")
    with pytest.raises(UserError, match="marks that CTranslate2 does not add"):
        export_ctranslate2(make_published(tmp_path, "m2m_100"), tmp_path / "out")
