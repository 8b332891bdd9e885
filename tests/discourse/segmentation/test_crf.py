"""The conditional random field against all label sequences, one by one."""

import itertools

import pytest
import torch

from docmt.discourse.segmentation.network import LinearChainCrf


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
    found = [emissions_BTL.grad.clone(), *(parameter.grad.clone() for parameter in crf.parameters())]
    emissions_BTL.grad = None
    crf.zero_grad()
    scores = all_scores(crf, emissions_BTL[0])[1]
    (plain_score(crf, emissions_BTL[0], labels_BT[0].tolist()) - torch.logsumexp(scores, 0)).backward()
    expected = [emissions_BTL.grad, *(parameter.grad for parameter in crf.parameters())]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
