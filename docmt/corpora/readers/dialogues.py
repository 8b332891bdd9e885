"""Dialogues as JSON (BConTrasT) or CSV, and documents as JSON lines."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import iterate_jsonl, read_json, read_text
from docmt.settings import Settings


class DialogueJson(Settings):
    """One file (role `both`): `{dialogue: [{speaker, source, target}, …]}`, as in BConTrasT."""

    reader: Literal["dialogue_json"]
    """Name of the format."""
    reversed_speakers: list[str] = Field(default=[])
    """Speakers whose `source` is in the target language: their sides are swapped, so that the whole corpus has one
    direction."""


class DialogueCsv(Settings):
    """One file (role `both`): rows with the dialogue's id and both sides, a header line first."""

    reader: Literal["dialogue_csv"]
    """Name of the format."""
    id: str = "id"
    """Column of the dialogue's id; the rows of a dialogue must be consecutive."""
    source: str = "source"
    """Column of the source sentence."""
    target: str = "target"
    """Column of the target sentence."""
    delimiter: str = Field(default=",", pattern=r'^[^\r\n"]$')
    """The character between cells."""


class JsonLines(Settings):
    """One file (role `both`): one JSON object per line and document, `{"id", "src": […], "tgt": […]}`."""

    reader: Literal["jsonl"]
    """Name of the format."""


def read_dialogue_json(files: Mapping[str, Path], *, form: DialogueJson, languages: Sequence[str]) -> ReaderResult:
    """Read dialogues in JSON. Raises UserError that names the malformed dialogue or utterance."""
    path = pick(files, "both", form.reader)
    dialogues = read_json(path)
    if not isinstance(dialogues, dict):
        raise UserError(f"{path}: must be an object of dialogues, not {type(dialogues).__name__}")
    collector = Collector()
    for name, utterances in dialogues.items():
        if not isinstance(utterances, list):
            raise UserError(f"{path}: dialogue {name} is not a list of utterances")
        collector.add(
            name, [_utterance(u, form, f"{path}: dialogue {name}, utterance {i}") for i, u in enumerate(utterances)]
        )
    return collector.result(if_empty=f"{path}: contains no sentences")


def _utterance(utterance: Any, form: DialogueJson, where: str) -> tuple[str, str]:
    source, target = (utterance.get("source"), utterance.get("target")) if isinstance(utterance, dict) else (None, None)
    if not (isinstance(source, str) and isinstance(target, str)):
        raise UserError(f"{where}: `source` and `target` must be text")
    return (target, source) if utterance.get("speaker") in form.reversed_speakers else (source, target)


def read_dialogue_csv(files: Mapping[str, Path], *, form: DialogueCsv, languages: Sequence[str]) -> ReaderResult:
    """Read dialogues in CSV. Raises UserError on a missing column, a short row, or a dialogue that is split up."""
    path = pick(files, "both", form.reader)
    # newline="" leaves line ends to the csv module, which handles quoted ones; neither splits at U+2028.
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
                raise UserError(
                    f"{path}: line {reader.line_num}: dialogue {name} continues after another one: sort the rows"
                )
            dialogues.setdefault(name, []).append((source, target))
            last = name
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num} is not CSV ({error})") from None
    collector = Collector()
    for name, pairs in dialogues.items():
        collector.add(name, pairs)
    return collector.result(if_empty=f"{path}: contains no sentences")


def read_json_lines(files: Mapping[str, Path], *, form: JsonLines, languages: Sequence[str]) -> ReaderResult:
    """Read documents as JSON lines: `src` and `tgt` of each, or, for one language, `sentences`.

    Raises UserError that names the line, and the document when a side is malformed or the sides differ in length.
    """
    is_parallel = len(languages) == 2
    keys = ("src", "tgt") if is_parallel else ("sentences",)
    path = pick(files, "both" if is_parallel else languages[0], form.reader)
    collector = Collector()
    for number, value in enumerate(iterate_jsonl(path), start=1):
        where = f"{path}: line {number}"
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            raise UserError(f"{where}: must be an object with {', '.join(f'`{key}`' for key in ('id', *keys))}")
        sides = []
        for key in keys:
            side = value.get(key)
            if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
                raise UserError(f"{where}: document {value['id']}: `{key}` must be a list of sentences")
            sides.append(side)
        if len({len(side) for side in sides}) > 1:
            counts = f"{len(sides[0])} source and {len(sides[1])} target sentences"
            raise UserError(f"{where}: document {value['id']}: {counts}")
        collector.add(value["id"], zip(*sides, strict=True))
    return collector.result(if_empty=f"{path}: contains no sentences")
