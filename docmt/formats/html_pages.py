"""HTML pages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from typing_extensions import override

from docmt.formats.file_segments import FileSegment
from docmt.formats.markup import ATTRIBUTES, TOKEN, Token, draft_of, merged, tokens
from docmt.formats.translatable_file import MarkupFile

# Elements within a sentence; all others begin and end one.
INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
# Elements whose text is not translated, although their sentence is.
OPAQUE = ("code", "kbd", "samp", "tt", "var")
# Elements that are not translated at all.
SKIPPED = ("pre", "template", "svg", "math", "noscript", "select")
# Elements whose content is not markup come first; one that is not closed lasts until the end.
HTML = re.compile(
    r"<(?P<raw>(?i:script|style|textarea|xmp))(?![^\s/>])"
    rf"{ATTRIBUTES}(?:(?<=/)>|>.*?(?:</(?i:(?P=raw))\s*+>|\Z)|\Z)|{TOKEN.pattern}",
    re.DOTALL,
)
UNTRANSLATED = re.compile(r"translate\s*=\s*[\"']?no\b|class\s*=\s*(?:\"[^\"]*|'[^']*)\bnotranslate\b", re.IGNORECASE)


class HtmlFile(MarkupFile):
    """An HTML page, as one document: each run of text and inline elements is a segment. Attributes stay as they are."""

    name = "html"
    suffixes = (".html", ".htm", ".xhtml")

    @override
    def find(self) -> list[list[FileSegment]]:
        segments, run = [], []
        for token in merged(self._tokens(0, len(self.text)), _is_skipped):
            is_comment = token.kind == "other" and self.text.startswith("<!--", token.start)
            if token.kind == "text" or token.name in INLINE or (is_comment and run):
                run.append(token)
            else:
                segments += self._segment(run)
                run = []
        return [[*segments, *self._segment(run)]]

    def _tokens(self, start: int, end: int) -> list[Token]:
        return [replace(token, name=token.name.lower()) for token in tokens(self.text, start, end, pattern=HTML)]

    def _segment(self, run: Sequence[Token]) -> Iterator[FileSegment]:
        """The segment of a run, without the white space around it."""
        if not run:
            return
        raw = self.text[run[0].start : run[-1].end]
        start, end = run[0].start + len(raw) - len(raw.lstrip()), run[0].start + len(raw.rstrip())
        # Read again, because white space at the edges of the first and last token is outside of the segment now.
        yield draft_of(self.text, self._tokens(start, end), opaque=_is_opaque, collapse=True).segment(start, end)


def _is_skipped(token: Token) -> bool:
    return token.name in SKIPPED or (token.name not in INLINE and bool(UNTRANSLATED.search(token.attributes)))


def _is_opaque(token: Token) -> bool:
    return token.name in OPAQUE or bool(UNTRANSLATED.search(token.attributes))
