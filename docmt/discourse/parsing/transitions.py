"""The transition system of StageDP (Wang et al. 2017, §3.1): a stack, a queue, Shift and three Reduce actions.

A document of n EDUs takes 2n − 1 steps. Relations are assigned to the finished tree by a second stage.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from docmt.discourse.constituents import Node, from_json
from docmt.discourse.documents import DocumentUnits

SHIFT, NN, NS, SN = range(4)
N_ACTIONS = 4
FORMS = ("", "NN", "NS", "SN")
"""Nuclearity of the node that an action makes; the EDU of a Shift has none."""


@dataclass(slots=True, eq=False)
class Constituent:
    """A span of EDUs that an action made."""

    first: int  # its first and last EDU
    last: int
    nucleus: int  # its nucleus EDU; with two nuclei, that of the left one
    form: int = SHIFT  # the action that made it
    height: int = 0  # steps down to its deepest EDU
    children: tuple["Constituent", ...] = ()  # the left and the right one; none for an EDU


@dataclass(slots=True)
class State:
    """The stack and the queue of one document."""

    n_edus: int
    next: int = 0  # the EDU at the front of the queue; n_edus when the queue is empty
    stack: list[Constituent] = field(default_factory=list)  # from its bottom to its top
    actions: list[int] = field(default_factory=list)  # so far
    nodes: list[Constituent] = field(default_factory=list)  # results of the Reduce actions: children before parents

    @property
    def is_final(self) -> bool:
        """Whether one span covers all EDUs."""
        return self.next == self.n_edus and len(self.stack) <= 1

    def apply(self, action: int) -> None:
        """Take a step. The action must be possible."""
        if action == SHIFT:
            self.stack.append(Constituent(self.next, self.next, self.next))
            self.next += 1
        else:
            right, left = self.stack.pop(), self.stack.pop()
            nucleus = (right if action == SN else left).nucleus
            height = 1 + max(left.height, right.height)
            self.nodes.append(Constituent(left.first, right.last, nucleus, action, height, (left, right)))
            self.stack.append(self.nodes[-1])
        self.actions.append(action)


class Constraint:
    """Allows only actions that keep every sentence (and every paragraph) one complete subtree."""

    def __init__(self, units: DocumentUnits, *, sentences: bool, paragraphs: bool) -> None:
        chosen = [units.sentences if sentences else None, units.paragraphs if paragraphs else None]
        self.units = [level for level in chosen if level is not None]

    def allows(self, state: State) -> tuple[bool, bool]:
        """Whether Shift and Reduce are allowed in a state that is not final; at least one of them always is."""
        # When a unit must be completed before the next one begins, the two upper spans are inside it and can be joined;
        # when a Reduce would cross the start of an unfinished unit, the rest of the unit is still in the queue.
        can_shift, can_reduce = possible(state)
        if not state.stack:
            return can_shift, can_reduce
        first, last = state.stack[-1].first, state.stack[-1].last
        for units in self.units:
            if can_shift and units.number_of[state.next] != units.number_of[last] and first > units.first[last]:
                can_shift = False
            if can_reduce and units.number_of[first - 1] != units.number_of[first] and last < units.last[last]:
                can_reduce = False
        return can_shift, can_reduce


def possible(state: State) -> tuple[bool, bool]:
    """Whether Shift and Reduce are possible without constraints."""
    return state.next < state.n_edus, len(state.stack) >= 2


def build_tree(actions: Sequence[int], relations: Iterable[str]) -> Node:
    """Build the tree of the actions, with the relation of each Reduce action."""
    edus, names = itertools.count(), iter(relations)
    return from_json(
        [
            next(edus) if action == SHIFT else {"children": 2, "nuclearity": FORMS[action], "relation": next(names)}
            for action in actions
        ]
    )


Scorer = Callable[[list[State], list[int]], Sequence[Sequence[float]]]
"""Maps states and the numbers of their documents to one score per action."""


def parse_greedily(constraints: Sequence[Constraint], lengths: Sequence[int], score: Scorer) -> tuple[list[State], int]:
    """Parse documents, given their numbers of EDUs, in lockstep, so that the classifier scores many states at once.

    Returns the final states, and how often a constraint overruled the classifier.
    """
    states = [State(n_edus) for n_edus in lengths]
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
    """Return the best allowed action, and whether the constraint overruled the classifier."""
    reduce_action = max((NN, NS, SN), key=scores.__getitem__)
    wants_shift = scores[SHIFT] >= scores[reduce_action]
    can_shift, can_reduce = possible(state)
    wish = wants_shift if can_shift and can_reduce else can_shift
    can_shift, can_reduce = constraint.allows(state)
    choice = wants_shift if can_shift and can_reduce else can_shift
    return (SHIFT if choice else reduce_action), choice != wish
