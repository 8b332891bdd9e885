"""Treebanks: fetched files, trees aligned with words, documents by split, and omitted documents."""

import logging
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from docmt.corpora.readers.tar_files import decode
from docmt.discourse.constituents import SPAN, Node
from docmt.discourse.dependencies import DependencyTree
from docmt.discourse.discourse_documents import DiscourseDocument, Edu, write_discourse
from docmt.discourse.relations import load_inventory
from docmt.discourse.syntax import DocumentSyntax, write_syntax
from docmt.errors import UserError
from docmt.files import BYTE_ORDER_MARK, read_text, write_json
from docmt.text.tokenizer import sentence_words

logger = logging.getLogger(__name__)

SPLITS = ("train", "dev", "test")
SENTENCE_END = re.compile(r"""[.?!…。？！]['"’”“«»)\]」』》]*$""")
SENTENCE, PARAGRAPH_LEVEL = 1, 2
"""Level of the boundary after an EDU at the end of a sentence or a paragraph."""


@dataclass(frozen=True)
class TreebankFile:
    """One file in a treebank."""

    where: str  # path for messages, including the archive
    name: str  # file name without folder and suffix, which is the document id
    folder: str  # folder name
    text: str


@dataclass(frozen=True)
class RstFile:
    """One annotated document."""

    tree: Node  # constituents over EDUs
    texts: tuple[str, ...]  # EDU texts
    arcs: DependencyTree | None = None  # arcs in formats with n-ary trees (None: derived from the binary tree)
    n_secondary_edges: int = 0  # skipped edges outside the tree (eRST, `.rs4`)
    n_lifted: int = 0  # constituents placed higher than annotated, because of crossing edges
    n_wrong_spans: int = 0  # nodes in a `.dis` file whose span differs from the span of their children
    n_trees: int = 1  # trees in an `.rs3` file, which become the nuclei of one node


@dataclass
class Treebank:
    """Documents by split."""

    name: str
    splits: dict[str, list[DiscourseDocument]] = field(default_factory=lambda: {split: [] for split in SPLITS})
    syntax: dict[str, DocumentSyntax] = field(default_factory=dict)  # document id → syntax, if available
    left_out: dict[str, list[str]] = field(default_factory=dict)  # reason → omitted documents
    notes: Counter[str] = field(default_factory=Counter)  # counts of repairs and omissions

    def read_tree(self, file: TreebankFile, parse: Callable[..., RstFile], *, inventory: str | None = None) -> RstFile:
        """Parse a file and count repairs and omissions."""
        rst = parse(file.text, where=file.where)
        for what, n in (
            ("spans whose numbers differ from their leaves", rst.n_wrong_spans),
            ("documents with several trees, which were joined", int(rst.n_trees > 1)),
            ("constituents lifted because edges cross", rst.n_lifted),
            ("secondary edges", rst.n_secondary_edges),
        ):
            if n:
                self.notes[what] += n
        if inventory is None:
            return rst
        for node in rst.tree.postorder():
            for child, relation in zip(node.children, node.relations, strict=True):
                try:
                    if relation != SPAN:
                        load_inventory(inventory).coarse(relation)
                except UserError as error:
                    raise UserError(f"{file.where}: EDUs {child.first + 1} to {child.last + 1}: {error}") from None
        return rst

    def leave_out(self, name: str, *, reason: str) -> None:
        self.left_out.setdefault(reason, []).append(name)

    def counts(self) -> dict[str, Any]:
        """Return the sizes of the splits, and the omitted documents with reasons."""
        splits = {}
        for split, documents in self.splits.items():
            n_paragraphs = n_sentences = n_tokens = n_edus = 0
            for document in documents:
                n_paragraphs += len(document.paragraphs or ())
                n_sentences += len(document.sentences)
                n_tokens += sum(map(len, document.sentences))
                n_edus += len(document.edus)
            has_paragraphs = all(document.paragraphs is not None for document in documents)
            splits[split] = {
                "documents": len(documents),
                "paragraphs": n_paragraphs if has_paragraphs else None,
                "sentences": n_sentences,
                "tokens": n_tokens,
                "edus": n_edus,
            }
        return {"treebank": self.name, "splits": splits, "left_out": self.left_out, "notes": self.notes}


def write_treebank(folder: Path, treebank: Treebank) -> None:
    """Write `{split}.discourse.jsonl`, `{split}.syntax.jsonl` (if there is syntax) and `counts.json`."""
    # Check all splits before writing, so that the folder is complete or empty.
    for split, documents in treebank.splits.items():
        if not documents:
            reasons = "; ".join(f"{len(names)} omitted: {reason}" for reason, names in treebank.left_out.items())
            raise UserError(f"{treebank.name}: no documents in split {split} ({reasons or 'its files contain none'})")
    for split, documents in treebank.splits.items():
        write_discourse(folder / f"{split}.discourse.jsonl", documents)
        if treebank.syntax:
            syntax = ((document.id, treebank.syntax[document.id]) for document in documents)
            write_syntax(folder / f"{split}.syntax.jsonl", syntax)
    write_json(folder / "counts.json", treebank.counts())
    for what, n in treebank.notes.items():
        logger.warning("%s: %d %s", treebank.name, n, what)
    for reason, names in treebank.left_out.items():
        logger.warning("%s: omitted %d documents (%s)", treebank.name, len(names), reason)


def read_files(
    folder: Path, *, archive: str, suffix: str | tuple[str, ...], required: bool = True
) -> dict[str, TreebankFile]:
    """Read files with a suffix from `archive`.tar(.gz), `archive`.tgz or `folder`. Returns document id → file."""
    suffixes = (suffix,) if isinstance(suffix, str) else suffix
    packed = [path for path in (folder / f"{archive}.{end}" for end in ("tar", "tar.gz", "tgz")) if path.is_file()]
    if packed:
        files = _read_archive(packed[0], suffixes)
    else:
        files = []
        for path in sorted(folder.rglob("*")):
            if path.name.endswith(suffixes) and path.is_file():
                files.append(TreebankFile(str(path), path.stem, path.parent.name, read_text(path)))
    if required and not files:
        names = " or ".join(suffixes)
        raise UserError(f"{folder}: no {names} files: put {archive}.tar.gz or the unpacked files there")
    files_by_name: dict[str, TreebankFile] = {}
    for file in files:
        if required and file.name in files_by_name:
            raise UserError(f"{file.where}: {files_by_name[file.name].where} is the same document: remove one of them")
        files_by_name[file.name] = file
    return dict(sorted(files_by_name.items()))


def _read_archive(path: Path, suffixes: tuple[str, ...]) -> list[TreebankFile]:
    """Read the files with a suffix in memory, without unpacking."""
    files = []
    try:
        with tarfile.open(path) as members:
            for member in members:
                member_path = PurePosixPath(member.name)
                content = members.extractfile(member) if member.isfile() else None
                if content is not None and member_path.name.endswith(suffixes):
                    where = f"{path}:{member.name}"
                    text = decode(content.read().removeprefix(BYTE_ORDER_MARK), where=where)
                    files.append(TreebankFile(where, member_path.stem, member_path.parent.name, text))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({error}): fetch it again") from None
    return sorted(files, key=attrgetter("where"))


def ends_sentence(text: str) -> int:
    """Return `SENTENCE` if an EDU seems to end a sentence, otherwise 0."""
    return SENTENCE if SENTENCE_END.search(text.strip()) else 0


def assemble(name: str, parts: Sequence[str], ends: Sequence[int], rst: RstFile, *, lang: str) -> DiscourseDocument:
    """Build a document from separately tokenized EDU texts.

    `ends` contains 1 per EDU that ends a sentence, 2 if it ends a paragraph, otherwise 0.
    """
    sentences: list[list[str]] = [[]]
    edus = []
    paragraphs = [0]
    for number, (part, end) in enumerate(zip(parts, ends, strict=True), start=1):
        words = sentence_words(part, lang)
        edus.append(Edu(len(sentences) - 1, len(sentences[-1]), len(sentences[-1]) + len(words)))
        sentences[-1] += words
        if end and number < len(parts):
            if end == PARAGRAPH_LEVEL:
                paragraphs.append(len(sentences))
            sentences.append([])
    words_of = tuple(map(tuple, sentences))
    return DiscourseDocument(name, words_of, tuple(edus), rst.tree, tuple(paragraphs), rst.arcs)


def align_edus(texts: Sequence[str], sentences: Sequence[Sequence[str]], *, where: str) -> tuple[Edu, ...]:
    """Return EDUs over words, aligned by characters without spaces."""
    words = []
    for sentence, words_of in enumerate(sentences):
        for index, word in enumerate(words_of):
            words.append((sentence, index, word))
    position = 0
    edus = []
    for number, text in enumerate(texts, start=1):
        # Files have other spaces around punctuation, and in Chinese: only other characters are compared.
        rest = "".join(text.split())
        start = position
        while rest:
            word = words[position][2] if position < len(words) else ""
            if not word or not rest.startswith(word):
                problem = f"does not continue with {word!r}"
                if word and position > start and word.startswith(rest):
                    problem = f"ends inside the word {word!r}"
                raise UserError(f"{where}: EDU {number} ({text!r}) does not match the document text: it {problem}")
            rest = rest[len(word) :]
            position += 1
        if position == start:
            raise UserError(f"{where}: EDU {number} is empty")
        first = words[start]
        last = words[position - 1]
        if first[0] != last[0]:
            raise UserError(f"{where}: EDU {number} ({text!r}) crosses the end of sentence {first[0] + 1}")
        edus.append(Edu(first[0], first[1], last[1] + 1))
    if position < len(words):
        sentence, _, word = words[position]
        raise UserError(f"{where}: its EDUs end before {word!r} in sentence {sentence + 1}: they must cover the text")
    return tuple(edus)


def align_tree(name: str, sentences: Sequence[Sequence[str]], rst: RstFile, *, where: str) -> DiscourseDocument:
    """Build a document from sentences, and tree and EDU texts from an annotated file.

    Trees in n-ary formats keep their arcs.
    """
    edus = align_edus(rst.texts, sentences, where=where)
    return DiscourseDocument(name, tuple(map(tuple, sentences)), edus, rst.tree, None, rst.arcs)
