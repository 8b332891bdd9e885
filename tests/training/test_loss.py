"""The chunked loss compared with the plain loss."""

import pytest
import torch
import torch.nn.functional as F
from core_fixtures import assert_close, decoder_states, make_batch, make_model, random_documents

from docmt.models.batch import NO_LABEL
from docmt.models.numerics import CHUNK_SCORES
from docmt.training import loss
from docmt.training.loss import LossModule, loss_and_gradients


def inputs(n, dtype=torch.float32, n_symbols=37):
    torch.manual_seed(n)
    hidden, table = torch.randn(n, 8), torch.randn(n_symbols, 8)
    table = table.to(torch.promote_types(dtype, torch.float32))
    return hidden.to(dtype).requires_grad_(), table.requires_grad_(), torch.randint(n_symbols, (n,))


@pytest.fixture
def uncompiled(monkeypatch):
    """Plain chunks with one size, in a vocabulary that is padded as on a GPU."""
    monkeypatch.setattr(loss, "_compiled_chunk", lambda: loss._chunk)
    monkeypatch.setattr(loss, "ALIGNED", ("cpu",))


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 140])
@pytest.mark.parametrize("chunk_scores", [1, 37 * 4, None])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("is_masked", [False, True])
def test_chunks_equal_the_whole(n, chunk_scores, smoothing, has_bias, is_masked, monkeypatch, uncompiled):
    """Chunks by number of scores, or with one size, with every second label masked."""
    monkeypatch.setitem(CHUNK_SCORES, "cpu", chunk_scores)
    hidden, table, labels = inputs(n, torch.float64)
    if is_masked:
        labels[::2] = NO_LABEL
    leaves = [hidden, table, *([torch.randn(37).double().requires_grad_()] if has_bias else [])]
    expected = F.cross_entropy(
        F.linear(*leaves), labels, label_smoothing=smoothing, reduction="sum", ignore_index=NO_LABEL
    )
    options = smoothing, torch.float64, leaves[2] if has_bias else None, 64 * 37 if chunk_scores is None else 0
    total = loss_and_gradients(hidden, table, labels, *options)[0]
    assert_close(total.double(), expected)
    gradients = torch.autograd.grad(3 * expected, leaves)
    for a, b in zip(torch.autograd.grad(3 * total, leaves), gradients, strict=True):
        torch.testing.assert_close(a, b.to(a.dtype), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_chunks_of_one_size_equal_other_chunks(dtype, uncompiled):
    hidden, table, labels = inputs(140)
    arguments = hidden, table, labels, 0.1, dtype, torch.randn(37)
    for a, b in zip(loss_and_gradients(*arguments, True), loss_and_gradients(*arguments, False), strict=True):
        assert a.dtype == b.dtype
        assert_close(a.float(), b.float(), 1e-5 if dtype == torch.float32 else 1e-2)


def test_mixed_precision_sums_in_float32(monkeypatch):
    monkeypatch.setitem(CHUNK_SCORES, "cpu", 37 * 4)
    hidden, table, labels = inputs(40)
    expected = F.cross_entropy(
        F.linear(hidden.bfloat16(), table.bfloat16()).float(), labels, label_smoothing=0.1, reduction="sum"
    )
    total = loss_and_gradients(hidden, table, labels, 0.1, torch.bfloat16)[0]
    assert total.dtype == torch.float32
    assert_close(total, expected)
    for a, b in zip(*(torch.autograd.grad(x, (hidden, table)) for x in (total, expected)), strict=True):
        assert a.dtype == torch.float32
        assert_close(a, b, 1e-2)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
@torch.no_grad()
def test_losses_are_smoothed_cross_entropies(architecture, monkeypatch):
    model = make_model(architecture)
    batch = make_batch(model.settings, random_documents([3, 1, 5]))
    whole = LossModule(model, 0.1).validate(batch.prepare("padded"))
    monkeypatch.setitem(CHUNK_SCORES, "cpu", 24 * 3)
    parts = LossModule(model, 0.1).validate(batch.prepare("padded"))
    assert parts == pytest.approx(whole, rel=1e-6)
    # (1 − ε)·(−log p(label)) + ε·(mean of −log p over the vocabulary), summed over labels.
    scores = -model.logits(decoder_states(model, batch)).double().log_softmax(-1)
    of_label = scores.gather(1, batch.tgt_labels_N[:, None])[:, 0]
    smoothed = 0.9 * of_label + 0.1 * scores.mean(1)
    assert float(LossModule(model, 0.1)(batch.prepare("padded"))) == pytest.approx(float(smoothed.sum()), rel=1e-5)
    assert float(LossModule(model, 0.0)(batch.prepare("padded"))) == pytest.approx(float(of_label.sum()), rel=1e-5)
    # Validation counts words and `</s>`, which all target streams have.
    mask = batch.is_word_or_end_N
    expected = [*(float(sums[mask].sum()) for sums in (smoothed, of_label)), int(mask.sum())]
    expected += [float(of_label[~mask].sum()), int((~mask).sum())]
    assert whole == pytest.approx(expected, rel=1e-5)


def test_autocast_reaches_the_loss():
    model = make_model()
    batch = make_batch(model.settings, random_documents([3, 1, 5])).prepare("padded")
    module = LossModule(model, 0.1)
    expected = module(batch)
    with torch.autocast("cpu", torch.bfloat16):
        total = module(batch)
    assert total.dtype == torch.float32
    assert float(total) == pytest.approx(float(expected), rel=2e-2)
    total.backward()
    assert model.embedding.weight.grad.dtype == torch.float32
