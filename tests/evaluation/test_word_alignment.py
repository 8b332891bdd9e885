"""Word alignments: files of Pharaoh pairs, merging of directions, and the real aligner on a toy corpus."""

import random

import pytest

from docmt.cli.main import main
from docmt.decoding.shortlist import Shortlist
from docmt.errors import UserError
from docmt.evaluation import word_alignment
from docmt.evaluation.external_programs import NotComputableError, find_program
from docmt.evaluation.word_alignment import align_words, find_aligner, merge_directions, read_alignments
from docmt.text.vocabulary import Vocabulary

needs_aligner = pytest.mark.skipif(find_program("eflomal-align") is None, reason="eflomal is not installed")
PAIRS = [(["a", "b"], ["x", "y", "z"]), ([], ["x"]), (["a"], ["x"])]


def test_pairs_are_read_by_line(tmp_path):
    path = tmp_path / "links"
    path.write_text("0-0 1-2 0-0\n\n0-0\n")
    assert read_alignments(path, PAIRS) == [{(0, 0), (1, 2)}, set(), {(0, 0)}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0-0\n\n", "2 lines of alignments for 3 sentence pairs"),
        ("0-0\n0-0\n\n", "line 2: 0-0 is outside a sentence of 0 source and 1 target words"),
        ("2-0\n\n\n", "line 1: 2-0 is outside"),
        ("0:0\n\n\n", "line 1: '0:0' is not a pair"),
        ("0-0\n\n0--1\n", "line 3: '0--1' is not a pair"),
    ],
)
def test_bad_pairs_name_the_line(tmp_path, content, message):
    path = tmp_path / "links"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_alignments(path, PAIRS)


@pytest.mark.parametrize(
    ("forward", "reverse", "merged"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1)}),
        ({(0, 0), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1)}),  # grows to a neighbor
        ({(0, 0), (0, 1)}, {(0, 0), (1, 1)}, {(0, 0), (0, 1), (1, 1)}),  # in the order up, left, down, right, across
        ({(0, 0), (3, 3)}, {(0, 0)}, {(0, 0), (3, 3)}),  # far, but both words are free
        ({(0, 0), (3, 0)}, {(0, 0)}, {(0, 0)}),  # far, and one word is taken
        (set(), {(2, 1)}, {(2, 1)}),
        (set(), set(), set()),
    ],
)
def test_directions_are_merged(forward, reverse, merged):
    assert merge_directions(forward, reverse) == merged


@pytest.mark.parametrize("seed", range(20))
def test_merged_links_lie_between_intersection_and_union(seed):
    rng = random.Random(seed)
    forward, reverse = ({(rng.randrange(8), rng.randrange(8)) for _ in range(10)} for _ in range(2))
    merged = merge_directions(forward, reverse)
    assert forward & reverse <= merged <= forward | reverse


@needs_aligner
def test_the_aligner_finds_a_word_for_word_translation():
    rng = random.Random(1)
    words = [f"w{i}" for i in range(12)]
    sources = [rng.sample(words, 5) for _ in range(150)]
    pairs = [(source, [word.upper() for word in source]) for source in sources]
    links = align_words(pairs, program=find_aligner())
    right = sum(link == {(i, i) for i in range(5)} for link in links)
    assert right > 140


@needs_aligner
def test_empty_and_long_sentences_keep_their_places(caplog):
    long = [f"w{i % 7}" for i in range(word_alignment.MAX_WORDS + 1)]
    pairs = [(["a"], ["x"]), ([], ["x"]), (["a"], []), (long, ["x"]), (["a"], ["x"]), (["ß🙂"], ["|||"])]
    links = align_words([*pairs, *pairs[:1] * 20], program=find_aligner())
    assert links[:6] == [{(0, 0)}, set(), set(), set(), {(0, 0)}, {(0, 0)}]
    assert "1 sentence pairs of more than 1023 words" in caplog.text
    assert align_words([([], [])], program=find_aligner()) == [set()]


def test_a_missing_aligner_is_said(monkeypatch):
    monkeypatch.setattr(word_alignment, "find_program", lambda name: None)
    with pytest.raises(NotComputableError, match="pip install eflomal"):
        find_aligner()


def test_an_aligner_that_fails_is_one_line():
    with pytest.raises(UserError, match=r"^eflomal failed \(exit code 1\)"):
        align_words([(["a"], ["x"])], program="false")


@needs_aligner
def test_a_lexical_table_has_what_was_aligned(tmp_path):
    """Words that are always translated alike, in any order."""
    rng, words = random.Random(0), [f"w{number}" for number in range(30)]
    sentences = [rng.sample(words, 6) for _ in range(300)]
    for lang, mark in (("en", "e"), ("de", "d")):
        lines = [" ".join(mark + word for word in sentence) for sentence in sentences]
        (tmp_path / lang).write_text("\n".join(lines) + "\n")
    table = tmp_path / "lex.s2t"
    assert (
        main(["evaluate", "lexical-table", "--inputs", str(tmp_path / "en"), str(tmp_path / "de"), "--out", str(table)])
        == 0
    )
    vocabulary = Vocabulary([(mark + word, 1) for mark in "ed" for word in words])
    best = Shortlist.read(table, vocabulary, 1).targets
    pairs = {tuple(vocabulary.decode([source, *targets])) for source, targets in best.items()}
    assert pairs == {(f"e{word}", f"d{word}") for word in words}


def test_without_an_aligner_there_is_no_lexical_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(word_alignment, "find_program", lambda _: None)
    (tmp_path / "text").write_text("a\n")
    text = str(tmp_path / "text")
    assert main(["evaluate", "lexical-table", "--inputs", text, text, "--out", str(tmp_path / "table")]) == 2
    assert "pip install eflomal" in capsys.readouterr().err


def test_a_lexical_table_of_no_words_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("\n")
    text = str(tmp_path / "text")
    assert main(["evaluate", "lexical-table", "--inputs", text, text, "--out", str(tmp_path / "table")]) == 2
    assert "there is nothing to align" in capsys.readouterr().err
