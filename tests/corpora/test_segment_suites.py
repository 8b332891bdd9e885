"""Suites of nested segments: only context decides, and no shortcut is better than chance."""

import hashlib
from collections import Counter, defaultdict

import pytest
from segment_reading import gender_of, read

from docmt.corpora.controlled.generator import build_suites
from docmt.corpora.controlled.segment_suites import SEGMENT_BUILDERS
from docmt.corpora.controlled.settings import SegmentsSettings

SETTINGS = SegmentsSettings(documents="segments", seed=7, n_suite_items=300)


@pytest.fixture(scope="module")
def suites():
    return {name: [item for item, _ in items] for name, items in build_suites(SETTINGS).items()}


@pytest.fixture(params=list(SEGMENT_BUILDERS))
def suite(request, suites):
    return request.param, suites[request.param]


def test_items_keep_the_contract(suite):
    name, items = suite
    assert len(items) == SETTINGS.n_suite_items == len({item["id"] for item in items})
    for item in items:
        assert item["phenomenon"] == name
        assert len(item["candidates"]) == 2
        differing = [k for k, pair in enumerate(zip(*item["candidates"], strict=True)) if len(set(pair)) > 1]
        assert differing == [item["sentence"]] == [len(item["src"]) - 1]
        assert SETTINGS.min_sentences <= len(item["src"]) <= SETTINGS.max_sentences
        assert item["distance"] >= 1


def sentence_score(src, tgt, salt):
    """An arbitrary preference of a model that sees one sentence pair at a time."""
    digest = hashlib.sha256(f"{salt}|{src}|{tgt}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@pytest.mark.parametrize("salt", range(5))
def test_a_sentence_model_scores_exactly_one_half(suite, salt):
    _, items = suite
    right = 0
    for item in items:
        scores = [sentence_score(item["src"][-1], candidate[-1], salt) for candidate in item["candidates"]]
        right += scores[item["correct"]] > scores[1 - item["correct"]]
    assert right * 2 == len(items)


def test_groups_are_two_items_with_one_focus_and_opposite_answers(suite):
    _, items = suite
    groups = defaultdict(list)
    for item in items:
        groups[item["group"]].append(item)
    for first, second in groups.values():
        assert first["src"][-1] == second["src"][-1]
        assert [c[-1] for c in first["candidates"]] == [c[-1] for c in second["candidates"]]
        assert {first["correct"], second["correct"]} == {0, 1}
        assert len(first["src"]) == len(second["src"])


def test_only_the_target_differs_where_it_decides(suites):
    groups = defaultdict(list)
    for item in suites["cohesion"]:
        groups[item["group"], item["kind"]].append(tuple(item["src"]))
    assert Counter(kind for _, kind in groups) == {"ambiguous": 75, "consistent": 75}
    for (_, kind), (first, second) in groups.items():
        assert (first == second) == (kind == "consistent")


def test_kinds_of_structure(suites):
    kinds = Counter(item["kind"] for item in suites["structure"])
    assert kinds == {"shallow": 50, "inner": 100, "deep": 150}


def decide_structure(item):
    reading = read(item["src"])
    return reading.topics[reading.mentions[-1]], reading


def test_the_structure_decides(suites):
    for item in suites["structure"]:
        gender, reading = decide_structure(item)
        genders = [gender_of(candidate[-1]) for candidate in item["candidates"]]
        assert genders[item["correct"]] == gender != genders[1 - item["correct"]]
        assert item["distance"] == len(item["src"]) - 1 - reading.openers[reading.mentions[-1]]


def last(values):
    return values[-1] if values else None


# Rules that name a segment from its place, without pairing markers. `r` is the reading without the focus sentence, and
# `pair` the genders of the two candidates.
def mentions(r):
    return [segment for segment in r.mentions[:-1] if segment is not None]


def before_the_last_opener(r):
    return last([segment for segment in r.mentions[: r.openers[-1]] if segment is not None])


def fitting(segments, r, pair):
    return [segment for segment in segments if r.topics[segment] in pair]


def other_than_last_mentioned(r):
    return [segment for segment in mentions(r) if segment != mentions(r)[-1]]


SHORTCUTS = {
    "last noun": lambda r, pair: len(r.topics) - 1,
    "second last noun": lambda r, pair: len(r.topics) - 2,
    "third last noun": lambda r, pair: len(r.topics) - 3,
    "first noun": lambda r, pair: 0,
    "first noun that fits": lambda r, pair: fitting(range(len(r.topics)), r, pair)[0],
    "last noun that fits": lambda r, pair: fitting(range(len(r.topics)), r, pair)[-1],
    "last noun that fits, but for the last of all": lambda r, pair: last(fitting(range(len(r.topics) - 1), r, pair)),
    "last mention": lambda r, pair: mentions(r)[-1],
    "last mention that fits": lambda r, pair: fitting(mentions(r), r, pair)[-1],
    "last mention of another noun": lambda r, pair: last(other_than_last_mentioned(r)),
    "last mention of another noun that fits": lambda r, pair: last(fitting(other_than_last_mentioned(r), r, pair)),
    "topic of the last section": lambda r, pair: r.sections[-1],
    "topic of the section before": lambda r, pair: r.sections[-2] if len(r.sections) > 1 else None,
    "mention before the last opener": lambda r, pair: before_the_last_opener(r),
    "segment around the last one": lambda r, pair: r.parents[-1],
    "noun mentioned most often": lambda r, pair: Counter(mentions(r)).most_common(1)[0][0],
    "noun mentioned most often that fits": lambda r, pair: Counter(fitting(mentions(r), r, pair)).most_common(1)[0][0],
    "noun mentioned least often that fits": lambda r, pair: Counter(fitting(mentions(r), r, pair)).most_common()[-1][0],
}
EXACTLY_EVEN = {
    "last noun",
    "last mention",
    "last mention of another noun",
    "last mention of another noun that fits",
    "topic of the last section",
    "mention before the last opener",
    "segment around the last one",
}


@pytest.mark.parametrize("rule", SHORTCUTS)
def test_no_shortcut_is_better_than_chance(suites, rule):
    points = []
    for item in suites["structure"]:
        _, reading = decide_structure(item)
        pair = [gender_of(candidate[-1]) for candidate in item["candidates"]]
        named = SHORTCUTS[rule](reading, pair)
        gender = None if named is None else reading.topics[named]
        points.append(float(gender == pair[item["correct"]]) if gender in pair else 0.5)
    accuracy = sum(points) / len(points)
    # The others are even over all documents; the standard error of 150 groups is 0.04.
    assert accuracy == 0.5 if rule in EXACTLY_EVEN else accuracy <= 0.6


def test_suites_do_not_change_with_the_corpus(suites):
    other = SETTINGS.model_copy(update={"n_train_documents": 3})
    assert {name: [item for item, _ in items] for name, items in build_suites(other).items()} == suites
