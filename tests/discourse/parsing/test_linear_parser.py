"""The linear parser: features, classifiers, training, parsing."""

import math
import random

import numpy as np
import pytest
from parsing_fixtures import StandInSegmenter, check_constrained_trees, check_ugly_documents, coarse, free_scores

from docmt.discourse.documents import DiscourseDocument, edus_from_starts
from docmt.discourse.parsing.linear_classifier import Instances, LinearClassifier, fit
from docmt.discourse.parsing.linear_parser import (
    LEVELS,
    LexicalProfile,
    SegmenterSyntax,
    no_syntax,
    state_features,
    train_linear,
)
from docmt.discourse.parsing.model_file import TrainedParser, load_trained_parser, save_parser
from docmt.discourse.parsing.settings import LinearSettings, ParserSettings
from docmt.discourse.parsing.training import training_tree
from docmt.discourse.parsing.transitions import SHIFT, Constituent, State
from docmt.discourse.syntax import SentenceSyntax

SETTINGS = LinearSettings(min_count=1, paragraph_dropout=0.0, cost=20.0)


def train(documents, settings=SETTINGS, syntax=no_syntax, seed=1):
    trees = [training_tree(document, coarse) for document in documents]
    return train_linear(documents, trees, syntax(documents), settings, seed=seed)


@pytest.fixture(scope="module")
def parser(documents):
    return train(documents)


def test_it_learns_its_training_documents(parser, documents):
    assert free_scores(parser, documents)["F"] > 75
    check_constrained_trees(parser, documents)


def test_one_by_one_is_all_together(parser, documents):
    assert [parser.parse(document).tree for document in documents] == [
        document.tree for document in parser.parse_batch(documents)
    ]


def test_the_same_seed_gives_the_same_weights(documents):
    settings = LinearSettings(paragraph_dropout=0.5)
    first, second = train(documents, settings), train(documents, settings)
    assert first.actions.rows == second.actions.rows
    assert (first.actions.weights_FC == second.actions.weights_FC).all()


def test_ugly_documents(parser):
    check_ugly_documents(parser, n_long=300)


def test_a_level_without_training_nodes_borrows_a_classifier(documents):
    bare = [DiscourseDocument(d.id, d.sentences, d.edus, d.tree) for d in documents]
    parser = train(bare)
    assert set(parser.relations) == set(LEVELS.values())
    assert parser.relations["document"] is parser.relations["text"]
    parser.parse_batch(documents)


def test_syntax_makes_features(documents):
    parser = train(documents, syntax=SegmenterSyntax(StandInSegmenter()))
    parser.syntax = SegmenterSyntax(StandInSegmenter())
    assert any("pos=" in name for name in parser.actions.rows)
    assert len(parser.parse_batch(documents)) == len(documents)


def test_all_words_of_the_nucleus_are_features_if_so_set(documents):
    parser = train(documents, SETTINGS.model_copy(update={"words": "nucleus"}))
    document = DiscourseDocument("d", (("Ab", "c", "de"),), edus_from_starts([[2]], [3]))
    state = State(2)
    state.apply(SHIFT)
    plain, with_nucleus = (
        set(state_features(LexicalProfile(document, None, reads_nucleus=reads), state)) for reads in (False, True)
    )
    assert {feature for feature in with_nucleus - plain if "|" not in feature} == {
        *("s1 nucleus word=ab", "s1 nucleus word=c", "q1 nucleus word=de"),
        *("s1 first characters=a", "s1 first characters=ab", "s1 last characters=c", "s1 last characters=bc"),
        *("q1 first characters=d", "q1 first characters=de", "q1 last characters=e", "q1 last characters=de"),
    }
    assert plain < with_nucleus
    rows = {name for classifier in (parser.actions, *parser.relations.values()) for name in classifier.rows}
    assert any("nucleus word=" in name for name in rows)
    check_constrained_trees(parser, documents)


def test_a_parser_of_former_settings_keeps_its_fingerprint_and_its_features(documents, tmp_path):
    assert "words" not in LinearSettings().model_dump(mode="json")
    assert LinearSettings(words="nucleus").model_dump(mode="json")["words"] == "nucleus"
    for words in ("edges", "nucleus"):
        linear = LinearSettings(min_count=1, words=words)
        parser = train(documents, linear)
        settings = ParserSettings(kind="linear", linear=linear)
        save_parser(tmp_path / "parser.pt", TrainedParser(parser, settings))
        loaded = load_trained_parser(tmp_path / "parser.pt").parser
        assert loaded.reads_nucleus == (words == "nucleus")
        assert [loaded.parse(document).tree for document in documents[:3]] == [
            parser.parse(document).tree for document in documents[:3]
        ]


def test_links_between_spans():
    document = DiscourseDocument("d", (("a", "b", "c"),), edus_from_starts([[1, 2]], [3]))
    syntax = (SentenceSyntax(("A", "B", "C"), (2, 0, -1), ("x", "y", "root")),)
    profile = LexicalProfile(document, syntax)
    a, b, c = (Constituent(edu, edu, edu) for edu in range(3))
    assert (profile.link(a, c), profile.link(a, b), profile.link(b, c)) == ("left x", "right y", "none")
    assert profile.outward[2] == ["word=c", "pos=C", "label=root"]
    state = State(3)
    for _ in range(3):
        state.apply(SHIFT)
    features = state_features(profile, state)
    assert "s1 first word=c" in features
    assert "s2 s1 link=none" in features


def test_matrix_is_numbered_by_sorted_names_and_counts_are_normalized():
    instances = Instances()
    instances.add(["z", "a", "a"], "one")
    instances.add(["z", "m", "rare"], "two")
    matrix, names = instances.matrix(min_count=1)
    assert names == ["a", "m", "rare", "z"]
    assert matrix.toarray() == pytest.approx(np.array([[2, 0, 0, 1], [0, 1, 1, 1]]) / np.sqrt([[5], [3]]))
    common, names = instances.matrix(min_count=2)
    assert names == ["z"]
    assert common.toarray() == pytest.approx(np.array([[1 / math.sqrt(5)], [1 / math.sqrt(3)]]))


def test_scores_of_the_classifier_are_those_of_the_matrix():
    chance = random.Random(0)
    instances, rows = Instances(), []
    for _ in range(60):
        label = chance.choice("abc")
        rows.append([f"key {label}"] * 3 + [f"f{chance.randint(0, 9)}" for _ in range(4)])
        instances.add(rows[-1], label)
    classifier = fit(instances, SETTINGS)
    matrix, names = instances.matrix(min_count=1)
    weights = np.zeros((len(names), 3))
    for name, row in classifier.rows.items():
        weights[names.index(name)] = classifier.weights_FC[row]
    expected = matrix @ weights + classifier.bias_C
    assert np.array([classifier.scores(row) for row in rows]) == pytest.approx(expected, abs=1e-5)
    right = sum(classifier.classes[s.argmax()] == label for s, label in zip(expected, instances.labels, strict=True))
    assert right > 50


@pytest.mark.parametrize("labels", [["only"], ["no", "yes"]])
def test_one_class_and_two_classes(labels):
    instances = Instances()
    for number in range(10):
        instances.add([f"f{number % len(labels)}"], labels[number % len(labels)])
    classifier = fit(instances, SETTINGS)
    assert classifier.classes == tuple(labels)
    for number, label in enumerate(labels):
        assert classifier.classes[classifier.scores([f"f{number}"]).argmax()] == label


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not match"):
        LinearClassifier.from_dict({**fit(two_classes(), SETTINGS).to_dict(), "features": ["a", "b", "c", "d", "e"]})


def two_classes():
    instances = Instances()
    for number in range(6):
        instances.add([f"f{number % 2}"], f"class {number % 2}")
    return instances
