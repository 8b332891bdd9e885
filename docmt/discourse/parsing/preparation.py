"""Gold trees for training: binary, with coarse relations."""

from collections.abc import Callable, Iterable

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.trees import SPAN, Node, binarise
from docmt.errors import UserError


def coarsen(tree: Node, coarse: Callable[[str], str]) -> Node:
    """Rename the relations of a tree."""

    def rename(node: Node, children: list[Node]) -> Node:
        names = tuple(name if name == SPAN else coarse(name) for name in node.relations)
        return Node(node.first, node.last, tuple(children), node.nuclearity, names)

    return tree.fold(rename)


def training_tree(document: DiscourseDocument, coarse: Callable[[str], str]) -> Node:
    """Return the tree of a document, binarized, with coarse relations. Raises UserError when it has none."""
    if document.tree is None:
        raise UserError(f"parser training: document {document.id!r} has no tree: train on gold trees")
    return binarise(coarsen(document.tree, coarse))


def relation_names(trees: Iterable[Node]) -> tuple[str, ...]:
    """Return all relations of the trees, sorted. Raises UserError when there are none."""
    names = {node.relation for tree in trees for node in tree.postorder() if not node.is_leaf}
    if not names:
        raise UserError("parser training: no document has two EDUs or more, so there is nothing to learn")
    return tuple(sorted(names))
