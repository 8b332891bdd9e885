"""GUM, the Georgetown University Multilayer corpus (Zeldes 2017; RST trees: Zeldes et al. 2024), English.

Words, sentences, paragraphs and EDUs are those of the CoNLL-U files, trees those of the binary `.dis` files. The
official splits are those of `splits.md`; its test2 (the GENTLE documents) is another corpus with a separate license.
"""

from pathlib import Path

from docmt.discourse.documents import DiscourseDocument, edus_from_starts
from docmt.discourse.relations import load_inventory
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.conllu import ConlluSentence, read_conllu
from docmt.discourse.treebanks.treebank import Treebank, TreebankDocument, check_relations, check_texts
from docmt.discourse.treebanks.treebank_files import RstFile, by_name, read_files
from docmt.errors import UserError
from docmt.files import read_lines

SPLITS = ("train", "dev", "test")


def read_gum(folder: Path) -> Treebank:
    """Read the documents of all splits.

    The folder holds `dep_conllu.tar.gz` and `lisp_binary.tar.gz` or their files in plain folders, and `splits.md`.
    Raises UserError when a file is missing or malformed, or tree and words do not fit each other; the message names
    file and place.
    """
    names = read_splits(folder / "splits.md")
    syntax = by_name(read_files(folder, archive="dep_conllu", suffix=".conllu"))
    trees = by_name(read_files(folder, archive="lisp_binary", suffix=".dis"))
    treebank = Treebank("gum", {split: [] for split in SPLITS})
    for split, documents in names.items():
        for name in documents:
            if split not in SPLITS:
                treebank.leave_out(name, reason=f"split {split} is the GENTLE corpus, which has its own license")
            elif name not in syntax and name.startswith("GUM_reddit_"):
                treebank.leave_out(name, reason="reddit: its text may not be passed on and is not in the files")
            elif name not in syntax:
                treebank.leave_out(name, reason="listed in splits.md, but not in the files")
            else:
                sentences = read_conllu(syntax[name])
                if not any(word.strip("_") for sentence in sentences for word in sentence.words):
                    treebank.leave_out(name, reason="its words are masked by underscores")
                elif name not in trees:
                    raise UserError(f"{syntax[name].where}: this document has no .dis file")
                else:
                    rst = parse_brackets(trees[name].text, where=trees[name].where)
                    treebank.note(rst)
                    treebank.splits[split].append(gum_document(name, sentences, rst, where=trees[name].where))
    for name in sorted(set(syntax) - {name for documents in names.values() for name in documents}):
        treebank.leave_out(name, reason="in the files, but not listed in splits.md")
    return treebank


def read_splits(path: Path) -> dict[str, list[str]]:
    """List the documents of each split, in the order of `splits.md`."""
    splits: dict[str, list[str]] = {}
    names: list[str] | None = None
    for line in read_lines(path):
        if line.startswith("## "):
            names = splits.setdefault(line[3:].strip(), [])
        elif line.strip().startswith("* ") and names is not None:
            names.append(line.strip()[2:].strip())
    if missing := [split for split in SPLITS if not splits.get(split)]:
        raise UserError(f"{path}: no documents under the heading '## {missing[0]}'")
    return splits


def gum_document(name: str, sentences: list[ConlluSentence], rst: RstFile, *, where: str) -> TreebankDocument:
    """Build a document from its sentences and its tree, which `where` holds."""
    check_relations(rst.tree, load_inventory("gum"), where=where)
    for number, sentence in enumerate(sentences, start=1):
        if sentence.edu_starts[:1] != (0,):
            raise UserError(f"{name}: sentence {number} does not begin an EDU: no Discourse= there in its CoNLL-U")
    inner = (sentence.edu_starts[1:] for sentence in sentences)
    edus = edus_from_starts(inner, (len(sentence.words) for sentence in sentences))
    if len(edus) != len(rst.texts):
        raise UserError(f"{where}: a tree over {len(rst.texts)} EDUs, but the CoNLL-U file has {len(edus)}")
    document = DiscourseDocument(
        id=name,
        sentences=tuple(sentence.words for sentence in sentences),
        edus=edus,
        tree=rst.tree,
        paragraphs=tuple(i for i, sentence in enumerate(sentences) if sentence.opens_paragraph or i == 0),
    )
    check_texts(document, rst.texts, where=where)
    return TreebankDocument(document, tuple(sentence.syntax for sentence in sentences))
