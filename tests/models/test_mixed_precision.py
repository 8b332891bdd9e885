import pytest
import torch
from core_fixtures import document_trees, make_batch, make_model, random_documents

from docmt.models import numerics
from docmt.models.numerics import convert
from docmt.models.presets import ARCHITECTURES
from docmt.models.systems import transformer
from docmt.training.loss import LossModule


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layerwise_conversion_equals_autocast(architecture, monkeypatch):
    """Including dropout and drafts. Both runs draw the same random numbers."""
    model = make_model(architecture, dropout=0.1).train()
    documents = random_documents([3, 1, 5])
    batch = make_batch(model.settings, documents, document_trees(documents) if model.settings.needs_trees else None)

    def run():
        torch.manual_seed(0)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = LossModule(model, 0.1)(batch.prepare("padded"))
        loss.backward()
        return loss, {name: p.grad for name, p in model.named_parameters()}

    loss, gradients = run()
    monkeypatch.setattr(transformer, "call_layer", lambda layer, *arguments: layer(*arguments))
    plain, expected = run()
    assert torch.equal(loss, plain)
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, expected[name], rtol=2e-2, atol=2e-2 * float(expected[name].abs().max()))


def test_float32_layers_are_called_unchanged(monkeypatch):
    monkeypatch.setattr(numerics, "functional_call", None)
    model = make_model()
    LossModule(model, 0.1)(make_batch(model.settings, random_documents([2])).prepare("padded")).backward()


def test_joint_conversions_equal_separate_ones():
    """Unused tensors have no gradient."""
    tensors = [torch.randn(n, 3, generator=torch.Generator().manual_seed(n)).requires_grad_() for n in (1, 2, 5)]
    first, second, _ = convert(tensors, torch.bfloat16)
    gradients = torch.randn(2, 1, 3).bfloat16()
    torch.autograd.backward((first, second), (gradients[0], gradients[1].expand(2, 3)))
    assert torch.equal(first, tensors[0].bfloat16())
    assert torch.equal(tensors[0].grad, gradients[0].float())
    assert torch.equal(tensors[1].grad, gradients[1].expand(2, 3).float())
    assert tensors[2].grad is None
