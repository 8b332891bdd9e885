"""Beam search equals teacher forcing, exhaustive search, and search in other batches. The sentence count is right."""

import itertools

import numpy as np
import pytest
import torch
from architectures import DIVERSE, slow_but
from core_fixtures import make_batch, make_model, random_sentence
from plain_search import search, sources, teacher_forced, texts

from docmt.decoding.contrastive_scoring import instance_log_probabilities
from docmt.errors import UserError
from docmt.models.numerics import CHUNK_SCORES
from docmt.models.presets import ARCHITECTURES
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS

ALIGNED = [name for name, values in ARCHITECTURES.items() if values.get("target_stream") != "free"]
FREE = sorted(set(ARCHITECTURES) - set(ALIGNED))
ONE_PASS = slow_but(DIVERSE, [name for name in ARCHITECTURES if name != "cadec"])
"""Architectures whose log probabilities do not depend on drafts (test_two_pass_search.py)."""
MIXED = {
    "group, then window": {"lower": "group", "upper": "window"},
    "window, then group": {"lower": "window", "upper": "group"},
    "window, then combined": {"lower": "window", "upper": "combined"},
    "window that no layer has": {"lower": "group", "upper": "window", "upper_layers": 0},
    "global, then group": {"lower": "global", "upper": "group"},
    "combined, then global": {"lower": "combined", "upper": "global"},
}


def make(name):
    """An architecture's model, or G-Transformer with one of the mixtures in decoder and cross-attention."""
    if name in ARCHITECTURES:
        return make_model(name)
    attention = {"upper_layers": 1} | MIXED[name]
    return make_model("g_transformer", window_sentences=1, decoder_attention=attention, cross_attention=attention)


@pytest.mark.parametrize("name", [*ONE_PASS, *slow_but(("group, then window",), MIXED)])
@pytest.mark.parametrize("beam_size", slow_but((4,), (1, 4)))
def test_cached_scores_equal_teacher_forcing(name, beam_size):
    model = make(name)
    documents = sources((1, 4, 12, 2))
    for source, hypotheses in zip(documents, search(model, documents, beam_size=beam_size), strict=True):
        assert 1 <= len(hypotheses) <= beam_size
        for hypothesis in hypotheses:
            expected = teacher_forced(model, source, hypothesis.sentences)
            assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)
            n_labels = sum(len(sentence) + 1 for sentence in hypothesis.sentences)
            n_labels += len(hypothesis.sentences) if name in FREE else 0
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / n_labels)
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", [*slow_but(("g_transformer",)), *slow_but((), MIXED)])
def test_batched_equals_alone(name):
    model = make(name)
    documents = sources((3, 1, 9, 1, 5, 2), seed=1)
    assert texts(search(model, documents)) == [texts(search(model, [document]))[0] for document in documents]


@pytest.mark.parametrize("n_scores", [1, 500])
def test_chunked_scores_are_equal(n_scores, monkeypatch):
    model, documents = make("g_transformer"), sources((3, 1, 9, 1, 5, 2), seed=1)
    expected = search(model, documents)
    monkeypatch.setitem(CHUNK_SCORES, "cpu", n_scores)
    assert search(model, documents) == expected


UGLY = {
    "empty source sentences": (0, 3, 0, 0, 2),
    "only empty sentences": (0, 0, 0),
    "one empty sentence": (0,),
    "one word": (1,),
    "one-word sentences": (1,) * 12,
    "very long among short": (1, 90, 1),
    "forty sentences": (2,) * 40,
}


@pytest.mark.parametrize("architecture", slow_but(("g_transformer", "han"), ALIGNED))
@pytest.mark.parametrize("name", UGLY)
def test_as_many_sentences_come_out_as_go_in(architecture, name):
    model = make_model(architecture)
    generator = np.random.default_rng(4)
    document = [random_sentence(generator, length) for length in UGLY[name]]
    (hypotheses,) = search(model, [document], beam_size=3)
    for hypothesis in hypotheses:
        assert len(hypothesis.sentences) == len(document)
        for source, sentence in zip(document, hypothesis.sentences, strict=True):
            n_words = len(source) - 2
            assert (len(sentence) == 0) == (n_words == 0)
            assert len(sentence) <= 1.2 * n_words + 10
            assert all(token >= N_SPECIALS for token in sentence)


@pytest.mark.parametrize("architecture", FREE)
@pytest.mark.parametrize("name", UGLY)
def test_a_free_stream_ends_and_holds_words_alone(architecture, name):
    model = make_model(architecture)
    generator = np.random.default_rng(4)
    document = [random_sentence(generator, length) for length in UGLY[name]]
    limit = sum(int(1.2 * n) + 10 + 2 if n else 2 for n in UGLY[name])
    (hypotheses,) = search(model, [document], beam_size=3)
    for hypothesis in hypotheses:
        assert hypothesis.sentences
        assert all(token >= N_SPECIALS for s in hypothesis.sentences for token in s)
        assert sum(len(sentence) + 2 for sentence in hypothesis.sentences) <= limit + 2


@pytest.mark.parametrize("architecture", ["g_transformer", "sentence_transformer"])
def test_forced_end_is_counted_and_paid(architecture):
    """The model never ends a sentence by itself, because `</s>` is the least likely symbol."""
    model = make_model(architecture, form={"output_bias": True})
    model.output_bias.data[EOS] = -50
    document = [random_sentence(np.random.default_rng(1), length) for length in (5, 0, 1)]
    (hypotheses,) = search(model, [document], max_length_ratio=2.0, max_length_offset=3)
    for hypothesis in hypotheses:
        assert [len(sentence) for sentence in hypothesis.sentences] == [13, 0, 5]
        assert hypothesis.forced_ends == 2
        assert hypothesis.log_probability < -100
        expected = teacher_forced(model, document, hypothesis.sentences)
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_scores_are_one_line(architecture, value):
    model = make_model(architecture, form={"output_bias": True})
    model.output_bias.data[N_SPECIALS + 3] = value
    with pytest.raises(UserError, match="model scores are NaN"):
        search(model, sources((3, 1)))


# Exhaustive search over five words

WORDS = range(N_SPECIALS, N_SPECIALS + 5)


def five_word_model(architecture, seed):
    return make_model(architecture, seed=seed, n_symbols=N_SPECIALS + len(WORDS))


def one_word_sources(count, seed):
    return [np.array([BOS, WORDS[(seed + i) % len(WORDS)], EOS]) for i in range(count)]


@pytest.mark.parametrize("architecture", ["g_transformer", "sentence_transformer", "concatenation"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_huge_beam_finds_what_exhaustive_search_finds(architecture, seed):
    model = five_word_model(architecture, seed)
    source = one_word_sources(2, seed)
    of_sentence = [list(words) for n in (1, 2) for words in itertools.product(WORDS, repeat=n)]
    everything = [list(pair) for pair in itertools.product(of_sentence, repeat=2)]
    (hypotheses,) = search(model, [source], beam_size=1000, max_length_ratio=0.1, max_length_offset=2)
    assert len(hypotheses) == len(everything) == 900
    batch = make_batch(
        model.settings,
        [(source, [np.array([BOS, *words, EOS]) for words in sentences]) for sentences in everything],
    )
    values = instance_log_probabilities(model, batch)
    scores = {str(s): v / sum(len(words) + 1 for words in s) for s, v in zip(everything, values, strict=True)}
    assert {str(hypothesis.sentences) for hypothesis in hypotheses} == set(scores)
    for hypothesis in hypotheses:
        assert hypothesis.score == pytest.approx(scores[str(hypothesis.sentences)], rel=1e-4)
        assert hypothesis.forced_ends == sum(len(words) == 2 for words in hypothesis.sentences)
    assert str(hypotheses[0].sentences) == max(scores, key=scores.get)


def streams(limit, labels=(), is_end=False):
    """All free streams: `<eod>` or `<s>` after `</s>`, or else a word or `</s>`. After label `limit`, they must end."""
    if is_end:
        yield (*labels, EOD)
        if len(labels) < limit:
            yield from streams(limit, (*labels, BOS))
        return
    yield from streams(limit, (*labels, EOS), is_end=True)
    if len(labels) < limit:
        for word in WORDS:
            yield from streams(limit, (*labels, word))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_huge_beam_finds_every_free_stream(seed):
    model = five_word_model("document_transformer", seed)
    source = one_word_sources(1, seed)
    (hypotheses,) = search(model, [source], beam_size=500, max_length_ratio=0.1, max_length_offset=1)
    expected = {}
    for labels in streams(limit=3):
        text = "".join(" | " if token == BOS else f"{token} " for token in labels if token not in (EOS, EOD))
        sentences = [[int(word) for word in part.split()] for part in text.split("|")]
        expected[str(sentences)] = teacher_forced(model, source, sentences) / len(labels)
    assert {str(hypothesis.sentences) for hypothesis in hypotheses} == set(expected)
    assert str(hypotheses[0].sentences) == max(expected, key=expected.get)
    for hypothesis in hypotheses:
        assert hypothesis.score == pytest.approx(expected[str(hypothesis.sentences)], rel=1e-4)
