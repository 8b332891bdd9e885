"""Datasets from mtdata, fetched by a stand-in for its Python with the same interface."""

import pytest
from mtdata_standin import make_python

from docmt.cli.main import main
from docmt.corpora.mtdata_corpus import MtdataCorpus, fetch_mtdata
from docmt.errors import UserError
from docmt.files import read_json, read_lines

EUROPARL = "Statmt-europarl-10-deu-eng"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return make_python(tmp_path_factory.mktemp("python"))


@pytest.mark.parametrize(
    ("name", "documents", "ids"),
    [
        (EUROPARL, "doc_id", ["ep-0"] * 3 + ["ep-1"] * 3),
        ("Statmt-news_commentary-18-deu-eng", "blank_lines", ["000001"] * 4 + ["000002"] * 2),
        (EUROPARL, None, [f"{number:08d}" for number in range(1, 7)]),
    ],
)
def test_rows_keep_documents_and_origin(python, tmp_path, name, documents, ids):
    fetch_mtdata(MtdataCorpus(id=name, documents=documents, python=python), tmp_path / "all.tsv")
    expected = [f"{document}\tSatz {number}.\tSentence {number}." for number, document in enumerate(ids)]
    if documents == "blank_lines":
        expected[-1] = "000002\terror\terror"
    assert read_lines(tmp_path / "all.tsv") == expected
    origin = read_json(tmp_path / "all.json")
    assert origin["id"] == name
    assert origin["citations"] == (["@misc{europarl}"] if name == EUROPARL else [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id": EUROPARL, "documents": "paragraph"}, "row 1 has no field 'paragraph'; its fields: doc_id"),
        ({"id": "OPUS-broken-1-deu-eng"}, "OPUS-broken-1-deu-eng cannot be fetched"),
        ({"id": "OPUS-killed-1-deu-eng"}, "OPUS-killed-1-deu-eng cannot be fetched"),
        (
            {"id": "Statmt-europarl-11-deu-eng"},
            r"-deu-eng is not in mtdata \(LookupError: .* 0\.5\.1\): `mtdata list -id` prints all ids$",
        ),
        (
            {"id": "Statmt-Europarl-10-deu-eng"},
            r"-deu-eng is not in mtdata \(AssertionError: name must be in lower case\): `mtdata list -id`",
        ),
        (
            {"id": "OPUS-offline-1-deu-eng"},
            r"-deu-eng cannot be downloaded \(OSError: no route to host\): try again later, or declare files of yours",
        ),
        (
            {"id": "OPUS-blank-1-deu-eng"},
            r"-deu-eng cannot be parsed by mtdata \(IndexError: .*\): declare its files in `corpora\.custom`: blank$",
        ),
        ({"id": EUROPARL, "python": "/no/python"}, "/no/python: cannot be started"),
    ],
)
def test_failures_are_errors_that_leave_no_file(python, tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        fetch_mtdata(MtdataCorpus(**{"python": python} | settings), tmp_path / "all.tsv")
    assert not (tmp_path / "all.tsv").exists()


def test_a_fetched_corpus_is_read_like_others(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = MtdataCorpus(id=EUROPARL, documents="doc_id", python=python)
    assert main(["corpora", "fetch-mtdata", "--settings", corpus.model_dump_json(), "--out", corpus.file]) == 0
    spec = corpus.as_corpus().model_dump_json()
    assert main(["corpora", "read", "--spec", spec, "--split", "all", "--languages", "en", "de", "--out", "all"]) == 0
    assert read_lines(tmp_path / "all.documents.tsv")[1:] == ["ep-0\t3", "ep-1\t3"]
    assert read_lines(tmp_path / "all.de")[0] == "Satz 0."
