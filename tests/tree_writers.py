"""Writers of tree files, for tests of what reads them."""

from docmt.discourse.constituents import Node
from docmt.discourse.dependencies import NO_HEAD
from docmt.discourse.treebanks.rsd import MULTINUCLEAR, SATELLITE
from docmt.discourse.treebanks.treebank import RsdFile, RstFile


def format_brackets(rst: RstFile) -> str:
    """Write the content of a `.dis` file, which `parse_brackets` reads back as the same tree and texts."""
    lines = []
    # Not recursive, as in `constituents`. A node is None where its bracket is to be closed.
    stack: list[tuple[str, str, str, Node | None]] = [("", "Root", "", rst.tree)]
    while stack:
        indent, role, relation, node = stack.pop()
        if node is None:
            lines.append(f"{indent})")
        elif node.is_leaf:
            text = rst.texts[node.first]
            lines.append(f"{indent}( {role} (leaf {node.first + 1}){relation} (text _!{text}_!) )")
        else:
            lines.append(f"{indent}( {role} (span {node.first + 1} {node.last + 1}){relation}")
            stack.append((indent, "", "", None))
            children = zip(node.children, node.nuclearity, node.relations, strict=True)
            stack.extend(
                (f"{indent}  ", "Nucleus" if letter == "N" else "Satellite", f" (rel2par {relation})", child)
                for child, letter, relation in reversed(list(children))
            )
    return "\n".join(lines) + "\n"


def format_rsd(rsd: RsdFile) -> str:
    """Write the content of an `.rsd` file."""
    lines = []
    rows = zip(rsd.texts, rsd.arcs.heads, rsd.arcs.relations, rsd.is_nucleus, strict=True)
    for number, (text, head, relation, is_nucleus) in enumerate(rows, start=1):
        label = "ROOT" if head == NO_HEAD else relation + (MULTINUCLEAR if is_nucleus else SATELLITE)
        lines.append("\t".join([str(number), text, "0", "_", "_", "_", str(head + 1), label, "_", "_"]))
    return "\n".join(lines) + "\n"
