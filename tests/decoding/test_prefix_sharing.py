"""Targets of a source have the same log probabilities together as in separate batches."""

import core_fixtures
import numpy as np
import pytest
import torch
from architectures import SLOW_ABLATIONS
from core_fixtures import N_SYMBOLS, document_trees, make_model

from docmt.decoding.contrastive_scoring import instance_log_probabilities
from docmt.decoding.prefix_sharing import PrefixSharing, SharedLayout, n_shared_inputs
from docmt.text.vocabulary import BOS, EOS

SOURCE = [[7, 8, 9], [], [10, 11]]
TARGETS = [
    [[8, 9], [7], [12, 13, 14]],
    [[8, 9], [7], [12, 13, 15]],  # differs in its last word
    [[8, 9], [7], [12, 13, 14]],  # in nothing
    [[8, 9], [], [12]],
    [[8], [9], []],  # the same words in other sentences
    [[15], [7], [12, 13, 14]],  # from the first word
]
OTHER = [[9], [7, 7, 7, 7, 7, 7, 7, 7]]


def marked(sentences):
    return [np.array([BOS, *words, EOS]) for words in sentences]


def make_batch(settings, pairs, context="document"):
    documents = [(marked(src), marked(tgt)) for src, tgt in pairs]
    trees = document_trees(documents) if settings.needs_trees else None
    return core_fixtures.make_batch(settings, documents, trees, context=context)


PAIRS = [*((SOURCE, target) for target in TARGETS), (OTHER, OTHER), ([[]], [[]]), ([[]], [[7]])]
LEADERS = np.array([0] * len(TARGETS) + [6, 7, 7])


def sharing(is_free):
    shared = [n_shared_inputs(marked(PAIRS[b][1]), marked(PAIRS[i][1]), is_free=is_free) for i, b in enumerate(LEADERS)]
    return PrefixSharing(LEADERS, np.where(np.arange(len(LEADERS)) == LEADERS, 0, shared))


@pytest.mark.parametrize("architecture", SLOW_ABLATIONS)
@pytest.mark.parametrize("context", ["document", "none"])
@torch.no_grad()
def test_shared_rows_change_no_log_probability(architecture, context):
    model = make_model(architecture, n_symbols=N_SYMBOLS).double()
    if context == "none" and model.settings.context is None:
        pytest.skip("only a context encoder has this choice")
    batch = make_batch(model.settings, PAIRS, context)
    log_probabilities = instance_log_probabilities(model, batch, sharing(model.settings.target_stream == "free"))
    assert log_probabilities == pytest.approx(instance_log_probabilities(model, batch), rel=1e-5)
    alone = [instance_log_probabilities(model, make_batch(model.settings, [pair], context))[0] for pair in PAIRS]
    assert log_probabilities == pytest.approx(np.array(alone), rel=1e-5)


def test_what_is_equal_is_computed_once():
    settings = make_model("g_transformer", n_symbols=N_SYMBOLS).settings
    batch = make_batch(settings, PAIRS)
    shared = SharedLayout(batch.layout, sharing(is_free=False))
    n_src = [sum(map(len, marked(src))) for src, _ in PAIRS]
    assert len(shared.keep(batch.src_tokens_S, "src")) == n_src[0] + n_src[6] + n_src[7]
    # Inputs of the first target: <s> 8 9 <s> 7 <s> 12 13 14. Tails: 15 / nothing / <s> 12 after the second <s> …
    inputs = [sum(len(words) + 1 for words in target) for _, target in PAIRS]
    tails = [1, 0, inputs[3] - 4, inputs[4] - 2, inputs[5] - 1]
    assert len(shared.keep(batch.tgt_inputs_N, "tgt")) == inputs[0] + sum(tails) + inputs[6] + inputs[7] + 1
    assert shared.grouping("encoder", "group").n_queries == n_src[0] + n_src[6] + n_src[7]
