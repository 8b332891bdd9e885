"""Starting a model from the weights of another one."""

import re
from collections.abc import Set

import torch
from torch import Tensor

from docmt.errors import UserError
from docmt.models.attention.multi_head import FusedAttention, SplitAttention
from docmt.models.systems.transformer import Transformer

NEW_MODULES = re.compile(r"context\.|src_inputs\.sentences\.|encoder\.\d+\.gate\.")
"""Name prefixes of parameters outside of attentions that a sentence model lacks."""


def copy_weights(model: Transformer, weights: dict[str, Tensor]) -> set[str]:
    """Copy what fits from the weights of another model, given by name, in place.

    The attention of a layer with one pattern becomes the group attention of a fused layer, and vice versa; the other
    parts and gates start fresh (G-Transformer, Appendix C.1; RST-Transformer, §4.2), and so does what the other model
    lacks of a context module. An attention whose patterns share the heads takes over all heads of one with one pattern.

    Returns:
        The names of the parameters that were copied.

    Raises:
        UserError: a shape differs (another size or vocabulary), or one model has layers that the other lacks.
    """
    weights = _split_heads(model, weights)
    origins = _origins(model, weights)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in origins:
                continue
            source = weights[origins[name]]
            if source.shape != parameter.shape:
                raise UserError(
                    f"init: {name} has shape {list(source.shape)} there and {list(parameter.shape)} here: "
                    "size, layers and vocabulary must be the same"
                )
            parameter.copy_(source)
    lacking = {name for name, _ in model.named_parameters()} - set(origins) - _optional(model)
    extra = {name for name in set(weights) - set(origins.values()) if not _is_new_part(model, name)}
    # The first name: sets have no fixed order, and the message should be the same in every run.
    for names, what in ((lacking, "lacks"), (extra, "has, unlike this one,")):
        if names:
            raise UserError(f"init: the other model {what} {min(names)}: layers and attention must correspond")
    return set(origins)


def freeze(model: Transformer, names: Set[str]) -> None:
    """Let training leave these parameters as they are. Raises UserError when there are none, or no others."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in names)
    if not names:
        raise UserError("training.frozen 'pretrained': nothing was copied: name a model with --init")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(
            "training.frozen 'pretrained': all parameters come from the model given as --init, so none is left to "
            "train: use an architecture with new parts, or leave the key out"
        )


def silence_new_parts(model: Transformer) -> None:
    """Start the parts that a sentence model lacks so that the model computes as it does (see `FusedAttention.silence`).

    Raises UserError for architectures that cannot start so.
    """
    for _, attention in model.attentions():
        if isinstance(attention, FusedAttention):
            attention.silence()
    if model.context is not None:
        model.context.silence()


def _split_heads(model: Transformer, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, with each whole attention cut into parts where the model splits heads."""
    split = dict(weights)
    for place, attention in model.attentions():
        if isinstance(attention, SplitAttention) and f"{place}.in_weight" in weights:
            whole = {name: split.pop(f"{place}.{name}") for name in SplitAttention.WHOLE}
            split |= {f"{place}.{name}": parameter for name, parameter in attention.split(whole).items()}
    return split


def _origins(model: Transformer, weights: dict[str, Tensor]) -> dict[str, str]:
    """For each parameter that the other model has, its name there."""
    origins = {name: name for name, _ in model.named_parameters()}
    for place, attention in model.attentions():
        for name, _ in attention.named_parameters():
            counterpart = attention.counterpart(name)
            if counterpart is not None and f"{place}.{name}" not in weights:
                origins[f"{place}.{name}"] = f"{place}.{counterpart}"
    return {name: origin for name, origin in origins.items() if origin in weights}


def _optional(model: Transformer) -> set[str]:
    """Parameters that may start fresh: those that models of single attentions without context do not have."""
    return {
        f"{place}.{name}"
        for place, attention in model.attentions()
        for name, _ in attention.named_parameters()
        if attention.counterpart(name) is None
    } | {name for name, _ in model.named_parameters() if NEW_MODULES.match(name)}


def _is_new_part(model: Transformer, name: str) -> bool:
    """Whether a parameter of the other model is one that this model may do without."""
    places = (f"{place}." for place, _ in model.attentions())
    rest = next((name.removeprefix(place) for place in places if name.startswith(place)), None)
    return NEW_MODULES.match(name) is not None or (rest is not None and FusedAttention.counterpart(rest) is None)
