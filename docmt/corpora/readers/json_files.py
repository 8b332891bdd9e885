"""Documents in JSON: the dialogues of BConTrasT, and JSON lines."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from typing_extensions import override

from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import iterate_jsonl, read_json


class DialogueJson(DocumentFormat):
    """One file (role `both`): `{dialogue: [{speaker, source, target}, …]}`, as in BConTrasT."""

    reader: FormatName[Literal["dialogue_json"]]
    reversed_speakers: list[str] = Field(default=[])
    """Speakers whose `source` is in the target language: their sides are swapped."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        dialogues = read_json(path)
        if not isinstance(dialogues, dict):
            raise UserError(f"{path}: must be an object of dialogues, not {type(dialogues).__name__}")
        collector = DocumentCollector()
        for name, utterances in dialogues.items():
            if not isinstance(utterances, list):
                raise UserError(f"{path}: dialogue {name} is not a list of utterances")
            where = f"{path}: dialogue {name}, utterance"
            rows: list[tuple[str, str]] = []
            for number, utterance in enumerate(utterances):
                match utterance:
                    case {"source": str(src), "target": str(tgt)}:
                        rows.append((tgt, src) if utterance.get("speaker") in self.reversed_speakers else (src, tgt))
                    case _:
                        raise UserError(f"{where} {number}: `source` and `target` must be text")
            collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no sentences")


class JsonLines(DocumentFormat):
    """One file (role `both`): one JSON object per line and document, `{"id", "src": […], "tgt": […]}`."""

    n_languages = (1, 2)

    reader: FormatName[Literal["jsonl"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        is_parallel = len(languages) == 2
        keys = ("src", "tgt") if is_parallel else ("sentences",)
        path = self.pick(files, "both" if is_parallel else languages[0])
        collector = DocumentCollector()
        for number, value in enumerate(iterate_jsonl(path), start=1):
            where = f"{path}: line {number}"
            if not isinstance(value, dict) or not isinstance(value.get("id"), str):
                raise UserError(f"{where}: must be an object with {', '.join(f'`{key}`' for key in ('id', *keys))}")
            sides = [value.get(key, "") for key in keys]
            for key, side in zip(keys, sides, strict=True):
                if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
                    raise UserError(f"{where}: document {value['id']}: `{key}` must be a list of sentences")
            if len({len(side) for side in sides}) > 1:
                counts = f"{len(sides[0])} source and {len(sides[1])} target sentences"
                raise UserError(f"{where}: document {value['id']}: {counts}")
            collector.add(value["id"], zip(*sides, strict=True))
        return collector.result(if_empty=f"{path}: contains no sentences")
