"""Network parts compared with plain formulas, and the conditional random field with all label sequences."""

import itertools

import pytest
import torch
from segmenter_fixtures import EXAMPLES, tiny_settings

from docmt.discourse.segmentation.network import (
    SHAPES,
    BiLstm,
    HeadAttention,
    LinearChainCrf,
    LockedDropout,
    RestrictedAttention,
    SegmenterNetwork,
    WordTypes,
    WordVocabulary,
    word_shape,
)
from docmt.discourse.segmentation.segmenter import ExampleSet, learn_vocabulary, losses, total_loss


@pytest.mark.parametrize("window", [0, 1, 5])
def test_restricted_attention_equals_the_formula_word_by_word(window):
    torch.manual_seed(3)
    attention = RestrictedAttention(6, window)
    lengths = [9, 1, 4]
    h_BTD = torch.randn(3, 9, 6)
    mask_BT = torch.arange(9) < torch.tensor(lengths)[:, None]
    found_BTD = attention(h_BTD, mask_BT)
    w1, w2, w3 = attention.query.weight[0], attention.key.weight[0], attention.product_D
    for row, length in enumerate(lengths):
        for i in range(length):
            seen = [j for j in range(length) if abs(i - j) <= window]
            h = h_BTD[row]
            scores = torch.stack([w1 @ h[i] + w2 @ h[j] + w3 @ (h[i] * h[j]) + attention.query.bias[0] for j in seen])
            expected_D = scores.softmax(0) @ h[seen]
            torch.testing.assert_close(found_BTD[row, i], expected_D)


def test_bilstm_does_not_see_padding():
    torch.manual_seed(3)
    lstm = BiLstm(4, 5)
    x_BTD = torch.randn(2, 6, 4)
    lengths_B = torch.tensor([3, 6])
    whole_BTD = lstm(x_BTD, lengths_B)
    alone_TD = lstm(x_BTD[:1, :3], lengths_B[:1])[0]
    torch.testing.assert_close(whole_BTD[0, :3], alone_TD)
    assert whole_BTD.shape == (2, 6, 10)


def test_no_word_takes_its_head_beyond_the_end():
    torch.manual_seed(3)
    attention = HeadAttention(5, 4)
    torch.nn.init.normal_(attention.bilinear_DD)
    mask_BT = torch.tensor([[True, True, False], [True, True, True]])
    chances_BTT = attention(torch.randn(2, 3, 5), mask_BT).softmax(2)
    assert chances_BTT.shape == (2, 3, 4)
    assert chances_BTT[0, :, 2].max() == 0
    assert chances_BTT[0, :, 3].min() > 0


def test_locked_dropout_drops_the_same_for_all_words():
    dropout = LockedDropout(0.5)
    x_BTD = dropout(torch.ones(4, 7, 10))
    assert (x_BTD == x_BTD[:, :1]).all()
    assert set(x_BTD.unique().tolist()) == {0.0, 2.0}
    assert (dropout.eval()(torch.ones(1, 2, 3)) == 1).all()


@pytest.mark.parametrize("with_syntax", [True, False])
def test_every_parameter_gets_a_gradient(with_syntax):
    examples = EXAMPLES if with_syntax else [type(e)(e.words, e.starts) for e in EXAMPLES]
    settings = tiny_settings()
    vocabulary = learn_vocabulary(examples, settings.training)
    network = SegmenterNetwork(settings.network, vocabulary)
    parts = losses(network, *ExampleSet(examples, vocabulary).batch(range(5)))
    assert set(parts) == ({"edus", "pos", "relation", "head", "opening"} if with_syntax else {"edus"})
    total_loss(parts, settings.training.auxiliary).backward()
    missing = {name for name, parameter in network.named_parameters() if parameter.grad is None}
    assert not missing


def test_the_weights_of_the_losses_count():
    weights = tiny_settings(auxiliary={"pos": 2.0, "relation": 0.0, "head": 0.5, "opening": 0.0}).training.auxiliary
    parts = {name: torch.tensor(value) for name, value in zip(("edus", "pos", "head"), (1.0, 3.0, 5.0), strict=True)}
    assert total_loss(parts, weights).item() == 1 + 2 * 3 + 0.5 * 5


def test_word_shapes():
    shapes = {
        "lower": "house",
        "initial": "House",
        "upper": "NATO",
        "mixed": "iPhone",
        "digits": "1,000",
        "alphanumeric": "B2B",
        "punctuation": "...",
        "caseless": "房子",
    }
    assert tuple(shapes) == SHAPES
    assert {name: SHAPES[word_shape(word)] for name, word in shapes.items()} == {name: name for name in shapes}
    assert SHAPES[word_shape("A")] == "initial"
    assert SHAPES[word_shape("n't")] == "mixed"


def test_vocabulary_is_in_order_of_counts_then_letters():
    vocabulary = WordVocabulary.learn([["b", "A", "a", "c", "b", "d"]], min_word_count=2)
    assert vocabulary.words == ("a", "b")
    assert vocabulary.characters == ("b", "A", "a", "c", "d")
    assert WordVocabulary.from_dict(vocabulary.to_dict()) == vocabulary


def test_long_words_keep_their_beginning_and_their_end():
    vocabulary = WordVocabulary.learn([["abcdefghijklmnopqrstuvwxyz"]], min_word_count=1)
    types = WordTypes.encode(["abcdefghijklmnopqrstuvwxyz", "z", ""], vocabulary)
    names = [("", "", *vocabulary.characters)[number] for number in types.characters_UC[0].tolist()]
    assert "".join(names) == "abcdefghijklmnopstuvwxyz"
    assert types.characters_UC[1].tolist() == [2 + vocabulary.characters.index("z")] + [0] * 23


def make_crf(n_labels, *, seed=1):
    torch.manual_seed(seed)
    crf = LinearChainCrf(n_labels)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def plain_score(crf, emissions_TL, labels):
    score = crf.first_L[labels[0]]
    for t, label in enumerate(labels):
        score = score + emissions_TL[t, label]
        if t:
            score = score + crf.transitions_LL[labels[t - 1], label]
    return score


def all_scores(crf, emissions_TL):
    sequences = list(itertools.product(range(emissions_TL.shape[1]), repeat=len(emissions_TL)))
    return sequences, torch.stack([plain_score(crf, emissions_TL, labels) for labels in sequences])


@pytest.mark.parametrize("n_labels", [2, 3])
def test_likelihood_and_viterbi_equal_enumeration(n_labels):
    crf = make_crf(n_labels)
    lengths = torch.tensor([5, 1, 3, 2])
    emissions_BTL = torch.randn(4, 5, n_labels)
    mask_BT = torch.arange(5) < lengths[:, None]
    labels_BT = torch.randint(n_labels, (4, 5))
    found_B = crf.log_likelihood(emissions_BTL, labels_BT, mask_BT)
    best_BT = crf.viterbi(emissions_BTL, lengths)
    for row, length in enumerate(lengths.tolist()):
        sequences, scores = all_scores(crf, emissions_BTL[row, :length])
        gold = plain_score(crf, emissions_BTL[row], labels_BT[row, :length].tolist())
        torch.testing.assert_close(found_B[row], gold - torch.logsumexp(scores, 0))
        assert tuple(best_BT[row, :length].tolist()) == sequences[int(scores.argmax())]


def test_gradients_equal_those_of_enumeration():
    crf = make_crf(2)
    emissions_BTL = torch.randn(1, 4, 2, requires_grad=True)
    labels_BT = torch.tensor([[0, 1, 1, 0]])
    crf.log_likelihood(emissions_BTL, labels_BT, torch.ones(1, 4, dtype=torch.bool)).sum().backward()
    gradients = [emissions_BTL.grad.clone(), *(parameter.grad.clone() for parameter in crf.parameters())]
    emissions_BTL.grad = None
    crf.zero_grad()
    scores = all_scores(crf, emissions_BTL[0])[1]
    (plain_score(crf, emissions_BTL[0], labels_BT[0].tolist()) - torch.logsumexp(scores, 0)).backward()
    expected = [emissions_BTL.grad, *(parameter.grad for parameter in crf.parameters())]
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other)
