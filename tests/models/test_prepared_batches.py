"""Batches that contain everything for the model in advance, and move to a device in one piece."""

from dataclasses import is_dataclass

import pytest
import torch
from core_fixtures import document_trees, make_batch, make_model, random_documents
from torch import Tensor
from torch.utils.data import DataLoader

from docmt.models.batch import DeviceBatch
from docmt.models.buffers import map_leaves
from docmt.models.presets import ARCHITECTURES
from docmt.training.loss import LossModule

DOCUMENTS = [4, 1, 2, 9]


def batch_of(architecture, *, seed=1, **options):
    model = make_model(architecture)
    documents = random_documents(DOCUMENTS, seed=seed)
    trees = document_trees(documents) if model.settings.needs_trees else None
    return model, make_batch(model.settings, documents, trees, **options).prepare("padded")


def tensors_of(batch) -> list[Tensor]:
    tensors = []
    map_leaves(batch, tensors.append)
    return tensors


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("context", ["document", "none"])
def test_prepared_batches_contain_all_that_models_read(architecture, context, monkeypatch):
    model, batch = batch_of(architecture, context=context)
    monkeypatch.setattr(torch, "from_numpy", None)
    assert LossModule(model, 0.1)(batch).isfinite()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pinned_batch_shares_one_buffer(architecture, monkeypatch):
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.clone)
    monkeypatch.setattr(Tensor, "is_pinned", lambda _: True)
    model, batch = batch_of(architecture)
    expected = LossModule(model, 0.1)(batch)
    pinned = batch.pin_memory()
    assert pinned.pin_memory() is pinned
    assert {tensor.untyped_storage().data_ptr() for tensor in tensors_of(pinned)} == {pinned.buffer.data_ptr()}
    for copy, original in zip(tensors_of(pinned), tensors_of(batch), strict=True):
        assert copy.dtype == original.dtype
        assert torch.equal(copy, original)
        assert copy.data_ptr() % 16 == 0
    assert torch.equal(LossModule(model, 0.1)(pinned), expected)


@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_batch_moves_in_one_copy(is_pinned, monkeypatch):
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.clone)
    _, batch = batch_of("global_context")
    if is_pinned:
        batch = batch.pin_memory()
    calls = []
    to = Tensor.to
    monkeypatch.setattr(Tensor, "to", lambda self, *a, **k: calls.append((self.dtype, k)) or to(self, *a, **k))
    moved = batch.to("meta")
    assert calls == [(torch.uint8, {"non_blocking": True})]
    assert {tensor.device.type for tensor in tensors_of(moved)} == {"meta"}
    assert [tensor.shape for tensor in tensors_of(moved)] == [tensor.shape for tensor in tensors_of(batch)]


def test_a_batch_on_its_device_is_left_alone():
    _, batch = batch_of("g_transformer")
    assert batch.to("cpu") is batch


def test_loader_sends_batches_in_one_piece():
    model, expected = batch_of("rst_mix")
    loader = DataLoader([0, 1], batch_size=None, num_workers=1, collate_fn=lambda _: batch_of("rst_mix")[1])
    for batch in loader:
        assert {tensor.untyped_storage().data_ptr() for tensor in tensors_of(batch)} == {batch.buffer.data_ptr()}
        assert batch.layout.groupings.keys() == expected.layout.groupings.keys()
        assert torch.equal(LossModule(model, 0.1)(batch), LossModule(model, 0.1)(expected))


def test_a_mapped_batch_has_no_buffer(monkeypatch):
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.clone)
    _, batch = batch_of("g_transformer")
    changed = map_leaves(batch.pin_memory(), lambda tensor: tensor + 1)
    assert changed.buffer is None
    assert torch.equal(changed.src_tokens_S, batch.src_tokens_S + 1)


def test_a_device_batch_is_no_dataclass():
    """In mixed precision, Fabric unpacks dataclasses in every model call, and refuses nested frozen ones."""
    assert not is_dataclass(DeviceBatch)
