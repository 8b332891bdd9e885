"""Batches: a deterministic order that can be entered at any point, shared by any number of devices.

Everything here is a function of (seed, epoch, position), so that resuming needs no hidden state, and what an update
reads and drops does not depend on how many devices share it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch
from docmt.models.settings import ModelSettings
from docmt.text.vocabulary import MASK, N_SPECIALS

TREES = 1
"""Keeps the random numbers of dropped trees apart from those of dropped words."""


def fill_batches(order: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut an order of instances into batches of at most `max_tokens` tokens (a larger instance is a batch of its own).

    Tokens are packed, so batches need no instances of similar length: the order can be fully random.
    """
    batches: list[list[int]] = []
    total = 0
    for instance in order.tolist():
        cost = int(tokens[instance])
        if not batches or total + cost > max_tokens:
            batches.append([])
            total = 0
        batches[-1].append(instance)
        total += cost
    return [np.array(batch) for batch in batches]


def training_batches(
    instance_set: InstanceSet, *, max_tokens: int, seed: int, epoch: int, stream: tuple[int, ...] = ()
) -> list[np.ndarray]:
    """The batches of an epoch, as arrays of instance numbers.

    Args:
        stream: keeps the random numbers of several tasks apart.
    """
    order = np.random.default_rng((seed, epoch, *stream)).permutation(len(instance_set))
    return fill_batches(order, instance_set.n_tokens(), max_tokens)


def validation_batches(instance_set: InstanceSet, *, max_tokens: int) -> list[np.ndarray]:
    """All instances in file order."""
    return fill_batches(np.arange(len(instance_set)), instance_set.n_tokens(), max_tokens)


def balance(instances: np.ndarray, tokens: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Spread instances over parts of about equal tokens, each in the given order: the longest first, to the lightest.

    Parts are empty when there are fewer instances than parts.
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
        batches: as drawn; one device reads just these.
        tokens: of each instance of the set.
        n_ranks: number of devices.
        turn: the update's position: the lightest share goes to another device each time.
        max_tokens: of a batch on a device; a larger instance is a batch of its own.

    Returns:
        The batches of each device: all instances once, and about equal tokens. A device without any has no batch.
    """
    if n_ranks == 1:
        return [list(batches)]
    parts = balance(np.concatenate(batches), tokens, n_ranks)
    return [_cut(parts[(rank + turn) % n_ranks], tokens, max_tokens) for rank in range(n_ranks)]


def _cut(instances: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """The fewest batches of about equal tokens."""
    fewest = -(-int(tokens[instances].sum()) // max_tokens)
    for n_batches in range(fewest, len(instances) + 1):
        batches = balance(instances, tokens, n_batches)
        if all(len(batch) == 1 or tokens[batch].sum() <= max_tokens for batch in batches):
            return batches
    return [instances[i : i + 1] for i in range(len(instances))]


def idle_share(updates: Sequence[Sequence[np.ndarray]], tokens: np.ndarray, *, n_ranks: int, max_tokens: int) -> float:
    """The share of their time that devices wait for the busiest one, when time goes with tokens."""
    loads = np.zeros((len(updates), n_ranks))
    for position, batches in enumerate(updates):
        shares = share_update(batches, tokens, n_ranks=n_ranks, turn=position, max_tokens=max_tokens)
        loads[position] = [sum(tokens[batch].sum() for batch in share) for share in shares]
    return float(1 - loads.mean(1).sum() / loads.max(1).sum())


def n_inputs(
    instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Source tokens and decoder inputs (= labels) of each instance, as a model reads them; int64 both."""
    first, last = instance_set.instances[instances], instance_set.instances[instances + 1]
    src = instance_set.src_offsets[last] - instance_set.src_offsets[first]
    tgt = instance_set.tgt_offsets[last] - instance_set.tgt_offsets[first]
    return src, tgt if settings.target_stream == "free" else tgt - (last - first)


@dataclass(frozen=True)
class Draws:
    """Random numbers of one instance in one update, uniform in [0, 1): what is below a probability is dropped.

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
    """The numbers of each instance of a batch as it was drawn, whichever devices then read its instances."""
    counts = n_inputs(instance_set, instances, settings)
    generator = np.random.default_rng(seed)
    src, tgt = (np.split(generator.random(count.sum()), np.cumsum(count)[:-1]) for count in counts)
    trees = np.random.default_rng((*seed, TREES)).random(len(instances))
    return {i: Draws(*numbers) for i, *numbers in zip(instances.tolist(), src, tgt, trees.tolist(), strict=True)}


def drop_words(batch: Batch, draws: Sequence[Draws], *, probability: float, n_specials: int = N_SPECIALS) -> Batch:
    """Replace source and target input words by `<mask>` (word dropout, Appendix C.1); marks and labels are spared.

    Args:
        n_specials: ids below it are no words.
    """
    if probability == 0:
        return batch

    def drop(tokens: torch.Tensor, numbers: list[np.ndarray]) -> torch.Tensor:
        chosen = torch.from_numpy(np.concatenate(numbers) < probability).to(tokens.device)
        return tokens.masked_fill(chosen & (tokens >= n_specials), MASK)

    return batch.with_inputs(
        drop(batch.src_tokens_S, [numbers.src for numbers in draws]),
        drop(batch.tgt_inputs_N, [numbers.tgt for numbers in draws]),
    )


def drop_trees(batch: Batch, numbers_B: np.ndarray, *, probability: float) -> Batch:
    """Open each instance with this probability, so that RST attention sees all of it (RST-Transformer, §5.2).

    Args:
        numbers_B: float64, in [0, 1).
    """
    if probability == 0 or batch.layout.trees is None:
        return batch
    return replace(batch, layout=batch.layout.opened(numbers_B < probability))
