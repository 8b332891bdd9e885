"""Stand-ins for a model: plain functions over documents, and files packed as office programs pack them."""

import io
import zipfile

from docmt.formats.file_translation import fill_file
from docmt.formats.registry import open_file
from docmt.formats.translatable_file import Languages

EN_DE = Languages("en", "de")
PARTS = {"docx": "word/document.xml", "odt": "content.xml"}


def shout(documents):
    """A translation whose every word is new, and whose marks and length are the same."""
    return [[sentence.upper() for sentence in document] for document in documents]


def translated(path, data, translate=shout, *, languages=EN_DE, name=None, **options):
    """A file's bytes after translation, and the counts."""
    file = open_file(path, data, languages=languages, name=name)
    counts = fill_file(file, translate, **options)
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
