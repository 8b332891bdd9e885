"""Variable-length attention on GPUs: flash attention for long groups, Triton kernels for short ones.

A single operator serves both and chooses at run time, so that a compiled graph is the same for batches of all lengths.
It reads packed tensors [rows, n, H, K] that contain queries, keys and values in this order: one tensor with n = 3 for
self-attention, two with n = 1 and n = 2, or three. Gradients have the same form, so that no kernel joins them.

Shape letters: N packed queries, M packed keys, H heads, K head width, G groups, P keys in group order.
"""

import functools
import inspect
import itertools
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from docmt.models.attention.patterns import Grouping
from docmt.models.gpus import show_driver_to_triton
from docmt.ranges import offsets_of

log = logging.getLogger(__name__)

SWITCH = "DOCMT_ATTENTION"
"""Environment variable. With the value `flash`, flash attention computes all groups."""
MEAN_LENGTH = 128
"""Maximum mean length (queries and keys) for short groups."""
MAX_LENGTH = 512
"""Maximum length of the longest short group, since one program computes it while the others wait."""
MAX_HEAD_WIDTH = 128
"""Maximum head width whose tiles fit into shared memory on every GPU with bfloat16."""
TOLERANCE = 0.03
"""Maximum relative difference from flash attention. bfloat16 rounds by 0.004."""
Adjust = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Adds distances, int64 [P], to keys and values, [P, H, K]. All are in group order."""


@dataclass
class VarlenIndexes:
    """A grouping as index tensors for variable-length kernels.

    Attributes:
        query_offsets, key_offsets: int32 [G + 1].
        key_rows_M: int64 index of keys in group order. None if the packed keys, all of them, are in this order.
        distances_P, positions_N: int64, per key in group order and per query. None for patterns without them.
    """

    query_offsets: Tensor
    key_offsets: Tensor
    key_rows_M: Tensor | None
    max_queries: int
    max_keys: int
    distances_P: Tensor | None
    positions_N: Tensor | None
    is_causal: bool

    @classmethod
    def of(cls, grouping: Grouping) -> "VarlenIndexes":
        """Return the index tensors for a grouping, on the CPU."""
        # Flash attention takes int32 offsets only.
        queries, keys = (offsets_of(n).astype(np.int32) for n in (grouping.query_lengths_G, grouping.key_lengths_G))
        return cls(
            query_offsets=torch.from_numpy(queries),
            key_offsets=torch.from_numpy(keys),
            key_rows_M=torch.from_numpy(grouping.key_rows),
            max_queries=int(grouping.query_lengths_G.max()),
            max_keys=int(grouping.key_lengths_G.max()),
            distances_P=optional_tensor(grouping.distances),
            positions_N=optional_tensor(grouping.positions_N),
            is_causal=grouping.is_causal,
        )


def optional_tensor(array: np.ndarray | None) -> Tensor | None:
    """Return the array as a tensor that shares its memory, or None."""
    if array is None:
        return None
    return torch.from_numpy(array)


def unpack(parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return queries [N, H, K], and keys and values [M, H, K], from packed tensors."""
    return tuple(rows for part in parts for rows in part.unbind(1))


def attend_packed(parts: Sequence[Tensor], indexes: VarlenIndexes, adjust: Adjust | None = None) -> Tensor:
    """Softmax attention from query groups to their keys, [N, H, K], from packed tensors."""
    if indexes.key_rows_M is not None or adjust is not None:
        query_N1HK, *memory = parts if len(parts) > 1 else parts[0].split((1, 2), 1)
        if indexes.key_rows_M is not None:
            memory = [rows.index_select(0, indexes.key_rows_M) for rows in memory]
        if adjust is not None:
            assert indexes.distances_P is not None, "the pattern has distances"
            key_PHK, value_PHK = unpack(memory)
            memory = [rows[:, None] for rows in adjust(key_PHK, value_PHK, indexes.distances_P)]
        parts = [query_N1HK, *memory]
    offsets = indexes.query_offsets, indexes.key_offsets, indexes.max_queries, indexes.max_keys
    return _attend(list(parts), *offsets, indexes.is_causal)[0]


@functools.cache
def find_flash() -> Callable[..., Any] | None:
    """Return variable-length flash attention if torch has it. Importing it takes a second, so only GPUs call this."""
    if torch.version.hip:  # untested on GPUs of AMD
        return None
    try:
        from torch.nn.attention import varlen
    except ImportError:  # an older torch: the padded path serves every device
        return None
    function = getattr(varlen, "varlen_attn", None)
    if function is not None and "window_size" in inspect.signature(function).parameters:
        return function
    return None


@functools.cache
def short_groups() -> ModuleType | None:
    """Import the kernels for short groups. None without Triton."""
    show_driver_to_triton()
    try:
        return import_module("docmt.models.attention.short_groups")
    except ImportError:
        return None


def has_short_groups(n_rows: int, n_groups: int, max_rows: int) -> bool:
    """True if groups are so short that Triton kernels are faster than flash attention."""
    return n_rows <= MEAN_LENGTH * n_groups and max_rows <= MAX_LENGTH


def kernels_for(query_NHK: Tensor, key_MHK: Tensor, query_offsets: Tensor, max_rows: int) -> ModuleType | None:
    """Return the kernels for short groups if they apply here, otherwise None. Does not wait for the device."""
    n_rows, n_groups = max(len(query_NHK), len(key_MHK)), len(query_offsets) - 1
    if not has_short_groups(n_rows, n_groups, max_rows) or query_NHK.shape[2] > MAX_HEAD_WIDTH:
        return None
    if os.environ.get(SWITCH) == "flash":
        return None
    return tried_short_groups(query_NHK.device, query_NHK.dtype, *query_NHK.shape[1:])


@functools.cache
def tried_short_groups(device: torch.device, dtype: torch.dtype, heads: int, width: int) -> ModuleType | None:
    """Return the kernels for short groups if they run and agree with flash attention in a small test, made once."""
    kernels = short_groups()
    if kernels is None:
        return None
    # Groups of no, one and several tiles, with and without keys before the queries. Short ones have another tile.
    short, long = [[0, 1, 21, 16, 9], [0, 3, 23, 16, 9]], [[0, 1, 21, 32, 70], [0, 3, 40, 32, 75]]
    try:
        for lengths, is_causal in itertools.product((short, long), (False, True)):
            _compare(kernels, torch.tensor(lengths, dtype=torch.int32), is_causal, (heads, width), device, dtype)
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # a compiler or a driver that Triton cannot use, whatever it raises
        log.warning("flash attention computes short groups, because Triton kernels fail: %s", str(error).split("\n")[0])
        return None
    return kernels


def _compare(
    kernels: ModuleType, lengths_2G: Tensor, is_causal: bool, shape: tuple[int, int], device: torch.device,
    dtype: torch.dtype,
) -> None:  # fmt: skip
    """Raise ValueError if outputs or gradients for groups with these lengths differ from flash attention."""
    offsets = tuple(lengths_2G.to(device).cumsum(1, dtype=torch.int32).unbind())
    sizes, longest = lengths_2G.sum(1).tolist(), lengths_2G.amax(1).tolist()
    # A separate generator, so that trainings draw the same numbers as without this.
    rows = torch.randn(4, sizes[1], *shape, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    gradient, query, key, value = rows[0, : sizes[0]], rows[1, : sizes[0]], rows[2], rows[3]
    results = kernels.forward(query, key, value, offsets, is_causal)
    gradients = [torch.empty_like(part) for part in (query, key, value)]
    kernels.backward(gradient, query, key, value, results, offsets, is_causal, gradients)
    flash = _flash_forward(query, key, value, *offsets, *longest, is_causal)
    expected = _flash_backward(gradient, query, key, value, *flash, *offsets, *longest, is_causal)
    for ours, theirs in zip((results[0], *gradients), (flash[0], *expected), strict=True):
        difference = float((ours.float() - theirs.float()).norm() / theirs.float().norm())
        if not difference < TOLERANCE:
            raise ValueError(f"relative difference {difference:.3f} from flash attention")


@torch.library.custom_op("docmt::varlen_attention", mutates_args=())
def _attend(
    parts: list[Tensor], query_offsets: Tensor, key_offsets: Tensor, max_queries: int, max_keys: int, is_causal: bool
) -> tuple[Tensor, Tensor]:
    """Return the output [N, H, K] and log-sums of exponentiated scores, float32 [H, N]."""
    query, key, value = unpack(parts)
    offsets, longest = (query_offsets, key_offsets), (max_queries, max_keys)
    kernels = kernels_for(query, key, query_offsets, max(longest))
    if kernels is None:
        return _flash_forward(query, key, value, *offsets, *longest, is_causal)
    return kernels.forward(query, key, value, offsets, is_causal)


@torch.library.custom_op("docmt::varlen_attention_backward", mutates_args=())
def _differentiate(
    gradient: Tensor, parts: list[Tensor], output: Tensor, sums: Tensor,
    query_offsets: Tensor, key_offsets: Tensor, max_queries: int, max_keys: int, is_causal: bool,
) -> list[Tensor]:  # fmt: skip
    """Return gradients of the packed tensors."""
    query, key, value = unpack(parts)
    offsets, longest = (query_offsets, key_offsets), (max_queries, max_keys)
    kernels = kernels_for(query, key, query_offsets, max(longest))
    if kernels is None:
        results = output, sums, *offsets, *longest
        rows = iter(_flash_backward(gradient, query, key, value, *results, is_causal))
        return [torch.stack([next(rows) for _ in range(part.shape[1])], 1) for part in parts]
    gradients = [part.new_empty(part.shape) for part in parts]
    kernels.backward(gradient, query, key, value, (output, sums), offsets, is_causal, unpack(gradients))
    return gradients


def _flash_forward(*arguments: Any) -> tuple[Tensor, Tensor]:
    *rest, is_causal = arguments
    output, sums, *_ = torch.ops.aten._flash_attention_forward(*rest, 0.0, is_causal, False)
    return output, sums


def _flash_backward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    *rest, is_causal = arguments
    # The state of dropout's random numbers, although there is no dropout, and a tensor that nothing reads.
    state, unused = (rest[0].new_empty(n, dtype=torch.uint64) for n in (2, 0))
    return torch.ops.aten._flash_attention_backward(*rest, 0.0, is_causal, state, unused)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    parts, *offsets, ctx.max_queries, ctx.max_keys, ctx.is_causal = inputs
    ctx.save_for_backward(*output, *offsets, *parts)
    ctx.set_materialize_grads(False)  # nothing asks for gradients of the sums


def _backward(ctx: Any, gradient: Tensor, _: None) -> tuple[list[Tensor] | None, ...]:
    output, sums, query_offsets, key_offsets, *parts = ctx.saved_tensors
    lengths = query_offsets, key_offsets, ctx.max_queries, ctx.max_keys, ctx.is_causal
    return _differentiate(gradient, parts, output, sums, *lengths), None, None, None, None, None


@_attend.register_fake
def _(parts: list[Tensor], *_: Any) -> tuple[Tensor, Tensor]:
    n, _n_parts, heads, width = parts[0].shape
    return parts[0].new_empty(n, heads, width), parts[0].new_empty(heads, n, dtype=torch.float32)


_differentiate.register_fake(lambda _, parts, *__: [part.new_empty(part.shape) for part in parts])
_attend.register_autograd(_backward, setup_context=_keep)
