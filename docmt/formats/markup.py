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

# What is not closed lasts until the end, as in browsers: to look for an end from every start would take quadratic time.
ATTRIBUTES = r"(?:=\s*+(?:\"[^\"]*+\"|'[^']*+')|[^>])*+"
TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    r"|<!(?:[^>\[\"']|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|\[.*?(?:\]\s*+(?=>)|\Z))*+(?:>|\Z)"
    rf"|<(?P<end>/?)(?P<name>[A-Za-z_][^\s/>]*+)(?P<attributes>{ATTRIBUTES})(?P<closed>>|\Z)",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"(?<![^\s\"'/])([^\s\"'>/=]++)\s*+=\s*+(\"[^\"]*\"|'[^']*'|[^\s\"'>]+)")
HUGE_ENTITY = re.compile(r"&#0*+[0-9]{8,}+;?")


@dataclass(frozen=True)
class Token:
    """A piece of markup or the text between two.

    Attributes:
        kind: `other` are comments, declarations and instructions; `whole` is an element with its content.
        name, attributes: as written.
        text: content of a `text` token, without entities.
    """

    kind: Literal["text", "open", "close", "empty", "other", "whole"]
    start: int
    end: int
    name: str = ""
    attributes: str = ""
    text: str = ""

    @property
    def local_name(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]

    def get(self, name: str) -> str | None:
        """The value of an attribute."""
        value = dict(ATTRIBUTE.findall(self.attributes)).get(name)
        return None if value is None else unescape(value[1:-1] if value[0] in "\"'" else value)


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
    if opening.local_name != root:
        raise UserError(f"{where}: is XML, but not {root.upper()} (its root is <{opening.name}>)")
    return opening, stream


def unescape(text: str) -> str:
    """Text without entities. `html.unescape` raises ValueError for a number of 5,000 digits."""
    return html.unescape(HUGE_ENTITY.sub("\ufffd", text))


def indentation(text: str, position: int) -> str:
    """The line end and the blanks before a position; empty if there is text before it in its line."""
    start = position
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:position] if "\n" in text[start:position] else ""


def tokens(text: str, start: int = 0, end: int | None = None, *, pattern: re.Pattern[str] = TOKEN) -> Iterator[Token]:
    """The tokens of a text, from the first character to the last."""
    position, end = start, len(text) if end is None else end
    for found in pattern.finditer(text, start, end):
        if position < found.start():
            yield Token("text", position, found.start(), text=unescape(text[position : found.start()]))
        if (cdata := found["cdata"]) is not None:
            yield Token("text", found.start(), found.end(), text=cdata)
        elif not found["closed"]:
            yield Token("other", found.start(), found.end())
        else:
            attributes = found["attributes"].removesuffix("/")
            kind = "close" if found["end"] else "empty" if attributes != found["attributes"] else "open"
            yield Token(kind, found.start(), found.end(), found["name"], attributes)
        position = found.end()
    if position < end:
        yield Token("text", position, end, text=unescape(text[position:end]))


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
        if token.local_name != name:
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


def merged(stream: Sequence[Token], is_whole: Callable[[Token], bool]) -> Iterator[Token]:
    """Tokens in which each element that is wanted as a whole, and has an end, is one token."""
    ends: dict[int, int] = {}  # position of the closing tag of each opening tag that has one
    waiting: dict[str, list[int]] = {}
    for position, token in enumerate(stream):
        if token.kind == "open":
            waiting.setdefault(token.name, []).append(position)
        elif token.kind == "close" and waiting.get(token.name):
            ends[waiting[token.name].pop()] = position
    position = 0
    while position < len(stream):
        token = stream[position]
        if position in ends and is_whole(token):
            position = ends[position]
            token = Token("whole", token.start, stream[position].end, token.name)
        position += 1
        yield token


def draft_of(
    text: str, stream: Sequence[Token], *, opaque: Container[str] = (), collapse: bool = False
) -> SegmentDraft:
    """A draft of tokens: text, and tags as marks. An element with an opaque name is one mark, with its content."""
    draft = SegmentDraft()
    for token in merged(stream, lambda token: token.local_name in opaque):
        if token.kind == "text":
            draft.add(re.sub(r"[ \t\r\n]+", " ", token.text) if collapse else token.text)
        else:
            kind = token.kind if token.kind in ("open", "close") else "value" if token.kind == "whole" else "tag"
            raw = text[token.start : token.end]
            draft.mark(Mark(raw, kind), name=token.name)
    return draft
