"""Words that depend on context: which words are tagged, and how reference and hypothesis are compared."""

from dataclasses import replace

import pytest
from evaluation_fixtures import evaluate, write_lines
from test_consistency import translated

from docmt.errors import UserError
from docmt.evaluation.context_words import TAGGERS, score_context_words
from docmt.evaluation.external_programs import NotComputableError, find_program
from docmt.evaluation.significance import compare_translations
from docmt.evaluation.word_alignment import PROGRAM, Alignment, Text

ADDRESS, PRONOUNS, TERMS = TAGGERS
# Documents, by sentence: the source, and the target with * before each tagged word.
ADDRESSED = {
    "de": [
        [
            ("Are you coming with us , Paul ?", "Kommst du mit , Paul ?"),  # the first form of address
            ("I waited for you , and your bag is here .", "Ich habe auf *dich gewartet , und *deine Tasche ist hier ."),
            ("They like you .", "Sie mögen *dich ."),
            ("Do you know her house ?", "Kennst *du ihr Haus ?"),
            ("Come in and sit down !", "Komm du herein und setz dich !"),  # an imperative
            ("Did you hurt yourself ?", "Hast *du *dir weh getan ?"),
            ("One never knows .", "Das weiß man nie ."),
            ("That depends on you , Sir .", "Das hängt von Ihnen ab , mein Herr ."),  # another class
            ("You may stay if you like .", "*Sie können bleiben , wenn *Sie mögen ."),
            ("Your son thanks you .", "Ihr Sohn dankt *Ihnen ."),  # the first word could be hers
            ("You are right .", "*Sie sind im Recht ."),
            ("They say that you are right .", "Sie sagen , dass *Sie recht haben ."),
        ],
        [
            ("You are all welcome .", "Ihr seid alle willkommen ."),
            ("Where have you been ?", "Wo wart *ihr ?"),
            ("You must go , I know your way .", "*Ihr müsst gehen , ich kenne *euren Weg ."),
            ("You ought to thank her for it .", "Dankt ihr dafür ."),
            ("Your king thanks you .", "*Euer König dankt *euch ."),
            ("Do you see them ?", "Seht ihr sie ?"),  # her or you: nothing tells
            ("Do you love your country ?", "Liebt *ihr *euer Land ?"),
            ("Whose hats are these ? Yours ?", "Wem gehören diese Hüte ? *Euch ?"),
        ],
        [("Where have you been ?", "Wo wart ihr ?"), ("He saw you .", "Er hat dich gesehen .")],
    ],
    "fr": [
        [
            ("Are you ready ?", "Tu es prêt ?"),
            ("I like your dog .", "J' aime *ton chien ."),
            ("You know , it knows you .", "*Tu sais , il *te connaît ."),
            ("What do you want ?", "Que voulez-vous ?"),
            ("It is yours , you know .", "C' est à vous , vous savez ."),
            ("This is your house .", "C' est *votre maison ."),
        ]
    ],
    "ru": [
        [
            ("Can you see me ?", "Ты видишь меня ?"),
            ("I see you and your sister .", "Вижу *тебя и *твою сестру ."),
            ("Listen !", "Слушай ты !"),
            ("You are tired .", "Вы устали ."),
            ("I called you .", "Я *вам звонил ."),
        ]
    ],
}
# The same with the links of words that matter.
ANAPHORS = [
    [
        ("It is closed .", "Sie ist geschlossen .", "it-sie"),  # nothing comes before
        ("We have a new lamp .", "Wir haben eine neue Lampe .", "lamp-lampe"),
        ("It stands over there .", "*Sie steht da drüben .", "it-sie"),
        ("I bought it on Monday .", "Ich habe *sie am Montag gekauft .", "it-sie"),
        ("They light it when guests come .", "Sie zünden sie an , wenn Gäste kommen .", "they-sie it-sie"),
        ("Where is my key ?", "Wo ist mein Schlüssel ?", "key-schlüssel"),
        ("Have you seen it ?", "Hast du *ihn gesehen ?", "it-ihn"),
        ("Yes , it was here when I came .", "Ja , *er war hier , als ich kam .", "it-er"),
        ("Once lost , it is hard to replace .", "*Er ist , einmal verloren , schwer zu ersetzen .", "it-er"),
        ("Think about it !", "Denken Sie darüber nach !", "it-sie"),  # a wrong link
        ("He says it is his .", "Er sagt , es gehört ihm .", "it-er"),  # another one
        ("If you find honey , eat it .", "Wer Honig findet , der isst ihn .", "it-ihn"),
        ("I gave it to her .", "Ich gab ihn ihr .", "it-ihr"),
        ("You cannot do without it .", "Ohne *ihn geht es nicht .", "it-ihn"),
        ("The door opens if it is pushed .", "Die Tür geht auf , wenn sie gedrückt wird .", "it-sie"),
        ("My car broke down , so I sold it .", "Mein Wagen ging kaputt , also habe ich ihn verkauft .", "it-ihn"),
        ("It is raining .", "Es regnet .", "it-es"),
        ("She saw him .", "Sie sah ihn .", "she-sie him-ihn"),
        ("I never liked it , that old song .", "Ich mochte *ihn nie , diesen alten Schlager .", "it-ihn"),
    ],
    [
        ("There is a city by the sea .", "Es gibt eine Stadt am Meer .", "city-stadt"),
        ("It was rich once .", "Einst war *sie reich .", "it-sie"),
        ("Now you can hardly find it .", "Jetzt findet man *sie kaum .", "it-sie"),
        ("He gave it a name .", "Er gab *ihr einen Namen .", "it-ihr"),
        ("He gave his name to it .", "Er gab ihr seinen Namen .", "it-ihr"),
    ],
]
REPEATED = [
    [
        ("The harbour froze .", "Der Hafen fror zu .", "harbour-hafen froze-fror"),
        ("Ships left the harbour .", "Schiffe verließen den *Hafen .", "ships-schiffe left-verließen harbour-hafen"),
        ("Harbours need ships .", "Häfen brauchen *Schiffe .", "harbours-häfen need-brauchen ships-schiffe"),
        ("A harbour is a port .", "Ein *Hafen ist eine Anlegestelle .", "harbour-hafen port-anlegestelle"),
        ("The harbour slept .", "Die Bucht schlief .", "harbour-bucht slept-schlief"),
        ("The ships left .", "Die *Schiffen *verließen uns .", "ships-schiffen left-verließen"),
        ("Fog hid it .", "Nebel verbarg ihn .", "fog-nebel hid-verbarg"),
        ("London is big .", "London ist groß .", "london-london big-groß"),
        ("Everyone likes London .", "Jeder mag London .", "everyone-jeder likes-mag london-london"),  # no choice
        ("Everyone sleeps .", "Jeder schläft .", "everyone-jeder sleeps-schläft"),
        ("The bridge and the bridge .", "Die Brücke und die Brücke .", "bridge-brücke"),
        ("No bridge , no harbour .", "Keine *Brücke , kein *Hafen .", "bridge-brücke harbour-hafen"),
    ],
    [("The harbour froze .", "Der Hafen taute .", "harbour-hafen froze-taute")],
    [("Nothing here .", "Hier ist nichts .", "nothing-nichts")],
    [("Nothing there .", "Dort ist nichts .", "nothing-nichts")],
]


def make_tagged(tmp_path, documents, metric, hypothesis=None, *, tgt_lang="de"):
    """A test with these documents, and which words of each of its sentences have a star."""
    rows = [row for document in documents for row in document]
    source, marked = [row[0] for row in rows], [row[1].split() for row in rows]
    reference = [" ".join(word.removeprefix("*") for word in words) for words in marked]
    lengths = [len(document) for document in documents]
    test = translated(tmp_path, reference, hypothesis or reference, lengths, [metric], source=source, tgt_lang=tgt_lang)
    if len(rows[0]) == 3:
        text, links = Text.of(test), {}
        for number, (_, _, named) in enumerate(rows):
            pairs = [pair.split("-") for pair in named.split()]
            for side in (text.reference[number], text.hypothesis[number]):
                words = text.source[number]
                places = {(words.index(a), side.index(b)) for a, b in pairs if b in side}
                links[tuple(words), tuple(side)] = places
        test.__dict__["alignment"] = Alignment(text, links, "by hand")
    return test, [[word[1:] for word in words if word.startswith("*")] for words in marked]


@pytest.mark.parametrize(
    ("metric", "documents", "tgt_lang"),
    [*((ADDRESS, ADDRESSED[lang], lang) for lang in ADDRESSED), (PRONOUNS, ANAPHORS, "de"), (TERMS, REPEATED, "de")],
)
def test_words_that_depend_on_earlier_sentences_are_tagged(tmp_path, metric, documents, tgt_lang):
    test, expected = make_tagged(tmp_path, documents, metric, tgt_lang=tgt_lang)
    found = [[] for _ in expected]
    for tag in TAGGERS[metric](test, "reference"):
        found[tag.sentence].append(tag.word)
    if metric == TERMS:  # these are in lower case
        expected = [[word.lower() for word in words] for words in expected]
    assert [sorted(words) for words in found] == [sorted(words) for words in expected]


def rows_of(test):
    return {row["kind"]: (row["value"], row["n"]) for row in score_context_words(test, ADDRESS)}


def test_tagged_words_of_reference_and_hypothesis_are_compared(tmp_path):
    lines = [
        ("Are you there ?", "Bist du da ?", "Bist du da ?"),
        ("I know you and your son .", "Ich kenne *dich und *deinen Sohn .", "Ich kenne dich und Ihren Sohn ."),
        ("Do you hear me ?", "Hörst *du mich ?", "Hören Sie mich , du ?"),
        ("Did you win ?", "Hast *du gewonnen ?", "Gewonnen ?"),
        ("It rains .", "Es regnet .", "Es regnet ."),
    ]
    documents = [[line[:2] for line in lines[:4]], [line[:2] for line in lines[4:]]]
    test, _ = make_tagged(tmp_path, documents, ADDRESS, [line[2] for line in lines])
    # Tagged in the hypothesis: dich, the second Sie, and the second du.
    assert rows_of(test) == {
        None: (pytest.approx(200 * 2 / 7), 4),
        "precision": (pytest.approx(100 * 2 / 3), 3),
        "recall": (50, 4),
        "documents": (50, 2),
    }
    assert test.counts(ADDRESS).rows.tolist() == [[2, 3, 4], [0, 0, 0]]
    perfect, _ = make_tagged(tmp_path, documents, ADDRESS)
    assert {kind: value for kind, (value, _) in rows_of(perfect).items()} == {
        None: 100, "precision": 100, "recall": 100, "documents": 50
    }  # fmt: skip
    (found,) = compare_translations([perfect], [test])
    assert (found.metric, found.n) == (ADDRESS, 2)
    assert found.difference == pytest.approx(100 - 200 * 2 / 7)


def test_what_cannot_be_tagged_has_no_value_and_is_not_tested(tmp_path):
    documents = [[("You and you .", "Man weiß es ."), ("You see ?", "Klar ?")]]
    test, _ = make_tagged(tmp_path, documents, ADDRESS)
    (row,) = score_context_words(test, ADDRESS)
    assert row["value"] is None
    assert "the reference has no such words" in row["signature"]
    assert compare_translations([test], [test]) == []
    english = replace(test, tgt_lang="en")
    assert "no lists of forms of address for en" in score_context_words(english, ADDRESS)[0]["signature"]
    chinese = replace(test, src_lang="zh")
    (tmp_path / "t.zh").write_text("你 ?\n你 ?\n")
    assert "no lists of source words for zh" in score_context_words(chinese, ADDRESS)[0]["signature"]
    free = translated(tmp_path, ["Du ."], [["Du ."]], (1,), [ADDRESS], aligned=False)
    assert score_context_words(free, ADDRESS) == []
    with pytest.raises(NotComputableError, match="not aligned"):
        free.counts(ADDRESS)


def test_source_without_index_may_have_blank_lines_and_must_fit(tmp_path):
    test, _ = make_tagged(tmp_path, [[("You ?", "Du ?")], [("You !", "Du !")]], ADDRESS)
    (tmp_path / "t.documents.tsv").unlink()
    (tmp_path / "t.en").write_text("You ?\n\nYou !\n")
    assert test.read_source() == ["You ?", "You !"]
    (tmp_path / "t.en").write_text("You ?\n")
    with pytest.raises(UserError, match="1 sentences, but the reference has 2"):
        test.read_source()


@pytest.mark.skipif(find_program(PROGRAM) is None, reason="eflomal is not installed")
def test_tags_are_listed_and_any_translations_are_compared(tmp_path, capsys):
    rows = [("Do you see the old tower ?", "Siehst du den alten Turm ?"), ("The tower is old .", "Der Turm ist alt .")]
    rows += [("Ask your king about the tower .", "Frag deinen König nach dem Turm .")]
    make_tagged(tmp_path, [rows] * 6, ADDRESS)
    prefix, tags, table = (tmp_path / name for name in ("t", "tags.tsv", "table.csv"))
    lines = [line for _, line in rows * 6]
    reference = write_lines(tmp_path / "t.de", lines)
    other = write_lines(tmp_path / "other.de", [line.replace("deinen", "Ihren") for line in lines])
    languages = {"src_lang": "en", "tgt_lang": "de"}
    assert evaluate("tag", prefix=prefix, **languages, out=tags) == 0
    header, *lines = [line.split("\t") for line in tags.read_text().splitlines()]
    assert header == ["document", "sentence", "word", "class", "why"]
    assert ["d1", "3", "deinen", ADDRESS, "singular, as in sentence 1"] in lines
    assert ADDRESS in {line[3] for line in lines} <= {ADDRESS, TERMS}
    options = {"settings": {"metrics": [ADDRESS, TERMS]}, "references": reference, "out": table, **languages}
    assert evaluate("compare", **options, hypotheses=[f"a={reference}", f"b={other}"]) == 0
    printed = capsys.readouterr().out
    assert f"a         {ADDRESS}" in printed
    assert "-100.00" in printed
