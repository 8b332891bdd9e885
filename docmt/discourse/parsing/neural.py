"""The neural parser: greedy shift-reduce on the word states of a trained segmenter.

Shapes: E EDUs of all documents of a batch, Q states, C classes, B documents.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.neural_examples import merge_rows, merge_slots, pool, state_slots
from docmt.discourse.parsing.neural_model import ParserNetwork, SpanClassifier
from docmt.discourse.parsing.structure import Sketch, state_values
from docmt.discourse.parsing.transitions import Constraint, State, build_tree, merges, parse_greedily


@dataclass(frozen=True)
class _Cached:
    """A classifier with the caches of one batch of documents."""

    classifier: SpanClassifier
    cache: tuple[Tensor, Tensor]


def greedy_trees(
    networks: Sequence[ParserNetwork],
    relations: Sequence[str],
    documents: Sequence[DiscourseDocument],
    inputs: Sequence[Tensor],
    *,
    sentence_constraint: bool,
    paragraph_constraint: bool,
) -> tuple[list[DiscourseDocument], int]:
    """Parse documents in lock-step.

    Args:
        networks: their log probabilities are averaged.
        relations: names of the relation classes.
        documents: with one EDU or more each.
        inputs: pooled word states of each document, [its EDUs, I].

    Returns the documents with trees, and how often a constraint overruled the networks.
    """
    lengths = [len(document.edus) for document in documents]
    offsets = torch.tensor([0, *lengths]).cumsum(0).tolist()
    sketches = [Sketch(document) for document in documents]
    constraints = [
        Constraint(sketch.layout, sentences=sentence_constraint, paragraphs=paragraph_constraint) for sketch in sketches
    ]
    encoded = [network.encoder(torch.cat(list(inputs)), lengths) for network in networks]
    actions = [
        _Cached(network.actions, network.actions.cache(edus_ER, lengths))
        for network, edus_ER in zip(networks, encoded, strict=True)
    ]

    def score(states: list[State], numbers: list[int]) -> list[list[float]]:
        slots = [
            _placed(state_slots(sketches[number], state), offsets[number], offsets[-1])
            for state, number in zip(states, numbers, strict=True)
        ]
        values = [state_values(sketches[number], state) for state, number in zip(states, numbers, strict=True)]
        return _average(actions, slots, values, numbers).tolist()

    states, n_enforced = parse_greedily(constraints, lengths, score)
    nodes = [merges(state.actions) for state in states]
    names: list[list[str]] = [[] for _ in documents]
    if any(nodes):
        slots = [
            _placed(merge_slots(node), offset, offsets[-1])
            for part, offset in zip(nodes, offsets[:-1], strict=True)
            for node in part
        ]
        values = [row for sketch, part in zip(sketches, nodes, strict=True) for row in merge_rows(sketch, part)]
        numbers = [number for number, part in enumerate(nodes) for _ in part]
        classifiers = [
            _Cached(network.relations, network.relations.cache(edus_ER, lengths))
            for network, edus_ER in zip(networks, encoded, strict=True)
        ]
        for number, best in zip(numbers, _average(classifiers, slots, values, numbers).argmax(-1).tolist(), strict=True):
            names[number].append(relations[best])
    parsed = [
        replace(document, tree=build_tree(state.actions, part), arcs=None)
        for document, state, part in zip(documents, states, names, strict=True)
    ]
    return parsed, n_enforced


def _placed(slots: list[int], offset: int, none: int) -> list[int]:
    return [slot + offset if slot >= 0 else none for slot in slots]


def _average(
    classifiers: Sequence[_Cached], slots: list[list[int]], values: list[list[int]], numbers: list[int]
) -> Tensor:
    """Mean log probabilities, [Q, C]."""
    rows = (torch.tensor(slots), torch.tensor(values), torch.tensor(numbers))
    total_QC = sum(part.classifier(part.cache, *rows).log_softmax(-1) for part in classifiers)
    return total_QC / len(classifiers)
