"""Instances packed into arrays for batches; language tags; documents as single sentences.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from docmt.instances.storage import InstanceSet, expand_ranges
from docmt.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class LanguageTags:
    """The ids of the language tags of source and target sentences; equal when a document is restored.

    Johnson et al. (2017) tell a multi-task model what to do with a tag; cross-task pre-training (§2.3) marks each
    source and target sentence with its language.
    """

    src: int
    tgt: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, *, src_lang: str, tgt_lang: str) -> "LanguageTags":
        """Look up both tags. Raises UserError when the vocabulary has no tag for a language."""
        return cls(vocabulary.tag(src_lang), vocabulary.tag(tgt_lang))


@dataclass(frozen=True)
class PackedSentences:
    """Consecutive sentences of some instances; the arguments of `docmt.models.batch.pack`.

    Attributes:
        src_tokens_S, tgt_tokens_N: int32, each sentence as `<s> w1 … wn </s>`.
        src_lengths_G, tgt_lengths_G: int64, tokens of each sentence, marks included.
        counts_B: int64, sentences of each instance.
    """

    src_tokens_S: np.ndarray
    src_lengths_G: np.ndarray
    tgt_tokens_N: np.ndarray
    tgt_lengths_G: np.ndarray
    counts_B: np.ndarray

    def tagged(self, tags: LanguageTags) -> "PackedSentences":
        """Replace the `<s>` of each sentence by a language tag.

        `<s>` is the same everywhere, so this loses nothing and makes no sentence longer, and a decoder starts each
        sentence with the tag of its language instead of having to predict it.
        """
        return replace(
            self,
            src_tokens_S=_with_first(self.src_tokens_S, self.src_lengths_G, tags.src),
            tgt_tokens_N=_with_first(self.tgt_tokens_N, self.tgt_lengths_G, tags.tgt),
        )


def gather(instance_set: InstanceSet, instances: Sequence[int] | np.ndarray) -> PackedSentences:
    """Pack some instances, in the given order."""
    chosen = np.asarray(instances, dtype=np.int64)
    bounds = np.asarray(instance_set.instances)  # plain arrays: each access to a memory map costs microseconds
    first_B, last_B = bounds[chosen], bounds[chosen + 1]
    counts_B = last_B - first_B
    sentences_G = expand_ranges(first_B, counts_B)

    def pack(tokens: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tokens, offsets = np.asarray(tokens), np.asarray(offsets)
        starts_B = offsets[first_B]
        lengths_G = offsets[sentences_G + 1] - offsets[sentences_G]
        return tokens[expand_ranges(starts_B, offsets[last_B] - starts_B)], lengths_G

    src = pack(instance_set.src_tokens, instance_set.src_offsets)
    tgt = pack(instance_set.tgt_tokens, instance_set.tgt_offsets)
    return PackedSentences(*src, *tgt, counts_B)


def as_sentences(instance_set: InstanceSet) -> InstanceSet:
    """Make every sentence a separate instance, without trees; only offsets are copied.

    One folder of documents thus serves both fine-tuning tasks (cross-task pre-training, §3.1).
    """
    n_sentences = len(instance_set.src_offsets) - 1
    return replace(
        instance_set,
        instances=np.arange(n_sentences + 1),
        documents=np.repeat(instance_set.documents, instance_set.n_sentences()),
        trees=None,
    )


def _with_first(tokens: np.ndarray, lengths: np.ndarray, first: int) -> np.ndarray:
    """Copy the tokens, replacing the first of each sentence."""
    changed = tokens.copy()
    changed[np.cumsum(lengths) - lengths] = first
    return changed
