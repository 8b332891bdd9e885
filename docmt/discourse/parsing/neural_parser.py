"""The neural parser: greedy shift-reduce on the word states of a trained segmenter."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.constituents import Node
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import Parser, WordStates
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.ensemble import Ensemble
from docmt.discourse.parsing.neural_examples import edu_inputs, merge_slots, number_words, state_slots
from docmt.discourse.parsing.neural_network import EduInputs
from docmt.discourse.parsing.structural_features import merge_values, state_values
from docmt.discourse.parsing.transitions import Constraint, Merge, State, build_tree, merges, parse_greedily
from docmt.discourse.segmentation.segmenter import Segmenter, SentenceReading

MAX_BATCH_EDUS = 1000
"""Maximum number of EDUs in documents that are parsed side by side."""


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

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        return self.parse_batch([document])[0]

    @override
    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
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
        self.counts.update(documents=len(documents), edus=sum(len(document.edus) for document in documents))
        full = [number for number, document in enumerate(documents) if document.edus]
        trees: dict[int, Node] = {}
        if full:
            word_numbers = number_words(self.words)
            inputs = [edu_inputs(documents[number], states[number], word_numbers) for number in full]
            batch = _DocumentBatch([documents[number] for number in full], inputs, self.ensemble)
            constraints = [
                Constraint(profile.units, sentences=self.sentence_constraint, paragraphs=self.paragraph_constraint)
                for profile in batch.profiles
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

    With `reads_lower`, each row is the state of the upper BiLSTM followed by the state of the lower one.
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
        self.profiles = [DocumentProfile(document) for document in documents]
        self.offsets = [0, *itertools.accumulate(self.lengths)]
        self.ensemble = ensemble
        self._encoded = ensemble.encode(EduInputs.join(inputs))
        self._actions = ensemble.actions.cache(self._encoded, self.lengths)

    def score(self, states: list[State], numbers: list[int]) -> list[list[float]]:
        """Compute log probabilities of the actions, for states of documents with these numbers."""
        slots, values = [], []
        for state, number in zip(states, numbers, strict=True):
            slots.append(self._place(state_slots(self.profiles[number], state), number))
            values.append(state_values(self.profiles[number], state))
        rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
        return self.ensemble.actions.log_probabilities(self._actions, *rows).tolist()

    def relations(self, nodes: Sequence[Sequence[Merge]]) -> list[list[int]]:
        """Find the best relation of each node of each document."""
        slots, values, numbers = [], [], []
        for number, (profile, part) in enumerate(zip(self.profiles, nodes, strict=True)):
            slots += [self._place(merge_slots(node), number) for node in part]
            values += merge_values(profile, part)
            numbers += [number] * len(part)
        if not slots:
            return [[] for _ in nodes]
        cache = self.ensemble.relations.cache(self._encoded, self.lengths)
        rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
        best = iter(self.ensemble.relations.log_probabilities(cache, *rows).argmax(-1).tolist())
        return [list(itertools.islice(best, len(part))) for part in nodes]

    def _place(self, slots: list[int], number: int) -> list[int]:
        """Map slots of a document to slots of the batch; the EDU after the last one is for empty slots."""
        offset, none = self.offsets[number], self.offsets[-1]
        return [slot + offset if slot >= 0 else none for slot in slots]
