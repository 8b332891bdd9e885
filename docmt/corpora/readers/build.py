"""The formats, and the reader of each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from docmt.corpora.readers import (
    dialogues,
    lines,
    memories,
    monolingual,
    pages,
    po_files,
    segments,
    subtitles,
    tables,
    verses,
)
from docmt.corpora.readers.collector import ReaderResult
from docmt.corpora.readers.monolingual import MONOLINGUAL_READERS
from docmt.errors import UserError
from docmt.settings import Settings


class VoitaSuite(Settings):
    """Contrastive sets of Voita et al. 2019: one JSON list per phenomenon (the roles are the phenomena)."""

    reader: Literal["voita_suite"]
    """Name of the format."""


class ContraProSuite(Settings):
    """ContraPro as lines for scoring (roles `en` and `de`): `previous sentence <SEP> sentence`, a variant per line.

    The role `fields` adds the distances of items that are also in JSON files of ContraPro.
    """

    reader: Literal["contrapro_suite"]
    """Name of the format."""


class BawdenSuite(Settings):
    """Contrastive sets of Bawden et al. 2018: JSON of example blocks (the roles are the phenomena)."""

    reader: Literal["bawden_suite"]
    """Name of the format."""


class JsonSuite(Settings):
    """Contrastive items in docmt's own format (role `items`), see docs/files.md."""

    reader: Literal["jsonl_suite"]
    """Name of the format."""


class CtxproGenerative(Settings):
    """ctxpro: JSON of items (role `items`), and a line of sentences per item, the payload last (role `inputs`)."""

    reader: Literal["ctxpro_generative"]
    """Name of the format."""
    phenomenon: str
    """What the items test, such as `formality`."""


class ContraProGenerative(Settings):
    """ContraPro, read as `contrapro_suite`: a translation is right if it has the reference's pronoun."""

    reader: Literal["contrapro_generative"]
    """Name of the format."""


class JsonGenerative(Settings):
    """Generative items in docmt's own format (role `items`), see docs/files.md."""

    reader: Literal["jsonl_generative"]
    """Name of the format."""


class PlainFiles(Settings):
    """Files that are fetched but not read as text: treebanks, and further facts on test sets."""

    reader: Literal["files"]
    """Name of the format."""


Format = Annotated[
    lines.MarkedLines
    | lines.BlankLines
    | lines.SingleLines
    | lines.IndexedLines
    | segments.Segments
    | segments.WmtXml
    | segments.IwsltTrain
    | dialogues.DialogueJson
    | dialogues.DialogueCsv
    | dialogues.JsonLines
    | pages.PoPages
    | po_files.PoFiles
    | verses.Verses
    | memories.Tmx
    | tables.TsvLines
    | tables.NamedLines
    | tables.ParquetTable
    | subtitles.SrtPairs
    | monolingual.Conllu
    | VoitaSuite
    | ContraProSuite
    | BawdenSuite
    | JsonSuite
    | CtxproGenerative
    | ContraProGenerative
    | JsonGenerative
    | PlainFiles,
    Field(discriminator="reader"),
]

READERS: dict[str, Callable[..., ReaderResult]] = {
    "marked_lines": lines.read_marked_lines,
    "blank_lines": lines.read_blank_lines,
    "single_lines": lines.read_single_lines,
    "indexed_lines": lines.read_indexed_lines,
    "segments": segments.read_segments,
    "wmt_xml": segments.read_wmt_xml,
    "iwslt_train": segments.read_iwslt_train,
    "dialogue_json": dialogues.read_dialogue_json,
    "dialogue_csv": dialogues.read_dialogue_csv,
    "jsonl": dialogues.read_json_lines,
    "po_pages": pages.read_po_pages,
    "po_files": po_files.read_po_files,
    "verses": verses.read_verses,
    "tmx": memories.read_tmx,
    "tsv": tables.read_tsv,
    "named_lines": tables.read_named_lines,
    "parquet": tables.read_parquet,
    "srt_pairs": subtitles.read_srt_pairs,
}


def read(files: Mapping[str, Path], *, form: Format, languages: Sequence[str]) -> ReaderResult:
    """Read the documents of a format; the roles of its files are languages, `both` or `index`.

    Raises UserError when the files are bad, or the format cannot hold documents of so many languages.
    """
    readers = MONOLINGUAL_READERS if len(languages) == 1 else READERS
    if form.reader not in readers:
        if len(languages) == 1:
            known = ", ".join(MONOLINGUAL_READERS)
            raise UserError(f"format {form.reader}: cannot hold documents in one language; use {known}")
        is_suite = form.reader.endswith(("_suite", "_generative"))
        hint = "use `docmt corpora suite`" if is_suite else "use the files unchanged"
        raise UserError(f"format {form.reader}: contains no parallel documents: {hint}")
    return readers[form.reader](files, form=form, languages=languages)
