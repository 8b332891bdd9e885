"""Batches: a deterministic order that can be entered at any point; dropout of words and trees depends on nothing else.

Everything here is a function of (seed, epoch, position), so that resuming needs no hidden state.
"""

from dataclasses import replace

import numpy as np
import torch

from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch
from docmt.text.vocabulary import MASK, N_SPECIALS


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


def training_batches(instance_set: InstanceSet, *, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch, as arrays of instance numbers."""
    order = np.random.default_rng((seed, epoch)).permutation(len(instance_set))
    return fill_batches(order, instance_set.n_tokens(), max_tokens)


def validation_batches(instance_set: InstanceSet, *, max_tokens: int) -> list[np.ndarray]:
    """All instances in file order."""
    return fill_batches(np.arange(len(instance_set)), instance_set.n_tokens(), max_tokens)


def drop_words(batch: Batch, *, probability: float, seed: tuple[int, ...]) -> Batch:
    """Replace source and target input words by `<mask>` (word dropout, Appendix C.1); marks and labels are spared."""
    if probability == 0:
        return batch
    generator = np.random.default_rng(seed)

    def drop(tokens: torch.Tensor) -> torch.Tensor:
        chosen = torch.from_numpy(generator.random(len(tokens)) < probability).to(tokens.device)
        return tokens.masked_fill(chosen & (tokens >= N_SPECIALS), MASK)

    return batch.with_inputs(drop(batch.src_tokens_S), drop(batch.tgt_inputs_N))


def drop_trees(batch: Batch, *, probability: float, seed: tuple[int, ...]) -> Batch:
    """Open each instance with this probability, so that RST attention sees all of it (RST-Transformer, §5.2)."""
    if probability == 0 or batch.layout.trees is None:
        return batch
    generator = np.random.default_rng(seed)
    open_B = generator.random(len(batch.layout.sentences_B)) < probability
    return replace(batch, layout=batch.layout.opened(open_B))
