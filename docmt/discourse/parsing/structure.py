"""Structural features: positions, sizes, forms, boundaries, punctuation; they name no word and are small integers.

A template has a name, a size, and a function whose value is in [0, size). `state_values` describes a state of the
transition system, `merge_values` an internal node of the finished tree. The last two templates of a state and the last
one of a node are boundary levels, with which the neural parser conjoins all others. Models depend on the order.
"""

from collections.abc import Callable
from dataclasses import dataclass

from docmt.discourse.parsing.cohesion import N_COHESIONS, NO_COHESION, cohesion_class
from docmt.discourse.parsing.layout import N_LEVELS, NOTHING
from docmt.discourse.parsing.sketch import (
    BUCKETS,
    N_COUNTS,
    N_EDGES,
    N_ENDINGS,
    N_FORMS,
    N_OPENINGS,
    N_PLACES,
    NO_BUCKET,
    NO_EDGE,
    NO_ENDING,
    NO_FORM,
    NO_OPENING,
    NO_SPAN,
    Sketch,
    Span,
    bucket,
)
from docmt.discourse.parsing.transitions import N_ACTIONS, Merge, State

NO_ACTION = NO_FORM


class _Front:
    """The values of the EDU at the front of the queue."""

    __slots__ = ("edges", "ending", "opening", "paragraph", "sentence", "sentence_words", "words")

    def __init__(self, sketch: Sketch, front: int) -> None:
        layout = sketch.layout
        if front >= layout.n_edus:
            self.edges, self.ending, self.opening = NO_EDGE, NO_ENDING, NO_OPENING
            self.words = self.sentence = self.sentence_words = self.paragraph = NO_BUCKET
            return
        end = layout.sentences.last[front]
        self.edges = sketch.begins[front] | sketch.ends[front]
        self.words = sketch.n_words(front, front)
        self.sentence = bucket(end - front)
        self.sentence_words = sketch.n_words(front, end)
        self.paragraph = sketch.paragraph_size(front)
        self.ending, self.opening = sketch.endings[front], sketch.openings[front]


class _StateView:
    """What the templates of a state read: S1 and S2, the upper spans of the stack, S3 below them, and Q1, the front.

    Attributes:
        actions: the last three, the latest one last.
        places: see `Sketch.paragraph_places`, of S2 and S1 together.
        cohesions: classes of S2 and S1, S1 and the sentence of Q1, S2 and that sentence, and which of the first two is
            greater.
        boundaries: levels between S3 and S2, S2 and S1, S1 and Q1.
    """

    __slots__ = (
        "actions", "boundaries", "cohesions", "ending3", "form3", "front", "n_edus", "n_stack", "places", "q1", "s1",
        "s2",
    )  # fmt: skip

    def __init__(self, sketch: Sketch, state: State) -> None:
        layout = sketch.layout
        self.n_edus, self.front, self.n_stack = state.n_edus, state.next, len(state.firsts)
        self.actions = [NO_ACTION] * (3 - len(state.actions)) + state.actions[-3:]
        self.s1 = s1 = _stack_span(sketch, state, 1)
        self.s2 = s2 = _stack_span(sketch, state, 2)
        self.q1 = _Front(sketch, self.front)
        has_third = self.n_stack > 2
        self.form3 = state.forms[-3] if has_third else NO_FORM
        self.ending3 = sketch.endings[state.lasts[-3]] if has_third else NO_ENDING
        self.cohesions = _cohesions(sketch, s1, s2, self.front)
        self.places = sketch.paragraph_places(s2.first, s1.last) if self.n_stack > 1 else (NO_BUCKET,) * 4
        self.boundaries = (
            layout.level(state.lasts[-3], s2.first) if has_third else NOTHING,
            layout.level(s2.last, s1.first) if self.n_stack > 1 else NOTHING,
            layout.level(s1.last, self.front) if self.n_stack and self.front < self.n_edus else NOTHING,
        )


def _stack_span(sketch: Sketch, state: State, depth: int) -> Span:
    """The top (1) or second (2) span of the stack."""
    if len(state.firsts) < depth:
        return NO_SPAN
    return sketch.span(state.firsts[-depth], state.lasts[-depth], state.nuclei[-depth], state.forms[-depth])


def _cohesions(sketch: Sketch, s1: Span, s2: Span, front: int) -> tuple[int, int, int, int]:
    sentences = sketch.layout.sentences
    queue = sketch.cohesion.vector(front, sentences.last[front]) if front < sketch.layout.n_edus else None
    left, right = cohesion_class(s2.vector, s1.vector), cohesion_class(s1.vector, queue)
    return left, right, cohesion_class(s2.vector, queue), 3 if NO_COHESION in (left, right) else _compare(left, right)


def _compare(left: int, right: int) -> int:
    if left < 0 or right < 0:
        return 3
    return (left > right) - (left < right) + 1


_STATE: tuple[tuple[str, int, Callable[[_StateView], int]], ...] = (
    ("stack", 4, lambda v: min(v.n_stack, 3)),
    ("queue", BUCKETS, lambda v: bucket(v.n_edus - v.front)),
    ("action 1", N_FORMS, lambda v: v.actions[2]),
    ("actions 2", N_FORMS**2, lambda v: v.actions[1] * N_FORMS + v.actions[2]),
    ("actions 3", N_FORMS**3, lambda v: (v.actions[0] * N_FORMS + v.actions[1]) * N_FORMS + v.actions[2]),
    ("form s1", N_FORMS, lambda v: v.s1.form),
    ("form s2", N_FORMS, lambda v: v.s2.form),
    ("form s3", N_FORMS, lambda v: v.form3),
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
    ("sentence of q1", N_COUNTS, lambda v: v.q1.sentence),
    ("sentence after q1", N_COUNTS, lambda v: v.q1.sentence_words),
    ("paragraph of s2", N_COUNTS, lambda v: v.s2.paragraph),
    ("paragraph of s1", N_COUNTS, lambda v: v.s1.paragraph),
    ("paragraph of q1", N_COUNTS, lambda v: v.q1.paragraph),
    ("ending s1", N_ENDINGS, lambda v: v.s1.ending),
    ("ending s2", N_ENDINGS, lambda v: v.s2.ending),
    ("ending s3", N_ENDINGS, lambda v: v.ending3),
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


def state_values(sketch: Sketch, state: State) -> list[int]:
    """One value per template of `STATE_TEMPLATES`."""
    view = _StateView(sketch, state)
    return [value(view) for value in _STATE_FUNCTIONS]


@dataclass(slots=True)
class _MergeView:
    """What the templates of a node read of it; `places` as in `Sketch.paragraph_places`."""

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


def merge_values(sketch: Sketch, merge: Merge, parent: Merge | None, depth: int) -> list[int]:
    """One value per template of `MERGE_TEMPLATES`, for a node `depth` steps below the root."""
    left, right = sketch.span(*merge.left, merge.left_form), sketch.span(*merge.right, merge.right_form)
    view = _MergeView(
        left,
        right,
        form=merge.form,
        form_parent=2 * (parent.form if parent else NO_FORM) + merge.is_left,
        depth=depth,
        height=merge.height,
        places=sketch.paragraph_places(left.first, right.last),
        cohesion=cohesion_class(left.vector, right.vector),
        level=sketch.layout.level(left.first, right.last),
    )
    return [value(view) for value in _MERGE_FUNCTIONS]
