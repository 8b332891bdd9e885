"""Slots and structures of states and nodes."""

import random
from dataclasses import replace

import pytest
from parsing_fixtures import random_document

from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits, edus_from_starts
from docmt.discourse.parsing.network import NODE_INPUTS, STATE_INPUTS, node_slots, state_slots
from docmt.discourse.parsing.transitions import (
    NN,
    NS,
    SHIFT,
    SN,
    Constituent,
    State,
    node_structure,
    possible,
    state_structure,
)


@pytest.mark.parametrize("seed", range(40))
def test_slots_and_structures_stay_in_range(seed):
    document = random_document(seed, n_sentences=1 + seed % 20, with_tree=False)
    units = DocumentUnits(document)
    chance = random.Random(seed)
    state = State(len(document.edus))
    while True:
        assert all(0 <= number < STATE_INPUTS.n_structures for number in state_structure(units, state))
        slots = state_slots(units, state)
        assert len(slots) == STATE_INPUTS.n_slots
        assert all(-1 <= slot < len(document.edus) for slot in slots)
        if state.is_final:
            break
        can_shift, can_reduce = possible(state)
        state.apply(chance.choice([SHIFT] * can_shift + [NN, NS, SN] * can_reduce))
    for node in state.nodes:
        assert all(0 <= number < NODE_INPUTS.n_structures for number in node_structure(units, node))
        assert len(node_slots(node)) == NODE_INPUTS.n_slots


# Five EDUs in three sentences and two paragraphs: (a b) (c) | (d e).
DOCUMENT = DiscourseDocument(
    "d", (("a", "b"), ("c",), ("d", "e")), edus_from_starts([[1], [], [1]], [2, 1, 2]), paragraphs=(0, 2)
)


def shifted(n):
    state = State(5)
    for _ in range(n):
        state.apply(SHIFT)
    return state


def test_slots_hold_spans_and_queue():
    state = shifted(4)
    state.stack[1:3] = []
    state.apply(NS)
    assert state_slots(DocumentUnits(DOCUMENT), state) == [0, 3, 0, -1, -1, -1, -1, -1, 4, 4, -1]
    assert state_slots(DocumentUnits(DOCUMENT), shifted(3)) == [2, 2, 2, 1, 1, 1, 0, 0, 3, 4, -1]
    assert state_slots(DocumentUnits(DOCUMENT), shifted(0)) == [-1] * 8 + [0, 1, 2]
    assert node_slots(state.nodes[0]) == [0, 0, 0, 3, 3, 3]


def test_structures_tell_boundaries_apart():
    units = DocumentUnits(DOCUMENT)
    assert len({state_structure(units, shifted(n)) for n in range(6)}) == 6
    without = DocumentUnits(replace(DOCUMENT, paragraphs=None))
    # With two EDUs on the stack, the next boundary is between sentences.
    differences = [state_structure(units, shifted(n)) != state_structure(without, shifted(n)) for n in range(6)]
    assert differences == [False, False, True, True, True, True]


def test_structures_of_nodes():
    units = DocumentUnits(DOCUMENT)
    structures = set()
    for action in (NN, NS, SN):
        state = shifted(2)
        state.apply(action)
        structures.add(node_structure(units, state.nodes[0]))
        state.apply(SHIFT)
        state.apply(action)
        structures.add(node_structure(units, state.nodes[1]))
    assert len(structures) == 6


def test_sizes_count_sentences():
    sentences = tuple((str(number),) for number in range(80))
    units = DocumentUnits(DiscourseDocument("d", sentences, edus_from_starts([[]] * 80, [1] * 80)))
    state = State(80)
    state.apply(SHIFT)
    sizes = []
    for _ in range(79):
        state.apply(SHIFT)
        state.apply(NN)
        sizes.append(node_structure(units, Constituent(0, 79, 0, NN, (state.stack[0], state.stack[0])))[1])
    firsts = [2 + number for number in range(1, 79) if sizes[number] != sizes[number - 1]]
    assert firsts == [3, 4, 8, 16, 32, 64]
