"""Features that name no word: positions, sizes, forms, boundaries, punctuation; all small numbers of fixed ranges.

A template has a name and a size; its value is in [0, size). `state_values` describes a state of the transition system,
`merge_values` an internal node of the finished tree. The last two templates of each kind are boundary levels, with
which the neural parser conjoins all others.
"""

import unicodedata

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.cohesion import N_COHESIONS, NO_COHESION, Cohesion, cohesion_class
from docmt.discourse.parsing.layout import N_LEVELS, NOTHING, DocumentLayout
from docmt.discourse.parsing.transitions import N_ACTIONS, Merge, State

BUCKETS = 8
NO_BUCKET = BUCKETS
"""Buckets of counts: 0, 1, 2–3, 4–7, … 64 and more; one more for what does not exist or is not known."""
N_COUNTS = BUCKETS + 1
MARKS = (".。", "?？", "!！", ",，、", ";；", ":：")
ENDINGS = {mark: number for number, marks in enumerate(MARKS, start=1) for mark in marks}
N_ENDINGS, N_OPENINGS = 12, 7
NO_ENDING, NO_OPENING = N_ENDINGS - 1, N_OPENINGS - 1
N_EDGES = 65
NO_EDGE = N_EDGES - 1
NO_FORM = NO_ACTION = N_ACTIONS
N_FORMS = N_ACTIONS + 1
N_PLACES = 5

STATE_TEMPLATES: tuple[tuple[str, int], ...] = (
    ("stack", 4),
    ("queue", BUCKETS),
    ("action 1", N_FORMS),
    ("actions 2", N_FORMS**2),
    ("actions 3", N_FORMS**3),
    ("form s1", N_FORMS),
    ("form s2", N_FORMS),
    ("form s3", N_FORMS),
    ("forms s2 s1", N_FORMS**2),
    ("edus s1", N_COUNTS),
    ("edus s2", N_COUNTS),
    ("edus s2 s1", N_COUNTS**2),
    ("longer edus", 4),
    ("sentences s1", N_COUNTS),
    ("sentences s2", N_COUNTS),
    ("sentences s2 s1", N_COUNTS**2),
    ("longer sentences", 4),
    ("paragraphs s1", N_COUNTS),
    ("paragraphs s2", N_COUNTS),
    ("edges s1", N_EDGES),
    ("edges s2", N_EDGES),
    ("edges q1", N_EDGES),
    ("s1 from sentence start", N_COUNTS),
    ("s2 from sentence start", N_COUNTS),
    ("s1 to sentence end", N_COUNTS),
    ("s2 from paragraph start", N_COUNTS),
    ("s1 to paragraph end", N_COUNTS),
    ("paragraphs before s2", N_COUNTS),
    ("paragraphs after s1", N_COUNTS),
    ("nucleus s1", N_PLACES),
    ("nucleus s2", N_PLACES),
    ("words s1", N_COUNTS),
    ("words s2", N_COUNTS),
    ("words q1", N_COUNTS),
    ("sentence of q1", N_COUNTS),
    ("sentence after q1", N_COUNTS),
    ("paragraph of s2", N_COUNTS),
    ("paragraph of s1", N_COUNTS),
    ("paragraph of q1", N_COUNTS),
    ("ending s1", N_ENDINGS),
    ("ending s2", N_ENDINGS),
    ("ending s3", N_ENDINGS),
    ("ending q1", N_ENDINGS),
    ("endings s2 s1", N_ENDINGS**2),
    ("opening s1", N_OPENINGS),
    ("opening s2", N_OPENINGS),
    ("opening q1", N_OPENINGS),
    ("openings s2 s1 q1", N_OPENINGS**3),
    ("place in document", N_COUNTS),
    ("cohesion s2 s1", N_COHESIONS),
    ("cohesion s1 q1", N_COHESIONS),
    ("cohesion s2 q1", N_COHESIONS),
    ("stronger cohesion", 4),
    ("boundary s3 s2", N_LEVELS),
    ("boundary s2 s1 q1", N_LEVELS**2),
    ("boundary s2 s1", N_LEVELS),
    ("boundary s1 q1", N_LEVELS),
)
MERGE_TEMPLATES: tuple[tuple[str, int], ...] = (
    ("forms", N_ACTIONS * N_ACTIONS),
    ("form left", N_ACTIONS),
    ("form right", N_ACTIONS),
    ("form parent", 2 * N_FORMS),
    ("edus left", N_COUNTS),
    ("edus right", N_COUNTS),
    ("edus", N_COUNTS**2),
    ("sentences left", N_COUNTS),
    ("sentences right", N_COUNTS),
    ("sentences", N_COUNTS**2),
    ("paragraphs left", N_COUNTS),
    ("paragraphs right", N_COUNTS),
    ("words left", N_COUNTS),
    ("words right", N_COUNTS),
    ("edges left", N_EDGES),
    ("edges right", N_EDGES),
    ("depth", BUCKETS),
    ("height", BUCKETS),
    ("from paragraph start", N_COUNTS),
    ("to paragraph end", N_COUNTS),
    ("paragraphs before", N_COUNTS),
    ("paragraphs after", N_COUNTS),
    ("nucleus left", N_PLACES),
    ("nucleus right", N_PLACES),
    ("ending left", N_ENDINGS),
    ("ending right", N_ENDINGS),
    ("endings", N_ENDINGS**2),
    ("opening left", N_OPENINGS),
    ("opening right", N_OPENINGS),
    ("openings", N_OPENINGS**2),
    ("cohesion", N_COHESIONS),
    ("form", N_ACTIONS),
    ("boundary", N_LEVELS),
)


def bucket(count: int) -> int:
    """The bucket of a count of 0 or more."""
    return min(BUCKETS - 1, count.bit_length())


class Sketch:
    """What the features need of a document, once per document.

    Attributes:
        layout: sentences and paragraphs.
        cohesion: shared words of spans.
        endings, openings: the class of each EDU's last and first word.
        edges: per EDU, six bits: it begins, ends its sentence, its paragraph, the document.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.layout = layout = DocumentLayout(document)
        self.cohesion = Cohesion(document)
        self.endings, self.openings = [], []
        for number in range(layout.n_edus):
            words = document.edu_words(number)
            self.endings.append(ending(words[-1]) if words else 0)
            self.openings.append(opening(words[0]) if words else 0)
        last = layout.n_edus - 1
        self.begins, self.ends = [], []
        for edu in range(layout.n_edus):
            groups = [layout.sentences, *([layout.paragraphs] if layout.paragraphs else [])]
            begins = sum((group.first[edu] == edu) << place for place, group in enumerate(groups))
            ends = sum((group.last[edu] == edu) << place for place, group in enumerate(groups))
            self.begins.append(begins | (edu == 0) << 2)
            self.ends.append((ends | (edu == last) << 2) << 3)

    def n_sentences(self, first: int, last: int) -> int:
        """Sentences that a span touches."""
        return self.layout.sentences.of[last] - self.layout.sentences.of[first] + 1

    def n_paragraphs(self, first: int, last: int) -> int:
        """The bucket of the number of paragraphs that a span touches."""
        paragraphs = self.layout.paragraphs
        return NO_BUCKET if paragraphs is None else bucket(paragraphs.of[last] - paragraphs.of[first] + 1)

    def n_words(self, first: int, last: int) -> int:
        """The bucket of the number of words of a span."""
        return bucket((self.layout.word_offsets[last + 1] - self.layout.word_offsets[first]) >> 1)

    def paragraph_places(self, first: int, last: int) -> tuple[int, int, int, int]:
        """Buckets: sentences from the start of the paragraph, to its end, paragraphs before and after a span."""
        layout = self.layout
        if layout.paragraphs is None:
            return NO_BUCKET, NO_BUCKET, NO_BUCKET, NO_BUCKET
        first_sentence, last_sentence = layout.sentences.of[first], layout.sentences.of[last]
        return (
            bucket(first_sentence - layout.paragraph_first[first_sentence]),
            bucket(layout.paragraph_last[last_sentence] - last_sentence),
            bucket(layout.paragraphs.of[first]),
            bucket(layout.paragraphs.n - 1 - layout.paragraphs.of[last]),
        )

    def paragraph_size(self, edu: int) -> int:
        """The bucket of the number of sentences in an EDU's paragraph."""
        layout = self.layout
        if layout.paragraphs is None:
            return NO_BUCKET
        sentence = layout.sentences.of[edu]
        return bucket(layout.paragraph_last[sentence] - layout.paragraph_first[sentence] + 1)


def ending(word: str) -> int:
    """The class of a word as the last one of an EDU."""
    mark = word[-1]
    if (known := ENDINGS.get(mark)) is not None:
        return known
    category = unicodedata.category(mark)
    return {"Pe": 7, "Pf": 8, "Pi": 8, "Pd": 9}.get(category, 8 if mark in "\"'" else 10 if category[0] == "P" else 0)


def opening(word: str) -> int:
    """The class of a word as the first one of an EDU."""
    category = unicodedata.category(word[0])
    return {"Lu": 1, "Ll": 2, "Lo": 3, "Nd": 4}.get(category, 5 if category[0] in "PS" else 0)


def state_values(sketch: Sketch, state: State) -> list[int]:
    """One value per template of `STATE_TEMPLATES`."""
    layout = sketch.layout
    n_stack = len(state.firsts)
    history = [*state.actions[-3:]]
    history = [NO_ACTION] * (3 - len(history)) + history
    s1 = _SpanValues(sketch, state, 1)
    s2 = _SpanValues(sketch, state, 2)
    form3 = state.forms[-3] if n_stack > 2 else NO_FORM
    ending3 = sketch.endings[state.lasts[-3]] if n_stack > 2 else NO_ENDING
    front = state.next
    cohesions = _cohesions(sketch, state)
    q1 = _QueueValues(sketch, front)
    boundary = layout.level(s2.last, s1.first) if n_stack > 1 else NOTHING
    boundary_queue = layout.level(s1.last, front) if n_stack and front < state.n_edus else NOTHING
    boundary_before = layout.level(state.lasts[-3], s2.first) if n_stack > 2 else NOTHING
    places = sketch.paragraph_places(s2.first, s1.last) if n_stack > 1 else (NO_BUCKET,) * 4
    return [
        min(n_stack, 3),
        bucket(state.n_edus - front),
        history[2],
        history[1] * N_FORMS + history[2],
        (history[0] * N_FORMS + history[1]) * N_FORMS + history[2],
        s1.form,
        s2.form,
        form3,
        s2.form * N_FORMS + s1.form,
        s1.edus,
        s2.edus,
        s2.edus * N_COUNTS + s1.edus,
        _compare(s2.n_edus, s1.n_edus),
        s1.sentences,
        s2.sentences,
        s2.sentences * N_COUNTS + s1.sentences,
        _compare(s2.n_sentences, s1.n_sentences),
        s1.paragraphs,
        s2.paragraphs,
        s1.edges,
        s2.edges,
        q1.edges,
        s1.from_sentence,
        s2.from_sentence,
        s1.to_sentence,
        *places,
        s1.nucleus,
        s2.nucleus,
        s1.words,
        s2.words,
        q1.words,
        q1.sentence,
        q1.sentence_words,
        s2.paragraph,
        s1.paragraph,
        q1.paragraph,
        s1.ending,
        s2.ending,
        ending3,
        q1.ending,
        s2.ending * N_ENDINGS + s1.ending,
        s1.opening,
        s2.opening,
        q1.opening,
        (s2.opening * N_OPENINGS + s1.opening) * N_OPENINGS + q1.opening,
        BUCKETS * front // max(1, state.n_edus),
        *cohesions,
        boundary_before,
        boundary * N_LEVELS + boundary_queue,
        boundary,
        boundary_queue,
    ]


def _cohesions(sketch: Sketch, state: State) -> tuple[int, int, int, int]:
    """Classes of S2 and S1, S1 and the sentence of Q1, S2 and that sentence; and which of the first two is stronger."""
    vector, n_stack, front = sketch.cohesion.vector, len(state.firsts), state.next
    s1 = vector(state.firsts[-1], state.lasts[-1]) if n_stack else None
    s2 = vector(state.firsts[-2], state.lasts[-2]) if n_stack > 1 else None
    q1 = vector(front, sketch.layout.sentences.last[front]) if front < state.n_edus else None
    left, right = cohesion_class(s2, s1), cohesion_class(s1, q1)
    return left, right, cohesion_class(s2, q1), 3 if NO_COHESION in (left, right) else _compare(left, right)


class _SpanValues:
    """The values of the top (1) or second (2) span of the stack."""

    __slots__ = (
        "edges", "edus", "ending", "first", "form", "from_sentence", "last", "n_edus", "n_sentences", "nucleus",
        "opening", "paragraph", "paragraphs", "sentences", "to_sentence", "words",
    )  # fmt: skip

    def __init__(self, sketch: Sketch, state: State, depth: int) -> None:
        if len(state.firsts) < depth:
            self.first = self.last = self.n_edus = self.n_sentences = -1
            self.form, self.edges, self.nucleus = NO_FORM, NO_EDGE, N_PLACES - 1
            self.edus = self.sentences = self.paragraphs = self.words = self.paragraph = NO_BUCKET
            self.from_sentence = self.to_sentence = NO_BUCKET
            self.ending, self.opening = NO_ENDING, NO_OPENING
            return
        self.first, self.last, self.form = state.firsts[-depth], state.lasts[-depth], state.forms[-depth]
        sentences = sketch.layout.sentences
        self.n_edus = self.last - self.first + 1
        self.n_sentences = sketch.n_sentences(self.first, self.last)
        self.edus, self.sentences = bucket(self.n_edus), bucket(self.n_sentences)
        self.paragraphs = sketch.n_paragraphs(self.first, self.last)
        self.words = sketch.n_words(self.first, self.last)
        self.paragraph = sketch.paragraph_size(self.last)
        self.edges = sketch.begins[self.first] | sketch.ends[self.last]
        self.from_sentence = bucket(self.first - sentences.first[self.first])
        self.to_sentence = bucket(sentences.last[self.last] - self.last)
        self.ending, self.opening = sketch.endings[self.last], sketch.openings[self.first]
        self.nucleus = nucleus_place(self.first, self.last, state.nuclei[-depth])


class _QueueValues:
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


def nucleus_place(first: int, last: int, nucleus: int) -> int:
    """Where the nucleus EDU of a span stands: alone, first, last, inside."""
    if first == last:
        return 0
    return 1 if nucleus == first else 2 if nucleus == last else 3


def _compare(left: int, right: int) -> int:
    if left < 0 or right < 0:
        return 3
    return (left > right) - (left < right) + 1


def merge_values(sketch: Sketch, merge: Merge, parent: Merge | None, depth: int) -> list[int]:
    """One value per template of `MERGE_TEMPLATES`.

    Args:
        parent: of the node; None for the root.
        depth: steps from the root.
    """
    (first, left_last, left_nucleus), (right_first, last, right_nucleus) = merge.left, merge.right
    left_edus, right_edus = bucket(left_last - first + 1), bucket(last - right_first + 1)
    left_sentences = bucket(sketch.n_sentences(first, left_last))
    right_sentences = bucket(sketch.n_sentences(right_first, last))
    left_ending, right_ending = sketch.endings[left_last], sketch.endings[last]
    left_opening, right_opening = sketch.openings[first], sketch.openings[right_first]
    return [
        merge.left_form * N_ACTIONS + merge.right_form,
        merge.left_form,
        merge.right_form,
        2 * (parent.form if parent else NO_FORM) + merge.is_left,
        left_edus,
        right_edus,
        left_edus * N_COUNTS + right_edus,
        left_sentences,
        right_sentences,
        left_sentences * N_COUNTS + right_sentences,
        sketch.n_paragraphs(first, left_last),
        sketch.n_paragraphs(right_first, last),
        sketch.n_words(first, left_last),
        sketch.n_words(right_first, last),
        sketch.begins[first] | sketch.ends[left_last],
        sketch.begins[right_first] | sketch.ends[last],
        bucket(depth),
        bucket(merge.height),
        *sketch.paragraph_places(first, last),
        nucleus_place(first, left_last, left_nucleus),
        nucleus_place(right_first, last, right_nucleus),
        left_ending,
        right_ending,
        left_ending * N_ENDINGS + right_ending,
        left_opening,
        right_opening,
        left_opening * N_OPENINGS + right_opening,
        cohesion_class(sketch.cohesion.vector(first, left_last), sketch.cohesion.vector(right_first, last)),
        merge.form,
        sketch.layout.level(first, last),
    ]
