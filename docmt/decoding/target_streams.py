"""Running hypotheses of a search as streams of labels: aligned with the source sentences, or free.

Shape letters: B instances, M beam, C = 2 × M candidates per instance, G source sentences in the batch, X symbol kinds:
words, then the specials that can be labels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from docmt.instances.packing import BoundaryTokens
from docmt.models.attention.layout import AttentionLayout
from docmt.ranges import starts_of
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS, Vocabulary


@dataclass(frozen=True)
class TargetSymbols:
    """Special symbols in a search.

    Attributes:
        start: first symbol of every target sentence, set without a search: `<s>` or a language tag.
        n_specials: ids below this number are specials. Among them, only `</s>`, `forced` and, in free streams, `start`
            and `<eod>` are generated.
        forced: a special that must be the first label in every sentence. None in most models.
    """

    start: int = BOS
    n_specials: int = N_SPECIALS
    forced: int | None = None

    @classmethod
    def of(cls, boundaries: BoundaryTokens, vocabulary: Vocabulary) -> "TargetSymbols":
        """Return a model's symbols."""
        start, *forced = boundaries.tgt_before
        return cls(start, vocabulary.n_specials, *forced)


PLAIN_SYMBOLS = TargetSymbols()


class TargetStream(ABC):
    """The running hypotheses in a batch as label streams. Steps count labels.

    Attributes:
        generated: the specials that can be labels.
        tokens_BM: int64, next input per hypothesis.
        sentences_BM: int64, the source sentence that a hypothesis translates, numbered over the batch.
        of_instances: names of tensors with one entry per instance.
    """

    of_instances: ClassVar[tuple[str, ...]]

    def __init__(
        self, sentences_B: np.ndarray, generated: list[int], symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        self.generated = generated
        self.symbols = symbols
        self.tokens_BM = torch.full((len(sentences_B), beam), symbols.start, device=device)
        self.sentences_BM = torch.from_numpy(sentences_B).to(device)[:, None].repeat(1, beam)

    @abstractmethod
    def positions(self, step: int) -> Tensor:
        """Return the position of every input token, int64 [B, M]."""

    @abstractmethod
    def banned(self, step: int) -> Tensor:
        """Return the kinds of symbols that may not come next, bool [B, M, X]."""

    @abstractmethod
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        """Return the candidates that end their instance, bool [B, C]."""

    @abstractmethod
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        """Continue hypothesis `parents_BM[:, m]` with a token, as the new hypothesis m."""

    @abstractmethod
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        """Return the sentences in a finished stream without boundary tokens, and the number ended by the length limit.

        `labels` excludes the label that ended the instance. `instance` is its number in the original batch.
        """

    def select_instances(self, instances: Tensor) -> None:
        """Keep only some instances."""
        for name in self.of_instances:
            setattr(self, name, getattr(self, name).index_select(0, instances))


class AlignedStream(TargetStream):
    """Words and `</s>`, which leads to the next sentence. The last one ends the instance."""

    of_instances = ("tokens_BM", "sentences_BM", "began_BM", "last_B")

    def __init__(
        self, layout: AttentionLayout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        self.first_sentence = starts_of(layout.sentences_B)
        generated = [EOS]
        if symbols.forced is not None:
            generated.append(symbols.forced)
        self.n_forced = len(generated) - 1
        super().__init__(self.first_sentence, generated, symbols, beam, device)
        self.limits = limits_G
        self.limits_G = torch.from_numpy(limits_G).to(device)
        self.last_B = torch.from_numpy(self.first_sentence + layout.sentences_B - 1).to(device)
        self.began_BM = torch.zeros_like(self.tokens_BM)
        self.restarts = layout.settings.positions == "sentence"

    @override
    def positions(self, step: int) -> Tensor:
        if self.restarts:
            return step - self.began_BM
        return torch.full_like(self.began_BM, step)

    @override
    def banned(self, step: int) -> Tensor:
        # A sentence has at least one word, unless its limit is 0, and at most its limit.
        words_BM = step - self.began_BM - self.n_forced
        must_end_BM = words_BM >= self.limits_G[self.sentences_BM]
        may_not_end_BM = (words_BM == 0) & ~must_end_BM
        if not self.n_forced:
            return torch.stack((must_end_BM, may_not_end_BM), dim=2)
        is_first_BM = words_BM < 0
        # Words, `</s>`, forced.
        return torch.stack((must_end_BM | is_first_BM, may_not_end_BM | is_first_BM, ~is_first_BM), dim=2)

    @override
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        is_last_BM = self.sentences_BM == self.last_B[:, None]
        return (tokens_BC == EOS) & is_last_BM.gather(1, parents_BC)

    @override
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        is_end_BM = tokens_BM == EOS
        # Hypotheses of ended instances stay inside their instance, so that every index stays valid.
        sentences_BM = self.sentences_BM.gather(1, parents_BM) + is_end_BM
        self.sentences_BM = torch.minimum(sentences_BM, self.last_B[:, None])
        self.began_BM = self.began_BM.gather(1, parents_BM).masked_fill_(is_end_BM, step + 1)
        self.tokens_BM = tokens_BM.masked_fill(is_end_BM, self.symbols.start)

    @override
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        sentences = [words[self.n_forced :] for words in _split(labels)]
        limits = self.limits[self.first_sentence[instance] :][: len(sentences)].tolist()
        forced_ends = 0
        for words, limit in zip(sentences, limits, strict=True):
            forced_ends += len(words) == limit > 0
        return sentences, forced_ends


class FreeStream(TargetStream):
    """Words and `</s>`, followed by the start of another sentence or by `<eod>`, which ends the instance."""

    of_instances = ("tokens_BM", "sentences_BM", "limits_B")

    def __init__(
        self, layout: AttentionLayout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        super().__init__(np.arange(len(layout.sentences_B)), [EOS, symbols.start, EOD], symbols, beam, device)
        # An instance must end after this number of labels: the words of its sentences, and 2 boundary tokens of each.
        # Its last 2 boundary tokens follow, so that it can have 2 more words.
        self.limits = np.add.reduceat(limits_G + 2, starts_of(layout.sentences_B))
        self.limits_B = torch.from_numpy(self.limits).to(device)

    @override
    def positions(self, step: int) -> Tensor:
        return torch.full_like(self.tokens_BM, step)

    @override
    def banned(self, step: int) -> Tensor:
        # From the limit on, a stream must end, which it only can after `</s>`.
        is_between = self.tokens_BM == EOS
        must_end = (self.limits_B <= step)[:, None]
        # Words, `</s>`, start, `<eod>`.
        return torch.stack((is_between | must_end, is_between, ~is_between | must_end, ~is_between), dim=2)

    @override
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        return tokens_BC == EOD

    @override
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        self.tokens_BM = tokens_BM

    @override
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        forced_ends = int((labels[self.limits[instance] :] == EOS).sum())
        return _split(labels[labels != self.symbols.start])[:-1], forced_ends


def _split(labels: np.ndarray) -> list[list[int]]:
    """Split labels at `</s>` into sentences without it. After a last `</s>` comes an empty sentence."""
    return [part[part != EOS].tolist() for part in np.split(labels, np.flatnonzero(labels == EOS))]
