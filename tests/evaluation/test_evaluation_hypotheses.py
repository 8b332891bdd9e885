"""Reading hypotheses and references. Files that do not match are refused, with file and line."""

import json

import pytest
from evaluation_fixtures import evaluate, make_hypotheses, write_lines, write_split

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.hypotheses import find_tokenization, read_hypotheses, read_user_hypotheses
from docmt.evaluation.references import read_reference

INDEX = DocumentIndex(("a", "b"), (3, 2))
LINES = [one.model_dump() for one in make_hypotheses(["x", "", "y", "z", "w"], (2, 1, 2))]


def write(path, lines):
    return write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))


def test_reads_what_decoding_writes(tmp_path):
    """Keys that no score reads are allowed, and separators of lines are text."""
    lines = [line | {"score": -0.5, "forced_ends": ends} for line, ends in zip(LINES, [1, 1, 0], strict=True)]
    lines[0]["sentences"] = ["a\u2028b", "c\u0085d\rd"]
    hypotheses = read_hypotheses(write(tmp_path / "h.jsonl", lines), INDEX)
    assert [hypothesis.sentences for hypothesis in hypotheses] == [["a\u2028b", "c\u0085d\rd"], ["y"], ["z", "w"]]
    assert [hypothesis.forced_ends for hypothesis in hypotheses] == [1, 1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:2], "ends after 3 sentences, but the split has 5"),
        (lambda lines: lines[1:], "line 1: expected instance 0, not 1"),
        (
            lambda lines: [lines[0], lines[2] | {"instance": 1}],
            "line 2: begins at sentence 3, not 2",
        ),
        (
            lambda lines: [*lines, lines[2] | {"instance": 3, "first_sentence": 5}],
            "line 4: ends after the last",
        ),
        (lambda lines: [lines[0] | {"document": "c"}, *lines[1:]], "line 1: belongs to document 'c'"),
        (lambda lines: [lines[0] | {"n_sentences": 4, "sentences": ["x"] * 4}, *lines[1:]], "belong to 'b'"),
        (lambda lines: [*lines[:2], lines[2] | {"sentences": ["z"]}], "line 3: 1 sentences for 2 source sentences"),
        (lambda lines: [lines[0] | {"sentences": "x"}, *lines[1:]], "line 1, key 'sentences'"),
        (lambda lines: [{"instance": 0}], "line 1, key 'document': Field required"),
        (lambda lines: [3], "line 1"),
        (lambda lines: [], "ends after 0 sentences"),
    ],
)
def test_misfits_are_refused_in_one_line(tmp_path, change, message):
    path = write(tmp_path / "h.jsonl", change([dict(line) for line in LINES]))
    with pytest.raises(UserError) as caught:
        read_hypotheses(path, INDEX)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_for_each_sentence_keeps_the_alignment(tmp_path):
    found = read_user_hypotheses(write_lines(tmp_path / "h.de", ["1\r", "", "3 \u2028 x", 4, 5]), INDEX)
    assert [one.sentences for one in found] == [["1", "", "3 \u2028 x"], ["4", "5"]]
    assert [(one.instance, one.document, one.first_sentence, one.n_sentences) for one in found] == [
        (0, "a", 0, 3), (1, "b", 3, 2),
    ]  # fmt: skip
    assert all(one.aligned for one in found)


def test_line_per_document_is_not_aligned(tmp_path):
    found = read_user_hypotheses(write_lines(tmp_path / "h.de", ["1 2", "4 5"]), INDEX)
    assert [one.sentences for one in found] == [["1 2"], ["4 5"]]
    assert [one.first_sentence for one in found] == [0, 3]
    assert not any(one.aligned for one in found)
    single = read_user_hypotheses(tmp_path / "h.de", DocumentIndex(("a", "b"), (1, 1)))
    assert [one.aligned for one in single] == [True, True]


@pytest.mark.parametrize("n_lines", [0, 3, 6])
def test_other_numbers_of_lines_are_refused(tmp_path, n_lines):
    with pytest.raises(UserError, match="5 sentences in 2 documents: write one line for each sentence"):
        read_user_hypotheses(write_lines(tmp_path / "h.de", range(n_lines)), INDEX)


def test_own_jsonl_is_checked_and_kept(tmp_path):
    path = write(tmp_path / "h.jsonl", LINES)
    assert [one.model_dump() for one in read_user_hypotheses(path, INDEX)] == LINES
    with pytest.raises(UserError, match="belong"):
        read_user_hypotheses(path, DocumentIndex(("a", "b"), (2, 3)))


def test_the_command_writes_what_scoring_reads(tmp_path):
    texts = write_split(tmp_path, {"a": 3, "b": 2})["texts"]
    given, out = write_lines(tmp_path / "h.de", range(5)), tmp_path / "h.jsonl"
    assert evaluate("import-output", file=given, texts=texts, suite=[], out=out) == 0
    assert read_user_hypotheses(out, INDEX) == read_user_hypotheses(given, INDEX)


def test_reference_of_another_length_is_refused(tmp_path):
    write_split(tmp_path, {"a": 3}, en="123", de="12")
    text = {"prefix": tmp_path / "test_t", "src_lang": "en", "tgt_lang": "de"}
    with pytest.raises(UserError, match=r"t\.de: 2 lines, but .* lists 3 sentences; line 3 has no counterpart"):
        read_reference(**text)
    write_lines(tmp_path / "test_t.de", ["1", "", "3"])
    index, lines = read_reference(**text)
    assert (index.ids, lines) == (("a",), ["1", "", "3"])


CLEAN = ["Es regnet, sagt er.", "Das ist gut.", "Käse & Wein: 3.50 Euro", "Ja ..."]


@pytest.mark.parametrize(
    ("translations", "reference", "problem"),
    [
        (CLEAN, CLEAN, None),
        (["Es reg@@ net, sagt er.", *CLEAN[1:]], CLEAN, "25 % of the sentences have subword marks"),
        (["▁Es ▁regnet", *CLEAN[1:]], CLEAN, "25 % of the sentences have subword marks"),
        ([*CLEAN[:2], "Käse &amp; Wein", "don &apos;t"], CLEAN, "50 % of the sentences have escaped characters"),
        (["Es regnet , sagt er .", "Das ist gut .", *CLEAN[2:]], CLEAN, "50 % of the sentences have a space before a"),
        (["Es regnet , sagt er .", "Das ist gut .", *CLEAN[2:]], ["Es regnet ."] * 4, None),
        ([*CLEAN * 20, "mail an a@@ b"], CLEAN * 20 + [""], None),
        ([], [], None),
    ],
)
def test_tokenized_hypotheses_are_recognized(translations, reference, problem):
    found = find_tokenization(translations, reference)
    assert found == problem or problem in found
