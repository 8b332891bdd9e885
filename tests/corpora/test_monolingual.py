"""Monolingual documents. Commands read and combine them, and refuse bad files."""

import json
from pathlib import Path

import pytest
from hostile_files import tar_of
from reading import parse, refusal, texts

from docmt.cli.main import main
from docmt.corpora.catalog import find_corpus
from docmt.corpora.documents import Document, read_documents, write_documents
from docmt.corpora.mirror import check_corpus


def archive(**files):
    return tar_of({f"dep/{name}.conllu": content for name, content in files.items()}, "w:gz")


def test_json_lines(tmp_path):
    lines = [{"id": "a", "sentences": [" One\ttwo. ", "", "Zürich\u2028."]}, {"id": "b", "sentences": []}]
    lines += [{"id": "a", "sentences": ["Again."]}]
    documents, counts = parse(
        tmp_path, {"en": "".join(json.dumps(line) + "\n" for line in lines)}, ["en"], reader="jsonl"
    )
    assert texts(documents) == [("a", ["One two.", "", "Zürich\u2028."]), ("a#2", ["Again."])]
    assert counts.as_dict(n_sides=1) == {
        "documents": 2,
        "sentences": 4,
        "one_sentence_documents": 1,
        "empty_documents": 1,
        "joined_sentences": 1,
        "empty_sentences": 1,
        "dropped": {},
    }


SUFFIXES = {"conllu": ".tar"}
TREEBANK = {
    "z": "# newdoc id = b\n# text = Four.\n# newdoc id = c\n# text = Five.\n",
    "a": "# newdoc id = a\n# sent_id = 1\n# text = One two.\n1\tOne\n\n# newpar\n# text = Three.\n1\tThree\n\n",
}


@pytest.mark.parametrize(
    ("reader", "content", "expected"),
    [
        ("blank_lines", "\nA\r\nB\r\n\r\n\r\nC\r\n", [("00001", ["A", "B"]), ("00002", ["C"])]),
        ("marked_lines", "<d>\nA\n\n<d>\n<d>\nC\n", [("00001", ["A", ""]), ("00003", ["C"])]),
        ("conllu", archive(**TREEBANK), [("a", ["One two.", "Three."]), ("b", ["Four."]), ("c", ["Five."])]),
    ],
)
def test_lines_and_treebanks(tmp_path, reader, content, expected):
    documents, _ = parse(tmp_path, {"en": content}, ["en"], reader=reader, suffix=SUFFIXES.get(reader, ""))
    assert texts(documents) == expected


@pytest.mark.parametrize(
    ("reader", "content", "part"),
    [
        ("jsonl", '{"id": "a"}\n', "line 1: document a: `sentences` must be a list"),
        ("jsonl", '{"id": "a", "sentences": ["A"]}\n{"id": 3}\n', "line 2: must be an object with"),
        ("jsonl", "", "contains no sentences"),
        ("blank_lines", "\n\n", "contains no sentences"),
        ("marked_lines", "A\n", "before the first '<d>' line"),
        ("single_lines", "A\n", "does not support documents in one language"),
        ("conllu", "A\n", "not a tar"),
        ("conllu", archive(a="# text = One.\n"), "before the first `# newdoc`"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, reader, content, part):
    assert part in refusal(tmp_path, {"en": content}, ["en"], reader=reader, suffix=SUFFIXES.get(reader, ""))


def test_read_and_combine_on_the_command_line(tmp_path, monkeypatch):
    def run(command, *more):
        return main(["corpora", *command.split(), *more])

    monkeypatch.chdir(tmp_path)
    Path("text.en").write_text("A\nB\n\nC\n")
    splits = {"all": {"files": {"en": "text.en"}}}
    spec = json.dumps({"languages": ["en"], "format": {"reader": "blank_lines"}, "splits": splits})
    assert run("read --languages en --split all --out novels/en/all --spec", spec) == 0
    assert json.loads(Path("novels/en/all.counts.json").read_text())["documents"] == 2
    Path("talks/de-en").mkdir(parents=True)
    write_documents(Path("talks/de-en/dev"), [Document("t", (("X",), ("Y",)))], languages=["de", "en"])
    inputs = ("novels/en/all", "talks/de-en/dev")
    assert run("combine --languages en --out out/monolingual --inputs", *inputs) == 0
    assert texts(read_documents(Path("out/monolingual"), languages=["en"])) == [
        ("novels.all/00001", ["A", "B"]),
        ("novels.all/00002", ["C"]),
        ("talks.dev/t", ["Y"]),
    ]
    assert json.loads(Path("out/monolingual.counts.json").read_text()) == {
        "documents": 3,
        "sentences": 4,
        "inputs": {"novels.all": {"documents": 2, "sentences": 3}, "talks.dev": {"documents": 1, "sentences": 1}},
    }
    assert run("combine --languages en --out out/monolingual --inputs", *inputs, inputs[0]) == 2


def test_a_licensed_corpus_put_in_place_is_read(tmp_path):
    (tmp_path / "ldc/gigaword").mkdir(parents=True)
    (tmp_path / "ldc/gigaword/en.jsonl").write_text('{"id": "a", "sentences": ["A", "B"]}\n')
    (result,) = check_corpus(find_corpus("gigaword-en"), tmp_path)
    assert (result.state, result.documents, result.sentences) == ("ok", 1, 2)
