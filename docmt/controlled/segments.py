"""Documents with nested segments, whose structure decides the antecedents of pronouns (Grosz and Sidner 1986).

A document is a sequence of sections with nested digressions. The first sentence of a segment names one noun, the topic.
The pronoun `it` refers to the topic of the innermost open segment. Sentences for the other phenomena can occur anywhere
and neither open nor close segments. Apart from the frequency of `you`, sentences do not depend on the number of
sentences to come, so a truncated document is also a valid document. The suites rely on this.

Some openings and ends of segments follow a plan, which ends with a return to a segment (the target). Another segment is
the distractor. The plans are balanced against shortcuts: a rule that chooses a segment by position names target and
distractor equally often. Such rules choose, for example, the topic of the last section, the parent of the last segment,
or the segment opened or mentioned last. The distractor is neither the last noun nor the topic of the segment that the
return ends, because these are never the antecedent.
"""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from random import Random
from typing import Any, NamedTuple

from typing_extensions import override

from docmt.controlled import lexicon, sentences
from docmt.controlled.building import LATEST_GREETING, DocumentBuilder, Elided, draw_length
from docmt.controlled.german import Noun, Phrase
from docmt.controlled.lexicon import Marker
from docmt.controlled.settings import SegmentsSettings

NOUNS: list[Noun] = []
for _class in lexicon.CLASSES.values():
    NOUNS += chain.from_iterable(_class.nouns.values())
READY = 4.0  # factor for the weight of an ellipsis that is possible
KNOWN = 2.0  # factor for the weight of words with two senses or renderings, once the document has decided one
PLANNED = 0.5  # share of plans among the segments opened outside digressions

TARGET, DISTRACTOR = "target", "distractor"


class Move(NamedTuple):
    """`section`, `digression` or `close`, and the role of the opened segment."""

    name: str
    role: str = ""


class SegmentPlan(NamedTuple):
    """The kind of a plan. `is_inner` is true if the target is a digression, false if it is a section.

    The kind describes the distractor:

    - shallow: the section before the target's section,
    - inner: the section around the target,
    - deep: a digression with one or two nested ones, inside the digression that the return ends.
    """

    kind: str
    is_inner: bool


# Repeated for the balance.
PLANS = (SegmentPlan("shallow", False), SegmentPlan("deep", False))
PLANS += (SegmentPlan("inner", True), SegmentPlan("deep", True)) * 2
ASIDE = (Move("digression"), Move("close"))


def draw_plan(rng: Random, plan: SegmentPlan) -> list[Move]:
    """Return the moves of a plan, with a random number of further digressions that are closed at once."""
    if plan.kind == "deep":
        if plan.is_inner:
            moves = [Move("section"), Move("digression", TARGET)]
        else:
            moves = [Move("section", TARGET)]
        moves += ASIDE * rng.randrange(3)
        moves += [Move("digression"), Move("digression", DISTRACTOR)]
        moves += ASIDE * rng.choice((1, 1, 2))
        return [*moves, Move("close"), Move("close")]
    aside_in = rng.choice((TARGET, DISTRACTOR, None))
    moves = [Move("section", DISTRACTOR)]
    if aside_in == DISTRACTOR:
        moves += ASIDE
    name = "digression" if plan.is_inner else "section"
    moves.append(Move(name, TARGET))
    if aside_in == TARGET:
        moves += ASIDE
    return [*moves, *ASIDE]


def build_document(
    rng: Random, settings: SegmentsSettings, exchange: Mapping[Any, Any] | None = None
) -> "SegmentBuilder":
    """Build a document from random sentences."""
    n_sentences = draw_length(rng, settings)
    builder = SegmentBuilder(rng, settings, n_sentences, exchange)
    builder.add_random(n_sentences)
    return builder


class Segment(NamedTuple):
    """A section (without a marker) or a digression."""

    opener: int  # index of the sentence that names the topic
    noun: Noun  # the topic
    marker: Marker | None = None  # the words that open and close a digression


class SegmentBuilder(DocumentBuilder):
    """A document with nested segments.

    Attributes:
        n_sentences: length of the complete document. The frequency of `you` depends on it.
        segments: all segments in order.
        stack: open segments, the innermost last.
        plan: next openings and ends of segments (empty: random).
        roles: role → segment, for the last plan.
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
        for name in ("section", "digression", "close"):
            self.moves[name] = partial(self._move, name)
        self.moves["continuation"] = self._continue

    @override
    def attachment(self, kind: str, antecedent: int | None) -> tuple[int, str, str]:
        segment = self.stack[-1]
        if kind == "digression" and segment.marker is not None:
            return self.stack[-2].opener, segment.marker.relation, "NS"
        parent = segment.opener
        if kind == "section":
            parent = self.segments[0].opener if self.placed else -1
        elif kind == "ellipsis":
            parent = len(self) - 1
        return parent, *self.relations[kind]

    @override
    def weights_of_kinds(self, allowed: frozenset[str] | None) -> dict[str, float]:
        if not self.placed:
            return {"section": 1.0}
        weights = self.settings.weights
        weight_by_kind = {
            "continuation": weights.continuation,
            "ellipsis": weights.ellipsis * (READY if self.elided else 1),
        }
        for kind, decided in self.decided.items():
            weight_by_kind[kind] = getattr(weights, kind) * (KNOWN if decided else 1)
        if len(self.stack) <= len(lexicon.MARKERS):
            weight_by_kind["digression"] = weights.digression
        if len(self.stack) > 1:
            weight_by_kind["close"] = weights.close
        else:
            weight_by_kind["section"] = weights.section
        if self.address is not None:
            share = min(0.5, self.settings.n_deictic / self.n_sentences)
            weight_by_kind["deixis"] = sum(weight_by_kind.values()) * share / (1 - share)
        return weight_by_kind

    def _move(self, name: str) -> None:
        """Open or end a segment as planned, otherwise by `name`. A planned section first ends all digressions."""
        if not self.plan and len(self.stack) == 1 and self.rng.random() < PLANNED:
            self.plan = draw_plan(self.rng, self.rng.choice(PLANS))
        if self.plan and self.plan[0].name == "section" and len(self.stack) > 1:
            move = Move("close")
        elif self.plan:
            move = self.plan.pop(0)
        else:
            move = Move(name)
        if move.name == "close":
            marker = self.stack.pop().marker
            assert marker is not None, "only digressions are closed"
            self._continue(marker.closes)
        elif move.name == "section":
            self.stack = []
            phrase = lexicon.FIRST_SECTION
            if self.placed:
                phrase = self.rng.choice(lexicon.SECTIONS)
            self._open(phrase)
        else:
            open_markers = [segment.marker for segment in self.stack]
            markers = [marker for marker in lexicon.MARKERS if marker not in open_markers]
            marker = self.rng.choice(markers)
            self._open(marker.opens, marker)
        if move.role:
            self.roles[move.role] = self.stack[-1]

    def _open(self, phrase: Phrase, marker: Marker | None = None) -> None:
        """Open a segment with a topic different from all open and recent segments."""
        recent = {segment.noun for segment in [*self.segments[-len(NOUNS) // 2 :], *self.stack]}
        nouns = [noun for noun in NOUNS if self._exchanged(noun) not in recent]
        noun = self._exchanged(self.rng.choice(nouns))
        person = self.rng.choice(lexicon.PERSONS)
        predicate = self._exchanged(self.rng.choice(lexicon.TRANSITIVE))
        sentence = sentences.opener(self.rng, noun, marker=phrase, person=person, predicate=predicate)
        self.stack.append(Segment(len(self), noun, marker))
        self.segments.append(self.stack[-1])
        decides = None
        if len(sentence.edus) == 1:
            decides = Elided(predicate, person, noun.gender)
        kind = "digression" if marker else "section"
        self.add(sentence, kind, decides=decides)

    def _continue(self, marker: Phrase | None = None) -> None:
        topic = self.stack[-1]
        sentence = self._fresh(sentences.continuation, marker)
        kind = "return" if marker else "continuation"
        self.add(sentence, kind, variant=topic.noun.gender, antecedent=topic.opener)
