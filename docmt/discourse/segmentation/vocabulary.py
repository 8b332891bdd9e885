"""Words as numbers: word and character vocabularies, word shapes, label inventories.

Shapes: U word types, C characters of a type.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from docmt.errors import UserError

PADDING, UNKNOWN = 0, 1
"""Numbers of words and characters start after these two."""
N_SPECIAL = 2
MAX_CHARACTERS = 24
HEAD_CHARACTERS = 16
"""The convolution sees only the first 16 and the last 8 characters of a word of more than 24."""

LABELS = ("pos", "relations", "openings")
"""Labels of words that the auxiliary losses predict, as fields of `WordVocabulary` and `SentenceSyntax`."""
SHAPES = ("lower", "initial", "upper", "mixed", "digits", "alphanumeric", "punctuation", "caseless")


@dataclass(frozen=True)
class WordVocabulary:
    """Words, characters and labels that a segmenter knows; their positions are their numbers."""

    words: tuple[str, ...]  # lower-cased words
    characters: tuple[str, ...]  # single characters
    pos: tuple[str, ...] = ()  # labels of the auxiliary losses; empty when the training data had no syntax
    relations: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()

    @classmethod
    def learn(cls, sentences: Iterable[Sequence[str]], *, min_word_count: int) -> "WordVocabulary":
        """Collect words and characters, the most frequent first, ties in order of code points."""
        words, characters = Counter(), Counter()
        for sentence in sentences:
            words.update(word.lower() for word in sentence)
            characters.update(character for word in sentence for character in word)
        kept = []
        for counts, minimum in ((words, min_word_count), (characters, 1)):
            ordered = sorted(counts, key=lambda item: (-counts[item], item))
            kept.append(tuple(item for item in ordered if counts[item] >= minimum))
        return cls(*kept)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "WordVocabulary":
        try:
            lists = {name: tuple(value[name]) for name in cls.__dataclass_fields__}
        except (KeyError, TypeError) as error:
            raise UserError(f"segmenter: its vocabulary is damaged ({error!r}): train it again") from None
        if not all(isinstance(item, str) for items in lists.values() for item in items):
            raise UserError("segmenter: its vocabulary is damaged (not text): train it again")
        return cls(**lists)

    def to_dict(self) -> dict[str, list[str]]:
        return {name: list(items) for name, items in asdict(self).items()}


@dataclass(frozen=True)
class WordTypes:
    """The distinct word forms of some sentences, each encoded once."""

    words_U: Tensor  # int64, numbers of the lower-cased word and of its shape
    shapes_U: Tensor
    characters_UC: Tensor  # int64, numbers of its characters, padded on the right

    def select(self, used_U: Tensor) -> "WordTypes":
        return WordTypes(self.words_U[used_U], self.shapes_U[used_U], self.characters_UC[used_U])

    @classmethod
    def encode(cls, words: Sequence[str], vocabulary: WordVocabulary) -> "WordTypes":
        """Number word forms and their characters."""
        number = {word: number for number, word in enumerate(vocabulary.words, start=N_SPECIAL)}
        character_number = {character: number for number, character in enumerate(vocabulary.characters, N_SPECIAL)}
        rows = []
        for word in words:
            if len(word) > MAX_CHARACTERS:
                word = word[:HEAD_CHARACTERS] + word[HEAD_CHARACTERS - MAX_CHARACTERS :]
            row = [character_number.get(character, UNKNOWN) for character in word]
            rows.append(row + [PADDING] * (MAX_CHARACTERS - len(row)))
        return cls(
            torch.tensor([number.get(word.lower(), UNKNOWN) for word in words], dtype=torch.int64),
            torch.tensor([word_shape(word) for word in words], dtype=torch.int64),
            torch.tensor(rows, dtype=torch.int64).view(len(words), MAX_CHARACTERS),
        )


def number_types(sentences: Iterable[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """List the distinct word forms in order of appearance, and number the words of each sentence accordingly."""
    numbers: dict[str, int] = {}
    encoded = [[numbers.setdefault(word, len(numbers)) for word in sentence] for sentence in sentences]
    return list(numbers), encoded


def word_shape(word: str) -> int:
    """Return the position of a word's shape in `SHAPES`."""
    if word.isalpha():
        if word.islower():
            name = "lower"
        elif word.isupper():
            name = "upper" if len(word) > 1 else "initial"
        elif word.lower() == word.upper():
            name = "caseless"
        else:
            name = "initial" if word[:1].isupper() and word[1:].islower() else "mixed"
    elif not any(map(str.isalnum, word)):
        name = "punctuation"
    elif not any(map(str.isalpha, word)):
        name = "digits"
    else:
        name = "alphanumeric" if any(map(str.isdigit, word)) else "mixed"
    return SHAPES.index(name)
