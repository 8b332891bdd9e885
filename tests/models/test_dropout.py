import pytest
import torch

from docmt.models.numerics import STEPS, dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 1e-9])
def test_dropout_scales_the_remaining_entries(probability, dtype):
    torch.manual_seed(0)
    rows = torch.full((701, 333), 2.0, dtype=dtype, requires_grad=True)
    dropped = dropout(rows, probability, True)
    exact = max(round(probability * STEPS), 1) / STEPS
    assert abs(exact - probability) <= 1 / STEPS
    n, n_zeros = rows.numel(), int((dropped == 0).sum())
    assert abs(n_zeros - n * exact) <= 5 * (n * exact * (1 - exact)) ** 0.5 + 1
    assert dropped.dtype == dtype
    assert set(dropped.unique().tolist()) <= {0.0, float(torch.tensor(2 / (1 - exact)).to(dtype))}
    (gradient,) = torch.autograd.grad(dropped.sum(), rows)
    assert torch.equal(gradient * 2, dropped.detach())


def test_draws_differ_and_follow_the_seed():
    rows = torch.ones(64, 64)
    torch.manual_seed(3)
    first, second = dropout(rows, 0.5, True), dropout(rows, 0.5, True)
    torch.manual_seed(3)
    assert torch.equal(dropout(rows, 0.5, True), first)
    assert not torch.equal(first, second)
    assert len(first.unique(dim=0)) == len(first.unique(dim=1)) == 64


def test_no_dropout_in_evaluation_or_without_probability():
    rows = torch.ones(3, 4)
    assert torch.equal(dropout(rows, 0.5, False), rows)
    assert torch.equal(dropout(rows, 0.0, True), rows)
