"""Structural features: positions, sizes, forms, boundaries, punctuation; they name no word and are small integers.

A template has a name, a size, and a function whose value is in [0, size). `state_values` describes a state of the
transition system, `merge_values` the internal nodes of the finished tree. The last two templates of a state and the
last one of a node are boundary levels, with which the neural parser conjoins all others. Models depend on the order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docmt.discourse.documents import N_LEVELS, NOTHING
from docmt.discourse.parsing.document_profile import (
    BUCKETS,
    N_COHESIONS,
    N_COUNTS,
    N_EDGES,
    N_ENDINGS,
    N_FORMS,
    N_OPENINGS,
    N_PLACES,
    NO_BUCKET,
    NO_COHESION,
    NO_FORM,
    NO_SPAN,
    DocumentProfile,
    Span,
    bucket,
    cohesion_class,
)
from docmt.discourse.parsing.transitions import N_ACTIONS, Constituent, State

NO_ACTION = NO_FORM


class _StateView:
    """Values that templates of a state combine.

    Attributes:
        actions: the last three, the latest one last.
        s1, s2, s3: the upper spans of the stack, from its top.
        q1: the EDU at the front of the queue.
        q_sentence: this EDU and the rest of its sentence.
        places: `DocumentProfile.paragraph_places` of S2 and S1 together.
        cohesions: classes of S2 and S1, S1 and the sentence of Q1, S2 and that sentence, and which of the first two is
            greater.
        boundaries: levels between S3 and S2, S2 and S1, S1 and Q1.
    """

    __slots__ = (
        "actions", "boundaries", "cohesions", "front", "n_edus", "n_stack", "places", "q1", "q_sentence", "s1", "s2",
        "s3",
    )  # fmt: skip

    def __init__(self, profile: DocumentProfile, state: State) -> None:
        units = profile.units
        self.n_edus, self.front, self.n_stack = state.n_edus, state.next, len(state.stack)
        self.actions = [NO_ACTION] * (3 - len(state.actions)) + state.actions[-3:]
        self.s1 = s1 = profile.stack_span(state, 1)
        self.s2 = s2 = profile.stack_span(state, 2)
        self.s3 = profile.stack_span(state, 3)
        self.q1 = self.q_sentence = NO_SPAN
        if self.front < self.n_edus:
            self.q1 = profile.span(self.front, self.front, self.front)
            self.q_sentence = profile.span(self.front, units.sentences.last[self.front], self.front)
        left, right = cohesion_class(s2.vector, s1.vector), cohesion_class(s1.vector, self.q_sentence.vector)
        stronger = 3 if NO_COHESION in (left, right) else _compare(left, right)
        self.cohesions = left, right, cohesion_class(s2.vector, self.q_sentence.vector), stronger
        self.places = profile.paragraph_places(s2.first, s1.last) if self.n_stack > 1 else (NO_BUCKET,) * 4
        self.boundaries = (
            units.level(self.s3.last, s2.first) if self.n_stack > 2 else NOTHING,
            units.level(s2.last, s1.first) if self.n_stack > 1 else NOTHING,
            units.level(s1.last, self.front) if self.n_stack and self.front < self.n_edus else NOTHING,
        )


def _compare(left: int, right: int) -> int:
    return 3 if left < 0 or right < 0 else (left > right) - (left < right) + 1


_STATE: tuple[tuple[str, int, Callable[[_StateView], int]], ...] = (
    ("stack", 4, lambda v: min(v.n_stack, 3)),
    ("queue", BUCKETS, lambda v: bucket(v.n_edus - v.front)),
    ("action 1", N_FORMS, lambda v: v.actions[2]),
    ("actions 2", N_FORMS**2, lambda v: v.actions[1] * N_FORMS + v.actions[2]),
    ("actions 3", N_FORMS**3, lambda v: (v.actions[0] * N_FORMS + v.actions[1]) * N_FORMS + v.actions[2]),
    ("form s1", N_FORMS, lambda v: v.s1.form),
    ("form s2", N_FORMS, lambda v: v.s2.form),
    ("form s3", N_FORMS, lambda v: v.s3.form),
    ("forms s2 s1", N_FORMS**2, lambda v: v.s2.form * N_FORMS + v.s1.form),
    ("edus s1", N_COUNTS, lambda v: v.s1.edus),
    ("edus s2", N_COUNTS, lambda v: v.s2.edus),
    ("edus s2 s1", N_COUNTS**2, lambda v: v.s2.edus * N_COUNTS + v.s1.edus),
    ("longer edus", 4, lambda v: _compare(v.s2.n_edus, v.s1.n_edus)),
    ("sentences s1", N_COUNTS, lambda v: v.s1.sentences),
    ("sentences s2", N_COUNTS, lambda v: v.s2.sentences),
    ("sentences s2 s1", N_COUNTS**2, lambda v: v.s2.sentences * N_COUNTS + v.s1.sentences),
    ("longer sentences", 4, lambda v: _compare(v.s2.n_sentences, v.s1.n_sentences)),
    ("paragraphs s1", N_COUNTS, lambda v: v.s1.paragraphs),
    ("paragraphs s2", N_COUNTS, lambda v: v.s2.paragraphs),
    ("edges s1", N_EDGES, lambda v: v.s1.edges),
    ("edges s2", N_EDGES, lambda v: v.s2.edges),
    ("edges q1", N_EDGES, lambda v: v.q1.edges),
    ("s1 from sentence start", N_COUNTS, lambda v: v.s1.from_sentence),
    ("s2 from sentence start", N_COUNTS, lambda v: v.s2.from_sentence),
    ("s1 to sentence end", N_COUNTS, lambda v: v.s1.to_sentence),
    ("s2 from paragraph start", N_COUNTS, lambda v: v.places[0]),
    ("s1 to paragraph end", N_COUNTS, lambda v: v.places[1]),
    ("paragraphs before s2", N_COUNTS, lambda v: v.places[2]),
    ("paragraphs after s1", N_COUNTS, lambda v: v.places[3]),
    ("nucleus s1", N_PLACES, lambda v: v.s1.nucleus),
    ("nucleus s2", N_PLACES, lambda v: v.s2.nucleus),
    ("words s1", N_COUNTS, lambda v: v.s1.words),
    ("words s2", N_COUNTS, lambda v: v.s2.words),
    ("words q1", N_COUNTS, lambda v: v.q1.words),
    ("sentence of q1", N_COUNTS, lambda v: v.q1.to_sentence),
    ("sentence after q1", N_COUNTS, lambda v: v.q_sentence.words),
    ("paragraph of s2", N_COUNTS, lambda v: v.s2.paragraph),
    ("paragraph of s1", N_COUNTS, lambda v: v.s1.paragraph),
    ("paragraph of q1", N_COUNTS, lambda v: v.q1.paragraph),
    ("ending s1", N_ENDINGS, lambda v: v.s1.ending),
    ("ending s2", N_ENDINGS, lambda v: v.s2.ending),
    ("ending s3", N_ENDINGS, lambda v: v.s3.ending),
    ("ending q1", N_ENDINGS, lambda v: v.q1.ending),
    ("endings s2 s1", N_ENDINGS**2, lambda v: v.s2.ending * N_ENDINGS + v.s1.ending),
    ("opening s1", N_OPENINGS, lambda v: v.s1.opening),
    ("opening s2", N_OPENINGS, lambda v: v.s2.opening),
    ("opening q1", N_OPENINGS, lambda v: v.q1.opening),
    (
        "openings s2 s1 q1",
        N_OPENINGS**3,
        lambda v: (v.s2.opening * N_OPENINGS + v.s1.opening) * N_OPENINGS + v.q1.opening,
    ),
    ("place in document", N_COUNTS, lambda v: BUCKETS * v.front // max(1, v.n_edus)),
    ("cohesion s2 s1", N_COHESIONS, lambda v: v.cohesions[0]),
    ("cohesion s1 q1", N_COHESIONS, lambda v: v.cohesions[1]),
    ("cohesion s2 q1", N_COHESIONS, lambda v: v.cohesions[2]),
    ("stronger cohesion", 4, lambda v: v.cohesions[3]),
    ("boundary s3 s2", N_LEVELS, lambda v: v.boundaries[0]),
    ("boundary s2 s1 q1", N_LEVELS**2, lambda v: v.boundaries[1] * N_LEVELS + v.boundaries[2]),
    ("boundary s2 s1", N_LEVELS, lambda v: v.boundaries[1]),
    ("boundary s1 q1", N_LEVELS, lambda v: v.boundaries[2]),
)
STATE_TEMPLATES = tuple((name, size) for name, size, _ in _STATE)
_STATE_FUNCTIONS = tuple(value for *_, value in _STATE)


def state_values(profile: DocumentProfile, state: State) -> list[int]:
    """Compute one value per template of `STATE_TEMPLATES`."""
    view = _StateView(profile, state)
    return [value(view) for value in _STATE_FUNCTIONS]


@dataclass(slots=True)
class _MergeView:
    """Values that templates of a node combine; `places` as from `DocumentProfile.paragraph_places`."""

    left: Span
    right: Span
    form: int
    form_parent: int
    depth: int
    height: int
    places: tuple[int, int, int, int]
    cohesion: int
    level: int


_MERGE: tuple[tuple[str, int, Callable[[_MergeView], int]], ...] = (
    ("forms", N_ACTIONS * N_ACTIONS, lambda v: v.left.form * N_ACTIONS + v.right.form),
    ("form left", N_ACTIONS, lambda v: v.left.form),
    ("form right", N_ACTIONS, lambda v: v.right.form),
    ("form parent", 2 * N_FORMS, lambda v: v.form_parent),
    ("edus left", N_COUNTS, lambda v: v.left.edus),
    ("edus right", N_COUNTS, lambda v: v.right.edus),
    ("edus", N_COUNTS**2, lambda v: v.left.edus * N_COUNTS + v.right.edus),
    ("sentences left", N_COUNTS, lambda v: v.left.sentences),
    ("sentences right", N_COUNTS, lambda v: v.right.sentences),
    ("sentences", N_COUNTS**2, lambda v: v.left.sentences * N_COUNTS + v.right.sentences),
    ("paragraphs left", N_COUNTS, lambda v: v.left.paragraphs),
    ("paragraphs right", N_COUNTS, lambda v: v.right.paragraphs),
    ("words left", N_COUNTS, lambda v: v.left.words),
    ("words right", N_COUNTS, lambda v: v.right.words),
    ("edges left", N_EDGES, lambda v: v.left.edges),
    ("edges right", N_EDGES, lambda v: v.right.edges),
    ("depth", BUCKETS, lambda v: bucket(v.depth)),
    ("height", BUCKETS, lambda v: bucket(v.height)),
    ("from paragraph start", N_COUNTS, lambda v: v.places[0]),
    ("to paragraph end", N_COUNTS, lambda v: v.places[1]),
    ("paragraphs before", N_COUNTS, lambda v: v.places[2]),
    ("paragraphs after", N_COUNTS, lambda v: v.places[3]),
    ("nucleus left", N_PLACES, lambda v: v.left.nucleus),
    ("nucleus right", N_PLACES, lambda v: v.right.nucleus),
    ("ending left", N_ENDINGS, lambda v: v.left.ending),
    ("ending right", N_ENDINGS, lambda v: v.right.ending),
    ("endings", N_ENDINGS**2, lambda v: v.left.ending * N_ENDINGS + v.right.ending),
    ("opening left", N_OPENINGS, lambda v: v.left.opening),
    ("opening right", N_OPENINGS, lambda v: v.right.opening),
    ("openings", N_OPENINGS**2, lambda v: v.left.opening * N_OPENINGS + v.right.opening),
    ("cohesion", N_COHESIONS, lambda v: v.cohesion),
    ("form", N_ACTIONS, lambda v: v.form),
    ("boundary", N_LEVELS, lambda v: v.level),
)
MERGE_TEMPLATES = tuple((name, size) for name, size, _ in _MERGE)
_MERGE_FUNCTIONS = tuple(value for *_, value in _MERGE)


def merge_values(profile: DocumentProfile, nodes: Sequence[Constituent]) -> list[list[int]]:
    """Compute, for each node of a tree, children before parents, one value per template of `MERGE_TEMPLATES`."""
    # From the root down: the depth of each node, and the form of its parent with the side on which it is.
    depth, form_parent = dict.fromkeys(nodes[-1:], 0), dict.fromkeys(nodes[-1:], 2 * NO_FORM)
    for node in reversed(nodes):
        for is_left, child in zip((True, False), node.children, strict=True):
            depth[child], form_parent[child] = depth[node] + 1, 2 * node.form + is_left
    rows = []
    for node in nodes:
        left, right = map(profile.span_of, node.children)
        view = _MergeView(
            left,
            right,
            form=node.form,
            form_parent=form_parent[node],
            depth=depth[node],
            height=node.height,
            places=profile.paragraph_places(left.first, right.last),
            cohesion=cohesion_class(left.vector, right.vector),
            level=profile.units.level(left.first, right.last),
        )
        rows.append([value(view) for value in _MERGE_FUNCTIONS])
    return rows
