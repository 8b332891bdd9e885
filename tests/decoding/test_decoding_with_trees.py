"""RST attention in decoding: teacher forcing, batches, single documents, missing trees, and discarded columns."""

import numpy as np
import pytest
import torch
from architectures import slow_but
from core_fixtures import document_trees, make_model
from plain_search import search, sources, teacher_forced, texts

from docmt.decoding import caches
from docmt.decoding.caches import PrefixTree, RelatedVisibility
from docmt.models.attention.layout import AttentionLayout, BatchTrees

ARCHITECTURES = ("rst_serial", "rst_parallel", "rst_mix")


def trees_of(documents, open_B=None):
    return document_trees([(document, document) for document in documents], open_B=open_B)


@pytest.mark.parametrize("name", slow_but(("rst_mix",), ARCHITECTURES))
@pytest.mark.parametrize("opened", [(), (1, 3)])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_cached_scores_equal_teacher_forcing(name, opened, beam_size, monkeypatch):
    monkeypatch.setattr(caches, "MIN_DROPPED", 1)
    model = make_model(name)
    documents = sources((1, 4, 12, 5))
    open_B = np.isin(np.arange(4), opened)
    beams = search(model, documents, trees_of(documents, open_B), beam_size=beam_size)
    for number, (source, hypotheses) in enumerate(zip(documents, beams, strict=True)):
        trees = trees_of([source], open_B[[number]])
        for hypothesis in hypotheses:
            expected = teacher_forced(model, source, hypothesis.sentences, trees)
            assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_batched_equals_alone(name):
    model = make_model(name)
    documents = sources((3, 1, 9, 1, 5, 2), seed=1)

    alone = [texts(search(model, [document], trees_of([document])))[0] for document in documents]
    assert texts(search(model, documents, trees_of(documents))) == alone


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_without_trees_equals_all_open(name):
    model = make_model(name)
    documents = sources((4, 6), seed=2)
    opened = search(model, documents, trees_of(documents, [True, True]))
    without = search(model, documents, None)
    for a, b in zip(opened, without, strict=True):
        assert [x.sentences for x in a] == [x.sentences for x in b]
        assert [x.score for x in a] == pytest.approx([x.score for x in b], rel=1e-5)


def layout_of(heads, *, is_open=False):
    n = len(heads)
    ones = np.ones(n, dtype=np.int64)
    trees = BatchTrees.of_instance(
        edu_lengths=ones * 2, edu_heads=np.array(heads), edu_counts=ones, sentence_heads=np.array(heads)
    ).without_tree_mask(np.array([is_open]))
    model = make_model("rst_mix")
    return AttentionLayout(ones * 2, ones, np.array([n]), settings=model.settings, trees=trees)


def test_only_nodes_of_use_later_are_kept(monkeypatch):
    """In a chain, no token of sentence 2 attends to sentence 0 any more."""
    monkeypatch.setattr(caches, "MIN_DROPPED", 1)
    view = RelatedVisibility(layout_of([-1, 0, 1]), "rst", torch.device("cpu"))
    tree = PrefixTree(view, (1, 1, 2, 1, 2), like=torch.zeros(()))
    for sentences in ([0, 0], [0, 0], [1, 0], [1, 1]):
        tree.advance(torch.tensor([sentences]))
        tree.reorder(torch.tensor([0, 1]))
    # Even nodes are the first row's. One row can still go back to sentence 0 as long as it is in sentence 1.
    tree.evict(*tree.count_live(torch.tensor([[2, 1]])).tolist())
    assert tree.sentences_BC[0, : tree.n].tolist() == [0, 0, 1, 0, 1, 1]
    tree.evict(*tree.count_live(torch.tensor([[2, 2]])).tolist())
    assert tree.sentences_BC[0, : tree.n].tolist() == [1, 1, 1]
    tree.advance(torch.tensor([[2, 2]]))
    assert tree.bias_B1MN[:, 0].isneginf().int().tolist() == [[[0, 0, 1, 0, 1], [1, 1, 0, 1, 0]]]


@pytest.mark.parametrize("beam", [1, 5, 8, 70])
def test_bias_rows_are_aligned_to_eight(beam):
    """Otherwise, the memory-efficient GPU kernel copies the bias in every layer."""
    layout = layout_of([-1, 0])
    for view in (caches.Visibility(), RelatedVisibility(layout, "rst", torch.device("cpu"))):
        tree = PrefixTree(view, (1, 2, beam, 1, 2), like=torch.zeros(()))
        for _ in range(30):
            tree.advance(torch.zeros(2, beam, dtype=torch.int64))
            assert tree.bias_B1MN.shape == (2, 1, beam, tree.n)
            assert all(stride % 8 == 0 for stride in tree.bias_B1MN.stride()[:-1])
            assert (tree.bias_B1MN == 0).sum() == 2 * beam * tree.n_steps
