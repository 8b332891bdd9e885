"""Bible texts with `### Book` and `[chapter:verse] text` lines, paired by verse. A chapter is a document."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field
from typing_extensions import override

from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_lines

HEADING = re.compile(r"### *(\S.*)$")
HELD_OUT_BOOKS = ("John", "Ruth", "Jonah", "James")
# Chapter number modulo 20 in other books → part.
PARTS = {0: "test", 10: "test", 5: "dev"}
VERSE = re.compile(r"\[(\d{1,9}):(\d{1,9})\](.*)$", re.DOTALL)


class Verses(DocumentFormat):
    """One file per language with lines `### Book` and `[chapter:verse] text`."""

    reader: FormatName[Literal["verses"]]
    has_equal_chapters_only: bool = False
    """Use only chapters whose verse numbers are the same in both languages."""
    skipped_books: list[str] = Field(default=[])
    """Books to leave out."""
    part: Literal["train", "dev", "test", "books"] | None = None
    """Part to read. `books`: John, Ruth, Jonah and James. Of the other books, every tenth chapter is `test`, every
    twentieth is `dev`, and the rest is `train`. Default: everything."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src, tgt = (_read_chapters(self.pick(files, lang)) for lang in languages)
        collector = DocumentCollector()
        # Including chapters in only one edition, so that their verses are counted as dropped.
        for number, chapter in enumerate([*src, *(name for name in tgt if name not in src)]):
            part = "books" if chapter[0] in HELD_OUT_BOOKS else PARTS.get(number % 20, "train")
            if self.part not in (None, part):
                continue
            pair = src_verses, tgt_verses = src.get(chapter, {}), tgt.get(chapter, {})
            n_verses = max(map(len, pair))
            if chapter[0] in self.skipped_books:
                collector.drop("verse of a skipped book", n_verses)
                continue
            if self.has_equal_chapters_only and src_verses.keys() != tgt_verses.keys():
                collector.drop("verse of a chapter that the editions number differently", n_verses)
                continue
            # Editions omit disputed verses, or leave them empty.
            for lang, one, other in ((languages[1], src_verses, tgt_verses), (languages[0], tgt_verses, src_verses)):
                collector.drop(f"verse without {lang}", sum(bool(one[v]) and not other.get(v) for v in one))
            n_empty = sum(not (src_verses.get(v) or tgt_verses.get(v)) for v in src_verses | tgt_verses)
            collector.drop("verse without text", n_empty)
            common = (verse for verse in src_verses if src_verses[verse] and tgt_verses.get(verse))
            rows = [(src_verses[verse], tgt_verses[verse]) for verse in common]
            collector.add(f"{chapter[0]} {chapter[1]}", rows)
        return collector.result(if_empty=f"{files[languages[0]]} and {files[languages[1]]} share no verses")


def _read_chapters(path: Path) -> dict[tuple[str, int], dict[int, str]]:
    """Return (book, chapter) → verse number → text, in file order."""
    chapters: dict[tuple[str, int], dict[int, str]] = {}
    book = None
    for number, line in enumerate(read_lines(path), start=1):
        line = line.strip(" \t\r")
        heading = HEADING.match(line)
        if heading:
            book = heading[1].rstrip()
        elif (verse := VERSE.match(line)) and book:
            verses = chapters.setdefault((book, int(verse[1])), {})
            if int(verse[2]) in verses:
                raise UserError(f"{path}: line {number}: duplicate verse {book} {verse[1]}:{verse[2]}")
            verses[int(verse[2])] = verse[3].strip(" \t")
        elif line:
            raise UserError(f"{path}: line {number} is neither `### Book` nor `[chapter:verse] text` under a book")
    return chapters
