"""Spaces between tokens: the rules of a detokenizer, and marks where these rules would be wrong.

Tokens do not contain the original spaces, so the Moses detokenizer follows rules: no space before a comma or after an
opening bracket, alternating ASCII quotes. This module has similar rules, and marks differences in the text:

- `@` at the left or right end of a token joins it to its neighbor, as in Moses' `@-@`: `and @/@ or`.
- A separate token `▁` is a space that the rules would omit: `10 ▁ %`.

Both characters are escaped in the text (`&#64;`, `&#9601;`), like the characters that Moses escapes. Without the marks,
the tokens are exactly the Moses tokens.
"""

import re
from collections.abc import Sequence

from docmt.languages import language_of

JOINER = "@"
BLANK = "▁"

# Escapes for the Moses tokenizer and the two marks.
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

# Moses' currency signs, without the newest ones. Copied, since importing sacremoses takes 0.4 seconds.
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
    """Replace special characters (of Moses, or marks) by entities."""
    return token.translate(_ESCAPE_TABLE)


def unescape(token: str) -> str:
    """Undo `escape`."""
    if "&" not in token:
        return token
    return _ESCAPED.sub(lambda match: _UNESCAPES[match.group()], token)


def is_word(token: str) -> bool:
    """True if a token contains a letter or a digit."""
    return any(map(str.isalnum, token))


def split_marks(token: str) -> tuple[bool, str, bool]:
    """Split a token into left mark (bool), text, and right mark (bool)."""
    left = len(token) > 1 and token.startswith(JOINER)
    core = token[left:]
    right = len(core) > 1 and core.endswith(JOINER)
    return left, core[: len(core) - right], right


def _directional_quotes(lang: str) -> dict[str, tuple[bool, bool]]:
    """Return typographic quote → (joins left, joins right) for unmarked quotes."""
    opens, closes = set("„‚“‘"), set("”’")
    if lang in _SIXES_CLOSE:
        opens, closes = set("„‚"), set("“‘”’")
    if lang in _INWARD_GUILLEMETS:
        opens |= set("»›")
        closes |= set("«‹")
    elif lang not in _SPACED_GUILLEMETS:
        opens |= set("«‹")
        closes |= set("»›")
    return {quote: (quote in closes, quote not in closes) for quote in opens | closes}


class Spacing:
    """Spaces between tokens in one language."""

    def __init__(self, lang: str) -> None:
        self.lang = language_of(lang)
        self._quotes = _directional_quotes(self.lang)

    def mark(self, tokens: Sequence[str], glued: Sequence[bool]) -> list[str]:
        """Escape tokens, and add marks where `join` would otherwise get spaces wrong.

        Args:
            tokens: plain tokens, without white space.
            glued: per token, true if no space precedes it. The first value is ignored.
        """
        # The same state machine as in `join`: all decisions here depend on the same state as in `join`.
        state = _QuoteState()
        marked: list[str] = []
        last = len(tokens) - 1
        joined = True  # the previous token joins to its right
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
        """Return the text of tokens with marks, or of plain Moses tokens."""
        state = _QuoteState()
        pieces: list[str] = []
        joined, forced = True, False
        split = [(token == BLANK, *split_marks(token)) for token in marked if token]
        plain = [unescape(core) for _, _, core, _ in split]
        for i, ((is_blank, left, _, right), token) in enumerate(zip(split, plain, strict=True)):
            if is_blank:
                forced = True
                continue
            # Marks decide the spaces around their token. It must not reach `_guess`, where it could open a quote.
            if not (left or right):
                following = plain[i + 1] if i + 1 < len(plain) else ""
                left, right = self._guess(token, following, state, is_first=not pieces)
            if pieces and (forced or not (left or joined)):
                pieces.append(" ")
            pieces.append(token)
            joined, forced = right, False
        return "".join(pieces)

    def _guess(self, token: str, following: str, state: "_QuoteState", *, is_first: bool) -> tuple[bool, bool]:
        """Return (joins left, joins right) for a token without marks."""
        if self.lang == "zh" and (_CJK.match(token) or token in _CJK_QUOTES or _CJK.match(token[-1])):
            joins = (True, True)
        elif token in ('"', "'"):
            # ASCII quotes are the same at both ends, so they open and close alternately.
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
    """The open ASCII quotes. They open and close alternately."""

    def __init__(self) -> None:
        self.open: tuple[str, ...] = ()
        self.after_s = False

    def turn(self, quote: str, *, is_possessive: bool) -> tuple[bool, bool]:
        """Open or close a quote. Returns (joins left, joins right)."""
        if quote in self.open:
            self.open = tuple(other for other in self.open if other != quote)
            return True, False
        if quote == "'" and is_possessive:
            return True, False  # the dogs' tails
        self.open = (*self.open, quote)
        return False, True
