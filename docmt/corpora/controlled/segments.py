"""Documents of nested segments, in which the structure decides what a pronoun means (Grosz and Sidner 1986).

A document is a row of sections, and in them digressions, which nest. The sentence that opens a segment names one noun,
its topic; `it` is the topic of the innermost segment that is still open. The sentences of the other phenomena stand
anywhere and neither open nor close segments. Nothing depends on how many sentences are still to come, except how rare
`you` is, so a document that ends early is a document like all others: the suites rely on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from docmt.corpora.controlled import lexicon, segment_words, sentences
from docmt.corpora.controlled.building import MAX_WORDS
from docmt.corpora.controlled.drafts import Draft, Elided, Mention
from docmt.corpora.controlled.german import (
    GENDERS,
    PRONOUN,
    Clause,
    Noun,
    Phrase,
    Predicate,
    english_noun_phrase,
    german_noun_phrase,
    join,
)
from docmt.corpora.controlled.segment_plans import PLANS, Move, draw_plan
from docmt.corpora.controlled.segment_words import Marker
from docmt.corpora.controlled.sentences import Sentence
from docmt.corpora.controlled.settings import SegmentsSettings

NOUNS = tuple(noun for group in lexicon.CLASSES.values() for nouns in group.nouns.values() for noun in nouns)
LATEST_GREETING = 4
READY = 4.0
"""How much likelier an ellipsis is where it is possible than a sentence that prepares one elsewhere."""
PLANNED = 0.5
"""How often a document follows a plan when it opens a segment outside all digressions."""
KNOWN = 2.0
"""How much likelier a sentence has one of those words after the document has decided the first of them."""


@dataclass(frozen=True)
class Segment:
    """A section (without a marker) or a digression.

    Attributes:
        opener: index of the sentence that names its topic.
        noun: the topic.
        marker: of a digression.
    """

    opener: int
    noun: Noun
    marker: Marker | None = None


def opener(rng: Random, noun: Noun, *, marker: Phrase, person: str, predicate: Predicate) -> Sentence:
    """A sentence that names the topic of a segment; it has one EDU, or two with a subordinate clause."""
    definite = rng.random() < 0.6
    adjective = rng.choice(lexicon.ADJECTIVES) if rng.random() < 0.3 else None
    english = join(predicate.english, english_noun_phrase(noun, definite=definite, adjective=adjective))
    german = german_noun_phrase(noun, "acc", definite=definite, adjective=adjective)
    clause = Clause(Phrase(person, person), Predicate(english, predicate.verb, german))
    if rng.random() < 0.2:
        return sentences.with_subordinate(rng, clause, rng.choice(lexicon.FILLERS), marker)
    return sentences.simple(clause.english(marker.english), clause.main(marker.german))


def continuation(rng: Random, marker: Phrase | None) -> Sentence:
    """A sentence about `it`, which no word of the sentence identifies; the variants are the genders."""
    predicate = rng.choice(segment_words.SUBJECTS + segment_words.OBJECTS)
    person = rng.choice(lexicon.PERSONS)
    variants, source = {}, ""
    for gender in GENDERS:
        if predicate in segment_words.SUBJECTS:
            clause = Clause(Phrase("it", PRONOUN["nom"][gender]), predicate)
        else:
            clause = Clause(Phrase(person, person), predicate.fill("it", PRONOUN["acc"][gender]))
        source = clause.english(marker.english if marker else None)
        variants[gender] = clause.main(marker.german if marker else None)
    return sentences.simple(source, variants)


@dataclass
class SegmentBuilder(Draft):
    """A document of nested segments.

    Attributes:
        settings: the frequencies of the kinds of sentences.
        n_sentences: length of the document that this one is the beginning of; it sets how rare `you` is.
        exchange: what to put in place of what is drawn: nouns, verbs, addresses, senses, renderings. Whatever it says,
            the same random numbers are drawn, so two documents differ in nothing else.
        segments: all segments in order; `stack`: those that are open, the innermost last.
        verbs: by sentence, the verb that an elliptical sentence can repeat.
        choices: by sentence, the word that it decides, and the number of the sense or rendering.
        plan: what the next openings and ends of segments are; if empty, they are random.
        roles: the segments that the last plan names.
    """

    settings: SegmentsSettings
    n_sentences: int
    exchange: Mapping[Any, Any] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    stack: list[Segment] = field(default_factory=list)
    verbs: dict[int, Predicate] = field(default_factory=dict)
    choices: dict[int, tuple[str, int]] = field(default_factory=dict)
    plan: list[Move] = field(default_factory=list)
    roles: dict[str, Segment] = field(default_factory=dict)
    greeting_at: int = field(init=False)

    def __post_init__(self) -> None:
        self.greeting_at = self.rng.randint(1, LATEST_GREETING)

    def extend(self, n_sentences: int) -> None:
        """Add random sentences until there are so many."""
        while len(self) < n_sentences:
            self._add_random()

    def follow(self, plan: Iterable[Move]) -> None:
        """Add random sentences until the plan is done, in place of the one that may be under way."""
        self.plan = list(plan)
        while self.plan:
            self._add_random()

    # One more sentence

    def _add_random(self) -> None:
        """Add a sentence of a random kind that is possible now."""
        if self.placed and self.address is None and len(self) >= self.greeting_at:
            return self._greet()
        options = self._options() if self.placed else {"section": 1.0}
        kind = self.rng.choices(list(options), weights=list(options.values()))[0]
        others = {
            "continuation": self._continue,
            "deixis": self._address,
            "ellipsis": self._ellipsis,
            "ambiguous": self._ambiguous,
            "consistent": self._consistent,
        }
        return others[kind]() if kind in others else self._move(kind)

    def _move(self, name: str) -> None:
        """Open or end a segment: as planned, or as given. A planned section waits for the end of all digressions."""
        if not self.plan and len(self.stack) == 1 and self.rng.random() < PLANNED:
            self.plan = draw_plan(self.rng, self.rng.choice(PLANS))
        move = Move(name)
        if self.plan:
            is_early = self.plan[0].name == "section" and len(self.stack) > 1
            move = Move("close") if is_early else self.plan.pop(0)
        {"section": self._section, "digress": self._digress, "close": self._close}[move.name]()
        if move.role:
            self.roles[move.role] = self.stack[-1]

    def _options(self) -> dict[str, float]:
        weights, is_inside = self.settings.weights, len(self.stack) > 1
        options = {
            "continuation": weights.continuation,
            "ellipsis": weights.ellipsis * (READY if self.elided else 1),
            "ambiguous": weights.ambiguous * (KNOWN if self.senses else 1),
            "consistent": weights.consistent * (KNOWN if self.renderings else 1),
        }
        if len(self.stack) <= len(segment_words.MARKERS):
            options["digress"] = weights.digression
        options |= {"close": weights.close} if is_inside else {"section": weights.section}
        if self.address is not None:
            share = min(0.5, self.settings.n_deictic / self.n_sentences)
            options["deixis"] = sum(options.values()) * share / (1 - share)
        return options

    def _put(
        self,
        sentence: Sentence,
        kind: str,
        relation: str,
        *,
        variant: str = "",
        phenomenon: str | None = None,
        antecedent: int | None = None,
        parent: int | None = None,
        nuclearity: str = "NS",
    ) -> None:
        """Append a sentence, by default as a satellite of the opener of the innermost segment."""
        self._place(
            sentence,
            kind,
            relation,
            variant=variant,
            phenomenon=phenomenon,
            antecedent=antecedent,
            parent=self.stack[-1].opener if parent is None else parent,
            nuclearity=nuclearity,
        )

    def _drawn(self, value: Any) -> Any:
        return self.exchange.get(value, value)

    # Segments

    def _section(self) -> None:
        marker = self.rng.choice(segment_words.SECTIONS) if self.placed else segment_words.FIRST_SECTION
        self.stack, first = [], self.segments[0].opener if self.segments else -1
        self._open(marker, None, kind="section", relation="Joint", nuclearity="NN", parent=first)

    def _digress(self) -> None:
        marker = self.rng.choice([each for each in segment_words.MARKERS if all(s.marker != each for s in self.stack)])
        self._open(marker.opens, marker, kind="digression", relation=marker.relation, parent=self.stack[-1].opener)

    def _open(
        self, phrase: Phrase, marker: Marker | None, *, kind: str, relation: str, parent: int, nuclearity: str = "NS"
    ) -> None:
        """Open a segment with a topic that no open or recent one has."""
        recent = {segment.noun for segment in self.segments[-len(NOUNS) // 2 :]} | {each.noun for each in self.stack}
        free = [noun for noun in NOUNS if self._drawn(noun) not in recent]
        noun = self._drawn(self.rng.choice(free))
        person, predicate = self.rng.choice(lexicon.PERSONS), self._drawn(self.rng.choice(lexicon.TRANSITIVE))
        sentence = opener(self.rng, noun, marker=phrase, person=person, predicate=predicate)
        self.stack.append(Segment(len(self), noun, marker))
        self.segments.append(self.stack[-1])
        self._put(sentence, kind, relation, parent=parent, nuclearity=nuclearity)
        if len(sentence.edus) == 1:
            self._can_repeat(Elided(predicate, person, noun.gender))

    def _continue(self, marker: Phrase | None = None) -> None:
        topic = self.stack[-1]
        self._put(
            self._fresh(continuation, marker),
            "return" if marker else "continuation",
            "Elaboration",
            variant=topic.noun.gender,
            phenomenon="pronoun",
            antecedent=topic.opener,
        )

    def _close(self) -> None:
        marker = self.stack.pop().marker
        assert marker is not None, "only digressions are closed"
        self._continue(marker.closes)

    # The other phenomena

    def _greet(self) -> None:
        address = self._drawn(self.rng.choice(sentences.ADDRESSES))
        self._put(sentences.greeting(self.rng, address), "greeting", "Background")
        self.address = Mention(len(self) - 1, address)

    def _address(self) -> None:
        assert self.address is not None, "a greeting comes first"
        self._put(
            self._fresh(sentences.deixis),
            "deixis",
            "Topic-Comment",
            variant=self.address.value,
            phenomenon="deixis",
            antecedent=self.address.index,
        )

    def _ellipsis(self) -> None:
        """Repeat the verb phrase of the sentence before, or add one that the next sentence can repeat."""
        elided = self.elided
        if elided is None:
            predicate, person = self._drawn(self.rng.choice(lexicon.INTRANSITIVE)), self.rng.choice(lexicon.PERSONS)
            self._put(sentences.activity(self.rng, predicate, person=person), "activity", "Background")
            self._can_repeat(Elided(predicate, person, None))
            return
        person = self.rng.choice([name for name in lexicon.PERSONS if name != elided.person])
        verbs = lexicon.TRANSITIVE if elided.gender else lexicon.INTRANSITIVE
        before = len(self) - 1
        self._put(
            sentences.ellipsis(self.rng, person=person, verbs=verbs, gender=elided.gender),
            "ellipsis",
            "Comparison",
            variant=elided.predicate.verb,
            phenomenon="ellipsis",
            antecedent=before,
            parent=before,
        )

    def _can_repeat(self, elided: Elided) -> None:
        self.elided = elided
        self.verbs[len(self) - 1] = elided.predicate

    def _ambiguous(self) -> None:
        """Decide the sense of an ambiguous word, or use it."""
        if self._is_new(self.senses):
            word = self.rng.choice([word for word in lexicon.AMBIGUOUS if word not in self.senses])
            _, sense = self._drawn((word, self.rng.randrange(2)))
            self._put(sentences.topic(self.rng, word, sense), "topic", "Background")
            self.senses[word] = Mention(len(self) - 1, sense)
            self.choices[len(self) - 1] = (word, sense)
            return
        word = self.rng.choice(list(self.senses))
        mention = self.senses[word]
        self._put(
            self._fresh(sentences.ambiguous, word),
            "ambiguous",
            "Elaboration",
            variant=str(mention.value),
            phenomenon="cohesion",
            antecedent=mention.index,
        )

    def _consistent(self) -> None:
        """Use a word with two renderings: the first use chooses one, later ones repeat it."""
        if self._is_new(self.renderings):
            word = self.rng.choice([word for word in lexicon.SYNONYMS if word not in self.renderings])
            _, rendering = self._drawn((word, self.rng.randrange(2)))
            self.choices[len(self)] = (word, rendering)
            before = None
        else:
            word = self.rng.choice(list(self.renderings))
            before = self.renderings[word]
            rendering = before.value
        self._put(
            self._fresh(sentences.consistent, word),
            "consistent" if before else "first rendering",
            "Elaboration",
            variant=str(rendering),
            phenomenon="cohesion" if before else None,
            antecedent=before.index if before else None,
        )
        self.renderings[word] = Mention(len(self) - 1, rendering)

    def _is_new(self, decided: Mapping[str, Any]) -> bool:
        """Whether the next word is a new one."""
        return not decided or (len(decided) < MAX_WORDS and self.rng.random() < 0.3)
