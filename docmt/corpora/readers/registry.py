"""All formats of corpora. A new one is a file with its class, and a line below or in `document_formats`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator

from docmt.corpora.readers import cloze_suite, suite_formats
from docmt.corpora.readers.document_formats import DocumentFormats
from docmt.corpora.readers.reader import CorpusFormat, DocumentFormat, Files, FormatName, ReaderResult, SuiteFormat
from docmt.errors import UserError
from docmt.plugins import Registry


class PlainFiles(CorpusFormat):
    """Files fetched but not read as text: treebanks, and facts on test sets."""

    holds = "files"

    reader: FormatName[Literal["files"]]


_BuiltIn = (
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

FORMATS: dict[str, type[CorpusFormat]] = {
    get_args(each.model_fields["reader"].annotation)[0]: each for each in get_args(_BuiltIn)
}
READERS = Registry("docmt.readers", "reader", type, FORMATS)
"""The formats of docmt and of installed packages."""


def _format_of(value: Any, built_in: ValidatorFunctionWrapHandler) -> CorpusFormat:
    name = value.get("reader") if isinstance(value, dict) else None
    # Other packages are only imported for names that docmt does not have: a broken one must not break these.
    if isinstance(name, str) and name not in FORMATS and (added := READERS.all.get(name)):
        return added.model_validate(value)
    return built_in(value)


# `SerializeAsAny`, since the union does not list the formats of packages.
Format = SerializeAsAny[Annotated[_BuiltIn, Field(discriminator="reader"), WrapValidator(_format_of)]]


def can_read(form: CorpusFormat, *, n_languages: int) -> bool:
    """Whether a format holds documents (or sentence pairs) in one language, or two."""
    return isinstance(form, DocumentFormat) and n_languages in form.n_languages


def read(files: Files, *, form: CorpusFormat, languages: Sequence[str]) -> ReaderResult:
    """Read the documents of a format.

    Raises UserError when the files are bad, or the format holds no documents in this number of languages.
    """
    if isinstance(form, DocumentFormat) and can_read(form, n_languages=len(languages)):
        return form.read(files, languages)
    if len(languages) == 1:
        documents = {name: each for name, each in FORMATS.items() if issubclass(each, DocumentFormat)}
        known = ", ".join(name for name, each in documents.items() if 1 in each.n_languages)
        raise UserError(f"format {form.reader}: cannot hold documents in one language; use {known}")
    hint = "use `docmt corpora suite`" if isinstance(form, SuiteFormat) else "use the files unchanged"
    raise UserError(f"format {form.reader}: contains no parallel documents: {hint}")
