"""Word alignments: combining directions, and the real aligner on a toy corpus."""

import random

import pytest

from docmt.errors import UserError
from docmt.evaluation import word_alignment
from docmt.evaluation.external_programs import find_program
from docmt.evaluation.word_alignment import PROGRAM, align_words, merge_directions

ALIGNER = find_program(PROGRAM) or ""
needs_aligner = pytest.mark.skipif(not ALIGNER, reason="eflomal is not installed")


@pytest.mark.parametrize("written", ["0-0\n0-0\n", "0:0\n", "0--1\n", "0-\n", ""])
def test_links_of_an_unknown_form_are_refused(tmp_path, written):
    """A stand-in for the aligner writes links for one sentence."""
    program = tmp_path / "aligner"
    program.write_text(f'#!/bin/sh\nprintf "{written}" > "$6"\nprintf "{written}" > "$8"\n')
    program.chmod(0o755)
    with pytest.raises(UserError, match="eflomal wrote alignments in an unknown format"):
        align_words([(["a"], ["x"])], program=str(program))


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


def test_merged_links_lie_between_intersection_and_union():
    rng = random.Random(0)
    for _ in range(20):
        forward, reverse = ({(rng.randrange(8), rng.randrange(8)) for _ in range(10)} for _ in range(2))
        merged = merge_directions(forward, reverse)
        assert forward & reverse <= merged <= forward | reverse


@needs_aligner
def test_the_aligner_finds_a_word_for_word_translation():
    rng = random.Random(1)
    words = [f"w{i}" for i in range(12)]
    sources = [rng.sample(words, 5) for _ in range(150)]
    pairs = [(source, [word.upper() for word in source]) for source in sources]
    links = align_words(pairs, program=ALIGNER)
    right = sum(link == {(i, i) for i in range(5)} for link in links)
    assert right > 140


@needs_aligner
def test_empty_and_long_sentences_keep_their_places(caplog):
    long = [f"w{i % 7}" for i in range(word_alignment.MAX_WORDS + 1)]
    pairs = [(["a"], ["x"]), ([], ["x"]), (["a"], []), (long, ["x"]), (["a"], ["x"]), (["ß🙂"], ["|||"])]
    links = align_words([*pairs, *pairs[:1] * 20], program=ALIGNER)
    assert links[:6] == [{(0, 0)}, set(), set(), set(), {(0, 0)}, {(0, 0)}]
    assert "1 sentence pairs are not aligned, because they have more than 1023 words" in caplog.text
    assert align_words([([], [])], program=ALIGNER) == [set()]


def test_an_aligner_that_fails_is_one_line():
    with pytest.raises(UserError, match=r"^eflomal failed \(exit code 1\)"):
        align_words([(["a"], ["x"])], program="false")
