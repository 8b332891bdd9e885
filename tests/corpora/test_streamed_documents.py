"""Documents that are processed one by one lead to the same files and counts as all documents in memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmt.cli.main import main
from docmt.corpora.combining import Overlap
from docmt.corpora.documents import (
    Document,
    iterate_documents,
    iterate_index,
    read_documents,
    read_index,
    write_documents,
)
from docmt.errors import UserError
from docmt.files import write_lines

EN_DE = ["en", "de"]
TEXT = st.sampled_from(["", "a", "b", "c d", "e\u2028f"])
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5)


def documents_of(pairs_of):
    return [Document(f"d{i}", tuple(zip(*pairs, strict=True))) for i, pairs in enumerate(pairs_of)]


def plain_overlap(train, test):
    """Overlap, computed from sets of all training sentences and pairs."""
    sources = {sentence for document in train for sentence in document.src if sentence}
    pairs = {pair for document in train for pair in zip(document.src, document.tgt, strict=True) if all(pair)}
    seen = [sum(sentence in sources for sentence in document.src) for document in test]
    n_pairs = sum(pair in pairs for document in test for pair in zip(document.src, document.tgt, strict=True))
    return sum(seen), n_pairs, [d.id for d, n in zip(test, seen, strict=True) if n > 0.5 * len(d)]


@settings(deadline=None)
@given(st.lists(PAIRS, max_size=5), st.lists(st.lists(PAIRS, max_size=4), min_size=1, max_size=3))
def test_the_overlap_is_that_of_whole_sets(train, tests):
    train, tests = documents_of(train), [documents_of(test) for test in tests]
    overlap = Overlap.of_tests(tests)
    overlap.add(iter(train[:2]))
    overlap.add(iter(train[2:]))
    assert (overlap.documents, overlap.sentences) == (len(train), sum(map(len, train)))
    for test in tests:
        counts = overlap.count(test)
        numbers = counts["seen_sources"], counts["seen_pairs"], counts["seen_document_ids"]
        assert numbers == plain_overlap(train, test)


def test_documents_are_read_one_at_a_time(tmp_path):
    expected = documents_of([[("", "")], [("a", "b")] * 1000, [("word " * 10_000, "w"), ("", "x")]])
    write_documents(tmp_path / "x", iter(expected), languages=EN_DE)
    stream = iterate_documents(tmp_path / "x", languages=EN_DE)
    assert next(stream) == expected[0]
    assert list(stream) == expected[1:] == read_documents(tmp_path / "x", languages=EN_DE)[1:]


@pytest.fixture
def corpora(tmp_path):
    """Two corpora with two documents each."""
    for name in ("one", "two"):
        write_documents(
            tmp_path / name / "train", documents_of([[("a", "A"), ("", "")], [("b", "B")]]), languages=EN_DE
        )
    return tmp_path


def combine(folder):
    inputs = [str(folder / name / "train") for name in ("one", "two")]
    return main(["corpora", "combine", "--inputs", *inputs, "--languages", *EN_DE, "--out", str(folder / "set/train")])


@pytest.mark.parametrize("lang", EN_DE)
@pytest.mark.parametrize("lines", [["a", ""], ["a", "", "b", "c", "d"], []])
def test_unequal_sides_leave_no_file(corpora, capsys, lang, lines):
    write_lines(corpora / f"two/train.{lang}", lines)
    assert combine(corpora) == 2
    error = capsys.readouterr().err
    index = corpora / "two/train.documents.tsv"
    assert f"{corpora}/two/train.{lang}: {len(lines)} lines, but {index} has 3 sentences" in error
    assert error.count("docmt: error:") == error.count("\n") == 1
    assert not [path for path in (corpora / "set").rglob("*") if path.is_file()]


@pytest.mark.parametrize("is_collision", [False, True])
def test_duplicate_id_is_found_despite_collisions(tmp_path, monkeypatch, is_collision):
    if is_collision:
        monkeypatch.setattr("docmt.corpora.documents.hash", lambda name: 7, raising=False)
    write_lines(tmp_path / "good", ["document\tn_sentences", "x\t1", "y\t2", "z\t1"])
    assert list(iterate_index(tmp_path / "good")) == [("x", 1), ("y", 2), ("z", 1)]
    write_lines(tmp_path / "bad", ["document\tn_sentences", "x\t1", "y\t1", "z\t1", "z\t1", "y\t2"])
    with pytest.raises(UserError, match="duplicate document id 'y'"):
        read_index(tmp_path / "bad")


def test_sides_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="document a: 1 source and 2 target sentences"):
        Document("a", (("One.",), ("Eins.", "Zwei.")))


def test_a_line_end_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="line end"):
        write_documents(tmp_path / "x", [Document("a", (("A\nB",),))], languages=["en"])
