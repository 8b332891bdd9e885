"""Structural features stay in their ranges for every document and state."""

import random
from dataclasses import replace

import pytest
from parsing_fixtures import random_document

from docmt.discourse.parsing.network import NODE_INPUTS, STATE_INPUTS, node_slots, state_slots
from docmt.discourse.parsing.transitions import (
    NN,
    NODE_TEMPLATES,
    NS,
    SHIFT,
    SN,
    STATE_TEMPLATES,
    DocumentProfile,
    State,
    ending,
    node_features,
    opening,
    possible,
    state_features,
)


def in_range(values, templates):
    return len(values) == len(templates) and all(
        0 <= value < size for value, (_, size) in zip(values, templates, strict=True)
    )


@pytest.mark.parametrize("seed", range(40))
def test_values_and_slots_stay_in_their_ranges(seed):
    document = random_document(seed, n_sentences=1 + seed % 20, with_tree=False)
    profile = DocumentProfile(document)
    chance = random.Random(seed)
    state = State(len(document.edus))
    while True:
        assert in_range(state_features(profile, state), STATE_TEMPLATES)
        slots = state_slots(profile, state)
        assert len(slots) == STATE_INPUTS.n_slots
        assert all(-1 <= slot < len(document.edus) for slot in slots)
        if state.is_final:
            break
        can_shift, can_reduce = possible(state)
        state.apply(chance.choice([SHIFT] * can_shift + [NN, NS, SN] * can_reduce))
    assert all(in_range(values, NODE_TEMPLATES) for values in node_features(profile, state.nodes))
    assert all(len(node_slots(node)) == NODE_INPUTS.n_slots for node in state.nodes)


def test_hidden_paragraphs_change_nothing_but_values_on_paragraphs():
    document = random_document(3, n_sentences=6, with_tree=False, paragraphs=True)
    state = State(len(document.edus))
    for _ in range(4):
        state.apply(SHIFT)
    with_paragraphs = state_features(DocumentProfile(document), state)
    without = state_features(DocumentProfile(replace(document, paragraphs=None)), state)
    changed = {
        name
        for (name, _), a, b in zip(STATE_TEMPLATES, with_paragraphs, without, strict=True)
        if a != b and not any(part in name for part in ("paragraph", "edges", "boundary"))
    }
    assert not changed


@pytest.mark.parametrize(
    ("words", "same"), [(("?", "？"), True), ((".", "。"), True), ((",", "word"), False), ((")", "“"), False)]
)
def test_classes_of_last_words(words, same):
    assert (ending(words[0]) == ending(words[1])) == same


def test_classes_of_first_words():
    assert len({opening(word) for word in ("We", "but", "和", "42", "(", "\u0301")}) == 6
