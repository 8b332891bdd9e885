"""APT: all cases by hand, weights, search near a missing link, lists, and missing parts."""

import random
from pathlib import Path

import pytest
import yaml
from evaluation_fixtures import make_hypotheses, make_test, write_lines

from docmt.errors import UserError
from docmt.evaluation import pronouns
from docmt.evaluation.external_programs import find_program
from docmt.evaluation.metrics import EvaluationSettings
from docmt.evaluation.pronouns import (
    LISTS as FOLDER,
)
from docmt.evaluation.pronouns import (
    WEIGHTS,
    PronounLists,
    classify,
    describe_occurrences,
    find_counterparts,
    score_pronouns,
)
from docmt.evaluation.word_alignment import read_training

LISTS = PronounLists.of("en", "de")
SOURCE = ["I saw it .", "She left .", "He slept .", "They sing .", "We read it .", "You too ?"]
REFERENCE = ["Ich sah es .", "Sie ging .", "Er schlief .", "Sie singen .", "Wir lesen es .", "Auch ?"]
HYPOTHESES = ["Ich sah ihn .", "Sie ging .", "Schlief .", "Ihnen singen .", "Lesen wir Bücher .", "Auch ?"]
LINKS_HYPOTHESES = "0-0 1-1 2-2 3-3\n0-0 1-1 2-2\n1-0 2-1\n0-0 1-1 2-2\n0-1 1-0 2-2 3-3\n1-0 2-1\n"
LINKS_REFERENCE = "0-0 1-1 2-2 3-3\n0-0 1-1 2-2\n0-0 1-1 2-2\n0-0 1-1 2-2\n0-0 1-1 2-2 3-3\n1-0 2-1\n"


@pytest.mark.parametrize(
    ("hypothesis", "reference", "case"),
    [
        (["es"], ["es"], "identical"),
        (["unserm"], ["unserem"], "identical"),
        (["ihn"], ["ihm"], "equivalent"),
        (["das"], ["es"], "equivalent"),
        (["ihr"], ["sie"], "equivalent"),
        (["ihr"], ["euch"], "equivalent"),
        (["er"], ["es"], "different"),
        (["euch"], ["sie"], "different"),
        (["haus"], ["es"], "different"),
        (["haus"], ["haus"], "identical"),
        ([], ["es"], "no hypothesis"),
        (["es"], [], "no reference"),
        ([], [], "neither"),
    ],
)
def test_cases(hypothesis, reference, case):
    assert classify(hypothesis, reference, LISTS) == case


def test_score_is_the_weighted_share_of_all_cases():
    run = [("it", case) for case in WEIGHTS] + [("he", "identical")] * 2
    rows = describe_occurrences([run], ["d"] * 3 + ["e"] * 5, signature="s")
    assert (rows[0]["metric"], rows[0]["kind"], rows[0]["n"]) == ("APT", None, 8)
    assert rows[0]["value"] == pytest.approx(100 * (3 * 1 + 1 * 0.5) / 8)
    assert [(row["kind"], row["value"], row["n"]) for row in rows[1:3]] == [("it", 25.0, 6), ("he", 100.0, 2)]
    cases = {row["kind"]: row["value"] for row in rows[3:]}
    assert cases == {"identical": 37.5} | dict.fromkeys(list(WEIGHTS)[1:], 12.5)
    assert all(row["signature"] == "s" for row in rows)
    assert rows[0]["groups"] == "47.5 37.5", "jackknife over two documents: 2 · 43.75 − 40, 2 · 43.75 − 50"


def test_alignments_are_averaged_with_their_range():
    runs = [[("it", case)] for case in ("identical", "different", "equivalent")]
    row = describe_occurrences(runs, ["d"], signature="s")[0]
    assert (row["value"], row["low"], row["high"], row["n"]) == (50.0, 0.0, 100.0, 1)
    (row,) = describe_occurrences([[], []], [], signature="s")
    assert row["value"] is row["low"] is row["high"] is row["kind"] is None
    assert (row["metric"], row["n"], row["signature"]) == ("APT", 0, "s")


def plain_search(position, source, target, links):
    """The authors' search, step by step, with a list of candidate weights."""
    aligned = sorted(j for i, j in links if i == position)
    pronouns_of_lists = {*LISTS.target}.union(*LISTS.identical, *LISTS.equivalent)
    words = [target[j] for j in aligned if target[j] in pronouns_of_lists]
    if not aligned or [word for word in words if word in LISTS.target]:
        return words
    first, last = max(aligned[0] - 2, 0), min(aligned[-1] + 2, len(target) - 1)
    n = last - first + 1
    weights = [*range(n // 2, 0, -1), *[1] * (n % 2), *range(1, n // 2 + 1)]
    candidates = []
    for index, weight in zip(range(first, last + 1), weights, strict=True):
        is_owned = any(source[i] in LISTS.source for i, j in links if j == index)
        if target[index] in LISTS.target and not is_owned:
            candidates.append((weight, target[index]))
    if candidates:
        words.append(min(candidates, key=lambda candidate: candidate[0])[1])
    return words or [target[j] for j in aligned]


@pytest.mark.parametrize(
    ("position", "source", "target", "links", "counterparts"),
    [
        (0, "it works", "es geht", {(0, 0)}, ["es"]),
        (0, "it works", "das haus , es geht", {(0, 0), (0, 3)}, ["das", "es"]),
        (0, "it works", "haus , es geht", {(0, 0), (0, 2)}, ["es"]),  # only the pronouns
        (0, "it works", "haus , es geht", {(0, 0)}, ["es"]),  # two words to the right
        (0, "it works", "haus , ja , es geht", {(0, 0)}, ["haus"]),  # too far
        (1, "works it now", "geht es nun", {(0, 0), (2, 2)}, []),  # without a link, nothing is searched
        (0, "it works", "", set(), []),
        (0, "it is", "er haus sie x", {(0, 1)}, ["sie"]),  # nearer to the center of `er haus sie x`
        (0, "it is", "das es", {(0, 0)}, ["das", "es"]),  # an article does not end the search …
        (0, "it is", "ist das", {(0, 0)}, ["ist"]),  # … but is not searched for
        (0, "it sees him", "haus sieht ihn", {(0, 0), (1, 1), (2, 2)}, ["haus"]),  # belongs to `him`
    ],
)
def test_place_of_a_pronoun(position, source, target, links, counterparts):
    assert find_counterparts(position, (source.split(), target.split()), links, LISTS) == counterparts


def test_search_of_the_authors_is_plain():
    chance = random.Random(1)
    searched = 0
    for _ in range(3000):
        source = chance.choices(["it", "he", "house", "is", "you"], k=chance.randint(1, 5))
        target = chance.choices(["es", "er", "sie", "das", "haus", "ist", ","], k=chance.randint(1, 9))
        pairs = [(i, j) for i in range(len(source)) for j in range(len(target))]
        links = set(chance.sample(pairs, chance.randint(0, min(4, len(pairs)))))
        counterparts = find_counterparts(0, (source, target), links, LISTS)
        assert counterparts == plain_search(0, source, target, links), (source, target, links)
        searched += not {*counterparts} <= {target[j] for i, j in links if i == 0}
    assert searched > 100, "beyond the links"


def translated(prefix, hypotheses, reference=REFERENCE, *, source=(), src_lang="en", settings=None, **options):
    if source:
        write_lines(Path(f"{prefix}.{src_lang}"), source)
    return make_test(hypotheses, reference, prefix=prefix, src_lang=src_lang, settings=settings, **options)


@pytest.fixture
def score_aligned(monkeypatch):
    """Scores for a test with two alignments by hand, from source to hypotheses and to the reference."""

    def score(test, *alignments):
        links = [set(map(read_link, line.split())) for text in alignments for line in text.splitlines()]
        monkeypatch.setattr(pronouns, "find_program", lambda name: "by hand")
        monkeypatch.setattr(pronouns, "align_words", lambda pairs, *, program: links)
        return score_pronouns(test)

    return score


def read_link(text):
    return tuple(map(int, text.split("-")))


def test_whole_test_with_alignments_by_hand(tmp_path, score_aligned):
    test = translated(tmp_path / "test", make_hypotheses(HYPOTHESES), source=SOURCE)
    rows = score_aligned(test, LINKS_HYPOTHESES, LINKS_REFERENCE)
    by_pronoun = {row["kind"]: row["value"] for row in rows if row["metric"] == "APT"}
    # it: ihn for es is different, Bücher for es finds `wir`, which is another's. You: on neither side.
    expected = {"i": 100, "it": 0, "she": 100, "he": 0, "they": 50, "we": 100, "you": 0}
    assert {kind: value for kind, value in by_pronoun.items() if kind} == expected
    assert by_pronoun[None] == pytest.approx(350 / 8)
    cases = {row["kind"]: row["value"] * 8 / 100 for row in rows if row["metric"] == "APT cases"}
    expected = {"identical": 3, "equivalent": 1, "different": 2}
    assert cases == expected | {"no hypothesis": 1, "no reference": 0, "neither": 1}
    assert "search:as authors|other words:compared|aligner:eflomal" in rows[0]["signature"]


def test_chinese_pronouns_are_words_of_jieba(tmp_path, score_aligned):
    source, english = ["他们 喜欢 它的 书。", "", "", "", "", ""], ["They like its book.", "", "", "", "", ""]
    languages = {"src_lang": "zh", "tgt_lang": "en"}
    test = translated(tmp_path / "test", make_hypotheses(english), english, source=source, **languages)
    rows = score_aligned(test, *["0-0 1-1 2-2 3-2 4-3 5-4\n" + "\n" * 5] * 2)
    assert [(row["kind"], row["value"]) for row in rows[:3]] == [(None, 100), ("他们", 100), ("它", 100)]


@pytest.mark.slow
@pytest.mark.skipif(find_program("eflomal-align") is None, reason="eflomal is not installed")
def test_the_real_aligner_with_training_text(tmp_path):
    words = {"I": "Ich", "we": "Wir", "they": "Sie", "read": "lese", "sleep": "schlafe", "sing": "singe"}
    pairs = [(f"{a} {b} it now", f"{words[a]} {words[b]} es nun") for a in list(words)[:3] for b in list(words)[3:]]
    # Also without the last word, since eflomal, whose seed is random, could otherwise align it with the one before.
    text = [*pairs, *(tuple(side.rsplit(" ", 1)[0] for side in pair) for pair in pairs)]
    for side, lang in enumerate(("en", "de")):
        (tmp_path / f"t.{lang}").write_text("".join(pair[side] + "\n" for pair in text * 6))
    source, reference = [pair[0] for pair in pairs[:6]], [pair[1] for pair in pairs[:6]]
    wrong = [line.replace("es nun", "ihn nun") for line in reference]
    options = {"settings": EvaluationSettings(aligner_runs=2, aligner_sentences=100), "training": tmp_path / "t"}
    tests = [
        translated(tmp_path / "test", make_hypotheses(lines), reference, source=source, **options)
        for lines in (reference, wrong)
    ]
    assert len(read_training(tests[0])) == 100
    right, worse = map(score_pronouns, tests)
    assert right[0]["value"] == pytest.approx(100)
    assert right[0]["n"] == 12
    assert worse[0]["value"] == pytest.approx(50, abs=10)
    assert "aligner:eflomal 2.0.0" in right[0]["signature"]
    assert "runs:2|training pairs:100" in right[0]["signature"]


def test_missing_program_is_one_line(monkeypatch, caplog):
    assert score_pronouns(translated(Path("t"), make_hypotheses([["a"], ["b", "c"], ["d"]], aligned=False))) == []
    monkeypatch.setattr(pronouns, "find_program", lambda name: None)
    reasons = {"de": "pip install eflomal", "ru": "there is no list of pronouns for en-ru (only for en-de, zh-en)"}
    for tgt_lang, reason in reasons.items():
        rows = score_pronouns(translated(Path("t"), make_hypotheses(HYPOTHESES), tgt_lang=tgt_lang))
        assert [(row["metric"], row["value"], row["n"]) for row in rows] == [("APT", None, 0)]
        assert reason in rows[0]["signature"]
        assert reason in caplog.text


def test_languages_without_blanks_have_no_score(tmp_path):
    """Before the training text is read, since it cannot be tokenized either."""
    (tmp_path / "t.ja").write_text("犬\n", "utf-8")
    (tmp_path / "t.en").write_text("a dog\n")
    hypotheses = make_hypotheses(HYPOTHESES)
    test = translated(tmp_path / "x", hypotheses, src_lang="ja", tgt_lang="en", training=tmp_path / "t")
    assert [(row["metric"], row["value"]) for row in score_pronouns(test)] == [("APT", None)]


def test_training_text_of_two_lengths_is_refused(tmp_path):
    (tmp_path / "t.en").write_text("a\nb\n")
    (tmp_path / "t.de").write_text("a\n")
    with pytest.raises(UserError, match="2 lines in en, but 1 in de"):
        read_training(translated(Path("t"), [], training=tmp_path / "t"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_lists_are_lower_case_single_words_without_repeats(path):
    lists = PronounLists.of(*path.stem.split("-"))
    for group in (lists.source, lists.target, *lists.identical, *lists.equivalent):
        assert len(set(group)) == len(group)
        assert all(word == word.lower() and len(word.split()) == 1 for word in group)
    assert yaml.safe_load(path.read_text(encoding="utf-8")).keys() == PronounLists.model_fields.keys()
