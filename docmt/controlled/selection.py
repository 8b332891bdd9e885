"""Documents in which the predicate of a pronoun selects the antecedent, so that no tree is needed."""

import math
from collections import Counter
from random import Random

from typing_extensions import override

from docmt.controlled import lexicon, sentences
from docmt.controlled.building import LATEST_GREETING, WORDS, DocumentBuilder, Elided, Mention, draw_length
from docmt.controlled.german import GENDERS, Noun, Predicate
from docmt.controlled.sentences import Sentence
from docmt.controlled.settings import MAX_PRONOUN_DISTANCE, SelectionSettings

CONTINUATION = 8.0  # factor for the weight of words and ellipses that the document has prepared
EARLIER = 3.0  # factor for the weight of nouns before the last sentence with a noun, as antecedents
OPEN_IN_TREE = 20.0  # factor for the weight of nouns that are open in the discourse tree, as antecedents


def build_document(rng: Random, settings: SelectionSettings) -> "SelectionBuilder":
    """Build a document with a greeting near its start and the required numbers of pronouns and deictic sentences."""
    n_sentences = draw_length(rng, settings)
    builder = SelectionBuilder(rng, settings)
    builder.greeting_at = rng.randint(0, min(LATEST_GREETING, n_sentences - settings.min_length()))
    while len(builder) < n_sentences:
        builder.add_random(allowed=builder.still_needed(n_sentences))
    return builder


class SelectionBuilder(DocumentBuilder):
    """A document whose pronouns refer to the last noun in the class that their predicate selects.

    Attributes:
        nouns: noun class → last mention.
        frontier: sentences on the right frontier of the discourse tree, in order.
    """

    relations = {
        **dict.fromkeys(("introduction", "activity", "greeting", "first rendering"), ("Joint", "NN")),
        **dict.fromkeys(("pronoun", "ambiguous", "consistent"), ("Elaboration", "NS")),
        **dict.fromkeys(("filler", "topic"), ("Background", "NS")),
        "deixis": ("Topic-Comment", "NS"),
        "ellipsis": ("Comparison", "NN"),
    }
    topic_reach = 5
    share_of_new_words = (0.9, 1.0)

    def __init__(self, rng: Random, settings: SelectionSettings, *, reserved: frozenset[str] = frozenset()) -> None:
        super().__init__(rng, reserved=reserved)
        self.settings = settings
        self.nouns: dict[str, Mention] = {}
        self.frontier: list[int] = []
        self.moves |= {
            "introduction": self._random_introduction,
            "pronoun": self.add_pronoun,
            "filler": lambda: self.add(self._fresh(sentences.filler), "filler"),
        }

    def still_needed(self, n_sentences: int) -> frozenset[str] | None:
        """Return the allowed kinds for the next sentence (None: all), so that the document has all required kinds."""
        kinds = Counter(placed.kind for placed in self.placed)
        n_pronouns = max(0, self.settings.min_pronouns - kinds["pronoun"])
        n_deictic = max(0, self.settings.min_deictic - kinds["deixis"])
        n_free = n_sentences - len(self) - (self.address is None)
        reach = 0
        if self.nouns:
            last = max(noun.position for noun in self.nouns.values())
            reach = last + MAX_PRONOUN_DISTANCE + 1 - len(self)
        n_introductions = max(0, math.ceil((n_pronouns - max(0, reach)) / MAX_PRONOUN_DISTANCE))
        # Keep one sentence in reserve, because all other sentences move nouns out of reach.
        if n_pronouns + n_deictic == 0 or n_free > n_pronouns + n_deictic + n_introductions + 1:
            return None
        if n_pronouns > 0 and reach < 1:
            return frozenset({"introduction"})
        # No deixis if all sentences within reach are needed for pronouns.
        has_deixis = n_deictic > 0 and not 0 < reach <= n_pronouns
        return frozenset(["pronoun"] * (n_pronouns > 0) + ["deixis"] * has_deixis)

    @override
    def attachment(self, kind: str, antecedent: int | None) -> tuple[int, str, str]:
        relation, nuclearity = self.relations[kind]
        index = len(self)
        if not self.frontier:
            parent = -1
        # Deixis is not attached to the greeting, which relates to no particular sentence.
        elif antecedent is not None and antecedent in self.frontier and kind != "deixis":
            parent = antecedent
            del self.frontier[self.frontier.index(parent) + 1 :]
        else:
            parent = self.frontier[-1]
            if antecedent is None and self.placed[parent].kind == "filler":
                # A sentence that only sets the scene is a satellite of the next one.
                relation = "Background"
                nuclearity = "SN"
                self.frontier.pop()
        self.frontier.append(index)
        return parent, relation, nuclearity

    @override
    def weights_of_kinds(self, allowed: frozenset[str] | None) -> dict[str, float]:
        weights = self.settings.weights
        weight_by_kind = {"introduction": weights.introduction, "filler": weights.filler}
        # With a single noun, guessing would be right.
        min_classes = 2 if allowed is None else 1
        if len(self.pronoun_classes()) >= min_classes:
            weight_by_kind["pronoun"] = weights.pronoun
        if self.address:
            weight_by_kind["deixis"] = weights.deixis
        for kind in WORDS:
            known_words = self.known_words(kind)
            if known_words or self.new_words(kind):
                weight_by_kind[kind] = getattr(weights, kind) * (CONTINUATION if known_words else 1)
        weight_by_kind["ellipsis"] = weights.ellipsis * (CONTINUATION if self.elided else 1)
        possible = {}
        for kind, weight in weight_by_kind.items():
            is_allowed = allowed is None or kind in allowed
            if weight > 0 and is_allowed and kind not in self.reserved:
                possible[kind] = weight
        return possible or {"filler": 1.0}

    def pronoun_classes(self) -> dict[str, float]:
        """Return the weights of the noun classes to which a pronoun can refer.

        Nouns that are open in the discourse tree and nouns mentioned earlier have larger weights, so that the last noun
        is not a good guess.
        """
        last = max((noun.position for noun in self.nouns.values()), default=-1)
        classes = {}
        for name, noun in self.nouns.items():
            distance = len(self) - noun.position
            if distance <= MAX_PRONOUN_DISTANCE and name not in self.reserved:
                weight = float(distance)
                if noun.position in self.frontier:
                    weight *= OPEN_IN_TREE
                if noun.position < last:
                    weight *= EARLIER
                classes[name] = weight
        return classes

    def add_introduction(
        self,
        nouns: dict[str, Noun],
        *,
        person: str | None = None,
        predicate: Predicate | None = None,
        plain: bool = False,
    ) -> None:
        """Mention one or two nouns (by class) as possible antecedents."""
        person = person or self.rng.choice(lexicon.PERSONS)
        predicate = predicate or self.rng.choice(lexicon.TRANSITIVE)
        values = tuple(nouns.values())
        sentence = sentences.introduction(self.rng, values, person=person, predicate=predicate, plain=plain)
        decides = None
        if len(sentence.edus) == len(values) == 1:
            decides = Elided(predicate, person, values[0].gender)
        self.add(sentence, "introduction", decides=decides)
        for name, noun in nouns.items():
            self.nouns[name] = Mention(len(self) - 1, noun)

    def add_pronoun(self, class_name: str | None = None, sentence: Sentence | None = None) -> None:
        """Add a sentence whose pronoun refers to the last noun in a class (default: a random class)."""
        if class_name is None:
            classes = self.pronoun_classes()
            class_name = self.rng.choices(list(classes), weights=list(classes.values()))[0]
        noun = self.nouns[class_name]
        sentence = sentence or self._fresh(sentences.pronoun, class_name)
        self.add(sentence, "pronoun", variant=noun.value.gender, antecedent=noun.position)

    def _random_introduction(self) -> None:
        # At most one noun per class, so that the class identifies the antecedent.
        classes = [name for name in lexicon.CLASSES if name not in self.reserved]
        new_classes = [name for name in classes if name not in self.nouns]
        share = self.settings.paired_introductions
        is_first_of_pairs = not self.nouns and share > 0
        n_nouns = 1
        if is_first_of_pairs or self.rng.random() < share:
            n_nouns = 2
        if len(new_classes) >= n_nouns:
            classes = new_classes
        names = self.rng.sample(classes, n_nouns)
        genders = self.rng.sample(GENDERS, n_nouns)
        nouns = {}
        for name, gender in zip(names, genders, strict=True):
            if name in self.nouns:
                nouns[name] = self.nouns[name].value
            else:
                nouns[name] = self.rng.choice(lexicon.CLASSES[name].nouns[gender])
        self.add_introduction(nouns)

    @override
    def _random_ellipsis(self) -> None:
        if self.elided or self.rng.random() < 0.5:
            super()._random_ellipsis()
        else:
            self._random_introduction()
