"""Gold discourse of generated documents: EDUs, constituent RST trees and their dependency form."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from docmt.corpora.controlled.drafts import Placed
from docmt.rst import dependency_arcs, flatten_nested

WORD = re.compile(r"Mrs?\.|\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """English words, with punctuation split off (`Mr.` and `Mrs.` keep their full stop)."""
    return WORD.findall(text)


@dataclass
class _Node:
    """A constituent while the tree grows; `head` is the EDU at the end of the path of leftmost nuclei."""

    head: int
    children: list["_Node"] = field(default_factory=list)
    relation: str = ""
    nuclearity: str = ""
    parent: "_Node | None" = None

    def as_json(self) -> dict[str, Any]:
        if not self.children:
            return {"edu": self.head}
        return {
            "relation": self.relation,
            "nuclearity": self.nuclearity,
            "children": [child.as_json() for child in self.children],
        }


def _combine(left: _Node, right: _Node, relation: str, nuclearity: str) -> _Node:
    head = right.head if nuclearity == "SN" else left.head
    node = _Node(head, [left, right], relation, nuclearity)
    left.parent = right.parent = node
    return node


def describe_discourse(document: str, placed: Sequence[Placed]) -> dict[str, Any]:
    """Describe the gold discourse of a document, as one value of `*.discourse.jsonl`.

    Each sentence is a complete subtree. A sentence joins the tree on its right frontier: with the largest
    constituent whose head is the sentence to which it is attached.
    """
    words: list[list[str]] = []
    edus: list[dict[str, int]] = []
    leaves: list[_Node] = []
    for index, item in enumerate(placed):
        sentence = item.sentence
        parts = [split_words(edu) for edu in sentence.edus]
        words.append([word for part in parts for word in part])
        start, nodes = 0, []
        for part in parts:
            nodes.append(_Node(len(edus)))
            edus.append({"sentence": index, "start": start, "end": start + len(part)})
            start += len(part)
        node = nodes[0]
        if sentence.relation is not None and sentence.nuclearity is not None:
            node = _combine(node, nodes[1], sentence.relation, sentence.nuclearity)
        if index > 0:
            _attach(leaves[item.parent], node, item)
        leaves.append(next(leaf for leaf in nodes if leaf.head == node.head))
    root = leaves[0]
    while root.parent is not None:
        root = root.parent
    tree = root.as_json()
    return {
        "document": document,
        "sentences": words,
        "edus": edus,
        "tree": tree,
        "dependency": dependencies(tree, len(edus)),
    }


def _attach(leaf: _Node, node: _Node, item: Placed) -> None:
    """Join `node` with the largest constituent that `leaf` heads."""
    target = leaf
    while target.parent is not None and target.parent.head == leaf.head:
        target = target.parent
    above = target.parent
    joined = _combine(target, node, item.relation, item.nuclearity)
    if above is not None:
        above.children[1] = joined
        joined.parent = above


def dependencies(tree: dict[str, Any], n_edus: int) -> list[dict[str, Any]]:
    """Convert a constituent tree as generated to dependencies, without flattening lists within lists.

    Returns one `{"head": EDU or -1, "relation": …}` per EDU. Raises UserError when the leaves of the tree are not the
    EDUs 0 to n_edus − 1 in order.
    """
    nodes = (
        item if isinstance(item, int) else (item["nuclearity"], [item["relation"]] * item["children"])
        for item in flatten_nested(tree)
    )
    arcs = zip(*dependency_arcs(nodes, n_edus), strict=True)
    return [{"head": head, "relation": relation} for head, relation in arcs]


def measure_neighborhood(documents: Iterable[tuple[Sequence[Placed], dict[str, Any]]]) -> dict[str, float]:
    """Count pronouns over documents, each with the discourse that describe_discourse made of it.

    Returns their number, and the shares whose antecedent is in an EDU next to theirs: the parent or a child in the
    dependency tree, and in the text.
    """
    n_pronouns = n_tree = n_text = 0
    for placed, discourse in documents:
        heads = [arc["head"] for arc in discourse["dependency"]]
        main = main_edus(discourse, placed)
        for index, item in enumerate(placed):
            if item.phenomenon != "pronoun" or item.antecedent is None:
                continue
            here, there = main[index], main[item.antecedent]
            n_pronouns += 1
            n_tree += heads[here] == there or heads[there] == here
            n_text += abs(here - there) == 1
    return {
        "n": n_pronouns,
        "antecedent_is_tree_neighbour": round(n_tree / max(1, n_pronouns), 4),
        "antecedent_is_text_neighbour": round(n_text / max(1, n_pronouns), 4),
    }


def main_edus(discourse: dict[str, Any], placed: Sequence[Placed]) -> list[int]:
    """The EDU with the main clause of each sentence; which holds its nouns and pronouns."""
    first: dict[int, int] = {}
    for number, edu in enumerate(discourse["edus"]):
        first.setdefault(edu["sentence"], number)
    return [first[index] + (item.sentence.nuclearity == "SN") for index, item in enumerate(placed)]
