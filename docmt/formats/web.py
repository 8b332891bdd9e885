"""HTML pages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from docmt.formats.files import TextFile, escape_markup
from docmt.formats.markup import Token, draft_of, tokens
from docmt.formats.segments import FileSegment

INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
"""Elements within a sentence; all others begin and end one."""
OPAQUE = ("code", "kbd", "samp", "tt", "var")
"""Elements whose text is not translated, although their sentence is."""
SKIPPED = ("pre", "template", "svg", "math", "noscript", "select")
"""Elements that are not translated at all."""
RAW = re.compile(r"<(script|style|textarea|xmp)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
"""Elements whose content is no markup."""
UNTRANSLATED = re.compile(r"translate\s*=\s*[\"']?no\b|class\s*=\s*(?:\"[^\"]*|'[^']*)\bnotranslate\b", re.IGNORECASE)


class HtmlFile(TextFile):
    """An HTML page, as one document: the text between tags. Attributes stay as they are."""

    name = "html"
    suffixes = (".html", ".htm", ".xhtml")

    def find(self) -> list[list[FileSegment]]:
        """A segment for each run of text and inline elements."""
        segments, run = [], []
        for token in _without_skipped(list(self._tokens())):
            is_comment = token.kind == "other" and self.text.startswith("<!--", token.start)
            if token.kind == "text" or token.name in INLINE or (is_comment and run):
                run.append(token)
            else:
                segments += self._segment(run)
                run = []
        return [[*segments, *self._segment(run)]]

    def _tokens(self) -> Iterator[Token]:
        position = 0
        for found in RAW.finditer(self.text):
            yield from tokens(self.text, position, found.start())
            yield Token("other", found.start(), found.end())
            position = found.end()
        yield from tokens(self.text, position)

    def _segment(self, run: Sequence[Token]) -> Iterator[FileSegment]:
        """The segment of a run, without the white space around it."""
        if not run:
            return
        raw = self.text[run[0].start : run[-1].end]
        start, end = run[0].start + len(raw) - len(raw.lstrip()), run[0].start + len(raw.rstrip())
        stream = [replace(token, name=token.name.lower()) for token in tokens(self.text, start, end)]
        yield draft_of(self.text, stream, opaque=_is_opaque, collapse=True).segment(start, end)

    def escape(self, text: str) -> str:
        """Text as HTML writes it."""
        return escape_markup(text)


def _is_opaque(token: Token) -> bool:
    return token.name in OPAQUE or bool(UNTRANSLATED.search(token.attributes))


def _is_skipped(token: Token) -> bool:
    return token.name in SKIPPED or (token.name not in INLINE and bool(UNTRANSLATED.search(token.attributes)))


def _without_skipped(stream: Sequence[Token]) -> Iterator[Token]:
    """Tokens with names in lower case; each element that is skipped is one token `other`."""
    position = 0
    while position < len(stream):
        token = replace(stream[position], name=stream[position].name.lower())
        position += 1
        if token.kind == "open" and _is_skipped(token):
            depth, end = 1, position
            while depth and end < len(stream):
                inner = stream[end]
                depth += (inner.name.lower() == token.name) * ((inner.kind == "open") - (inner.kind == "close"))
                end += 1
            if not depth:  # an element without end is nothing to skip
                position = end
                token = Token("other", token.start, stream[end - 1].end)
        yield token
