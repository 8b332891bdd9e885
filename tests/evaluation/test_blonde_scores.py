"""BlonDe's counts of pronouns and markers."""

import pytest
from evaluation_fixtures import make_hypotheses, make_test

from docmt.evaluation.blonde import count_kinds, f1, read_lists, score_blonde
from docmt.evaluation.metrics import BLONDE, EvaluationSettings

REFERENCE = ["He said that she left .", "However , it rained .", "As a result he stayed , but they went .", "No ."]


def score(translations, *more, tgt_lang="en", aligned=True):
    hypotheses = make_hypotheses(translations, (2, 2), documents=("a", "b"))
    if not aligned:
        hypotheses = [one.model_copy(update={"aligned": False}) for one in hypotheses]
    settings = EvaluationSettings(metrics=list(BLONDE))
    test = make_test(hypotheses, REFERENCE, *more, settings=settings, src_lang="zh", tgt_lang=tgt_lang)
    return {row["metric"]: row["value"] for row in score_blonde(test)}


def test_the_reference_has_all_of_it():
    assert score(REFERENCE) == dict.fromkeys(BLONDE, 100)


def test_words_count_by_sentence_and_kind():
    found = score(["She said that she left .", "However , it rained .", "He stayed , while they went .", "But no ."])
    # One of "he", one of "she" match in the first sentence's two; "it" and "they" have no weight.
    assert found[BLONDE[0]] == pytest.approx(100 * 2 * 2 / (3 + 3))
    # "however", and "while" for "but"; "as a result" is lost, "But" is too much.
    assert found[BLONDE[1]] == pytest.approx(100 * 2 * 2 / (3 + 3))


def test_phrases_and_words_inside_others():
    markers = read_lists()["markers"]
    counts = count_kinds(["as", "a", "result", "the", "as", "a", "thenceforth", "then"], markers)
    assert {kind: count for kind, count in counts.items() if count} == {"cause": 1, "asynchronous": 1}


def test_several_references_count_by_the_highest():
    more = ["He said that he left .", *REFERENCE[1:]]
    assert score(more)[BLONDE[0]] == pytest.approx(100 * 2 * 2 / (3 + 3))
    assert score(more, more)[BLONDE[0]] == pytest.approx(100 * 2 * 3 / (3 + 4))


def test_without_such_words_or_english_there_is_no_value():
    assert f1([["a"]], [[["b"]]], read_lists()["pronouns"]) is None
    assert score(REFERENCE, tgt_lang="de") == dict.fromkeys(BLONDE)
    assert score(REFERENCE, aligned=False) == {}
