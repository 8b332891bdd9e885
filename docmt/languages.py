"""Language codes in all spellings, for example `zh`, `zh-CN`, `zho_Hans`, `cmn`."""

import re
from collections.abc import Iterator
from functools import cache

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

CODE = re.compile(r"(?<![^\W_])[A-Za-z]{2,3}(?![^\W_])")
SUBTAG = re.compile(r"[-_@]([A-Za-z0-9]+)(?![^\W_])")
LATIN_AMERICA = "419"
"""The only region in numbers that occurs in names of files. Other numbers are those of files."""
TREATED_AS = {"nb": "no", "nn": "no", **dict.fromkeys(("yue", "wuu", "nan", "hak", "gan", "hsn", "lzh"), "zh")}
"""Languages that are tokenized, spaced and scored like another language."""
MODIFIERS = {"latin": "Latn", "cyrillic": "Cyrl", "arabic": "Arab", "devanagari": "Deva"}
"""Scripts in names of locales, such as `sr_RS@latin`."""
WITHOUT_BLANKS = frozenset(("zh", "ja", "th", "km", "lo", "my", "bo", "dz"))
"""Languages without spaces between words."""


@cache
def language_of(code: str) -> str:
    """Return the language for a code: `de` for `de-AT`, `DE` and `deu_Latn`, `zh` for `yue`.

    The result is the shortest code, without script and region. Unknown codes are returned in lower case.
    """
    try:
        tag = Language.get(code.strip().split("@")[0]).prefer_macrolanguage()
    except LanguageTagError:
        return code.strip().lower()
    language = tag.language or code.strip().lower()
    return TREATED_AS.get(language, language)


def find_tags(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield words that can be language codes in a file name, with start and end. `fr-CA` and `sr@latin` are one tag.

    For example, `talk.hi_IN.txt` contains the code `hi` at 5 to 10. In `en-de`, `de` is a code, not a region.
    """
    position = 0
    while match := CODE.search(text, position):
        position = match.end()
        while (subtag := SUBTAG.match(text, position)) and _is_subtag(match[0], subtag[1]):
            position = subtag.end()
        yield match[0], match.start(), position


@cache
def _is_subtag(code: str, word: str) -> bool:
    """True if a word after a language code is its script or region."""
    if len(word) != 2:
        is_script = len(word) == 4 and word.isalpha() and Language.make(script=word.title()).is_valid()
        return is_script or word == LATIN_AMERICA or word.lower() in MODIFIERS
    if not Language.make(territory=word.upper()).is_valid():
        return False
    if word.isupper() and not code.isupper():
        return True
    # Without capitals, `es-ar` is Argentine Spanish, but `my_de` is hardly Burmese in Germany.
    is_usual = Language.make(territory=word.upper()).maximize().language == language_of(code)
    return is_usual or not (Language.get(word).is_valid() and language_of(word) == word.lower())


def script_in(code: str) -> str | None:
    """Return the script in a code: `Latn` for `sr_Latn` and `sr@latin`. None if the code names no script."""
    tag, _, modifier = code.strip().partition("@")
    try:
        return MODIFIERS.get(modifier.lower()) or Language.get(tag).script
    except LanguageTagError:
        return None


def usual_script(code: str) -> str | None:
    """Return the most common script of a language, for example `Cyrl` for `bg`. None for unknown codes."""
    try:
        return Language.get(language_of(code)).maximize().script
    except LanguageTagError:
        return None


def has_blanks(code: str) -> bool:
    """True if a language separates words by blanks."""
    return language_of(code) not in WITHOUT_BLANKS
