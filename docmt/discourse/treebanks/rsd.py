"""Dependency trees of EDUs (`.rsd`): one line per EDU, ten columns separated by tabs.

The columns are number, text, …, head (0: root), and relation with `_r` (satellite) or `_m` (further nucleus). Those in
between hold features for other tools; they are written as `_` (the third, an order of attachment, as 0).
"""

from dataclasses import dataclass

from docmt.discourse.constituents import Node, restore_nary
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, check_dependencies, nary_to_dependencies
from docmt.discourse.treebanks.treebank_files import RstFile
from docmt.errors import UserError

MIN_COLUMNS = 8
MULTINUCLEAR, SATELLITE = "_m", "_r"


@dataclass(frozen=True)
class RsdFile:
    """One annotated document.

    Attributes:
        arcs: relations without `_r` and `_m`.
        is_nucleus: whether each EDU depends on another nucleus of the same group (`_m`); false for the root.
        texts: of each EDU.
    """

    arcs: DependencyTree
    is_nucleus: tuple[bool, ...]
    texts: tuple[str, ...]


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


def format_rsd(rsd: RsdFile) -> str:
    """Write the content of an `.rsd` file; raise UserError when a text contains a tab or a line end."""
    lines = []
    rows = zip(rsd.texts, rsd.arcs.heads, rsd.arcs.relations, rsd.is_nucleus, strict=True)
    for number, (text, head, relation, is_nucleus) in enumerate(rows, start=1):
        if "\t" in text or "\n" in text:
            raise UserError(f"EDU {number} cannot be written as .rsd: it contains a tab or a line end: {text!r}")
        label = "ROOT" if head == NO_HEAD else relation + (MULTINUCLEAR if is_nucleus else SATELLITE)
        lines.append("\t".join([str(number), text, "0", "_", "_", "_", str(head + 1), label, "_", "_"]))
    return "\n".join(lines) + "\n"
