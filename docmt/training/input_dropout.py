"""Dropout of words and trees, with random numbers that depend on seed and update, not on the device that reads them.

Shape letters: M instances of a batch, S and N their source tokens and decoder inputs.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from docmt.instances.storage import offsets_of
from docmt.models.batch import Batch
from docmt.text.vocabulary import MASK, N_SPECIALS

TREES = 1  # mixed into the seed, so that dropped trees and dropped words have independent random numbers

DropoutNumbers = tuple[np.ndarray, np.ndarray, float]
"""Random numbers of an instance, uniform in [0, 1): one per source token, per decoder input, and one for its trees."""


def draw_numbers(src_counts: np.ndarray, tgt_counts: np.ndarray, *, seed: tuple[int, ...]) -> list[DropoutNumbers]:
    """Draw the numbers of each instance of a batch, which has `src_counts` source tokens and `tgt_counts` inputs.

    A device draws the numbers of all instances to find its own: an instance of an update gets the same ones anywhere.
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
    """Replace source and target input words by `<mask>` (word dropout, Appendix C.1); marks and labels stay.

    Words are dropped whose number is below the probability. Ids below `n_specials` are not words.
    """
    if probability == 0:
        return batch

    def drop(tokens: torch.Tensor, numbers: np.ndarray) -> torch.Tensor:
        return tokens.masked_fill(torch.from_numpy(numbers < probability) & (tokens >= n_specials), MASK)

    return replace(batch, src_tokens_S=drop(batch.src_tokens_S, src_S), tgt_inputs_N=drop(batch.tgt_inputs_N, tgt_N))


def drop_trees(batch: Batch, numbers_M: np.ndarray, *, probability: float) -> Batch:
    """Drop trees, so that RST attention sees the whole of an instance (RST-Transformer, §5.2).

    Trees of an instance are dropped if its number is below the probability.
    """
    if probability == 0 or batch.layout.trees is None:
        return batch
    return replace(batch, layout=batch.layout.opened(numbers_M < probability))
