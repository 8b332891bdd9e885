"""From RST constituents to dependencies, on plain values: what generated corpora and discourse trees share.

A tree is the list of its nodes in post-order (children before parents, left to right): an EDU is its number, any other
node is the nuclearity (`N` or `S`) and the relations of its children.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from docmt.errors import UserError

ROOT = "root"
NO_HEAD = -1

Constituent = tuple[str, Sequence[str]]


def dependency_arcs(nodes: Iterable[int | Constituent], n_edus: int) -> tuple[list[int], list[str]]:
    """Convert a tree by the rules of Li et al. (2014).

    The head of a constituent is the head of its leftmost nucleus; the heads of its other children depend on it. Raises
    UserError when the leaves are not the EDUs 0 to n_edus − 1 in order.

    Args:
        nodes: in post-order. Flatten binarized lists first: all nuclei of a list depend on its first nucleus, but in
            a binarized list each would depend on the one before.
        n_edus: number of EDUs of the document.

    Returns:
        The head of each EDU (−1 for the root) and its relation to the head (`root` for the root).
    """
    leaves: list[int] = []
    heads: list[int] = []  # of the constituents that have no parent yet
    arcs: dict[int, tuple[int, str]] = {}
    for node in nodes:
        if isinstance(node, int):
            leaves.append(node)
            heads.append(node)
            continue
        nuclearity, relations = node
        children = heads[-len(nuclearity) :]
        del heads[-len(nuclearity) :]
        head = children[nuclearity.index("N")]
        arcs |= {child: (head, name) for child, name in zip(children, relations, strict=True) if child != head}
        heads.append(head)
    check_leaves(leaves, n_edus)
    found = [arcs.get(edu, (NO_HEAD, ROOT)) for edu in range(n_edus)]
    return [head for head, _ in found], [name for _, name in found]


def check_leaves(leaves: list[int], n_edus: int) -> None:
    """Raise UserError unless the leaves are the EDUs 0 to n_edus − 1 in order."""
    if leaves != list(range(n_edus)):
        raise UserError(
            f"discourse tree: it covers {len(leaves)} EDUs (leaves {leaves[0] + 1} to {leaves[-1] + 1}), "
            f"but the document has EDUs 1 to {n_edus}"
        )


def flatten_nested(value: Any) -> Iterator[Any]:
    """Yield the nodes of nested mappings in post-order.

    Args:
        value: `{"edu": n}`, or a mapping that holds `children`, a list of such mappings.

    Yields:
        An EDU as its number; any other node as its mapping, with the number of its `children` in their place.
    """
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, is_open = stack.pop()
        if "edu" in item:
            yield int(item["edu"])
        elif is_open:
            yield {**item, "children": len(item["children"])}
        else:
            stack.append((item, True))
            stack.extend((child, False) for child in reversed(item["children"]))
