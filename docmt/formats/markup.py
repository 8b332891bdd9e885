"""XML and HTML as tokens with their places, so that files can be edited without being written anew.

XML libraries give no places of tags and attributes, and write entities, quotes and white space in their own way.
"""

import html
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from docmt.errors import UserError
from docmt.formats.file_segments import Mark, SegmentDraft

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
        start, end: place in the file.
        name: name of the element, as written.
        attributes: attributes, as written.
        text: content of a `text` token, without entities.
    """

    kind: Literal["text", "open", "close", "empty", "other"]
    start: int
    end: int
    name: str = ""
    attributes: str = ""
    text: str = ""

    def get(self, name: str) -> str | None:
        """The value of an attribute."""
        # Quoted by either sign, or in HTML not at all: one of the three groups is filled.
        found = {key: next(filter(None, values), "") for key, *values in ATTRIBUTE.findall(self.attributes)}
        value = found.get(name)
        return None if value is None else html.unescape(value)


def check_xml(text: str, *, where: str) -> None:
    """Refuse text that is not well-formed XML, declares entities, or says that it is not UTF-8."""
    declared = re.match(r"\ufeff?<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)", text)
    if declared and declared[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UserError(f"{where}: says that it is in {declared[1]}, but is in UTF-8: correct its first line")
    try:
        defusedxml.ElementTree.fromstring(text.removeprefix("\ufeff").encode("utf-8"))
    except DefusedXmlException:
        raise UserError(f"{where}: declares entities, which docmt does not expand: remove them") from None
    except defusedxml.ElementTree.ParseError as error:
        raise UserError(f"{where}: not XML ({error})") from None


def read_xml(text: str, *, root: str, where: str) -> tuple[Token, list[Token]]:
    """The first tag of an XML file, whose root element must have this name, and all its tokens."""
    check_xml(text, where=where)
    stream = list(tokens(text))
    opening = next(token for token in stream if token.kind != "other" and token.name)
    if opening.name.rpartition(":")[2] != root:
        raise UserError(f"{where}: is XML, but not {root.upper()} (its root is <{opening.name}>)")
    return opening, stream


def indentation(text: str, position: int) -> str:
    """The line end and the blanks before a position; empty if there is text before it in its line."""
    blanks = text[len(text[:position].rstrip()) : position]
    return blanks if "\n" in blanks else ""


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of a text, from the first character to the last."""
    position, end = start, len(text) if end is None else end
    for found in TOKEN.finditer(text, start, end):
        if position < found.start():
            yield Token("text", position, found.start(), text=html.unescape(text[position : found.start()]))
        if (cdata := found["cdata"]) is not None:
            yield Token("text", found.start(), found.end(), text=cdata)
        elif not found["name"]:
            yield Token("other", found.start(), found.end())
        else:
            kind = "close" if found["end"] else "empty" if found["empty"] else "open"
            yield Token(kind, found.start(), found.end(), found["name"], found["attributes"])
        position = found.end()
    if position < end:
        yield Token("text", position, end, text=html.unescape(text[position:end]))


@dataclass(frozen=True)
class Element:
    """An element: its two tags (an empty one has one tag twice) and the tokens between them."""

    opening: Token
    closing: Token
    content: Sequence[Token] = ()

    @property
    def inner(self) -> tuple[int, int]:
        """Start and end of its content."""
        return self.opening.end, self.closing.start

    @property
    def outer(self) -> tuple[int, int]:
        """Start and end, tags included."""
        return self.opening.start, self.closing.end


def elements(stream: Sequence[Token], name: str) -> list[Element]:
    """The elements of a name, whatever its prefix, in order, without elements inside another of the same name."""
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


def skip_element(stream: Sequence[Token], position: int) -> tuple[int, bool]:
    """The position after the end of an element, given the position after its first tag; and whether it has an end."""
    name, depth = stream[position - 1].name, 1
    while depth and position < len(stream):
        inner = stream[position]
        depth += (inner.name == name) * ((inner.kind == "open") - (inner.kind == "close"))
        position += 1
    return position, not depth


def draft_of(
    text: str,
    stream: Sequence[Token],
    *,
    opaque: Callable[[Token], bool] = lambda token: False,
    optional: Container[str] = (),
    collapse: bool = False,
) -> SegmentDraft:
    """A draft of tokens: text, and tags as marks. An opaque element is one mark, with its content."""
    draft = SegmentDraft()
    position = 0
    while position < len(stream):
        token = stream[position]
        position += 1
        if token.kind == "text":
            draft.add(re.sub(r"[ \t\r\n]+", " ", token.text) if collapse else token.text)
        elif token.kind == "open" and opaque(token):
            position, _ = skip_element(stream, position)
            draft.mark(Mark(text[token.start : stream[position - 1].end]))
        else:
            kind = token.kind if token.kind in ("open", "close") else "tag"
            raw = text[token.start : token.end]
            draft.mark(Mark(raw, kind, is_optional=token.name in optional), name=token.name)
    return draft
