"""The transition system of StageDP (Wang et al. 2017, §3.1), and the structural features of its states.

A stack, a queue, Shift and three Reduce actions parse a document with n EDUs in 2n − 1 steps. A second stage assigns
relations to the finished tree.

Features are positions, sizes, forms, boundaries and punctuation, as small integers without lexical information. A
template has a name, a size, and a value in [0, size). `state_features` describes a parser state, and `node_features`
the internal nodes of the finished tree. The last two templates for states and the last one for nodes are boundary
levels. The parser conjoins all other features with them. Models depend on the template order.
"""

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from docmt.discourse.discourse_documents import N_LEVELS, NOTHING, DiscourseDocument, DocumentUnits

SHIFT, NN, NS, SN = range(4)
N_ACTIONS = 4
FORMS = ("", "NN", "NS", "SN")
"""Nuclearity of the new node per action (Shift: none)."""


@dataclass(slots=True, eq=False)
class Constituent:
    """A span of EDUs, as the result of an action."""

    first: int  # first and last EDU
    last: int
    nucleus: int  # nucleus EDU, with two nuclei from the left one
    form: int = SHIFT  # action
    height: int = 0  # steps to the deepest EDU
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
            right, left = self.stack.pop(), self.stack.pop()
            nucleus = (right if action == SN else left).nucleus
            height = 1 + max(left.height, right.height)
            self.nodes.append(Constituent(left.first, right.last, nucleus, action, height, (left, right)))
            self.stack.append(self.nodes[-1])
        self.actions.append(action)


def possible(state: State) -> tuple[bool, bool]:
    """Return (can Shift, can Reduce), without constraints."""
    return state.next < state.n_edus, len(state.stack) >= 2


BUCKETS = 8
NO_BUCKET = BUCKETS
"""Buckets for counts: 0, 1, 2–3, 4–7, … 64 and more, and `NO_BUCKET` for missing or unknown counts."""
N_COUNTS = BUCKETS + 1
MARKS = (".。", "?？", "!！", ",，、", ";；", ":：")
ENDINGS = {mark: number for number, marks in enumerate(MARKS, start=1) for mark in marks}
N_ENDINGS, N_OPENINGS = 12, 7
NO_ENDING, NO_OPENING = N_ENDINGS - 1, N_OPENINGS - 1
N_EDGES = 65
NO_EDGE = N_EDGES - 1
NO_FORM = N_ACTIONS
N_FORMS = N_ACTIONS + 1
N_PLACES = 5
NO_PLACE = N_PLACES - 1
PROJECTIONS = 256  # bits of SHA-256
COHESION_BOUNDS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
N_COHESIONS = len(COHESION_BOUNDS) + 2
NO_COHESION = N_COHESIONS - 1
"""The class for missing spans."""


@dataclass(slots=True)
class Span:
    """Structural values of a span. The defaults describe a missing span."""

    form: int = NO_FORM  # action
    first: int = -1  # EDU
    last: int = -1  # EDU
    n_edus: int = -1
    n_sentences: int = -1  # including partial sentences
    edus: int = NO_BUCKET  # bucket of `n_edus`
    sentences: int = NO_BUCKET  # bucket of `n_sentences`
    paragraphs: int = NO_BUCKET
    words: int = NO_BUCKET  # bucket of half the number of words
    paragraph: int = NO_BUCKET  # sentences in the paragraph of the last EDU
    edges: int = NO_EDGE  # bits of `DocumentProfile.begins` and `DocumentProfile.ends`
    from_sentence: int = NO_BUCKET  # EDUs from the start of the first sentence
    to_sentence: int = NO_BUCKET  # EDUs to the end of the last sentence
    nucleus: int = NO_PLACE  # position of the nucleus EDU: the only one, first, last, inside
    ending: int = NO_ENDING  # class of the last word
    opening: int = NO_OPENING  # class of the first word
    vector: np.ndarray | None = None  # see `Cohesion.vector`


NO_SPAN = Span()
NO_PLACES: dict[str, int] = dict.fromkeys(
    ("from_paragraph", "to_paragraph", "paragraphs_before", "paragraphs_after"), NO_BUCKET
)


@lru_cache(maxsize=20_000)
def _signs(word: str) -> np.ndarray:
    """Return pseudorandom signs (+1 and −1) for a word, float32 [PROJECTIONS]."""
    # From a checksum and not from a generator or `hash`, so that the signs are the same in all processes.
    bits = np.unpackbits(np.frombuffer(hashlib.sha256(word.encode()).digest(), dtype=np.uint8))
    return bits.astype(np.float32) * 2 - 1


class Cohesion:
    """Word vectors of spans in a document, for their lexical cohesion by shared words (Hearst 1997).

    They are random projections of word counts. Words in few EDUs have larger weights, so function words have almost no
    influence, in any language.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        counts = [Counter(map(str.lower, document.edu_words(edu))) for edu in range(len(document.edus))]
        spread = Counter(word for words in counts for word in words)
        weights = {word: math.log((1 + len(counts)) / n) for word, n in spread.items() if word[0].isalnum()}
        self._sums = np.zeros((len(counts) + 1, PROJECTIONS), dtype=np.float32)
        for edu, words in enumerate(counts):
            row = self._sums[edu + 1]
            row += self._sums[edu]
            for word, count in words.items():
                if word in weights:
                    row += count * weights[word] * _signs(word)

    def vector(self, first: int, last: int) -> np.ndarray:
        """Return the vector of a span, float32 [PROJECTIONS], with length 1, or 0 without weighted words."""
        vector = self._sums[last + 1] - self._sums[first]
        length = math.sqrt(vector @ vector)
        return vector / length if length > 0 else vector


class DocumentProfile:
    """Document values for features, computed once.

    Attributes:
        units: sentences and paragraphs.
        cohesion: word vectors of spans.
        endings: class of the last word, per EDU.
        openings: class of the first word, per EDU.
        begins: per EDU, bits 0 to 2: begins a sentence, a paragraph, the document.
        ends: per EDU, bits 3 to 5: ends a sentence, a paragraph, the document.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.units = units = DocumentUnits(document)
        self.cohesion = Cohesion(document)
        self._spans: dict[tuple[int, int, int, int], Span] = {}
        edus = [document.edu_words(number) for number in range(units.n_edus)]
        self.endings = [ending(words[-1]) if words else 0 for words in edus]
        self.openings = [opening(words[0]) if words else 0 for words in edus]
        levels = [units.sentences, *([units.paragraphs] if units.paragraphs else [])]
        self.begins, self.ends = [0] * units.n_edus, [0] * units.n_edus
        for edu in range(units.n_edus):
            for bit, level in enumerate(levels):
                self.begins[edu] |= (level.first[edu] == edu) << bit
                self.ends[edu] |= (level.last[edu] == edu) << 3 + bit
            self.begins[edu] |= (edu == 0) << 2
            self.ends[edu] |= (edu == units.n_edus - 1) << 5

    def span(self, first: int, last: int, nucleus: int, form: int = NO_FORM) -> Span:
        """Return the values of a span with this first, last and nucleus EDU and action."""
        # Cached, since a span stays on the stack for several steps.
        key = first, last, nucleus, form
        if key in self._spans:
            return self._spans[key]
        units = self.units
        sentences, paragraphs, words = units.sentences, units.paragraphs, units.word_offsets
        n_edus = last - first + 1
        n_sentences = sentences.number_of[last] - sentences.number_of[first] + 1
        n_paragraphs, paragraph = NO_BUCKET, NO_BUCKET
        if paragraphs is not None:
            n_paragraphs = bucket(paragraphs.number_of[last] - paragraphs.number_of[first] + 1)
            sentence = sentences.number_of[last]
            paragraph = bucket(units.paragraph_last[sentence] - units.paragraph_first[sentence] + 1)
        span = self._spans[key] = Span(
            form,
            first,
            last,
            n_edus,
            n_sentences,
            edus=bucket(n_edus),
            sentences=bucket(n_sentences),
            paragraphs=n_paragraphs,
            words=bucket((words[last + 1] - words[first]) >> 1),
            paragraph=paragraph,
            edges=self.begins[first] | self.ends[last],
            from_sentence=bucket(first - sentences.first[first]),
            to_sentence=bucket(sentences.last[last] - last),
            nucleus=0 if first == last else 1 if nucleus == first else 2 if nucleus == last else 3,
            ending=self.endings[last],
            opening=self.openings[first],
            vector=self.cohesion.vector(first, last),
        )
        return span

    def span_of(self, node: Constituent) -> Span:
        return self.span(node.first, node.last, node.nucleus, node.form)

    def paragraph_places(self, first: int, last: int) -> dict[str, int]:
        """Return buckets for the sentences between span and paragraph ends, and for the paragraphs around it."""
        units = self.units
        if units.paragraphs is None:
            return NO_PLACES
        first_sentence, last_sentence = units.sentences.number_of[first], units.sentences.number_of[last]
        return {
            "from_paragraph": bucket(first_sentence - units.paragraph_first[first_sentence]),
            "to_paragraph": bucket(units.paragraph_last[last_sentence] - last_sentence),
            "paragraphs_before": bucket(units.paragraphs.number_of[first]),
            "paragraphs_after": bucket(units.paragraphs.n - 1 - units.paragraphs.number_of[last]),
        }


def bucket(count: int) -> int:
    """Return the bucket for a count ≥ 0."""
    return min(BUCKETS - 1, count.bit_length())


def ending(word: str) -> int:
    """Return the class of the last word in an EDU."""
    mark = word[-1]
    if mark in ENDINGS:
        return ENDINGS[mark]
    # 7 to 10: closing bracket, quotation mark, dash, other punctuation (Unicode categories).
    category = unicodedata.category(mark)
    return {"Pe": 7, "Pf": 8, "Pi": 8, "Pd": 9}.get(category, 8 if mark in "\"'" else 10 if category[0] == "P" else 0)


def opening(word: str) -> int:
    """Return the class of the first word in an EDU."""
    # 1 to 5: capital, small letter, letter of a script without case, digit, punctuation or symbol.
    category = unicodedata.category(word[0])
    return {"Lu": 1, "Ll": 2, "Lo": 3, "Nd": 4}.get(category, 5 if category[0] in "PS" else 0)


def cohesion_class(left: np.ndarray | None, right: np.ndarray | None) -> int:
    """Return the class for the cosine of two spans, from 0 (nothing shared). Missing span: `NO_COHESION`."""
    if left is None or right is None:
        return NO_COHESION
    cosine = float(left @ right)
    return sum(cosine > bound for bound in COHESION_BOUNDS)


Row = tuple[str, int, str]
"""Template name, number of classes per part, and parts (attribute names, separated by spaces)."""


def _each(attribute: str, n_classes: int, spans: str) -> list[Row]:
    """Return the same template for several spans."""
    return [(f"{attribute} {span}", n_classes, f"{span}.{attribute}") for span in spans.split()]


def _compile(rows: Sequence[Row]) -> tuple[tuple[tuple[str, int], ...], Callable[[Any], list[int]]]:
    """Return names and sizes of templates, and the function that computes them, with parts as digits."""
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
NODE_TEMPLATES, _compute_node = _compile([
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


def state_features(profile: DocumentProfile, state: State) -> list[int]:
    """Return one value per template in `STATE_TEMPLATES`."""
    units, front, n_stack = profile.units, state.next, len(state.stack)
    top = [profile.span_of(node) for node in reversed(state.stack[-3:])]
    s1, s2, s3 = (top + [NO_SPAN] * 3)[:3]
    q1 = q_sentence = NO_SPAN  # the front EDU in the queue, and the rest of its sentence from this EDU on
    if front < state.n_edus:
        q1 = profile.span(front, front, front)
        q_sentence = profile.span(front, units.sentences.last[front], front)
    action_3, action_2, action_1 = ([NO_FORM] * 3 + state.actions[-3:])[-3:]  # number 1 is the latest
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


def node_features(profile: DocumentProfile, nodes: Sequence[Constituent]) -> list[list[int]]:
    """Return one value per template in `NODE_TEMPLATES` for all nodes, children before parents."""
    # From the root down: depth per node, and parent form with the side of the node.
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
        rows.append(_compute_node(values))
    return rows
