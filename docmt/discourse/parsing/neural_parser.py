"""The neural parser: greedy shift-reduce on the word states of a trained segmenter.

Shapes: D width of a word state.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import WordStates
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.neural_network import EduInputs, Ensemble
from docmt.discourse.parsing.structural_features import merge_values, state_values
from docmt.discourse.parsing.transitions import Merge, ShiftReduceParser, State, build_tree, merges, parse_greedily
from docmt.discourse.segmentation.segmenter import Segmenter, SentenceReading

MAX_BATCH_EDUS = 1000
"""Maximum number of EDUs in documents that are parsed side by side."""
NO_EDU = -1


@dataclass
class NeuralParser(ShiftReduceParser):
    """Networks that read the word states of one segmenter."""

    ensemble: Ensemble  # the networks
    relations: Sequence[str]  # names of the relation classes
    words: Sequence[str]  # the vocabulary of words at the edges of EDUs
    segmenter: Segmenter  # provides the word states on which the networks were trained
    reads_lower: bool = True  # whether the networks also read the states of its lower BiLSTM

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
        """Parse documents side by side, so that each step of all is one call of the networks."""
        self.counts.update(documents=len(documents), edus=sum(len(document.edus) for document in documents))
        parsed = [replace(document, tree=None, arcs=None) for document in documents]
        full = [number for number, document in enumerate(documents) if document.edus]
        if not full:
            return parsed
        word_numbers = number_words(self.words)
        inputs = [edu_inputs(documents[number], states[number], word_numbers) for number in full]
        profiles = [DocumentProfile(documents[number]) for number in full]
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

        final, n_enforced = parse_greedily([self.constraint(own.units) for own in profiles], lengths, score)
        self.counts["enforced"] += n_enforced
        # The second stage: the relations of all internal nodes of all documents at once.
        nodes = [merges(state.actions) for state in final]
        best = iter(())
        if any(nodes):
            slots = [place(merge_slots(node), number) for number, own in enumerate(nodes) for node in own]
            values = [row for profile, own in zip(profiles, nodes, strict=True) for row in merge_values(profile, own)]
            numbers = torch.tensor([number for number, own in enumerate(nodes) for _ in own])
            classifier = self.ensemble.relations
            rows = torch.tensor(slots), torch.tensor(values), numbers
            best = iter(classifier.log_probabilities(classifier.cache(encoded, lengths), *rows).argmax(-1).tolist())
        for number, state, own in zip(full, final, nodes, strict=True):
            names = [self.relations[relation] for relation in itertools.islice(best, len(own))]
            parsed[number] = replace(parsed[number], tree=build_tree(state.actions, names))
        return parsed


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
