"""Documents of one language: which formats can hold them, and the sentences of a treebank in CoNLL-U."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from docmt.corpora.readers.archives import read_members
from docmt.corpora.readers.collector import ReaderResult
from docmt.corpora.readers.dialogues import read_json_lines
from docmt.corpora.readers.lines import read_blank_lines, read_marked_lines
from docmt.corpora.readers.sides import SideDocument, SideFile, align, pick
from docmt.errors import UserError
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
    for member, content in read_members(path, ".conllu", what="CoNLL-U"):
        n_before = len(parts)
        for number, line in enumerate(content.split("\n"), start=1):
            if line.startswith(DOCUMENT):
                parts.append(SideDocument(line.removeprefix(DOCUMENT) or "unnamed", number))
            elif line.startswith(SENTENCE):
                if len(parts) == n_before:
                    raise UserError(f"{path}:{member}: a sentence comes before the first `{DOCUMENT.strip()}`")
                parts[-1].add(line.removeprefix(SENTENCE), line=number)
    return align([SideFile(path, parts)])


MONOLINGUAL_READERS: dict[str, Callable[..., ReaderResult]] = {
    "marked_lines": read_marked_lines,
    "blank_lines": read_blank_lines,
    "jsonl": read_json_lines,
    "conllu": read_treebank_text,
}
