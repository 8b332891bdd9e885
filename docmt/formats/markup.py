"""XML and HTML as tokens with their places, so that files can be edited without being written anew."""

import html
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from docmt.errors import UserError
from docmt.formats.segments import Mark, SegmentDraft

TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>"
    r"|<!(?:[^>\[\"']|\"[^\"]*\"|'[^']*'|\[.*?\]\s*(?=>))*>"
    r"|<(?P<end>/?)(?P<name>[A-Za-z_][^\s/>]*)(?P<attributes>(?:[^>\"']|\"[^\"]*\"|'[^']*')*?)(?P<empty>/?)>",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")


@dataclass(frozen=True)
class Token:
    """A piece of markup or the text between two.

    Attributes:
        kind: `other` are comments, declarations and instructions.
        start, end: its place.
        name: of the element, as written.
        attributes: as written.
        text: of a `text` token, without entities.
    """

    kind: Literal["text", "open", "close", "empty", "other"]
    start: int
    end: int
    name: str = ""
    attributes: str = ""
    text: str = ""

    def get(self, name: str) -> str | None:
        """The value of an attribute."""
        found = {key: next(filter(None, values), "") for key, *values in ATTRIBUTE.findall(self.attributes)}
        value = found.get(name)
        return None if value is None else html.unescape(value)


def check_xml(text: str, *, where: str) -> None:
    """Raises UserError when a text is not well-formed XML, declares entities, or says that it is not UTF-8."""
    declared = re.match(r"\ufeff?<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)", text)
    if declared and declared[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UserError(f"{where}: says that it is in {declared[1]}, but is in UTF-8: correct its first line")
    try:
        defusedxml.ElementTree.fromstring(text.removeprefix("\ufeff").encode("utf-8"))
    except DefusedXmlException:
        raise UserError(f"{where}: declares entities, which docmt does not expand: remove them") from None
    except defusedxml.ElementTree.ParseError as error:
        raise UserError(f"{where}: not XML ({error})") from None


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of a text, from the first character to the last."""
    position, end = start, len(text) if end is None else end
    for found in TOKEN.finditer(text, start, end):
        if position < found.start():
            yield _text(text, position, found.start())
        if (cdata := found["cdata"]) is not None:
            yield Token("text", found.start(), found.end(), text=cdata)
        elif not found["name"]:
            yield Token("other", found.start(), found.end())
        else:
            kind = "close" if found["end"] else "empty" if found["empty"] else "open"
            yield Token(kind, found.start(), found.end(), found["name"], found["attributes"])
        position = found.end()
    if position < end:
        yield _text(text, position, end)


def _text(text: str, start: int, end: int) -> Token:
    return Token("text", start, end, text=html.unescape(text[start:end]))


@dataclass(frozen=True)
class Element:
    """An element: its two tags (an empty one has one tag twice) and the tokens between them."""

    opening: Token
    closing: Token
    content: Sequence[Token] = ()

    @property
    def inner(self) -> tuple[int, int]:
        """Where its content starts and ends."""
        return self.opening.end, self.closing.start

    @property
    def outer(self) -> tuple[int, int]:
        """Where it starts and ends."""
        return self.opening.start, self.closing.end


def elements(stream: Sequence[Token], name: str) -> list[Element]:
    """The elements of a name, whatever its prefix, in order; those inside one of the same name are not listed."""
    found: list[Element] = []
    depth = first = 0
    for position, token in enumerate(stream):
        if token.name.rpartition(":")[2] != name:
            continue
        if token.kind == "empty" and not depth:
            found.append(Element(token, token))
        elif token.kind == "open":
            first = first if depth else position
            depth += 1
        elif token.kind == "close":
            depth -= 1
            if not depth:
                found.append(Element(stream[first], token, stream[first + 1 : position]))
    return found


def draft_of(
    text: str,
    stream: Sequence[Token],
    *,
    opaque: Callable[[Token], bool] = lambda token: False,
    optional: Container[str] = (),
    collapse: bool = False,
) -> SegmentDraft:
    """A draft of tokens: text, and tags as marks. An opaque element is one mark, together with all that it holds."""
    draft = SegmentDraft()
    position = 0
    while position < len(stream):
        token = stream[position]
        position += 1
        if token.kind == "text":
            draft.add(re.sub(r"[ \t\r\n]+", " ", token.text) if collapse else token.text)
        elif token.kind == "open" and opaque(token):
            depth = 1
            while depth and position < len(stream):
                inner = stream[position]
                depth += (inner.name == token.name) * ((inner.kind == "open") - (inner.kind == "close"))
                position += 1
            draft.mark(Mark(text[token.start : stream[position - 1].end]))
        else:
            kind = token.kind if token.kind in ("open", "close") else "tag"
            raw = text[token.start : token.end]
            draft.mark(Mark(raw, kind, is_optional=token.name in optional), name=token.name)
    return draft
