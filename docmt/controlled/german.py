"""The grammar that the generator needs, mostly German: articles, endings, pronouns, word order.

Genders are "m", "f", "n"; cases are "nom" and "acc"; only the singular is declined.
"""

from typing import NamedTuple

GENDERS = ("m", "f", "n")

DEFINITE = {"nom": {"m": "der", "f": "die", "n": "das"}, "acc": {"m": "den", "f": "die", "n": "das"}}
PRONOUN = {"nom": {"m": "er", "f": "sie", "n": "es"}, "acc": {"m": "ihn", "f": "sie", "n": "es"}}
# ein, dein, Ihr
POSSESSIVE_ENDING = {"nom": {"m": "", "f": "e", "n": ""}, "acc": {"m": "en", "f": "e", "n": ""}}
POSSESSIVE_STEM = {"du": "dein", "Sie": "Ihr"}
ADJECTIVE_ENDING = {
    "definite": {"nom": {"m": "e", "f": "e", "n": "e"}, "acc": {"m": "en", "f": "e", "n": "e"}},
    "indefinite": {"nom": {"m": "er", "f": "e", "n": "es"}, "acc": {"m": "en", "f": "e", "n": "es"}},
}


class Noun(NamedTuple):
    """A noun in both languages; `gender` is the German one."""

    english: str
    german: str
    gender: str


class Phrase(NamedTuple):
    """An English expression and its German rendering."""

    english: str
    german: str


class Predicate(NamedTuple):
    """A predicate in the third person singular."""

    english: str  # the verb and what follows it; `{it}` marks the place of the object pronoun, if any
    verb: str  # the finite German verb
    rest: str  # what follows the verb in a German main clause, with `{it}` as above

    def followed_by(self, phrase: Phrase) -> "Predicate":
        """The predicate with an object or a place at its end."""
        return Predicate(join(self.english, phrase.english), self.verb, join(self.rest, phrase.german))


class Clause(NamedTuple):
    """A subject and a predicate, which can form a main clause or a subordinate one."""

    subject: Phrase
    predicate: Predicate

    def main(self, front: Phrase | None = None) -> Phrase:
        """The main clause, with an adverbial in front if there is one."""
        subject, predicate = self
        before = front or Phrase("", "")
        english = join(before.english, subject.english, predicate.english)
        # The finite German verb is second, whatever is first.
        first, third = (before.german, subject.german) if front else (subject.german, "")
        return Phrase(english, join(first, predicate.verb, third, predicate.rest))

    def subordinate(self) -> str:
        """The German subordinate clause: the finite verb is last."""
        return join(self.subject.german, self.predicate.rest, self.predicate.verb)


def join(*parts: str) -> str:
    """The nonempty parts, separated by spaces."""
    return " ".join(part for part in parts if part)


def capitalize(text: str) -> str:
    """The text with its first letter in upper case and the rest unchanged."""
    return text[:1].upper() + text[1:]


def noun_phrase(noun: Noun, case: str, *, definite: bool, adjective: Phrase | None = None) -> Phrase:
    """`the new cake`, `den neuen Kuchen`; `an omelette`, `ein Omelett`."""
    words = join(adjective.english if adjective else "", noun.english)
    article = "the" if definite else "an" if words[0] in "aeiou" else "a"
    german = DEFINITE[case][noun.gender] if definite else f"ein{POSSESSIVE_ENDING[case][noun.gender]}"
    ending = ADJECTIVE_ENDING["definite" if definite else "indefinite"][case][noun.gender]
    return Phrase(f"{article} {words}", join(german, f"{adjective.german}{ending}" if adjective else "", noun.german))


def possessive(address: str, noun: Noun, case: str) -> str:
    """`deine Schwester`, `Ihren Bruder`; address is "du" or "Sie"."""
    return f"{POSSESSIVE_STEM[address]}{POSSESSIVE_ENDING[case][noun.gender]} {noun.german}"
