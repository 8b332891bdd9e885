"""The Moses tokenizer of sacremoses, in a separate module: importing the library takes 0.4 seconds."""

from typing import cast

from sacremoses import MosesTokenizer


class Moses(MosesTokenizer):
    """The Moses tokenizer with faster lookups: the original builds sets of 100,000 letters for each full stop."""

    def __init__(self, lang: str) -> None:
        super().__init__(lang)
        self._alphabetic = frozenset(self.IsAlpha)
        self._lower = frozenset(self.IsLower)

    def isanyalpha(self, text: str) -> bool:
        """Whether a character is a letter."""
        return not self._alphabetic.isdisjoint(text)

    def islower(self, text: str) -> bool:
        """Whether all characters are lower-case letters."""
        return self._lower.issuperset(text)

    def words(self, text: str) -> list[str]:
        """Plain tokens, neither escaped nor split at hyphens within words."""
        return cast("list[str]", self.tokenize(text, escape=False))  # a str only with return_str
