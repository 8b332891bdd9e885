"""What the treebank formats have in common: a tree over EDUs and the texts of the EDUs, as annotated."""

from dataclasses import dataclass

from docmt.discourse.trees import Node


@dataclass(frozen=True)
class RstFile:
    """One annotated document.

    Attributes:
        tree: constituents over the EDUs.
        texts: of each EDU.
        is_nary: whether the format holds n-ary trees, so that a node of two children is no part of a binarised one.
        n_secondary_edges: edges beside the tree (eRST, `.rs4`) that were passed over.
        n_lifted: constituents that hang higher than annotated, because their edges cross others.
    """

    tree: Node
    texts: tuple[str, ...]
    is_nary: bool = False
    n_secondary_edges: int = 0
    n_lifted: int = 0
