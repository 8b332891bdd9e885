"""Corpora of mtdata (Gowda et al. 2021), fetched by the Python package mtdata in a separate environment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from docmt.corpora.catalog import ReadableCorpus, Split
from docmt.corpora.readers.reader import SPACES
from docmt.corpora.readers.tabular import TsvLines
from docmt.errors import UserError
from docmt.files import write_json, write_lines
from docmt.languages import language_of
from docmt.settings import Settings, UserPath

SPLIT = "all"
"""Name of the only split of a corpus."""
PROGRAM = Path(__file__).with_name("mtdata_program.py")
DatasetId = Annotated[str, Field(pattern=r"^[\w.+]+(-[\w.+]+){4}$")]


class MtdataCorpus(Settings):
    """A dataset of mtdata. It becomes a corpus with the split `all` (docs/cleaning.md)."""

    id: DatasetId
    """Name in mtdata, for example `Statmt-europarl-10-deu-eng`."""
    documents: Annotated[str, Field(pattern=r"^[\w.+-]+$")] | None = None
    """Document boundaries: a metadata field, such as `doc_id`, or `blank_lines`. Default: every pair is a document."""
    python: UserPath | None = None
    """Python of an environment with mtdata (`workflow/envs/mtdata.yml`). Default: the Python that runs docmt."""

    @property
    def dataset_id(self) -> str:
        """Dataset and document boundaries, for example `Statmt-europarl-10-deu-eng/doc_id`."""
        return f"{self.id}/{self.documents or 'pairs'}"

    @property
    def file(self) -> str:
        """Path of the fetched text, a table with the columns document, source and target."""
        return f"resources/corpora/mtdata/{self.dataset_id}.tsv"

    def as_corpus(self) -> ReadableCorpus:
        """Return the corpus with languages, format and files, for readers."""
        languages = [language_of(code) for code in self.id.split("-")[3:]]
        form = TsvLines(reader="tsv", id_column=1, columns=[2, 3])
        return ReadableCorpus(languages=languages, format=form, splits={SPLIT: Split(files={"both": self.file})})


def fetch_mtdata(corpus: MtdataCorpus, out: Path, *, python: str | None = None) -> None:
    """Write the text of a dataset to `out`, and web addresses and citations to a `.json` file of the same name.

    mtdata keeps downloads in the folder `MTDATA` (default `~/.mtdata`) and reuses them. `python` overrides the
    interpreter of the corpus.
    """
    # Python gets the text of the program, because it would search the folder of a file for modules.
    command = [python or corpus.python or sys.executable, "-c", PROGRAM.read_text(encoding="utf-8"), corpus.id]
    # The program cannot import packages of docmt, and writes UTF-8 on every machine.
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONPATH", None)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    except OSError as error:
        raise UserError(f"corpora.mtdata: {command[0]}: cannot be started ({error.strerror})") from None
    with process:
        assert process.stdout is not None
        values = _read_values(process.stdout, corpus)
        origin = next(values, None)
        if origin is not None:
            write_lines(out, _table(values, corpus, process))
            write_json(out.with_suffix(".json"), origin)
    if origin is None:
        raise _failure(corpus)


def _read_values(lines: Iterable[str], corpus: MtdataCorpus) -> Iterator[Any]:
    """Yield the values that the program prints. Raises UserError for an error."""
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:  # the program was killed
            raise _failure(corpus) from None
        if isinstance(value, dict) and "error" in value:
            raise UserError(f"corpora.mtdata: {corpus.id} {' '.join(value['error'].split())}")
        yield value


def _failure(corpus: MtdataCorpus) -> UserError:
    return UserError(
        f"corpora.mtdata: {corpus.id} cannot be fetched (see above): create an environment from "
        "workflow/envs/mtdata.yml, and set `python` to its Python"
    )


def _table(rows: Iterator[list[Any]], corpus: MtdataCorpus, process: subprocess.Popen) -> Iterator[str]:
    """Yield rows of document, source and target. Raises UserError if the process fails."""
    n_blocks = 0
    documents = corpus.documents
    for number, (src, tgt, *more) in enumerate(rows, start=1):
        src = SPACES.sub(" ", src or "")
        tgt = SPACES.sub(" ", tgt or "")
        if documents == "blank_lines":
            if not (src or tgt):
                n_blocks += 1
                continue
            name = f"{n_blocks + 1:06d}"
        elif documents is not None:
            fields = more[0] if more else {}
            if documents not in fields:
                names = ", ".join(fields) or "none"
                process.kill()
                raise UserError(f"corpora.mtdata: row {number} has no field {documents!r}; its fields: {names}")
            name = SPACES.sub(" ", str(fields[documents]))
        else:
            name = f"{number:08d}"
        yield f"{name}\t{src}\t{tgt}"
    if process.wait():
        raise _failure(corpus)
