"""All document formats. To add one, write its class in a new file, and list it below."""

from typing import Annotated

from pydantic import Field

from docmt.corpora.readers import gettext, lines, sgml, tabular, translated_files, verses

DocumentFormats = (
    lines.MarkedLines
    | lines.BlankLines
    | lines.DocumentFiles
    | lines.SingleLines
    | lines.IndexedLines
    | sgml.Segments
    | sgml.WmtXml
    | sgml.IwsltTrain
    | tabular.DialogueJson
    | tabular.DialogueCsv
    | tabular.JsonLines
    | gettext.PoPages
    | gettext.PoFiles
    | verses.Verses
    | translated_files.Tmx
    | tabular.TsvLines
    | tabular.NamedLines
    | tabular.ParaDocs
    | tabular.ParquetTable
    | translated_files.SrtPairs
    | lines.Conllu
)
Documents = Annotated[DocumentFormats, Field(discriminator="reader")]
