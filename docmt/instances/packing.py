"""Some instances as packed arrays, what a batch is made of; language tags; documents seen as single sentences.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from docmt.instances.storage import InstanceSet
from docmt.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class LanguageTags:
    """The ids of the tags of source and target sentences; the same one twice when a document is restored.

    Johnson et al. 2017 tell a model with several tasks by a tag what to do; cross-task pre-training (§2.3) writes the
    language of each source and target sentence before it.
    """

    src: int
    tgt: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, *, src_lang: str, tgt_lang: str) -> "LanguageTags":
        """Look up both tags. Raises UserError when the vocabulary does not know a language."""
        return cls(vocabulary.tag(src_lang), vocabulary.tag(tgt_lang))


@dataclass(frozen=True)
class PackedSentences:
    """Sentences of some instances, one after the other; the arguments of `docmt.models.batch.pack`.

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
        """The same with a language tag before each sentence, in the place of `<s>`.

        `<s>` is the same everywhere, so nothing is lost, sentences grow no longer, and a decoder starts a sentence
        with the tag of its language instead of having to predict it.
        """
        return replace(
            self,
            src_tokens_S=_with_first(self.src_tokens_S, self.src_lengths_G, tags.src),
            tgt_tokens_N=_with_first(self.tgt_tokens_N, self.tgt_lengths_G, tags.tgt),
        )


def gather(instance_set: InstanceSet, instances: Sequence[int]) -> PackedSentences:
    """The sentences of some instances, in the order given."""
    spans = [(instance_set.instances[i], instance_set.instances[i + 1]) for i in instances]
    sides = []
    for side in ("src", "tgt"):
        tokens, offsets = getattr(instance_set, f"{side}_tokens"), getattr(instance_set, f"{side}_offsets")
        sides.append(np.concatenate([tokens[offsets[first] : offsets[last]] for first, last in spans]))
        sides.append(np.concatenate([np.diff(offsets[first : last + 1]) for first, last in spans]))
    return PackedSentences(*sides, np.array([last - first for first, last in spans], dtype=np.int64))


def as_sentences(instance_set: InstanceSet) -> InstanceSet:
    """The same text with every sentence an instance of its own, without trees; nothing is copied but offsets.

    So one folder of documents serves both fine-tuning tasks (cross-task pre-training, §3.1).
    """
    n_sentences = len(instance_set.src_offsets) - 1
    return replace(
        instance_set,
        instances=np.arange(n_sentences + 1),
        documents=np.repeat(instance_set.documents, instance_set.n_sentences()),
        trees=None,
    )


def _with_first(tokens: np.ndarray, lengths: np.ndarray, first: int) -> np.ndarray:
    """A copy in which each sentence begins with another token."""
    changed = tokens.copy()
    changed[np.cumsum(lengths) - lengths] = first
    return changed
