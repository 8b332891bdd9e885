"""Many PO files, of a folder or an archive: help pages, dialogues and manuals as their projects translate them."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import polib

from docmt.corpora.patterns import matching_files
from docmt.corpora.readers.archives import read_members
from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.pages import parse_po, why_not
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import read_text
from docmt.formats.sentences import split_text
from docmt.settings import Settings

TAG = re.compile(r"</?[A-Za-z][^<>]*>")
SPEAKER = re.compile(r"^\[message\]: .*?\bspeaker=(\S+)")
MIN_CHARACTERS = 20
"""Shorter sentences are not compared by length."""
LARGEST_RATIO = 2.5
"""How many times longer, compared with the whole message, a translated sentence may be than its source sentence."""

Pair = tuple[str, str]


class PoFiles(Settings):
    """PO files (role `both`: a pattern such as `de/*.po`, or a tar), whose `#:` references name pages: documents."""

    reader: Literal["po_files"]
    """Name of the format."""
    pages: list[str] = ["*"]
    """Patterns of the ids of the documents to read (`*` also stands for `/`)."""
    except_pages: list[str] = []
    """Patterns of the ids of the documents to leave out, for example because another split holds them."""
    tags: Literal["keep", "remove"] = "keep"
    """What happens to inline tags, such as `<emph>`."""
    accelerator: str | None = None
    """The character that marks keys in menus, for example `~`; it is removed before letters."""
    hint_mark: str | None = None
    """The character that ends a hint for translators at the beginning of a source message, for example `^` in
    `female^cured`; hint and mark are removed."""
    except_tags: list[str] = []
    """Messages that begin with one of these tags are left out, for example index entries (`bookmark_value`)."""
    identical: Literal["keep", "drop"] = "keep"
    """Whether messages that equal their translation are read."""
    listings: Literal["keep", "drop"] = "keep"
    """Whether messages of several lines, which are program listings in manuals, are read."""
    speakers: bool = False
    """Whether a source message begins with the name in the comment `[message]: speaker=NAME`, as `NAME: `."""
    units: Literal["messages", "sentences"] = "messages"
    """`sentences`: messages are split where both sides have equally many sentences of similar lengths."""


@dataclass(frozen=True)
class _Message:
    """A translated message at one of its places."""

    pair: Pair
    speaker: str | None


def read_po_files(files: Mapping[str, Path], *, form: PoFiles, languages: Sequence[str]) -> ReaderResult:
    """Read pages, file by file in the order of their names; messages in the order of their lines, or of the file.

    Untranslated, fuzzy, obsolete and plural messages, those without a reference, and what `form` leaves out are counted
    as dropped, once for each place where they occur; what is altered or split, as changed. Raises UserError when there
    are no files, or one is not a PO file.
    """
    path = pick(files, "both", form.reader)
    collector = Collector()
    for name, text in _texts(path):
        for page, messages in _pages(parse_po(text, where=f"{path}: {name}"), collector):
            document = posixpath.normpath(f"{name.removesuffix('.po')}/{page}")
            if _is_any(document, form.pages) and not _is_any(document, form.except_pages):
                rows = (row for message in messages for row in _rows(message, form, languages, collector))
                collector.add(document, rows)
            else:
                collector.drop("in pages of other splits", len(messages))
    return collector.result(if_empty=f"{path}: contains no translated messages in pages that were asked for")


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The PO files of a folder (by pattern) or a tar: name (in a tar, below its top folder) and content."""
    if path.name.endswith((".tar.gz", ".tar")):
        members = read_members(path, ".po", what="PO")
        yield from ((name.partition("/")[2] or name, text) for name, text in members)
        return
    found = matching_files(path)
    if not found:
        raise UserError(f"{path}: no file has such a name")
    for name, file in found:
        yield name, read_text(file)


def _pages(entries: Iterable[polib.POEntry], collector: Collector) -> Iterator[tuple[str, list[_Message]]]:
    """The pages of a file, sorted by name, with their messages."""
    pages: dict[str, list[tuple[int, int, _Message]]] = defaultdict(list)
    for order, entry in enumerate(entries):
        if cause := why_not(entry):
            collector.drop(cause, max(1, len(entry.occurrences)))
            continue
        speakers = [found[1] for line in entry.comment.split("\n") if (found := SPEAKER.match(line))]
        for place, (page, line) in enumerate(entry.occurrences):
            speaker = speakers[place] if len(speakers) == len(entry.occurrences) else None
            pages[page].append((int(line or 0), order, _Message((entry.msgid, entry.msgstr), speaker)))
    for page in sorted(pages):
        yield page, [message for _, _, message in sorted(pages[page], key=lambda item: item[:2])]


def _rows(message: _Message, form: PoFiles, languages: Sequence[str], collector: Collector) -> Iterator[Pair]:
    """The sentence pairs of a message; none if the format leaves it out."""
    pair = message.pair
    if form.except_tags and (found := TAG.match(pair[0])) and found[0].strip("</>").split()[0] in form.except_tags:
        collector.drop(f"<{found[0].strip('</>').split()[0]}>")
        return
    if form.listings == "drop" and "\n" in pair[0].strip():
        collector.drop("program listing")
        return
    pair = _cleaned(pair, form, collector)
    if not any(side.strip() for side in pair):
        collector.drop("tags without text")
        return
    if form.identical == "drop" and pair[0].strip() == pair[1].strip():
        collector.drop("identical sides")
        return
    rows = _sentences(pair, languages, collector) if form.units == "sentences" else [pair]
    for number, (src, tgt) in enumerate(rows):
        is_first = number == 0 and form.speakers and message.speaker
        yield (f"{message.speaker}: {src}" if is_first else src), tgt


def _cleaned(pair: Pair, form: PoFiles, collector: Collector) -> Pair:
    """A pair without hints, tags and accelerator marks, if the format removes them."""
    if form.hint_mark and form.hint_mark in pair[0]:
        pair = (pair[0].partition(form.hint_mark)[2], pair[1])
        collector.change("hint removed")
    for is_wanted, pattern, what in (
        (form.tags == "remove", TAG, "inline tags removed"),
        (bool(form.accelerator), re.compile(f"{re.escape(form.accelerator or '')}(?=\\w)"), "accelerator removed"),
    ):
        if is_wanted:
            before, pair = pair, (pattern.sub("", pair[0]), pattern.sub("", pair[1]))
            collector.change(what, before != pair)
    return pair


def _sentences(pair: Pair, languages: Sequence[str], collector: Collector) -> list[Pair]:
    """The sentences of a message, if its sides have equally many, of similar lengths; else the message."""
    sides = [
        [sentence.strip() for sentence in split_text(text, lang) if sentence.strip()]
        for text, lang in zip(pair, languages, strict=True)
    ]
    if max(map(len, sides)) < 2:
        return [pair]
    if len(sides[0]) != len(sides[1]) or not _have_similar_lengths(*sides):
        collector.change("message of several sentences not split")
        return [pair]
    collector.change("message split into sentences")
    return list(zip(*sides, strict=True))


def _have_similar_lengths(src: Sequence[str], tgt: Sequence[str]) -> bool:
    usual = sum(map(len, tgt)) / sum(map(len, src))
    return all(
        max(len(a), len(b)) < MIN_CHARACTERS or 1 / LARGEST_RATIO <= len(b) / len(a) / usual <= LARGEST_RATIO
        for a, b in zip(src, tgt, strict=True)
    )


def _is_any(document: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(document, pattern) for pattern in patterns)
