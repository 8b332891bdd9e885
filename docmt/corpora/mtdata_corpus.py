"""Corpora of mtdata (Gowda et al. 2021) by their names: fetched by its Python package, in an environment of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from docmt.corpora.catalog import ReadableCorpus, Split
from docmt.corpora.readers.reader import SPACES
from docmt.corpora.readers.tabular import TsvLines
from docmt.errors import UserError
from docmt.files import write_json, write_lines
from docmt.languages import language_of
from docmt.settings import Settings, UserPath

SPLIT = "all"
"""The only split of such a corpus."""
PROGRAM = Path(__file__).with_name("mtdata_program.py")
DatasetId = Annotated[str, Field(pattern=r"^[^-\s/]+-[^-\s/]+-[^-\s/]+-[^-\s/]+-[^-\s/]+$")]


class MtdataCorpus(Settings):
    """A dataset of mtdata as a corpus with the split `all`."""

    id: DatasetId
    """Name in mtdata, such as `Statmt-europarl-10-deu-eng`."""
    documents: Literal["blank_lines"] | str | None = None
    """Document boundaries: a field of the metadata, such as `doc_id`, or `blank_lines`; null: each pair by itself."""
    python: UserPath | None = None
    """Python of the environment that has mtdata (`workflow/envs/mtdata.yml`); null means docmt's own."""

    @property
    def file(self) -> str:
        """The fetched text as a table: document, source, target."""
        return f"resources/corpora/mtdata/{self.id}/{self.documents or 'pairs'}.tsv"

    def as_corpus(self) -> ReadableCorpus:
        """Return the description for readers."""
        languages = [language_of(code) for code in self.id.split("-")[3:]]
        form = TsvLines(reader="tsv", id_column=1, columns=[2, 3])
        return ReadableCorpus(languages=languages, format=form, splits={SPLIT: Split(files={"both": self.file})})


def fetch_mtdata(corpus: MtdataCorpus, out: Path, *, python: str | None = None) -> None:
    """Fetch a dataset. Write the text to `out`, and URLs and citations to a `.json` file next to it.

    mtdata caches downloads in the folder `MTDATA` (default `~/.mtdata`). `python` overrides `corpus.python`.
    """
    # As text, because Python would search a program's folder for modules first.
    command = [python or corpus.python or sys.executable, "-c", PROGRAM.read_text(encoding="utf-8"), corpus.id]
    # Without docmt's packages, and with UTF-8 output in every locale.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONIOENCODING"] = "utf-8"
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    except OSError as error:
        raise UserError(f"corpora.mtdata: {command[0]}: cannot be started ({error.strerror})") from None
    with process:
        assert process.stdout is not None
        lines = map(json.loads, process.stdout)
        if (origin := next(lines, None)) is not None:
            write_lines(out, _table(lines, corpus, process))
            write_json(out.with_suffix(".json"), origin)
    if origin is None:
        raise _failure(corpus)


def _failure(corpus: MtdataCorpus) -> UserError:
    return UserError(
        f"corpora.mtdata: {corpus.id} cannot be fetched, see above; mtdata needs an environment of its own "
        "(workflow/envs/mtdata.yml), whose Python is given as `python`"
    )


def _table(rows: Iterator[list[Any]], corpus: MtdataCorpus, process: subprocess.Popen) -> Iterator[str]:
    """Yield tab-separated lines with document, source and target. Raises UserError if the process fails."""
    n_blocks, documents = 0, corpus.documents
    for number, (src, tgt, *more) in enumerate(rows, start=1):
        src, tgt = (SPACES.sub(" ", side or "") for side in (src, tgt))
        if documents == "blank_lines":
            n_blocks += not (src or tgt)
            if not (src or tgt):
                continue
            name = f"{n_blocks + 1:06d}"
        elif documents is not None:
            fields = more[0] if more else {}
            if documents not in fields:
                known = ", ".join(fields) or "none"
                process.kill()
                raise UserError(f"corpora.mtdata: row {number} has no field {documents!r}; its fields: {known}")
            name = SPACES.sub(" ", str(fields[documents]))
        else:
            name = f"{number:08d}"
        yield f"{name}\t{src}\t{tgt}"
    if process.wait():
        raise _failure(corpus)
