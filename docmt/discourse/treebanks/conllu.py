"""CoNLL-U with discourse marks: words, syntax, paragraphs and EDU starts.

Lines of multiword tokens (`3-4`) and of ellipsis (`8.1`) are not words and are skipped. `# newpar` opens a paragraph;
`Discourse=` in MISC marks the first word of every EDU.
"""

from dataclasses import dataclass

from docmt.discourse.syntax import SentenceSyntax
from docmt.discourse.treebanks.treebank_files import TreebankFile
from docmt.errors import UserError

N_COLUMNS = 10


@dataclass(frozen=True)
class ConlluSentence:
    """A sentence of a treebank.

    Attributes:
        words: forms.
        syntax: its parts of speech are language-specific tags (XPOS).
        edu_starts: words at which an EDU begins.
        opens_paragraph: whether a paragraph begins here.
    """

    words: tuple[str, ...]
    syntax: SentenceSyntax
    edu_starts: tuple[int, ...]
    opens_paragraph: bool


def read_conllu(file: TreebankFile) -> list[ConlluSentence]:
    """Read the sentences of a document."""
    sentences: list[ConlluSentence] = []
    rows: list[list[str]] = []
    opens = False
    for number, line in enumerate([*file.text.split("\n"), ""], start=1):
        where = f"{file.where}: line {number}"
        line = line.removesuffix("\r")
        if line.startswith("#"):
            opens = opens or line[1:].strip().partition(" ")[0] == "newpar"
        elif line:
            columns = line.split("\t")
            if len(columns) != N_COLUMNS:
                raise UserError(f"{where} has {len(columns)} columns, CoNLL-U has {N_COLUMNS}")
            if "-" in columns[0] or "." in columns[0]:
                continue
            if columns[0] != str(len(rows) + 1):
                raise UserError(f"{where}: expected word {len(rows) + 1}, found word {columns[0]}")
            rows.append(columns)
        elif rows:
            sentences.append(_sentence(rows, opens_paragraph=opens, where=where))
            rows, opens = [], False
    if not sentences:
        raise UserError(f"{file.where}: no sentence")
    return sentences


def _sentence(rows: list[list[str]], *, opens_paragraph: bool, where: str) -> ConlluSentence:
    heads = []
    for row in rows:
        if not row[6].isdecimal() or int(row[6]) > len(rows):
            raise UserError(f"{where}: head {row[6]!r} of {row[1]!r} is not a word of the sentence that ends here")
        heads.append(int(row[6]) - 1)
    return ConlluSentence(
        words=tuple(row[1] for row in rows),
        syntax=SentenceSyntax(tuple(row[4] for row in rows), tuple(heads), tuple(row[7] for row in rows)),
        edu_starts=tuple(i for i, row in enumerate(rows) if "|Discourse=" in f"|{row[9]}"),
        opens_paragraph=opens_paragraph,
    )
