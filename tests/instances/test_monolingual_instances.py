"""Monolingual instances: pieces of documents, with one side on disk, ready for noise."""

import numpy as np
import pytest
from core_fixtures import build_and_load
from hypothesis import given, settings
from hypothesis import strategies as st

from docmt.checksums import sha256_file
from docmt.cli.main import main
from docmt.corpora.documents import INDEX_HEADER, DocumentIndex
from docmt.errors import UserError
from docmt.files import read_json, write_lines
from docmt.instances.restoration import Noise, RestorationSymbols
from docmt.instances.settings import InstancesSettings, RestorationSettings
from docmt.instances.storage import load_instances
from docmt.text.vocabulary import Vocabulary, extra_specials

WORDS = ["a", "b", "c@@", "d"]
VOCABULARY = Vocabulary.from_sentences([WORDS], extras=extra_specials(["en", "de"]))
SENTENCES = st.lists(st.sampled_from([*WORDS, "unknown", "[MASK1]"]), max_size=6)


def build(documents, *, is_parallel=False, out=None, **values):
    """Instances from a monolingual text, or from a parallel text with two equal sides."""
    index = DocumentIndex(tuple(f"d{i}" for i in range(len(documents))), tuple(map(len, documents)))
    sentences = [sentence for document in documents for sentence in document]
    tgt = sentences if is_parallel else None
    return build_and_load(sentences, tgt, index, VOCABULARY, InstancesSettings(**values), out=out)


@pytest.mark.slow
@settings(deadline=None)
@given(
    documents=st.lists(st.lists(SENTENCES, min_size=1, max_size=9), min_size=1, max_size=4),
    max_sentences=st.none() | st.integers(1, 5),
    max_tokens=st.integers(8, 30),
)
def test_pieces_equal_those_of_parallel_documents(documents, max_sentences, max_tokens):
    limits = {"max_sentences": max_sentences, "max_tokens": max_tokens}
    built, expected = (build(documents, is_parallel=is_parallel, **limits) for is_parallel in (False, True))
    for name in ("src_tokens", "src_offsets", "tgt_tokens", "tgt_offsets", "instances", "documents"):
        assert np.array_equal(getattr(built, name), getattr(expected, name))
    counts = built.manifest["counts"]
    assert counts == counts | expected.manifest["counts"]
    n_pieces = np.bincount(built.documents)
    assert counts["documents_split"] == (n_pieces > 1).sum()


def test_one_side_is_stored_and_both_come_back(tmp_path):
    built = build([[["a", "b"], [], ["d"]]] * 3, max_sentences=30, out=tmp_path / "mono")
    names = sorted(path.name for path in (tmp_path / "mono").iterdir())
    arrays = ["documents.npy", "instances.npy", "manifest.json", "src_offsets.npy", "src_tokens.npy"]
    assert names == [".checksums", "document_ids.txt", *arrays]
    loaded = load_instances(tmp_path / "mono")
    assert loaded.tgt_tokens is loaded.src_tokens
    assert np.array_equal(loaded.n_tokens(), built.n_tokens())
    noised = Noise(RestorationSettings(), RestorationSymbols.of(VOCABULARY), 1).apply(loaded, np.array([2, 0]), epoch=0)
    assert noised.n_sentences().tolist() == [3, 3]
    assert noised.src_tokens.tolist().count(VOCABULARY.masks()[0]) == 2


@pytest.fixture
def files(tmp_path):
    write_lines(tmp_path / "texts", ["a b", "", "d"])
    write_lines(tmp_path / "documents", [INDEX_HEADER, "x\t2", "y\t1"])
    VOCABULARY.save(tmp_path / "vocabulary")
    return tmp_path


def arguments(folder, **changes):
    values = {name: folder / name for name in ("texts", "documents", "vocabulary", "out")} | changes
    return ["instances", "build", *(str(part) for name in values for part in (f"--{name}", values[name]))]


def test_build_on_the_command_line(files):
    assert main(arguments(files, settings='{"max_sentences": 1}')) == 0
    manifest = read_json(files / "out/manifest.json")
    assert manifest["monolingual"]
    assert manifest["counts"]["instances"] == 3
    assert manifest["provenance"]
    assert manifest["vocabulary_sha256"] == sha256_file(files / "vocabulary")
    assert len(load_instances(files / "out")) == 3


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("texts", ["a"], "texts: 1 lines, but {folder}/documents lists 3 sentences"),
        ("texts", [], "the text is empty"),
        ("vocabulary", None, "no [MASK1] and [MASK2]"),
    ],
)
def test_bad_files_are_named_in_one_line(files, capsys, name, lines, message):
    if lines is None:
        Vocabulary.from_symbols(WORDS).save(files / name)
    else:
        write_lines(files / name, lines)
    assert main(arguments(files)) == 2
    error = capsys.readouterr().err
    assert message.format(folder=files) in error
    assert str(files / name) in error
    assert error.count("\n") == 1
    assert not (files / "out").exists()


def test_an_index_of_other_sentences_is_refused():
    with pytest.raises(UserError, match="1 lines, but the document index lists 2"):
        build_and_load([["a"]], None, DocumentIndex(("x",), (2,)), VOCABULARY, InstancesSettings())
