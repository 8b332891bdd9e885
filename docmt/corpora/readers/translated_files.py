"""Translators' files: subtitles with cues paired by time, and translation memories."""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException
from pydantic import Field
from typing_extensions import override

from docmt.corpora.file_patterns import existing_files, paired_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_text, read_xml
from docmt.languages import language_of

# Hours are optional, numbers can be unpadded, and the fraction can follow a comma, a full stop or a colon.
TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?: ?[,.:] ?(\d{1,3}))?"
TIMES = re.compile(rf"\s*{TIME}\s*-{{1,3}}>\s*{TIME}(?!\d)")
BROKEN_TIMES = re.compile(r"[\s\d.,]*:[\s\d:.,]*-{1,3}>|\s*\d+:\d+:\d+[,.]\d+\D{1,9}\d+:\d+:\d+[,.]\d+")
# NFKC replaces full-width digits and marks, and this table dashes and arrows.
ARROWS = str.maketrans({**dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"), "→": "->", "⟶": "->"})
NUMBER = re.compile(r"\s*\d{1,9}\s*")
# Blocks in WebVTT without cues, which end at a blank line.
OTHER_BLOCKS = ("NOTE", "STYLE", "REGION")
# Tags, positions such as {\an8}, and placeholders in braces, which stay. Possessive, because backtracking takes
# quadratic time for hostile text.
CODE = re.compile(r"</?[A-Za-z][^<>]*+>|[$#]?\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}")
# Inline elements in TMX with code from the original file, and code for a line break.
INLINE_CODE = ("bpt", "ept", "it", "ph", "ut")
MAX_BREAK_CHARACTERS = 100
BREAK = re.compile(r"\s*(?:</?(?:br|lb|p|div|li|td|tr)\b[^<>]*>|\\[nrt]|[\n\t\u2028])+\s*", re.IGNORECASE)
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Maximum number of simultaneous cues, which are compared in pairs. Films have fewer.
MAX_SHOWN = 1000


@dataclass(frozen=True)
class Cue:
    """A cue: times in seconds, and one line of text without tags."""

    begin: float
    end: float
    text: str


class SrtPairs(DocumentFormat):
    """SRT or WebVTT subtitles, one file or pattern per language. Files are paired by name, and cues by time."""

    reader: FormatName[Literal["srt_pairs"]]
    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Minimum share of the shorter cue that overlaps with the other."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        collector = DocumentCollector()
        for name, src_file, tgt_file in paired_files(paths, languages):
            src_cues = read_cues(src_file)
            tgt_cues = read_cues(tgt_file)
            pairs = self._pair(src_cues, tgt_cues, where=str(tgt_file))
            n_paired = sum(map(len, itertools.chain.from_iterable(pairs)))
            collector.drop("cue without counterpart", len(src_cues) + len(tgt_cues) - n_paired)
            rows = []
            for src, tgt in pairs:
                src_text = " ".join(src_cues[number].text for number in src)
                tgt_text = " ".join(tgt_cues[number].text for number in tgt)
                rows.append((src_text, tgt_text))
            collector.add(name.removesuffix(".srt").removesuffix(".vtt"), rows)
        return collector.result(if_empty=f"{paths[0]}: no cue has a counterpart in {paths[1]}")

    def _pair(self, src: Sequence[Cue], tgt: Sequence[Cue], *, where: str) -> list[tuple[list[int], list[int]]]:
        """Return the indices of simultaneous source and target cues, with several cues per pair if necessary."""
        pairs: list[tuple[list[int], list[int]]] = []
        open_cues: list[int] = []  # target cues that can overlap with this source cue or a later one
        taken: set[int] = set()  # target cues in the last pair
        n_begun = 0
        for number, cue in enumerate(src):
            # Cues are sorted by time: target cues that ended before this source cue cannot match later.
            while n_begun < len(tgt) and tgt[n_begun].begin < cue.end:
                open_cues.append(n_begun)
                n_begun += 1
            open_cues = [other for other in open_cues if tgt[other].end > cue.begin]
            if len(open_cues) > MAX_SHOWN:
                raise UserError(f"{where}: more than {MAX_SHOWN:,} cues at {cue.begin:.1f} s: are these subtitles?")
            mates = []
            for other in open_cues:
                shorter = min(cue.end - cue.begin, tgt[other].end - tgt[other].begin)
                shared = min(cue.end, tgt[other].end) - max(cue.begin, tgt[other].begin)
                if shorter > 0 and shared / shorter >= self.min_overlap:
                    mates.append(other)
            # If a target cue is already in the last pair, this source cue joins the pair.
            if taken.intersection(mates):
                pairs[-1][0].append(number)
                pairs[-1][1].extend(mate for mate in mates if mate not in taken)
                taken.update(mates)
            elif mates:
                pairs.append(([number], mates))
                taken = set(mates)
        return pairs


class Tmx(DocumentFormat):
    """TMX translation memories (role `both`, or a pattern such as `*.tmx`)."""

    reader: FormatName[Literal["tmx"]]
    document_prop: str | None = None
    """Type of the `<prop>` that contains the document id. Units without it form one document per file. Default: each
    file is one document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        src_lang, tgt_lang = languages
        collector = DocumentCollector()
        for file_name, file in existing_files(path):
            documents: dict[str, list[tuple[str, str]]] = {}
            for unit in read_units(read_xml(file), where=str(file)):
                src = _variants(unit, src_lang)
                tgt = _variants(unit, tgt_lang)
                if not (src and tgt):
                    collector.drop("unit without both languages")
                    continue
                collector.drop("another variant of a language", len(src) + len(tgt) - 2)
                name = self._document_of(unit) or file_name.removesuffix(".tmx")
                documents.setdefault(name, []).append((_text(src[0]), _text(tgt[0])))
            for name, rows in documents.items():
                collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no units in {' and '.join(languages)}")

    def _document_of(self, unit: Element) -> str:
        for prop in unit.iterfind(".//{*}prop"):
            if self.document_prop is not None and prop.get("type") == self.document_prop:
                return "".join(prop.itertext()).strip()  # the first such property counts
        return ""


def read_cues(path: Path) -> list[Cue]:
    """Read the cues in an SRT or WebVTT file, sorted by time. Text continues after blank lines."""
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    times = {}
    for number, line in enumerate(lines):
        if ":" not in line and "：" not in line:
            continue
        match = _match_times(line)
        if match:
            times[number] = match
        elif BROKEN_TIMES.match(line):
            raise UserError(f"{path}: line {number + 1}: the times {line.strip()!r} cannot be read")
    is_webvtt = lines[0].startswith("WEBVTT")
    # Numbers directly before the times, if in most cues. In WebVTT, names after a blank line.
    has_numbers = 2 * sum(n > 0 and NUMBER.fullmatch(lines[n - 1]) is not None for n in times) > len(times)

    def is_label(number: int) -> bool:
        is_name = is_webvtt and lines[number].strip() != "" and not lines[number - 1].strip()
        return is_name or (has_numbers and NUMBER.fullmatch(lines[number]) is not None)

    starts = [number - (number > 0 and is_label(number - 1)) for number in times]
    if not is_webvtt and any(map(str.strip, lines[: starts[0] if starts else None])):
        raise UserError(f"{path}: has text before the first cue (a line such as 00:00:01,000 --> 00:00:02,500)")
    cues = []
    for (number, match), end in zip(times.items(), [*starts[1:], len(lines)], strict=False):
        text_lines = lines[number + 1 : end]
        if is_webvtt:
            text_lines = _without_blocks(text_lines)
        plain = CODE.sub(lambda code: "" if code[0].startswith(("<", "{\\")) else code[0], "\n".join(text_lines))
        cues.append(Cue(_seconds(*match.groups()[:4]), _seconds(*match.groups()[4:]), " ".join(plain.split())))
    return sorted(cues, key=lambda cue: cue.begin)


def _match_times(line: str) -> re.Match[str] | None:
    """Match the times of a cue. With other marks and arrows, times have fractions: `10:30 → 11:45` is text."""
    match = TIMES.match(line)
    if match is None and not line.isascii():
        match = TIMES.match(unicodedata.normalize("NFKC", line).translate(ARROWS))
        if match and not (match[4] and match[8]):
            return None
    return match


def _without_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a cue, without notes and styles after it."""
    is_block = False
    for before, line in itertools.pairwise(["", *lines]):
        is_block = line.strip() != "" and (is_block or (not before.strip() and line.startswith(OTHER_BLOCKS)))
        if not is_block:
            yield line


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    return 3600 * int(hours or 0) + 60 * int(minutes) + int(seconds) + float(f"0.{fraction or 0}")


def read_units(text: str, *, where: str) -> list[Element]:
    """Parse the units in the text of a TMX file."""
    try:  # without the encoding declaration, since the text is decoded
        root = defusedxml.ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*>", "", text.removeprefix("\ufeff"), count=1))
    except DefusedXmlException:
        raise UserError(f"{where}: declares entities, which docmt does not expand: remove them") from None
    except defusedxml.ElementTree.ParseError as error:
        raise UserError(f"{where}: not XML ({error})") from None
    name = _local_name(root)
    if name != "tmx":
        raise UserError(f"{where}: is XML, but not TMX (the root element is <{name}>)")
    return root.findall(".//{*}tu")


def _local_name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _variants(unit: Element, lang: str) -> list[Element]:
    """Return the segments of a unit in a language with any region and script, exact matches of the code first."""
    exact: list[Element] = []
    others: list[Element] = []
    for variant in unit.iterfind(".//{*}tuv"):
        code = variant_language(variant).lower()
        segment = variant.find(".//{*}seg")
        if segment is not None and language_of(code) == language_of(lang):
            if code == lang.lower():
                exact.append(segment)
            else:
                others.append(segment)
    return exact + others


def variant_language(variant: Element) -> str:
    """Return the language of a `tuv`, or an empty string."""
    return variant.get(XML_LANG) or variant.get("lang") or ""


def _text(segment: Element) -> str:
    """Return the text of a segment without inline code. Breaks become spaces, and placeholders such as `%s` stay."""
    for element in list(segment.iter()):
        if _local_name(element) in INLINE_CODE:
            code = "".join(element.itertext())[:MAX_BREAK_CHARACTERS]
            is_break = element.get("type") == "lb" or BREAK.fullmatch(code) is not None
            tail = element.tail or ""
            if is_break and not tail[:1].isspace():
                tail = " " + tail
            element.clear()
            element.tail = tail
    return "".join(segment.itertext())
