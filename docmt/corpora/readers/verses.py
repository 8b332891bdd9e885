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
        src_lang, tgt_lang = languages
        src = _read_chapters(self.pick(files, src_lang))
        tgt = _read_chapters(self.pick(files, tgt_lang))
        collector = DocumentCollector()
        # Including chapters in only one edition, so that their verses are counted as dropped.
        for number, chapter in enumerate(src | tgt):
            part = "books" if chapter[0] in HELD_OUT_BOOKS else PARTS.get(number % 20, "train")
            if self.part not in (None, part):
                continue
            src_verses = src.get(chapter, {})
            tgt_verses = tgt.get(chapter, {})
            n_verses = max(len(src_verses), len(tgt_verses))
            if chapter[0] in self.skipped_books:
                collector.drop("verse of a skipped book", n_verses)
                continue
            if self.has_equal_chapters_only and src_verses.keys() != tgt_verses.keys():
                collector.drop("verse of a chapter that the editions number differently", n_verses)
                continue
            rows = []
            for verse in src_verses | tgt_verses:
                # Editions omit disputed verses, or leave them empty.
                src_text = src_verses.get(verse)
                tgt_text = tgt_verses.get(verse)
                if src_text and tgt_text:
                    rows.append((src_text, tgt_text))
                elif src_text:
                    collector.drop(f"verse without {tgt_lang}")
                elif tgt_text:
                    collector.drop(f"verse without {src_lang}")
                else:
                    collector.drop("verse without text")
            collector.add(f"{chapter[0]} {chapter[1]}", rows)
        return collector.result(if_empty=f"{files[languages[0]]} and {files[languages[1]]} share no verses")


def _read_chapters(path: Path) -> dict[tuple[str, int], dict[int, str]]:
    """Return (book, chapter) → verse number → text, in file order."""
    chapters: dict[tuple[str, int], dict[int, str]] = {}
    book = None
    for number, line in enumerate(read_lines(path), start=1):
        line = line.strip(" \t\r")
        heading = HEADING.match(line)
        verse = VERSE.match(line)
        if heading:
            book = heading[1].rstrip()
        elif verse and book:
            verses = chapters.setdefault((book, int(verse[1])), {})
            if int(verse[2]) in verses:
                raise UserError(f"{path}: line {number}: duplicate verse {book} {verse[1]}:{verse[2]}")
            verses[int(verse[2])] = verse[3].strip(" \t")
        elif line:
            raise UserError(f"{path}: line {number} is neither `### Book` nor `[chapter:verse] text` under a book")
    return chapters
