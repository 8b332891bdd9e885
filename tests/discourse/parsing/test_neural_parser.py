"""The neural parser: training, batched parsing, ugly documents."""

import random

import pytest
import torch
from parsing_fixtures import (
    WIDTH,
    WORDS,
    StandInSegmenter,
    check_constrained_trees,
    check_ugly_documents,
    coarse,
    free_scores,
    random_document,
)

from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts, sentences_of
from docmt.discourse.parsing.network import (
    EduInputs,
    Ensemble,
    EnsembleClassifier,
    ParserNetwork,
    WordPooling,
    collate,
    edu_inputs,
    make_example,
    number_words,
)
from docmt.discourse.parsing.parser import MAX_BATCH_EDUS, NeuralParser, word_states
from docmt.discourse.parsing.training import total_loss, train_member, training_tree
from docmt.discourse.settings import NeuralSettings, ParserSettings

TINY = {"members": 1, "edu_width": 8, "document_width": 4, "hidden_width": 16, "structure_width": 8}
RATES = ("input_dropout", "hidden_dropout", "relation_dropout")
NOTHING_HIDDEN = dict.fromkeys((*RATES, "word_dropout", "label_smoothing"), 0.0)
RECIPE = TINY | NOTHING_HIDDEN | {"epochs": 60, "documents_per_batch": 3, "learning_rate": 1e-2, "average_decay": 0.9}


def examples_of(documents, *, reads_lower=True):
    segmenter = StandInSegmenter()
    trees = [training_tree(document, coarse) for document in documents]
    relations = sorted({node.relation for tree in trees for node in tree.postorder() if not node.is_leaf})
    states = word_states(segmenter.encode(sentences_of(documents)), documents, reads_lower=reads_lower)
    return relations, [
        make_example(document, tree, words, relations=relations, numbers=number_words(WORDS))
        for document, tree, words in zip(documents, trees, states, strict=True)
        if not tree.is_leaf
    ]


def train(documents, seed=1, **settings):
    relations, examples = examples_of(documents)
    network = train_member(
        examples,
        n_words=len(WORDS),
        n_relations=len(relations),
        settings=NeuralSettings(**RECIPE | settings),
        seed=seed,
    )
    return NeuralParser(Ensemble([network]), relations, WORDS, StandInSegmenter(), ParserSettings())


@pytest.fixture(scope="module")
def parser(documents):
    return train(documents)


def test_it_learns_its_training_documents(parser, documents):
    scores = free_scores(parser, documents)
    assert scores["S"] > 75
    assert scores["F"] > 60


def test_sentences_are_complete_and_relations_known(parser):
    check_constrained_trees(parser, [random_document(seed, n_sentences=8, with_tree=False) for seed in range(50, 60)])


def test_batches_equal_single_documents(parser):
    unseen = [random_document(seed, with_tree=False) for seed in range(70, 85)]
    alone = [parser.parse(document).tree for document in unseen]
    assert [document.tree for document in parser.parse_batch(unseen)] == alone
    states = word_states(parser.segmenter.encode(sentences_of(unseen)), unseen, reads_lower=True)
    assert [document.tree for document in parser.parse_batch(unseen, states)] == alone


def test_only_the_upper_states():
    document = random_document(4, n_sentences=3)
    outputs = StandInSegmenter().encode(document.sentences)
    (upper,) = word_states(outputs, [document], reads_lower=False)
    (both,) = word_states(outputs, [document], reads_lower=True)
    assert [states.shape[1] for states in (*upper, *both)] == [WIDTH] * 3 + [2 * WIDTH] * 3
    assert all(torch.equal(a, b[:, :WIDTH]) for a, b in zip(upper, both, strict=True))


def test_ugly_documents_and_counts(parser):
    parser.counts.clear()
    check_ugly_documents(parser, n_long=900)
    assert (parser.counts["documents"], parser.counts["edus"]) == (4, 904)


def test_more_edus_than_fit_side_by_side(parser, monkeypatch):
    unseen = [random_document(seed, with_tree=False) for seed in range(90, 96)]
    expected = [document.tree for document in parser.parse_batch(unseen)]
    monkeypatch.setattr("docmt.discourse.parsing.parser.MAX_BATCH_EDUS", 7)
    assert [document.tree for document in parser.parse_batch(unseen)] == expected
    assert MAX_BATCH_EDUS > 7


def test_seed_decides_the_weights(documents):
    settings = {"epochs": 2, "hidden_dropout": 0.3, "paragraph_dropout": 0.5}
    random.seed(1)
    first = train(documents, **settings).ensemble.networks[0].state_dict()
    torch.manual_seed(99)
    second = train(documents, **settings).ensemble.networks[0].state_dict()
    other = train(documents, seed=2, **settings).ensemble.networks[0].state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_every_parameter_gets_a_gradient(documents):
    relations, examples = examples_of(documents)
    network = ParserNetwork(2 * WIDTH, len(WORDS), len(relations), NeuralSettings(**TINY))
    total_loss(network, examples, [False] * len(examples), 0.1).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in network.parameters())


def test_pooled_words():
    document = DiscourseDocument("d", (("a", "b", "c"), ()), edus_from_starts([[1], []], [3, 0]))
    states = [torch.tensor([[1.0], [2.0], [4.0]]), torch.zeros(0, 1)]
    inputs = edu_inputs(document, states, {"a": 1, "c": 2})
    assert inputs.edges_E3.tolist() == [[1, 0, 1], [0, 2, 2], [0, 0, 0]]
    pool = WordPooling(1, 1)
    torch.nn.init.constant_(pool.queries.weight, 1.0)
    torch.nn.init.constant_(pool.queries.bias, 0.0)
    one, two, empty = pool(inputs).tolist()
    assert one == [1.0] * 4  # first word, last word, mean, weighted mean
    assert two[:3] == [2.0, 4.0, 3.0]
    assert 3.7 < two[3] < 3.8  # e² / (e² + e⁴) of 2.0, a little flattened by the bound
    assert empty == [0.0] * 4


def test_collated_slots_point_into_the_batch(documents):
    _, examples = examples_of(documents[:2])
    lengths = [example.inputs.n_edus[0] for example in examples]
    slots_QL, structures_Q2, *_ = collate([example.steps for example in examples], lengths, [False, True])
    first = len(examples[0].steps.labels_Q)
    assert slots_QL[0].tolist()[:8] == [sum(lengths)] * 8  # an empty stack
    assert slots_QL[first, 8] == lengths[0]  # the queue of the second document begins behind the first one
    assert structures_Q2[first:].tolist() == examples[1].steps.structures_Q2[1].tolist()


@pytest.mark.parametrize("kind", ["actions", "relations"])
def test_ensemble_averages_log_probabilities(documents, kind):
    relations, examples = examples_of(documents)
    torch.manual_seed(0)
    networks = [ParserNetwork(2 * WIDTH, len(WORDS), len(relations), NeuralSettings(**TINY)).eval() for _ in range(3)]
    for network in networks:
        torch.nn.init.normal_(getattr(network, kind).norm.weight)
    inputs = EduInputs.join([example.inputs for example in examples])
    decisions = [example.steps if kind == "actions" else example.nodes for example in examples]
    *rows, _ = collate(decisions, inputs.n_edus, [False] * len(examples))
    with torch.no_grad():
        encoded = [network.encoder(inputs) for network in networks]
        members = [getattr(network, kind) for network in networks]
        single = [
            member(member.cache(edus_ER, inputs.n_edus), *rows).log_softmax(-1)
            for member, edus_ER in zip(members, encoded, strict=True)
        ]
        fused = EnsembleClassifier(members)
        together = fused.log_probabilities(fused.cache(encoded, inputs.n_edus), *rows)
    assert torch.allclose(together, torch.stack(single).mean(0), atol=1e-5)
