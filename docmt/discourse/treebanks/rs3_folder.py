"""Treebanks in the format of RSTTool and rstWeb: `.rs3` or `.rs4` files, of any language that docmt tokenizes.

Each document is one file; its segments are its EDUs. The format marks neither sentences nor paragraphs: a sentence ends
with an EDU that ends in a period, question mark or exclamation mark. Words are those of the tokenizer, one EDU at a
time. Relations are kept as they are.
"""

from dataclasses import replace
from pathlib import Path

from docmt.discourse.treebanks.edu_alignment import GUESSED, assemble, ends_sentence
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import Treebank, TreebankDocument
from docmt.discourse.treebanks.treebank_files import by_name, read_files
from docmt.errors import UserError
from docmt.text.tokenizer import check_language

SPLITS = ("train", "dev", "test")
SUFFIXES = (".rs3", ".rs4")
EVERY = 10
"""Without folders for splits, every tenth document is for testing, the one before it for development."""


def read_rs3(folder: Path, *, lang: str) -> Treebank:
    """Read all documents, from `rs3.tar.gz`, `rs3.tar` or plain folders.

    Those in folders `train`, `dev` and `test` form the splits; if there are no such folders, the documents are divided
    by their names. Raises UserError when a file is missing or malformed, or the language has no tokenizer; the message
    names file and element.
    """
    check_language(lang)
    suffix = SUFFIXES[0] if not any(folder.rglob(f"*{SUFFIXES[1]}")) else SUFFIXES[1]
    files = by_name(read_files(folder, archive="rs3", suffix=suffix))
    treebank = Treebank("rs3", {split: [] for split in SPLITS})
    has_folders = any(file.folder in SPLITS for file in files.values())
    for number, (name, file) in enumerate(sorted(files.items()), start=1):
        split = file.folder if has_folders else {0: "test", EVERY - 1: "dev"}.get(number % EVERY, "train")
        if split not in SPLITS:
            treebank.leave_out(name, reason="in none of the folders train, dev and test")
            continue
        rst = parse_rs3(file.text, where=file.where)
        treebank.note(rst)
        treebank.notes[GUESSED] = treebank.notes.get(GUESSED, 0) + 1
        if empty := [number for number, text in enumerate(rst.texts, start=1) if not text]:
            raise UserError(f"{file.where}: segment {empty[0]} has no text")
        document = assemble(name, rst.texts, list(map(ends_sentence, rst.texts)), rst, lang=lang)
        treebank.splits[split].append(TreebankDocument(replace(document, paragraphs=None)))
    return treebank
