"""Language codes in all spellings, for example `zh`, `zh-CN`, `zho_Hans`, `cmn`."""

from functools import cache

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

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
