"""Document restoration: Figure 2 of cross-task pre-training, rules for gap sentences, and reproducible noise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmt.errors import UserError
from docmt.instances.restoration import Noise, RestorationSymbols, choose_gaps, open_gaps
from docmt.instances.settings import RestorationSettings
from docmt.instances.storage import InstanceSet
from docmt.text.vocabulary import BOS, EOS, SPECIALS, Vocabulary, extra_specials

SYMBOLS = RestorationSymbols(gap_mask=6, token_mask=7, first_word=10, n_symbols=20)
"""Words 10 to 19 are drawn at random. The documents below contain unique words from 100."""


def make_document(lengths):
    """Tokens and lengths of a document with unique words."""
    words = iter(range(100, 100 + sum(lengths)))
    sentences = [[BOS, *(next(words) for _ in range(length)), EOS] for length in lengths]
    return np.concatenate(sentences).astype(np.int32), np.array([len(sentence) for sentence in sentences])


def split(tokens, lengths):
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def noise(document, *, seed=(1, 2, 3), **values):
    settings = RestorationSettings.load(values, where="test")
    return Noise(settings, SYMBOLS, seed=1).documents(*document, np.array([len(document[1])]), [seed])


def test_figure_2_word_by_word():
    """Six sentences. The third and the fifth are gap sentences."""
    clean = ["we met", "at the station", "it rained", "all the night", "then we left", "nobody saw us"]
    masked = ["we [MASK2]", "[MASK2] the station", "[MASK2] rained", "all the left"]
    masked += ["then [MASK2] left", "nobody saw us"]
    words = dict.fromkeys(" ".join(clean).split())
    vocabulary = Vocabulary.from_symbols([*SPECIALS, *extra_specials(["en"]), *words])
    ids = {symbol: number for number, symbol in enumerate(vocabulary.symbols)}
    sides = [
        np.concatenate([[BOS, *(ids[word] for word in sentence.split()), EOS] for sentence in side])
        for side in (clean, masked)
    ]
    lengths = np.array([len(sentence.split()) + 2 for sentence in clean])
    gap_mask, token_mask = vocabulary.masks()
    tokens, src_lengths = open_gaps(*sides, lengths, np.array([2, 4]), gap_mask=gap_mask)
    assert [" ".join(vocabulary.decode(sentence)) for sentence in split(tokens, src_lengths)] == [
        "<s> we [MASK2] </s>",
        "<s> [MASK2] the station </s>",
        "<s> at the station [MASK1] all the night </s>",
        "<s> all the left </s>",
        "<s> all the night [MASK1] nobody saw us </s>",
        "<s> nobody saw us </s>",
    ]
    assert (gap_mask, token_mask) == (ids["[MASK1]"], ids["[MASK2]"])


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=32),
    ratio=st.floats(0, 1),
    mask_ratio=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_rules_hold_for_every_document(lengths, ratio, mask_ratio, seed):
    document = make_document(lengths)
    before = document[0].copy()
    settings = {"gap_ratio": ratio, "mask_ratio": mask_ratio, "mask_share": 0.6, "random_share": 0.2}
    tokens, src_lengths = noise(document, seed=(seed, 0, 7), **settings)
    assert np.array_equal(document[0], before)
    inputs, outputs = split(tokens, src_lengths), split(*document)
    assert len(inputs) == len(outputs)
    gaps = [i for i, sentence in enumerate(inputs) if SYMBOLS.gap_mask in sentence]
    assert not {0, len(outputs) - 1} & set(gaps)
    assert all(second - first > 1 for first, second in pairwise(gaps))
    allowed = (len(outputs) - 1) // 2
    assert len(gaps) == min(int(ratio * len(outputs) + 0.5), allowed)
    hidden = {token for gap in gaps for token in outputs[gap][1:-1]}
    assert not hidden & set(tokens.tolist()), "a word of a gap sentence stands in the input"
    for i, (ids, output) in enumerate(zip(inputs, outputs, strict=True)):
        assert ids[0] == BOS
        assert ids[-1] == EOS
        if i in gaps:
            assert ids == [*outputs[i - 1][:-1], SYMBOLS.gap_mask, *outputs[i + 1][1:]]
        else:
            assert len(ids) == len(output)
            assert all(new in (old, SYMBOLS.token_mask, *range(10, 20)) for new, old in zip(ids, output, strict=True))


def test_all_choices_of_gaps_are_equally_likely():
    generator = np.random.default_rng(0)
    drawn = [tuple(choose_gaps(7, 2 / 7, generator).tolist()) for _ in range(6000)]
    assert set(drawn) == {(1, 3), (1, 4), (1, 5), (2, 4), (2, 5), (3, 5)}
    assert all(abs(drawn.count(choice) - 1000) < 150 for choice in set(drawn))


def test_masked_words_between_gaps():
    document = make_document([2, 0, 3, 0, 1])
    tokens, lengths = noise(document, gap_ratio=0.2, mask_ratio=1.0, mask_share=1.0, random_share=0.0)
    sentences = split(tokens, lengths)
    assert sentences[0] == [BOS, 7, 7, EOS]
    assert sentences[4] == [BOS, 7, EOS]
    assert sum(6 in sentence for sentence in sentences) == 1
    opened, lengths = open_gaps(document[0], document[0], document[1], np.array([2]), gap_mask=6)
    assert split(opened, lengths)[2] == [BOS, 6, EOS]


@pytest.mark.parametrize("clean_neighbors", [True, False])
def test_neighbors_of_gaps_follow_setting(clean_neighbors):
    document = make_document([2, 3, 4, 2, 5, 1, 2, 3, 2, 2])
    settings = {"gap_ratio": 0.3, "mask_ratio": 0.5, "clean_neighbors": clean_neighbors}
    sentences = split(*noise(document, **settings))
    gaps = [number for number, sentence in enumerate(sentences) if SYMBOLS.gap_mask in sentence]
    assert len(gaps) == 3
    neighbors = split(*document) if clean_neighbors else sentences
    for gap in gaps:
        assert sentences[gap] == [*neighbors[gap - 1][:-1], SYMBOLS.gap_mask, *neighbors[gap + 1][1:]]
    assert sum(sentence.count(SYMBOLS.token_mask) for sentence in sentences) > 4


def test_shares_of_noise_are_those_of_the_settings():
    document = make_document([50] * 400)
    noised = Noise(RestorationSettings(), SYMBOLS, seed=1).mask_words(*document, np.random.default_rng(5))
    words = 400 * 50
    is_masked, is_random = noised == SYMBOLS.token_mask, np.isin(noised, range(10, 20))
    assert abs(is_masked.sum() / words - 0.15 * 0.8) < 0.01
    assert abs(is_random.sum() / words - 0.15 * 0.1) < 0.003
    assert set(noised[is_random].tolist()) == set(range(10, 20))
    assert np.array_equal(noised[~is_masked & ~is_random], document[0][~is_masked & ~is_random])


def make_set(documents):
    tokens = np.concatenate([tokens for tokens, _ in documents])
    offsets = np.concatenate(([0], np.cumsum(np.concatenate([lengths for _, lengths in documents]))))
    instances = np.concatenate(([0], np.cumsum([len(lengths) for _, lengths in documents])))
    return InstanceSet(tokens, offsets, tokens, offsets, instances, np.arange(len(documents), dtype=np.int32), {})


DOCUMENTS = make_set([make_document(lengths) for lengths in ([4, 5, 3, 0, 6, 7], [3], [2, 2, 9, 4], [8] * 12)])


def noised(instances, *, seed=1, epoch=0):
    noise = Noise(RestorationSettings(gap_ratio=0.3, mask_ratio=0.5), SYMBOLS, seed)
    return noise.apply(DOCUMENTS, np.array(instances), epoch=epoch)


def test_noise_ignores_the_batch():
    alone = [noised([number]) for number in range(4)]
    together = noised([2, 0, 3, 1])
    assert together.n_sentences().tolist() == [4, 6, 12, 1]
    for position, number in enumerate((2, 0, 3, 1)):
        for side in ("src", "tgt"):
            pairs = zip(together.sentences(position, side), alone[number].sentences(0, side), strict=True)
            assert all(np.array_equal(sentence, expected) for sentence, expected in pairs)


def test_noise_changes_by_epoch_and_seed():
    first, again = noised([0, 3]), noised([0, 3])
    assert np.array_equal(first.src_tokens, again.src_tokens)
    for other in (noised([0, 3], epoch=1), noised([0, 3], seed=2)):
        assert not np.array_equal(first.src_tokens, other.src_tokens)
        assert np.array_equal(first.tgt_tokens, other.tgt_tokens)


def test_equal_documents_get_noise_of_their_own():
    twice = make_set([make_document([8] * 12)] * 2)
    both = Noise(RestorationSettings(), SYMBOLS, seed=1).apply(twice, np.array([0, 1]), epoch=0)
    assert not np.array_equal(*np.split(np.diff(both.src_offsets), 2))
    assert both.src_tokens.tolist().count(SYMBOLS.gap_mask) == 4


def test_symbols_come_from_the_vocabulary():
    vocabulary = Vocabulary.from_sentences([["a", "b"]], extras=extra_specials(["en", "de"]))
    assert RestorationSymbols.of(vocabulary) == RestorationSymbols(6, 7, 10, 12)
    with pytest.raises(UserError, match="learn-vocabulary --tags"):
        RestorationSymbols.of(Vocabulary.from_symbols(["a"]))
    with pytest.raises(UserError, match="no words"):
        RestorationSymbols.of(Vocabulary.from_symbols(extra_specials(["en"])))


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(UserError, match="more than 1"):
        RestorationSettings.load({"random_share": 0.3}, where="restoration")
