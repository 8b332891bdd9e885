"""Commands of `docmt corpora`, from the command line to the files."""

import json
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.corpora.documents import Document, read_documents, write_documents

EN_DE = ["--languages", "en", "de"]
FILES = {"en": "text.en", "de": "text.de"}


def run(command: str, *more: str) -> int:
    return main(["corpora", *command.split(), *more])


def spec(**changes) -> str:
    form = {"reader": "marked_lines"}
    return json.dumps({"languages": ["en", "de"], "format": form, "splits": {"train": {"files": FILES}}} | changes)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path) -> Path:
    (tmp_path / "text.en").write_text("<d>\r\nA\r\n\r\n<d>\r\nB\r\n", newline="")
    (tmp_path / "text.de").write_text("<d>\nX\nY\n<d>\nZ\n")
    return tmp_path


def test_read_writes_text_index_and_counts(files):
    out = files / "out" / "train"
    assert run(f"read --split train --languages en de --files {files} --out out/train --spec", spec()) == 0
    written = {path.name for path in out.parent.iterdir()}
    assert written == {".checksums", "train.counts.json", "train.de", "train.documents.tsv", "train.en"}
    assert (out.parent / "train.en").read_text() == "A\n\nB\n"
    assert (out.parent / "train.documents.tsv").read_text() == "document\tn_sentences\n00001\t2\n00002\t1\n"
    counts = json.loads((out.parent / "train.counts.json").read_text())
    assert (counts["documents"], counts["sentences"], counts["empty_source"]) == (2, 3, 1)


def test_read_turns_the_direction(files):
    (files / "spec.json").write_text(spec())
    assert run("read --spec @spec.json --split train --languages de en --out train") == 0
    assert read_documents(files / "train", languages=["de", "en"])[0] == Document("00001", (("X", "Y"), ("A", "")))
    counts = json.loads((files / "train.counts.json").read_text())
    assert (counts["empty_source"], counts["empty_target"]) == (0, 1)


@pytest.mark.parametrize(
    ("value", "more", "part"),
    [
        (spec(splits={"train": {"files": FILES, "sentences": 4}}), EN_DE, "3 sentences, but 4 are expected"),
        (spec(splits={"train": {"files": FILES, "documents": 4}}), EN_DE, "2 documents, but 4 are expected"),
        (spec(splits={"train": {"files": {"en": "text.en", "de": "none.de"}}}), EN_DE, "none.de: no such file"),
        (spec(splits={}), EN_DE, "no split 'train'"),
        (spec(), [*EN_DE, "fr"], "is in en and de, not en and de and fr"),
        (spec(), ["--languages", "en"], "is in en and de, not en:"),
        (spec(), ["--languages", "en", "en"], "is in en and de, not en and en"),
        (spec(), ["--languages", "en", "fr"], "is in en and de, not en and fr"),
        (spec(format={"reader": "files"}), EN_DE, "no parallel documents"),
        (spec(format={"reader": "marked_lines", "markr": "x"}), EN_DE, "markr"),
        ("{", EN_DE, "--spec: not JSON"),
    ],
)
def test_read_refuses_with_one_line_and_writes_nothing(files, capsys, value, more, part):
    assert run("read --split train --out out/train --spec", value, *more) == 2
    error = capsys.readouterr().err.strip()
    assert part in error
    assert error.count("docmt: error:") == 1
    assert "\n" not in error
    assert not (files / "out").exists()


def write(prefix: Path, *documents: Document) -> None:
    write_documents(prefix, documents, languages=["en", "de"])


def test_combine_names_documents_by_their_source(tmp_path):
    write(tmp_path / "one" / "train", Document("1", (("a", ""), ("b", "c"))))
    write(tmp_path / "two" / "en-de" / "train", Document("1", (("d",), ("e",))))
    assert run("combine --inputs one/train two/en-de/train --languages en de --out set/train") == 0
    assert read_documents(tmp_path / "set" / "train", languages=["en", "de"]) == [
        Document("one.train/1", (("a", ""), ("b", "c"))),
        Document("two.train/1", (("d",), ("e",))),
    ]
    counts = json.loads((tmp_path / "set" / "train.counts.json").read_text())
    assert (counts["documents"], counts["sentences"]) == (2, 3)
    assert counts["inputs"]["one.train"] == {"documents": 1, "sentences": 2}


def test_combine_refuses_an_input_twice(tmp_path, capsys):
    write(tmp_path / "one" / "train", Document("1", (("a",), ("b",))))
    assert run(f"combine --inputs one/train {tmp_path}/./one/train --languages en de --out set/train") == 2
    assert "already among the inputs" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("languages", ["en en", "en de fr"])
def test_combine_refuses_other_than_one_or_two_languages(tmp_path, capsys, languages):
    write(tmp_path / "one" / "train", Document("1", (("a",), ("b",))))
    assert run(f"combine --inputs one/train --out x --languages {languages}") == 2
    assert "expected one language, or two different ones" in capsys.readouterr().err


def test_overlap_counts_sentences_pairs_and_documents(tmp_path, capsys):
    write(tmp_path / "train", Document("t", (("a", "b", "", "c"), ("A", "B", "", "C"))))
    write(
        tmp_path / "test_x",
        Document("seen", (("a", "b", "new"), ("A", "other", "N"))),
        Document("half", (("a", "new"), ("A", "N"))),
        Document("empty", (("", ""), ("", ""))),
    )
    write(tmp_path / "dev", Document("d", (("z",), ("Z",))))
    out = tmp_path / "overlap.json"
    command = "count-overlap --tests test_x dev --src-lang en --tgt-lang de --out overlap.json --train"
    assert run(command, "train") == 0
    assert "42.9 % of the source sentences of test_x are in the training text" in (said := capsys.readouterr().err)
    assert "dev are" not in said
    overlap = json.loads(out.read_text())
    assert overlap["train"] == {"documents": 1, "sentences": 4}
    assert overlap["tests"]["test_x"] == {
        "documents": 3,
        "sentences": 7,
        "seen_sources": 3,
        "seen_sources_percent": 42.86,
        "seen_pairs": 2,
        "seen_pairs_percent": 28.57,
        "seen_documents": 1,
        "seen_documents_percent": 33.33,
        "seen_document_ids": ["seen"],
    }
    assert overlap["tests"]["dev"]["seen_sources"] == 0
    write(tmp_path / "sentences", Document("s", (("z",), ("other",))))
    assert run(command, "train", "sentences") == 0
    both = json.loads(out.read_text())
    assert both["train"] == {"documents": 2, "sentences": 5}
    assert both["tests"]["dev"]["seen_sources"] == 1
    assert both["tests"]["test_x"] == overlap["tests"]["test_x"]


def test_list_prints_the_catalog(capsys):
    assert run("list --json") == 0
    rows = {(row["corpus"], row["split"]): row for row in json.loads(capsys.readouterr().out)}
    assert rows["maruf2019-ted", "test"]["sentences"] == 2271
    assert rows["ldc-zhen", "train"]["kind"] == "manual"
    assert run("list") == 0
    assert "8,967" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("fetch --corpus gigaword-en --out out", "LDC2012T21"),
        ("fetch --corpus maruf2019-ted --out out --mirror none", "no such folder"),
        ("fetch --corpus nothing --out out", "no corpus 'nothing'"),
        ("check", "--mirror DIR"),
        ("convert-suite --corpus contrapro-items-ende --split cat --files out --out out/x", "no wrong translations"),
        (
            "read --corpus voita2019-suites-enru --split dev --languages en ru --out out/x",
            "docmt corpora convert-suite",
        ),
    ],
)
def test_impossible_requests_get_one_line(monkeypatch, capsys, arguments, part):
    monkeypatch.delenv("DOCMT_MIRROR", raising=False)
    assert run(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert part in error[-1]
    assert error[-1].startswith("docmt: error:")


def test_check_shows_bad_and_absent_files_and_fails(tmp_path, capsys):
    folder = tmp_path / "mirror" / "bcontrast-ende"
    folder.mkdir(parents=True)
    (folder / "train.json").write_text("{}")
    assert run("check --corpora bcontrast-ende --mirror mirror") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines[2:]] == ["bad", "absent", "absent"]
    assert "checksum differs" in lines[2]
