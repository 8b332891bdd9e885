"""All formats of corpora. A new format is a new file with its class, and a line in the union below."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from docmt.corpora.readers import (
    gettext,
    json_files,
    lines,
    sgml,
    subtitle_pairs,
    suite_formats,
    tabular,
    translation_memories,
    treebank_text,
    verses,
)
from docmt.corpora.readers.reader import CorpusFormat, DocumentFormat, Files, FormatName, ReaderResult, SuiteFormat
from docmt.errors import UserError


class PlainFiles(CorpusFormat):
    """Files that are fetched but not read as text: treebanks, and further facts on test sets."""

    holds = "files"

    reader: FormatName[Literal["files"]]


Format = Annotated[
    lines.MarkedLines
    | lines.BlankLines
    | lines.DocumentFiles
    | lines.SingleLines
    | lines.IndexedLines
    | sgml.Segments
    | sgml.WmtXml
    | sgml.IwsltTrain
    | json_files.DialogueJson
    | tabular.DialogueCsv
    | json_files.JsonLines
    | gettext.PoPages
    | gettext.PoFiles
    | verses.Verses
    | translation_memories.Tmx
    | tabular.TsvLines
    | tabular.NamedLines
    | tabular.ParaDocs
    | tabular.ParquetTable
    | subtitle_pairs.SrtPairs
    | treebank_text.Conllu
    | suite_formats.VoitaSuite
    | suite_formats.ContraProSuite
    | suite_formats.BawdenSuite
    | suite_formats.ClozeSuite
    | suite_formats.JsonSuite
    | suite_formats.CtxproGenerative
    | suite_formats.ContraProGenerative
    | suite_formats.JsonGenerative
    | PlainFiles,
    Field(discriminator="reader"),
]

# Its documents can have any format.
suite_formats.ClozeSuite.model_rebuild(_types_namespace={"Format": Format})

FORMATS: dict[str, type[CorpusFormat]] = {
    get_args(each.model_fields["reader"].annotation)[0]: each for each in get_args(get_args(Format)[0])
}


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
