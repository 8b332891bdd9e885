"""Document restoration: from a noised document to the document (cross-task pre-training, §2.1 and Figure 2).

Documents have two kinds of noise. The input for a *gap sentence* (CA-GSR) is the left neighbor, `[MASK1]` and the right
neighbor. All other sentences are *masked sentences* (CA-MSR), with some words masked. The output for a sentence is the
sentence itself, so input and output are aligned. Gap sentences do not appear in the input.

The neighbors in the input for a gap sentence are clean by default. In the paper, the input for a masked sentence is
"its masked version" with a hat on the X, but a gap sentence has "its left and right neighboring sentences" without a
hat. Only gap sentences are removed from the input, to avoid leaks.

Noise changes with every epoch. It is the same after a resume and in any batch.

Shape letters: S packed source tokens, N packed target tokens, G sentences, M gap sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from docmt.errors import UserError
from docmt.instances.packing import gather
from docmt.instances.settings import RestorationSettings
from docmt.instances.storage import InstanceSet
from docmt.ranges import expand_ranges, offsets_of
from docmt.text.vocabulary import Vocabulary

# Part of the seed, so that noise differs from other draws with the same (seed, epoch, number).
RESTORATION = 0x6E6F6973  # `nois` in ASCII


@dataclass(frozen=True)
class RestorationSymbols:
    """Ids for noise: `[MASK1]`, `[MASK2]`, and the words first_word to n_symbols − 1."""

    gap_mask: int
    token_mask: int
    first_word: int
    n_symbols: int

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "RestorationSymbols":
        """Look up the ids."""
        if len(vocabulary) == vocabulary.n_specials:
            raise UserError("the vocabulary has no words to replace masked sentences: learn a vocabulary on text")
        return cls(*vocabulary.masks(), vocabulary.n_specials, len(vocabulary))


def choose_gaps(n_sentences: int, ratio: float, generator: np.random.Generator) -> np.ndarray:
    """Draw sorted gap sentences [M]: not the first or last, not two in a row, all such choices equally likely.

    M is ratio · n_sentences (rounded, halves up), but at most (n_sentences − 1) // 2.
    """
    # Not `round`, which rounds halves to even numbers: 2.5 to 2, but 3.5 to 4.
    wanted = int(ratio * n_sentences + 0.5)
    n_gaps = max(0, min(wanted, (n_sentences - 1) // 2))
    # Choosing M of n positions without neighbors means choosing M of n − M + 1, and shifting position i by i.
    gaps = np.sort(generator.choice(max(n_sentences - 1 - n_gaps, 0), n_gaps, replace=False))
    return gaps + 1 + np.arange(n_gaps)


def open_gaps(
    neighbors_N: np.ndarray, noised_N: np.ndarray, lengths_G: np.ndarray, gaps_M: np.ndarray, *, gap_mask: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens [S] and lengths [G] of input documents (Figure 2).

    The input for a gap is `<s> left [MASK1] right </s>`, from `neighbors_N`. Other sentences are noised.
    """
    ends = np.cumsum(lengths_G)
    starts = ends - lengths_G
    # Sentences consist of three slices of `pieces`. Outside gaps, only the first slice is nonempty.
    pieces = np.concatenate((noised_N, neighbors_N, np.array([gap_mask], dtype=noised_N.dtype)))
    n_tokens = len(noised_N)
    # In `pieces`, neighbors follow the noised tokens, and the mask follows both.
    starts_G3, lengths_G3 = np.zeros((2, len(lengths_G), 3), dtype=np.int64)
    starts_G3[:, 0], lengths_G3[:, 0] = starts, lengths_G
    left, right = gaps_M - 1, gaps_M + 1
    starts_G3[gaps_M] = np.stack(
        (n_tokens + starts[left], np.full(len(gaps_M), 2 * n_tokens), n_tokens + starts[right] + 1), 1
    )
    lengths_G3[gaps_M] = np.stack((lengths_G[left] - 1, np.ones(len(gaps_M)), lengths_G[right] - 1), 1)
    return pieces[expand_ranges(starts_G3.ravel(), lengths_G3.ravel())], lengths_G3.sum(1)


@dataclass(frozen=True)
class Noise:
    """Noise on monolingual documents, as a function of (seed, epoch, document)."""

    settings: RestorationSettings
    symbols: RestorationSymbols
    seed: int

    def apply(self, instance_set: InstanceSet, instances: np.ndarray, *, epoch: int) -> InstanceSet:
        """Return instances in this order, with the noise for an epoch on their source side."""
        clean = gather(instance_set, instances)
        seeds = [(self.seed, RESTORATION, epoch, number) for number in instances.tolist()]
        src_tokens_S, src_lengths_G = self.documents(clean.tgt_tokens_N, clean.tgt_lengths_G, clean.counts_B, seeds)
        return InstanceSet(
            src_tokens=src_tokens_S,
            src_offsets=offsets_of(src_lengths_G),
            tgt_tokens=clean.tgt_tokens_N,
            tgt_offsets=offsets_of(clean.tgt_lengths_G),
            instances=offsets_of(clean.counts_B),
            documents=instance_set.documents[instances],
            manifest=instance_set.manifest,
        )

    def documents(
        self, tokens_N: np.ndarray, lengths_G: np.ndarray, counts_B: np.ndarray, seeds: Sequence[Sequence[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return tokens [S] and lengths [G] of the inputs for documents with `counts_B` sentences, with one seed each.

        Sentences are `<s> w1 … wn </s>`, and aligned between input and output.
        """
        ends_B = np.cumsum(counts_B)
        offsets = offsets_of(lengths_G)
        noised_N = np.empty_like(tokens_N)
        gaps: list[np.ndarray] = []
        for seed, first, last in zip(seeds, (ends_B - counts_B).tolist(), ends_B.tolist(), strict=True):
            generator = np.random.default_rng(seed)
            span = slice(offsets[first], offsets[last])
            noised_N[span] = self.mask_words(tokens_N[span], lengths_G[first:last], generator)
            gaps.append(first + choose_gaps(last - first, self.settings.gap_ratio, generator))
        # For all documents at once. The loop only draws random numbers.
        neighbors_N = tokens_N if self.settings.clean_neighbors else noised_N
        return open_gaps(neighbors_N, noised_N, lengths_G, np.concatenate(gaps), gap_mask=self.symbols.gap_mask)

    def mask_words(self, tokens_N: np.ndarray, lengths_G: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Select words with `mask_ratio`, and replace them by `[MASK2]`, a random word or the same word."""
        settings, symbols = self.settings, self.symbols
        # The first and last tokens of sentences are boundary tokens, which stay.
        is_word = np.ones(len(tokens_N), dtype=bool)
        ends = np.cumsum(lengths_G)
        is_word[ends - 1] = False
        is_word[ends - lengths_G] = False
        is_selected = is_word & (generator.random(len(tokens_N)) < settings.mask_ratio)
        shares = generator.random(len(tokens_N))
        is_masked = is_selected & (shares < settings.mask_share)
        is_random = is_selected & ~is_masked & (shares < settings.mask_share + settings.random_share)
        noised = np.where(is_masked, symbols.token_mask, tokens_N).astype(tokens_N.dtype)
        noised[is_random] = generator.integers(symbols.first_word, symbols.n_symbols, int(is_random.sum()))
        return noised
