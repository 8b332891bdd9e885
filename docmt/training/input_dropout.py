"""Word and tree dropout, with random numbers that depend on seed and update, but not on the device.

Shape letters: M instances in a batch, S and N their source tokens and decoder inputs.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from docmt.models.batch import Batch
from docmt.ranges import offsets_of
from docmt.text.vocabulary import MASK, N_SPECIALS

TREES = 1  # mixed into the seed, so that dropped trees and dropped words have independent random numbers

DropoutNumbers = tuple[np.ndarray, np.ndarray, float]
"""Random numbers for an instance, uniform in [0, 1): per source token, per decoder input, and one for its trees."""


def draw_numbers(src_counts: np.ndarray, tgt_counts: np.ndarray, *, seed: tuple[int, ...]) -> list[DropoutNumbers]:
    """Draw random numbers for all instances in a batch. `src_counts` and `tgt_counts` are tokens per instance.

    A device draws the numbers for all instances to find its own, so that they are the same on any device.
    """
    offsets = offsets_of(np.concatenate((src_counts, tgt_counts))).tolist()
    numbers = np.random.default_rng(seed).random(offsets[-1])
    pieces = [numbers[first:last] for first, last in pairwise(offsets)]
    # A separate generator: words draw the same numbers with and without trees.
    trees = np.random.default_rng((*seed, TREES)).random(len(src_counts)).tolist()
    return list(zip(pieces[: len(trees)], pieces[len(trees) :], trees, strict=True))


def drop_words(
    batch: Batch, src_S: np.ndarray, tgt_N: np.ndarray, *, probability: float, n_specials: int = N_SPECIALS
) -> Batch:
    """Replace source and target input words by `<mask>` (word dropout; G-Transformer, Appendix C.1).

    Words are dropped if their number is below the probability. Ids below `n_specials` are not words. Boundary tokens
    and labels do not change.
    """
    if probability == 0:
        return batch

    def drop(tokens: torch.Tensor, numbers: np.ndarray) -> torch.Tensor:
        return tokens.masked_fill(torch.from_numpy(numbers < probability) & (tokens >= n_specials), MASK)

    return replace(batch, src_tokens_S=drop(batch.src_tokens_S, src_S), tgt_inputs_N=drop(batch.tgt_inputs_N, tgt_N))


def drop_trees(batch: Batch, numbers_M: np.ndarray, *, probability: float) -> Batch:
    """Drop trees, so that RST attention sees the whole instance (RST-Transformer, §5.2).

    Trees are dropped if the instance's number is below the probability.
    """
    if probability == 0 or batch.layout.trees is None:
        return batch
    return replace(batch, layout=batch.layout.without_tree_mask(numbers_M < probability))
