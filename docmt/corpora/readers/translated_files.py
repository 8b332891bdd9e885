"""Files that translators use: subtitles, whose cues are paired by time, and translation memories."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException
from pydantic import Field
from typing_extensions import override

from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_text
from docmt.languages import language_of

TIME = r"(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}"
TIMES = re.compile(rf"^[ \t]*+({TIME})[ \t]*+-->[ \t]*+({TIME})[^\n]*+\n?", re.MULTILINE)
BLANK_LINE = re.compile(r"^[^\S\n]*+(?:\n|\Z)", re.MULTILINE)
# Tags, positions such as {\an8}, and placeholders in braces, which stay. Possessive, because what gives characters back
# takes quadratic time for hostile text.
CODE = re.compile(r"</?[A-Za-z][^<>]*+>|[$#]?\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}")
# Inline elements of TMX that hold code of the original file.
INLINE_CODE = ("bpt", "ept", "it", "ph", "ut")
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Cues on the screen at one time. No film has as many, and pairs of cues are compared one by one.
MOST_SHOWN = 1000


@dataclass(frozen=True)
class Cue:
    """A cue: its times in seconds, and its text in one line, without tags."""

    begin: float
    end: float
    text: str


class SrtPairs(DocumentFormat):
    """SRT files, a pattern or a file per language, paired by name or order; cues are paired by time."""

    reader: FormatName[Literal["srt_pairs"]]
    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Least share of the shorter cue shown together with the other."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        src, tgt = (matching_files(path) for path in paths)
        if len(src) != len(tgt):
            raise UserError(f"{paths[0]}: {len(src)} files, but {paths[1]} has {len(tgt)}: one of each is needed")
        collector = DocumentCollector()
        for (name, src_file), (_, tgt_file) in zip(src, tgt, strict=True):
            src_cues, tgt_cues = read_cues(src_file), read_cues(tgt_file)
            pairs = self._pair(src_cues, tgt_cues, where=str(tgt_file))
            n_paired = sum(len(ours) + len(theirs) for ours, theirs in pairs)
            collector.drop("cue without counterpart", len(src_cues) + len(tgt_cues) - n_paired)
            rows = (
                (" ".join(src_cues[n].text for n in ours), " ".join(tgt_cues[n].text for n in theirs))
                for ours, theirs in pairs
            )
            collector.add(name.removesuffix(".srt"), rows)
        return collector.result(if_empty=f"{paths[0]}: no cue has a counterpart in {paths[1]}")

    def _pair(self, src: Sequence[Cue], tgt: Sequence[Cue], *, where: str) -> list[tuple[list[int], list[int]]]:
        """Numbers of source and target cues that are shown at the same time, several where one meets several."""
        pairs: list[tuple[list[int], list[int]]] = []
        shown: list[int] = []  # target cues that this source cue or a later one can meet
        taken: set[int] = set()  # the target cues of the last pair
        n_begun = 0
        for number, cue in enumerate(src):
            # Cues are in the order of time: target cues that ended before this source cue never match again.
            while n_begun < len(tgt) and tgt[n_begun].begin < cue.end:
                shown.append(n_begun)
                n_begun += 1
            shown = [other for other in shown if tgt[other].end > cue.begin]
            if len(shown) > MOST_SHOWN:
                raise UserError(
                    f"{where}: shows more than {MOST_SHOWN:,} cues at {cue.begin:.1f} s: these are no subtitles"
                )
            mates = []
            for other in shown:
                shorter = min(cue.end - cue.begin, tgt[other].end - tgt[other].begin)
                shared = min(cue.end, tgt[other].end) - max(cue.begin, tgt[other].begin)
                if shorter > 0 and shared / shorter >= self.min_overlap:
                    mates.append(other)
            # A target cue that already belongs to a pair draws this source cue into it.
            if taken.intersection(mates):
                pairs[-1][0].append(number)
                pairs[-1][1].extend(mate for mate in mates if mate not in taken)
                taken.update(mates)
            elif mates:
                pairs.append(([number], mates))
                taken = set(mates)
        return pairs


class Tmx(DocumentFormat):
    """A TMX translation memory (role `both`; a pattern such as `*.tmx` reads many): a file is a document."""

    reader: FormatName[Literal["tmx"]]
    document_prop: str | None = None
    """Type of the `<prop>` that names a unit's document; null makes each file one document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()
        codes = [lang.lower() for lang in languages]
        for file_name, file in matching_files(path):
            documents: dict[str, list[tuple[str, str]]] = {}
            for unit in read_units(read_text(file), where=str(file)):
                segments = _unit_segments(unit)
                if not all(code in segments for code in codes):
                    collector.drop("unit without both languages")
                    continue
                name = ""
                if self.document_prop is not None:  # the first such property counts
                    props = (prop for prop in unit.iterfind(".//{*}prop") if prop.get("type") == self.document_prop)
                    name = "".join("".join(prop.itertext()) for prop in itertools.islice(props, 1)).strip()
                src, tgt = (_text(segments[code]) for code in codes)
                documents.setdefault(name or file_name.removesuffix(".tmx"), []).append((src, tgt))
            for name, rows in documents.items():
                collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no units in {' and '.join(languages)}")


def read_cues(path: Path) -> list[Cue]:
    """Read the cues of a file, in its order."""
    text = read_text(path)
    cues = []
    times = list(TIMES.finditer(text))
    for match, following in itertools.zip_longest(times, times[1:]):
        start, stop = match.end(), following.start() if following else len(text)
        blank = BLANK_LINE.search(text, start, stop)
        content = text[start : blank.start() if blank else stop]
        plain = CODE.sub(lambda code: "" if code[0].startswith(("<", "{\\")) else code[0], content)
        cues.append(Cue(_seconds(match[1]), _seconds(match[2]), " ".join(plain.split())))
    if not cues and text.strip("\ufeff \t\r\n").removeprefix("WEBVTT"):
        raise UserError(f"{path}: has no cues (lines such as 00:00:01,000 --> 00:00:02,500)")
    return cues


def _seconds(time: str) -> float:
    return sum(float(part) * 60**n for n, part in enumerate(reversed(time.replace(",", ".").split(":"))))


def read_units(text: str, *, where: str) -> list[Element]:
    """Read the units of a TMX file."""
    declared = re.match(r"\ufeff?<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)", text)
    if declared and declared[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UserError(f"{where}: says that it is in {declared[1]}, but is in UTF-8: correct its first line")
    try:
        root = defusedxml.ElementTree.fromstring(text.removeprefix("\ufeff").encode("utf-8"))
    except DefusedXmlException:
        raise UserError(f"{where}: declares entities, which docmt does not expand: remove them") from None
    except defusedxml.ElementTree.ParseError as error:
        raise UserError(f"{where}: not XML ({error})") from None
    if (name := _local_name(root)) != "tmx":
        raise UserError(f"{where}: is XML, but not TMX (its root is <{name}>)")
    return root.findall(".//{*}tu")


def _local_name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _unit_segments(unit: Element) -> dict[str, Element]:
    """The `seg` of each language of a unit, under its code and, if that is free, without region: `en-US`, `en`."""
    segments: dict[str, Element] = {}
    for variant in unit.iterfind(".//{*}tuv"):
        lang = variant_language(variant).lower()
        if (segment := variant.find(".//{*}seg")) is not None:
            segments.setdefault(lang, segment)
            segments.setdefault(language_of(lang), segment)
    return segments


def variant_language(variant: Element) -> str:
    """The language of a `tuv`; empty if it has none."""
    return variant.get(XML_LANG) or variant.get("lang") or ""


def _text(segment: Element) -> str:
    """The text of a segment without inline code; placeholders such as `%s` are text."""
    for element in list(segment.iter()):
        if _local_name(element) in INLINE_CODE:
            tail = element.tail
            element.clear()
            element.tail = tail
    return "".join(segment.itertext())
