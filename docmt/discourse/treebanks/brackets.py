"""Constituent trees in brackets (`.dis`), the format of the RST Discourse Treebank.

( Root (span 1 2)
  ( Nucleus (leaf 1) (rel2par span) (text _!Although it rained ,_!) )
  ( Satellite (leaf 2) (rel2par concession) (text _!we went out ._!) )
)
"""

import re
from dataclasses import dataclass, field

from docmt.discourse.constituents import SPAN, Node, join, leaf
from docmt.discourse.treebanks.treebank import RstFile
from docmt.errors import UserError

TOKENS = re.compile(
    r"""\s+ | //TT_ERR
    | (?P<open>\(\s*(?P<role>Root|Nucleus|Satellite)\b)
    | (?P<span>\(\s*span\s+(?P<first>\d+)\s+(?P<last>\d+)\s*\))
    | (?P<leaf>\(\s*leaf\s+(?P<edu>\d+)\s*\))
    | (?P<relation>\(\s*rel2par\s+(?P<name>[^\s()]+)\s*\))
    | (?P<text>\(\s*text\s+_!(?P<words>.*?)_!\s*\))
    | (?P<close>\))""",
    re.VERBOSE | re.DOTALL,
)
"""The annotation tool left `//TT_ERR` in some files of the RST-DT."""


@dataclass
class _Bracket:
    """An open bracket."""

    role: str
    line: int
    bounds: tuple[int, int] | None = None
    is_leaf: bool = False
    relation: str = SPAN
    text: str | None = None
    below: list["_Bracket"] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # nodes of `below`


def parse_brackets(text: str, *, where: str) -> RstFile:
    """Parse a `.dis` file.

    The leaves determine the span of a node. Wrong spans in the file are counted.
    """
    texts: dict[int, str] = {}
    n_wrong_spans = 0
    top = _Bracket("", 1)
    stack = [top]
    position = 0
    line = 1
    while position < len(text):
        match = TOKENS.match(text, position)
        if match is None:
            raise UserError(f"{where}: line {line}: cannot be parsed: {text[position : position + 30]!r}")
        part = stack[-1]
        if match["open"]:
            stack.append(_Bracket(match["role"], line))
        elif part is top and match.lastgroup is not None:
            raise UserError(f"{where}: line {line}: {match[0]!r} is outside the tree")
        elif match["close"]:
            stack.pop()
            node = _close(part, texts, where=f"{where}: line {part.line}")
            n_wrong_spans += (node.first + 1, node.last + 1) != part.bounds
            stack[-1].nodes.append(node)
            stack[-1].below.append(part)
        elif match["span"]:
            part.bounds = int(match["first"]), int(match["last"])
        elif match["leaf"]:
            part.bounds = int(match["edu"]), int(match["edu"])
            part.is_leaf = True
        elif match["relation"]:
            part.relation = match["name"]
        elif match["text"]:
            part.text = match["words"]
        line += match[0].count("\n")
        position = match.end()
    if len(stack) > 1:
        raise UserError(f"{where}: the bracket in line {stack[-1].line} is never closed")
    if [part.role for part in top.below] != ["Root"]:
        raise UserError(f"{where}: expected one Root, found {len(top.below)} trees")
    tree = top.nodes[0]
    if tree.first != 0 or sorted(texts) != list(range(tree.last + 1)):
        missing = sorted(set(range(max(texts) + 1)) - set(texts))
        leaves = f"{len(texts)} up to {max(texts) + 1}"
        if missing:
            leaves += f" without {missing[0] + 1}"
        raise UserError(f"{where}: the leaves must be EDUs 1 to n without duplicates, not {leaves}")
    return RstFile(tree, tuple(texts[edu] for edu in range(tree.last + 1)), n_wrong_spans=n_wrong_spans)


def _close(part: _Bracket, texts: dict[int, str], *, where: str) -> Node:
    if part.bounds is None:
        raise UserError(f"{where}: {part.role} has neither (span …) nor (leaf …)")
    if part.is_leaf:
        first = part.bounds[0] - 1
        if part.nodes or part.text is None:
            raise UserError(f"{where}: leaf {first + 1} must have a text and no children")
        if first in texts:
            raise UserError(f"{where}: duplicate leaf {first + 1}")
        texts[first] = part.text
        return leaf(first)
    letters = "".join(child.role[0] for child in part.below)
    try:
        return join(part.nodes, letters, [child.relation for child in part.below])
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
