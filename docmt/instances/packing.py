"""Packed instance arrays for batches, boundary tokens, and documents as single sentences.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np

from docmt.instances.storage import InstanceSet
from docmt.ranges import expand_ranges, starts_of
from docmt.text.vocabulary import BOS, EOS, Vocabulary


@dataclass(frozen=True)
class BoundaryTokens:
    """Token ids before and after a sentence's words in model input. A target always ends in `</s>`.

    Instances are stored with `<s>` and `</s>`. In cross-task pre-training (§2.3), language tags are boundary tokens, as
    instructions for a multi-task model (Johnson et al. 2017). Pretrained models have others.
    """

    src_before: tuple[int, ...] = (BOS,)
    src_after: tuple[int, ...] = (EOS,)
    tgt_before: tuple[int, ...] = (BOS,)

    @classmethod
    def of_symbols(
        cls, vocabulary: Vocabulary, *, src_lang: str, tgt_lang: str, **symbols: Sequence[str]
    ) -> "BoundaryTokens":
        """Look up symbols by attribute name. `{src}` and `{tgt}` are language tags."""
        langs = {"{src}": src_lang, "{tgt}": tgt_lang}

        def find(symbol: str) -> int:
            if symbol in langs:
                return vocabulary.tag(langs[symbol])
            return vocabulary.find(symbol)

        return cls(**{name: tuple(map(find, names)) for name, names in symbols.items()})

    def around(self, side: Literal["src", "tgt"]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if side == "src":
            return self.src_before, self.src_after
        return self.tgt_before, (EOS,)

    def wrap(self, words: Iterable[int], side: Literal["src", "tgt"]) -> np.ndarray:
        """Return a sentence's words with boundary tokens, int32."""
        before, after = self.around(side)
        return np.array([*before, *words, *after], dtype=np.int32)

    def join(self, sentences: Iterable[np.ndarray], side: Literal["src", "tgt"]) -> np.ndarray:
        """Return sentences as one sentence, all with boundary tokens, int32."""
        before, after = self.around(side)
        words = (sentence[len(before) : len(sentence) - len(after)] for sentence in sentences)
        return self.wrap(chain.from_iterable(words), side)


@dataclass(frozen=True)
class PackedSentences:
    """Consecutive sentences in instances, as arguments for `docmt.models.batch.pack`."""

    src_tokens_S: np.ndarray  # int32, sentences as `<s> w1 … wn </s>`
    src_lengths_G: np.ndarray  # int64, tokens per sentence, including boundary tokens
    tgt_tokens_N: np.ndarray
    tgt_lengths_G: np.ndarray
    counts_B: np.ndarray  # int64, sentences per instance
    masked_G: np.ndarray | None = None  # bool, sentences without loss

    @classmethod
    def of(cls, src: Sequence[np.ndarray], tgt: Sequence[np.ndarray], counts_B: np.ndarray) -> "PackedSentences":
        src_lengths_G = np.array(list(map(len, src)))
        tgt_lengths_G = np.array(list(map(len, tgt)))
        return cls(np.concatenate(src), src_lengths_G, np.concatenate(tgt), tgt_lengths_G, counts_B)

    def with_boundaries(self, boundaries: BoundaryTokens) -> "PackedSentences":
        """Replace `<s>` and `</s>` by other boundary tokens."""
        src = _with_boundaries(self.src_tokens_S, self.src_lengths_G, *boundaries.around("src"))
        tgt = _with_boundaries(self.tgt_tokens_N, self.tgt_lengths_G, *boundaries.around("tgt"))
        return PackedSentences(*src, *tgt, self.counts_B, self.masked_G)


def gather(instance_set: InstanceSet, instances: Sequence[int] | np.ndarray) -> PackedSentences:
    """Pack instances in this order."""
    rows = np.asarray(instances, dtype=np.int64)
    bounds = np.asarray(instance_set.instances)  # plain arrays, since memory map accesses cost microseconds
    first_B, last_B = bounds[rows], bounds[rows + 1]
    counts_B = last_B - first_B
    sentences_G = expand_ranges(first_B, counts_B)

    def pack(tokens: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tokens, offsets = np.asarray(tokens), np.asarray(offsets)
        starts_B = offsets[first_B]
        lengths_G = offsets[sentences_G + 1] - offsets[sentences_G]
        return tokens[expand_ranges(starts_B, offsets[last_B] - starts_B)], lengths_G

    src = pack(instance_set.src_tokens, instance_set.src_offsets)
    tgt = pack(instance_set.tgt_tokens, instance_set.tgt_offsets)
    masked_G = None if instance_set.masked is None else instance_set.masked[sentences_G]
    return PackedSentences(*src, *tgt, counts_B, masked_G)


def as_sentences(instance_set: InstanceSet) -> InstanceSet:
    """Make every sentence a separate instance, without trees. Only offsets are copied.

    This allows both fine-tuning tasks with one folder of documents (cross-task pre-training, §3.1).
    """
    n_sentences = len(instance_set.src_offsets) - 1
    return replace(
        instance_set,
        instances=np.arange(n_sentences + 1),
        documents=np.repeat(instance_set.documents, instance_set.n_sentences()),
        trees=None,
    )


def _with_boundaries(
    tokens: np.ndarray, lengths_G: np.ndarray, before: Sequence[int], after: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the first and last tokens of sentences by other boundary tokens. Returns tokens and lengths."""
    words_G = lengths_G - 2
    packed_lengths_G = words_G + len(before) + len(after)
    # Loop over boundary tokens, since a sentence has few, but there are many sentences.
    ends_G = np.cumsum(packed_lengths_G)
    starts_G = ends_G - packed_lengths_G
    packed = np.empty(int(packed_lengths_G.sum()), dtype=tokens.dtype)
    for position, token in enumerate(before):
        packed[starts_G + position] = token
    for position, token in enumerate(reversed(after), start=1):
        packed[ends_G - position] = token
    first_words = starts_of(lengths_G) + 1
    packed[expand_ranges(starts_G + len(before), words_G)] = tokens[expand_ranges(first_words, words_G)]
    return packed, packed_lengths_G
