"""Documents of one language: reading and combining them, and refusing bad files."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from reading import parse, texts

from docmt.cli.main import main
from docmt.corpora.catalog import find_corpus
from docmt.corpora.documents import Document, read_documents, write_documents
from docmt.corpora.mirror import check_corpus
from docmt.errors import UserError


def archive(**files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"dep/{name}.conllu")
            member.size = len(content.encode("utf-8"))
            tar.addfile(member, io.BytesIO(content.encode("utf-8")))
    return data.getvalue()


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


@pytest.mark.parametrize(
    ("form", "content", "expected"),
    [
        ({"reader": "blank_lines"}, "\nA\r\nB\r\n\r\n\r\nC\r\n", [("00001", ["A", "B"]), ("00002", ["C"])]),
        ({"reader": "marked_lines"}, "<d>\nA\n\n<d>\n<d>\nC\n", [("00001", ["A", ""]), ("00003", ["C"])]),
    ],
)
def test_lines(tmp_path, form, content, expected):
    assert texts(parse(tmp_path, {"en": content}, ["en"], **form)[0]) == expected


def test_sentences_of_a_treebank(tmp_path):
    first = "# newdoc id = a\n# sent_id = 1\n# text = One two.\n1\tOne\n\n# newpar\n# text = Three.\n1\tThree\n\n"
    second = "# newdoc id = b\n# text = Four.\n# newdoc id = c\n# text = Five.\n"
    documents, _ = parse(tmp_path, {"en": archive(z=second, a=first)}, ["en"], reader="conllu")
    assert texts(documents) == [("a", ["One two.", "Three."]), ("b", ["Four."]), ("c", ["Five."])]


@pytest.mark.parametrize(
    ("form", "content", "part"),
    [
        ({"reader": "jsonl"}, '{"id": "a"}\n', "line 1: document a: `sentences` must be a list"),
        ({"reader": "jsonl"}, '{"id": "a", "sentences": ["A"]}\n{"id": 3}\n', "line 2: must be an object with"),
        ({"reader": "jsonl"}, "", "contains no sentences"),
        ({"reader": "blank_lines"}, "\n\n", "contains no sentences"),
        ({"reader": "marked_lines"}, "A\n", "before the first '<d>' line"),
        ({"reader": "single_lines"}, "A\n", "cannot hold documents in one language"),
        ({"reader": "conllu"}, "A\n", "not a tar"),
        ({"reader": "conllu"}, archive(a="# text = One.\n"), "before the first `# newdoc id =`"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, form, content, part):
    with pytest.raises(UserError) as caught:
        parse(tmp_path, {"en": content}, ["en"], **form)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


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
