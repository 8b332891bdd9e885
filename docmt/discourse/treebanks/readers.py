"""Treebank readers: GUM, GCDT, RST-DT, and folders with `.rs3` or `.rs4` files.

All readers raise UserError for missing or malformed files, and for trees that do not match the words. The message
contains file and line. Files are read from fetched archives or from plain folders.
"""

import html
from dataclasses import dataclass, replace
from pathlib import Path

from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts
from docmt.discourse.syntax import SentenceSyntax
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import (
    PARAGRAPH_LEVEL,
    SENTENCE,
    SPLITS,
    RstFile,
    Treebank,
    TreebankFile,
    align_tree,
    assemble,
    ends_sentence,
    read_files,
)
from docmt.errors import UserError
from docmt.files import read_lines
from docmt.text.tokenizer import check_language

CONLLU_COLUMNS = 10
GUESSED = "documents whose sentences were guessed from the ends of EDUs"
RST_DT_FOLDERS = {"TRAINING": "train", "TEST": "test"}
RST_DT_PARAGRAPH = "<P>"
EVERY = 10
"""Without folders for splits, every tenth document (sorted by name) is for testing, and the one before it for
development. RST-DT has no development split, so every tenth training document is in it."""


# GUM


def read_gum(folder: Path) -> Treebank:
    """Read GUM, the Georgetown University Multilayer corpus (Zeldes 2017; RST trees: Zeldes et al. 2024), English.

    `dep_conllu` contains words, sentences, paragraphs and EDUs, `lisp_binary` binary trees, and `splits.md` the
    official splits. The split test2 (the GENTLE documents) is another corpus with a separate license.
    """
    names = read_splits(folder / "splits.md")
    syntax = read_files(folder, archive="dep_conllu", suffix=".conllu")
    trees = read_files(folder, archive="lisp_binary", suffix=".dis")
    treebank = Treebank("gum")
    for split, documents in names.items():
        for name in documents:
            if split not in SPLITS:
                treebank.leave_out(name, reason=f"split {split} is the GENTLE corpus, which has its own license")
                continue
            if name not in syntax and name.startswith("GUM_reddit_"):
                treebank.leave_out(name, reason="reddit: its text may not be passed on and is not in the files")
                continue
            if name not in syntax:
                treebank.leave_out(name, reason="listed in splits.md, but not in the files")
                continue
            sentences = read_conllu(syntax[name])
            if not any(word.strip("_") for sentence in sentences for word in sentence.words):
                treebank.leave_out(name, reason="its words are masked by underscores")
                continue
            if name not in trees:
                raise UserError(f"{syntax[name].where}: this document has no .dis file")
            rst = treebank.read_tree(trees[name], parse_brackets, inventory="gum")
            treebank.splits[split].append(gum_document(name, sentences, rst, where=trees[name].where))
            treebank.syntax[name] = tuple(sentence.syntax for sentence in sentences)
    for name in sorted(set(syntax).difference(*names.values())):
        treebank.leave_out(name, reason="in the files, but not listed in splits.md")
    return treebank


def read_splits(path: Path) -> dict[str, list[str]]:
    """Return split → documents, in the order of `splits.md`."""
    splits: dict[str, list[str]] = {}
    names: list[str] | None = None
    for line in read_lines(path):
        if line.startswith("## "):
            names = splits.setdefault(line[3:].strip(), [])
        elif line.strip().startswith("* ") and names is not None:
            names.append(line.strip()[2:].strip())
    for split in SPLITS:
        if not splits.get(split):
            raise UserError(f"{path}: no documents under the heading '## {split}'")
    return splits


@dataclass(frozen=True)
class ConlluSentence:
    """A sentence in CoNLL-U with discourse marks."""

    words: tuple[str, ...]  # forms
    syntax: SentenceSyntax  # with language-specific tags (XPOS) as parts of speech
    edu_starts: tuple[int, ...]  # words at which an EDU begins
    opens_paragraph: bool  # true if a paragraph begins here


def read_conllu(file: TreebankFile) -> list[ConlluSentence]:
    """Parse a CoNLL-U file with discourse marks.

    `# newpar` opens a paragraph. `Discourse=` in MISC marks the first word of every EDU.
    """
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
            if len(columns) != CONLLU_COLUMNS:
                raise UserError(f"{where} has {len(columns)} columns, CoNLL-U has {CONLLU_COLUMNS}")
            # Multiword tokens (3-4) repeat the next words, and ellipsis (8.1) is not in the text.
            if "-" in columns[0] or "." in columns[0]:
                continue
            if columns[0] != str(len(rows) + 1):
                raise UserError(f"{where}: expected word {len(rows) + 1}, found word {columns[0]}")
            rows.append(columns)
        elif rows:
            heads = []
            starts = []
            for word, row in enumerate(rows):
                if not row[6].isdecimal() or int(row[6]) > len(rows):
                    raise UserError(
                        f"{where}: head {row[6]!r} of {row[1]!r} is not a word of the sentence that ends here"
                    )
                heads.append(int(row[6]) - 1)
                if "|Discourse=" in f"|{row[9]}":
                    starts.append(word)
            _, words, _, _, tags, _, _, relations, _, _ = zip(*rows, strict=True)
            syntax = SentenceSyntax(tags, tuple(heads), relations)
            sentences.append(ConlluSentence(words, syntax, tuple(starts), opens))
            rows = []
            opens = False
    if not sentences:
        raise UserError(f"{file.where}: contains no sentences")
    return sentences


def gum_document(name: str, sentences: list[ConlluSentence], rst: RstFile, *, where: str) -> DiscourseDocument:
    """Build a document from sentences and a tree from the file `where`."""
    words = []
    starts = []
    paragraphs = []
    for number, sentence in enumerate(sentences, start=1):
        if sentence.edu_starts[:1] != (0,):
            raise UserError(f"{name}: sentence {number} must begin with an EDU: it has no Discourse= in the CoNLL-U")
        words.append(sentence.words)
        starts.append(sentence.edu_starts[1:])
        if sentence.opens_paragraph or number == 1:
            paragraphs.append(number - 1)
    edus = edus_from_starts(starts, map(len, words))
    if len(edus) != len(rst.texts):
        raise UserError(f"{where}: a tree over {len(rst.texts)} EDUs, but the CoNLL-U file has {len(edus)}")
    document = DiscourseDocument(name, tuple(words), edus, rst.tree, tuple(paragraphs))
    for edu, text in enumerate(rst.texts):
        edu_words = document.edu_words(edu)
        if "".join(edu_words) != _characters(text):
            raise UserError(
                f"{where}: EDU {edu + 1} is {text!r}, but the words of the document are {' '.join(edu_words)!r}: "
                "the files have different versions"
            )
    return document


# GCDT


def read_gcdt(folder: Path) -> Treebank:
    """Read GCDT, the Georgetown Chinese Discourse Treebank (Peng et al. 2022).

    `tokenized` contains one sentence per line, and `dis` binary trees. Both have a folder per split. Paragraphs are not
    marked.
    """
    treebank = Treebank("gcdt")
    words = read_files(folder, archive="tokenized", suffix=".txt")
    trees = read_files(folder, archive="dis", suffix=".dis")
    unpaired = set(words) ^ set(trees)
    if unpaired:
        raise UserError(f"{folder}: document {min(unpaired)} needs both files, words (.txt) and tree (.dis)")
    for name, file in trees.items():
        if file.folder not in SPLITS or words[name].folder != file.folder:
            raise UserError(f"{file.where}: must be below train/, dev/ or test/, like the file with its words")
        rst = treebank.read_tree(file, parse_brackets, inventory="gcdt")
        # The .dis files contain character references from the original XML.
        rst = RstFile(rst.tree, tuple(map(html.unescape, rst.texts)))
        sentences = [line.split() for line in words[name].text.split("\n") if line.strip()]
        treebank.splits[file.folder].append(align_tree(name, sentences, rst, where=file.where))
    return treebank


# .rs3 and .rs4


def read_rs3(folder: Path, *, lang: str) -> Treebank:
    """Read `.rs3` or `.rs4` files of RSTTool and rstWeb, in any language with a tokenizer.

    Documents are files, and segments are EDUs. The format marks neither sentences nor paragraphs, so sentences end with
    EDUs that end in a period, question mark or exclamation mark. Relations are unchanged. Files in the folders `train`,
    `dev` and `test` form the splits. Without such folders, files are divided by name.
    """
    check_language(lang)
    has_rs4 = any(folder.glob("rs4.tar*")) and not any(folder.glob("rs3.tar*"))
    archive = "rs4" if has_rs4 else "rs3"
    files = read_files(folder, archive=archive, suffix=(".rs3", ".rs4"))
    treebank = Treebank("rs3")
    has_folders = any(file.folder in SPLITS for file in files.values())
    for number, (name, file) in enumerate(files.items(), start=1):
        split = "train"
        if has_folders:
            split = file.folder
        elif number % EVERY == 0:
            split = "test"
        elif number % EVERY == EVERY - 1:
            split = "dev"
        if split not in SPLITS:
            treebank.leave_out(name, reason="in none of the folders train, dev and test")
            continue
        rst = treebank.read_tree(file, parse_rs3)
        treebank.notes[GUESSED] += 1
        if "" in rst.texts:
            raise UserError(f"{file.where}: segment {rst.texts.index('') + 1} has no text")
        document = assemble(name, rst.texts, list(map(ends_sentence, rst.texts)), rst, lang=lang)
        treebank.splits[split].append(replace(document, paragraphs=None))
    if not has_folders and len(files) < EVERY:
        raise UserError(f"{folder}: {len(files)} files are too few to split: move them into train/, dev/ and test/")
    return treebank


# RST-DT


def read_rst_dt(folder: Path) -> Treebank:
    """Read RST-DT, the RST Discourse Treebank (Carlson et al. 2002; LDC2002T07, licensed), English.

    Documents are `.dis` files in the folders TRAINING and TEST. Next to them, `NAME.edus` contains one EDU per line,
    and `NAME.out` or `NAME.txt` the running text: one sentence per line, with blank lines between paragraphs. Without
    running text, sentences end with EDUs that end in a period, question mark or exclamation mark, or in `<P>`, which
    also ends a paragraph.
    """
    trees = read_files(folder, archive="rst_dt", suffix=".dis")
    companions: dict[str, dict[str, TreebankFile]] = {}
    for suffix in (".edus", ".txt", ".out"):
        files = read_files(folder, archive="rst_dt", suffix=suffix, required=False)
        # The running text of NAME.out.dis is NAME.out in some editions and NAME.out.txt in others.
        companions[suffix] = {name.removesuffix(".out"): file for name, file in files.items()}
    edus = companions[".edus"]
    texts = companions[".txt"] | companions[".out"]
    treebank = Treebank("rst_dt")
    names: dict[str, TreebankFile] = {}
    for file in trees.values():
        split = RST_DT_FOLDERS.get(file.folder)
        if split is None:
            treebank.leave_out(file.name, reason="in neither of the folders TRAINING and TEST")
            continue
        name = file.name.removesuffix(".out")
        if names.setdefault(name, file) is not file:
            raise UserError(f"{file.where}: document {name!r} is also in {names[name].where}: remove one")
        rst = treebank.read_tree(file, parse_brackets, inventory="rst_dt")
        parts = [part.replace(RST_DT_PARAGRAPH, " ") for part in rst.texts]
        if name in edus:
            _check_rst_dt_edus(edus[name], parts)
        if name in texts:
            ends = _ends_in_text(parts, texts[name], treebank)
        else:
            ends = []
            for part in rst.texts:
                ends.append(PARAGRAPH_LEVEL if RST_DT_PARAGRAPH in part else ends_sentence(part))
            treebank.notes[GUESSED] += 1
        treebank.splits[split].append(assemble(name, parts, ends, rst, lang="en"))
    train = treebank.splits["train"]
    treebank.splits["dev"] = train[EVERY - 1 :: EVERY]
    del train[EVERY - 1 :: EVERY]
    return treebank


def _check_rst_dt_edus(file: TreebankFile, parts: list[str]) -> None:
    lines = [line for line in file.text.split("\n") if line.strip()]
    for number, (line, part) in enumerate(zip(lines, parts, strict=False), start=1):
        if _characters(line.replace(RST_DT_PARAGRAPH, " ")) != _characters(part):
            raise UserError(f"{file.where}: line {number} is {line!r}, but EDU {number} of the tree is {part!r}")
    if len(lines) != len(parts):
        raise UserError(f"{file.where}: {len(lines)} EDUs, but the tree has {len(parts)}")


def _ends_in_text(parts: list[str], text: TreebankFile, treebank: Treebank) -> list[int]:
    """Return 1 per EDU that ends a sentence, 2 if it ends a paragraph, otherwise 0, from the running text."""
    # Compared by characters without spaces, which differ between editions.
    levels: dict[int, int] = {}
    characters = ""
    for line in text.text.split("\n"):
        characters += _characters(line)
        levels[len(characters)] = SENTENCE if line.strip() else PARAGRAPH_LEVEL
    if characters != "".join(map(_characters, parts)):
        raise UserError(
            f"{text.where}: differs from the text of the EDUs: use a file from the same edition, or remove it. "
            "Sentences then end with EDUs that end in . ? or !"
        )
    ends = []
    position = 0
    for part in parts:
        position += len(_characters(part))
        ends.append(levels.pop(position, 0))
    levels.pop(0, None)  # blank lines at the start
    treebank.notes["line ends inside an EDU, which are no ends of sentences"] += len(levels)
    return ends


def _characters(text: str) -> str:
    return "".join(text.split())
