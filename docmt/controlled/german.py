"""Grammar for the generator, mostly German: articles, endings, pronouns, word order.

Genders are "m", "f", "n" and cases "nom", "acc". Only the singular is declined.
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
    """A noun in both languages with its German gender."""

    english: str
    german: str
    gender: str


class Phrase(NamedTuple):
    """An English expression and its German rendering."""

    english: str
    german: str


class Predicate(NamedTuple):
    """A predicate in the third person singular."""

    english: str  # the verb and its complements, with `{it}` for an object pronoun
    verb: str  # the finite German verb
    rest: str  # the German complements, with `{it}` as above

    def followed_by(self, phrase: Phrase) -> "Predicate":
        """Return the predicate with an object or a place at the end."""
        return Predicate(join(self.english, phrase.english), self.verb, join(self.rest, phrase.german))


class Clause(NamedTuple):
    """A subject and a predicate, for a main or a subordinate clause."""

    subject: Phrase
    predicate: Predicate

    def main(self, front: Phrase | None = None) -> Phrase:
        """Return the main clause, with an optional adverbial in front."""
        subject, predicate = self
        # The finite German verb is in second position.
        if front is None:
            english = join(subject.english, predicate.english)
            return Phrase(english, join(subject.german, predicate.verb, predicate.rest))
        english = join(front.english, subject.english, predicate.english)
        return Phrase(english, join(front.german, predicate.verb, subject.german, predicate.rest))

    def subordinate(self) -> str:
        """Return the German subordinate clause, with the finite verb in last position."""
        return join(self.subject.german, self.predicate.rest, self.predicate.verb)


def join(*parts: str) -> str:
    """Join the nonempty parts by spaces."""
    return " ".join(part for part in parts if part)


def capitalize(text: str) -> str:
    """Return the text with the first letter in upper case and the rest unchanged."""
    return text[:1].upper() + text[1:]


def noun_phrase(noun: Noun, case: str, *, definite: bool, adjective: Phrase | None = None) -> Phrase:
    """Return a noun phrase, for example `the new cake`/`den neuen Kuchen` or `an omelette`/`ein Omelett`."""
    english = noun.english
    german = noun.german
    if adjective is not None:
        article_kind = "definite" if definite else "indefinite"
        ending = ADJECTIVE_ENDING[article_kind][case][noun.gender]
        english = f"{adjective.english} {english}"
        german = f"{adjective.german}{ending} {german}"
    if definite:
        return Phrase(f"the {english}", f"{DEFINITE[case][noun.gender]} {german}")
    article = "an" if english[0] in "aeiou" else "a"
    return Phrase(f"{article} {english}", f"ein{POSSESSIVE_ENDING[case][noun.gender]} {german}")


def possessive(address: str, noun: Noun, case: str) -> str:
    """Return a German possessive, for example `deine Schwester` for "du" or `Ihren Bruder` for "Sie"."""
    return f"{POSSESSIVE_STEM[address]}{POSSESSIVE_ENDING[case][noun.gender]} {noun.german}"
