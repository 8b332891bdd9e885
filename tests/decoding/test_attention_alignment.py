"""Word alignments by attention: of every architecture, for each pair by itself, at the words of its text."""

import numpy as np
import pytest
import torch
from plain_scores import untrained

from docmt.decoding import word_alignment
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.decoding.word_alignment import align_words, places_of
from docmt.models.presets import ARCHITECTURES

PAIRS = [("the dog sees the house", "das Tier sieht"), ("a", "ein Kind ein Haus"), ("", "das"), ("the dog, ζ", "")]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pairs_do_not_see_each_other(study_files, architecture):
    translator = Translator(untrained(study_files, architecture), DecodingSettings())
    together, alone = translator.align(PAIRS), [translator.align([pair])[0] for pair in PAIRS]
    for one, other, (src, tgt) in zip(together, alone, PAIRS, strict=True):
        assert [src[slice(*place)] for place in one.src] == src.replace(",", " ,").split()
        assert [tgt[slice(*place)] for place in one.tgt] == tgt.split()
        assert one.weights_NM.shape == (len(one.tgt), len(one.src))
        np.testing.assert_allclose(one.weights_NM, other.weights_NM, atol=1e-5)
        assert (one.weights_NM >= 0).all()
        assert (one.weights_NM.sum(1) <= 1 + 1e-5).all()


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
def test_the_weights_are_those_of_the_layer_where_a_word_is_read_or_predicted(study_files, architecture):
    """Against attention with hooks in a plain pass over one pair, in which every word is one token."""
    trained = untrained(study_files, architecture)
    src, tgt = PAIRS[0]
    layer = trained.model.decoder_layers[0].cross_attention
    part = next(module for module in layer.modules() if hasattr(module, "project"))
    seen = []

    def attend(_, arguments):
        query_NHK, key_MHK, _ = part.project(*arguments[:2])
        scores = torch.einsum("nhk,mhk->hnm", query_NHK, key_MHK) / query_NHK.shape[-1] ** 0.5
        seen.append(scores.softmax(-1).mean(0).numpy())

    handle = layer.register_forward_pre_hook(attend)
    (read,) = align_words(trained, trained.model, [(src, tgt)], layer=0, is_read=True)
    handle.remove()
    (predicted,) = align_words(trained, trained.model, [(src, tgt)], layer=0)
    (weights,) = seen
    n_src, n_tgt = len(src.split()), len(tgt.split())
    for found, first in ((predicted, 0), (read, 1)):  # `<s>` predicts the first word
        np.testing.assert_allclose(found.weights_NM, weights[first : first + n_tgt, 1 : 1 + n_src], atol=1e-5)


def test_a_sentence_that_is_too_long_has_no_alignment(study_files, monkeypatch):
    monkeypatch.setattr(word_alignment, "BATCH_TOKENS", 4)
    translator = Translator(untrained(study_files, "g_transformer"), DecodingSettings())
    assert [bool(found.src) for found in translator.align(PAIRS)] == [False, True, False, True]


def test_a_sentence_with_more_tokens_than_learned_positions_has_no_alignment(study_files):
    trained = untrained(study_files, "g_transformer", form={"learned_positions": 6})
    pairs = [("the dog sees the", "das Tier"), ("a", "ein Kind ein Haus"), ("a " * 5, "das"), ("a", "das " * 5)]
    found = Translator(trained, DecodingSettings()).align(pairs)
    assert [bool(each.src) for each in found] == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("It's a “test”", ["It", "&apos;s", "a", "@&quot;", "test"], ["It", "'s", "a", "", "test"]),
        ("Die Tür", ["die", "▁", "tür"], ["Die", "", "Tür"]),
        ("x İ y", ["x", "y"], ["x", "y"]),
        ("a " * 30 + "b", ["a", "b"], ["a", ""]),
        ("", ["a"], [""]),
    ],
)
def test_places_of_words(text, words, expected):
    assert [text[slice(*place)] for place in places_of(text, words)] == expected
