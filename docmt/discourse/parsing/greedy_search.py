"""Greedy shift-reduce parsing of several documents in lockstep, with constraints on sentences and paragraphs."""

import itertools
from collections.abc import Callable, Iterable, Sequence

from docmt.discourse.constituents import Node, from_json
from docmt.discourse.discourse_documents import DocumentUnits, Units
from docmt.discourse.parsing.transitions import FORMS, NN, NS, SHIFT, SN, State, possible


class Constraint:
    """Allows only actions that keep all sentences (and paragraphs) complete subtrees."""

    def __init__(self, units: DocumentUnits, *, sentences: bool, paragraphs: bool) -> None:
        self.units: list[Units] = []
        if sentences:
            self.units.append(units.sentences)
        if paragraphs and units.paragraphs is not None:
            self.units.append(units.paragraphs)

    def allows(self, state: State) -> tuple[bool, bool]:
        """Return (can Shift, can Reduce) for a state that is not final. At least one is always true."""
        # If a unit must be completed before a Shift, the upper two spans are inside it and can be joined. If a Reduce
        # would cross the start of an unfinished unit, the rest of the unit is still in the queue.
        can_shift, can_reduce = possible(state)
        if not state.stack:
            return can_shift, can_reduce
        first = state.stack[-1].first
        last = state.stack[-1].last
        for units in self.units:
            if can_shift and units.number_of[state.next] != units.number_of[last] and first > units.first[last]:
                can_shift = False
            if can_reduce and units.number_of[first - 1] != units.number_of[first] and last < units.last[last]:
                can_reduce = False
        return can_shift, can_reduce


Scorer = Callable[[list[State], list[int]], Sequence[Sequence[float]]]
"""Maps states and document numbers to one score per action."""


def parse_greedily(constraints: Sequence[Constraint], lengths: Sequence[int], score: Scorer) -> tuple[list[State], int]:
    """Parse documents with `lengths` EDUs in lockstep, so that the classifier scores many states at once.

    Returns the final states, and the number of steps with a decision by a constraint against the classifier.
    """
    states = list(map(State, lengths))
    n_enforced = 0
    active = [number for number, state in enumerate(states) if not state.is_final]
    while active:
        open_states = [states[number] for number in active]
        for number, state, scores in zip(active, open_states, score(open_states, active), strict=True):
            action, is_enforced = best_action(state, constraints[number], scores)
            state.apply(action)
            n_enforced += is_enforced
        active = [number for number in active if not states[number].is_final]
    return states, n_enforced


def best_action(state: State, constraint: Constraint, scores: Sequence[float]) -> tuple[int, bool]:
    """Return the best allowed action, and true if the constraint overruled the classifier."""
    reduce_action = max((NN, NS, SN), key=scores.__getitem__)

    def shifts(can_shift: bool, can_reduce: bool) -> bool:
        return can_shift and (not can_reduce or scores[SHIFT] >= scores[reduce_action])

    preference = shifts(*possible(state))
    decision = shifts(*constraint.allows(state))
    return (SHIFT if decision else reduce_action), decision != preference


def build_tree(actions: Sequence[int], relations: Iterable[str]) -> Node:
    """Build a tree from actions and the relations of Reduce actions."""
    edus = itertools.count()
    names = iter(relations)
    nodes = []
    for action in actions:
        if action == SHIFT:
            nodes.append(next(edus))
        else:
            nodes.append({"children": 2, "nuclearity": FORMS[action], "relation": next(names)})
    return from_json(nodes)
