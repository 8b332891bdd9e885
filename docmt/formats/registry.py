"""The formats by name, and the format of a file."""

import importlib
from pathlib import Path

from docmt.errors import UserError
from docmt.formats.file_segments import TooManyMarksError
from docmt.formats.translatable_file import Languages, TranslatableFile

# Modules and classes of the formats, by name; modules are imported on first use, the slowest last.
FORMATS = {
    "text": "plain_text.TextParagraphs",
    "lines": "plain_text.PlainLines",
    "srt": "subtitle_files.SrtFile",
    "vtt": "subtitle_files.VttFile",
    "po": "po.PoFile",
    "xliff": "xliff.XliffFile",
    "tmx": "tmx.TmxFile",
    "html": "html_pages.HtmlFile",
    "docx": "office.DocxFile",
    "odt": "office.OdtFile",
    "markdown": "markdown.MarkdownFile",
}


def find_format(path: Path, name: str | None = None) -> type[TranslatableFile]:
    """The class of a format, by its name or by the suffix of a file."""
    if name is not None:
        return _load(name)
    for known in FORMATS:
        if path.suffix.lower() in _load(known).suffixes:
            return _load(known)
    raise UserError(f"{path}: unknown kind of file: name it with --format {' | '.join(FORMATS)}")


def _load(name: str) -> type[TranslatableFile]:
    module, _, cls = FORMATS[name].partition(".")
    return getattr(importlib.import_module(f"docmt.formats.{module}"), cls)


def open_file(path: Path, data: bytes, *, languages: Languages, name: str | None = None) -> TranslatableFile:
    """Read the bytes of a file; without a name, its suffix decides the format."""
    try:
        return find_format(path, name)(data, where=str(path), languages=languages)
    except TooManyMarksError as error:
        raise UserError(f"{path}: {error}") from None
