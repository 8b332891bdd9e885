"""The formats, and which one a file has."""

import importlib
from pathlib import Path

from docmt.errors import UserError
from docmt.formats.files import Languages, TranslatableFile

FORMATS = {
    "text": "text.TextParagraphs",
    "lines": "text.PlainLines",
    "srt": "subtitles.SrtFile",
    "vtt": "subtitles.VttFile",
    "po": "po.PoFile",
    "xliff": "xliff.XliffFile",
    "tmx": "tmx.TmxFile",
    "html": "web.HtmlFile",
    "docx": "word.DocxFile",
    "odt": "opendocument.OdtFile",
    "markdown": "markdown.MarkdownFile",
}
"""Each format with its class, whose module is imported when it is needed; the slowest to import is last."""


def find_format(path: Path, name: str | None = None) -> type[TranslatableFile]:
    """The class of a format, by its name or by the suffix of a file. Raises UserError when there is none."""
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
    """Read the bytes of a file. Raises UserError when its format is unknown, or it is not of that format."""
    return find_format(path, name)(data, where=str(path), languages=languages)
