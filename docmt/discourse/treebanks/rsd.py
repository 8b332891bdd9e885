"""Dependency trees of EDUs (`.rsd`), and the comparison of docmt's own conversion with those that GUM publishes.

A file has one line per EDU, with ten columns separated by tabs: number, text, …, head (0: root), and relation with `_r`
(satellite) or `_m` (further nucleus). The columns in between hold features for other tools.
"""

from collections import Counter
from pathlib import Path

from docmt.discourse.constituents import Node, restore_nary
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, check_dependencies, nary_to_dependencies
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import RsdFile, RstFile, read_files
from docmt.errors import UserError

MIN_COLUMNS = 8
MULTINUCLEAR, SATELLITE = "_m", "_r"
GUM_TREES = {"rs4": ("rstweb", parse_rs3), "dis": ("lisp_binary", parse_brackets)}
"""Archive and reader of the trees that are compared, by suffix."""


def rsd_of_tree(rst: RstFile) -> RsdFile:
    """Convert a constituent tree; a binary one is flattened first, unless its file format is n-ary."""
    tree = rst.tree if rst.is_nary else restore_nary(rst.tree)
    is_nucleus = [False] * len(rst.texts)

    def mark(node: Node, below: list[int]) -> int:
        """Find the head of a node, and mark the heads of its further nuclei."""
        if node.is_leaf:
            return node.first
        first, *further = [head for head, letter in zip(below, node.nuclearity, strict=True) if letter == "N"]
        for head in further:
            is_nucleus[head] = True
        return first

    tree.fold(mark)
    return RsdFile(nary_to_dependencies(tree, len(rst.texts)), tuple(is_nucleus), rst.texts)


def parse_rsd(text: str, *, where: str) -> RsdFile:
    """Read an `.rsd` file."""
    heads, relations, is_nucleus, texts = [], [], [], []
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line:
            continue
        columns = line.split("\t")
        if len(columns) < MIN_COLUMNS or columns[0] != str(len(texts) + 1) or not columns[6].isdecimal():
            raise UserError(
                f"{where}: line {number}: expected EDU {len(texts) + 1} with its head (a number) in column 7"
            )
        texts.append(columns[1])
        heads.append(int(columns[6]) - 1)
        relation = columns[7]
        kind = relation[-2:]
        if heads[-1] == NO_HEAD:
            relations.append(ROOT)
        elif kind in (MULTINUCLEAR, SATELLITE) and len(relation) > len(kind):
            relations.append(relation[:-2])
        else:
            raise UserError(f"{where}: line {number}: relation {relation!r} must end in _r or _m")
        is_nucleus.append(heads[-1] != NO_HEAD and kind == MULTINUCLEAR)
    if not texts:
        raise UserError(f"{where}: no EDUs")
    check_dependencies(heads, where=where)
    return RsdFile(DependencyTree(tuple(heads), tuple(relations)), tuple(is_nucleus), tuple(texts))


def compare(name: str, rst: RstFile, published: RsdFile) -> dict[str, int]:
    """Count the EDUs of a document whose head, and whose whole arc, equal the published ones."""
    if len(rst.texts) != len(published.texts):
        raise UserError(f"{name}: a tree over {len(rst.texts)} EDUs, but its .rsd has {len(published.texts)}")
    ours, theirs = (
        list(zip(rsd.arcs.heads, rsd.arcs.relations, rsd.is_nucleus, strict=True))
        for rsd in (rsd_of_tree(rst), published)
    )
    n_arcs = sum(a == b for a, b in zip(ours, theirs, strict=True))  # head, relation, satellite or further nucleus
    return {
        "edus": len(ours),
        "heads": sum(a[0] == b[0] for a, b in zip(ours, theirs, strict=True)),
        "arcs": n_arcs,
        "documents": 1,
        "equal_documents": n_arcs == len(ours),
        "secondary_edges": rst.n_secondary_edges,  # which the n-ary reader skipped
        "lifted": rst.n_lifted,  # constituents that it moved up
    }


def check_conversion(folder: Path) -> dict[str, Counter[str]]:
    """Convert all trees of GUM and compare them with its `.rsd` files, by source: `rs4` (n-ary) and `dis` (binary).

    The folder holds `rsd.tar.gz`, `rstweb.tar.gz` and `lisp_binary.tar.gz`, or their files in plain folders. Returns
    the sums of the counts of `compare`.
    """
    published = read_files(folder, archive="rsd", suffix=".rsd")
    found = {}
    for source, (archive, parse) in GUM_TREES.items():
        files = read_files(folder, archive=archive, suffix=f".{source}")
        found[source] = Counter()
        for name, file in files.items():
            rst = parse(file.text, where=file.where)
            if name not in published:
                raise UserError(f"{file.where}: this document has no .rsd file")
            gold = parse_rsd(published[name].text, where=published[name].where)
            found[source].update(compare(name, rst, gold))
    return found
