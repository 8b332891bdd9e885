"""The grammar that the generator needs (mostly German): articles, endings, pronouns, clause order.

Genders are "m", "f", "n"; cases are "nom" and "acc"; only the singular is declined.
"""

from dataclasses import dataclass

GENDERS = ("m", "f", "n")

DEFINITE = {
    "nom": {"m": "der", "f": "die", "n": "das"},
    "acc": {"m": "den", "f": "die", "n": "das"},
}
INDEFINITE = {
    "nom": {"m": "ein", "f": "eine", "n": "ein"},
    "acc": {"m": "einen", "f": "eine", "n": "ein"},
}
PRONOUN = {
    "nom": {"m": "er", "f": "sie", "n": "es"},
    "acc": {"m": "ihn", "f": "sie", "n": "es"},
}
RELATIVE = DEFINITE["nom"]
POSSESSIVE_ENDING = {
    "nom": {"m": "", "f": "e", "n": ""},
    "acc": {"m": "en", "f": "e", "n": ""},
}
POSSESSIVE_STEM = {"du": "dein", "Sie": "Ihr"}
ADJECTIVE_ENDING = {
    "definite": {"nom": {"m": "e", "f": "e", "n": "e"}, "acc": {"m": "en", "f": "e", "n": "e"}},
    "indefinite": {"nom": {"m": "er", "f": "e", "n": "es"}, "acc": {"m": "en", "f": "e", "n": "es"}},
}


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; `gender` is the German one."""

    english: str
    german: str
    gender: str


@dataclass(frozen=True)
class Phrase:
    """An expression with exactly one rendering."""

    english: str
    german: str


@dataclass(frozen=True)
class Predicate:
    """A predicate in the third person singular.

    Attributes:
        english: the verb and what follows it; `{it}` is the place of the object pronoun, if any.
        verb: the finite German verb.
        rest: what follows the verb in a German main clause, with `{it}` as above.
    """

    english: str
    verb: str
    rest: str

    def fill(self, english: str, german: str) -> "Predicate":
        """The predicate with its object filled in."""
        return Predicate(self.english.format(it=english), self.verb, self.rest.format(it=german))


@dataclass(frozen=True)
class Clause:
    """A subject and a predicate, which can form a main clause or a subordinate one."""

    subject: Phrase
    predicate: Predicate

    def english(self, front: str | None = None) -> str:
        """The English clause: front field, subject, predicate."""
        return join(front, self.subject.english, self.predicate.english)

    def main(self, front: str | None = None) -> str:
        """The German main clause: the finite verb is second, after the front field or the subject."""
        if front is None:
            return join(self.subject.german, self.predicate.verb, self.predicate.rest)
        return join(front, self.predicate.verb, self.subject.german, self.predicate.rest)

    def subordinate(self) -> str:
        """The German subordinate clause: the finite verb is last."""
        return join(self.subject.german, self.predicate.rest, self.predicate.verb)


def join(*parts: str | None) -> str:
    """The nonempty parts, separated by spaces."""
    return " ".join(part for part in parts if part)


def capitalize(text: str) -> str:
    """The text with its first letter in upper case and the rest unchanged."""
    return text[:1].upper() + text[1:]


def english_noun_phrase(noun: Noun, *, definite: bool, adjective: Phrase | None = None) -> str:
    """`the new cake`, `an omelette`."""
    words = join(adjective.english if adjective else None, noun.english)
    if definite:
        return f"the {words}"
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def german_noun_phrase(noun: Noun, case: str, *, definite: bool, adjective: Phrase | None = None) -> str:
    """`den neuen Kuchen`, `ein Omelett`."""
    article = (DEFINITE if definite else INDEFINITE)[case][noun.gender]
    if adjective is None:
        return f"{article} {noun.german}"
    ending = ADJECTIVE_ENDING["definite" if definite else "indefinite"][case][noun.gender]
    return f"{article} {adjective.german}{ending} {noun.german}"


def possessive(address: str, noun: Noun, case: str) -> str:
    """`deine Schwester`, `Ihren Bruder`; address is "du" or "Sie"."""
    return f"{POSSESSIVE_STEM[address]}{POSSESSIVE_ENDING[case][noun.gender]} {noun.german}"
