"""Starting a model from the weights of another one."""

import re

import torch
from torch import Tensor

from docmt.errors import UserError
from docmt.models.transformer import Transformer

FRESH = re.compile(r"_attention\.(global_|rst|gate)\.|^context\.")
"""Parameters of fused attention and of the context encoder, which models without these cannot have."""


def copy_weights(model: Transformer, weights: dict[str, Tensor]) -> set[str]:
    """Copy what fits from the weights of another model, in place.

    The attention of a layer with one pattern becomes the group attention of a fused layer, and the other way round;
    global attention, RST attention and gates start fresh (G-Transformer, Appendix C.1; RST-Transformer, §4.2), and so
    does a context encoder that the other model lacks.

    Returns:
        The names of the parameters that were copied.

    Raises:
        UserError: a shape differs (another size or vocabulary), or one model has layers that the other lacks.
    """
    copied, used = set(), set()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            other = next((other for other in _sources(name) if other in weights), None)
            if other is None:
                continue
            source = weights[other]
            if source.shape != parameter.shape:
                raise UserError(
                    f"init: {name} has shape {list(source.shape)} there and {list(parameter.shape)} here: "
                    "size, layers and vocabulary must be the same"
                )
            parameter.copy_(source)
            copied.add(name)
            used.add(other)
    fresh = {name for name, _ in model.named_parameters()} - copied
    for names, what in ((fresh, "lacks"), (set(weights) - used, "has beside this one")):
        foreign = sorted(name for name in names if not FRESH.search(name))
        if foreign:
            raise UserError(f"init: the other model {what} {foreign[0]}: layers and attention must correspond")
    return copied


def _sources(name: str) -> tuple[str, ...]:
    """Names under which a parameter may stand in the other model, the most specific first."""
    if "_attention.group." in name:
        return name, name.replace("_attention.group.", "_attention.")
    if FRESH.search(name):
        return (name,)
    return name, re.sub(r"_attention\.", "_attention.group.", name)
