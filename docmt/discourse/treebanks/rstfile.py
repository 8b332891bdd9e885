"""What all treebank formats share: a tree over EDUs and the texts of the EDUs, as annotated."""

from dataclasses import dataclass

from docmt.discourse.trees import Node


@dataclass(frozen=True)
class RstFile:
    """One annotated document.

    Attributes:
        tree: constituents over the EDUs.
        texts: of each EDU.
        is_nary: whether the format holds n-ary trees, so that nodes with two children were not binarized.
        n_secondary_edges: edges outside the tree (eRST, `.rs4`), which were skipped.
        n_lifted: constituents placed higher than annotated, because their edges cross others.
    """

    tree: Node
    texts: tuple[str, ...]
    is_nary: bool = False
    n_secondary_edges: int = 0
    n_lifted: int = 0
