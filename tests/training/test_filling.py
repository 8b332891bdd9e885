"""Filled batches: equal loss and gradients, few shapes, and bounds that hold."""

import numpy as np
import pytest
import torch
from architectures import ABLATIONS, slow_but
from core_fixtures import assert_close, document_trees, make_batch, make_model, random_documents
from plain_attention import take_plain_kernels

from docmt.errors import UserError
from docmt.models.attention import varlen
from docmt.models.presets import ARCHITECTURES
from docmt.models.systems import transformer
from docmt.training import filling
from docmt.training.filling import FilledBatch
from docmt.training.loss import LossModule

LAYOUTS = ([3, 1, 4], [1], [1, 1, 1, 5], [9, 2])
"""Sentences per document. Some sentences are empty."""
SMALL = {"encoder_layers": 1, "decoder_layers": 1}
PLAIN = sorted(set(ARCHITECTURES) - ABLATIONS)


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    """Plain version of the GPU operator, with steps of few tokens. Collects kernel names."""
    names = []
    monkeypatch.setattr(transformer, "kernel_for", lambda *_: "varlen")
    take_plain_kernels(monkeypatch, names)
    for name, step in {"TOKENS": 64, "SENTENCES": 8, "GROUPS": 32, "KEYS": 128, "ROWS": 16}.items():
        monkeypatch.setattr(filling, name, step)
    return names


def batch_of(settings, counts, seed=0, **options):
    documents = random_documents(counts, seed=seed)
    open_B = np.arange(len(counts)) % 3 == 1  # dropped trees
    trees = document_trees(documents, open_B=open_B) if settings.needs_trees and seed % 3 else None
    return make_batch(settings, documents, trees, **options)


def on_device(filled, settings):
    return filled.views(filled.buffer.clone(), settings)[1]


def results(module, batch):
    module.zero_grad()
    loss = module(batch)
    loss.backward()
    return [loss, *(parameter.grad for parameter in module.parameters())]


def assert_filler_changes_nothing(architecture, **options):
    # In evaluation mode: random numbers depend on the number of tokens.
    module = LossModule(make_model(architecture, **SMALL), 0.1).eval()
    settings = module.model.settings
    for seed, counts in enumerate(LAYOUTS):
        expected = results(module, batch_of(settings, counts, seed, **options).prepare("varlen"))
        filled = on_device(FilledBatch.of(batch_of(settings, counts, seed, **options)), settings)
        for ours, plain in zip(results(module, filled), expected, strict=True):
            assert (ours is None) == (plain is None)
            if plain is not None:
                assert_close(ours, plain, 2e-5)


@pytest.mark.parametrize("architecture", slow_but(("g_transformer", "cadec")))
def test_filler_changes_no_gradient(architecture):
    assert_filler_changes_nothing(architecture)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["global_context", "doct", "cadec"])
def test_filler_among_sentences_without_context(architecture):
    assert_filler_changes_nothing(architecture, context="none")


def unmasked(batch):
    return filling.replace(batch, tgt_labels_N=batch.tgt_labels_N.clamp(min=0))


def joined(batch):
    """The filler belongs to the last document."""
    layout = batch.layout
    layout.sentences_B = layout.documents_B = np.append(layout.sentences_B[:-2], layout.sentences_B[-2:].sum())
    return batch


@pytest.mark.parametrize("damage", [unmasked, joined])
def test_filler_that_changes_gradients_is_noticed(damage, monkeypatch):
    fill_up = filling.fill_up
    monkeypatch.setattr(filling, "fill_up", lambda batch: damage(fill_up(batch)))
    with pytest.raises(AssertionError, match=r"Tensor-likes are not close|Scalars are not close"):
        assert_filler_changes_nothing("document_transformer_aligned")


@pytest.mark.parametrize("architecture", PLAIN)
def test_filled_sizes_are_multiples_and_bounds_hold(architecture):
    settings = make_model(architecture, **SMALL).settings
    for seed, counts in enumerate(LAYOUTS):
        batch = on_device(FilledBatch.of(batch_of(settings, counts, seed)), settings)
        layout = batch.layout
        assert len(batch.src_tokens_S) % 64 == len(batch.tgt_inputs_N) % 64 == 0
        assert len(layout.table_TD) >= max(int(layout.indexes[kind].max()) for kind in layout.indexes
                                           if kind[1] in ("instance", "sentence"))  # fmt: skip
        for inputs in layout.groupings.values():
            queries, keys = inputs.query_offsets.diff(), inputs.key_offsets.diff()
            assert len(queries) % 32 == 0
            assert 0 <= queries.min() <= queries.max() <= inputs.max_queries
            assert 0 <= keys.min() <= keys.max() <= inputs.max_keys
            if inputs.key_rows_M is not None:
                assert len(inputs.key_rows_M) == inputs.key_offsets[-1]
                assert len(inputs.key_rows_M) % 128 == 0


@pytest.mark.parametrize("architecture", ["g_transformer", "rst_mix", "doct", "han", "san", "cadec"])
def test_batches_of_similar_size_have_one_key(architecture):
    settings = make_model(architecture, **SMALL).settings
    keys = {FilledBatch.of(batch_of(settings, [2, 2], seed)).key for seed in (1, 2, 4, 5, 7)}
    assert len(keys) == 1


def test_filler_keeps_the_choice_of_kernels(kernel, monkeypatch):
    monkeypatch.setattr(varlen, "MEAN_LENGTH", 8)
    module = LossModule(make_model("document_transformer", **SMALL), 0.1)
    settings = module.model.settings
    module(on_device(FilledBatch.of(batch_of(settings, [4, 9])), settings))
    assert set(kernel) == {"flash"}


def test_filler_is_not_longer_than_learned_positions():
    """Only real instances are checked, because filler shares the last vector."""
    settings = make_model(**SMALL, positions="instance", form={"learned_positions": 30}).settings
    FilledBatch.of(batch_of(settings, [2]))
    with pytest.raises(UserError, match="tokens, but the model has only 30 learned positions"):
        FilledBatch.of(batch_of(settings, [9]))


def test_numbers_come_first_in_the_buffer():
    settings = make_model(**SMALL).settings
    filled = FilledBatch.of(batch_of(settings, [2]))
    filled.write_numbers([0.5, 7, 1e-3])
    numbers, _ = filled.views(filled.buffer.clone(), settings)
    torch.testing.assert_close(numbers[:3], torch.tensor([0.5, 7, 1e-3]))
