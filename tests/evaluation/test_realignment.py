"""Documents with different sentences are aligned to the reference. The alignment is the best of all boundaries."""

import itertools
import random

import pytest
from evaluation_fixtures import by_metric, make_test

from docmt.corpora.documents import DocumentIndex
from docmt.evaluation.hypotheses import Hypothesis, cut
from docmt.evaluation.metrics import EvaluationSettings, score_translations
from docmt.text.realignment import align_sentences


def count_edits(ours, theirs):
    """Word edits between two lists, without a table."""
    if not ours or not theirs:
        return len(ours) + len(theirs)
    return min(
        count_edits(ours[1:], theirs) + 1,
        count_edits(ours, theirs[1:]) + 1,
        count_edits(ours[1:], theirs[1:]) + (ours[0].lower() != theirs[0].lower()),
    )


def align_by_brute_force(lines, reference):
    """The best boundaries between words (here letters): by edits, boundaries inside lines, and position."""
    words = [word for line in lines for word in line.split()]
    line_starts = set(itertools.accumulate((len(line.split()) for line in lines), initial=0))
    best = None
    for inner in itertools.combinations_with_replacement(range(len(words) + 1), len(reference) - 1):
        bounds = [0, *inner, len(words)]
        segments = [words[begin:end] for begin, end in itertools.pairwise(bounds)]
        edits = sum(count_edits(ours, text.split()) for ours, text in zip(segments, reference, strict=True))
        key = (edits, sum(bound not in line_starts for bound in inner), bounds[::-1])
        if best is None or key < best[0]:
            best = key, [" ".join(segment) for segment in segments]
    return best[0][0], best[1]


@pytest.mark.parametrize("seed", range(60))
def test_alignment_equals_brute_force(seed):
    generator = random.Random(seed)

    def sentences(n_words):
        return [" ".join(generator.choices("abC", k=generator.randint(0, n_words))) for _ in range(3)]

    reference = sentences(3)
    lines = [line for line in sentences(2) if line] or ["a"]
    assert align_sentences(lines, reference, "de") == align_by_brute_force(lines, reference)


REFERENCE = ["Der Hund schläft.", "Er ist müde.", "Sie geht nach Hause."]


@pytest.mark.parametrize(
    ("lines", "sentences", "edits"),
    [
        (["Der Hund schläft. Er ist müde.", "Sie geht nach Hause."], REFERENCE, 0),
        (["Der Hund", "schläft. Er", "ist müde. Sie geht nach", "Hause."], REFERENCE, 0),
        (["Der Hund schläft.", "Sie geht nach Hause."], [REFERENCE[0], "", REFERENCE[2]], 4),
        (["Er ist müde."], ["", "Er ist müde.", ""], 9),
        (["DER HUND SCHLÄFT ER IST MÜDE", "sie geht heim"], ["DER HUND SCHLÄFT", "ER IST MÜDE", "sie geht heim"], 5),
        # Without any word in common, all boundaries are equally good, so the first one is taken.
        (["x y", "z"], ["", "", "x y z"], 13),
        # Both boundaries need two edits, but only one is the end of a line.
        (["Der Hund schläft so", "ist müde.", REFERENCE[2]], ["Der Hund schläft so", "ist müde.", REFERENCE[2]], 2),
        (["…"], ["", "", "…"], 13),
        # No boundary is inside a word.
        (["Er ist müde.Sie geht"], ["", "Er ist müde.Sie", "geht"], 9),
    ],
)
def test_cases_that_were_counted_by_hand(lines, sentences, edits):
    assert align_sentences(lines, REFERENCE, "de") == (edits, sentences)


def test_characters_are_words_without_blanks():
    reference = ["狗睡了。", "GPT 很累。", ""]
    assert align_sentences(["狗睡了。gpt很累。"], reference, "zh") == (0, ["狗睡了。", "gpt很累。", ""])


@pytest.mark.parametrize("lines", [["Der Hund schläft. Er ist", "müde."], ["Sie geht heim."], REFERENCE[::-1]])
def test_document_scores_do_not_change(lines):
    """Only boundaries differ, so the document's d-BLEU and d-chrF are the same as for the file."""
    documents = cut(REFERENCE, [3])
    index = DocumentIndex(("a",), (3,))
    scores = []
    for is_aligned in (False, True):
        sentences = align_sentences(lines, documents[0], "de")[1] if is_aligned else lines
        hypothesis = Hypothesis(
            instance=0, document=index.ids[0], first_sentence=0, n_sentences=3, aligned=is_aligned, sentences=sentences
        )
        settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (documents)", "d-chrF (documents)"])
        scores.append(by_metric(score_translations(make_test([hypothesis], REFERENCE, settings=settings))))
    for metric in ("d-BLEU (documents)", "d-chrF (documents)"):
        assert scores[0][metric]["value"] == scores[1][metric]["value"]
    assert "s-BLEU" not in scores[0]
    assert "s-BLEU" in scores[1]
