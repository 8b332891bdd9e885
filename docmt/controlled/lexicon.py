"""Lexicon of the controlled corpus. Outside the four phenomena, an English form has one German form."""

from itertools import groupby
from typing import NamedTuple

from docmt.controlled.german import Clause, Noun, Phrase, Predicate


class NounClass(NamedTuple):
    """Nouns that a set of predicates selects: two per gender, so that the class does not reveal the gender."""

    nouns: dict[str, tuple[Noun, ...]]  # by gender
    subjects: tuple[Predicate, ...]  # predicates whose subject must be in this class
    objects: tuple[Predicate, ...]  # predicates whose object must be in this class


def _pairs(text: str) -> list[list[str]]:
    """Parse English and German forms, as in `one/ein, two/zwei`."""
    return [pair.split("/") for pair in text.split(", ")]


def _predicates(text: str) -> tuple[Predicate, ...]:
    return tuple(map(Predicate._make, _pairs(text)))


def _phrases(text: str) -> tuple[Phrase, ...]:
    return tuple(map(Phrase._make, _pairs(text)))


def _nouns(**genders: str) -> dict[str, tuple[Noun, ...]]:
    nouns = {}
    for gender, text in genders.items():
        nouns[gender] = tuple(Noun(english, german, gender) for english, german in _pairs(text))
    return nouns


# Few classes with few predicates, so that a small model learns their combinations within minutes.
CLASSES = {
    "food": NounClass(
        _nouns(m="cake/Kuchen, cheese/Käse", f="soup/Suppe, tart/Torte", n="steak/Steak, omelette/Omelett"),
        subjects=_predicates("tastes very good/schmeckt/sehr gut, needs some more salt/braucht/noch etwas Salz"),
        objects=_predicates("eats {it} very slowly/isst/{it} sehr langsam"),
    ),
    "machine": NounClass(
        _nouns(
            m="printer/Drucker, toaster/Toaster", f="pump/Pumpe, camera/Kamera", n="radio/Radio, microscope/Mikroskop"
        ),
        subjects=_predicates(
            "has a technical fault/hat/einen technischen Fehler, runs without a battery/läuft/ohne eine Batterie"
        ),
        objects=_predicates("switches {it} off at night/schaltet/{it} nachts aus"),
    ),
    "vehicle": NounClass(
        _nouns(m="bus/Bus, train/Zug", f="ferry/Fähre, tram/Straßenbahn", n="boat/Boot, taxi/Taxi"),
        subjects=_predicates(
            "leaves in ten minutes/fährt/in zehn Minuten ab, carries many passengers/befördert/viele Passagiere"
        ),
        objects=_predicates("drives {it} to the city/fährt/{it} in die Stadt"),
    ),
    "plant": NounClass(
        _nouns(m="tree/Baum, bush/Busch", f="rose/Rose, tulip/Tulpe", n="violet/Veilchen, herb/Kraut"),
        subjects=_predicates(
            "grows very quickly here/wächst/hier sehr schnell, has strong green leaves/hat/kräftige grüne Blätter"
        ),
        objects=_predicates("waters {it} every evening/gießt/{it} jeden Abend"),
    ),
}
PERSONS = ("Anna", "Tom", "Lena", "Paul", "Emma", "Max")
TRANSITIVE = _predicates(
    "sees/sieht/, likes/mag/, knows/kennt/, praises/lobt/, admires/bewundert/, needs/braucht/, finds/findet/, "
    "paints/malt/"
)
INTRANSITIVE = _predicates(
    "sings/singt/, works/arbeitet/, sleeps/schläft/, dances/tanzt/, waits/wartet/, laughs/lacht/, cooks/kocht/, "
    "swims/schwimmt/"
)
PLACES = _phrases("in the garden/im Garten, in the park/im Park, near the lake/am See, in the hotel/im Hotel")
ADJECTIVES = _phrases("new/neu, old/alt, small/klein, beautiful/schön")
FRONTS = _phrases("perhaps/vielleicht, apparently/offenbar, of course/natürlich, luckily/zum Glück")
FILLERS = (
    Clause(Phrase("the weather", "das Wetter"), Predicate("is quite nice", "ist", "recht schön")),
    Clause(Phrase("the day", "der Tag"), Predicate("is rather long", "ist", "ziemlich lang")),
    Clause(Phrase("the street", "die Straße"), Predicate("is almost empty", "ist", "fast leer")),
    Clause(Phrase("the evening", "der Abend"), Predicate("is still warm", "ist", "noch warm")),
    Clause(Phrase("everybody", "jeder"), Predicate("is very busy", "ist", "sehr beschäftigt")),
    Clause(Phrase("the music", "die Musik"), Predicate("is too loud", "ist", "zu laut")),
)
CONJUNCTIONS = (
    (Phrase("because", "weil"), "Explanation"),
    (Phrase("although", "obwohl"), "Contrast"),
    (Phrase("while", "während"), "Temporal"),
)

# Deixis: the register is fixed by a greeting.
FIRST_NAMES = ("Julia", "Felix", "Nina", "Oskar")
SURNAMES = ("Weber", "Klein", "Berger", "Vogel")
GREETINGS = {
    "du": (Phrase("hi", "hallo"), Phrase("hey", "hey")),
    "Sie": (Phrase("good day", "guten Tag"), Phrase("good evening", "guten Abend")),
}
TITLES = (Phrase("Mr.", "Herr"), Phrase("Mrs.", "Frau"))
GREETING_TAILS = (
    Phrase("here is some news", "hier sind Neuigkeiten"),
    Phrase("now I have some time", "jetzt habe ich etwas Zeit"),
)


class AddressedPredicate(NamedTuple):
    """A predicate with the subject `you`. `verbs` maps the address to the finite German verb."""

    english: str
    verbs: dict[str, str]
    rest: str


STATEMENTS = (
    AddressedPredicate("know this town very well", {"du": "kennst", "Sie": "kennen"}, "diese Stadt sehr gut"),
    AddressedPredicate("speak very good German", {"du": "sprichst", "Sie": "sprechen"}, "sehr gutes Deutsch"),
    AddressedPredicate("are always welcome here", {"du": "bist", "Sie": "sind"}, "hier immer willkommen"),
    AddressedPredicate("have a very good idea", {"du": "hast", "Sie": "haben"}, "eine sehr gute Idee"),
)
QUESTIONS = (
    AddressedPredicate("can you help me", {"du": "kannst", "Sie": "können"}, "mir helfen"),
    AddressedPredicate("do you need more time", {"du": "brauchst", "Sie": "brauchen"}, "mehr Zeit"),
    AddressedPredicate("do you understand the question", {"du": "verstehst", "Sie": "verstehen"}, "die Frage"),
    AddressedPredicate("will you come tomorrow", {"du": "kommst", "Sie": "kommen"}, "morgen"),
)
YOU_OBJECT = (
    (Phrase("I would like to thank you", "ich möchte {you} danken"), {"du": "dir", "Sie": "Ihnen"}),
    (Phrase("I will write to you soon", "ich werde {you} bald schreiben"), {"du": "dir", "Sie": "Ihnen"}),
    (Phrase("I have a question for you", "ich habe eine Frage an {you}"), {"du": "dich", "Sie": "Sie"}),
    (Phrase("I will visit you in May", "ich werde {you} im Mai besuchen"), {"du": "dich", "Sie": "Sie"}),
)
KIN = (
    Noun("brother", "Bruder", "m"),
    Noun("father", "Vater", "m"),
    Noun("sister", "Schwester", "f"),
    Noun("mother", "Mutter", "f"),
    Noun("child", "Kind", "n"),
)
KIN_PREDICATES = _predicates(
    "lives in Berlin/wohnt/in Berlin, comes from Vienna/kommt/aus Wien, "
    "works in a hospital/arbeitet/in einem Krankenhaus"
)
KIN_FRAMES = (
    Phrase("I know your {kin} well", "ich kenne {kin} gut"),
    Phrase("we will meet your {kin} today", "wir treffen heute {kin}"),
)


# Lexical cohesion: an ambiguous word with its sense decided by an earlier sentence.


class Sense(NamedTuple):
    """A sense of an ambiguous word, and sentences that select this sense."""

    noun: Noun
    topics: tuple[Phrase, ...]


_TOPICS = """
bank | Bank f | we need some money | wir brauchen etwas Geld
bank | Bank f | the interest rate is high | der Zinssatz ist hoch
bank | Ufer n | we walk along the river | wir gehen am Fluss entlang
bank | Ufer n | the river is very wide | der Fluss ist sehr breit
seal | Robbe f | the sea is very cold | das Meer ist sehr kalt
seal | Robbe f | the zoo opens very early | der Zoo öffnet sehr früh
seal | Siegel n | the notary needs some wax | der Notar braucht etwas Wachs
seal | Siegel n | the king ends the ceremony | der König beendet die Zeremonie
bat | Fledermaus f | the cave is very dark | die Höhle ist sehr dunkel
bat | Fledermaus f | the owls are hunting again | die Eulen jagen wieder
bat | Schläger m | the sports lesson starts soon | der Sportunterricht beginnt bald
bat | Schläger m | the players are very tired | die Spieler sind sehr müde
court | Gericht n | the judge arrives very early | der Richter kommt sehr früh
court | Gericht n | the trial takes many days | der Prozess dauert viele Tage
court | Platz m | the tennis teacher is late | der Tennislehrer ist spät dran
court | Platz m | the tournament begins at noon | das Turnier beginnt am Mittag
table | Tisch m | the guests are very hungry | die Gäste sind sehr hungrig
table | Tisch m | the kitchen is very bright | die Küche ist sehr hell
table | Tabelle f | the statistics are now complete | die Statistik ist jetzt vollständig
table | Tabelle f | the numbers are quite reliable | die Zahlen sind recht zuverlässig
key | Schlüssel m | the front door is closed | die Haustür ist geschlossen
key | Schlüssel m | the cellar is always closed | der Keller ist immer geschlossen
key | Taste f | the pianist plays too fast | der Pianist spielt zu schnell
key | Taste f | the secretary types very fast | die Sekretärin tippt sehr schnell
spring | Quelle f | the hikers are very thirsty | die Wanderer sind sehr durstig
spring | Quelle f | the valley has many streams | das Tal hat viele Bäche
spring | Feder f | the watchmaker is very careful | der Uhrmacher ist sehr vorsichtig
spring | Feder f | the scales are not precise | die Waage ist nicht genau
lock | Schloss n | the thief comes at midnight | der Dieb kommt um Mitternacht
lock | Schloss n | the burglars have no tools | die Einbrecher haben kein Werkzeug
lock | Schleuse f | the canal is very narrow | der Kanal ist sehr schmal
lock | Schleuse f | the captain is rather nervous | der Kapitän ist ziemlich nervös
"""


AMBIGUOUS: dict[str, tuple[Sense, ...]] = {}
# Adjacent rows form a sense: word, German noun with gender, topic.
_ROWS = [row.split(" | ") for row in _TOPICS.strip().splitlines()]
for (_word, _german), _rows in groupby(_ROWS, key=lambda row: row[:2]):
    _sense = Sense(Noun(_word, *_german.split()), tuple(Phrase(*row[2:]) for row in _rows))
    AMBIGUOUS[_word] = (*AMBIGUOUS.get(_word, ()), _sense)
AMBIGUOUS_FRAMES = (
    ("nom", Phrase("{np} is really very small", "{np} ist wirklich sehr klein")),
    ("nom", Phrase("{np} surprises many visitors", "{np} überrascht viele Besucher")),
    ("acc", Phrase("we notice {np} at once", "wir bemerken {np} sofort")),
    ("acc", Phrase("nobody describes {np} in detail", "niemand beschreibt {np} genau")),
)

# Lexical cohesion: two correct translations. The first use in the target decides. All are masculine, so that the rest
# of the sentence stays the same.
SYNONYMS = {
    "the carpenter": ("Tischler", "Schreiner"),
    "the butcher": ("Metzger", "Fleischer"),
    "the plumber": ("Klempner", "Installateur"),
    "the chimney sweep": ("Schornsteinfeger", "Kaminkehrer"),
    "the physician": ("Arzt", "Mediziner"),
    "Henry": ("Henry", "Heinrich"),
    "George": ("George", "Georg"),
    "Charles": ("Charles", "Karl"),
}
SYNONYM_FRAMES = (
    ("nom", Phrase("{np} has two adult sons", "{np} hat zwei erwachsene Söhne")),
    ("nom", Phrase("{np} tells a good joke", "{np} erzählt einen guten Witz")),
    ("acc", Phrase("we call {np} once more", "wir rufen {np} noch einmal an")),
    ("acc", Phrase("the neighbours visit {np} again", "die Nachbarn besuchen {np} wieder")),
)

# Ellipsis: the verb comes from the previous sentence.
ELLIPSIS_FRAMES = (
    Phrase("{who} surely does too", "{who} {verb} {it} sicher auch"),
    Phrase("but {who} never does", "aber {who} {verb} {it} nie"),
    Phrase("as always {who} does too", "wie immer {verb} {who} {it} auch"),
)


# Document structure: segment markers, and predicates of `it` that fit all nouns.


class Marker(NamedTuple):
    """The phrases that open and close a digression."""

    opens: Phrase  # like `closes`, at the beginning of its sentence
    closes: Phrase
    relation: str  # between the digression and the segment around it


# All markers begin with different words, so that the first words of neighboring segments identify the pair.
MARKERS = (
    Marker(Phrase("by the way", "übrigens"), Phrase("anyway", "jedenfalls"), "Background"),
    Marker(Phrase("for example", "zum Beispiel"), Phrase("generally", "im Allgemeinen"), "Explanation"),
    Marker(Phrase("theoretically", "theoretisch"), Phrase("practically", "praktisch"), "Contrast"),
    Marker(Phrase("at first sight", "auf den ersten Blick"), Phrase("actually", "tatsächlich"), "Comparison"),
)
FIRST_SECTION = Phrase("first", "zuerst")
SECTIONS = (Phrase("then", "dann"), Phrase("moreover", "außerdem"), Phrase("furthermore", "ferner"))

ANY_SUBJECT = _predicates(
    "is quite expensive/ist/recht teuer, looks very good/sieht/sehr gut aus, "
    "costs too much/kostet/zu viel, has no fault/hat/keinen Fehler"
)
ANY_OBJECT = _predicates(
    "misses {it} every day/vermisst/{it} jeden Tag, describes {it} in detail/beschreibt/{it} genau, "
    "shows {it} to everybody/zeigt/{it} jedem"
)
