"""An encoder layer that adds to what the layers below know by a gate (Hybrid Context, Zheng et al. 2020)."""

from collections.abc import Callable

from torch import Tensor

from docmt.models.layers import EncoderLayer, Gate, Groupings
from docmt.models.settings import ModelSettings


class GatedEncoderLayer(EncoderLayer):
    """A whole layer, and a gate that weighs its output, the global context, against its input, the local one."""

    def __init__(self, settings: ModelSettings, *, pattern: str) -> None:
        super().__init__(settings, pattern=pattern)
        self.gate = Gate(settings.width)

    def forward(
        self, hidden_SD: Tensor, groupings: Groupings, between: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """See `EncoderLayer.forward`: gate ⊙ input + (1 − gate) ⊙ output."""
        return self.gate(hidden_SD, super().forward(hidden_SD, groupings, between))
