"""GCDT, the Georgetown Chinese Discourse Treebank (Peng et al. 2022).

Words and sentences are those of the tokenized files (one sentence per line), EDUs and trees those of the binary `.dis`
files, splits the folders. Paragraphs are not marked.
"""

import html
from pathlib import Path

from docmt.discourse.relations import load_inventory
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.edu_alignment import align_tree
from docmt.discourse.treebanks.treebank import Treebank, TreebankDocument, check_relations
from docmt.discourse.treebanks.treebank_files import RstFile, TreebankFile, by_name, read_files
from docmt.errors import UserError

SPLITS = ("train", "dev", "test")


def read_gcdt(folder: Path) -> Treebank:
    """Read the documents of all splits, sorted by name.

    The folder holds `dis.tar.gz` and `tokenized.tar.gz`, or their files in plain folders; below them is one folder per
    split. Raises UserError when a file is missing or malformed, or tree and words do not fit each other; the message
    names file and place.
    """
    treebank = Treebank("gcdt", {split: [] for split in SPLITS})
    words = by_name(read_files(folder, archive="tokenized", suffix=".txt"))
    trees = by_name(read_files(folder, archive="dis", suffix=".dis"))
    if lonely := sorted(set(words) ^ set(trees)):
        raise UserError(f"{folder}: document {lonely[0]} has only one of the two files, words (.txt) and tree (.dis)")
    for name, file in sorted(trees.items()):
        if file.folder not in treebank.splits or words[name].folder != file.folder:
            raise UserError(f"{file.where}: must be in a folder train, dev or test, like its words")
        rst = parse_brackets(file.text, where=file.where)
        treebank.note(rst)
        treebank.splits[file.folder].append(_document(name, words[name], rst, where=file.where))
    return treebank


def _document(name: str, words: TreebankFile, rst: RstFile, *, where: str) -> TreebankDocument:
    sentences = [line.split() for line in words.text.split("\n") if line.strip()]
    check_relations(rst.tree, load_inventory("gcdt"), where=where)
    # The .dis files hold character references of the XML that they were made from.
    rst = RstFile(rst.tree, tuple(html.unescape(text) for text in rst.texts))
    return TreebankDocument(align_tree(name, sentences, rst, where=where))
