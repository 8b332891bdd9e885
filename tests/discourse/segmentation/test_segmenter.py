"""Prediction: order, batching, ugly sentences, scores."""

import random

import pytest
import torch
from segmenter_fixtures import untrained

from docmt.discourse.segmentation import segmenter as segmenting
from docmt.discourse.segmentation.segmenter import CONTEXT_WORDS, WINDOW_WORDS, score_starts

WORDS = ["he", "said", "that", "Mary", ",", "and", "X7", "antidisestablishmentarianism-antidisestablishment", "."]


def random_sentences(n, *, seed=0, longest=40):
    generator = random.Random(seed)
    return [generator.choices(WORDS, k=generator.choice([0, 1, 2, 5, 12, longest])) for _ in range(n)]


def test_batched_equals_one_by_one():
    segmenter = untrained()
    sentences = random_sentences(60)
    together = segmenter.encode(sentences)
    assert sum(len(output.starts) for output in together) > 20
    assert [output.starts for output in together] == segmenter.segment(sentences)
    for sentence, output in zip(sentences, together, strict=True):
        (alone,) = segmenter.encode([sentence])
        assert alone.starts == output.starts
        torch.testing.assert_close(alone.states_TD, output.states_TD)
    assert segmenter.segment(sentences[::-1]) == segmenter.segment(sentences)[::-1]


def test_the_first_word_is_never_an_inner_start():
    segmenter = untrained()
    with torch.no_grad():
        segmenter.network.output.bias[1] = 50  # everything else becomes one
    assert segmenter.segment([["a", "b", "c"], ["a"], []]) == [[1, 2], [], []]


def test_empty_and_one_word_sentences_are_safe():
    segmenter = untrained()
    assert segmenter.segment([]) == []
    assert segmenter.segment([[], []]) == [[], []]
    outputs = segmenter.encode([[], ["Yes"], []])
    assert [output.starts for output in outputs] == [[], [], []]
    assert [tuple(output.states_TD.shape) for output in outputs] == [(0, 16), (1, 16), (0, 16)]
    assert outputs[1].states_TD.isfinite().all()
    assert not outputs[1].states_TD.requires_grad


def test_states_can_be_trained_on():
    states_TD = untrained().encode([["he", "said"]])[0].states_TD
    layer = torch.nn.Linear(16, 1)
    layer(states_TD).sum().backward()
    assert layer.weight.grad is not None


def test_a_very_long_sentence_is_read_in_windows(monkeypatch):
    segmenter = untrained()
    sentence = random.Random(1).choices(WORDS, k=10_000)
    output, other = segmenter.encode([sentence, ["Yes", "."]])
    assert output.states_TD.shape == (10_000, 16)
    assert output.states_TD.isfinite().all()
    assert output.starts == sorted(set(output.starts))
    assert output.starts[0] > 0
    assert output.starts[-1] < 10_000
    assert other.starts == segmenter.segment([["Yes", "."]])[0]
    short = sentence[: WINDOW_WORDS + 2 * CONTEXT_WORDS]
    whole = segmenter.segment([short])
    monkeypatch.setattr(segmenting, "MAX_BATCH_WORDS", 1)
    assert segmenter.segment([short]) == whole


def test_windows_take_each_word_once():
    for n_words in (1, 300, 301, 400, 401, 999):
        windows = list(segmenting.cut_windows(7, n_words))
        taken = [word for window in windows for word in range(window.start, window.end)[window.core]]
        assert taken == list(range(n_words))
        for window in windows:
            assert window.start == max(0, window.core_start - CONTEXT_WORDS) or n_words <= 300
            assert window.end - window.start <= WINDOW_WORDS + 2 * CONTEXT_WORDS


def test_scores_of_starts():
    scores = score_starts([[2], [], [1, 4]], [[2, 5], [3], [4]], n_sentences=3)
    assert {k: scores["inside"][k] for k in ("correct", "predicted", "gold")} == dict(correct=2, predicted=3, gold=4)
    assert scores["inside"]["precision"] == pytest.approx(200 / 3)
    assert scores["inside"]["recall"] == 50
    assert scores["inside"]["f1"] == pytest.approx(100 * 4 / 7)
    assert scores["all"]["f1"] == pytest.approx(100 * 10 / 13)
    assert score_starts([[]], [[]], n_sentences=1)["inside"]["f1"] == 0
