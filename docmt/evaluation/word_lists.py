"""Lists of words of languages and language pairs, in lower case, in files of the folder `data`."""

from collections.abc import Sequence
from pathlib import Path
from re import fullmatch
from typing import ClassVar, Self

import yaml
from pydantic import Field, field_validator

from docmt.evaluation.external_programs import NotComputableError
from docmt.settings import Settings

DATA = Path(__file__).parent / "data"


class WordLists(Settings):
    """The lists of one file."""

    folder: ClassVar[str]
    what: ClassVar[str]

    @classmethod
    def of(cls, *languages: str) -> Self:
        """The lists of a language or of a pair. Raises NotComputableError when there are none."""
        name = "-".join(languages)
        path = DATA / cls.folder / f"{name}.yaml"
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
            raise NotComputableError(f"no lists of {cls.what} for {name} (only for {known})")
        return cls.load(yaml.safe_load(path.read_text(encoding="utf-8")), where=path.name)


class PronounLists(WordLists):
    """Pronouns of a language pair. Nested lists are flattened."""

    folder, what = "pronouns", "pronouns"

    source: list[str] = Field(min_length=1)
    """Source pronouns to evaluate."""
    target: list[str] = Field(min_length=1)
    """Target pronouns to look for where the alignment finds none."""
    identical: list[list[str]]
    """Groups of forms of the same pronoun."""
    equivalent: list[list[str]]
    """Groups of words that count half for each other."""
    ambiguous: dict[str, dict[str, list[str]]]
    """Target pronouns that a source pronoun leaves open, each with its other source pronouns; by source pronoun."""

    @field_validator("source", "target", mode="before")
    @classmethod
    def _flatten(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(part, list) for part in value):
            return [word for part in value for word in part]
        return value

    def normalize(self, word: str) -> str:
        """The first word of the group of identical ones, or the word itself."""
        return next((group[0] for group in self.identical if word in group), word)

    def is_target(self, word: str) -> bool:
        """Whether a target word counts as a pronoun where it is aligned."""
        return any(word in group for group in (self.target, *self.identical, *self.equivalent))


class AddressForms(WordLists):
    """Words that address somebody, of one language, by class (such as `singular`)."""

    folder, what = "address", "forms of address"

    informal: dict[str, list[str]] = Field(min_length=1)
    formal: dict[str, list[str]] = Field(min_length=1)
    """Formal words, by class; capitals count if `capitals_matter`."""
    capitals_matter: bool = False
    """Whether formal words count as written, and not at the beginning of a sentence."""
    by_source: dict[str, dict[str, str]] = {}
    """Words, as written, that address somebody if the source decides it and the next word has this pattern."""

    def find(self, words: Sequence[str]) -> frozenset[str]:
        """The forms in a sentence: `informal`, `formal`, both or none."""
        found = {*self.classify(words)}
        return frozenset(name for name in ("informal", "formal") if found & getattr(self, name).keys())

    def classify(self, words: Sequence[str], *, is_clear: bool = False) -> list[str | None]:
        """The class of each word of a sentence; None where the word addresses nobody, or may mean somebody else.

        `is_clear` says that the source addresses somebody and has no third person whom such a word could mean.
        """
        informal, formal = ({word: name for name in of for word in of[name]} for of in (self.informal, self.formal))
        by_source = {word: (name, of[word]) for name, of in self.by_source.items() for word in of}
        found = []
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
            name, pattern = by_source.get(word, (None, ""))
            if not (is_clear and name and fullmatch(pattern, after)):
                name = informal.get(word.lower())
                # A capital counts only after a word or a comma: the first word of a sentence or quotation has one.
                if not self.capitals_matter:
                    name = name or formal.get(word.lower())
                elif any(map(str.isalnum, before)) or before == ",":
                    name = name or formal.get(word)
            found.append(name)
        return found


class SourceWords(WordLists):
    """Words of a source language on which the need of context depends."""

    folder, what = "source", "source words"

    you: list[str] = Field(min_length=1)
    """Words that address somebody without telling by which form."""
    others: list[str]
    """Third persons who may be meant by the same forms."""
    determiners: list[str]
    """Words before a noun."""
    function_words: list[str]
    """Words of at least four letters that are no terms."""

    def find(self, words: Sequence[str]) -> tuple[bool, bool]:
        """Whether a sentence, in lower case, addresses somebody, and whether it does so without third persons."""
        says_you = not {*words}.isdisjoint(self.you)
        return says_you, says_you and {*words}.isdisjoint(self.others)
