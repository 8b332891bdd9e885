"""The catalog of published models: entries, fetching from a mirror, and import by name."""

import json

import pytest
from published_models import LINES, write_model

from docmt.checksums import sha256_file
from docmt.cli.main import main
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.models.model_file import load_model
from docmt.models.published.catalog import CONFIG, ModelEntry, find_model, load_models, study_folder
from docmt.models.published.importing import import_model
from docmt.text.published_text import MODEL_FILES, TEXT_FILES

pytest.importorskip("sentencepiece")

NAME = "opus-mt-en-de"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror with a tiny model instead of a published one. The current folder is an empty study."""
    folder = tmp_path / "mirror/models" / NAME
    folder.mkdir(parents=True)
    write_model(folder, "marian")
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setenv("DOCMT_MIRROR", str(tmp_path / "mirror"))
    return folder


def test_entries_pin_all_files():
    for name, entry in load_models().items():
        sources = entry.sources()
        assert list(sources)[-1] == CONFIG, "config.json stands for all files, so it comes last"
        assert {"pytorch_model.bin", "model.safetensors"} & set(sources)
        assert {"source.spm", "sentencepiece.bpe.model"} & set(sources), name
        assert {"vocab.json", "tokenizer.json"} & set(sources), name
        assert len(entry.version) == 40
        for file, source in sources.items():
            (address,) = source.addresses
            assert address.url.endswith(f"/resolve/{entry.version}/{file}")
    assert "non-commercial" in find_model("nllb-200-distilled-600M").license
    assert find_model("nllb-200-distilled-600M").terms == "noncommercial"
    assert all("*" in name or name == CONFIG or name == "vocab.json" for name in (*TEXT_FILES, *MODEL_FILES))


def test_the_list_says_size_kind_and_license(capsys):
    assert main(["models", "list"]) == 0
    table = capsys.readouterr().out
    assert "opus-mt-zh-en" in table
    assert "CC BY-NC 4.0" in table
    assert main(["models", "list", "--json"]) == 0
    rows = {row["model"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(load_models())
    assert rows[NAME]["languages"] == "en-de"
    assert rows[NAME]["kind"] == "download"


def test_a_name_is_fetched_and_imported(mirror, tmp_path, capsys):
    assert main(["models", "import", NAME, "--out", "model.pt"]) == 0
    assert "license: CC BY 4.0" in capsys.readouterr().err
    version = find_model(NAME).version
    assert load_model(tmp_path / "study/model.pt").provenance["imported"] == f"{NAME}/{version}"
    trained, expected = load_model(tmp_path / "study/model.pt"), import_model(mirror, languages=("en", "de"))
    settings = DecodingSettings(beam_size=1)
    texts = [[line] for line in LINES[:5]]
    assert Translator(trained, settings).translate_documents(texts) == (
        Translator(expected, settings).translate_documents(texts)
    )


def test_changed_file_is_refused(mirror, tmp_path, capsys):
    assert main(["models", "fetch", "--model", NAME]) == 0
    folder = tmp_path / "study" / study_folder(NAME)
    record = json.loads((folder / "fetched.json").read_text(encoding="utf-8"))
    assert record == dict.fromkeys(find_model(NAME).sources(), "mirror")
    for name in record:
        noted = (folder / ".checksums" / f"{name}.sha256").read_text(encoding="ascii")
        assert noted == f"{sha256_file(mirror / name)}  {name}\n"
    weights = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(weights[:-1])
    assert main(["models", "fetch", "--model", NAME]) == 2
    assert "pytorch_model.bin: was changed after docmt wrote it" in capsys.readouterr().err
    (folder / "pytorch_model.bin").unlink()
    assert main(["models", "fetch", "--model", NAME]) == 0
    assert (folder / "pytorch_model.bin").read_bytes() == weights


def test_a_published_checksum_is_checked(mirror, tmp_path, monkeypatch, capsys):
    entry = find_model(NAME).model_copy(update={"sha256": {"vocab.json": "0" * 64}, "url": None, "obtain": "the model"})
    monkeypatch.setitem(load_models(), NAME, entry)
    assert main(["models", "fetch", "--model", NAME]) == 2
    assert "the checksum differs" in capsys.readouterr().err
    assert not (tmp_path / "study" / study_folder(NAME) / CONFIG).exists()


def test_what_no_address_serves_is_obtained_by_hand(mirror, tmp_path, monkeypatch, capsys):
    entry = find_model(NAME).model_copy(update={"url": None, "obtain": "the model after accepting its license"})
    monkeypatch.setitem(load_models(), NAME, entry)
    (mirror / "source.spm").unlink()
    assert main(["models", "fetch", "--model", NAME]) == 2
    assert (
        f"obtain the model after accepting its license, and put it at {study_folder(NAME)}/source.spm"
        in capsys.readouterr().err
    )
    (mirror / "target.spm").rename(tmp_path / "study" / study_folder(NAME) / "source.spm")
    (mirror / "target.spm").write_bytes((tmp_path / "study" / study_folder(NAME) / "source.spm").read_bytes())
    assert main(["models", "fetch", "--model", NAME]) == 0
    assert main(["models", "list"]) == 0
    assert "manual" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": None}, "needs `addresses`, or instructions in `obtain`"),
        ({"sha256": {"other": "0" * 64}}, "'other', which is not under `files`"),
        ({"sha256": {"vocab.json": "0"}}, "sha256: must match"),
    ],
)
def test_entries_that_do_not_fit_are_named(change, message):
    with pytest.raises(UserError, match=message):
        ModelEntry.load(find_model(NAME).model_dump() | change, where="catalog")


def test_unknown_names_are_answered_with_the_nearest(mirror, capsys):
    assert main(["models", "fetch", "--model", "opus-mt-en-dd"]) == 2
    assert f"did you mean '{NAME}'?" in capsys.readouterr().err
    assert main(["models", "import", "opus-mt-en-dd", "--out", "model.pt"]) == 2
    assert "opus-mt-en-dd: no such folder" in capsys.readouterr().err


def test_a_folder_of_the_name_comes_first(mirror, tmp_path):
    mirror.rename(tmp_path / "study" / NAME)
    assert main(["models", "import", NAME, "--out", "model.pt"]) == 0
    assert not (tmp_path / "study/resources").exists()
