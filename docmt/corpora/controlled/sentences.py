"""The kinds of sentences in both languages, with all German variants from which the context chooses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from docmt.corpora.controlled import lexicon
from docmt.corpora.controlled.german import (
    GENDERS,
    PRONOUN,
    RELATIVE,
    Clause,
    Noun,
    Phrase,
    Predicate,
    capitalize,
    english_noun_phrase,
    german_noun_phrase,
    join,
    possessive,
)

ADDRESSES = ("du", "Sie")


@dataclass(frozen=True)
class Sentence:
    """A source sentence with its German renderings.

    Attributes:
        edus: the English text, one part per elementary discourse unit; joined by spaces, they are the sentence.
        variants: German renderings by what decides between them (a gender, an address, a sense, …); a sentence
            that does not depend on context has the single key "".
        relation, nuclearity: how its two EDUs relate ("NS": the first is the nucleus); None for one EDU.
    """

    edus: tuple[str, ...]
    variants: dict[str, str] = field(hash=False)
    relation: str | None = None
    nuclearity: str | None = None

    @property
    def src(self) -> str:
        """The English sentence."""
        return " ".join(self.edus)


def simple(english: str, german: str | dict[str, str], end: str = ".") -> Sentence:
    """A sentence of one EDU, with one rendering or several."""
    variants = german if isinstance(german, dict) else {"": german}
    return Sentence((capitalize(english) + end,), {key: capitalize(text) + end for key, text in variants.items()})


def _front(rng: Random) -> tuple[str | None, str | None]:
    front = rng.choice(lexicon.FRONTS) if rng.random() < 0.3 else None
    return (front.english, front.german) if front else (None, None)


def with_subordinate(rng: Random, clause: Clause, other: Clause, front: Phrase | None = None) -> Sentence:
    """A sentence of two EDUs: the main clause `clause`, and `other`, subordinate to it by a conjunction.

    The main clause comes first if it has a `front`, and otherwise in half of the draws.
    """
    conjunction, relation = rng.choice(lexicon.CONJUNCTIONS)
    english = join(conjunction.english, other.english())
    german = join(conjunction.german, other.subordinate())
    if front is not None or rng.random() < 0.5:
        first = front or Phrase("", "")
        edus = (capitalize(clause.english(first.english)), f"{english}.")
        text = f"{capitalize(clause.main(first.german or None))}, {german}."
        return Sentence(edus, {"": text}, relation, "NS")
    edus = (f"{capitalize(english)},", f"{clause.english()}.")
    return Sentence(edus, {"": capitalize(clause.main(f"{german},")) + "."}, relation, "SN")


def filler(rng: Random) -> Sentence:
    """A sentence that decides nothing and depends on nothing."""
    clause, other = rng.sample(lexicon.FILLERS, 2)
    if rng.random() < 0.3:
        return with_subordinate(rng, clause, other)
    english, german = _front(rng)
    return simple(clause.english(english), clause.main(german))


def introduction(
    rng: Random, nouns: Sequence[Noun], *, person: str, predicate: Predicate, plain: bool = False
) -> Sentence:
    """A sentence that mentions one or two nouns as the object of a verb that takes any noun.

    With `plain`, it has one EDU, so that an elliptical sentence can follow.
    """
    phrases, is_bare = [], True
    for noun in nouns:
        definite = rng.random() < 0.6
        adjective = rng.choice(lexicon.ADJECTIVES) if rng.random() < 0.4 else None
        is_bare = is_bare and adjective is None
        phrases.append(
            Phrase(
                english_noun_phrase(noun, definite=definite, adjective=adjective),
                german_noun_phrase(noun, "acc", definite=definite, adjective=adjective),
            )
        )
    english = " and ".join(phrase.english for phrase in phrases)
    german = " und ".join(phrase.german for phrase in phrases)
    who = Phrase(person, person)
    clause = Clause(who, Predicate(join(predicate.english, english), predicate.verb, join(predicate.rest, german)))
    shape = rng.random()
    if not plain and shape < 0.2:
        return with_subordinate(rng, clause, rng.choice(lexicon.FILLERS))
    if not plain and shape < 0.35 and is_bare and len(nouns) == 1:
        quality = rng.choice(lexicon.ADJECTIVES)
        edus = (capitalize(clause.english()) + ",", f"which is quite {quality.english}.")
        text = f"{capitalize(clause.main())}, {RELATIVE[nouns[0].gender]} recht {quality.german} ist."
        return Sentence(edus, {"": text}, "Elaboration", "NS")
    front_en, front_de = _front(rng)
    return simple(clause.english(front_en), clause.main(front_de))


def pronoun(rng: Random, class_name: str) -> Sentence:
    """A sentence with `it`; the variants are the genders."""
    group = lexicon.CLASSES[class_name]
    front_en, front_de = _front(rng)
    predicate = rng.choice(group.subjects + group.objects)
    person = rng.choice(lexicon.PERSONS)
    variants, source = {}, ""
    for gender in GENDERS:
        if predicate in group.subjects:
            clause = Clause(Phrase("it", PRONOUN["nom"][gender]), predicate)
        else:
            clause = Clause(Phrase(person, person), predicate.fill("it", PRONOUN["acc"][gender]))
        source = clause.english(front_en)
        variants[gender] = clause.main(front_de)
    return simple(source, variants)


def greeting(rng: Random, address: str) -> Sentence:
    """The sentence that sets the form of address ("du" or "Sie") of the document."""
    hello = rng.choice(lexicon.GREETINGS[address])
    title = rng.choice(lexicon.TITLES)
    name = rng.choice(lexicon.FIRST_NAMES if address == "du" else lexicon.SURNAMES)
    tail = rng.choice(lexicon.GREETING_TAILS)
    english, german = (name, name) if address == "du" else (f"{title.english} {name}", f"{title.german} {name}")
    return simple(f"{hello.english}, {english}, {tail.english}", f"{hello.german}, {german}, {tail.german}")


def deixis(rng: Random) -> Sentence:
    """A sentence with `you` or `your`; the variants are the forms of address."""
    kind = rng.randrange(5)
    if kind == 0:
        form = rng.choice(lexicon.QUESTIONS)
        return simple(form.english, {a: join(form.verbs[a], a, form.rest) for a in ADDRESSES}, "?")
    if kind == 1:
        form = rng.choice(lexicon.STATEMENTS)
        front_en, front_de = _front(rng)
        variants = {
            a: Clause(Phrase("you", a), Predicate(form.english, form.verbs[a], form.rest)).main(front_de)
            for a in ADDRESSES
        }
        return simple(join(front_en, "you", form.english), variants)
    if kind == 2:
        phrase, you = rng.choice(lexicon.YOU_OBJECT)
        return simple(phrase.english, {a: phrase.german.format(you=you[a]) for a in ADDRESSES})
    noun = rng.choice(lexicon.KIN)
    if kind == 3:
        frame = rng.choice(lexicon.KIN_FRAMES)
        variants = {a: frame.german.format(kin=possessive(a, noun, "acc")) for a in ADDRESSES}
        return simple(frame.english.format(kin=noun.english), variants)
    predicate = rng.choice(lexicon.KIN_PREDICATES)
    front_en, front_de = _front(rng)
    variants = {a: Clause(Phrase("", possessive(a, noun, "nom")), predicate).main(front_de) for a in ADDRESSES}
    return simple(join(front_en, f"your {noun.english}", predicate.english), variants)


def topic(rng: Random, word: str, sense: int) -> Sentence:
    """A sentence that decides the sense of an ambiguous word without using it."""
    phrase = rng.choice(lexicon.AMBIGUOUS[word][sense].topics)
    return simple(phrase.english, phrase.german)


def ambiguous(rng: Random, word: str) -> Sentence:
    """A neutral sentence with an ambiguous word; the variants are the senses "0" and "1"."""
    case, frame = rng.choice(lexicon.AMBIGUOUS_FRAMES)
    variants = {
        str(number): frame.german.format(np=german_noun_phrase(sense.noun, case, definite=True))
        for number, sense in enumerate(lexicon.AMBIGUOUS[word])
    }
    return simple(frame.english.format(np=f"the {word}"), variants)


def consistent(rng: Random, word: str) -> Sentence:
    """A sentence with a word that has two renderings; the variants are the renderings "0" and "1"."""
    case, frame = rng.choice(lexicon.SYNONYM_FRAMES)
    entry = lexicon.SYNONYMS[word]
    variants = {str(number): frame.german.format(np=entry.german(number, case)) for number in (0, 1)}
    return simple(frame.english.format(np=word), variants)


def activity(rng: Random, predicate: Predicate, *, person: str) -> Sentence:
    """A sentence with an intransitive verb and a place."""
    place = rng.choice(lexicon.PLACES)
    clause = Clause(
        Phrase(person, person), Predicate(join(predicate.english, place.english), predicate.verb, place.german)
    )
    front_en, front_de = _front(rng)
    return simple(clause.english(front_en), clause.main(front_de))


def ellipsis(rng: Random, *, person: str, verbs: tuple[Predicate, ...], gender: str | None) -> Sentence:
    """An elliptical sentence; the variants are the German verbs that it can repeat.

    `gender` is the gender of the object of the repeated verb, None for an intransitive verb.
    """
    frame = rng.choice(lexicon.ELLIPSIS_FRAMES)
    it = PRONOUN["acc"][gender] if gender else ""
    variants = {
        predicate.verb: " ".join(frame.german.format(who=person, verb=predicate.verb, it=it).split())
        for predicate in verbs
    }
    return simple(frame.english.format(who=person), variants)
