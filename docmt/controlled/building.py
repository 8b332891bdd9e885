"""A document under construction, and the phenomena that both kinds of documents have: deixis, cohesion, ellipsis.

The order in which builders draw random numbers is part of the corpora: another order gives other files.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, ClassVar, NamedTuple

from docmt.controlled import lexicon, sentences
from docmt.controlled.german import Predicate
from docmt.controlled.sentences import Sentence
from docmt.controlled.settings import ControlledSettings

WORDS: dict[str, tuple[Mapping[str, Any], Callable[[Random, str], Sentence]]] = {
    "ambiguous": (lexicon.AMBIGUOUS, sentences.ambiguous),
    "consistent": (lexicon.SYNONYMS, sentences.consistent),
}
"""By kind, the words whose rendering context decides, and how their sentences are drawn."""
MAX_WORDS = 2  # of each kind in a document
LATEST_GREETING = 4
PHENOMENA = {
    "pronoun": "pronoun",
    "continuation": "pronoun",
    "return": "pronoun",
    "deixis": "deixis",
    "ambiguous": "cohesion",
    "consistent": "cohesion",
    "ellipsis": "ellipsis",
}
"""The phenomenon of the kinds of sentences whose rendering the context decides."""


class Elided(NamedTuple):
    """A verb phrase that an elliptical sentence can repeat; `gender` is the gender of its object, None without one."""

    predicate: Predicate
    person: str
    gender: str | None


@dataclass(frozen=True)
class Placed:
    """A sentence in its document."""

    sentence: Sentence  # the sentence with all its renderings
    kind: str  # its role in the document
    variant: str  # the German rendering that the context requires, as a key of the sentence's variants
    antecedent: int | None  # index of the sentence that decides the rendering, None if there is none
    decides: Any  # a word and its sense or rendering, or an `Elided`, that later sentences can take up
    parent: int  # index of the sentence to which it is attached in the discourse tree, −1 for the first
    relation: str  # of that attachment; "NS": the parent is the nucleus, "SN": the parent is the satellite
    nuclearity: str

    @property
    def tgt(self) -> str:
        """The German rendering that the context requires."""
        return self.sentence.variants[self.variant]

    @property
    def phenomenon(self) -> str | None:
        """`pronoun`, `deixis`, `cohesion` or `ellipsis` if the context decides the rendering, else None."""
        return PHENOMENA.get(self.kind)


class Mention(NamedTuple):
    """The sentence that last decided something, and the noun, sense, rendering or address that it chose."""

    place: int
    value: Any


class DocumentBuilder(ABC):
    """A document under construction.

    Attributes:
        rng: the only source of randomness.
        exchange: replacements for drawn nouns, verbs, addresses, senses and renderings, everywhere, or in one sentence
            for a key `(index, value)`. They change no random number, so two documents with the same seed differ in
            nothing else.
        reserved: noun classes, words and kinds of sentences that random sentences must not use.
        greeting_at: position of a random greeting.
        placed: the sentences so far.
        address: the form of address so far.
        decided: by kind of word (`ambiguous`, `consistent`), the sense or rendering of each word so far.
        elided: the verb phrase that the next sentence can repeat.
        moves: by kind, a method that adds a random sentence.
    """

    relations: ClassVar[dict[str, tuple[str, str]]]
    """Relation and nuclearity with which each kind of sentence is attached."""
    topic_reach: ClassVar[float] = math.inf
    """Sentences after which an ambiguous word is no longer used."""
    share_of_new_words: ClassVar[tuple[float, float]]
    """Random numbers in this interval choose a new word where a known one is possible, too."""

    def __init__(
        self, rng: Random, *, exchange: Mapping[Any, Any] | None = None, reserved: frozenset[str] = frozenset()
    ) -> None:
        self.rng = rng
        self.exchange = exchange or {}
        self.reserved = reserved
        self.greeting_at: float = math.inf
        self.placed: list[Placed] = []
        self.address: Mention | None = None
        self.decided: dict[str, dict[str, Mention]] = {kind: {} for kind in WORDS}
        self.elided: Elided | None = None
        self.moves: dict[str, Callable[[], None]] = {
            "deixis": self.add_deixis,
            "ambiguous": partial(self._random_word, "ambiguous"),
            "consistent": partial(self._random_word, "consistent"),
            "ellipsis": self._random_ellipsis,
        }

    def __len__(self) -> int:
        return len(self.placed)

    @property
    def src(self) -> tuple[str, ...]:
        return tuple(placed.sentence.src for placed in self.placed)

    @property
    def tgt(self) -> tuple[str, ...]:
        """The target sentences that the context requires."""
        return tuple(placed.tgt for placed in self.placed)

    @abstractmethod
    def weights_of_kinds(self, allowed: frozenset[str] | None) -> dict[str, float]:
        """Weights of the kinds of sentences that are possible now (and `allowed`)."""

    @abstractmethod
    def attachment(self, kind: str, antecedent: int | None) -> tuple[int, str, str]:
        """Parent, relation and nuclearity of the next sentence."""

    def add_random(self, n_sentences: int = 1, *, allowed: frozenset[str] | None = None) -> None:
        """Add the greeting if its place has come, else a sentence of a random kind."""
        for _ in range(n_sentences):
            if self.address is None and len(self) >= self.greeting_at:
                self.add_greeting(self._exchanged(self.rng.choice(sentences.ADDRESSES)))
                continue
            weights = self.weights_of_kinds(allowed)
            self.moves[self.rng.choices(list(weights), weights=list(weights.values()))[0]]()

    # Given sentences

    def add(
        self, sentence: Sentence, kind: str, *, variant: str = "", antecedent: int | None = None, decides: Any = None
    ) -> None:
        """Append a sentence; the next one cannot repeat the verb phrase of an earlier one."""
        parent, relation, nuclearity = self.attachment(kind, antecedent)
        self.placed.append(Placed(sentence, kind, variant, antecedent, decides, parent, relation, nuclearity))
        self.elided = decides if isinstance(decides, Elided) else None

    def add_greeting(self, address: str) -> None:
        self.add(sentences.greeting(self.rng, address), "greeting")
        self.address = Mention(len(self) - 1, address)

    def add_deixis(self, sentence: Sentence | None = None) -> None:
        """Add a sentence with `you` or `your`."""
        assert self.address is not None, "a greeting comes first"
        sentence = sentence or self._fresh(sentences.deixis)
        self.add(sentence, "deixis", variant=self.address.value, antecedent=self.address.place)

    def add_word(self, kind: str, word: str, choice: int = 0, sentence: Sentence | None = None) -> None:
        """Use a word as the document has decided it; if it has not yet, decide for the sense or rendering `choice`."""
        decided, (_, draw) = self.decided[kind], WORDS[kind]
        before = decided.get(word)
        if before is not None:
            sentence, choice = sentence or self._fresh(draw, word), before.value
            self.add(sentence, kind, variant=str(choice), antecedent=before.place)
        elif kind == "ambiguous":
            self.add(sentences.topic(self.rng, word, choice), "topic", decides=(word, choice))
        else:
            self.add(self._fresh(draw, word), "first rendering", variant=str(choice), decides=(word, choice))
        # The topic decides all uses of an ambiguous word; a rendering is that of the use before.
        if before is None or kind == "consistent":
            decided[word] = Mention(len(self) - 1, choice)

    def add_activity(self, predicate: Predicate, *, person: str) -> None:
        """Add a sentence with an intransitive verb."""
        sentence = sentences.activity(self.rng, predicate, person=person)
        self.add(sentence, "activity", decides=Elided(predicate, person, None))

    def add_ellipsis(self, sentence: Sentence | None = None) -> None:
        """Add a sentence that repeats the verb phrase of the sentence before."""
        elided = self.elided
        assert elided is not None, "the sentence before has a verb phrase to repeat"
        if sentence is None:
            person = self.rng.choice([name for name in lexicon.PERSONS if name != elided.person])
            verbs = lexicon.TRANSITIVE if elided.gender else lexicon.INTRANSITIVE
            sentence = sentences.ellipsis(self.rng, person=person, verbs=verbs, gender=elided.gender)
        self.add(sentence, "ellipsis", variant=elided.predicate.verb, antecedent=len(self) - 1)

    # Random sentences

    def _random_word(self, kind: str) -> None:
        """Decide the sense or rendering of a word, or use one that is decided."""
        known, new = self.known_words(kind), self.new_words(kind)
        low, high = self.share_of_new_words
        # No random number where there is no choice.
        if len(known) == 0 or (new and low <= self.rng.random() < high):
            self.add_word(kind, *self._exchanged((self.rng.choice(new), self.rng.randrange(2))))
        else:
            self.add_word(kind, self.rng.choice(known))

    def _random_ellipsis(self) -> None:
        """Repeat the verb phrase of the sentence before, or add one that the next sentence can repeat."""
        if self.elided:
            self.add_ellipsis()
        else:
            predicate = self._exchanged(self.rng.choice(lexicon.INTRANSITIVE))
            self.add_activity(predicate, person=self.rng.choice(lexicon.PERSONS))

    def known_words(self, kind: str) -> list[str]:
        """Words that are decided and, if ambiguous, whose topic is recent enough."""
        first = len(self) - (self.topic_reach if kind == "ambiguous" else math.inf)
        words = self.decided[kind].items()
        return [word for word, mention in words if mention.place >= first and word not in self.reserved]

    def new_words(self, kind: str) -> list[str]:
        """Words that the document can still decide."""
        decided, (words, _) = self.decided[kind], WORDS[kind]
        if len(decided) >= MAX_WORDS:
            return []
        return [word for word in words if word not in decided and word not in self.reserved]

    def _exchanged(self, value: Any) -> Any:
        return self.exchange.get((len(self), value), self.exchange.get(value, value))

    def _fresh(self, draw: Callable[..., Sentence], *arguments: Any) -> Sentence:
        """The first of at most ten draws that the document does not have yet, else the last."""
        for _ in range(9):
            if (sentence := draw(self.rng, *arguments)).src not in self.src:
                return sentence
        return draw(self.rng, *arguments)


def draw_length(rng: Random, settings: ControlledSettings) -> int:
    """The length of a document in sentences: the shorter of two draws, so that short documents are more frequent."""
    return min(rng.randint(settings.min_sentences, settings.max_sentences) for _ in range(2))
