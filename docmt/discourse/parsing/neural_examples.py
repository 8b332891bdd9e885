"""Inputs of the neural parser as arrays, and training examples from gold trees.

Shapes: D width of a word state, Q states or nodes, L slots, F features.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from docmt.discourse.constituents import Node
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.neural_network import EduInputs
from docmt.discourse.parsing.structural_features import merge_values, state_values
from docmt.discourse.parsing.transitions import Merge, State, gold_actions, merges

NO_EDU = -1


def edge_words(document: DiscourseDocument, edu: int) -> tuple[str, str, str]:
    """Return the first, second and last word of an EDU in lower case; empty where there is none."""
    words = [word.lower() for word in document.edu_words(edu)]
    return words[0] if words else "", words[1] if len(words) > 1 else "", words[-1] if words else ""


def learn_words(documents: Iterable[DiscourseDocument], *, min_count: int) -> tuple[str, ...]:
    """Return the words seen at least `min_count` times at the edges of EDUs, sorted."""
    counts = Counter(
        word for document in documents for edu in range(len(document.edus)) for word in edge_words(document, edu)
    )
    return tuple(sorted(word for word, count in counts.items() if word and count >= min_count))


def edu_inputs(document: DiscourseDocument, states: Sequence[Tensor], numbers: Mapping[str, int]) -> EduInputs:
    """Collect the network's input for a document with EDUs.

    Args:
        document: the document.
        states: word states of each sentence, [its words, D].
        numbers: the parser's vocabulary (`number_words`).
    """
    lengths = torch.tensor([edu.end - edu.start for edu in document.edus])
    edu_W = torch.arange(len(document.edus)).repeat_interleave(lengths)
    edges = [[numbers.get(word, 0) for word in edge_words(document, edu)] for edu in range(len(document.edus))]
    return EduInputs(torch.cat(list(states)).float(), edu_W, torch.tensor(edges), (len(document.edus),))


def number_words(words: Sequence[str]) -> dict[str, int]:
    """Number words from 1; 0 is for all other words."""
    return {word: number for number, word in enumerate(words, start=1)}


def state_slots(profile: DocumentProfile, state: State) -> list[int]:
    """Return the EDUs that represent a state; −1 where there is none.

    They are the first, last and nucleus EDU of the two upper spans, the last and nucleus EDU of the third, the first
    EDU of the queue, the last one of its sentence, and the first one after that.
    """
    slots = [NO_EDU] * 11
    n_stack = len(state.firsts)
    if n_stack:
        slots[0:3] = state.firsts[-1], state.lasts[-1], state.nuclei[-1]
    if n_stack > 1:
        slots[3:6] = state.firsts[-2], state.lasts[-2], state.nuclei[-2]
    if n_stack > 2:
        slots[6:8] = state.lasts[-3], state.nuclei[-3]
    if state.next < state.n_edus:
        end = profile.units.sentences.last[state.next]
        slots[8:10] = state.next, end
        if end + 1 < state.n_edus:
            slots[10] = end + 1
    return slots


def merge_slots(merge: Merge) -> list[int]:
    """Return the EDUs that represent a node: first, last and nucleus EDU of both children."""
    return [*merge.left, *merge.right]


@dataclass(frozen=True)
class Decisions:
    """States or nodes with their gold classes.

    Attributes:
        slots_QL: int64, EDUs of the document; −1 for none.
        values_QF: int16, structural values; one array with paragraphs and one without.
        labels_Q: int64, the gold classes.
    """

    slots_QL: np.ndarray
    values_QF: tuple[np.ndarray, np.ndarray]
    labels_Q: np.ndarray


@dataclass(frozen=True)
class ParserExample:
    """A training document: its words, the states on the way to its tree, and the internal nodes of the tree."""

    inputs: EduInputs
    steps: Decisions
    nodes: Decisions


def make_example(
    document: DiscourseDocument,
    tree: Node,
    states: Sequence[Tensor],
    *,
    relations: Sequence[str],
    numbers: Mapping[str, int],
) -> ParserExample:
    """Replay the oracle on a document with at least two EDUs and its binary tree of coarse `relations`.

    The word states and numbers are as for `edu_inputs`.
    """
    # Structural values with and without paragraphs, since each epoch hides the paragraphs of other documents.
    actions = gold_actions(tree)
    nodes = merges(actions)
    names = [node.relation for node in tree.postorder() if not node.is_leaf]
    step_values, node_values, slots = [], [], []
    for variant in (document, replace(document, paragraphs=None)):
        profile, state = DocumentProfile(variant), State(len(document.edus))
        rows, slots = [], []
        for action in actions:
            rows.append(state_values(profile, state))
            slots.append(state_slots(profile, state))
            state.apply(action)
        step_values.append(np.array(rows, dtype=np.int16))
        node_values.append(np.array(merge_values(profile, nodes), dtype=np.int16))
    node_slots, labels = [merge_slots(node) for node in nodes], [relations.index(name) for name in names]
    return ParserExample(
        edu_inputs(document, states, numbers),
        Decisions(np.array(slots), (step_values[0], step_values[1]), np.array(actions)),
        Decisions(np.array(node_slots), (node_values[0], node_values[1]), np.array(labels)),
    )


def collate(decisions: Sequence[Decisions], lengths: Sequence[int], hidden: Sequence[bool]) -> list[Tensor]:
    """Join the decisions of several documents: slots_QL, values_QF and documents_Q of `SpanClassifier`, and labels_Q.

    Args:
        decisions: of each document.
        lengths: number of EDUs of each document.
        hidden: whether to hide the paragraphs of each document.
    """
    offsets = np.cumsum([0, *lengths])
    slots = [
        np.where(part.slots_QL == NO_EDU, offsets[-1], part.slots_QL + offset)
        for part, offset in zip(decisions, offsets[:-1], strict=True)
    ]
    values = [part.values_QF[int(hide)] for part, hide in zip(decisions, hidden, strict=True)]
    numbers = [np.full(len(part.labels_Q), number) for number, part in enumerate(decisions)]
    columns = (slots, values, numbers, [part.labels_Q for part in decisions])
    return [torch.from_numpy(np.concatenate(parts).astype(np.int64)) for parts in columns]
