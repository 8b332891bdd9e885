"""Documents of one language: plain lines, JSON lines, and the sentences of a treebank in CoNLL-U."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from docmt.corpora.documents import MonolingualDocument
from docmt.corpora.readers.collector import Collector, Counts
from docmt.corpora.readers.lines import blank_parts, marked_parts
from docmt.corpora.readers.sides import Part, pick
from docmt.errors import UserError
from docmt.files import iterate_jsonl, read_bytes
from docmt.settings import Settings

DOCUMENT = "# newdoc id = "
SENTENCE = "# text = "


class Conllu(Settings):
    """A tar (or tar.gz) of CoNLL-U files, role: the language. Documents are at `# newdoc id`, sentences at `# text`."""

    reader: Literal["conllu"]
    """Name of the format."""


def read_monolingual(
    files: Mapping[str, Path], *, form: Any, lang: str
) -> tuple[list[MonolingualDocument], dict[str, Any]]:
    """Read documents of one language, from the file whose role is the language.

    Args:
        form: a format with one of `MONOLINGUAL_READERS`.

    Returns:
        The documents, and counts of what was met.

    Raises:
        UserError: the file is bad or holds no sentences, or the format is for parallel documents.
    """
    if form.reader not in MONOLINGUAL_READERS:
        known = ", ".join(MONOLINGUAL_READERS)
        raise UserError(f"format {form.reader}: cannot be read as documents of one language: {known} can")
    path = pick(files, lang, form.reader)
    collector = Collector()
    for name, sentences in MONOLINGUAL_READERS[form.reader](path, form):
        collector.add(name, [(sentence, "") for sentence in sentences])
    if not collector.documents:
        raise UserError(f"{path}: holds no sentences")
    documents = [MonolingualDocument(document.id, document.src) for document in collector.documents]
    return documents, _counts(collector.counts)


def _counts(counts: Counts) -> dict[str, Any]:
    """The counts that mean something for one side."""
    values = counts.as_dict()
    kept = ("documents", "sentences", "one_sentence_documents", "empty_documents", "joined_sentences", "dropped")
    return {key: values[key] for key in kept} | {"empty_sentences": counts.empty_both}


def _marked_lines(path: Path, form: Any) -> Iterator[tuple[str, list[str]]]:
    return _numbered(marked_parts(path, form.marker))


def _blank_lines(path: Path, form: Any) -> Iterator[tuple[str, list[str]]]:
    return _numbered(blank_parts(path))


def _numbered(parts: list[Part]) -> Iterator[tuple[str, list[str]]]:
    return ((f"{number:05d}", part.sentences) for number, part in enumerate(parts, start=1))


def _json_lines(path: Path, form: Any) -> Iterator[tuple[str, list[str]]]:
    for number, value in enumerate(iterate_jsonl(path), start=1):
        where = f"{path}: line {number}"
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            raise UserError(f'{where}: an object with "id" and "sentences" is needed')
        sentences = value.get("sentences")
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise UserError(f"{where}: document {value['id']}: `sentences` must be a list of sentences")
        yield value["id"], sentences


def _conllu(path: Path, form: Any) -> Iterator[tuple[str, list[str]]]:
    for where, lines in _members(path):
        name, sentences = None, []
        for line in lines:
            if line.startswith(DOCUMENT):
                if name is not None:
                    yield name, sentences
                name, sentences = line.removeprefix(DOCUMENT), []
            elif line.startswith(SENTENCE):
                if name is None:
                    raise UserError(f"{where}: a sentence stands before the first `{DOCUMENT.strip()}`")
                sentences.append(line.removeprefix(SENTENCE))
        if name is not None:
            yield name, sentences


def _members(path: Path) -> list[tuple[str, list[str]]]:
    """The name and lines of each CoNLL-U file of an archive, sorted by name; nothing is unpacked."""
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path))) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".conllu"):
                    files[f"{path}:{member.name}"] = archive.extractfile(member).read().decode("utf-8").split("\n")
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{path}: not a tar of CoNLL-U files ({error}): fetch it again") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{member.name}: not UTF-8 (byte {error.start})") from None
    return sorted(files.items())


MONOLINGUAL_READERS = {
    "marked_lines": _marked_lines,
    "blank_lines": _blank_lines,
    "jsonl": _json_lines,
    "conllu": _conllu,
}
