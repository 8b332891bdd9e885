"""Documents with nested segments. The structure determines the meaning of `it`, and positions carry no clues."""

from collections import Counter

import numpy as np
import pytest
from segment_reading import GENDERS, gender_of, read

from docmt.controlled.generator import generate_split, split_words
from docmt.controlled.settings import SegmentsSettings

SETTINGS = SegmentsSettings(generator="nested", seed=7, n_train_documents=600)


@pytest.fixture(scope="module")
def train():
    return generate_split(SETTINGS, "train", seen=set())


@pytest.mark.slow
def test_greetings(train):
    for item in train:
        greetings = [index for index, placed in enumerate(item.placed) if placed.kind == "greeting"]
        assert len(greetings) == 1
        assert 1 <= greetings[0] <= 4


def test_pronoun_means_the_innermost_topic(train):
    n_pronouns = 0
    for item in train:
        reading = read(item.document.src)
        for index, placed in enumerate(item.placed):
            if placed.phenomenon == "pronoun":
                segment = reading.mentions[index]
                assert gender_of(placed.tgt) == reading.topics[segment]
                assert placed.antecedent == placed.parent == reading.openers[segment]
                n_pronouns += 1
            elif placed.kind in ("section", "digression"):
                assert reading.openers[reading.mentions[index]] == index
            else:
                assert reading.mentions[index] is None
    assert n_pronouns > 3 * len(train)


def test_topic_belongs_to_one_open_segment(train):
    for item in train:
        named = [word for text in item.document.src for word in split_words(text) if word in GENDERS]
        assert len(named[-12:]) == len(set(named[-12:]))


def test_no_place_in_a_document_betrays_a_phenomenon(train):
    """After the first point where all kinds are possible, frequencies are the same at the end as in the middle."""
    middle, end = Counter(), Counter()
    for item in train:
        kinds = [placed.phenomenon for placed in item.placed]
        middle.update(kinds[6:-4])
        end.update(kinds[-4:])
    for phenomenon in ("pronoun", "deixis", "ellipsis"):
        assert end[phenomenon] / end.total() == pytest.approx(middle[phenomenon] / middle.total(), abs=0.035)


def test_the_tree_attaches_each_sentence_to_its_parent(train):
    for item in train:
        first = {}
        for number, edu in enumerate(item.discourse["edus"]):
            first.setdefault(edu["sentence"], number)
        for index, placed in enumerate(item.placed):
            edu = item.discourse["edus"][first[index]]
            head = item.discourse["dependency"][first[index]]["head"]
            if edu["sentence"] != index or head == -1:
                assert index == 0
            elif item.discourse["edus"][head]["sentence"] != index:
                assert item.discourse["edus"][head]["sentence"] == placed.parent


def share_in_sight(discourse):
    """Proportion of word pairs in a document that RST attention connects: an EDU, its head, its children."""
    lengths = np.array([edu["end"] - edu["start"] for edu in discourse["edus"]])
    heads = np.array([arc["head"] for arc in discourse["dependency"]])
    sees, children = np.eye(len(lengths), dtype=bool), np.flatnonzero(heads >= 0)
    sees[children, heads[children]] = sees[heads[children], children] = True
    return lengths @ sees @ lengths / lengths.sum() ** 2


@pytest.mark.parametrize(("n_sentences", "n_tokens", "density"), [(70, 500, 0.045), (280, 2000, 0.011)])
def test_documents_can_be_long(n_sentences, n_tokens, density):
    values = {"min_sentences": n_sentences - 10, "max_sentences": n_sentences + 10, "n_train_documents": 20}
    documents = generate_split(SETTINGS.model_copy(update=values), "train", seen=set())
    words = sum(len(split_words(text)) for item in documents for text in item.document.src) / len(documents)
    assert words == pytest.approx(n_tokens, rel=0.15)
    assert np.mean([share_in_sight(item.discourse) for item in documents]) == pytest.approx(density, rel=0.25)
    for item in documents:
        read(item.document.src)
        shares = Counter(placed.phenomenon for placed in item.placed)
        assert shares["pronoun"] > 0.2 * len(item.placed)
