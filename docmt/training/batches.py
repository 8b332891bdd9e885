"""Batches: a deterministic order that can be entered at any point and shared by any number of devices.

Everything here is a function of (seed, epoch, position): resuming needs no hidden state, and what an update reads and
drops does not depend on the number of devices.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from docmt import batching
from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch
from docmt.models.settings import ModelSettings
from docmt.text.vocabulary import MASK, N_SPECIALS

TREES = 1
"""Separates the random numbers of dropped trees from those of dropped words."""


def fill_batches(order: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut an order of instances into batches of at most `max_tokens` tokens; a larger instance forms a batch alone.

    Tokens are packed, so the instances of a batch need not have similar lengths: the order can be fully random.
    """
    batches = batching.fill_batches(order.tolist(), max_tokens, cost=lambda instance: int(tokens[instance]))
    return [np.array(batch) for batch in batches]


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
    batches: Sequence[np.ndarray], tokens: np.ndarray, *, n_ranks: int, turn: int, max_tokens: int
) -> list[list[np.ndarray]]:
    """Share the batches of one update among devices.

    Args:
        batches: as drawn; a single device reads exactly these.
        tokens: of each instance of the set.
        n_ranks: number of devices.
        turn: position of the update; the lightest share goes to a different device each time.
        max_tokens: of a batch on a device; a larger instance forms a batch alone.

    Returns:
        The batches of each device: every instance once, about equal tokens. A device without instances has no batch.
    """
    if n_ranks == 1:
        return [list(batches)]
    parts = balance(np.concatenate(batches), tokens, n_ranks)
    return [_cut(parts[(rank + turn) % n_ranks], tokens, max_tokens) for rank in range(n_ranks)]


def _cut(instances: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut instances into as few batches as possible, with about equal numbers of tokens."""
    fewest = -(-int(tokens[instances].sum()) // max_tokens)
    for n_batches in range(fewest, len(instances) + 1):
        batches = balance(instances, tokens, n_batches)
        if all(len(batch) == 1 or tokens[batch].sum() <= max_tokens for batch in batches):
            return batches
    return [instances[i : i + 1] for i in range(len(instances))]


def idle_share(updates: Sequence[Sequence[np.ndarray]], tokens: np.ndarray, *, n_ranks: int, max_tokens: int) -> float:
    """The share of time that devices wait for the busiest one, if time is proportional to tokens."""
    loads = np.zeros((len(updates), n_ranks))
    for position, batches in enumerate(updates):
        shares = share_update(batches, tokens, n_ranks=n_ranks, turn=position, max_tokens=max_tokens)
        loads[position] = [sum(tokens[batch].sum() for batch in share) for share in shares]
    return float(1 - loads.mean(1).sum() / loads.max(1).sum())


def n_inputs(
    instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Count source tokens and decoder inputs (= labels) of each instance, as a model reads them; both int64."""
    first, last = instance_set.instances[instances], instance_set.instances[instances + 1]
    src = instance_set.src_offsets[last] - instance_set.src_offsets[first]
    tgt = instance_set.tgt_offsets[last] - instance_set.tgt_offsets[first]
    return src, tgt if settings.target_stream == "free" else tgt - (last - first)


@dataclass(frozen=True)
class Draws:
    """Random numbers of one instance in one update, uniform in [0, 1); numbers below a probability mean dropping.

    Attributes:
        src: float64 [source tokens].
        tgt: float64 [decoder inputs].
        tree: for the trees of the instance.
    """

    src: np.ndarray
    tgt: np.ndarray
    tree: float


def draw(
    instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings, *, seed: tuple[int, ...]
) -> dict[int, Draws]:
    """Draw the numbers of each instance of a batch, whichever devices will read its instances."""
    counts = n_inputs(instance_set, instances, settings)
    generator = np.random.default_rng(seed)
    src, tgt = (np.split(generator.random(count.sum()), np.cumsum(count)[:-1]) for count in counts)
    trees = np.random.default_rng((*seed, TREES)).random(len(instances))
    drawn = map(Draws, src, tgt, trees.tolist())
    return dict(zip(instances.tolist(), drawn, strict=True))


def drop_words(batch: Batch, draws: Sequence[Draws], *, probability: float, n_specials: int = N_SPECIALS) -> Batch:
    """Replace source and target input words by `<mask>` (word dropout, Appendix C.1); marks and labels stay.

    The draws are those of the instances of the batch, in order. Ids below `n_specials` are not words.
    """
    if probability == 0:
        return batch

    def drop(tokens: torch.Tensor, numbers: list[np.ndarray]) -> torch.Tensor:
        chosen = torch.from_numpy(np.concatenate(numbers) < probability).to(tokens.device)
        return tokens.masked_fill(chosen & (tokens >= n_specials), MASK)

    return replace(
        batch,
        src_tokens_S=drop(batch.src_tokens_S, [numbers.src for numbers in draws]),
        tgt_inputs_N=drop(batch.tgt_inputs_N, [numbers.tgt for numbers in draws]),
    )


def drop_trees(batch: Batch, numbers_B: np.ndarray, *, probability: float) -> Batch:
    """Drop trees, so that RST attention sees the whole of an instance (RST-Transformer, §5.2).

    Those of an instance are dropped if its number, in [0, 1), is below the probability.
    """
    if probability == 0 or batch.layout.trees is None:
        return batch
    return replace(batch, layout=batch.layout.opened(numbers_B < probability))
