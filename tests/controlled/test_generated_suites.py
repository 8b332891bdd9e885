"""Contrastive suites. Only context determines the correct candidate."""

import math
import re
from collections import Counter, defaultdict
from functools import cache, partial
from itertools import chain

import pytest
from segment_reading import GENDERS, gender_of, read

from docmt.controlled import lexicon
from docmt.controlled.generator import split_words
from docmt.controlled.german import PRONOUN
from docmt.controlled.settings import SegmentsSettings, SelectionSettings
from docmt.controlled.suites import MAX_DISTANCE, SUITES, build_suite

SETTINGS = {
    "flat": SelectionSettings(generator="flat", seed=7, n_suite_items=240),
    "nested": SegmentsSettings(generator="nested", seed=7, n_suite_items=300),
}


SLOWEST = ("nested", "ellipsis")
"""Suite whose items take as long as all others."""
NAMES = [
    pytest.param((documents, name), id=f"{documents}-{name}", marks=[pytest.mark.slow] * ((documents, name) == SLOWEST))
    for documents in SUITES
    for name in SUITES[documents]
]


@cache
def items_of(documents, name):
    return [item for item, _ in build_suite(name, SETTINGS[documents])]


@pytest.fixture(params=NAMES)
def suite(request):
    return *request.param, items_of(*request.param)


def groups_of(items):
    groups = defaultdict(list)
    for item in items:
        groups[item["group"]].append(item)
    return groups.values()


def test_items_keep_the_contract(suite):
    documents, name, items = suite
    settings = SETTINGS[documents]
    assert len(items) == settings.n_suite_items == len({item["id"] for item in items})
    for item in items:
        assert item["phenomenon"] == name
        assert len(item["candidates"]) == 2
        assert all(len(candidate) == len(item["src"]) for candidate in item["candidates"])
        differing = [k for k, pair in enumerate(zip(*item["candidates"], strict=True)) if len(set(pair)) > 1]
        assert differing == [item["sentence"]] == [len(item["src"]) - 1]
        assert settings.min_sentences <= len(item["src"]) <= settings.max_sentences
        assert item["distance"] >= 1


def test_groups_are_opposite_pairs(suite):
    """A model that reads single sentence pairs is therefore right in exactly half of the items."""
    *_, items = suite
    for first, second in groups_of(items):
        assert first["src"][-1] == second["src"][-1]
        assert [c[-1] for c in first["candidates"]] == [c[-1] for c in second["candidates"]]
        assert {first["correct"], second["correct"]} == {0, 1}
        assert len(first["src"]) == len(second["src"])


@pytest.mark.parametrize("documents", SUITES)
def test_only_the_target_differs_where_it_decides(documents):
    groups = groups_of(items_of(documents, "cohesion"))
    n_groups = SETTINGS[documents].n_suite_items // 4
    assert Counter(first["kind"] for first, _ in groups) == {"ambiguous": n_groups, "consistent": n_groups}
    for first, second in groups:
        assert (first["src"] == second["src"]) == (first["kind"] == "consistent")


@pytest.mark.parametrize("name", MAX_DISTANCE)
def test_distances_are_even(name):
    counts = Counter(item["distance"] for item in items_of("flat", name))
    assert set(counts) == set(range(1, MAX_DISTANCE[name] + 1))
    assert max(counts.values()) - min(counts.values()) <= 6


def test_suites_do_not_change_with_the_corpus(suite):
    documents, name, items = suite
    changes = {"n_train_documents": 3} | ({"paired_introductions": 0.0} if documents == "flat" else {})
    assert [item for item, _ in build_suite(name, SETTINGS[documents].model_copy(update=changes))] == items


# Oracles that read the context: the sentence that decides, and a pattern of the right rendering.

SUBJECT_OR_OBJECT = {
    re.compile(r"\b" + predicate.english.replace("{it}", "it") + r"\b"): name
    for name, group in lexicon.CLASSES.items()
    for predicate in (*group.subjects, *group.objects)
}


def decide_pronoun(item):
    """The last noun in the class that the predicate selects."""
    focus = item["src"][-1].replace("It ", "it ")
    name = next(name for pattern, name in SUBJECT_OR_OBJECT.items() if pattern.search(focus))
    genders = {noun.english: gender for gender, nouns in lexicon.CLASSES[name].nouns.items() for noun in nouns}
    index, gender = max(
        (index, genders[word])
        for index, text in enumerate(item["src"])
        for word in split_words(text)
        if word in genders
    )
    case = 0 if re.search(r"\bit (tastes|needs|is|has|runs|leaves|carries|grows|describes|ends)\b", focus) else 1
    return index, rf"(?i:{PRONOUN[('nom', 'acc')[case]][gender]})"


def decide_structure(item):
    """Topic of the innermost open segment."""
    reading = read(item["src"])
    segment = reading.mentions[-1]
    gender = reading.topics[segment]
    return reading.openers[segment], rf"(?i:{PRONOUN['nom'][gender]}|{PRONOUN['acc'][gender]})"


def decide_deixis(item):
    for index, text in enumerate(item["src"]):
        if re.match(r"(Hi|Hey),", text):
            return index, r"[Dd](u|ir|ich|eine?n?)"
        if re.search(r"\bMrs?\.", text):
            return index, r"(Sie|Ihnen|Ihre?n?)"
    raise AssertionError(item)


def decide_cohesion(item):
    focus = item["src"][-1]
    if item["kind"] == "ambiguous":
        word = next(word for word in lexicon.AMBIGUOUS if re.search(rf"\b{word}\b", focus))
        topics = {phrase.english: sense.noun.german for sense in lexicon.AMBIGUOUS[word] for phrase in sense.topics}
        hits = [
            (k, topics[t[0].lower() + t[1:-1]]) for k, t in enumerate(item["src"]) if t[0].lower() + t[1:-1] in topics
        ]
        return hits[-1]
    word, renderings = next(each for each in lexicon.SYNONYMS.items() if each[0].lower() in focus.lower())
    uses = [k for k, text in enumerate(item["src"][:-1]) if word.lower() in text.lower()]
    words = split_words(item["candidates"][0][uses[-1]])
    return uses[-1], next(rendering for rendering in renderings if rendering in words)


def decide_ellipsis(item):
    verbs = {p.english: p.verb for p in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE)}
    words = split_words(item["src"][-2])
    return len(item["src"]) - 2, next(verbs[word] for word in words if word in verbs)


ORACLES = {
    "pronoun": decide_pronoun,
    "structure": decide_structure,
    "deixis": decide_deixis,
    "cohesion": decide_cohesion,
    "ellipsis": decide_ellipsis,
}


def test_oracle_with_context_is_always_right(suite):
    _, name, items = suite
    for item in items:
        index, answer = ORACLES[name](item)
        fits = [bool(re.search(rf"\b{answer}\b", candidate[-1])) for candidate in item["candidates"]]
        assert fits[item["correct"]], item
        assert not fits[1 - item["correct"]], item
        assert item["distance"] == len(item["src"]) - 1 - index


def test_pronoun_items_have_a_distractor():
    for item in items_of("flat", "pronoun"):
        start = len(item["src"]) - 1 - item["distance"]
        words = [[word for word in split_words(text) if word in GENDERS] for text in item["src"]]
        near = words[start + 1 :] if item["distance"] > 1 else words[start - 1 : start]
        assert any(near), item


# Readers that do not see the sentence that decides


def blind(item):
    """Source and target sentences without the focus and the sentence that determines it.

    In `structure`, only the focus is missing, because a reader that finds the antecedent also excludes the distractor.
    """
    start = None if item["phenomenon"] == "structure" else len(item["src"]) - 1 - item["distance"]
    return [
        [sentence for number, sentence in enumerate(sentences[:-1]) if number != start]
        for sentences in (item["src"], item["candidates"][0])
    ]


@pytest.mark.parametrize("name", SUITES["flat"])
def test_grouped_documents_differ_in_one_sentence(name):
    """A reader of these sentences is therefore right in half of the items."""
    for first, second in groups_of(items_of("flat", name)):
        assert blind(first) == blind(second)


def genders_in(sentences):
    return [GENDERS[word] for text in sentences for word in split_words(text) if word in GENDERS]


def own_words(item):
    """Words in only one of the candidates."""
    one, other = (split_words(candidate[-1]) for candidate in item["candidates"])
    return [word for word in one if word not in other], [word for word in other if word not in one]


def seen(item):
    """Frequency of the candidates' own words in the other German sentences."""
    words = [word for text in blind(item)[1] for word in split_words(text)]
    return [sum(map(words.count, forms)) for forms in own_words(item)]


def last_seen(item):
    words = [word for text in blind(item)[1] for word in split_words(text)]
    return [max((n for n, word in enumerate(words) if word in forms), default=-1) for forms in own_words(item)]


def of_nouns(item):
    """Frequency of nouns with the candidates' gender in the other sentences."""
    genders = genders_in(blind(item)[0])
    return [genders.count(gender_of(candidate[-1])) for candidate in item["candidates"]]


def of_last_noun(item):
    genders = genders_in(blind(item)[0])
    return [float(genders[-1:] == [gender_of(candidate[-1])]) for candidate in item["candidates"]]


BLIND_RULES = {
    "the first": lambda item: [1, 0],
    "the longer": lambda item: [len(candidate[-1]) for candidate in item["candidates"]],
    "the first in the alphabet": lambda item: [-ord(min(forms, default="z")[0]) for forms in own_words(item)],
    "seen most often": seen,
    "seen last": last_seen,
    "the gender of most nouns": of_nouns,
    "the gender of the last noun": of_last_noun,
}
BLIND_RULES |= {
    f"not {name}": partial(lambda rule, item: [-score for score in rule(item)], rule)
    for name, rule in BLIND_RULES.items()
}


SEEDS = (1, 2, 3, 4, 5)


@cache
def of_seed(documents, name, seed):
    settings = SETTINGS[documents].model_copy(update={"seed": seed, "n_suite_items": 600})
    return [item for item, _ in build_suite(name, settings)]


def within_chance(points, n_groups):
    """True if all group means are consistent with a fair coin. Z = 3.5 is for a few hundred comparisons."""
    return abs(sum(points) / len(points) - 0.5) <= 3.5 * 0.5 / n_groups**0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("documents", "name"), [(documents, name) for documents in SUITES for name in SUITES[documents]]
)
def test_blind_rules_are_right_in_half(documents, name, seed):
    items = of_seed(documents, name, seed)
    for rule, scores_of in BLIND_RULES.items():
        if "noun" in rule and name not in ("pronoun", "structure"):
            continue
        scores = [scores_of(item) for item in items]
        points = [
            0.5 if pair[0] == pair[1] else float(pair[item["correct"]] > pair[1 - item["correct"]])
            for item, pair in zip(items, scores, strict=True)
        ]
        assert within_chance(points, len(groups_of(items))), (rule, sum(points) / len(points))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("documents", "name"), [(documents, name) for documents in SUITES for name in SUITES[documents]]
)
def test_blind_classifier_is_right_in_half(documents, name):
    """Naive Bayes over the words of the other sentences, trained on the items of four out of five seeds in turn."""
    labeled = [
        [
            (set(split_words(" ".join(chain(*blind(item))))), [*map(tuple, own_words(item))], item["correct"])
            for item in items
        ]
        for items in (of_seed(documents, name, seed) for seed in SEEDS)
    ]
    points = []
    for held_out in labeled:
        counts, totals = defaultdict(Counter), Counter()
        for words, candidates, correct in (row for rows in labeled if rows is not held_out for row in rows):
            counts[candidates[correct]].update(words)
            totals[candidates[correct]] += 1
        for words, candidates, correct in held_out:
            scores = [
                math.log(totals[each] + 1)
                + sum(math.log((counts[each][word] + 1) / (totals[each] + 2)) for word in words)
                for each in candidates
            ]
            points.append(0.5 if scores[0] == scores[1] else float(scores[correct] > scores[1 - correct]))
    assert within_chance(points, len(points) // 2), sum(points) / len(points)


def test_earlier_sentences_hide_the_focus():
    for item in items_of("flat", "deixis"):
        assert not re.search(r"\b[Yy]our?\b", " ".join(item["src"][:-1]))
    for item in items_of("flat", "ellipsis"):
        verbs = {p.english for p in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE)}
        earlier = {word for text in item["src"][:-2] for word in split_words(text)} & verbs
        assert earlier, "the other verb occurs earlier in the document"


def test_kinds_of_structure():
    kinds = Counter(item["kind"] for item in items_of("nested", "structure"))
    assert kinds == {"shallow": 50, "inner": 100, "deep": 150}


# Rules that name a segment from its place, without pairing markers. `r` is the reading without the focus sentence, and
# `pair` the genders of the two candidates.


def last(values):
    return values[-1] if values else None


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
def test_no_shortcut_is_better_than_chance(rule):
    points = []
    for item in items_of("nested", "structure"):
        reading = read(item["src"])
        pair = [gender_of(candidate[-1]) for candidate in item["candidates"]]
        named = SHORTCUTS[rule](reading, pair)
        gender = None if named is None else reading.topics[named]
        points.append(float(gender == pair[item["correct"]]) if gender in pair else 0.5)
    accuracy = sum(points) / len(points)
    # The others are even over all documents. The standard error of 150 groups is 0.04.
    assert accuracy == 0.5 if rule in EXACTLY_EVEN else accuracy <= 0.6
