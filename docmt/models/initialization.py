"""Initialization from another model's weights."""

import re
from collections.abc import Set

import torch
from torch import Tensor

from docmt.errors import UserError
from docmt.models.attention.multi_head import FusedAttention, SplitAttention
from docmt.models.systems.context_transformer import ContextTransformer
from docmt.models.systems.transformer import Transformer

NEW_MODULES = re.compile(r"context\.|src_inputs\.sentences\.|encoder\.\d+\.gate\.")
"""Name prefixes of parameters outside attentions that a sentence model lacks."""


def copy_weights(model: Transformer, weights: dict[str, Tensor]) -> set[str]:
    """Copy all corresponding weights from another model, in place. Returns the names of the copied parameters.

    The attention in a layer with one pattern becomes the group attention in a fused layer, and vice versa. The other
    parts and gates keep their initial values (G-Transformer, Appendix C.1; RST-Transformer, §4.2), as do parameters of
    a context module that the other model lacks. An attention whose patterns share the heads takes all heads from an
    attention with one pattern.

    Raises UserError if sizes, layers or attentions do not correspond.
    """
    weights = dict(weights)
    for prefix, attention in model.attentions():  # whole attentions are cut where the model splits heads
        if isinstance(attention, SplitAttention) and f"{prefix}.in_weight" in weights:
            whole = {name: weights.pop(f"{prefix}.{name}") for name in SplitAttention.WHOLE}
            weights |= {f"{prefix}.{name}": parameter for name, parameter in attention.split(whole).items()}
    origins = {name: name for name, _ in model.named_parameters()}
    for prefix, attention in model.attentions():
        for name, _ in attention.named_parameters():
            counterpart = attention.counterpart(name)
            if counterpart is not None and f"{prefix}.{name}" not in weights:
                origins[f"{prefix}.{name}"] = f"{prefix}.{counterpart}"
    origins = {name: origin for name, origin in origins.items() if origin in weights}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in origins:
                continue
            source = weights[origins[name]]
            if source.shape != parameter.shape:
                raise UserError(
                    f"init: {name} has shape {list(source.shape)} in the other model and {list(parameter.shape)} "
                    "in this one: size, layers and vocabulary must be the same"
                )
            parameter.copy_(source)
    # Parameters of fusions and of modules that read context may start fresh here, and be left out there.
    parts = [(f"{prefix}.", attention) for prefix, attention in model.attentions()]
    fresh = {f"{p}{name}" for p, a in parts for name, _ in a.named_parameters() if a.counterpart(name) is None}
    lacking = {name for name, _ in model.named_parameters() if not NEW_MODULES.match(name)} - set(origins) - fresh
    extra = set()
    for name in set(weights) - set(origins.values()):
        rest = next((name.removeprefix(prefix) for prefix, _ in parts if name.startswith(prefix)), None)
        if not (NEW_MODULES.match(name) or (rest is not None and FusedAttention.counterpart(rest) is None)):
            extra.add(name)
    # The first name: sets have no fixed order, and the message should be the same in every run.
    for names, what in ((lacking, "has no parameter"), (extra, "has the additional parameter")):
        if names:
            raise UserError(f"init: the other model {what} {min(names)}: layers and attention must correspond")
    return set(origins)


def freeze(model: Transformer, names: Set[str]) -> None:
    """Exclude parameters from training. Raises UserError if none or all are frozen."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in names)
    if not names:
        raise UserError("training.freeze 'pretrained': no parameters were copied: pass a model with --init")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(
            "training.freeze 'pretrained': all parameters come from --init, so nothing is left to train: use an "
            "architecture with new parts, or remove this key"
        )


def zero_init_outputs(model: Transformer) -> None:
    """Zero the outputs of new parts, so that the model computes like its sentence model."""
    model.settings.check_zero_init()
    for _, attention in model.attentions():
        if isinstance(attention, FusedAttention):
            attention.zero_init_outputs()
    if isinstance(model, ContextTransformer):
        model.context.zero_init_outputs()
