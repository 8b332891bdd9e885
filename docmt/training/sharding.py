"""Batches of instances, and the share of each device in an update."""

import heapq
from collections.abc import Sequence

import numpy as np

from docmt.batching import fill_batches


def instance_batches(order: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut an order of instances into batches of at most `max_tokens` tokens; a larger instance forms a batch alone.

    Tokens are packed, so the instances of a batch need not have similar lengths: the order can be fully random.
    """
    places = fill_batches(range(len(order)), max_tokens, cost=tokens[order].item)
    return [order[batch[0] : batch[-1] + 1] for batch in places]


def balance(instances: np.ndarray, tokens: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Distribute instances over parts with about equal numbers of tokens: the longest first, each to the lightest part.

    Each part keeps the given order. Parts stay empty if there are fewer instances than parts.
    """
    lightest = [(0, part) for part in range(n_parts)]
    part_of = np.zeros(len(instances), dtype=np.int64)
    for index in np.argsort(-tokens[instances], kind="stable").tolist():
        total, part = heapq.heappop(lightest)
        part_of[index] = part
        heapq.heappush(lightest, (total + int(tokens[instances[index]]), part))
    return [instances[part_of == part] for part in range(n_parts)]


def share_update(
    batches: Sequence[np.ndarray],
    tokens: np.ndarray,
    *,
    n_ranks: int,
    rank: int,
    turn: int,
    max_tokens: int,
    device_tokens: int | None = None,
) -> list[np.ndarray]:
    """Share the batches of one update among devices, and cut the share of one into batches that it computes at once.

    Over all devices, every instance occurs once, and tokens are about equal. A device without instances has no batch; a
    single device that computes `max_tokens` at once reads the batches as drawn.

    Args:
        batches: as drawn, of up to `max_tokens` or a single instance.
        tokens: of each instance of the set.
        n_ranks: number of devices.
        rank: number of this device.
        turn: position of the update; the lightest share goes to a different device each time.
        max_tokens: of a batch as drawn.
        device_tokens: maximum tokens that a device computes at once; None means `max_tokens`.
    """
    device_tokens = device_tokens or max_tokens
    if n_ranks == 1 and device_tokens == max_tokens:
        return list(batches)
    share = balance(np.concatenate(batches), tokens, n_ranks)[(rank + turn) % n_ranks]
    # As few batches as possible, of about equal size. Equal numbers of tokens may need one batch more than their sum.
    fewest = -(-int(tokens[share].sum()) // device_tokens)
    for n_batches in range(fewest, len(share) + 1):
        parts = balance(share, tokens, n_batches)
        if all(len(part) == 1 or tokens[part].sum() <= device_tokens for part in parts):
            return parts
    return [share[i : i + 1] for i in range(len(share))]


def idle_share(updates: Sequence[Sequence[np.ndarray]], tokens: np.ndarray, *, n_ranks: int) -> float:
    """Share of time for which devices wait for the busiest one, if time is proportional to tokens."""
    loads = np.zeros((len(updates), n_ranks))
    for position, batches in enumerate(updates):
        loads[position] = [tokens[part].sum() for part in balance(np.concatenate(batches), tokens, n_ranks)]
    return float(1 - loads.mean(1).sum() / loads.max(1).sum())
