"""Constituent RST trees over the EDUs of a document.

No function is recursive, since the tree of a long document can be deeper than Python's stack.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from docmt.errors import UserError

SPAN = "span"
"""The relation between a nucleus and its parent if all siblings are satellites."""

Value = TypeVar("Value")


def postorder(root: Value, children_of: Callable[[Value], Iterable[Value]]) -> Iterator[Value]:
    """Yield the nodes of any tree in post-order: children before parents, from left to right."""
    # This is the reverse of a pre-order walk with children from right to left.
    walk = []
    stack = [root]
    while stack:
        walk.append(stack.pop())
        stack.extend(children_of(walk[-1]))
    return reversed(walk)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A constituent: one EDU, or children side by side."""

    first: int  # first and last EDU, counted from 0
    last: int
    children: tuple["Node", ...] = ()  # empty for an EDU, otherwise two or more
    nuclearity: str = ""  # `N` or `S` per child, at least one `N`
    relations: tuple[str, ...] = ()  # relation to this node per child, `span` for a nucleus with satellites only

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def relation(self) -> str:
        """The first relation of a child other than `span` (leaf: `span`)."""
        return next((relation for relation in self.relations if relation != SPAN), SPAN)

    def postorder(self) -> Iterator["Node"]:
        """Yield all nodes, children before parents, from left to right."""
        return postorder(self, attrgetter("children"))

    def fold(self, function: Callable[["Node", list[Value]], Value]) -> Value:
        """Compute a value bottom-up by `function(node, values of the children)`."""
        values: list[Value] = []
        for node in self.postorder():
            n = len(node.children)
            below = values[len(values) - n :]
            del values[len(values) - n :]
            values.append(function(node, below))
        return values[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and _flat(self) == _flat(other)

    def __hash__(self) -> int:
        return hash(tuple(_flat(self)))


def rename_relations(tree: Node, name_of: Callable[[str], str]) -> Node:
    """Return the tree with other names of its relations."""

    def rename(node: Node, children: list[Node]) -> Node:
        names = [name if name == SPAN else name_of(name) for name in node.relations]
        return Node(node.first, node.last, tuple(children), node.nuclearity, tuple(names))

    return tree.fold(rename)


def _flat(node: Node) -> list[tuple]:
    return [(part.first, part.last, part.nuclearity, part.relations) for part in node.postorder()]


def leaf(edu: int) -> Node:
    """Return the constituent for one EDU."""
    return Node(edu, edu)


def join(children: Sequence[Node], nuclearity: str, relations: Sequence[str]) -> Node:
    """Join adjacent constituents. Raises UserError if they do not form a valid node."""
    where = "discourse tree"
    if children:
        where = f"discourse tree: node over EDUs {children[0].first + 1} to {children[-1].last + 1}"
    if len(children) < 2:
        raise UserError(f"{where}: a node needs two or more children, not {len(children)}")
    if any(left.last + 1 != right.first for left, right in itertools.pairwise(children)):
        raise UserError(f"{where}: its children have a gap or overlap between them")
    if len(nuclearity) != len(children) or set(nuclearity) - {"N", "S"} or "N" not in nuclearity:
        raise UserError(f"{where}: nuclearity {nuclearity!r} must have one N or S per child, and at least one N")
    if len(relations) != len(children):
        raise UserError(f"{where}: {len(relations)} relations for {len(children)} children")
    return Node(children[0].first, children[-1].last, tuple(children), nuclearity, tuple(relations))


def join_pair(left: Node, right: Node, nuclearity: str, relation: str) -> Node:
    """Join two neighbors under a relation. It labels the satellite or both nuclei."""
    return join((left, right), nuclearity, join_names(nuclearity, relation))


def check_cover(tree: Node, n_edus: int, *, where: str = "") -> None:
    """Raise UserError unless the leaves are the EDUs 0 to n_edus − 1 in order."""
    leaves = [node.first for node in tree.postorder() if node.is_leaf]
    if leaves != list(range(n_edus)):
        raise UserError(
            f"{where}discourse tree: covers {len(leaves)} EDUs (leaves {leaves[0] + 1} to {leaves[-1] + 1}), but "
            f"the document has EDUs 1 to {n_edus}"
        )


def binarize(tree: Node) -> Node:
    """Binarize a tree, so that every inner node has two children.

    Nuclei are joined first, right-branching under their relation. Then satellites are joined, the nearest first, right
    before left. If satellites lie between nuclei, all children up to the last such satellite are joined from the left.
    Every EDU keeps its head in the dependency tree if the nuclei in a node share a relation and the last nucleus is not
    a list with the same relation.
    """

    def combine(node: Node, children: list[Node]) -> Node:
        if len(children) < 3:
            return Node(node.first, node.last, tuple(children), node.nuclearity, node.relations)
        first = node.nuclearity.index("N")
        last = node.nuclearity.rindex("N")
        # Up to the last satellite between nuclei, only joining from the left keeps the heads.
        between = max(node.nuclearity.rfind("S", first, last), first)
        core = children[first]
        for i in range(first + 1, between + 1):
            core = join_pair(core, children[i], "N" + node.nuclearity[i], node.relations[i])
        if between < last:
            further = children[last]
            for i in reversed(range(between + 1, last)):
                further = join_pair(children[i], further, "NN", node.relations[i])
            core = join_pair(core, further, "NN", node.relations[last])
        for i in range(last + 1, len(children)):
            core = join_pair(core, children[i], "NS", node.relations[i])
        for i in reversed(range(first)):
            core = join_pair(children[i], core, "SN", node.relations[i])
        return core

    return tree.fold(combine)


def flatten(tree: Node) -> Node:
    """Undo the binarization of multinuclear nodes: merge a last child with the same relation into its parent.

    Nodes whose nuclei have several relations stay unchanged, since `binarize` does not produce them from
    multinuclear nodes.
    """

    def combine(node: Node, children: list[Node]) -> Node:
        if node.is_leaf:
            return node
        last = children[-1]
        is_list = set(node.nuclearity) == {"N"} == set(last.nuclearity)
        if is_list and len({*node.relations, *last.relations}) == 1:
            merged = (*children[:-1], *last.children)
            return Node(node.first, node.last, merged, "N" * len(merged), (node.relation,) * len(merged))
        return Node(node.first, node.last, tuple(children), node.nuclearity, node.relations)

    return tree.fold(combine)


def to_json(tree: Node) -> list[Any]:
    """Convert a tree to plain values: its nodes in post-order.

    An EDU is a number. Other nodes have `children` (their number), `nuclearity` and `relation` (one relation, or one
    per child). The list is flat because JSON readers and writers fail on values with hundreds of nested levels.
    """
    values: list[Any] = []
    for node in tree.postorder():
        if node.is_leaf:
            values.append(node.first)
            continue
        relation: Any = node.relation
        if node.relations != join_names(node.nuclearity, node.relation):
            relation = list(node.relations)
        values.append({"children": len(node.children), "nuclearity": node.nuclearity, "relation": relation})
    return values


def join_names(nuclearity: str, relation: str) -> tuple[str, ...]:
    """Return the relations per child, for a node whose children share one relation."""
    names = [relation] * len(nuclearity)
    if nuclearity.count("N") == 1:
        names[nuclearity.index("N")] = SPAN
    return tuple(names)


def from_json(value: Any) -> Node:
    """Build a tree from the values of `to_json`, or from nested mappings (`flatten_nested`)."""
    done: list[Node] = []
    try:
        items = value if isinstance(value, list) else flatten_nested(value)
        for item in items:
            if isinstance(item, int):
                done.append(leaf(item))
                continue
            n = item["children"]
            if not 0 < n <= len(done):
                raise ValueError(f"a node of {n} children after {len(done)}")
            children = done[-n:]
            del done[-n:]
            relation = item["relation"]
            nuclearity = item["nuclearity"]
            if isinstance(relation, str):
                relations = join_names(nuclearity, relation)
            else:
                relations = tuple(relation)
            if not all(isinstance(name, str) for name in relations):
                raise ValueError(f"relations must be text, not {relation!r}")
            done.append(join(children, nuclearity, relations))
        if len(done) != 1:
            raise ValueError(f"{len(done)} roots")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"discourse tree: not a tree in the form of docs/files.md ({error!r})") from None
    return done[0]


def flatten_nested(value: Any) -> Iterator[Any]:
    """Yield the nodes of nested mappings in post-order, as in `to_json`.

    A mapping is `{"edu": n}`, or contains a list of mappings as `children`.
    """
    for item in postorder(value, lambda item: () if "edu" in item else item["children"]):
        if "edu" in item:
            yield int(item["edu"])
        else:
            yield {**item, "children": len(item["children"])}
