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
        n_wrong_spans: nodes of a `.dis` file whose span is not that of their children, which was taken instead.
        n_trees: trees of an `.rs3` file; several were joined as the nuclei of one node.
    """

    tree: Node
    texts: tuple[str, ...]
    is_nary: bool = False
    n_secondary_edges: int = 0
    n_lifted: int = 0
    n_wrong_spans: int = 0
    n_trees: int = 1
