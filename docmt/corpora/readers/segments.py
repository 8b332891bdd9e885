"""Test sets of WMT and IWSLT: `<doc docid>` and `<seg id>`, as SGML or XML, and IWSLT's tagged training text."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from defusedxml import DefusedXmlException
from defusedxml import ElementTree as SafeTree
from pydantic import Field

from docmt.corpora.documents import Document
from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import SideDocument, SideFile, align, pick
from docmt.errors import UserError
from docmt.files import read_bytes, read_lines, read_text
from docmt.settings import Settings

# A segment ends at its end tag or, if that is missing, at the next tag that cannot occur inside one. No pattern reads a
# character twice at more than one place: damaged files would take hours.
TAG = re.compile(
    r"<(?:ref|src|tst)set\b(?P<set>[^<>]*)>|<doc\b(?P<doc>[^<>]*)>|(?P<end></doc\s*>)"
    r"|<seg\b(?P<seg>[^<>]*)>(?P<text>.*?)(?=</seg\s*>|<seg\b|</?doc\b|</?p>|</?hl>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
TRAIN_TALK = re.compile(r"""\s*(?:<talkid>(.*?)</talkid>|<doc\b[^>]*\bdocid\s*=\s*"([^"]*)")""", re.IGNORECASE)
TRAIN_TAG = re.compile(
    r"\s*</?(?:doc|url|talkid|title|description|keywords|speaker|reviewer|translator)\b", re.IGNORECASE
)


class Segments(Settings):
    """One file per language with `<doc docid>` and `<seg id>`: WMT's SGML, IWSLT's XML."""

    reader: Literal["segments"]
    """Name of the format."""
    plain: list[str] = Field(default=[])
    """Languages whose file has plain lines instead: line i for the i-th `<seg>` of the other file."""


class WmtXml(Settings):
    """One file (role `both`) in the XML of WMT 2021 and later: `<doc>` with `<src>` and `<ref>`."""

    reader: Literal["wmt_xml"]
    """Name of the format."""
    translator: str | None = None
    """The `<ref translator>` to read; null for the first one."""


class IwsltTrain(Settings):
    """One file per language: IWSLT's training text, tagged lines (`<url>`, `<talkid>`, …) before each talk."""

    reader: Literal["iwslt_train"]
    """Name of the format."""


def read_segments(files: Mapping[str, Path], *, form: Segments, languages: Sequence[str]) -> ReaderResult:
    """Read a pair of SGML or XML files. They are scanned, not parsed: WMT's files are not always well-formed.

    Raises UserError when a segment is outside a document or the sides do not correspond.
    """
    paths = {lang: pick(files, lang, form.reader) for lang in languages}
    marked = [lang for lang in languages if lang not in form.plain]
    if not marked:
        raise UserError("format segments: at most one side can be plain lines")
    collector = Collector()
    parts: dict[str, list[SideDocument]] = {}
    for lang in marked:
        parts[lang], *others = _scan(paths[lang]).values()
        collector.drop("another reference", sum(len(part.sentences) for other in others for part in other))
    for lang in languages:
        if lang in form.plain:
            parts[lang] = _plain_parts(paths[lang], paths[marked[0]], parts[marked[0]])
    sides = [SideFile(paths[lang], parts[lang]) for lang in languages]
    return align(sides, collector)


def read_refsets(path: Path) -> list[list[Document]]:
    """The references of an SGML or XML file, in the order in which they begin: documents of one side.

    Raises UserError when a segment is outside a document, or a reference has none.
    """
    return [list(align([SideFile(path, parts)])[0]) for parts in _scan(path).values()]


def read_wmt_xml(files: Mapping[str, Path], *, form: WmtXml, languages: Sequence[str]) -> ReaderResult:
    """Read one XML file with both sides.

    Raises UserError when it is not well-formed, a side is missing, or the sides of a document differ in length.
    """
    path = pick(files, "both", form.reader)
    try:
        root = SafeTree.fromstring(read_bytes(path))
    except SafeTree.ParseError as error:
        raise UserError(f"{path}: line {error.position[0]} is not well-formed XML ({error})") from None
    except DefusedXmlException:
        raise UserError(f"{path}: declares XML entities, which are not allowed: remove the DOCTYPE") from None
    src_lang, tgt_lang = languages
    collector = Collector()
    for element in root.iter("doc"):
        name = element.get("id") or element.get("docid") or "unnamed"
        sides = [element.findall("src"), element.findall("ref")]
        # Those of its language, and those that state none.
        pairs = zip(sides, languages, strict=True)
        wanted = [[item for item in found if item.get("lang", lang) == lang] for found, lang in pairs]
        if form.translator is not None:
            wanted[1] = [ref for ref in wanted[1] if ref.get("translator") == form.translator]
        if not all(wanted):
            raise UserError(f"{path}: document {name} lacks a side ({src_lang} <src>, {tgt_lang} <ref>)")
        collector.drop("another reference", len(sides[1]) - 1)
        src, tgt = ([(seg.get("id"), "".join(seg.itertext())) for seg in side[0].iter("seg")] for side in wanted)
        if [key for key, _ in src] != [key for key, _ in tgt]:
            keys = zip_longest((key for key, _ in src), (key for key, _ in tgt))
            bad = next((a or b for a, b in keys if a != b), None)
            raise UserError(f"{path}: document {name}: segment {bad} is not on both sides")
        collector.add(name, [(a, b) for (_, a), (_, b) in zip(src, tgt, strict=True)])
    return collector.result(if_empty=f"{path}: contains no sentences")


def read_iwslt_train(files: Mapping[str, Path], *, form: IwsltTrain, languages: Sequence[str]) -> ReaderResult:
    """Read a pair of tagged training files. Raises UserError when text comes before the first talk."""
    sides = []
    for lang in languages:
        path = pick(files, lang, form.reader)
        parts: list[SideDocument] = []
        lines = read_lines(path)
        # Releases before 2017 open a talk with <doc docid>, and <url> follows; later ones open it with <url>.
        start = "<doc" if any(line.lstrip().startswith("<doc") for line in lines) else "<url>"
        for number, line in enumerate(lines, start=1):
            if line.lstrip().startswith(start):
                parts.append(SideDocument(None, number))
            talk = TRAIN_TALK.match(line)
            if talk and parts:
                parts[-1].id = (talk[1] or "").strip() or talk[2]
            if TRAIN_TAG.match(line):
                continue
            if not parts:
                raise UserError(f"{path}: line {number} comes before the first {start}…")
            parts[-1].add(line, line=number)
        sides.append(SideFile(path, parts))
    return align(sides)


def replace_entities(text: str) -> str:
    """Replace the five XML entities and numeric references; any other `&` is text, as in the files of WMT."""

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return CHARACTERS[match[1]]
        code = int(match[2]) if match[2] else int(match[3], 16)
        is_character = code and code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        return chr(code) if is_character else match[0]

    return REFERENCE.sub(character, text)


def _scan(path: Path) -> dict[str, list[SideDocument]]:
    """The documents of one file by whose text it is: the `sysid` of the document, or `refid` or `sysid` of its set."""
    text = read_text(path)
    found: dict[str, list[SideDocument]] = {}
    parts: list[SideDocument] = []
    is_inside = False
    of_set = ""
    line, position = 1, 0
    for match in TAG.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match["set"] is not None:
            attributes = _attributes(match["set"])
            of_set = attributes.get("refid") or attributes.get("sysid", "")
        elif match["doc"] is not None:
            attributes = _attributes(match["doc"])
            is_inside, parts = True, found.setdefault(attributes.get("sysid", of_set), [])
            parts.append(SideDocument(attributes.get("docid", f"{len(parts) + 1:05d}"), line))
        elif match["end"] is not None:
            is_inside = False
        elif not is_inside:
            raise UserError(f"{path}: line {line}: <seg> outside <doc>")
        else:
            attributes = _attributes(match["seg"])
            parts[-1].add(
                replace_entities(match["text"]), line=line, key=attributes.get("id", str(len(parts[-1].sentences) + 1))
            )
    if not found:
        raise UserError(f"{path}: contains no <doc>")
    return found


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag, names in lower case."""
    found = ATTRIBUTE.findall(text)
    return {name.lower(): replace_entities(double or single or bare) for name, double, single, bare in found}


def _plain_parts(path: Path, marked_path: Path, marked: list[SideDocument]) -> list[SideDocument]:
    """Plain lines, divided into the documents of the other side."""
    lines = read_lines(path)
    expected = sum(len(part.sentences) for part in marked)
    if len(lines) != expected:
        raise UserError(
            f"{len(lines)} lines in {path}, {expected} segments in {marked_path}: line {min(len(lines), expected) + 1} "
            "is the first without a counterpart"
        )
    parts, start = [], 0
    for part in marked:
        end = start + len(part.sentences)
        parts.append(SideDocument(part.id, start + 1, lines[start:end], list(range(start + 1, end + 1))))
        start = end
    return parts
