"""The document builder, with the phenomena in both kinds of documents: deixis, cohesion, ellipsis.

The corpora depend on the order in which builders draw random numbers. Another order gives other files.
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
"""Kind → the words with a context-dependent rendering, and the function that draws their sentences."""
MAX_WORDS = 2  # per kind and document
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
"""Sentence kind → phenomenon, for sentences with a context-dependent rendering."""


class Elided(NamedTuple):
    """A verb phrase that an elliptical sentence can repeat, with the gender of the object (None: no object)."""

    predicate: Predicate
    person: str
    gender: str | None


@dataclass(frozen=True)
class Placed:
    """A sentence in its document."""

    sentence: Sentence  # with all German renderings
    kind: str  # role in the document
    variant: str  # key of the required German rendering in `sentence.variants`
    antecedent: int | None  # index of the sentence that decides the rendering, if any
    decides: Any  # for later sentences: a word and its sense or rendering, or an `Elided`
    parent: int  # index of the parent sentence in the discourse tree, −1 for the first sentence
    relation: str  # relation to the parent
    nuclearity: str  # "NS": the parent is the nucleus, "SN": the parent is the satellite

    @property
    def tgt(self) -> str:
        """The required German rendering."""
        return self.sentence.variants[self.variant]

    @property
    def phenomenon(self) -> str | None:
        """`pronoun`, `deixis`, `cohesion` or `ellipsis`. None if the rendering does not depend on context."""
        return PHENOMENA.get(self.kind)


class Mention(NamedTuple):
    """The last deciding sentence, and its noun, sense, rendering or address."""

    position: int
    value: Any


class DocumentBuilder(ABC):
    """A document under construction.

    Attributes:
        rng: the only source of randomness.
        exchange: replacements for drawn nouns, verbs, addresses, senses and renderings: drawn value → replacement, or
            `(sentence index, drawn value)` → replacement. The random numbers stay the same, so two documents with the
            same seed differ only in the replaced values.
        reserved: noun classes, words and sentence kinds that random sentences must not use.
        greeting_at: position of a random greeting.
        placed: sentences so far.
        address: current form of address.
        decided: word kind (`ambiguous`, `consistent`) → word → last mention with sense or rendering.
        elided: verb phrase that the next sentence can repeat.
        moves: sentence kind → method that adds a random sentence.
    """

    relations: ClassVar[dict[str, tuple[str, str]]]
    """Sentence kind → relation and nuclearity of its attachment."""
    topic_reach: ClassVar[float] = math.inf
    """Maximum distance between a topic sentence and a use of its ambiguous word."""
    share_of_new_words: ClassVar[tuple[float, float]]
    """Interval of random numbers that choose a new word where both new and known words are possible."""

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
        """The required target sentences."""
        return tuple(placed.tgt for placed in self.placed)

    @abstractmethod
    def weights_of_kinds(self, allowed: frozenset[str] | None) -> dict[str, float]:
        """Return the weights of the possible (and `allowed`) sentence kinds."""

    @abstractmethod
    def attachment(self, kind: str, antecedent: int | None) -> tuple[int, str, str]:
        """Return parent, relation and nuclearity for the next sentence."""

    def add_random(self, n_sentences: int = 1, *, allowed: frozenset[str] | None = None) -> None:
        """Add random sentences, with the greeting at its position."""
        for _ in range(n_sentences):
            if self.address is None and len(self) >= self.greeting_at:
                self.add_greeting(self._exchanged(self.rng.choice(sentences.ADDRESSES)))
                continue
            weights = self.weights_of_kinds(allowed)
            self.moves[self.rng.choices(list(weights), weights=list(weights.values()))[0]]()

    # Chosen sentences

    def add(
        self, sentence: Sentence, kind: str, *, variant: str = "", antecedent: int | None = None, decides: Any = None
    ) -> None:
        """Append a sentence. The next sentence can only repeat the verb phrase of this one."""
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
        self.add(sentence, "deixis", variant=self.address.value, antecedent=self.address.position)

    def add_word(self, kind: str, word: str, choice: int = 0, sentence: Sentence | None = None) -> None:
        """Use a word in its decided sense or rendering. For a new word, decide for `choice`."""
        decided = self.decided[kind]
        _, draw = WORDS[kind]
        before = decided.get(word)
        if before is not None:
            choice = before.value
            self.add(sentence or self._fresh(draw, word), kind, variant=str(choice), antecedent=before.position)
        elif kind == "ambiguous":
            self.add(sentences.topic(self.rng, word, choice), "topic", decides=(word, choice))
        else:
            self.add(self._fresh(draw, word), "first rendering", variant=str(choice), decides=(word, choice))
        # The topic decides all uses of an ambiguous word. A rendering repeats the last one.
        if before is None or kind == "consistent":
            decided[word] = Mention(len(self) - 1, choice)

    def add_activity(self, predicate: Predicate, *, person: str) -> None:
        """Add a sentence with an intransitive verb."""
        sentence = sentences.activity(self.rng, predicate, person=person)
        self.add(sentence, "activity", decides=Elided(predicate, person, None))

    def add_ellipsis(self, sentence: Sentence | None = None) -> None:
        """Add a sentence that repeats the verb phrase of the previous sentence."""
        elided = self.elided
        assert elided is not None, "the sentence before has a verb phrase to repeat"
        if sentence is None:
            persons = [name for name in lexicon.PERSONS if name != elided.person]
            person = self.rng.choice(persons)
            verbs = lexicon.TRANSITIVE if elided.gender else lexicon.INTRANSITIVE
            sentence = sentences.ellipsis(self.rng, person=person, verbs=verbs, gender=elided.gender)
        self.add(sentence, "ellipsis", variant=elided.predicate.verb, antecedent=len(self) - 1)

    # Random sentences

    def _random_word(self, kind: str) -> None:
        """Decide the sense or rendering of a new word, or use a known word."""
        known_words = self.known_words(kind)
        new = self.new_words(kind)
        low, high = self.share_of_new_words
        # Without a choice, no random number is drawn.
        if len(known_words) == 0 or (new and low <= self.rng.random() < high):
            self.add_word(kind, *self._exchanged((self.rng.choice(new), self.rng.randrange(2))))
        else:
            self.add_word(kind, self.rng.choice(known_words))

    def _random_ellipsis(self) -> None:
        """Repeat the verb phrase of the previous sentence, or add one that the next sentence can repeat."""
        if self.elided:
            self.add_ellipsis()
        else:
            predicate = self._exchanged(self.rng.choice(lexicon.INTRANSITIVE))
            self.add_activity(predicate, person=self.rng.choice(lexicon.PERSONS))

    def known_words(self, kind: str) -> list[str]:
        """Return the decided words. The topic of ambiguous words must be recent enough."""
        words = []
        for word, mention in self.decided[kind].items():
            is_in_reach = kind != "ambiguous" or len(self) - mention.position <= self.topic_reach
            if is_in_reach and word not in self.reserved:
                words.append(word)
        return words

    def new_words(self, kind: str) -> list[str]:
        """Return the words that the document can still decide."""
        decided = self.decided[kind]
        if len(decided) >= MAX_WORDS:
            return []
        words, _ = WORDS[kind]
        return [word for word in words if word not in decided and word not in self.reserved]

    def _exchanged(self, value: Any) -> Any:
        return self.exchange.get((len(self), value), self.exchange.get(value, value))

    def _fresh(self, draw: Callable[..., Sentence], *arguments: Any) -> Sentence:
        """Draw up to ten times, until the sentence is new in the document."""
        sentence = draw(self.rng, *arguments)
        for _ in range(9):
            if sentence.src not in self.src:
                break
            sentence = draw(self.rng, *arguments)
        return sentence


def draw_length(rng: Random, settings: ControlledSettings) -> int:
    """Return a document length in sentences: the smaller of two draws, so that short documents are more frequent."""
    first = rng.randint(settings.min_sentences, settings.max_sentences)
    second = rng.randint(settings.min_sentences, settings.max_sentences)
    return min(first, second)
