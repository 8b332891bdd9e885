"""Dependency RST trees: conversion from constituents, checks, merging to sentences.

Binary trees are flattened first, because all further nuclei in a list depend on the first nucleus.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from docmt.discourse.constituents import Node, check_cover, flatten
from docmt.errors import UserError

ROOT = "root"
NO_HEAD = -1


@dataclass(frozen=True)
class DependencyTree:
    """One head per unit (EDU or sentence)."""

    heads: tuple[int, ...]  # head per unit, −1 for the root
    relations: tuple[str, ...]  # relation to the head per unit, `root` for the root


def to_dependencies(tree: Node, n_edus: int) -> DependencyTree:
    """Convert a constituent tree, n-ary or binary. A binary tree is flattened first.

    In a binary tree, a list nested in a list with the same relation counts as a binarized list. In other trees, it is a
    nested list.
    """
    is_binary = all(len(node.children) <= 2 for node in tree.postorder())
    if is_binary:
        tree = flatten(tree)
    return nary_to_dependencies(tree, n_edus)


def nary_to_dependencies(tree: Node, n_edus: int) -> DependencyTree:
    """Convert a tree that was not binarized, even if no node has three children.

    Li et al. (2014): the head of a constituent is the head of its leftmost nucleus. The heads of the other children
    depend on it.
    """
    check_cover(tree, n_edus)
    heads = [NO_HEAD] * n_edus
    relations = [ROOT] * n_edus

    def attach(node: Node, heads_of_children: list[int]) -> int:
        """Attach the heads of the children to the head of a node, and return it."""
        if node.is_leaf:
            return node.first
        head = heads_of_children[node.nuclearity.index("N")]
        for edu, relation in zip(heads_of_children, node.relations, strict=True):
            if edu != head:
                heads[edu] = head
                relations[edu] = relation
        return head

    tree.fold(attach)
    return DependencyTree(tuple(heads), tuple(relations))


def check_dependencies(heads: Sequence[int], *, where: str) -> None:
    """Raise UserError unless the heads form one tree: one root, heads in range, no cycle."""
    if not all(isinstance(head, Integral) for head in heads):  # other programs write 2.0
        raise UserError(f"{where}: every head must be a whole number")
    roots = [unit for unit, head in enumerate(heads) if head == NO_HEAD]
    if any(not NO_HEAD <= head < len(heads) for head in heads):
        raise UserError(f"{where}: a head is not one of the {len(heads)} units")
    if len(roots) > 1:
        raise UserError(f"{where}: units {roots[0] + 1} and {roots[1] + 1} are both roots, but a tree has only one")
    done = {NO_HEAD}  # units with a path to the root
    for start in range(len(heads)):
        unit = start
        path = set()
        while unit not in done:
            if unit in path:
                raise UserError(f"{where}: unit {unit + 1} depends on itself through its heads (a cycle)")
            path.add(unit)
            unit = heads[unit]
        done |= path


def depths(heads: Sequence[int]) -> np.ndarray:
    """Return the depths of all units: their numbers of steps to the root, int64."""
    depth = np.full(len(heads), -1, dtype=np.int64)
    for start in range(len(heads)):
        path = []
        unit = start
        while unit != NO_HEAD and depth[unit] < 0:
            path.append(unit)
            unit = heads[unit]
        base = -1 if unit == NO_HEAD else int(depth[unit])
        for steps, done in enumerate(reversed(path), start=1):
            depth[done] = base + steps
    return depth


def merge_to_sentences(heads: Sequence[int], sentence_of: Sequence[int], n_sentences: int) -> tuple[int, ...]:
    """Merge EDUs into a tree over sentences with at least one EDU (RST-Transformer §2.2, Figure 3).

    A sentence takes the arc of its highest EDU (smallest depth, leftmost on ties). The head of this EDU is one step
    higher and in another sentence, so the minimum depth always decreases from a sentence to its head. Therefore, there
    is no cycle, and only the sentence with the root has no head, even if EDUs in one sentence have heads in several
    other sentences.
    """
    merged = []
    for edu in highest_edus(heads, sentence_of, n_sentences):
        head = heads[edu]
        merged.append(NO_HEAD if head == NO_HEAD else sentence_of[head])
    return tuple(merged)


def highest_edus(heads: Sequence[int], sentence_of: Sequence[int], n_sentences: int) -> list[int]:
    """Return the EDU with the smallest depth per sentence (leftmost on ties). Its head is in another sentence."""
    highest = [NO_HEAD] * n_sentences
    depth = depths(heads)
    for edu, sentence in enumerate(sentence_of):
        if highest[sentence] == NO_HEAD or depth[edu] < depth[highest[sentence]]:
            highest[sentence] = edu
    return highest


def number_through(heads: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the heads of several trees, renumbered as rows of the result, int64."""
    starts = np.cumsum([0, *map(len, heads[:-1])])
    parts = []
    for part, start in zip(heads, starts, strict=True):
        parts.append(np.where(part < 0, NO_HEAD, part + start))
    return np.concatenate(parts)


def cut_heads(heads: np.ndarray, first: int, last: int) -> np.ndarray:
    """Slice the heads of units `first` to `last` − 1 and renumber them from `first`.

    A unit whose head is outside becomes a root. It can still attend to itself and its children. An instance thus has
    a forest from the document tree.
    """
    inside = np.asarray(heads[first:last], dtype=np.int64) - first
    return np.where((inside < 0) | (inside >= last - first), NO_HEAD, inside)
