"""Sentence kinds in both languages, with all German variants between which the context decides.

The corpora depend on the order in which these functions draw random numbers. Another order gives other files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from docmt.controlled import lexicon
from docmt.controlled.german import (
    DEFINITE,
    GENDERS,
    PRONOUN,
    Clause,
    Noun,
    Phrase,
    Predicate,
    capitalize,
    join,
    noun_phrase,
    possessive,
)

ADDRESSES = ("du", "Sie")


@dataclass(frozen=True)
class Sentence:
    """A source sentence with its German renderings."""

    edus: tuple[str, ...]  # English text of the EDUs, which are joined by spaces
    # Gender, address, sense, … → German rendering. A sentence that does not depend on context has the single key "".
    variants: dict[str, str] = field(hash=False)
    relation: str | None = None  # between two EDUs, None for a single EDU
    nuclearity: str | None = None  # "NS": the first EDU is the nucleus

    @property
    def src(self) -> str:
        return " ".join(self.edus)


def simple(text: Phrase | Mapping[str, Phrase], end: str = ".") -> Sentence:
    """Return a sentence with one EDU, and one rendering or several variants with the same English text."""
    variants = {"": text} if isinstance(text, Phrase) else text
    (english,) = {phrase.english for phrase in variants.values()}
    german = {key: capitalize(phrase.german) + end for key, phrase in variants.items()}
    return Sentence((capitalize(english) + end,), german)


def with_subordinate(rng: Random, clause: Clause, other: Clause, front: Phrase | None = None) -> Sentence:
    """Return a sentence with two EDUs: the main clause `clause` and the subordinate clause `other`.

    The main clause comes first if there is a `front`, otherwise in half of the draws.
    """
    conjunction, relation = rng.choice(lexicon.CONJUNCTIONS)
    english = join(conjunction.english, other.main().english)
    german = join(conjunction.german, other.subordinate())
    if front is not None or rng.random() < 0.5:
        main = clause.main(front)
        edus = (capitalize(main.english), f"{english}.")
        return Sentence(edus, {"": f"{capitalize(main.german)}, {german}."}, relation, "NS")
    edus = (f"{capitalize(english)},", f"{clause.main().english}.")
    # The subordinate clause is the front field, so the finite verb of the main clause comes next.
    main = clause.main(Phrase(f"{english},", f"{german},"))
    return Sentence(edus, {"": f"{capitalize(main.german)}."}, relation, "SN")


def filler(rng: Random) -> Sentence:
    """Draw a sentence outside all phenomena."""
    clause, other = rng.sample(lexicon.FILLERS, 2)
    if rng.random() < 0.3:
        return with_subordinate(rng, clause, other)
    return simple(clause.main(_front(rng)))


def introduction(
    rng: Random, nouns: Sequence[Noun], *, person: str, predicate: Predicate, plain: bool = False
) -> Sentence:
    """Draw a sentence with one or two nouns as the object of an unspecific verb.

    With `plain`, it has one EDU, so that an elliptical sentence can follow.
    """
    english = []
    german = []
    for noun in nouns:
        phrase = _object(rng, noun, 0.4)
        english.append(phrase.english)
        german.append(phrase.german)
    objects = Phrase(" and ".join(english), " und ".join(german))
    clause = Clause(Phrase(person, person), predicate.followed_by(objects))
    shape = rng.random()
    if not plain and shape < 0.2:
        return with_subordinate(rng, clause, rng.choice(lexicon.FILLERS))
    has_adjective = objects.english.count(" ") > 1
    if not plain and shape < 0.35 and len(nouns) == 1 and not has_adjective:
        quality = rng.choice(lexicon.ADJECTIVES)
        main = clause.main()
        edus = (f"{capitalize(main.english)},", f"which is quite {quality.english}.")
        # The German relative pronoun has the form of the definite article.
        text = f"{capitalize(main.german)}, {DEFINITE['nom'][nouns[0].gender]} recht {quality.german} ist."
        return Sentence(edus, {"": text}, "Elaboration", "NS")
    return simple(clause.main(_front(rng)))


def opener(rng: Random, noun: Noun, *, marker: Phrase, person: str, predicate: Predicate) -> Sentence:
    """Draw a sentence that names the topic of a segment, sometimes with a subordinate clause as second EDU."""
    clause = Clause(Phrase(person, person), predicate.followed_by(_object(rng, noun, 0.3)))
    if rng.random() < 0.2:
        return with_subordinate(rng, clause, rng.choice(lexicon.FILLERS), marker)
    return simple(clause.main(marker))


def pronoun(rng: Random, class_name: str) -> Sentence:
    """Draw a sentence with `it` and a predicate that selects a noun class. The variants are the genders."""
    nouns = lexicon.CLASSES[class_name]
    return _about_it(rng, nouns.subjects, nouns.objects, _front(rng))


def continuation(rng: Random, marker: Phrase | None) -> Sentence:
    """Draw a sentence with `it` and an unspecific predicate. The variants are the genders."""
    return _about_it(rng, lexicon.ANY_SUBJECT, lexicon.ANY_OBJECT, marker)


def _about_it(
    rng: Random, subjects: tuple[Predicate, ...], objects: tuple[Predicate, ...], front: Phrase | None
) -> Sentence:
    predicate = rng.choice(subjects + objects)
    person = rng.choice(lexicon.PERSONS)
    variants = {}
    for gender in GENDERS:
        if predicate in subjects:
            clause = Clause(Phrase("it", PRONOUN["nom"][gender]), predicate)
        else:
            english = predicate.english.format(it="it")
            rest = predicate.rest.format(it=PRONOUN["acc"][gender])
            clause = Clause(Phrase(person, person), Predicate(english, predicate.verb, rest))
        variants[gender] = clause.main(front)
    return simple(variants)


def greeting(rng: Random, address: str) -> Sentence:
    """Draw a greeting. It decides the form of address ("du" or "Sie")."""
    hello = rng.choice(lexicon.GREETINGS[address])
    title = rng.choice(lexicon.TITLES)
    if address == "du":
        name = rng.choice(lexicon.FIRST_NAMES)
        person = Phrase(name, name)
    else:
        name = rng.choice(lexicon.SURNAMES)
        person = Phrase(f"{title.english} {name}", f"{title.german} {name}")
    tail = rng.choice(lexicon.GREETING_TAILS)
    english = f"{hello.english}, {person.english}, {tail.english}"
    return simple(Phrase(english, f"{hello.german}, {person.german}, {tail.german}"))


def deixis(rng: Random) -> Sentence:
    """Draw a sentence with `you` or `your`. The variants are the forms of address."""
    kind = rng.randrange(5)
    variants: dict[str, Phrase] = {}
    if kind == 0:
        form = rng.choice(lexicon.QUESTIONS)
        for address in ADDRESSES:
            variants[address] = Phrase(form.english, join(form.verbs[address], address, form.rest))
        return simple(variants, "?")
    if kind == 1:
        form = rng.choice(lexicon.STATEMENTS)
        front = _front(rng)
        for address in ADDRESSES:
            predicate = Predicate(form.english, form.verbs[address], form.rest)
            variants[address] = Clause(Phrase("you", address), predicate).main(front)
        return simple(variants)
    if kind == 2:
        phrase, you = rng.choice(lexicon.YOU_OBJECT)
        for address in ADDRESSES:
            variants[address] = Phrase(phrase.english, phrase.german.format(you=you[address]))
        return simple(variants)
    noun = rng.choice(lexicon.KIN)
    if kind == 3:
        frame = rng.choice(lexicon.KIN_FRAMES)
        english = frame.english.format(kin=noun.english)
        for address in ADDRESSES:
            variants[address] = Phrase(english, frame.german.format(kin=possessive(address, noun, "acc")))
        return simple(variants)
    predicate = rng.choice(lexicon.KIN_PREDICATES)
    front = _front(rng)
    for address in ADDRESSES:
        kin = Phrase(f"your {noun.english}", possessive(address, noun, "nom"))
        variants[address] = Clause(kin, predicate).main(front)
    return simple(variants)


def topic(rng: Random, word: str, sense: int) -> Sentence:
    """Draw a sentence that decides the sense of an ambiguous word without using the word."""
    return simple(rng.choice(lexicon.AMBIGUOUS[word][sense].topics))


def ambiguous(rng: Random, word: str) -> Sentence:
    """Draw a neutral sentence with an ambiguous word. The variants are the senses "0" and "1"."""
    case, frame = rng.choice(lexicon.AMBIGUOUS_FRAMES)
    senses = [noun_phrase(sense.noun, case, definite=True) for sense in lexicon.AMBIGUOUS[word]]
    return _in_frame(frame, senses)


def consistent(rng: Random, word: str) -> Sentence:
    """Draw a sentence with a word that has two renderings. The variants are the renderings "0" and "1"."""
    case, frame = rng.choice(lexicon.SYNONYM_FRAMES)
    article = DEFINITE[case]["m"] if word.startswith("the ") else ""  # names have none
    phrases = []
    for rendering in lexicon.SYNONYMS[word]:
        phrases.append(Phrase(word, join(article, rendering)))
    return _in_frame(frame, phrases)


def activity(rng: Random, predicate: Predicate, *, person: str) -> Sentence:
    """Draw a sentence with an intransitive verb and a place."""
    clause = Clause(Phrase(person, person), predicate.followed_by(rng.choice(lexicon.PLACES)))
    return simple(clause.main(_front(rng)))


def ellipsis(rng: Random, *, person: str, verbs: tuple[Predicate, ...], gender: str | None) -> Sentence:
    """Draw an elliptical sentence. The variants are the German verbs that it can repeat.

    `gender` is the gender of the verb's object, None for intransitive verbs.
    """
    frame = rng.choice(lexicon.ELLIPSIS_FRAMES)
    it = PRONOUN["acc"][gender] if gender else ""
    english = frame.english.format(who=person)
    variants = {}
    for verb in verbs:
        words = frame.german.format(who=person, verb=verb.verb, it=it).split()
        variants[verb.verb] = Phrase(english, " ".join(words))
    return simple(variants)


def _front(rng: Random) -> Phrase | None:
    """Draw an adverbial, or None."""
    if rng.random() < 0.3:
        return rng.choice(lexicon.FRONTS)
    return None


def _object(rng: Random, noun: Noun, adjectives: float) -> Phrase:
    """Draw a noun phrase in the accusative. `adjectives` is the probability of an adjective."""
    definite = rng.random() < 0.6
    adjective = None
    if rng.random() < adjectives:
        adjective = rng.choice(lexicon.ADJECTIVES)
    return noun_phrase(noun, "acc", definite=definite, adjective=adjective)


def _in_frame(frame: Phrase, renderings: Sequence[Phrase]) -> Sentence:
    variants = {}
    for number, phrase in enumerate(renderings):
        english = frame.english.format(np=phrase.english)
        variants[str(number)] = Phrase(english, frame.german.format(np=phrase.german))
    return simple(variants)
