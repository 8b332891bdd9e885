"""The transition system of StageDP (Wang et al. 2017, §3.1).

A stack, a queue, Shift and three Reduce actions parse a document with n EDUs in 2n − 1 steps. A second stage assigns
relations to the finished tree.
"""

from dataclasses import dataclass, field

from docmt.discourse.discourse_documents import N_LEVELS, NOTHING, DocumentUnits

SHIFT, NN, NS, SN = range(4)
N_ACTIONS = 4
FORMS = ("", "NN", "NS", "SN")
"""Nuclearity of the new node per action (Shift: none)."""
N_SIZES = 8
N_BOUNDARIES = N_LEVELS**3
N_STATE_STRUCTURES = N_BOUNDARIES + N_LEVELS * N_SIZES**2
N_NODE_STRUCTURES = N_ACTIONS * N_LEVELS + N_LEVELS * N_SIZES**2


@dataclass(slots=True, eq=False)
class Constituent:
    """A span of EDUs, as the result of an action."""

    first: int  # first and last EDU
    last: int
    nucleus: int  # nucleus EDU, with two nuclei from the left one
    form: int = SHIFT  # action
    children: tuple["Constituent", ...] = ()  # left and right child, empty for an EDU


@dataclass(slots=True)
class State:
    """The stack and the queue of one document."""

    n_edus: int
    next: int = 0  # EDU at the front of the queue (empty queue: n_edus)
    stack: list[Constituent] = field(default_factory=list)  # from bottom to top
    actions: list[int] = field(default_factory=list)
    nodes: list[Constituent] = field(default_factory=list)  # results of Reduce actions, children before parents

    @property
    def is_final(self) -> bool:
        """True if one span covers all EDUs."""
        return self.next == self.n_edus and len(self.stack) <= 1

    def apply(self, action: int) -> None:
        """Apply a possible action."""
        if action == SHIFT:
            self.stack.append(Constituent(self.next, self.next, self.next))
            self.next += 1
        else:
            right = self.stack.pop()
            left = self.stack.pop()
            nucleus = right.nucleus if action == SN else left.nucleus
            self.nodes.append(Constituent(left.first, right.last, nucleus, action, (left, right)))
            self.stack.append(self.nodes[-1])
        self.actions.append(action)


def possible(state: State) -> tuple[bool, bool]:
    """Return (can Shift, can Reduce), without constraints."""
    return state.next < state.n_edus, len(state.stack) >= 2


def state_structure(units: DocumentUnits, state: State) -> tuple[int, int]:
    """Return two classes of a state, in [0, `N_STATE_STRUCTURES`).

    The first one consists of the boundaries between the upper three spans, and between the top one and the queue. The
    second one consists of the boundary between the upper two spans, and their sizes.
    """
    stack = state.stack
    third = second = front = NOTHING
    sizes = 0
    if stack and state.next < state.n_edus:
        front = units.level(stack[-1].last, state.next)
    if len(stack) > 1:
        second = units.level(stack[-2].last, stack[-1].first)
        sizes = _sizes(units, stack[-2], stack[-1])
    if len(stack) > 2:
        third = units.level(stack[-3].last, stack[-2].first)
    return (third * N_LEVELS + second) * N_LEVELS + front, N_BOUNDARIES + second * N_SIZES**2 + sizes


def node_structure(units: DocumentUnits, node: Constituent) -> tuple[int, int]:
    """Return two classes of an internal node, in [0, `N_NODE_STRUCTURES`).

    The first one consists of its nuclearity and level, the second one of its level and the sizes of its children.
    """
    level = units.level(node.first, node.last)
    return node.form * N_LEVELS + level, N_ACTIONS * N_LEVELS + level * N_SIZES**2 + _sizes(units, *node.children)


def _sizes(units: DocumentUnits, left: Constituent, right: Constituent) -> int:
    """Return the class of the numbers of sentences in two spans: 1, 2, 3, 4 to 7, 8 to 15, …, 64 and more for each."""
    return _size(units, left) * N_SIZES + _size(units, right)


def _size(units: DocumentUnits, span: Constituent) -> int:
    n_sentences = units.sentences.number_of[span.last] - units.sentences.number_of[span.first] + 1
    return min(n_sentences, 1 + n_sentences.bit_length(), N_SIZES) - 1
