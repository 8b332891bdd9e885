"""The contrastive suites of the controlled corpus: only context decides, and nothing else helps."""

import hashlib
import re
from collections import Counter, defaultdict

import pytest

from docmt.corpora.controlled import lexicon
from docmt.corpora.controlled.discourse import split_words
from docmt.corpora.controlled.generator import generate_corpus
from docmt.corpora.controlled.german import PRONOUN
from docmt.corpora.controlled.settings import ControlledSettings
from docmt.corpora.controlled.suites import BUILDERS, MAX_DISTANCE, build_suite
from docmt.files import read_jsonl

SETTINGS = ControlledSettings(seed=7, n_train_documents=5, n_dev_documents=2, n_test_documents=2, n_suite_items=240)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("controlled")
    generate_corpus(SETTINGS, folder)
    return folder


@pytest.fixture(scope="module", params=list(BUILDERS))
def suite(request, corpus):
    return request.param, read_jsonl(corpus / "suites" / f"{request.param}.jsonl")


def test_suites_have_discourse_too(corpus):
    for name in BUILDERS:
        items = read_jsonl(corpus / "suites" / f"{name}.jsonl")
        discourse = read_jsonl(corpus / "suites" / "discourse" / f"{name}.jsonl")
        assert [row["document"] for row in discourse] == [item["id"] for item in items]
        assert all(len(row["sentences"]) == len(item["src"]) for row, item in zip(discourse, items, strict=True))


def test_items_keep_the_contract(suite):
    name, items = suite
    assert len(items) == SETTINGS.n_suite_items == len({item["id"] for item in items})
    for item in items:
        assert item["phenomenon"] == name
        assert len(item["candidates"]) == 2
        assert item["correct"] in (0, 1)
        assert all(len(candidate) == len(item["src"]) for candidate in item["candidates"])
        differing = [k for k, pair in enumerate(zip(*item["candidates"], strict=True)) if len(set(pair)) > 1]
        assert differing == [item["sentence"]] == [len(item["src"]) - 1]
        assert SETTINGS.min_sentences <= len(item["src"]) <= SETTINGS.max_sentences


def sentence_score(src, tgt, salt):
    """An arbitrary preference of a model that sees one sentence pair at a time."""
    digest = hashlib.sha256(f"{salt}|{src}|{tgt}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@pytest.mark.parametrize("salt", range(5))
def test_a_sentence_model_scores_exactly_one_half(suite, salt):
    _, items = suite
    right = 0
    for item in items:
        # Only the focus sentence differs, so sums over all sentences compare as its scores do.
        scores = [
            sentence_score(item["src"][item["sentence"]], candidate[item["sentence"]], salt)
            for candidate in item["candidates"]
        ]
        right += scores[item["correct"]] > scores[1 - item["correct"]]
    assert right * 2 == len(items)


def test_groups_are_balanced(suite):
    _, items = suite
    groups = defaultdict(list)
    for item in items:
        groups[item["group"]].append(item)
    for members in groups.values():
        assert len({(item["src"][-1], *(c[-1] for c in item["candidates"])) for item in members}) == 1
        assert Counter(item["correct"] for item in members) == {0: len(members) / 2, 1: len(members) / 2}


def test_distances_are_even(suite):
    name, items = suite
    counts = Counter(item["distance"] for item in items)
    assert set(counts) == set(range(1, MAX_DISTANCE[name] + 1))
    assert max(counts.values()) - min(counts.values()) <= 6


SUBJECT_OR_OBJECT = {
    re.compile(r"\b" + predicate.english.replace("{it}", "it") + r"\b"): name
    for name, group in lexicon.CLASSES.items()
    for predicate in (*group.subjects, *group.objects)
}


def decide_pronoun(item):
    """An oracle that reads the English and a dictionary: the last noun of the class that the predicate selects."""
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
    return index, PRONOUN[("nom", "acc")[case]][gender]


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
        found = [
            (k, topics[t[0].lower() + t[1:-1]]) for k, t in enumerate(item["src"]) if t[0].lower() + t[1:-1] in topics
        ]
        return found[-1]
    entry = next(entry for word, entry in lexicon.SYNONYMS.items() if word.lower() in focus.lower())
    uses = [k for k, text in enumerate(item["src"][:-1]) if entry.english.lower() in text.lower()]
    words = split_words(item["candidates"][0][uses[-1]])
    return uses[-1], next(rendering for rendering in entry.renderings if rendering in words)


def decide_ellipsis(item):
    verbs = {p.english: p.verb for p in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE)}
    words = split_words(item["src"][-2])
    return len(item["src"]) - 2, next(verbs[word] for word in words if word in verbs)


ORACLES = {
    "pronoun": decide_pronoun,
    "deixis": decide_deixis,
    "cohesion": decide_cohesion,
    "ellipsis": decide_ellipsis,
}


def test_an_oracle_with_context_is_always_right_and_distances_are_true(suite):
    name, items = suite
    for item in items:
        index, answer = ORACLES[name](item)
        flags = re.IGNORECASE if name == "pronoun" else 0
        fits = [bool(re.search(rf"\b{answer}\b", candidate[-1], flags)) for candidate in item["candidates"]]
        assert fits[item["correct"]], item
        assert not fits[1 - item["correct"]], item
        assert item["distance"] == len(item["src"]) - 1 - index


def test_pronoun_items_have_a_distractor_of_another_gender(corpus):
    genders = {
        noun.english: gender
        for group in lexicon.CLASSES.values()
        for gender, nouns in group.nouns.items()
        for noun in nouns
    }
    for item in read_jsonl(corpus / "suites" / "pronoun.jsonl"):
        start = len(item["src"]) - 1 - item["distance"]
        words = [[word for word in split_words(text) if word in genders] for text in item["src"]]
        own = genders[words[start][0]]
        near = words[start + 1 :] if item["distance"] > 1 else words[start - 1 : start]
        assert any(genders[word] != own for row in near for word in row), item


def test_earlier_sentences_of_a_suite_keep_the_focus_secret(corpus):
    for item in read_jsonl(corpus / "suites" / "deixis.jsonl"):
        assert not re.search(r"\b[Yy]our?\b", " ".join(item["src"][:-1]))
    for item in read_jsonl(corpus / "suites" / "ellipsis.jsonl"):
        verbs = {p.english for p in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE)}
        earlier = {word for text in item["src"][:-2] for word in split_words(text)} & verbs
        assert earlier, "the other verb occurs earlier in the document"


def test_suites_do_not_change_with_the_corpus(suite):
    name, items = suite
    other = SETTINGS.model_copy(update={"n_train_documents": 3})
    assert [item for item, _ in build_suite(name, other)] == items
