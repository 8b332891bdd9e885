"""The neural parser: greedy shift-reduce on the word states of a trained segmenter.

Shapes: D width of a word state.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.documents import DiscourseDocument, sentences_of
from docmt.discourse.parsing.baselines import Parser, WordStates
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.neural_network import EduInputs, Ensemble
from docmt.discourse.parsing.structural_features import merge_values, state_values
from docmt.discourse.parsing.transitions import Constituent, Constraint, State, build_tree, parse_greedily
from docmt.discourse.segmentation.segmenter import Segmenter, SentenceReading

MAX_BATCH_EDUS = 1000
"""Maximum number of EDUs in documents that are parsed side by side."""
NO_EDU = -1


@dataclass
class NeuralParser(Parser):
    """Networks that read the word states of one segmenter."""

    ensemble: Ensemble  # the networks
    relations: Sequence[str]  # names of the relation classes
    words: Sequence[str]  # the vocabulary of words at the edges of EDUs
    segmenter: Segmenter  # provides the word states on which the networks were trained
    reads_lower: bool = True  # whether the networks also read the states of its lower BiLSTM
    sentence_constraint: bool = field(default=True, kw_only=True)  # whether every sentence becomes one complete subtree
    # Whether every paragraph becomes one complete subtree.
    paragraph_constraint: bool = field(default=False, kw_only=True)

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        return self.parse_batch([document])[0]

    @override
    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        if states is None:
            readings = self.segmenter.read(sentences_of(documents))
            states = word_states(readings, documents, reads_lower=self.reads_lower)
        parsed: list[DiscourseDocument] = []
        full = [pair for pair in zip(documents, states, strict=True) if pair[0].edus]
        for group in fill_batches(full, MAX_BATCH_EDUS, cost=lambda pair: len(pair[0].edus)):
            with torch.no_grad():
                parsed += self._parse_group([document for document, _ in group], [own for _, own in group])
        self.counts["documents"] += len(documents) - len(full)
        found = iter(parsed)
        return [next(found) if document.edus else replace(document, tree=None, arcs=None) for document in documents]

    def _parse_group(self, documents: list[DiscourseDocument], states: WordStates) -> list[DiscourseDocument]:
        """Parse documents with EDUs side by side, so that each step of all is one call of the networks."""
        word_numbers = number_words(self.words)
        inputs = [edu_inputs(document, own, word_numbers) for document, own in zip(documents, states, strict=True)]
        profiles = list(map(DocumentProfile, documents))
        lengths = [profile.units.n_edus for profile in profiles]
        offsets = [0, *itertools.accumulate(lengths)]
        encoded = self.ensemble.encode(EduInputs.join(inputs))
        cache = self.ensemble.actions.cache(encoded, lengths)

        def place(slots: list[int], number: int) -> list[int]:
            """Map slots of a document to slots of the batch; the EDU after the last one is for empty slots."""
            return [slot + offsets[number] if slot >= 0 else offsets[-1] for slot in slots]

        def score(states: list[State], numbers: list[int]) -> list[list[float]]:
            pairs = list(zip(states, numbers, strict=True))
            slots = torch.tensor([place(state_slots(profiles[number], state), number) for state, number in pairs])
            values = torch.tensor([state_values(profiles[number], state) for state, number in pairs])
            return self.ensemble.actions.log_probabilities(cache, slots, values, torch.tensor(numbers)).tolist()

        # First the structure and nuclearity of all documents, then their relations.
        sentences, paragraphs = self.sentence_constraint, self.paragraph_constraint
        constraints = [Constraint(profile.units, sentences=sentences, paragraphs=paragraphs) for profile in profiles]
        final, n_enforced = parse_greedily(constraints, lengths, score)
        self.counts.update(documents=len(documents), edus=sum(lengths), enforced=n_enforced)
        numbers = [number for number, state in enumerate(final) for _ in state.nodes]
        relations: list[str] = []
        if numbers:
            slots = [place(merge_slots(node), number) for number, state in enumerate(final) for node in state.nodes]
            pairs = zip(profiles, final, strict=True)
            values = [row for profile, state in pairs for row in merge_values(profile, state.nodes)]
            classifier = self.ensemble.relations
            rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
            best = classifier.log_probabilities(classifier.cache(encoded, lengths), *rows).argmax(-1)
            relations = [self.relations[int(relation)] for relation in best]
        names = iter(relations)
        trees = [build_tree(state.actions, names) for state in final]
        return [replace(document, tree=tree, arcs=None) for document, tree in zip(documents, trees, strict=True)]


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


def edge_words(document: DiscourseDocument, edu: int) -> tuple[str, str, str]:
    """Return the first, second and last word of an EDU in lower case; empty where there is none."""
    words = [word.lower() for word in document.edu_words(edu)]
    return words[0] if words else "", words[1] if len(words) > 1 else "", words[-1] if words else ""


def edu_inputs(document: DiscourseDocument, states: Sequence[Tensor], numbers: Mapping[str, int]) -> EduInputs:
    """Collect the network's input for a document with EDUs.

    `states` are the word states of each sentence, [its words, D]; `numbers` is the vocabulary from `number_words`.
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
    for place, span in zip((0, 3), state.stack[:-3:-1], strict=False):
        slots[place : place + 3] = span.first, span.last, span.nucleus
    if len(state.stack) > 2:
        slots[6:8] = state.stack[-3].last, state.stack[-3].nucleus
    if state.next < state.n_edus:
        end = profile.units.sentences.last[state.next]
        slots[8:10] = state.next, end
        if end + 1 < state.n_edus:
            slots[10] = end + 1
    return slots


def merge_slots(node: Constituent) -> list[int]:
    """Return the EDUs that represent a node: first, last and nucleus EDU of both children."""
    return [edu for child in node.children for edu in (child.first, child.last, child.nucleus)]
