"""Nested tensors: mapped leaf by leaf, or copied into one buffer, so that a batch moves to a device in one copy."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

ALIGNMENT = 64
"""Bytes. Tensors in a buffer begin at multiples, as vector loads require."""


@dataclass(frozen=True)
class BufferSlice:
    """Location of a tensor in a buffer. `start` is in bytes."""

    start: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, view: Tensor) -> "BufferSlice":
        """Return the location of a view in its buffer."""
        return cls(int(view.storage_offset()) * view.itemsize, tuple(view.shape), view.dtype)

    def view(self, buffer: Tensor) -> Tensor:
        """Return a tensor in the memory of the buffer, uint8 [bytes].

        For torch, it is no view of the buffer. A compiled graph could not serve views in other places.
        """
        tensor = torch.empty(0, dtype=self.dtype, device=buffer.device)
        start = self.start // self.dtype.itemsize
        return tensor.set_(buffer.untyped_storage(), start, self.shape)  # pyright: ignore[reportCallIssue]

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * torch.Size(self.shape).numel()


def map_leaves(nest: Any, function: Callable[[Any], Any], *, kind: type = Tensor) -> Any:
    """Return a copy of a nest, with `function` applied to the leaves of a type in a fixed order.

    A nest consists of dataclasses, dicts, tuples and objects with a method `map_tensors`.
    """
    if isinstance(nest, kind):
        return function(nest)
    if isinstance(nest, dict):
        return {key: map_leaves(value, function, kind=kind) for key, value in nest.items()}
    if isinstance(nest, tuple):
        return tuple(map_leaves(value, function, kind=kind) for value in nest)
    if hasattr(nest, "map_tensors"):
        return nest.map_tensors(function, kind=kind)
    if is_dataclass(nest) and not isinstance(nest, type):
        # `replace` refuses fields that are no arguments of the constructor.
        values = {field.name: getattr(nest, field.name) for field in fields(nest) if field.init}
        return replace(nest, **{name: map_leaves(value, function, kind=kind) for name, value in values.items()})
    return nest


def to_buffer(nest: Any) -> tuple[Any, Tensor]:
    """Return the nest with `BufferSlice` in place of CPU tensors, and one buffer with their copies, uint8 [bytes]."""
    tensors: list[Tensor] = []
    slices: list[BufferSlice] = []

    def place(tensor: Tensor) -> BufferSlice:
        # −(−a // b) rounds up, in integers.
        start = 0
        if slices:
            start = slices[-1].start + slices[-1].n_bytes
        slices.append(BufferSlice(-(-start // ALIGNMENT) * ALIGNMENT, tuple(tensor.shape), tensor.dtype))
        tensors.append(tensor)
        return slices[-1]

    placed = map_leaves(nest, place)
    buffer = torch.empty(slices[-1].start + slices[-1].n_bytes if slices else 0, dtype=torch.uint8)
    for tensor, where in zip(tensors, slices, strict=True):
        where.view(buffer).copy_(tensor)
    return placed, buffer


def view_slices(placed: Any, buffer: Tensor) -> Any:
    """Return a nest with views into a buffer in place of every `BufferSlice`."""
    return map_leaves(placed, lambda part: part.view(buffer), kind=BufferSlice)


def move(nest: Any, device: torch.device) -> Any:
    """Return a nest of CPU tensors on a device, moved in a single copy."""
    if device.type == "cpu":
        return nest
    placed, buffer = to_buffer(nest)
    return view_slices(placed, buffer.to(device))
