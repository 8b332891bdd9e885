"""Bible texts: `### Book` headings and `[chapter:verse] text` lines, paired by verse; a chapter is a document."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import read_lines
from docmt.settings import Settings

HEADING = re.compile(r"### *(.+?)\s*$")
VERSE = re.compile(r"\[(\d+):(\d+)\](.*)$", re.DOTALL)

Chapter = tuple[str, int]


class Verses(Settings):
    """One file per language with `### Book` and `[chapter:verse] text` lines."""

    reader: Literal["verses"]
    """Name of the format."""
    has_equal_chapters_only: bool = False
    """Pair only chapters with the same set of verse numbers on both sides. Needed if the editions number verses
    differently, because equal numbers then denote different verses."""
    skipped_books: list[str] = Field(default=[])
    """Books to leave out."""


def read_verses(files: Mapping[str, Path], *, form: Verses, languages: Sequence[str]) -> ReaderResult:
    """Read two editions and pair their verses by book, chapter and verse number.

    A verse that one side lacks or leaves empty is counted and dropped: editions omit disputed verses. Raises
    UserError when a line is neither a heading nor a verse, or is a duplicate verse.
    """
    src, tgt = (_chapters(pick(files, lang, form.reader)) for lang in languages)
    collector = Collector()
    for chapter in [*src, *(name for name in tgt if name not in src)]:
        pair = src.get(chapter, {}), tgt.get(chapter, {})
        cause = _why_not(chapter, pair, form)
        if cause:
            collector.drop(cause, max(len(verses) for verses in pair))
            continue
        for lang, one, other in ((languages[1], *pair), (languages[0], *reversed(pair))):
            collector.drop(f"verse without {lang}", sum(bool(one[v]) and not other.get(v) for v in one))
        collector.drop("verse without text", sum(not (pair[0].get(v) or pair[1].get(v)) for v in pair[0] | pair[1]))
        shared = [number for number, text in pair[0].items() if text and pair[1].get(number)]
        collector.add(f"{chapter[0]} {chapter[1]}", [(pair[0][number], pair[1][number]) for number in shared])
    return collector.result(if_empty=f"{files[languages[0]]} and {files[languages[1]]} share no verses")


def _why_not(chapter: Chapter, pair: tuple[dict[int, str], dict[int, str]], form: Verses) -> str | None:
    """Why a whole chapter is left out, or None."""
    if chapter[0] in form.skipped_books:
        return "verse of a skipped book"
    if form.has_equal_chapters_only and pair[0].keys() != pair[1].keys():
        return "verse of a chapter that the editions number differently"
    return None


def _chapters(path: Path) -> dict[Chapter, dict[int, str]]:
    """Verse number → text, of each chapter in file order."""
    chapters: dict[Chapter, dict[int, str]] = {}
    book = None
    for number, line in enumerate(read_lines(path), start=1):
        line = line.strip(" \t\r")
        if heading := HEADING.match(line):
            book = heading[1]
        elif (verse := VERSE.match(line)) and book:
            verses = chapters.setdefault((book, int(verse[1])), {})
            if int(verse[2]) in verses:
                raise UserError(f"{path}: line {number}: duplicate verse {book} {verse[1]}:{verse[2]}")
            verses[int(verse[2])] = verse[3].strip(" \t")
        elif line:
            raise UserError(f"{path}: line {number} is neither `### Book` nor `[chapter:verse] text` under a book")
    return chapters
