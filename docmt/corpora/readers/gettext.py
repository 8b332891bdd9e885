"""Documents in gettext PO files: help pages, dialogues and manuals, with page and line in `#:` references."""

import itertools
import posixpath
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import polib
from typing_extensions import override

from docmt.corpora.file_patterns import existing_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.corpora.readers.tar_files import is_tar, read_members
from docmt.errors import UserError
from docmt.files import read_text

TAG = re.compile(r"</?[A-Za-z][^<>]*>")
SPEAKER = re.compile(r"^\[message\]: .*?\bspeaker=(\S+)")
# Minimum length in characters of sentences compared by length.
MIN_CHARACTERS = 20
# Maximum length ratio between translated and source sentence, relative to the ratio of the message.
MAX_RATIO = 2.5
# Longer messages are not split, since splitting takes quadratic time after an open quote or bracket.
MAX_SPLIT_CHARACTERS = 10_000
# A message is read once per reference. This limits the total text relative to the text in the messages.
MAX_COPIES = 100
MAX_UNCHECKED_CHARACTERS = 1 << 20
# These end a sentence only before white space, not inside a word such as `NORM.DIST`.
FULL_STOPS = (".", "!", "?")
# Non-ASCII white space before a full stop, on which the library fails after a single capital letter.
FRAGILE = re.compile(r"[^\S\x00-\x7f](?=\.)")
# Longer lines are split first, because the library takes quadratic time for some.
PIECE = re.compile(r".{1,10000}(?:\Z|(?<=[.!?]\s))|.{1,10000}", re.DOTALL)

Pair = tuple[str, str]
# A translated message at a reference, with its speaker.
Message = tuple[Pair, str | None]


class PoPages(DocumentFormat):
    """One PO file (role `both`) with source and target sentences as messages."""

    reader: FormatName[Literal["po_pages"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()
        for page, messages in _pages(read_text(path), collector, where=str(path), drops_places=False):
            collector.add(page, [pair for pair, _ in messages])
        return collector.result(if_empty=f"{path}: contains no translated messages with a reference")


class PoFiles(DocumentFormat):
    """PO files (role `both`, a pattern such as `de/*.po`, or a tar). `#:` references name the pages (documents)."""

    reader: FormatName[Literal["po_files"]]
    pages: list[str] = ["*"]
    """Patterns of document ids to read (`*` also matches `/`)."""
    except_pages: list[str] = []
    """Patterns of document ids to leave out."""
    tags: Literal["keep", "remove"] = "keep"
    """`keep` or `remove` inline tags such as `<emph>`."""
    accelerator: str | None = None
    """Mark of menu keys to remove before letters, for example `~`. Default: none."""
    hint_mark: str | None = None
    """End of a hint to remove before a source message, for example `^` in `female^cured`. Default: none."""
    except_tags: list[str] = []
    """Tags, such as `bookmark_value`, of messages to leave out."""
    identical: Literal["keep", "drop"] = "keep"
    """`keep` or `drop` messages that equal their translation."""
    listings: Literal["keep", "drop"] = "keep"
    """`keep` or `drop` messages of several lines (listings in manuals)."""
    speakers: bool = False
    """Prefix a source message with `NAME: ` if its comment has `[message]: speaker=NAME`."""
    units: Literal["messages", "sentences"] = "messages"
    """`sentences`: split messages whose sides have the same number of sentences of similar lengths."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()
        for name, text in _read_texts(path):
            for page, messages in _pages(text, collector, where=f"{path}: {name}", drops_places=True):
                # References can be relative to the PO file (`../../page.rst`). Normalized, they are unique.
                document = posixpath.normpath(f"{name.removesuffix('.po')}/{page}")
                if _is_any(document, self.pages) and not _is_any(document, self.except_pages):
                    rows: list[Pair] = []
                    for message in messages:
                        rows += self._rows(message, languages, collector)
                    collector.add(document, rows)
                else:
                    collector.drop("in pages of other splits", len(messages))
        return collector.result(if_empty=f"{path}: contains no translated messages in pages that were asked for")

    def _rows(self, message: Message, languages: Sequence[str], collector: DocumentCollector) -> Iterator[Pair]:
        """Yield the sentence pairs in a message, unless the settings leave it out."""
        pair, speaker = message
        match = TAG.match(pair[0])
        tag = match[0].strip("</>").split()[0] if match else None
        if tag in self.except_tags:
            collector.drop(f"<{tag}>")
            return
        if self.listings == "drop" and "\n" in pair[0].strip():
            collector.drop("program listing")
            return
        pair = self._clean(pair, collector)
        if not any(map(str.strip, pair)):
            collector.drop("tags without text")
            return
        if self.identical == "drop" and pair[0].strip() == pair[1].strip():
            collector.drop("identical sides")
            return
        pairs = [pair]
        if self.units == "sentences":
            pairs = _split(pair, languages, collector)
        if self.speakers and speaker:
            src, tgt = pairs[0]
            pairs[0] = (f"{speaker}: {src}", tgt)
        yield from pairs

    def _clean(self, pair: Pair, collector: DocumentCollector) -> Pair:
        """Remove hints, tags and accelerator marks from a pair, according to the settings."""
        if self.hint_mark and self.hint_mark in pair[0]:
            pair = (pair[0].partition(self.hint_mark)[2], pair[1])
            collector.change("hint removed")
        patterns = {}
        if self.tags == "remove":
            patterns["inline tags removed"] = TAG
        if self.accelerator:
            patterns["accelerator removed"] = re.compile(f"{re.escape(self.accelerator)}(?=\\w)")
        for what, pattern in patterns.items():
            cleaned = (pattern.sub("", pair[0]), pattern.sub("", pair[1]))
            if cleaned != pair:
                collector.change(what)
            pair = cleaned
        return pair


def _read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name (in a tar, below the top folder) and text of PO files in a folder (by pattern) or a tar."""
    if is_tar(path):
        for name, text in read_members(path, ".po", what="PO"):
            yield name.partition("/")[2] or name, text
        return
    for name, file in existing_files(path):
        yield name, read_text(file)


def _entries(text: str, *, where: str) -> list[polib.POEntry]:
    """Parse the messages in a PO file."""
    # In a temporary file, because polib splits text in memory at U+2028 and NEL, which can occur in messages.
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        try:
            return list(polib.pofile(file.name, encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = str(error).replace(file.name, "").strip()
            raise UserError(f"{where}: is not a PO file ({reason})") from None


def _pages(
    text: str, collector: DocumentCollector, *, where: str, drops_places: bool
) -> Iterator[tuple[str, list[Message]]]:
    """Yield pages sorted by name, with messages in line order (without line numbers: in file order).

    Untranslated, fuzzy, obsolete and plural messages, and messages without a reference, are counted as dropped. With
    `drops_places`, they are counted once per reference.
    """
    entries = _entries(text, where=where)
    if not any(entry.occurrences for entry in entries):
        for entry in entries:  # a catalog without references is one page in file order
            entry.occurrences = [("", "")]
    n_characters = sum(len(entry.occurrences) * len(entry.msgid + entry.msgstr) for entry in entries)
    if n_characters > max(MAX_UNCHECKED_CHARACTERS, MAX_COPIES * len(text)):
        raise UserError(f"{where}: references repeat the text more than {MAX_COPIES} times: this is not a catalog")
    pages: dict[str, list[tuple[int, int, Message]]] = defaultdict(list)
    # `order` breaks ties, since several messages can be on one line.
    for order, entry in enumerate(entries):
        cause = _why_not(entry)
        if cause:
            n_dropped = 1
            if drops_places:
                n_dropped = max(1, len(entry.occurrences))
            collector.drop(cause, n_dropped)
            continue
        matches = map(SPEAKER.match, entry.comment.split("\n"))
        speakers: list[str | None] = [match[1] for match in matches if match]
        if len(speakers) != len(entry.occurrences):
            speakers = [None] * len(entry.occurrences)
        for speaker, (page, line) in zip(speakers, entry.occurrences, strict=True):
            # polib accepts numbers such as `²` or thousands of digits.
            number = 0
            if line.isdecimal() and len(line) < 10:
                number = int(line)
            pages[page].append((number, order, ((entry.msgid, entry.msgstr), speaker)))
    for page in sorted(pages):
        rows = sorted(pages[page], key=lambda row: row[:2])
        yield page, [message for _, _, message in rows]


def _why_not(entry: polib.POEntry) -> str | None:
    """Return the cause for leaving a message out, or None."""
    causes = {
        "obsolete message": entry.obsolete,
        "fuzzy message": entry.fuzzy,
        "plural message": entry.msgid_plural,
        "untranslated message": not entry.msgstr,
        "message without a page": not entry.occurrences,
    }
    for cause, is_true in causes.items():
        if is_true:
            return cause
    return None


def _split(pair: Pair, languages: Sequence[str], collector: DocumentCollector) -> list[Pair]:
    """Split a message into sentences if the sides have the same number with similar lengths."""
    if max(map(len, pair)) <= MAX_SPLIT_CHARACTERS:
        sides = []
        for text, lang in zip(pair, languages, strict=True):
            sentences = []
            for sentence in split_text(text, lang):
                if sentence.strip():
                    sentences.append(sentence.strip())
            sides.append(sentences)
        src, tgt = sides
        if max(len(src), len(tgt)) < 2:
            return [pair]
        if len(src) == len(tgt) and _have_similar_lengths(src, tgt):
            collector.change("message split into sentences")
            return list(zip(src, tgt, strict=True))
    collector.change("message of several sentences not split")
    return [pair]


def _have_similar_lengths(src: Sequence[str], tgt: Sequence[str]) -> bool:
    # Languages differ in length, so sentences are compared relative to the message.
    usual_ratio = sum(map(len, tgt)) / sum(map(len, src))
    for src_length, tgt_length in zip(map(len, src), map(len, tgt), strict=True):
        ratio = tgt_length / src_length / usual_ratio
        if max(src_length, tgt_length) >= MIN_CHARACTERS and not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            return False
    return True


def _is_any(document: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(document, pattern) for pattern in patterns)


def split_text(text: str, lang: str) -> list[str]:
    """Split a text into sentences with their final white space. A line end also ends a sentence.

    Sentences do not end inside words or between backquotes.
    """
    # Imported here, because most commands do not need it. A compiled library without types.
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]

    sentences = []
    for line in itertools.chain.from_iterable(map(PIECE.findall, text.splitlines(keepends=True))):
        has_pairs = line.count("`") % 2 == 0
        start = end = 0
        for part in segment(lang, FRAGILE.sub(" ", line)):
            end += len(part)
            sentence = line[start:end]
            if not sentence.endswith(FULL_STOPS) and not (has_pairs and sentence.count("`") % 2):
                sentences.append(sentence)
                start = end
        if start < len(line):
            sentences.append(line[start:])
    return sentences
