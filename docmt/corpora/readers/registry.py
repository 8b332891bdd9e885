"""All corpus formats. To add one, write its class in a new file, and list it below or in `document_formats`."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from docmt.corpora.readers import cloze_suite, suite_formats
from docmt.corpora.readers.document_formats import DocumentFormats
from docmt.corpora.readers.reader import CorpusFormat, DocumentFormat, Files, FormatName, ReaderResult, SuiteFormat
from docmt.errors import UserError


class PlainFiles(CorpusFormat):
    """Files that are only fetched: treebanks, and metadata of test sets."""

    holds = "files"

    reader: FormatName[Literal["files"]]


_Formats = (
    DocumentFormats
    | suite_formats.VoitaSuite
    | suite_formats.ContraProSuite
    | suite_formats.BawdenSuite
    | cloze_suite.ClozeSuite
    | suite_formats.JsonSuite
    | suite_formats.CtxproGenerative
    | suite_formats.ContraProGenerative
    | suite_formats.JsonGenerative
    | PlainFiles
)

FORMATS: dict[str, type[CorpusFormat]] = {}
for _form in get_args(_Formats):
    FORMATS[get_args(_form.model_fields["reader"].annotation)[0]] = _form
Format = Annotated[_Formats, Field(discriminator="reader")]


def can_read(form: CorpusFormat, *, n_languages: int) -> bool:
    """True if a format contains documents (or sentence pairs) in this number of languages."""
    return isinstance(form, DocumentFormat) and n_languages in form.n_languages


def read(files: Files, *, form: CorpusFormat, languages: Sequence[str]) -> ReaderResult:
    """Read the documents in files of a format."""
    if isinstance(form, DocumentFormat) and can_read(form, n_languages=len(languages)):
        return form.read(files, languages)
    if len(languages) == 1:
        names = []
        for name, other in FORMATS.items():
            if issubclass(other, DocumentFormat) and 1 in other.n_languages:
                names.append(name)
        raise UserError(f"format {form.reader}: does not support documents in one language; use {', '.join(names)}")
    hint = "use `docmt corpora convert-suite`" if isinstance(form, SuiteFormat) else "use the files unchanged"
    raise UserError(f"format {form.reader}: contains no parallel documents: {hint}")
