"""The transition system of StageDP (Wang et al. 2017, §3.1): a stack, a queue, Shift and three Reduce actions.

A document of n EDUs takes 2n − 1 steps. Relations are assigned to the finished tree by a second stage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from docmt.discourse.constituents import Node, join_pair, leaf
from docmt.discourse.documents import DiscourseDocument, DocumentUnits
from docmt.discourse.parsing.baselines import Parser

SHIFT, NN, NS, SN = range(4)
N_ACTIONS = 4
FORMS = ("", "NN", "NS", "SN")
"""Nuclearity of the node that an action makes; the EDU of a Shift has none."""


class State:
    """The stack and the queue of one document; lists run from the bottom of the stack to its top.

    Attributes:
        firsts, lasts: the first and last EDU of each span on the stack.
        nuclei: the nucleus EDU of each span; with two nuclei, of the left one.
        forms: the action that made each span.
        next: the EDU at the front of the queue; n_edus when the queue is empty.
        actions: all actions so far.
    """

    __slots__ = ("actions", "firsts", "forms", "lasts", "n_edus", "next", "nuclei")

    def __init__(self, n_edus: int) -> None:
        self.n_edus = n_edus
        self.next = 0
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.nuclei: list[int] = []
        self.forms: list[int] = []
        self.actions: list[int] = []

    @property
    def is_final(self) -> bool:
        """Whether one span covers all EDUs."""
        return self.next == self.n_edus and len(self.firsts) <= 1

    def apply(self, action: int) -> None:
        """Take a step. The action must be possible."""
        if action == SHIFT:
            for part in (self.firsts, self.lasts, self.nuclei):
                part.append(self.next)
            self.next += 1
            self.forms.append(SHIFT)
        else:
            self.firsts.pop()
            self.lasts[-2:] = self.lasts[-1:]
            nucleus = self.nuclei.pop()
            if action == SN:
                self.nuclei[-1] = nucleus
            self.forms[-2:] = [action]
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
        if not state.firsts:
            return can_shift, can_reduce
        first, last = state.firsts[-1], state.lasts[-1]
        for units in self.units:
            if can_shift and units.number_of[state.next] != units.number_of[last] and first > units.first[last]:
                can_shift = False
            if can_reduce and units.number_of[first - 1] != units.number_of[first] and last < units.last[last]:
                can_reduce = False
        return can_shift, can_reduce


def possible(state: State) -> tuple[bool, bool]:
    """Whether Shift and Reduce are possible without constraints."""
    return state.next < state.n_edus, len(state.firsts) >= 2


def gold_actions(tree: Node) -> list[int]:
    """Return the actions that build a binary tree: its nodes, children first."""
    return [FORMS.index(node.nuclearity) for node in tree.postorder()]


@dataclass(slots=True)
class Merge:
    """An internal node of a tree as input of the second stage."""

    left: tuple[int, int, int]  # first EDU, last EDU, nucleus EDU of the left and of the right child
    right: tuple[int, int, int]
    left_form: int  # the actions that made the children
    right_form: int
    form: int  # the action that made the node
    height: int  # steps down to its deepest EDU
    parent: int = -1  # the index of its parent among the merges; −1 for the root
    is_left: bool = False  # whether it is a left child


def merges(actions: Sequence[int]) -> list[Merge]:
    """Return the internal nodes of the tree that the actions build, children before parents."""
    stack: list[tuple[tuple[int, int, int], int, int, Merge | None]] = []  # span, form, height, node; an EDU has none
    found: list[Merge] = []
    edu = 0
    for action in actions:
        if action == SHIFT:
            stack.append(((edu, edu, edu), SHIFT, 0, None))
            edu += 1
            continue
        right, right_form, right_height, right_node = stack.pop()
        left, left_form, left_height, left_node = stack.pop()
        node = Merge(left, right, left_form, right_form, action, 1 + max(left_height, right_height))
        if left_node is not None:
            left_node.parent, left_node.is_left = len(found), True
        if right_node is not None:
            right_node.parent = len(found)
        nucleus = (right if action == SN else left)[2]
        stack.append(((left[0], right[1], nucleus), action, node.height, node))
        found.append(node)
    return found


def build_tree(actions: Sequence[int], relations: Sequence[str]) -> Node:
    """Build the tree of the actions, with the relation of each merge."""
    stack: list[Node] = []
    names = iter(relations)
    edu = 0
    for action in actions:
        if action == SHIFT:
            stack.append(leaf(edu))
            edu += 1
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(join_pair(left, right, FORMS[action], next(names)))
    return stack[0]


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


@dataclass
class ShiftReduceParser(Parser):
    """A parser that takes the steps of this system."""

    sentence_constraint: bool = field(default=True, kw_only=True)  # whether every sentence becomes one complete subtree
    # Whether every paragraph becomes one complete subtree.
    paragraph_constraint: bool = field(default=False, kw_only=True)

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        return self.parse_batch([document])[0]

    def constraint(self, units: DocumentUnits) -> Constraint:
        return Constraint(units, sentences=self.sentence_constraint, paragraphs=self.paragraph_constraint)
