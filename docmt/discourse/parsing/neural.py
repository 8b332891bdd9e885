"""The neural parser: greedy shift-reduce on the word states of a trained segmenter."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from docmt.batching import fill_batches
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import Parser, WordStates
from docmt.discourse.parsing.ensemble import Ensemble
from docmt.discourse.parsing.neural_examples import edu_inputs, merge_rows, merge_slots, number_words, state_slots
from docmt.discourse.parsing.neural_model import EduInputs
from docmt.discourse.parsing.sketch import Sketch
from docmt.discourse.parsing.structure import state_values
from docmt.discourse.parsing.transitions import Constraint, Merge, State, build_tree, merges, parse_greedily
from docmt.discourse.segmentation.prediction import Segmenter, SentenceReading
from docmt.discourse.trees import Node

MAX_BATCH_EDUS = 1000
"""Most EDUs in documents that are parsed side by side."""


@dataclass
class NeuralParser(Parser):
    """Networks that read the word states of one segmenter.

    Attributes:
        ensemble: the networks.
        relations: names of the relation classes.
        words: the vocabulary of words at the edges of EDUs.
        segmenter: provides the word states on which the networks were trained.
        reads_lower: whether the networks also read the states of its lower BiLSTM.
        sentence_constraint: whether every sentence becomes one complete subtree.
        paragraph_constraint: whether every paragraph becomes one complete subtree.
    """

    ensemble: Ensemble
    relations: Sequence[str]
    words: Sequence[str]
    segmenter: Segmenter
    reads_lower: bool = True
    sentence_constraint: bool = True
    paragraph_constraint: bool = False

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return number_words(self.words)

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """Return the document with a tree."""
        return self.parse_batch([document])[0]

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Return the documents with trees, none without EDUs; parsing many at a time is faster.

        `states` are as returned by `word_states`; None to compute them here.
        """
        if states is None:
            readings = self.segmenter.read([words for document in documents for words in document.sentences])
            states = word_states(readings, documents, reads_lower=self.reads_lower)
        parsed: list[DiscourseDocument] = []
        pairs = zip(documents, states, strict=True)
        for group in fill_batches(pairs, MAX_BATCH_EDUS, cost=lambda pair: len(pair[0].edus)):
            with torch.no_grad():
                parsed += self._parse_group([document for document, _ in group], [own for _, own in group])
        return parsed

    def _parse_group(self, documents: list[DiscourseDocument], states: WordStates) -> list[DiscourseDocument]:
        """Parse documents side by side; those without EDUs get no tree."""
        self.counts.update(documents=len(documents), edus=sum(len(document.edus) for document in documents))
        full = [number for number, document in enumerate(documents) if document.edus]
        trees: dict[int, Node] = {}
        if full:
            inputs = [edu_inputs(documents[number], states[number], self._numbers) for number in full]
            batch = _DocumentBatch([documents[number] for number in full], inputs, self.ensemble)
            constraints = [
                Constraint(sketch.layout, sentences=self.sentence_constraint, paragraphs=self.paragraph_constraint)
                for sketch in batch.sketches
            ]
            final, n_enforced = parse_greedily(constraints, batch.lengths, batch.score)
            self.counts["enforced"] += n_enforced
            found = batch.relations([merges(state.actions) for state in final])
            for number, state, best in zip(full, final, found, strict=True):
                trees[number] = build_tree(state.actions, [self.relations[place] for place in best])
        return [replace(document, tree=trees.get(number), arcs=None) for number, document in enumerate(documents)]


def word_states(
    readings: Iterable[SentenceReading], documents: Sequence[DiscourseDocument], *, reads_lower: bool
) -> list[list[Tensor]]:
    """Group the word states of all sentences, in order, by document and sentence.

    With `reads_lower`, the states of the lower BiLSTM are appended to those of the upper one.
    """
    states = (
        torch.cat([reading.states_TD, reading.lower_TD], dim=1) if reads_lower else reading.states_TD
        for reading in readings
    )
    return [list(itertools.islice(states, len(document.sentences))) for document in documents]


class _DocumentBatch:
    """Documents that are parsed side by side, with at least one EDU each."""

    def __init__(self, documents: Sequence[DiscourseDocument], inputs: Sequence[EduInputs], ensemble: Ensemble) -> None:
        self.lengths = [len(document.edus) for document in documents]
        self.sketches = [Sketch(document) for document in documents]
        self.offsets = [0, *itertools.accumulate(self.lengths)]
        self.ensemble = ensemble
        self._encoded = ensemble.encode(EduInputs.join(inputs))
        self._actions = ensemble.actions.cache(self._encoded, self.lengths)

    def score(self, states: list[State], numbers: list[int]) -> list[list[float]]:
        """Log probabilities of the actions, for states of some of the documents."""
        slots = [
            self._place(state_slots(self.sketches[number], state), number)
            for state, number in zip(states, numbers, strict=True)
        ]
        values = [state_values(self.sketches[number], state) for state, number in zip(states, numbers, strict=True)]
        rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
        return self.ensemble.actions.log_probabilities(self._actions, *rows).tolist()

    def relations(self, nodes: Sequence[Sequence[Merge]]) -> list[list[int]]:
        """The best relation of each node of each document."""
        slots = [self._place(merge_slots(node), number) for number, part in enumerate(nodes) for node in part]
        if not slots:
            return [[] for _ in nodes]
        values = [row for sketch, part in zip(self.sketches, nodes, strict=True) for row in merge_rows(sketch, part)]
        numbers = [number for number, part in enumerate(nodes) for _ in part]
        cache = self.ensemble.relations.cache(self._encoded, self.lengths)
        rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
        best = iter(self.ensemble.relations.log_probabilities(cache, *rows).argmax(-1).tolist())
        return [list(itertools.islice(best, len(part))) for part in nodes]

    def _place(self, slots: list[int], number: int) -> list[int]:
        """Map slots of a document to slots of the batch."""
        offset, none = self.offsets[number], self.offsets[-1]
        return [slot + offset if slot >= 0 else none for slot in slots]
