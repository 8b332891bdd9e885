"""Gold discourse of generated documents: EDUs, constituent RST trees and their dependency form."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from docmt.controlled.building import Placed
from docmt.discourse.constituents import from_json
from docmt.discourse.dependencies import nary_to_dependencies

WORD = re.compile(r"Mrs?\.|\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """English words, with punctuation split off (`Mr.` and `Mrs.` keep their full stop)."""
    return WORD.findall(text)


def describe_discourse(document: str, placed: Sequence[Placed]) -> dict[str, Any]:
    """Describe the gold discourse of a document, as one value of `*.discourse.jsonl`.

    Each sentence is a complete subtree. A sentence joins the tree on its right frontier: with the largest
    constituent whose head is the sentence to which it is attached.
    """
    words: list[list[str]] = []
    edus: list[dict[str, int]] = []
    # For each sentence, the node whose right child is the largest constituent that the sentence heads. The right child
    # of `top` is the whole document.
    top: dict[str, Any] = {"children": [None, None]}
    above: list[dict[str, Any]] = []
    for index, item in enumerate(placed):
        parts = [split_words(edu) for edu in item.sentence.edus]
        words.append([word for part in parts for word in part])
        leaves, start = [], 0
        for part in parts:
            leaves.append({"edu": len(edus)})
            edus.append({"sentence": index, "start": start, "end": start + len(part)})
            start += len(part)
        tree = leaves[0] if len(leaves) == 1 else _join(leaves, item.sentence.relation, item.sentence.nuclearity)
        if index == 0:
            top["children"][1] = tree
            above.append(top)
            continue
        outer = above[item.parent]
        joined = _join([outer["children"][1], tree], item.relation, item.nuclearity)
        outer["children"][1] = joined
        # Where the parent is the satellite, the new sentence heads the whole, and the parent is closed.
        above.append(outer if item.nuclearity == "SN" else joined)
    root = top["children"][1]
    # Lists within lists stay as they are: nary_to_dependencies, unlike to_dependencies, does not flatten them.
    arcs = nary_to_dependencies(from_json(root), len(edus))
    pairs = zip(arcs.heads, arcs.relations, strict=True)
    return {
        "document": document,
        "sentences": words,
        "edus": edus,
        "tree": root,
        "dependency": [{"head": head, "relation": relation} for head, relation in pairs],
    }


def _join(children: list[dict[str, Any]], relation: str | None, nuclearity: str | None) -> dict[str, Any]:
    return {"relation": relation, "nuclearity": nuclearity, "children": children}


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
    """The EDU with the main clause of each sentence, which holds its nouns and pronouns."""
    first: dict[int, int] = {}
    for number, edu in enumerate(discourse["edus"]):
        first.setdefault(edu["sentence"], number)
    return [first[index] + (item.sentence.nuclearity == "SN") for index, item in enumerate(placed)]
