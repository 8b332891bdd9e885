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


REFERENCE = ["Der Hund schläft.", "Er ist müde.", "Es regnet heute.", "Wir gehen.", "Bis morgen!"]


def read_lines_of_user(folder, lines, index=INDEX, reference=REFERENCE, **options):
    path = write_lines(folder / "h.de", lines)
    return read_user_hypotheses(path, index, reference, tgt_lang="de", **options)


def test_a_line_for_each_sentence_keeps_the_alignment(tmp_path):
    hypotheses = read_lines_of_user(tmp_path, ["Ein Hund\r", "", "Regen \u2028 heute", "Wir gehen.", "Morgen"])
    assert [hypothesis.sentences for hypothesis in hypotheses] == [
        ["Ein Hund", "", "Regen \u2028 heute"], ["Wir gehen.", "Morgen"],
    ]  # fmt: skip
    assert [(one.instance, one.document, one.first_sentence, one.n_sentences) for one in hypotheses] == [
        (0, "a", 0, 3), (1, "b", 3, 2),
    ]  # fmt: skip
    assert all(one.aligned and not one.realigned_lines for one in hypotheses)


def test_line_per_document_is_not_aligned(tmp_path):
    hypotheses = read_lines_of_user(tmp_path, ["1 2", "4 5"])
    assert [one.sentences for one in hypotheses] == [["1 2"], ["4 5"]]
    assert [one.first_sentence for one in hypotheses] == [0, 3]
    assert not any(one.aligned for one in hypotheses)
    single = read_lines_of_user(tmp_path, ["1 2", "4 5"], DocumentIndex(("a", "b"), (1, 1)), ["1", "4"])
    assert [one.aligned for one in single] == [True, True]


@pytest.mark.parametrize(
    ("lines", "documents", "counts"),
    [
        # One line per sentence, with a blank line between documents: unchanged.
        (["A.", "B.", "C.", "", "D.", "E."], [["A.", "B.", "C."], ["D.", "E."]], [0, 0]),
        (["", "A.", "B.", "C.", " ", "\r", "D.", "E.", ""], [["A.", "B.", "C."], ["D.", "E."]], [0, 0]),
        # Merged and split.
        (
            ["Der Hund schläft. Er ist müde.", "Es regnet heute.", "", "Wir", "gehen.", "Bis morgen!"],
            [REFERENCE[:3], REFERENCE[3:]],
            [2, 3],
        ),
        # Missing: the blank line could also be an empty sentence, but then the documents would not fit.
        (
            ["Der Hund schläft.", "Es regnet heute.", "", "Wir gehen.", "Bis morgen!"],
            [["Der Hund schläft.", "", "Es regnet heute."], REFERENCE[3:]],
            [2, 0],
        ),
        # Swapped sentences stay as they are, and so does a document with the right number of sentences.
        (
            ["Er ist müde.", "Der Hund schläft.", "Es regnet heute.", "", "Wir gehen bis morgen!"],
            [["Er ist müde.", "Der Hund schläft.", "Es regnet heute."], ["Wir gehen", "bis morgen!"]],
            [0, 1],
        ),
    ],
)
def test_blank_lines_separate_documents(tmp_path, lines, documents, counts):
    hypotheses = read_lines_of_user(tmp_path, lines)
    assert [hypothesis.sentences for hypothesis in hypotheses] == documents
    assert [hypothesis.realigned_lines for hypothesis in hypotheses] == counts
    assert all(hypothesis.aligned for hypothesis in hypotheses)


def test_single_document_needs_no_blank_line(tmp_path):
    (hypothesis,) = read_lines_of_user(tmp_path, [" ".join(REFERENCE), ""], DocumentIndex(("a",), (5,)))
    assert (hypothesis.sentences, hypothesis.realigned_lines) == (REFERENCE, 1)


@pytest.mark.parametrize("n_lines", [0, 3, 6])
def test_other_numbers_of_lines_are_refused(tmp_path, n_lines):
    with pytest.raises(UserError, match="5 sentences in 2 documents: write one line for each sentence"):
        read_lines_of_user(tmp_path, range(n_lines))


DOCUMENTS = ["rot grün blau", "eins zwei drei vier", "Hund Katze", "Haus Dach Tür Fenster"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (
            [0, 2, 3],
            "3 lines in 3 documents, by blank lines, but .* 8 sentences in 4 .*: document 'd1' seems to be mis",
        ),
        ([1, 2, 3], "document 'd0' seems to be missing"),
        ([0, 1, 2], "document 'd3' seems to be missing"),
        ([0, 3], "document 'd1' seems to be missing"),
        ([0, 1, "neu", 2, 3], r"the text at line 5 after document 'd1' seems to be no document of its own"),
        (["neu", 0, 1, 2, 3], r"the text at line 1 seems to be no document of its own"),
        ([0, 1, 2, 3, "neu", "noch"], r"the text at line 9 after document 'd3'"),
    ],
)
def test_missing_and_superfluous_documents_are_named(tmp_path, documents, message):
    index = DocumentIndex(("d0", "d1", "d2", "d3"), (2, 2, 2, 2))
    reference = [half for text in DOCUMENTS for half in (text, "und Ende")]
    texts = [text if isinstance(text, str) else DOCUMENTS[text] for text in documents]
    with pytest.raises(UserError, match=message):
        read_lines_of_user(tmp_path, "\n\n".join(texts).split("\n"), index, reference)


def test_own_jsonl_is_checked_and_kept(tmp_path):
    path = write(tmp_path / "h.jsonl", LINES)
    assert [one.model_dump() for one in read_user_hypotheses(path, INDEX, REFERENCE, tgt_lang="de")] == LINES
    with pytest.raises(UserError, match="belong"):
        read_user_hypotheses(path, DocumentIndex(("a", "b"), (2, 3)), REFERENCE, tgt_lang="de")


def test_the_command_writes_what_scoring_reads(tmp_path):
    texts = write_split(tmp_path, {"a": 3, "b": 2}, de=REFERENCE)["texts"]
    hypotheses = read_lines_of_user(tmp_path, [" ".join(REFERENCE[:3]), "", *REFERENCE[3:]])
    out = tmp_path / "h.jsonl"
    assert evaluate("import-output", file=tmp_path / "h.de", texts=texts, tgt_lang="de", suite=[], out=out) == 0
    assert read_hypotheses(out, INDEX) == hypotheses
    assert [hypothesis.realigned_lines for hypothesis in hypotheses] == [1, 0]
    assert evaluate("import-output", file=tmp_path / "h.de", texts=texts, out=out) == 2


def test_reference_of_another_length_is_refused(tmp_path):
    write_split(tmp_path, {"a": 3}, en="123", de="12")
    text = {"prefix": tmp_path / "test_t", "languages": ("en", "de")}
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
    lengths = [1] * len(translations)
    hypotheses = make_hypotheses(translations, lengths, documents=[str(number) for number in range(len(lengths))])
    message = find_tokenization(hypotheses, reference)
    assert message == problem or problem in message


def test_documents_in_one_line_are_compared_with_documents():
    """A space before a comma is in few sentences, but in most documents."""
    reference = (["Es regnet , sagt er."] + ["Das ist gut."] * 9) * 4
    joined = [[" ".join(reference[start : start + 10])] for start in range(0, 40, 10)]
    hypotheses = make_hypotheses(joined, [10] * 4, documents="abcd", aligned=False, one_line=True)
    assert find_tokenization(hypotheses, reference) is None
    tokenized = [[text.replace(".", " .").replace(" ,", ",")] for (text,) in joined]
    hypotheses = make_hypotheses(tokenized, [10] * 4, documents="abcd", aligned=False, one_line=True)
    clean = [line.replace(" ,", ",") for line in reference]
    assert "100 % of the instances have a space before a" in find_tokenization(hypotheses, clean)
