"""Building a document sentence by sentence, keeping track of what later sentences depend on."""

from dataclasses import dataclass, field

from docmt.corpora.controlled import lexicon, sentences
from docmt.corpora.controlled.drafts import Draft, Elided, Mention
from docmt.corpora.controlled.german import GENDERS, Noun, Predicate
from docmt.corpora.controlled.sentences import Sentence
from docmt.corpora.controlled.settings import MAX_PRONOUN_DISTANCE, MoveWeights

MAX_TOPIC_DISTANCE = 5
MAX_WORDS = 2  # ambiguous words in a document, and words with two renderings
# How much likelier …
CONTINUATION = 8.0  # … a document continues what it has prepared than begins something new
EARLIER = 3.0  # … a pronoun refers to a noun of an earlier sentence than to those mentioned last
OPEN_IN_TREE = 20.0  # … a pronoun refers to what the discourse tree keeps open


@dataclass
class DocumentBuilder(Draft):
    """A document whose pronouns mean the noun that the predicate selects.

    Attributes:
        weights: relative frequency of each kind of sentence.
        reserved: noun classes and words that random sentences must not use (those of a suite's focus).
        has_deixis: whether random sentences may depend on the form of address.
        has_ellipsis: whether random sentences may be elliptical.
        paired_introductions: share of introductions with two nouns; the first has two unless this is 0.
    """

    weights: MoveWeights
    reserved: frozenset[str] = frozenset()
    has_deixis: bool = True
    has_ellipsis: bool = True
    paired_introductions: float = 0.6
    nouns: dict[str, Mention[Noun]] = field(default_factory=dict)
    frontier: list[int] = field(default_factory=list)

    # Adding given sentences

    def _add(
        self,
        sentence: Sentence,
        kind: str,
        *,
        relation: str,
        nuclearity: str = "NS",
        variant: str = "",
        phenomenon: str | None = None,
        antecedent: int | None = None,
    ) -> None:
        """Append a sentence and attach it to the right frontier of the tree.

        It is attached to its antecedent if that is still open, else to the sentence before.
        """
        index = len(self.placed)
        if not self.frontier:
            parent = -1
        elif antecedent is not None and antecedent in self.frontier and phenomenon != "deixis":
            parent = antecedent
            del self.frontier[self.frontier.index(parent) + 1 :]
        else:
            parent = self.frontier[-1]
            if antecedent is None and self.placed[parent].kind == "filler":
                # A sentence that only sets the scene is a satellite of the next one.
                relation, nuclearity = "Background", "SN"
                self.frontier.pop()
        self.frontier.append(index)
        self._place(
            sentence,
            kind,
            relation,
            variant=variant,
            phenomenon=phenomenon,
            antecedent=antecedent,
            parent=parent,
            nuclearity=nuclearity,
        )

    def add_filler(self) -> None:
        """Add a sentence on which nothing depends."""
        self._add(self._fresh(sentences.filler), "filler", relation="Background")

    def add_introduction(
        self,
        nouns: dict[str, Noun],
        *,
        person: str | None = None,
        predicate: Predicate | None = None,
        plain: bool = False,
    ) -> None:
        """Mention one or two nouns (by class), to which later pronouns can refer."""
        person = person or self.rng.choice(lexicon.PERSONS)
        predicate = predicate or self.rng.choice(lexicon.TRANSITIVE)
        sentence = sentences.introduction(
            self.rng, tuple(nouns.values()), person=person, predicate=predicate, plain=plain
        )
        self._add(sentence, "introduction", relation="Joint", nuclearity="NN")
        for class_name, noun in nouns.items():
            self.nouns[class_name] = Mention(len(self) - 1, noun)
        if len(sentence.edus) == len(nouns) == 1:
            (noun,) = nouns.values()
            self.elided = Elided(predicate, person, noun.gender)

    def add_activity(self, predicate: Predicate, *, person: str) -> None:
        """Add a sentence with an intransitive verb."""
        self._add(sentences.activity(self.rng, predicate, person=person), "activity", relation="Joint", nuclearity="NN")
        self.elided = Elided(predicate, person, None)

    def add_pronoun(self, class_name: str, sentence: Sentence | None = None) -> None:
        """Add a sentence whose pronoun refers to the last mentioned noun of a class."""
        mention = self.nouns[class_name]
        self._add(
            sentence or self._fresh(sentences.pronoun, class_name),
            "pronoun",
            relation="Elaboration",
            variant=mention.value.gender,
            phenomenon="pronoun",
            antecedent=mention.index,
        )

    def add_greeting(self, address: str) -> None:
        """Set the form of address."""
        self._add(sentences.greeting(self.rng, address), "greeting", relation="Joint", nuclearity="NN")
        self.address = Mention(len(self) - 1, address)

    def add_deixis(self, sentence: Sentence | None = None) -> None:
        """Add a sentence with `you` or `your`."""
        assert self.address is not None, "a greeting comes first"
        self._add(
            sentence or self._fresh(sentences.deixis),
            "deixis",
            relation="Topic-Comment",
            variant=self.address.value,
            phenomenon="deixis",
            antecedent=self.address.index,
        )

    def add_topic(self, word: str, sense: int) -> None:
        """Decide the sense of an ambiguous word."""
        self._add(sentences.topic(self.rng, word, sense), "topic", relation="Background")
        self.senses[word] = Mention(len(self) - 1, sense)

    def add_ambiguous(self, word: str, sentence: Sentence | None = None) -> None:
        """Use an ambiguous word."""
        mention = self.senses[word]
        self._add(
            sentence or self._fresh(sentences.ambiguous, word),
            "ambiguous",
            relation="Elaboration",
            variant=str(mention.value),
            phenomenon="cohesion",
            antecedent=mention.index,
        )

    def add_consistent(self, word: str, *, rendering: int = 0, sentence: Sentence | None = None) -> None:
        """Use a word with two renderings: the first use chooses `rendering`, later ones repeat it."""
        sentence = sentence or self._fresh(sentences.consistent, word)
        mention = self.renderings.get(word)
        if mention is None:
            self._add(sentence, "first rendering", relation="Joint", nuclearity="NN", variant=str(rendering))
            self.renderings[word] = Mention(len(self) - 1, rendering)
            return
        self._add(
            sentence,
            "consistent",
            relation="Elaboration",
            variant=str(mention.value),
            phenomenon="cohesion",
            antecedent=mention.index,
        )
        self.renderings[word] = Mention(len(self) - 1, mention.value)

    def add_ellipsis(self, sentence: Sentence | None = None) -> None:
        """Add a sentence that repeats the verb phrase of the sentence before."""
        elided = self.elided
        assert elided is not None, "the sentence before has a verb phrase to repeat"
        if sentence is None:
            person = self.rng.choice([name for name in lexicon.PERSONS if name != elided.person])
            sentence = sentences.ellipsis(self.rng, person=person, verbs=(elided.predicate,), gender=elided.gender)
        self._add(
            sentence,
            "ellipsis",
            relation="Comparison",
            nuclearity="NN",
            variant=elided.predicate.verb,
            phenomenon="ellipsis",
            antecedent=len(self) - 1,
        )

    # Adding random sentences

    def add_random(self, *, allowed: frozenset[str] | None = None) -> None:
        """Add a sentence of a random kind that is possible now (and `allowed`)."""
        options = {
            kind: weight
            for kind, weight in self._options(n_choices=2 if allowed is None else 1).items()
            if weight > 0 and (allowed is None or kind in allowed)
        }
        if not options:
            options = {"filler": 1.0}
        kind = self.rng.choices(list(options), weights=list(options.values()))[0]
        moves = {
            "introduction": self._random_introduction,
            "pronoun": self._random_pronoun,
            "deixis": self.add_deixis,
            "ambiguous": self._random_ambiguous,
            "consistent": self._random_consistent,
            "ellipsis": self._random_ellipsis,
            "filler": self.add_filler,
        }
        moves[kind]()

    def _options(self, *, n_choices: int) -> dict[str, float]:
        """Weights of the kinds that are possible; a pronoun needs `n_choices` nouns to which it could refer."""
        weights = self.weights
        options = {"introduction": weights.introduction, "filler": weights.filler}
        if len(self.pronoun_classes()) >= n_choices:
            options["pronoun"] = weights.pronoun
        if self.has_deixis and self.address:
            options["deixis"] = weights.deixis
        pending, used = self._open_words(), self._used_words()
        if pending or self._new_words(lexicon.AMBIGUOUS, self.senses):
            options["ambiguous"] = weights.ambiguous * (CONTINUATION if pending else 1)
        if used or self._new_words(lexicon.SYNONYMS, self.renderings):
            options["consistent"] = weights.consistent * (CONTINUATION if used else 1)
        if self.has_ellipsis:
            options["ellipsis"] = weights.ellipsis * (CONTINUATION if self.elided else 1)
        return options

    def pronoun_classes(self) -> dict[str, float]:
        """Weights of the classes to which a pronoun can refer now.

        They favor what the discourse tree keeps open and what was mentioned earlier: the noun mentioned last must not
        be a good guess.
        """
        index = len(self)
        last = max((mention.index for mention in self.nouns.values()), default=-1)
        found = {}
        for name, mention in self.nouns.items():
            distance = index - mention.index
            if distance <= MAX_PRONOUN_DISTANCE and name not in self.reserved:
                weight = OPEN_IN_TREE if mention.index in self.frontier else 1.0
                found[name] = weight * distance * (EARLIER if mention.index < last else 1.0)
        return found

    def _new_words(self, words: dict, known: dict[str, Mention[int]]) -> list[str]:
        if len(known) >= MAX_WORDS:
            return []
        return [word for word in words if word not in known and word not in self.reserved]

    def _open_words(self) -> list[str]:
        """Ambiguous words whose topic is recent enough."""
        return [
            word
            for word, mention in self.senses.items()
            if len(self) - mention.index <= MAX_TOPIC_DISTANCE and word not in self.reserved
        ]

    def _used_words(self) -> list[str]:
        return [word for word in self.renderings if word not in self.reserved]

    def _random_introduction(self) -> None:
        # At most one noun per class: the class alone identifies the antecedent.
        free = [name for name in lexicon.CLASSES if name not in self.reserved]
        fresh = [name for name in free if name not in self.nouns]
        is_first_of_pairs = not self.nouns and self.paired_introductions > 0
        n_nouns = 2 if is_first_of_pairs or self.rng.random() < self.paired_introductions else 1
        names = self.rng.sample(fresh if len(fresh) >= n_nouns else free, n_nouns)
        genders = self.rng.sample(GENDERS, n_nouns)
        self.add_introduction({name: self._noun(name, gender) for name, gender in zip(names, genders, strict=True)})

    def _noun(self, class_name: str, gender: str) -> Noun:
        """The document's noun of a class, or a new one of the given gender."""
        mention = self.nouns.get(class_name)
        return mention.value if mention else self.rng.choice(lexicon.CLASSES[class_name].nouns[gender])

    def _random_pronoun(self) -> None:
        classes = self.pronoun_classes()
        self.add_pronoun(self.rng.choices(list(classes), weights=list(classes.values()))[0])

    def _random_ambiguous(self) -> None:
        pending = self._open_words()
        new = self._new_words(lexicon.AMBIGUOUS, self.senses)
        if pending and (not new or self.rng.random() < 0.9):
            self.add_ambiguous(self.rng.choice(pending))
        else:
            self.add_topic(self.rng.choice(new), self.rng.randrange(2))

    def _random_consistent(self) -> None:
        used = self._used_words()
        new = self._new_words(lexicon.SYNONYMS, self.renderings)
        if used and (not new or self.rng.random() < 0.9):
            self.add_consistent(self.rng.choice(used))
        else:
            self.add_consistent(self.rng.choice(new), rendering=self.rng.randrange(2))

    def _random_ellipsis(self) -> None:
        if self.elided:
            self.add_ellipsis()
        elif self.rng.random() < 0.5:
            self.add_activity(self.rng.choice(lexicon.INTRANSITIVE), person=self.rng.choice(lexicon.PERSONS))
        else:
            self._random_introduction()
