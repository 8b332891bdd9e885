"""Spaces between tokens: what a detokenizer guesses, and marks where the guess would be wrong.

A list of tokens does not say where the spaces were. The Moses detokenizer guesses: none before a comma, none after an
opening bracket, ASCII quotes alternately. This module guesses alike, and marks where the text differs:

- `@` at the left or right end of a token joins it to its neighbor, as in the `@-@` of Moses: `and @/@ or`;
- a separate token `▁` is a space where none would be guessed: `10 ▁ %`.

Both characters are escaped in the text (`&#64;`, `&#9601;`), like the characters that Moses escapes, so that text is
never mistaken for a mark. Without the marks, the tokens are exactly the tokens of Moses.
"""

import re
from collections.abc import Sequence

from docmt.languages import language_of

JOINER = "@"
BLANK = "▁"

# Escapes of the Moses tokenizer and of the two marks.
ESCAPES = {
    "&": "&amp;",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&apos;",
    '"': "&quot;",
    "[": "&#91;",
    "]": "&#93;",
    JOINER: "&#64;",
    BLANK: "&#9601;",
}

_ESCAPE_TABLE = str.maketrans(ESCAPES)
_UNESCAPES = {escape: character for character, escape in ESCAPES.items()}
_ESCAPED = re.compile("|".join(map(re.escape, _UNESCAPES)))

# The currency signs of Moses, which does not know the newest ones. (Importing sacremoses takes 0.4 seconds.)
_CURRENCY = re.escape("$¢£¤¥֏؋৲৳৻૱௹฿៛₠₡₢₣₤₥₦₧₨₩₪₫€₭₮₯₰₱₲₳₴₵₶₷₸₹₺₻₼₽꠸﷼﹩＄￠￡￥￦")
_JOINS_RIGHT = re.compile(rf"[{_CURRENCY}(\[{{¿¡]+")
_JOINS_LEFT = re.compile(r"[,.?!:;\\%}\])]+|…")
_FRENCH_SPACED = re.compile(r"[?!:;%]")
_CONTRACTION = re.compile(r"'[^\W\d_]")
_ELISION = re.compile(r".*[^\W\d_]'", re.DOTALL)

_CJK = re.compile("[\u2e80-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003fffd]")
_CJK_QUOTES = frozenset("“”‘’—…·")

# Languages that write „so“, in which “ closes a quotation.
_SIXES_CLOSE = frozenset(["bg", "cs", "de", "et", "hr", "is", "lt", "lv", "ru", "sk", "sl", "sr", "uk"])
# Languages that write »so«, in which « closes a quotation.
_INWARD_GUILLEMETS = frozenset(["cs", "da", "de", "sk", "sl"])
_SPACED_GUILLEMETS = frozenset(["fr"])


def escape(token: str) -> str:
    """Replace characters that have a special meaning, to Moses or as marks, by entities."""
    return token.translate(_ESCAPE_TABLE)


def unescape(token: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: _UNESCAPES[match.group()], token) if "&" in token else token


def is_word(token: str) -> bool:
    """Whether a token contains a letter or a digit."""
    return any(map(str.isalnum, token))


def split_marks(token: str) -> tuple[bool, str, bool]:
    """Whether a token has the mark on its left, the token without marks, and whether it has the mark on its right."""
    left = len(token) > 1 and token.startswith(JOINER)
    core = token[left:]
    right = len(core) > 1 and core.endswith(JOINER)
    return left, core[: len(core) - right], right


def _directional_quotes(lang: str) -> dict[str, tuple[bool, bool]]:
    """To which sides typographic quotes join without marks: (left, right)."""
    opens, closes = set("„‚“‘"), set("”’")
    if lang in _SIXES_CLOSE:
        opens, closes = set("„‚"), set("“‘”’")
    if lang not in _SPACED_GUILLEMETS:
        inward = lang in _INWARD_GUILLEMETS
        opens |= set("»›" if inward else "«‹")
        closes |= set("«‹" if inward else "»›")
    return {quote: (quote in closes, quote not in closes) for quote in opens | closes}


class Spacing:
    """The spaces between tokens of one language."""

    def __init__(self, lang: str) -> None:
        self.lang = language_of(lang)
        self._quotes = _directional_quotes(self.lang)

    def mark(self, tokens: Sequence[str], glued: Sequence[bool]) -> list[str]:
        """Escape tokens, and mark those around which `join` would guess the spaces wrong.

        Args:
            tokens: plain tokens, without white space.
            glued: for each token, whether no space precedes it; the first value is ignored.
        """
        # The same state machine as in `join`, in step with it: every decision here must see what `join` will see.
        state = _QuoteState()
        marked: list[str] = []
        last = len(tokens) - 1
        joined = True  # the token before joins to its right
        for i, token in enumerate(tokens):
            following = tokens[i + 1] if i < last else ""
            wants_left = i > 0 and glued[i]
            wants_right = i < last and glued[i + 1]
            # The token on the right decides a gap between two symbols or two words.
            owns_right = i < last and not is_word(token) and is_word(following)
            before = (state.open, state.after_s)
            left, right = self._guess(token, following, state, is_first=i == 0)
            lacks_left = wants_left and not (left or joined)
            lacks_right = wants_right and owns_right and not right
            core = escape(token)
            if lacks_left or lacks_right:
                state.open, state.after_s = before  # a marked quote does not open or close a pair
                left, right = wants_left, wants_right and owns_right
                core = JOINER * left + core + JOINER * right
            if i > 0 and not glued[i] and (left or joined):
                marked.append(BLANK)
            marked.append(core)
            joined = right
        return marked

    def join(self, marked: Sequence[str]) -> str:
        """The text of tokens, with marks, or plain like the tokens of Moses."""
        state = _QuoteState()
        pieces: list[str] = []
        joined, forced = True, False
        split = [(token == BLANK, *split_marks(token)) for token in marked if token]
        plain = [unescape(core) for _, _, core, _ in split]
        for i, ((is_blank, left, _, right), token) in enumerate(zip(split, plain, strict=True)):
            if is_blank:
                forced = True
                continue
            # A token with a mark is spaced by it alone; `_guess` must not see it, or it would open or close a quote.
            if not (left or right):
                following = plain[i + 1] if i + 1 < len(plain) else ""
                left, right = self._guess(token, following, state, is_first=not pieces)
            if pieces and (forced or not (left or joined)):
                pieces.append(" ")
            pieces.append(token)
            joined, forced = right, False
        return "".join(pieces)

    def _guess(self, token: str, following: str, state: "_QuoteState", *, is_first: bool) -> tuple[bool, bool]:
        """Whether a token without marks joins to its left and to its right."""
        if self.lang == "zh" and (_CJK.match(token) or token in _CJK_QUOTES or _CJK.match(token[-1])):
            joins = (True, True)
        elif token in ('"', "'"):
            # ASCII quotes look alike at both ends: they open and close in turns.
            joins = state.turn(token, is_possessive=self.lang == "en" and state.after_s)
        elif token in self._quotes:
            joins = self._quotes[token]
        elif _JOINS_RIGHT.fullmatch(token):
            joins = (False, True)
        elif _JOINS_LEFT.fullmatch(token):
            joins = (not (self.lang == "fr" and _FRENCH_SPACED.fullmatch(token)), False)
        elif self.lang == "en" and not is_first and _CONTRACTION.match(token):
            joins = (True, False)
        elif self.lang in ("fr", "it", "ga") and _ELISION.fullmatch(token) and following[:1].isalpha():
            joins = (False, True)
        else:
            joins = (False, False)
        state.after_s = token.endswith("s")
        return joins


class _QuoteState:
    """The ASCII quotes that are open. They open and close alternately."""

    def __init__(self) -> None:
        self.open: tuple[str, ...] = ()
        self.after_s = False

    def turn(self, quote: str, *, is_possessive: bool) -> tuple[bool, bool]:
        """Open or close a quote. Returns to which sides it joins: (left, right)."""
        if quote in self.open:
            self.open = tuple(other for other in self.open if other != quote)
            return True, False
        if quote == "'" and is_possessive:
            return True, False  # the dogs' tails
        self.open = (*self.open, quote)
        return False, True
