"""Translating files by their formats (docs/translation.md)."""

from pathlib import Path

from docmt.decoding.translation import Translator
from docmt.files import read_bytes, write_bytes
from docmt.formats.build import open_file
from docmt.formats.files import Languages
from docmt.formats.translation import FileCounts, fill_file


def translate_file(
    translator: Translator, path: Path | str, out: Path | str, *, form: str | None = None, with_context: bool = True
) -> FileCounts:
    """Translate a file into another, which differs only where text was translated.

    Args:
        translator: a model ready to translate.
        path: the file.
        out: where to write; an existing file is replaced once the new one is whole.
        form: its format; by default, its suffix decides.
        with_context: whether sentences are translated as documents, or each by itself.

    Raises:
        UserError: the file is not of the format.
    """
    data, counts = translate_bytes(translator, read_bytes(Path(path)), Path(path), form=form, with_context=with_context)
    write_bytes(Path(out), data)
    return counts


def translate_bytes(
    translator: Translator, data: bytes, path: Path, *, form: str | None = None, with_context: bool = True
) -> tuple[bytes, FileCounts]:
    """As `translate_file`, of the content of a file whose name is `path`."""
    pipeline = translator.trained.pipeline
    file = open_file(path, data, languages=Languages(pipeline.src_lang, pipeline.tgt_lang), name=form)
    counts = fill_file(file, translator.translate_documents, with_context=with_context)
    return file.translated(), counts
