"""Documents of one language: which formats can hold them, and the sentences of a treebank in CoNLL-U."""

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from docmt.corpora.readers.collector import ReaderResult
from docmt.corpora.readers.dialogues import read_json_lines
from docmt.corpora.readers.lines import read_blank_lines, read_marked_lines
from docmt.corpora.readers.sides import SideDocument, SideFile, align, pick
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.settings import Settings

DOCUMENT = "# newdoc id = "
SENTENCE = "# text = "


class Conllu(Settings):
    """A tar (or tar.gz) of CoNLL-U files, role: the language. Documents are at `# newdoc id`, sentences at `# text`."""

    reader: Literal["conllu"]
    """Name of the format."""


def read_treebank_text(files: Mapping[str, Path], *, form: Conllu, languages: Sequence[str]) -> ReaderResult:
    """Read the sentences of a treebank, file by file in the order of their names.

    Raises UserError when the archive or a file in it is bad, or a sentence comes before the first document.
    """
    path = pick(files, languages[0], form.reader)
    parts: list[SideDocument] = []
    for name, content in _members(path):
        n_before = len(parts)
        for number, line in enumerate(content.split("\n"), start=1):
            if line.startswith(DOCUMENT):
                parts.append(SideDocument(line.removeprefix(DOCUMENT) or "unnamed", number))
            elif line.startswith(SENTENCE):
                if len(parts) == n_before:
                    raise UserError(f"{name}: a sentence comes before the first `{DOCUMENT.strip()}`")
                parts[-1].add(line.removeprefix(SENTENCE), line=number)
    return align([SideFile(path, parts)])


def _members(path: Path) -> list[tuple[str, str]]:
    """The name and content of each CoNLL-U file of an archive, sorted by name; nothing is unpacked to disk."""
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path))) as archive:
            for member in archive:
                is_wanted = member.isfile() and member.name.endswith(".conllu")
                if is_wanted and (stream := archive.extractfile(member)):
                    files[f"{path}:{member.name}"] = stream.read()
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{path}: not a tar of CoNLL-U files ({error}): fetch it again") from None
    return [(name, decode(files[name], where=name)) for name in sorted(files)]


def decode(content: bytes, *, where: str) -> str:
    """The text of a file in an archive. Raises UserError when it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 (byte {error.start})") from None


MONOLINGUAL_READERS: dict[str, Callable[..., ReaderResult]] = {
    "marked_lines": read_marked_lines,
    "blank_lines": read_blank_lines,
    "jsonl": read_json_lines,
    "conllu": read_treebank_text,
}
