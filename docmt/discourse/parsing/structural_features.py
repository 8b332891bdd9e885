"""Structural features: positions, sizes, forms, boundaries, punctuation; they name no word and are small integers.

A template has a name, a size, and a value in [0, size). `state_values` describes a state of the transition system,
`merge_values` the internal nodes of the finished tree. The last two templates of a state and the last one of a node are
boundary levels, with which the neural parser conjoins all others. Models depend on the order.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

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
    NO_COHESION,
    NO_FORM,
    NO_PLACES,
    NO_SPAN,
    DocumentProfile,
    bucket,
    cohesion_class,
)
from docmt.discourse.parsing.transitions import N_ACTIONS, Constituent, State

Row = tuple[str, int, str]
"""Name of a template; number of classes of its parts; its parts, attributes of the values from which it is computed."""


def _each(attribute: str, n_classes: int, spans: str) -> list[Row]:
    """The same template for several spans."""
    return [(f"{attribute} {span}", n_classes, f"{span}.{attribute}") for span in spans.split()]


def _compile(rows: Sequence[Row]) -> tuple[tuple[tuple[str, int], ...], Callable[[Any], list[int]]]:
    """Names and sizes of the templates, and the function that computes them: parts are the digits of their values."""
    split = [(name, n_classes, parts.split()) for name, n_classes, parts in rows]
    templates = tuple((name, n_classes ** len(parts)) for name, n_classes, parts in split)
    first_parts = attrgetter(*(parts[0] for *_, parts in split))
    further_parts = [
        (number, n_classes, attrgetter(part))
        for number, (_, n_classes, parts) in enumerate(split)
        for part in parts[1:]
    ]

    def compute(values: Any) -> list[int]:
        row = list(first_parts(values))
        for number, n_classes, part in further_parts:
            row[number] = row[number] * n_classes + part(values)
        return row

    return templates, compute


STATE_TEMPLATES, _compute_state = _compile([
    ("stack", 4, "stack"),
    ("queue", BUCKETS, "queue"),
    ("action 1", N_FORMS, "action_1"),
    ("actions 2", N_FORMS, "action_2 action_1"),
    ("actions 3", N_FORMS, "action_3 action_2 action_1"),
    *_each("form", N_FORMS, "s1 s2 s3"),
    ("forms s2 s1", N_FORMS, "s2.form s1.form"),
    *_each("edus", N_COUNTS, "s1 s2"),
    ("edus s2 s1", N_COUNTS, "s2.edus s1.edus"),
    ("longer edus", 4, "longer_edus"),
    *_each("sentences", N_COUNTS, "s1 s2"),
    ("sentences s2 s1", N_COUNTS, "s2.sentences s1.sentences"),
    ("longer sentences", 4, "longer_sentences"),
    *_each("paragraphs", N_COUNTS, "s1 s2"),
    *_each("edges", N_EDGES, "s1 s2 q1"),
    ("s1 from sentence start", N_COUNTS, "s1.from_sentence"),
    ("s2 from sentence start", N_COUNTS, "s2.from_sentence"),
    ("s1 to sentence end", N_COUNTS, "s1.to_sentence"),
    ("s2 from paragraph start", N_COUNTS, "from_paragraph"),
    ("s1 to paragraph end", N_COUNTS, "to_paragraph"),
    ("paragraphs before s2", N_COUNTS, "paragraphs_before"),
    ("paragraphs after s1", N_COUNTS, "paragraphs_after"),
    *_each("nucleus", N_PLACES, "s1 s2"),
    *_each("words", N_COUNTS, "s1 s2 q1"),
    ("sentence of q1", N_COUNTS, "q1.to_sentence"),
    ("sentence after q1", N_COUNTS, "q_sentence.words"),
    ("paragraph of s2", N_COUNTS, "s2.paragraph"),
    ("paragraph of s1", N_COUNTS, "s1.paragraph"),
    ("paragraph of q1", N_COUNTS, "q1.paragraph"),
    *_each("ending", N_ENDINGS, "s1 s2 s3 q1"),
    ("endings s2 s1", N_ENDINGS, "s2.ending s1.ending"),
    *_each("opening", N_OPENINGS, "s1 s2 q1"),
    ("openings s2 s1 q1", N_OPENINGS, "s2.opening s1.opening q1.opening"),
    ("place in document", N_COUNTS, "place"),
    ("cohesion s2 s1", N_COHESIONS, "cohesion_s2_s1"),
    ("cohesion s1 q1", N_COHESIONS, "cohesion_s1_q1"),
    ("cohesion s2 q1", N_COHESIONS, "cohesion_s2_q1"),
    ("stronger cohesion", 4, "stronger_cohesion"),
    ("boundary s3 s2", N_LEVELS, "boundary_s3_s2"),
    ("boundary s2 s1 q1", N_LEVELS, "boundary_s2_s1 boundary_s1_q1"),
    ("boundary s2 s1", N_LEVELS, "boundary_s2_s1"),
    ("boundary s1 q1", N_LEVELS, "boundary_s1_q1"),
])  # fmt: skip

MERGE_TEMPLATES, _compute_merge = _compile([
    ("forms", N_ACTIONS, "left.form right.form"),
    *_each("form", N_ACTIONS, "left right"),
    ("form parent", 2 * N_FORMS, "form_parent"),
    *_each("edus", N_COUNTS, "left right"),
    ("edus", N_COUNTS, "left.edus right.edus"),
    *_each("sentences", N_COUNTS, "left right"),
    ("sentences", N_COUNTS, "left.sentences right.sentences"),
    *_each("paragraphs", N_COUNTS, "left right"),
    *_each("words", N_COUNTS, "left right"),
    *_each("edges", N_EDGES, "left right"),
    ("depth", BUCKETS, "depth"),
    ("height", BUCKETS, "height"),
    ("from paragraph start", N_COUNTS, "from_paragraph"),
    ("to paragraph end", N_COUNTS, "to_paragraph"),
    ("paragraphs before", N_COUNTS, "paragraphs_before"),
    ("paragraphs after", N_COUNTS, "paragraphs_after"),
    *_each("nucleus", N_PLACES, "left right"),
    *_each("ending", N_ENDINGS, "left right"),
    ("endings", N_ENDINGS, "left.ending right.ending"),
    *_each("opening", N_OPENINGS, "left right"),
    ("openings", N_OPENINGS, "left.opening right.opening"),
    ("cohesion", N_COHESIONS, "cohesion"),
    ("form", N_ACTIONS, "form"),
    ("boundary", N_LEVELS, "boundary"),
])  # fmt: skip


def state_values(profile: DocumentProfile, state: State) -> list[int]:
    """Compute one value per template of `STATE_TEMPLATES`."""
    units, front, n_stack = profile.units, state.next, len(state.stack)
    top = [profile.span_of(node) for node in reversed(state.stack[-3:])]
    s1, s2, s3 = (top + [NO_SPAN] * 3)[:3]
    q1 = q_sentence = NO_SPAN  # the EDU at the front of the queue; with the rest of its sentence
    if front < state.n_edus:
        q1 = profile.span(front, front, front)
        q_sentence = profile.span(front, units.sentences.last[front], front)
    action_3, action_2, action_1 = ([NO_FORM] * 3 + state.actions[-3:])[-3:]  # the latest one is number 1
    cohesion_s2_s1 = cohesion_class(s2.vector, s1.vector)
    cohesion_s1_q1 = cohesion_class(s1.vector, q_sentence.vector)
    both_exist = NO_COHESION not in (cohesion_s2_s1, cohesion_s1_q1)
    values = SimpleNamespace(
        **(profile.paragraph_places(s2.first, s1.last) if n_stack > 1 else NO_PLACES),
        s1=s1,
        s2=s2,
        s3=s3,
        q1=q1,
        q_sentence=q_sentence,
        stack=min(n_stack, 3),
        queue=bucket(state.n_edus - front),
        place=BUCKETS * front // max(1, state.n_edus),
        action_1=action_1,
        action_2=action_2,
        action_3=action_3,
        longer_edus=_compare(s2.n_edus, s1.n_edus),
        longer_sentences=_compare(s2.n_sentences, s1.n_sentences),
        cohesion_s2_s1=cohesion_s2_s1,
        cohesion_s1_q1=cohesion_s1_q1,
        cohesion_s2_q1=cohesion_class(s2.vector, q_sentence.vector),
        stronger_cohesion=_compare(cohesion_s2_s1, cohesion_s1_q1) if both_exist else 3,
        boundary_s3_s2=units.level(s3.last, s2.first) if n_stack > 2 else NOTHING,
        boundary_s2_s1=units.level(s2.last, s1.first) if n_stack > 1 else NOTHING,
        boundary_s1_q1=units.level(s1.last, front) if n_stack and front < state.n_edus else NOTHING,
    )
    return _compute_state(values)


def _compare(left: int, right: int) -> int:
    return 3 if left < 0 or right < 0 else (left > right) - (left < right) + 1


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
        values = SimpleNamespace(
            **profile.paragraph_places(node.first, node.last),
            left=left,
            right=right,
            form=node.form,
            form_parent=form_parent[node],
            depth=bucket(depth[node]),
            height=bucket(node.height),
            cohesion=cohesion_class(left.vector, right.vector),
            boundary=profile.units.level(node.first, node.last),
        )
        rows.append(_compute_merge(values))
    return rows
