"""The chunked loss against the plain one."""

import pytest
import torch
import torch.nn.functional as F
from core_fixtures import assert_close, make_batch, make_model, random_documents

from docmt.models.numerics import CHUNK_SCORES
from docmt.training.loss import LossModule, SummedLoss


def inputs(n, dtype=torch.float32, n_symbols=37):
    torch.manual_seed(n)
    hidden, table = torch.randn(n, 8), torch.randn(n_symbols, 8)
    return hidden.to(dtype).requires_grad_(), table.requires_grad_(), torch.randint(n_symbols, (n,))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("chunk_scores", [1, 37 * 4, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunks_have_the_loss_and_gradients_of_the_whole(n, chunk_scores, smoothing, monkeypatch):
    monkeypatch.setitem(CHUNK_SCORES, "cpu", chunk_scores)
    hidden, table, labels = inputs(n)
    expected = F.cross_entropy(F.linear(hidden, table), labels, label_smoothing=smoothing, reduction="sum")
    found = SummedLoss.apply(hidden, table, labels, smoothing, torch.float32)
    assert_close(found, expected)
    gradients = torch.autograd.grad(3 * expected, (hidden, table))
    for a, b in zip(torch.autograd.grad(3 * found, (hidden, table)), gradients, strict=True):
        assert_close(a, b)


def test_mixed_precision_multiplies_in_bfloat16_and_adds_up_in_float32(monkeypatch):
    monkeypatch.setitem(CHUNK_SCORES, "cpu", 37 * 4)
    hidden, table, labels = inputs(40)
    expected = F.cross_entropy(
        F.linear(hidden.bfloat16(), table.bfloat16()).float(), labels, label_smoothing=0.1, reduction="sum"
    )
    found = SummedLoss.apply(hidden, table, labels, 0.1, torch.bfloat16)
    assert found.dtype == torch.float32
    assert_close(found, expected)
    for a, b in zip(*(torch.autograd.grad(x, (hidden, table)) for x in (found, expected)), strict=True):
        assert a.dtype == torch.float32
        assert_close(a, b, 1e-2)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
@torch.no_grad()
def test_validation_in_chunks_equals_validation_as_a_whole(architecture, monkeypatch):
    model = make_model(architecture)
    batch = make_batch(model.settings, random_documents([3, 1, 5]))
    whole = LossModule(model, 0.1).validate(batch)
    monkeypatch.setitem(CHUNK_SCORES, "cpu", 24 * 3)
    parts = LossModule(model, 0.1).validate(batch)
    assert parts == pytest.approx(whole, rel=1e-6)
    logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout))[batch.is_word_or_end()]
    labels = batch.tgt_labels_N[batch.is_word_or_end()]
    for found, smoothing in zip(whole, (0.1, 0.0), strict=False):
        plain = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
        assert found == pytest.approx(float(plain), rel=1e-5)
    assert whole[2] == len(labels)


def test_autocast_reaches_the_loss():
    model = make_model()
    batch = make_batch(model.settings, random_documents([3, 1, 5]))
    module = LossModule(model, 0.1)
    expected = module(batch)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(batch)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(expected), rel=2e-2)
    found.backward()
    assert model.embedding.weight.grad.dtype == torch.float32
