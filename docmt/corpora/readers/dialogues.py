"""Dialogues as JSON (BConTrasT) or CSV, and documents as JSON lines."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from docmt.corpora.documents import Document
from docmt.corpora.readers.collector import Collector, Counts
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import read_json, read_jsonl, read_text
from docmt.settings import Settings


class DialogueJson(Settings):
    """One file (role `both`): `{dialogue: [{speaker, source, target}, …]}`, as in BConTrasT."""

    reader: Literal["dialogue_json"]
    """Name of the format."""
    reversed_speakers: list[str] = Field(default=[])
    """Speakers whose `source` is in the target language: their sides are swapped, so that the corpus has one
    direction."""


class DialogueCsv(Settings):
    """One file (role `both`): rows with the dialogue's id and both sides, a header line first."""

    reader: Literal["dialogue_csv"]
    """Name of the format."""
    id: str = "id"
    """Column of the dialogue's id; rows of a dialogue stand together."""
    source: str = "source"
    """Column of the source sentence."""
    target: str = "target"
    """Column of the target sentence."""
    delimiter: str = ","
    """What stands between cells, one character."""


class JsonLines(Settings):
    """One file (role `both`): one JSON object per line and document, `{"id", "src": […], "tgt": […]}`."""

    reader: Literal["jsonl"]
    """Name of the format."""


def read_dialogue_json(
    files: Mapping[str, Path], *, form: DialogueJson, languages: tuple[str, str]
) -> tuple[list[Document], Counts]:
    """Read dialogues in JSON. Raises UserError that names the dialogue and the utterance that is malformed."""
    path = pick(files, "both", form.reader)
    dialogues = read_json(path)
    if not isinstance(dialogues, dict):
        raise UserError(f"{path}: an object of dialogues is needed, not {type(dialogues).__name__}")
    collector = Collector()
    for name, utterances in dialogues.items():
        if not isinstance(utterances, list):
            raise UserError(f"{path}: dialogue {name} is not a list of utterances")
        collector.add(
            name, [_utterance(u, form, f"{path}: dialogue {name}, utterance {i}") for i, u in enumerate(utterances)]
        )
    return _result(collector, path)


def _utterance(utterance: Any, form: DialogueJson, where: str) -> tuple[str, str]:
    cells = [utterance.get(key) for key in ("source", "target")] if isinstance(utterance, dict) else [None]
    if not all(isinstance(cell, str) for cell in cells):
        raise UserError(f"{where}: `source` and `target` must be text")
    source, target = cells
    return (target, source) if utterance.get("speaker") in form.reversed_speakers else (source, target)


def read_dialogue_csv(
    files: Mapping[str, Path], *, form: DialogueCsv, languages: tuple[str, str]
) -> tuple[list[Document], Counts]:
    """Read dialogues in CSV. Raises UserError on a missing column, a short row, or a dialogue in two places."""
    path = pick(files, "both", form.reader)
    # newline="" leaves line ends to the csv module, which knows quoted ones; U+2028 is no line end to either.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=form.delimiter, strict=True)
    dialogues: dict[str, list[tuple[str, str]]] = {}
    last = None
    try:
        header = next(reader, [])
        missing = [name for name in (form.id, form.source, form.target) if name not in header]
        if missing:
            raise UserError(f"{path}: line 1 has no column {missing[0]!r}; it has {', '.join(header) or 'none'}")
        places = [header.index(name) for name in (form.id, form.source, form.target)]
        for row in reader:
            if len(row) != len(header):
                raise UserError(f"{path}: line {reader.line_num} has {len(row)} cells, the header has {len(header)}")
            name, source, target = (row[place] for place in places)
            if name != last and name in dialogues:
                raise UserError(f"{path}: line {reader.line_num}: dialogue {name} goes on after another one: sort them")
            dialogues.setdefault(name, []).append((source, target))
            last = name
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num} is not CSV ({error})") from None
    collector = Collector()
    for name, pairs in dialogues.items():
        collector.add(name, pairs)
    return _result(collector, path)


def read_json_lines(
    files: Mapping[str, Path], *, form: JsonLines, languages: tuple[str, str]
) -> tuple[list[Document], Counts]:
    """Read documents as JSON lines. Raises UserError that names the line, and the document when its sides differ."""
    path = pick(files, "both", form.reader)
    collector = Collector()
    for number, value in enumerate(read_jsonl(path), start=1):
        where = f"{path}: line {number}"
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            raise UserError(f'{where}: an object with "id", "src" and "tgt" is needed')
        src, tgt = value.get("src"), value.get("tgt")
        for side in (src, tgt):
            if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
                raise UserError(f"{where}: document {value['id']}: `src` and `tgt` must be lists of sentences")
        if len(src) != len(tgt):
            raise UserError(f"{where}: document {value['id']}: {len(src)} source and {len(tgt)} target sentences")
        collector.add(value["id"], zip(src, tgt, strict=True))
    return _result(collector, path)


def _result(collector: Collector, path: Path) -> tuple[list[Document], Counts]:
    if not collector.documents:
        raise UserError(f"{path}: holds no sentences")
    return collector.documents, collector.counts
