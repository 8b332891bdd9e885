"""The words that mark segments, and predicates of `it` that go with every noun."""

from dataclasses import dataclass

from docmt.corpora.controlled.german import Phrase, Predicate


@dataclass(frozen=True)
class Marker:
    """A digression begins with one phrase; the sentence that returns from it has the other.

    Attributes:
        opens, closes: the phrases, at the beginning of their sentences.
        relation: of the digression to the segment around it.
    """

    opens: Phrase
    closes: Phrase
    relation: str


# No two markers begin with the same word: a linear parser sees the first words of neighboring segments as a pair.
MARKERS = (
    Marker(Phrase("by the way", "übrigens"), Phrase("anyway", "jedenfalls"), "Background"),
    Marker(Phrase("for example", "zum Beispiel"), Phrase("generally", "im Allgemeinen"), "Explanation"),
    Marker(Phrase("theoretically", "theoretisch"), Phrase("practically", "praktisch"), "Contrast"),
    Marker(Phrase("at first sight", "auf den ersten Blick"), Phrase("actually", "tatsächlich"), "Comparison"),
)

FIRST_SECTION = Phrase("first", "zuerst")
SECTIONS = (Phrase("then", "dann"), Phrase("moreover", "außerdem"), Phrase("furthermore", "ferner"))

SUBJECTS = (
    Predicate("is quite expensive", "ist", "recht teuer"),
    Predicate("looks very good", "sieht", "sehr gut aus"),
    Predicate("costs too much", "kostet", "zu viel"),
    Predicate("has no fault", "hat", "keinen Fehler"),
)
OBJECTS = (
    Predicate("misses {it} every day", "vermisst", "{it} jeden Tag"),
    Predicate("describes {it} in detail", "beschreibt", "{it} genau"),
    Predicate("shows {it} to everybody", "zeigt", "{it} jedem"),
)
