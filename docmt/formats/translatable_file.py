"""Base classes of formats: a file is read into documents of segments and written with translations in their places.

Only the places of translated segments are rewritten, so that everything else stays as it was, byte by byte.
"""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import MARK, FileSegment

ENTITY = re.compile(r"&(?:[A-Za-z]+\d*|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# Start and end of a place in a text, and its new content.
Edit = tuple[int, int, str]


# Languages for which the Latin script has to be named.
TWO_SCRIPTS = ("az", "bs", "sr", "uz")
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


def language_tag(code: str) -> str:
    """A code as XML and HTML declare it: `pt-BR` of `pt_BR`, `zh-Hant` of `zho_Hant`, `de` of `deu_Latn`."""
    first, *others = re.split("[-_]", code.strip())
    language = language_of(first) if len(first) > 2 else first
    return "-".join([language, *(part for part in others if part != "Latn" or language in TWO_SCRIPTS)])


@dataclass(frozen=True)
class Languages:
    """The languages of a translation, as codes: `en`, `de`; and whether files must not declare others."""

    src: str
    tgt: str
    are_checked: bool = True

    def check(self, src: str | None, tgt: str | None, *, where: str) -> None:
        """Raise UserError when a file declares other languages."""
        for side, declared, expected in (("source", src, self.src), ("target", tgt, self.tgt)):
            is_code = re.fullmatch(r"\s*[A-Za-z]{2,3}(?:[-_@].*)?\s*", declared or "")  # PO has names, too
            if self.are_checked and is_code and declared and language_of(declared) != language_of(expected):
                raise UserError(
                    f"{where}: its {side} language is {declared}, but the model translates from {self.src} to "
                    f"{self.tgt}: take another model, or --force"
                )


class TranslatableFile(ABC):
    """A file of a format: each format is a subclass. `documents` are the segments of each document, in order."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()

    documents: list[list[FileSegment]]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        """Read the bytes of a file; `where` names it in messages."""
        self.where, self.languages = where, languages
        self.documents = []

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether a translation can be written without changing the structure of the file."""
        return True

    @abstractmethod
    def translated(self) -> bytes:
        """The bytes of the file with the translations of its segments."""


class TextFile(TranslatableFile):
    """A text file, in UTF-8 unless its format declares another encoding."""

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        self.encoding = self.declared_encoding(data)
        try:
            self.text = data.decode(self.encoding)
        except UnicodeDecodeError as error:
            line, name = data.count(b"\n", 0, error.start) + 1, self.encoding.upper()
            raise UserError(f"{where}: line {line} is not {name}: convert the file, for example with iconv") from None
        self.documents = self.find()

    def declared_encoding(self, data: bytes) -> str:
        """The encoding of the file, as a name that Python knows."""
        return "utf-8"

    @abstractmethod
    def find(self) -> list[list[FileSegment]]:
        """The segments of each document."""

    def escapes(self, segment: FileSegment) -> dict[int, str]:
        """The characters of a segment that the format reserves, and what is written for them."""
        return {}

    def render(self, segment: FileSegment, text: str) -> str:
        """The content of the file for a text with marks."""
        escapes, pieces = self.escapes(segment), re.split(f"({MARK.pattern})", text)
        for number, piece in enumerate(pieces):
            mark = segment.mark(piece) if number % 2 else None
            pieces[number] = mark.raw if mark and not mark.is_text else (mark.raw if mark else piece).translate(escapes)
        return "".join(pieces)

    def edits(self) -> Iterable[Edit]:
        """The places to rewrite, in any order."""
        for document in self.documents:
            for segment in document:
                if segment.filled is not None:
                    yield segment.start, segment.end, self.render(segment, segment.filled)

    @override
    def translated(self) -> bytes:
        # Characters that the encoding of a page lacks become numbers; UTF-8 has all.
        return rewritten(self.text, self.edits(), 0, len(self.text)).encode(self.encoding, "xmlcharrefreplace")


def rewritten(text: str, edits: Iterable[Edit], start: int, end: int) -> str:
    """A part of a text with edits."""
    pieces = []
    # By place only: two insertions at one place keep the order in which they are yielded.
    for first, last, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[start:first], new]
        start = last
    return "".join([*pieces, text[start:end]])


class MarkupFile(TextFile):
    """A text file with XML or HTML tags."""

    @override
    def escapes(self, segment: FileSegment) -> dict[int, str]:
        # What the source writes as an entity stays one, and only that, except what XML reserves.
        written = {html.unescape(entity): entity for entity in ENTITY.findall(self.text, segment.start, segment.end)}
        escapes = {"&": "&amp;", "<": "&lt;"} | ({} if ">" in segment.text else {">": "&gt;"}) | written
        return {ord(character): entity for character, entity in escapes.items() if len(character) == 1}
