"""Help pages as gettext PO files: the page and line of each message tell where it belongs."""

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import polib

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import read_text
from docmt.settings import Settings


class PoPages(Settings):
    """One PO file (role `both`): messages are source sentences, translations target sentences."""

    reader: Literal["po_pages"]
    """Name of the format."""


def read_po_pages(files: Mapping[str, Path], *, form: PoPages, languages: Sequence[str]) -> ReaderResult:
    """Read the pages that the `#:` references name; a message occurs wherever it is used.

    Untranslated, fuzzy, obsolete and plural messages, and those without a reference, are counted as dropped. Raises
    UserError when the file is not a PO file.
    """
    path = pick(files, "both", form.reader)
    catalogue = parse_po(read_text(path), where=str(path))
    collector = Collector()
    pages: dict[str, list[tuple[int, int, str, str]]] = defaultdict(list)
    for order, entry in enumerate(catalogue):
        cause = why_not(entry)
        if cause:
            collector.drop(cause)
            continue
        for page, line in entry.occurrences:
            pages[page].append((int(line or 0), order, entry.msgid, entry.msgstr))
    for page in sorted(pages):
        collector.add(page, [(source, target) for _, _, source, target in sorted(pages[page])])
    return collector.result(if_empty=f"{path}: contains no translated messages with a reference")


def parse_po(text: str, *, where: str) -> list[polib.POEntry]:
    """The messages of the text of a PO file. Raises UserError, which names the file, when it is none.

    It goes through a temporary file, because polib would split text in memory at U+2028 and NEL, which belong to
    messages.
    """
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        try:
            return list(polib.pofile(file.name, encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = str(error).replace(file.name, "").strip()
            raise UserError(f"{where}: is not a PO file ({reason})") from None


def why_not(entry: polib.POEntry) -> str | None:
    """Why a message is left out, or None."""
    if entry.obsolete:
        return "obsolete message"
    if entry.fuzzy:
        return "fuzzy message"
    if entry.msgid_plural:
        return "plural message"
    if not entry.msgstr:
        return "untranslated message"
    if not entry.occurrences:
        return "message without a page"
    return None
