"""Documents of nested segments, in which the structure decides what a pronoun means (Grosz and Sidner 1986).

A document is a row of sections, and in them digressions, which nest. The sentence that opens a segment names one noun,
its topic; `it` is the topic of the innermost segment that is still open. Sentences of the other phenomena stand
anywhere and neither open nor close segments. Nothing depends on how many sentences are still to come, except how rare
`you` is, so a document that ends early is a document like all others: the suites rely on it.

Here and there, a document follows a plan of how segments open and end. A plan ends with a return to a segment, the
target; another segment is the distractor. Together the plans are balanced against shortcuts. Each rule that names one
segment by its place is right as often as it names the distractor: the topic of the last section, the segment in which
the last one was opened, the later of the two by opening or by mention. The distractor is never the noun named last, nor
the topic of the segment that the return ends, because those are never the antecedent.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, NamedTuple

from typing_extensions import override

from docmt.controlled import lexicon, sentences
from docmt.controlled.building import LATEST_GREETING, DocumentBuilder, Elided, draw_length
from docmt.controlled.german import Noun, Phrase
from docmt.controlled.lexicon import Marker
from docmt.controlled.settings import SegmentsSettings

NOUNS = tuple(noun for group in lexicon.CLASSES.values() for nouns in group.nouns.values() for noun in nouns)
# How much likelier …
READY = 4.0  # … an ellipsis is where it is possible than a sentence that prepares one elsewhere
KNOWN = 2.0  # … a sentence has an ambiguous word, or one with two renderings, after the document has decided one
PLANNED = 0.5  # share of plans among the openings of segments outside all digressions

TARGET, DISTRACTOR = "target", "distractor"


class Move(NamedTuple):
    """`section`, `digression` or `close`, and the role of a segment that it opens."""

    name: str
    role: str = ""


class SegmentPlan(NamedTuple):
    """The kind of a plan, and whether its target is a digression rather than a section.

    shallow: the distractor is the section before that of the target; inner: the section around the target; deep: a
    digression within the one that the return ends, and that digression holds one or two others.
    """

    kind: str
    is_inner: bool


# Every plan as often as the balance needs it.
PLANS = (SegmentPlan("shallow", False), SegmentPlan("deep", False))
PLANS += (SegmentPlan("inner", True), SegmentPlan("deep", True)) * 2
ASIDE = (Move("digression"), Move("close"))


def draw_plan(rng: Random, plan: SegmentPlan) -> list[Move]:
    """The moves of a plan, with a random number of further digressions, which are closed at once."""
    if plan.kind == "deep":
        return [
            *([Move("section"), Move("digression", TARGET)] if plan.is_inner else [Move("section", TARGET)]),
            *ASIDE * rng.randrange(3),
            Move("digression"),
            Move("digression", DISTRACTOR),
            *ASIDE * rng.choice((1, 1, 2)),
            Move("close"),
            Move("close"),
        ]
    aside_in = rng.choice((TARGET, DISTRACTOR, None))
    return [
        Move("section", DISTRACTOR),
        *(ASIDE if aside_in == DISTRACTOR else ()),
        Move("digression" if plan.is_inner else "section", TARGET),
        *(ASIDE if aside_in == TARGET else ()),
        *ASIDE,
    ]


def build_document(
    rng: Random, settings: SegmentsSettings, exchange: Mapping[Any, Any] | None = None
) -> "SegmentBuilder":
    """Build a document of random sentences."""
    n_sentences = draw_length(rng, settings)
    builder = SegmentBuilder(rng, settings, n_sentences, exchange)
    builder.add_random(n_sentences)
    return builder


class Segment(NamedTuple):
    """A section (without a marker) or a digression."""

    opener: int  # index of the sentence that names its topic
    noun: Noun  # the topic
    marker: Marker | None = None  # the words that open and close a digression


class SegmentBuilder(DocumentBuilder):
    """A document of nested segments.

    Attributes:
        n_sentences: length of the whole document, of which this may be the beginning; it sets how rare `you` is.
        segments: all segments in order.
        stack: the segments that are open, the innermost last.
        plan: the next openings and ends of segments; if empty, they are random.
        roles: the segments that the last plan names.
    """

    relations = {
        **dict.fromkeys(
            ("continuation", "return", "ambiguous", "first rendering", "consistent"), ("Elaboration", "NS")
        ),
        **dict.fromkeys(("activity", "greeting", "topic"), ("Background", "NS")),
        "section": ("Joint", "NN"),
        "deixis": ("Topic-Comment", "NS"),
        "ellipsis": ("Comparison", "NS"),
    }
    share_of_new_words = (0.0, 0.3)

    def __init__(
        self, rng: Random, settings: SegmentsSettings, n_sentences: int, exchange: Mapping[Any, Any] | None = None
    ) -> None:
        super().__init__(rng, exchange=exchange)
        self.settings = settings
        self.n_sentences = n_sentences
        self.segments: list[Segment] = []
        self.stack: list[Segment] = []
        self.plan: list[Move] = []
        self.roles: dict[str, Segment] = {}
        self.greeting_at = rng.randint(1, LATEST_GREETING)
        self.moves |= {name: partial(self._move, name) for name in ("section", "digression", "close")}
        self.moves["continuation"] = self._continue

    def follow(self, plan: Iterable[Move]) -> None:
        """Add random sentences until the plan is done, in place of the one that may be under way."""
        self.plan = list(plan)
        while self.plan:
            self.add_random()

    @override
    def attachment(self, kind: str, antecedent: int | None) -> tuple[int, str, str]:
        if kind == "section":
            return (self.segments[0].opener if self.placed else -1), *self.relations[kind]
        if kind == "digression" and (marker := self.stack[-1].marker):
            return self.stack[-2].opener, marker.relation, "NS"
        parent = len(self) - 1 if kind == "ellipsis" else self.stack[-1].opener
        return parent, *self.relations[kind]

    @override
    def weights_of_kinds(self, allowed: frozenset[str] | None) -> dict[str, float]:
        if not self.placed:
            return {"section": 1.0}
        weights = self.settings.weights
        found = {
            "continuation": weights.continuation,
            "ellipsis": weights.ellipsis * (READY if self.elided else 1),
            **{kind: getattr(weights, kind) * (KNOWN if decided else 1) for kind, decided in self.decided.items()},
        }
        if len(self.stack) <= len(lexicon.MARKERS):
            found["digression"] = weights.digression
        found |= {"close": weights.close} if len(self.stack) > 1 else {"section": weights.section}
        if self.address is not None:
            share = min(0.5, self.settings.n_deictic / self.n_sentences)
            found["deixis"] = sum(found.values()) * share / (1 - share)
        return found

    def _move(self, name: str) -> None:
        """Open or end a segment: as planned, or as given. A planned section waits for the end of all digressions."""
        if not self.plan and len(self.stack) == 1 and self.rng.random() < PLANNED:
            self.plan = draw_plan(self.rng, self.rng.choice(PLANS))
        move = Move(name)
        if self.plan:
            is_early = self.plan[0].name == "section" and len(self.stack) > 1
            move = Move("close") if is_early else self.plan.pop(0)
        if move.name == "close":
            marker = self.stack.pop().marker
            assert marker is not None, "only digressions are closed"
            self._continue(marker.closes)
        elif move.name == "section":
            self.stack = []
            self._open(self.rng.choice(lexicon.SECTIONS) if self.placed else lexicon.FIRST_SECTION)
        else:
            used = [segment.marker for segment in self.stack]
            marker = self.rng.choice([each for each in lexicon.MARKERS if each not in used])
            self._open(marker.opens, marker)
        if move.role:
            self.roles[move.role] = self.stack[-1]

    def _open(self, phrase: Phrase, marker: Marker | None = None) -> None:
        """Open a segment with a topic that no open or recent one has."""
        recent = {segment.noun for segment in [*self.segments[-len(NOUNS) // 2 :], *self.stack]}
        noun = self._exchanged(self.rng.choice([noun for noun in NOUNS if self._exchanged(noun) not in recent]))
        person, predicate = self.rng.choice(lexicon.PERSONS), self._exchanged(self.rng.choice(lexicon.TRANSITIVE))
        sentence = sentences.opener(self.rng, noun, marker=phrase, person=person, predicate=predicate)
        self.stack.append(Segment(len(self), noun, marker))
        self.segments.append(self.stack[-1])
        decides = Elided(predicate, person, noun.gender) if len(sentence.edus) == 1 else None
        self.add(sentence, "digression" if marker else "section", decides=decides)

    def _continue(self, marker: Phrase | None = None) -> None:
        topic = self.stack[-1]
        sentence = self._fresh(sentences.continuation, marker)
        kind = "return" if marker else "continuation"
        self.add(sentence, kind, variant=topic.noun.gender, antecedent=topic.opener)
