"""One attention whose heads see different things (long-short term masking, Zhang et al. 2020)."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from docmt.errors import UserError
from docmt.models.layers import Attend, FusedAttention, MultiHeadAttention, parts


class SplitAttention(FusedAttention):
    """One multi-head attention, in which each pattern has an equal share of the heads, in order.

    Its parts have some heads each, and so some rows of the projections and some columns of the output projection. Their
    outputs are summed, which is what one output projection of all heads does; the first part has its bias.
    """

    has_gate: ClassVar[bool] = False
    shares_queries: ClassVar[bool] = True

    def __init__(self, width: int, heads: int, patterns: Sequence[str]) -> None:
        n = len(patterns)
        if heads % n:
            raise UserError(f"{' and '.join(patterns)} share heads: model.heads {heads} must be a multiple of {n}")
        super().__init__(width, heads // n, patterns, inner=width // n)
        for part in parts(self)[1:]:
            part.out.register_parameter("bias", None)
        # The widths of the parts are smaller, but they start as one attention.
        whole = MultiHeadAttention(width, heads, patterns[0]).state_dict()
        self.load_state_dict(self.split({name: whole[name] for name in self.WHOLE}), strict=False)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        first, *others = (attend(part, query_ND) for part in parts(self))
        return sum(others, first)

    WHOLE: ClassVar[tuple[str, ...]] = ("in_weight", "in_bias", "out.weight", "out.bias")
    """The parameters of a `MultiHeadAttention` with all heads."""

    def split(self, whole: dict[str, Tensor]) -> dict[str, Tensor]:
        """The parameters of the parts, given those of one attention with all heads."""
        names = [name for name, module in self.named_children() if isinstance(module, MultiHeadAttention)]
        n, found = len(names), {}
        for number, name in enumerate(names):
            for parameter in ("in_weight", "in_bias"):
                found[f"{name}.{parameter}"] = torch.cat([rows.chunk(n)[number] for rows in whole[parameter].chunk(3)])
            found[f"{name}.out.weight"] = whole["out.weight"].chunk(n, 1)[number]
        return found | {f"{names[0]}.out.bias": whole["out.bias"]}

    @staticmethod
    def counterpart(name: str) -> str | None:
        """See `FusedAttention.counterpart`: an attention with one pattern is split, so that every name is there."""
        return name
