"""Test sets of WMT and IWSLT: `<doc docid>` and `<seg id>`, as SGML or XML, and IWSLT's tagged training text."""

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from html import escape
from html.entities import html5
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException
from defusedxml import ElementTree as SafeTree
from pydantic import Field
from typing_extensions import override

from docmt.corpora.documents import Document
from docmt.corpora.readers.parallel_files import SideDocument, align, check_equal
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_bytes, read_lines, read_xml
from docmt.languages import language_of

# A segment ends at its end tag or, if it is missing, at the next tag that cannot occur inside a segment. No pattern
# backtracks over long text, since damaged files would take hours.
TAG = re.compile(
    r"<(?:ref|src|tst)set\b(?P<set>[^<>]*)>|<doc\b(?P<doc>[^<>]*)>|(?P<end></doc\s*>)"
    r"|<seg\b(?P<seg>[^<>]*)>(?P<text>.*?)(?=</seg\s*>|<seg\b|</?doc\b|</?p>|</?hl>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Possessive quantifiers (`++`), because backtracking would take quadratic time on long names.
ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
REFERENCE = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,31})|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
SECTION = re.compile(r"<!--|<!\[CDATA\[")
MAX_DEPTH = 50
TRAIN_TALK = re.compile(r"""\s*(?:<talkid>(.*?)</talkid>|<doc\b[^>]*\bdocid\s*=\s*"([^"]*)")""", re.IGNORECASE)
TRAIN_TAGS = "doc|url|talkid|title|description|keywords|speaker|reviewer|translator"
TRAIN_TAG = re.compile(rf"\s*</?(?:{TRAIN_TAGS})\b", re.IGNORECASE)
TRAIN_LINE = re.compile(
    rf"\s*(?:<(?P<tag>{TRAIN_TAGS})\b[^<>]*>.*</(?:{TRAIN_TAGS})>|<doc\b[^<>]*\bdocid\b[^<>]*>|</doc\s*>)\s*",
    re.IGNORECASE,
)
"""A whole line of a talk's header or end. A sentence about HTML can begin like one."""
TRAIN_END_TAGS = (None, "doc", "reviewer", "translator")


class Segments(DocumentFormat):
    """One file per language with `<doc docid>` and `<seg id>` (SGML of WMT, XML of IWSLT)."""

    reader: FormatName[Literal["segments"]]
    plain: list[str] = Field(default=[])
    """Languages whose file is plain text, with line i for the i-th `<seg>` of the other file."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = {lang: self.pick(files, lang) for lang in languages}
        marked = [lang for lang in languages if lang not in self.plain]
        if not marked:
            raise UserError("format segments: at most one side can be plain lines")
        collector = DocumentCollector()
        documents: dict[str, list[SideDocument]] = {}
        for lang in marked:
            documents[lang], *others = _scan(paths[lang]).values()
            for document in itertools.chain.from_iterable(others):
                collector.drop("another reference", len(document.sentences))
        for lang in languages:
            if lang in self.plain:
                documents[lang] = _plain_documents(paths[lang], paths[marked[0]], documents[marked[0]])
        return align([(paths[lang], documents[lang]) for lang in languages], collector)


class WmtXml(DocumentFormat):
    """One XML file (role `both`) of WMT 2021 or later: `<doc>` with `<src>` and `<ref>`."""

    reader: FormatName[Literal["wmt_xml"]]
    translator: str | None = None
    """`translator` of the `<ref>` to read. Default: the first."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        depth = 0
        root = None
        try:
            for event, element in SafeTree.iterparse(io.BytesIO(read_bytes(path)), events=("start", "end")):
                if root is None:
                    root = element
                if event == "start":
                    depth += 1
                else:
                    depth -= 1
                # Nested elements with the same name would be read repeatedly.
                if depth > MAX_DEPTH:
                    raise UserError(
                        f"{path}: has elements nested {MAX_DEPTH} levels deep: this does not look like a test set"
                    )
        except SafeTree.ParseError as error:
            raise UserError(f"{path}: line {error.position[0]} is not well-formed XML ({error})") from None
        except DefusedXmlException:
            raise UserError(f"{path}: declares XML entities, which are not allowed: remove the DOCTYPE") from None
        assert root is not None  # without an element, the file is not well-formed
        src_lang, tgt_lang = languages
        collector = DocumentCollector()
        for element in root.iter("doc"):
            name = element.get("id") or element.get("docid") or "unnamed"
            references = element.findall("ref")
            src_sides = _in_language(element.findall("src"), src_lang)
            tgt_sides = _in_language(references, tgt_lang)
            if self.translator is not None:
                tgt_sides = [side for side in tgt_sides if side.get("translator") == self.translator]
            if not (src_sides and tgt_sides):
                by = f" by translator {self.translator!r}" if self.translator is not None else ""
                sides = [f"<{side.tag} {dict(side.attrib)}>" for side in element if side.tag in ("src", "ref")]
                raise UserError(
                    f"{path}: document {name} needs two sides, {src_lang} <src> and {tgt_lang} <ref>{by}, but contains "
                    f"{', '.join(sides) or 'neither'}"
                )
            rows = []
            for src, tgt in itertools.zip_longest(src_sides[0].iter("seg"), tgt_sides[0].iter("seg")):
                src_id = None if src is None else src.get("id")
                tgt_id = None if tgt is None else tgt.get("id")
                if src is None or tgt is None or src_id != tgt_id:
                    raise UserError(f"{path}: document {name}: segment {src_id or tgt_id} is not on both sides")
                rows.append(("".join(src.itertext()), "".join(tgt.itertext())))
            collector.drop("another reference", (len(references) - 1) * len(rows))
            collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no sentences")


class IwsltTrain(DocumentFormat):
    """One file per language of IWSLT's training text, with tagged lines (`<url>`, `<talkid>`, …) before each talk."""

    reader: FormatName[Literal["iwslt_train"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        collector = DocumentCollector()
        sides = []
        for lang in languages:
            path = self.pick(files, lang)
            # A pair counts as one line.
            side_collector = DocumentCollector() if sides else collector
            sides.append((path, _read_talks(path, side_collector)))
        return align(sides, collector)


def _read_talks(path: Path, collector: DocumentCollector) -> list[SideDocument]:
    """Read the talks of one side. Lines that look like a header in the wrong position are dropped and counted."""
    talks: list[SideDocument] = []
    lines = read_lines(path)
    headers = [TRAIN_LINE.fullmatch(line) for line in lines]
    # Before 2017, talks begin with <doc docid> and <url>, later with <url>.
    start = "<url>"
    if any(header and header[0].lstrip().lower().startswith("<doc ") for header in headers):
        start = "<doc "
    for number, (line, header) in enumerate(zip(lines, headers, strict=True), start=1):
        if header and line.lstrip().lower().startswith(start):
            talks.append(SideDocument(None, number))
        has_begun = bool(talks and talks[-1].sentences)
        if header:
            talk = TRAIN_TALK.match(line)
            if talk and talks and not has_begun:
                talks[-1].id = (talk[1] or "").strip() or talk[2]
            if has_begun and header["tag"] not in TRAIN_END_TAGS:
                collector.drop("header after the first sentence")
        elif not has_begun and TRAIN_TAG.match(line):
            collector.drop("header without end tag")
        elif not talks:
            raise UserError(f"{path}: line {number} comes before the first {start.strip(' >')}…>")
        else:
            talks[-1].add(line, line=number)
    return talks


def _in_language(sides: Sequence[Element], lang: str) -> list[Element]:
    """Return the sides in a language, or with another spelling or region of its code.

    Without an attribute, a side is in the expected language.
    """
    exact = [side for side in sides if side.get("lang", lang) == lang]
    return exact or [side for side in sides if language_of(side.get("lang", lang)) == language_of(lang)]


def read_refsets(path: Path) -> list[list[Document]]:
    """Read all references in an SGML or XML file, in order, as documents with one side."""
    return [list(align([(path, documents)])[0]) for documents in _scan(path).values()]


def replace_entities(text: str) -> str:
    """Replace named HTML entities and numeric references. Any other `&` is text, as in WMT files."""

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return html5.get(f"{match[1]};", match[0])
        code = int(match[2]) if match[2] else int(match[3], 16)
        if code and code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        return match[0]

    return REFERENCE.sub(character, text)


def _scan(path: Path) -> dict[str, list[SideDocument]]:
    """Return translator → documents. The translator is `sysid` in the document, or `refid` or `sysid` in its set.

    The file is scanned, not parsed, since WMT files are not always well-formed.
    """
    text = "".join(_without_sections(read_xml(path)))
    documents_by_translator: dict[str, list[SideDocument]] = {}
    documents: list[SideDocument] = []
    is_inside = False
    translator = ""
    line = 1
    position = 0
    for match in TAG.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match["set"] is not None:
            attributes = _attributes(match["set"])
            translator = attributes.get("refid") or attributes.get("sysid", "")
        elif match["doc"] is not None:
            attributes = _attributes(match["doc"])
            is_inside = True
            documents = documents_by_translator.setdefault(attributes.get("sysid", translator), [])
            documents.append(SideDocument(attributes.get("docid", f"{len(documents) + 1:05d}"), line))
        elif match["end"] is not None:
            is_inside = False
        elif not is_inside:
            raise UserError(f"{path}: line {line}: <seg> outside <doc>")
        else:
            documents[-1].add(replace_entities(match["text"]), line=line)
            documents[-1].keys.append(_attributes(match["seg"]).get("id", str(len(documents[-1].sentences))))
    if not documents_by_translator:
        raise UserError(f"{path}: contains no <doc>")
    return documents_by_translator


def _without_sections(text: str) -> Iterator[str]:
    """Yield the text with comments replaced by their line ends, and CDATA as escaped text."""
    position = 0
    opening = SECTION.search(text)
    while opening:
        start = opening.end()
        is_comment = opening[0] == "<!--"
        mark = "-->" if is_comment else "]]>"
        end = text.find(mark, start)
        if end < 0:
            break
        yield text[position : opening.start()]
        content = text[start:end]
        if is_comment:
            yield "\n" * content.count("\n")
        else:
            yield escape(content, quote=False)
        position = end + 3
        opening = SECTION.search(text, position)
    yield text[position:]


def _attributes(text: str) -> dict[str, str]:
    """Parse the attributes of a tag, with names in lower case."""
    matches = ATTRIBUTE.findall(text)
    return {name.lower(): replace_entities(double or single or bare) for name, double, single, bare in matches}


def _plain_documents(path: Path, marked_path: Path, marked: list[SideDocument]) -> list[SideDocument]:
    """Divide plain lines into documents as on the other side."""
    lines = read_lines(path)
    check_equal(path, len(lines), marked_path, sum(len(document.sentences) for document in marked), unit="segments")
    documents = []
    start = 0
    for other in marked:
        end = start + len(other.sentences)
        documents.append(SideDocument(other.id, start + 1, lines[start:end], list(range(start + 1, end + 1))))
        start = end
    return documents
