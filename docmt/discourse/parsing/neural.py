"""The neural parser: greedy shift-reduce on the word states of a trained segmenter.

Shapes: E EDUs of all documents of a batch, Q states, C classes, B documents.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import WordStates
from docmt.discourse.parsing.neural_examples import edu_inputs, merge_rows, merge_slots, state_slots
from docmt.discourse.parsing.neural_model import ClassifierCache, EduInputs, ParserNetwork, SpanClassifier
from docmt.discourse.parsing.structure import Sketch, state_values
from docmt.discourse.parsing.transitions import Constraint, State, build_tree, merges, parse_greedily
from docmt.discourse.trees import Node

MAX_BATCH_EDUS = 4000
"""Documents are parsed side by side up to so many EDUs."""


class StateSource(Protocol):
    """What the neural parser needs of a segmenter."""

    def states(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """Word states of each sentence, float32 [words, width]."""


@dataclass
class NeuralParser:
    """Networks that read the word states of one segmenter.

    Attributes:
        networks: the ensemble.
        relations: names of the relation classes.
        segmenter: whose states they were trained on.
        sentence_constraint, paragraph_constraint: whether every sentence, every paragraph becomes one subtree.
        counts: see `Parser`.
    """

    networks: Sequence[ParserNetwork]
    relations: Sequence[str]
    segmenter: StateSource
    sentence_constraint: bool = True
    paragraph_constraint: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with a tree."""
        return self.parse_batch([document])[0]

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """The documents with trees; many at a time are faster than one."""
        if states is None:
            states = word_states(self.segmenter, documents)
        parsed: list[DiscourseDocument] = []
        for chosen in _groups([len(document.edus) for document in documents]):
            with torch.no_grad():
                parsed += self._parse_group([documents[i] for i in chosen], [states[i] for i in chosen])
        return parsed

    def _parse_group(self, documents: list[DiscourseDocument], states: WordStates) -> list[DiscourseDocument]:
        """Parse documents side by side; those without EDUs have no tree."""
        full = [number for number, document in enumerate(documents) if document.edus]
        trees: dict[int, Node] = {}
        if full:
            inputs = [edu_inputs(documents[number], states[number]) for number in full]
            found, n_enforced = greedy_trees(
                self.networks,
                self.relations,
                [documents[number] for number in full],
                inputs,
                sentence_constraint=self.sentence_constraint,
                paragraph_constraint=self.paragraph_constraint,
            )
            trees = dict(zip(full, found, strict=True))
            self.counts["enforced"] += n_enforced
        self.counts.update(documents=len(documents), edus=sum(len(document.edus) for document in documents))
        return [replace(document, tree=trees.get(number), arcs=None) for number, document in enumerate(documents)]


def word_states(segmenter: StateSource, documents: Sequence[DiscourseDocument]) -> list[list[Tensor]]:
    """The word states of the sentences of documents."""
    states = iter(segmenter.states([words for document in documents for words in document.sentences]))
    return [[next(states) for _ in document.sentences] for document in documents]


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Runs of documents of at most `MAX_BATCH_EDUS` EDUs, or one longer document."""
    group: list[int] = []
    size = 0
    for number, length in enumerate(lengths):
        if group and size + length > MAX_BATCH_EDUS:
            yield group
            group, size = [], 0
        group.append(number)
        size += length
    if group:
        yield group


@dataclass(frozen=True)
class _Cached:
    """A classifier with the caches of one batch of documents."""

    classifier: SpanClassifier
    cache: ClassifierCache


def greedy_trees(
    networks: Sequence[ParserNetwork],
    relations: Sequence[str],
    documents: Sequence[DiscourseDocument],
    inputs: Sequence[EduInputs],
    *,
    sentence_constraint: bool,
    paragraph_constraint: bool,
) -> tuple[list[Node], int]:
    """Parse documents in lock-step.

    Args:
        networks: their log probabilities are averaged.
        relations: names of the relation classes.
        documents: with one EDU or more each.
        inputs: the words of each document.

    Returns the trees, and how often a constraint overruled the networks.
    """
    lengths = [len(document.edus) for document in documents]
    offsets = torch.tensor([0, *lengths]).cumsum(0).tolist()
    sketches = [Sketch(document) for document in documents]
    constraints = [
        Constraint(sketch.layout, sentences=sentence_constraint, paragraphs=paragraph_constraint) for sketch in sketches
    ]
    joined = EduInputs.join(inputs)
    encoded = [network.encoder(joined) for network in networks]
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
        for number, best in zip(
            numbers, _average(classifiers, slots, values, numbers).argmax(-1).tolist(), strict=True
        ):
            names[number].append(relations[best])
    trees = [build_tree(state.actions, part) for state, part in zip(states, names, strict=True)]
    return trees, n_enforced


def _placed(slots: list[int], offset: int, none: int) -> list[int]:
    return [slot + offset if slot >= 0 else none for slot in slots]


def _average(
    classifiers: Sequence[_Cached], slots: list[list[int]], values: list[list[int]], numbers: list[int]
) -> Tensor:
    """Mean log probabilities, [Q, C]."""
    rows = (torch.tensor(slots), torch.tensor(values), torch.tensor(numbers))
    total_QC = sum(part.classifier(part.cache, *rows).log_softmax(-1) for part in classifiers)
    return total_QC / len(classifiers)
