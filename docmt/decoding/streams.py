"""What may come next in each kind of target stream, and where in its document each hypothesis is.

All of it stays on the device, and nothing is read from there. Steps count the labels of every running hypothesis.

Shape letters: B documents, M beam, C candidates per document, X symbol kinds: words, then the symbols of `generated`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.settings import DecodingSettings
from docmt.instances.packing import Marks
from docmt.models.layout import Layout
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS, Vocabulary


@dataclass(frozen=True)
class TargetSymbols:
    """What a vocabulary means to a search.

    Attributes:
        start: the symbol that begins every target sentence, given and not searched for: `<s>` or a language tag.
        n_specials: ids below it are specials; of these, only `</s>`, `forced` and, in free streams, `start` and `<eod>`
            are generated.
        forced: a special that must be the first label of every sentence; None in most models.
    """

    start: int = BOS
    n_specials: int = N_SPECIALS
    forced: int | None = None

    @classmethod
    def of(cls, marks: Marks, vocabulary: Vocabulary) -> "TargetSymbols":
        """The symbols of a model."""
        start, *forced = marks.tgt_before
        return cls(start, vocabulary.n_specials, *forced)


PLAIN_SYMBOLS = TargetSymbols()
"""Those of a vocabulary without language tags."""


def word_limits(layout: Layout, settings: DecodingSettings) -> np.ndarray:
    """How many words each target sentence may have; int64 [G]. An empty source sentence has an empty translation."""
    words_G = layout.src_lengths_G - sum(layout.settings.src_marks)
    limits_G = (settings.max_length_ratio * words_G).astype(np.int64) + settings.max_length_offset
    return np.where(words_G == 0, 0, limits_G)


class Stream(ABC):
    """The running hypotheses of a batch, seen as streams of labels.

    Attributes:
        generated: the specials that can be labels.
        tokens_BM: int64, what each hypothesis feeds next.
        sentences_BM: int64, the source sentence that it translates, numbered over the batch.
    """

    of_documents: ClassVar[tuple[str, ...]]
    """The tensors with an entry per document."""

    def __init__(
        self, sentences_B: np.ndarray, generated: list[int], symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        self.generated, self.symbols = generated, symbols
        self.tokens_BM = torch.full((len(sentences_B), beam), symbols.start, device=device)
        self.sentences_BM = torch.from_numpy(sentences_B).to(device)[:, None].repeat(1, beam)

    @abstractmethod
    def positions(self, step: int) -> Tensor:
        """int64 [B, M], the position of each token that is fed."""

    @abstractmethod
    def banned(self, step: int) -> Tensor:
        """Bool [B, M, X], the kinds of symbols that may not come next."""

    @abstractmethod
    def ends(self, tokens_BC: Tensor, slots_BC: Tensor) -> Tensor:
        """Bool [B, C], candidates that end their document."""

    @abstractmethod
    def advance(self, tokens_BM: Tensor, slots_BM: Tensor, step: int) -> None:
        """Hypothesis m continues the one of slot `slots_BM[:, m]` with a token."""

    @abstractmethod
    def read(self, labels: np.ndarray, document: int) -> tuple[list[list[int]], int]:
        """The sentences of a finished stream without marks, and how many of them were ended by the length limit.

        Args:
            labels: int array, all labels but the one that ended the document.
            document: its number in the batch.
        """

    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents; those of `read` stay numbered over the batch."""
        for name in self.of_documents:
            setattr(self, name, getattr(self, name).index_select(0, documents))


class AlignedStream(Stream):
    """Words and `</s>`, which leads to the next sentence; the last one ends the document."""

    of_documents = ("tokens_BM", "sentences_BM", "began_BM", "last_B")

    def __init__(self, layout: Layout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device):
        self.first_sentence = np.cumsum(layout.sentences_B) - layout.sentences_B
        forced = [] if symbols.forced is None else [symbols.forced]
        self.n_forced = len(forced)
        super().__init__(self.first_sentence, [EOS, *forced], symbols, beam, device)
        self.limits = limits_G
        self.limits_G = torch.from_numpy(limits_G).to(device)
        self.last_B = torch.from_numpy(self.first_sentence + layout.sentences_B - 1).to(device)
        self.began_BM = torch.zeros_like(self.tokens_BM)
        self.restarts = layout.settings.positions == "sentence"

    def positions(self, step: int) -> Tensor:
        """See `Stream.positions`."""
        return step - self.began_BM if self.restarts else torch.full_like(self.began_BM, step)

    def banned(self, step: int) -> Tensor:
        """See `Stream.banned`: a sentence has at least one word, unless its limit is 0, and at most its limit."""
        words_BM = step - self.began_BM - self.n_forced
        must_end_BM = words_BM >= self.limits_G[self.sentences_BM]
        may_not_end_BM = (words_BM == 0) & ~must_end_BM
        if not self.n_forced:
            return torch.stack((must_end_BM, may_not_end_BM), dim=2)
        is_first_BM = words_BM < 0
        return torch.stack((must_end_BM | is_first_BM, may_not_end_BM | is_first_BM, ~is_first_BM), dim=2)

    def ends(self, tokens_BC: Tensor, slots_BC: Tensor) -> Tensor:
        """See `Stream.ends`."""
        is_last_BM = self.sentences_BM == self.last_B[:, None]
        return (tokens_BC == EOS) & is_last_BM.gather(1, slots_BC)

    def advance(self, tokens_BM: Tensor, slots_BM: Tensor, step: int) -> None:
        """See `Stream.advance`."""
        is_end_BM = tokens_BM == EOS
        # Hypotheses of ended documents stay inside their document, so that every index stays valid.
        sentences_BM = self.sentences_BM.gather(1, slots_BM) + is_end_BM
        self.sentences_BM = torch.minimum(sentences_BM, self.last_B[:, None])
        self.began_BM = self.began_BM.gather(1, slots_BM).masked_fill_(is_end_BM, step + 1)
        self.tokens_BM = tokens_BM.masked_fill(is_end_BM, self.symbols.start)

    def read(self, labels: np.ndarray, document: int) -> tuple[list[list[int]], int]:
        """See `Stream.read`."""
        sentences = [words[self.n_forced :] for words in _split(labels)]
        limits = self.limits[self.first_sentence[document] :]
        return sentences, sum(len(words) == limit > 0 for words, limit in zip(sentences, limits.tolist(), strict=False))


class FreeStream(Stream):
    """Words and `</s>`; after it either the start of another sentence or `<eod>`, which ends the document."""

    of_documents = ("tokens_BM", "sentences_BM", "limits_B")

    def __init__(self, layout: Layout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device):
        super().__init__(np.arange(len(layout.sentences_B)), [EOS, symbols.start, EOD], symbols, beam, device)
        self.limits = np.add.reduceat(limits_G + 2, np.cumsum(layout.sentences_B) - layout.sentences_B)
        self.limits_B = torch.from_numpy(self.limits).to(device)

    def positions(self, step: int) -> Tensor:
        """See `Stream.positions`."""
        return torch.full_like(self.tokens_BM, step)

    def banned(self, step: int) -> Tensor:
        """See `Stream.banned`: from the limit on, a stream must end, which it only can after `</s>`."""
        is_between = self.tokens_BM == EOS
        must_end = (self.limits_B <= step)[:, None]
        return torch.stack((is_between | must_end, is_between, ~is_between | must_end, ~is_between), dim=2)

    def ends(self, tokens_BC: Tensor, slots_BC: Tensor) -> Tensor:
        """See `Stream.ends`."""
        return tokens_BC == EOD

    def advance(self, tokens_BM: Tensor, slots_BM: Tensor, step: int) -> None:
        """See `Stream.advance`."""
        self.tokens_BM = tokens_BM

    def read(self, labels: np.ndarray, document: int) -> tuple[list[list[int]], int]:
        """See `Stream.read`."""
        n_forced = int((labels[self.limits[document] :] == EOS).sum())
        return _split(labels[labels != self.symbols.start])[:-1], n_forced


def _split(labels: np.ndarray) -> list[list[int]]:
    """The labels between `</s>`."""
    return [part[part != EOS].tolist() for part in np.split(labels, np.flatnonzero(labels == EOS))]
