"""HTML pages."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import FileSegment, plain_segment
from docmt.formats.markup import ATTRIBUTE, ATTRIBUTES, TOKEN, Token, draft_of, merged, tokens, unescape
from docmt.formats.translatable_file import Edit, MarkupFile, language_tag, rewritten

# Elements within a sentence; all others begin and end one.
INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
# Elements whose text is not translated, although their sentence is.
OPAQUE = ("code", "kbd", "samp", "tt", "var")
# Elements that are not translated at all.
SKIPPED = ("pre", "template", "svg", "math", "noscript", "select")
# Attributes with text, and names of `meta` elements whose `content` is text.
TEXTS = ("alt", "aria-label", "placeholder", "title")
DESCRIPTIONS = ("description", "og:title", "og:description")
# Elements whose content is not markup come first; one that is not closed lasts until the end.
HTML = re.compile(
    r"<(?P<raw>(?i:script|style|textarea|xmp))(?![^\s/>])"
    rf"{ATTRIBUTES}(?:(?<=/)>|>.*?(?:</(?i:(?P=raw))\s*+>|\Z)|\Z)|{TOKEN.pattern}",
    re.DOTALL,
)
UNTRANSLATED = re.compile(r"translate\s*=\s*[\"']?no\b|class\s*=\s*(?:\"[^\"]*|'[^']*)\bnotranslate\b", re.IGNORECASE)
CHARSET = re.compile(rb"<(?:meta|\?xml)\s[^<>]*?\b(?:charset|encoding)\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)


class HtmlFile(MarkupFile):
    """An HTML page: each run of text and inline elements is a segment; texts of attributes are a second document.

    `_tags` holds the tags with such texts, and the segment that each is in.
    """

    name = "html"
    suffixes = (".html", ".htm", ".xhtml")

    @override
    def declared_encoding(self, data: bytes) -> str:
        # Browsers guess the encoding of a page that declares none: one in ASCII stays so, with numbers for the rest.
        name = "ascii" if data.isascii() else "utf-8"
        if not data.startswith(codecs.BOM_UTF8) and (found := CHARSET.search(data[:4096])):
            name = found[1].decode()
        try:
            name = codecs.lookup(name).name
            # As browsers read it: Latin-1 with the quotation marks of Windows; a declaration in ASCII is not UTF-16.
            name = "cp1252" if name == "iso8859-1" else "utf-8" if name.startswith("utf-16") else name
            if data.decode(name).encode(name) == data:
                return name
        except UnicodeDecodeError:
            return name
        except (LookupError, ValueError):
            raise UserError(f"{self.where}: declares an unknown encoding: {name}") from None
        raise UserError(
            f"{self.where}: cannot be written as it was in {name}: convert the file, for example with iconv"
        )

    @override
    def find(self) -> list[list[FileSegment]]:
        self._tags: list[tuple[Token, list[FileSegment], FileSegment | None]] = []
        self._languages: list[tuple[int, int]] = []
        segments, run = [], []

        def is_skipped(token: Token) -> bool:
            return token.name in SKIPPED or (token.name not in INLINE and bool(UNTRANSLATED.search(token.attributes)))

        for token in merged(self._tokens(0, len(self.text)), is_skipped):
            is_comment = token.kind == "other" and self.text.startswith("<!--", token.start)
            if token.kind == "text" or token.name in INLINE or (is_comment and run):
                run.append(token)
            else:
                segments += self._segment(run)
                run = []
                self._add_tag(token, None)
        segments += self._segment(run)
        return [segments, [text for _, texts, _ in self._tags for text in texts]]

    def _tokens(self, start: int, end: int) -> list[Token]:
        return [replace(token, name=token.name.lower()) for token in tokens(self.text, start, end, pattern=HTML)]

    def _segment(self, run: Sequence[Token]) -> Iterator[FileSegment]:
        """The segment of a run, without the white space around it."""
        if not run:
            return
        raw = self.text[run[0].start : run[-1].end]
        start, end = run[0].start + len(raw) - len(raw.lstrip()), run[0].start + len(raw.rstrip())
        # Read again, because white space at the edges of the first and last token is outside of the segment now.
        stream = list(
            merged(self._tokens(start, end), lambda t: t.name in OPAQUE or bool(UNTRANSLATED.search(t.attributes)))
        )
        segment = draft_of(self.text, stream, collapse=True).segment(start, end)
        for token in stream:
            self._add_tag(token, segment)
        yield segment

    def _add_tag(self, token: Token, segment: FileSegment | None) -> None:
        """Find texts and the language in the attributes of a tag."""
        if token.kind not in ("open", "empty") or UNTRANSLATED.search(token.attributes):
            return
        texts, start = [], token.start + 1 + len(token.name)
        is_described = token.name == "meta" and (token.get("name") or token.get("property")) in DESCRIPTIONS
        for found in ATTRIBUTE.finditer(token.attributes):
            key, is_quoted = found[1].lower(), found[2][0] in "\"'"
            first, last = start + found.start(2) + is_quoted, start + found.end(2) - is_quoted
            value = unescape(self.text[first:last])
            if token.name == "html" and key in ("lang", "xml:lang"):
                self.languages.check(value, None, where=self.where)
                self._languages.append((first, last))
            elif (key in TEXTS and token.name != "link") or (key == "content" and is_described):
                texts.append(plain_segment(value, first, last))
        if texts:
            self._tags.append((token, texts, segment))

    @override
    def edits(self) -> Iterable[Edit]:
        if any(segment.filled is not None for document in self.documents for segment in document):
            yield from ((start, end, language_tag(self.languages.tgt)) for start, end in self._languages)
        new_tags: dict[str, str] = {}
        for token, texts, run in self._tags:
            edits = [self._attribute(text, text.filled) for text in texts if text.filled is not None]
            if run is None or run.filled is None:
                yield from edits
            else:  # the tag is a mark of a translated segment
                new_tags[self.text[token.start : token.end]] = rewritten(self.text, edits, token.start, token.end)
        for run in self.documents[0]:
            if run.filled is not None:
                marks = tuple(replace(mark, raw=new_tags.get(mark.raw, mark.raw)) for mark in run.marks)
                yield run.start, run.end, self.render(replace(run, marks=marks), run.filled)

    def _attribute(self, segment: FileSegment, filled: str) -> Edit:
        sign, value = self.text[segment.start - 1], self.render(segment, filled)
        quote, entity = ("'", "&#39;") if sign == "'" else ('"', "&quot;")
        value = value.replace(quote, entity)
        return segment.start, segment.end, value if sign == quote else f'"{value}"'
