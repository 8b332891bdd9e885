"""Codes of languages, as corpora and their files spell them."""

import re

# Synonyms that models and files use, each before the code of two letters.
TWO_LETTERS = dict(
    re.findall(
        r"(\w+):(\w+)",
        "ara:ar arb:ar bul:bg cat:ca ces:cs cze:cs cmn:zh chi:zh zho:zh dan:da deu:de ger:de ell:el gre:el eng:en "
        "est:et fas:fa fin:fi fra:fr fre:fr heb:he hin:hi hrv:hr hun:hu ind:id ita:it jpn:ja kor:ko lit:lt lav:lv "
        "lvs:lv nld:nl dut:nl nor:no nob:no nb:no pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slo:sk slv:sl spa:es "
        "srp:sr swe:sv tha:th tur:tr ukr:uk vie:vi pes:fa per:fa ekk:et msa:ms may:ms zsm:ms iw:he nno:no nn:no isl:is "
        "mkd:mk sqi:sq eus:eu glg:gl hye:hy kat:ka aze:az azj:az uzb:uz uzn:uz bos:bs",
    )
)


def language_of(code: str) -> str:
    """The language of a code, without script and region: `de` of `de-AT`, `DE` and `deu_Latn`."""
    language = re.split("[-_@]", code.strip().lower())[0]
    return TWO_LETTERS.get(language, language)
