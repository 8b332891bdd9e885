"""Batches: a deterministic order that can be entered at any point and shared by any number of devices.

Everything here is a function of (seed, epoch, position): resuming needs no hidden state, and what an update reads and
drops does not depend on the number of devices.

Shape letters: B instances of an update, M those that one device reads, S and N their source tokens and decoder inputs.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from docmt.instances.storage import InstanceSet, expand_ranges, offsets_of
from docmt.models.batch import Batch
from docmt.models.settings import ModelSettings
from docmt.text.vocabulary import MASK, N_SPECIALS

TREES = 1
"""Separates the random numbers of dropped trees from those of dropped words."""


def fill_batches(order: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut an order of instances into batches of at most `max_tokens` tokens; a larger instance forms a batch alone.

    Tokens are packed, so the instances of a batch need not have similar lengths: the order can be fully random.
    """
    ends = np.cumsum(tokens[order])
    batches, first, before = [], 0, 0
    while first < len(order):
        last = max(first + 1, int(np.searchsorted(ends, before + max_tokens, side="right")))
        batches.append(order[first:last])
        first, before = last, ends[last - 1]
    return batches


def training_batches(
    instance_set: InstanceSet, *, max_tokens: int, seed: int, epoch: int, stream: tuple[int, ...] = ()
) -> list[np.ndarray]:
    """Draw the batches of an epoch, as arrays of instance numbers.

    `stream` separates the random numbers of different tasks.
    """
    order = np.random.default_rng((seed, epoch, *stream)).permutation(len(instance_set))
    return fill_batches(order, instance_set.n_tokens(), max_tokens)


def validation_batches(instance_set: InstanceSet, *, max_tokens: int) -> list[np.ndarray]:
    """Cut all instances into batches, in file order."""
    return fill_batches(np.arange(len(instance_set)), instance_set.n_tokens(), max_tokens)


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
    """Share the batches of one update among devices, and cut a share into what the device computes at once.

    Args:
        batches: as drawn.
        tokens: of each instance of the set.
        n_ranks: number of devices.
        rank: the device whose share is asked for.
        turn: position of the update; the lightest share goes to a different device each time.
        max_tokens: of a batch as drawn; a larger instance forms a batch alone.
        device_tokens: most tokens that a device computes at once; None means `max_tokens`.

    Returns:
        The batches of a device. Over all devices, every instance occurs once, and tokens are about equal. A device
        without instances has no batch; a single device that computes `max_tokens` at once reads the batches as drawn.
    """
    device_tokens = device_tokens or max_tokens
    if n_ranks == 1 and device_tokens == max_tokens:
        return list(batches)
    parts = balance(np.concatenate(batches), tokens, n_ranks)
    return _cut(parts[(rank + turn) % n_ranks], tokens, device_tokens)


def _cut(instances: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut instances into as few batches as possible, with about equal numbers of tokens."""
    fewest = -(-int(tokens[instances].sum()) // max_tokens)
    for n_batches in range(fewest, len(instances) + 1):
        batches = balance(instances, tokens, n_batches)
        if all(len(batch) == 1 or tokens[batch].sum() <= max_tokens for batch in batches):
            return batches
    return [instances[i : i + 1] for i in range(len(instances))]


def idle_share(updates: Sequence[Sequence[np.ndarray]], tokens: np.ndarray, *, n_ranks: int) -> float:
    """The share of time that devices wait for the busiest one, if time is proportional to tokens."""
    loads = np.zeros((len(updates), n_ranks))
    for position, batches in enumerate(updates):
        loads[position] = [tokens[part].sum() for part in balance(np.concatenate(batches), tokens, n_ranks)]
    return float(1 - loads.mean(1).sum() / loads.max(1).sum())


def n_inputs(
    instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Count source tokens and decoder inputs (= labels) of each instance, as a model reads them; both int64."""
    bounds, src_offsets, tgt_offsets = map(
        np.asarray, (instance_set.instances, instance_set.src_offsets, instance_set.tgt_offsets)
    )
    first, last = bounds[instances], bounds[instances + 1]
    src = src_offsets[last] - src_offsets[first] + (sum(settings.src_marks) - 2) * (last - first)
    tgt = tgt_offsets[last] - tgt_offsets[first] + (settings.n_starts - 1) * (last - first)
    return src, tgt if settings.target_stream == "free" else tgt - (last - first)


@dataclass(frozen=True)
class Draws:
    """Random numbers of instances in one update, uniform in [0, 1); numbers below a probability mean dropping.

    Attributes:
        src: float64 [S].
        tgt: float64 [N].
        trees: float64 [M], for the trees of each instance.
        src_counts, tgt_counts: int64 [M], how many of `src` and `tgt` belong to each instance.
    """

    src: np.ndarray
    tgt: np.ndarray
    trees: np.ndarray
    src_counts: np.ndarray
    tgt_counts: np.ndarray

    def take(self, rows: np.ndarray) -> "Draws":
        """The numbers of some of the instances, in the given order."""

        def numbers(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
            return flat[expand_ranges((np.cumsum(counts) - counts)[rows], counts[rows])]

        return Draws(
            numbers(self.src, self.src_counts),
            numbers(self.tgt, self.tgt_counts),
            self.trees[rows],
            self.src_counts[rows],
            self.tgt_counts[rows],
        )

    @classmethod
    def join(cls, draws: Sequence["Draws"]) -> "Draws":
        """The numbers of all instances of several draws."""
        names = ("src", "tgt", "trees", "src_counts", "tgt_counts")
        return cls(*(np.concatenate([getattr(each, name) for each in draws]) for name in names))


def draw(src_counts: np.ndarray, tgt_counts: np.ndarray, chosen: np.ndarray, *, seed: tuple[int, ...]) -> Draws:
    """Draw the numbers of some instances of a batch; those of an instance do not depend on which others are chosen.

    Args:
        src_counts: int64, how many numbers the source tokens of each instance of the batch need (see `n_inputs`).
        tgt_counts: int64, the same for decoder inputs.
        chosen: int64 [M], increasing rows of these.
        seed: of the batch.
    """
    bits = np.random.PCG64(seed)
    generator, drawn = np.random.Generator(bits), 0
    offsets = offsets_of(np.concatenate((src_counts, tgt_counts)))
    rows = np.concatenate((chosen, len(src_counts) + chosen))
    numbers = []
    for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else []:
        first, last = int(offsets[run[0]]), int(offsets[run[-1] + 1])
        bits.advance(first - drawn)
        numbers.append(generator.random(last - first))
        drawn = last
    src_counts, tgt_counts = src_counts[chosen], tgt_counts[chosen]
    src, tgt = np.split(np.concatenate([*numbers, np.zeros(0)]), [int(src_counts.sum())])
    trees = np.random.default_rng((*seed, TREES)).random(int(chosen[-1]) + 1 if len(chosen) else 0)[chosen]
    return Draws(src, tgt, trees, src_counts, tgt_counts)


def drop_words(batch: Batch, draws: Draws, *, probability: float, n_specials: int = N_SPECIALS) -> Batch:
    """Replace source and target input words by `<mask>` (word dropout, Appendix C.1); marks and labels stay.

    The draws are those of the instances of the batch, in order. Ids below `n_specials` are not words.
    """
    if probability == 0:
        return batch

    def drop(tokens: torch.Tensor, numbers: np.ndarray) -> torch.Tensor:
        chosen = torch.from_numpy(numbers < probability)
        return tokens.masked_fill(chosen & (tokens >= n_specials), MASK)

    return replace(
        batch,
        src_tokens_S=drop(batch.src_tokens_S, draws.src),
        tgt_inputs_N=drop(batch.tgt_inputs_N, draws.tgt),
    )


def drop_trees(batch: Batch, numbers_B: np.ndarray, *, probability: float) -> Batch:
    """Drop trees, so that RST attention sees the whole of an instance (RST-Transformer, §5.2).

    Those of an instance are dropped if its number, in [0, 1), is below the probability.
    """
    if probability == 0 or batch.layout.trees is None:
        return batch
    return replace(batch, layout=batch.layout.opened(numbers_B < probability))
