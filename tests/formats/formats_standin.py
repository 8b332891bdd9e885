"""Stand-ins for a model: plain functions over documents, and files packed as office programs pack them."""

import io
import re
import zipfile

import numpy as np

from docmt.formats.file_translation import fill_file
from docmt.formats.registry import open_file
from docmt.formats.tag_placement import WordAlignment
from docmt.formats.translatable_file import Languages

EN_DE = Languages("en", "de")
PARTS = {"docx": "word/document.xml", "odt": "content.xml"}


def shout(documents):
    """A translation whose every word is new, and whose marks and length are the same."""
    return [[sentence.upper() for sentence in document] for document in documents]


def forget(documents):
    """As `shout`, but all marks are lost."""
    return [[re.sub(r"\{\d+\}", "", sentence) for sentence in document] for document in shout(documents)]


def word_for_word(pairs):
    """Alignments of the first word with the first, the second with the second, …"""
    found = []
    for pair in pairs:
        src, tgt = ([word.span() for word in re.finditer(r"\w+|[^\w\s]", text)] for text in pair)
        found.append(WordAlignment(src, tgt, np.eye(len(tgt), len(src))))
    return found


def translated(path, data, translate=shout, align=None, *, languages=EN_DE, name=None, **options):
    """A file's bytes after translation, and the counts."""
    file = open_file(path, data, languages=languages, name=name)
    counts = fill_file(file, translate, align, **options)
    return file.translated(), counts


def packed(content: bytes, suffix: str) -> bytes:
    """An office file around one XML part."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), b"application/x")
        archive.writestr(PARTS[suffix], content)
        archive.writestr("media/picture.png", bytes(range(256)))
    return stream.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """The files of an archive, in order."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}
