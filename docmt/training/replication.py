"""The loss where several devices exchange gradients: every parameter must take part in every update."""

from typing import Any

from torch import Tensor, nn
from torch.autograd import Function

from docmt.models.batch import Batch
from docmt.training.loss import LossModule


class ReplicatedLoss(LossModule):
    """The loss, connected to the parameters that a batch does not use.

    A model with a context encoder also reads sentences, without it. DistributedDataParallel would wait for the
    gradients of the encoder, or search the whole graph in every update for parameters without any.
    """

    def forward(self, batch: Batch) -> Tensor:
        """As without other devices."""
        return _Connected.apply(super().forward(batch), *self.unused(batch))

    def unused(self, batch: Batch) -> list[nn.Parameter]:
        """The parameters without influence on the loss of a batch."""
        context = self.model.context
        return [] if context is None or batch.layout.context == "document" else list(context.parameters())

    def forget(self, batch: Batch) -> None:
        """Drop the gradients of unused parameters, zeros after the exchange: Adam would move by its momentum."""
        for parameter in self.unused(batch):
            parameter.grad = None


class _Connected(Function):
    """The loss as it is, and gradients for nothing else."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, *unused: Tensor) -> Tensor:
        ctx.n_unused = len(unused)
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return (*grad_outputs, *(None for _ in range(ctx.n_unused)))
