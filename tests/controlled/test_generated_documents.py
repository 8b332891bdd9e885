"""Documents and gold discourse in the controlled corpus."""

import json
import re
from collections import Counter, defaultdict

import pytest

from docmt.controlled import lexicon
from docmt.controlled.generator import generate_corpus, generate_split, main_edus, measure_neighborhood, split_words
from docmt.controlled.settings import SegmentsSettings, SelectionSettings, load_settings
from docmt.controlled.suites import SUITES
from docmt.corpora.documents import read_documents
from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits
from docmt.errors import UserError
from docmt.files import read_json, read_jsonl

CLASS_OF_NOUN = {
    noun.english: name for name, group in lexicon.CLASSES.items() for nouns in group.nouns.values() for noun in nouns
}
SIZE = {"seed": 7, "n_train_documents": 300, "n_dev_documents": 20, "n_test_documents": 20, "n_suite_items": 60}
SETTINGS = {
    "flat": SelectionSettings.model_validate({"generator": "flat", **SIZE}),
    "nested": SegmentsSettings.model_validate({"generator": "nested", **SIZE}),
}
SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module", params=SETTINGS)
def settings(request):
    return SETTINGS[request.param]


@pytest.fixture(scope="module")
def corpus(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("controlled")
    generate_corpus(settings, folder)
    return folder


@pytest.fixture(scope="module")
def train(settings):
    return generate_split(settings, "train", seen=set())


@pytest.fixture(scope="module")
def selection():
    return generate_split(SETTINGS["flat"], "train", seen=set())


def read_all(corpus, split):
    return read_documents(corpus / split, languages=["en", "de"])


# Files


@pytest.mark.slow
def test_seed_decides_and_size_does_not(settings, corpus, tmp_path):
    again, small, other = tmp_path / "again", tmp_path / "small", tmp_path / "other"
    generate_corpus(settings, again)
    generate_corpus(settings.model_copy(update={"n_train_documents": 11}), small)
    generate_corpus(settings.model_copy(update={"seed": 8, "n_train_documents": 5}), other)
    names = sorted(path.relative_to(corpus) for path in corpus.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    for name in names:
        if "manifest" in name.name:
            continue
        assert (corpus / name).read_bytes() == (again / name).read_bytes(), name
        if "train" not in name.name:
            assert (corpus / name).read_bytes() == (small / name).read_bytes(), name
    start = (small / "train.en").read_text(encoding="utf-8")
    assert (corpus / "train.en").read_text(encoding="utf-8").startswith(start)
    assert (corpus / "dev.en").read_bytes() != (other / "dev.en").read_bytes()


def test_documents_have_the_right_number_and_length(settings, corpus):
    for split in SPLITS:
        documents = read_all(corpus, split)
        assert len(documents) == getattr(settings, f"n_{split}_documents")
        assert all(settings.min_sentences <= len(document) <= settings.max_sentences for document in documents)
    if settings.generator == "flat":
        assert 9 < sum(map(len, documents)) / len(documents) < 12


def test_no_document_is_duplicated(settings, corpus):
    documents = [document.src for split in SPLITS for document in read_all(corpus, split)]
    assert len(set(documents)) == len(documents)
    suites = SUITES[settings.generator]
    items = {tuple(item["src"]) for name in suites for item in read_jsonl(corpus / "suites" / f"{name}.jsonl")}
    assert not items & set(documents)


def test_suites_have_discourse_too(settings, corpus):
    for name in SUITES[settings.generator]:
        items = read_jsonl(corpus / "suites" / f"{name}.jsonl")
        discourse = read_jsonl(corpus / "suites" / "discourse" / f"{name}.jsonl")
        assert [row["document"] for row in discourse] == [item["id"] for item in items]
        assert all(len(row["sentences"]) == len(item["src"]) for row, item in zip(discourse, items, strict=True))


def test_manifest_counts_what_the_files_hold(settings, corpus):
    manifest = read_json(corpus / "manifest.json")
    assert manifest["settings"] == settings.model_dump()
    assert manifest["provenance"]["fingerprint"]
    for split in SPLITS:
        documents, facts = read_all(corpus, split), manifest["splits"][split]
        assert facts["n_documents"] == len(documents)
        assert facts["n_sentences"] == sum(map(len, documents)) == sum(facts["sentences_by_kind"].values())
        words = {word for document in documents for text in document.src for word in split_words(text)}
        assert facts["n_word_types"]["en"] == len(words) < 500
        for name, count in facts["sentences_by_phenomenon"].items():
            assert sum(facts["distances"][name].values()) == count
    for name in SUITES[settings.generator]:
        assert manifest["suites"][name]["n_items"] == settings.n_suite_items


# What context decides


def test_one_rendering_unless_context_decides(train):
    renderings = defaultdict(set)
    for item in train:
        for placed in item.placed:
            if placed.phenomenon is None and placed.kind != "first rendering":
                renderings[placed.sentence.src].add(placed.tgt)
    assert all(len(targets) == 1 for targets in renderings.values())


def test_genders_and_addresses_are_even_given_the_sentence(train):
    genders, addresses, renderings = Counter(), Counter(), Counter()
    for item in train:
        for placed in item.placed:
            genders[placed.variant] += placed.phenomenon == "pronoun"
            addresses[placed.variant] += placed.phenomenon == "deixis"
            renderings[placed.variant] += placed.kind == "first rendering"
    assert all(0.28 < genders[gender] / genders.total() < 0.39 for gender in "mfn")
    assert 0.43 < addresses["du"] / addresses.total() < 0.57
    assert 0.4 < renderings["0"] / renderings.total() < 0.6


def test_each_document_is_dense(selection):
    for item in selection:
        kinds = Counter(placed.kind for placed in item.placed)
        assert kinds["pronoun"] >= SETTINGS["flat"].min_pronouns
        assert kinds["deixis"] >= SETTINGS["flat"].min_deictic
        assert kinds["greeting"] == 1
    total = Counter(placed.phenomenon for item in selection for placed in item.placed)
    assert min(total[name] for name in SUITES["flat"]) > 0.3 * len(selection)


def test_deciding_sentence_comes_before_and_pronouns_are_near(selection):
    for item in selection:
        for index, placed in enumerate(item.placed):
            if placed.phenomenon:
                assert placed.antecedent < index
            if placed.phenomenon == "pronoun":
                assert index - placed.antecedent <= 5
            if placed.phenomenon == "ellipsis":
                assert index - placed.antecedent == 1


def test_a_document_has_one_noun_per_class(selection):
    for item in selection:
        nouns = defaultdict(set)
        for word in (word for text in item.document.src for word in split_words(text)):
            if word in CLASS_OF_NOUN:
                nouns[CLASS_OF_NOUN[word]].add(word)
        assert all(len(words) == 1 for words in nouns.values())


# Discourse


def test_sentences_are_subtrees(train):
    for item in train:
        document = DiscourseDocument.from_json(item.discourse)  # which checks EDUs, tree and arcs
        assert document.sentences == tuple(tuple(split_words(text)) for text in item.document.src)
        assert all(edu.start < edu.end for edu in document.edus)
        spans = {(node.first, node.last) for node in document.tree.postorder()}
        units = DocumentUnits(document).sentences
        assert set(zip(units.first, units.last, strict=True)) <= spans
        assert {len(node.children) for node in document.tree.postorder()} == {0, 2}
    assert any(len(item.discourse["edus"]) > len(item.document) for item in train)


def head_of(node):
    """Head of a constituent, along the leftmost nuclei."""
    while node.children:
        node = node.children[node.nuclearity.index("N")]
    return node.first


def test_dependencies_are_the_conversion_of_the_tree(train):
    for item in train:
        document = DiscourseDocument.from_json(item.discourse)
        expected = {head_of(document.tree): (-1, "root")}
        for node in document.tree.postorder():
            for child in node.children:
                if head_of(child) != head_of(node):
                    expected[head_of(child)] = (head_of(node), node.relation)
        arcs = document.arcs
        assert list(zip(arcs.heads, arcs.relations, strict=True)) == [expected[k] for k in range(len(expected))]


def test_antecedents_are_tree_neighbors(selection):
    measured = measure_neighborhood((item.placed, item.discourse) for item in selection)
    assert measured["n"] > 500
    assert measured["antecedent_is_tree_neighbor"] > 0.85
    assert measured["antecedent_is_text_neighbor"] < 0.3


def test_nouns_and_pronouns_are_in_the_main_edu(selection):
    for item in selection:
        main = main_edus(item.discourse, item.placed)
        for index, placed in enumerate(item.placed):
            edu = item.discourse["edus"][main[index]]
            words = item.discourse["sentences"][index][edu["start"] : edu["end"]]
            if placed.kind == "introduction":
                assert set(words) & set(CLASS_OF_NOUN)
            if placed.kind == "pronoun":
                assert {"it", "It"} & set(words)


# Settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_sentences": 12, "max_sentences": 11}, "min_sentences 12 is above max_sentences 11"),
        ({"generator": "nested", "min_sentences": 50}, "min_sentences 50 is above max_sentences 40"),
        ({"min_sentences": 6, "min_pronouns": 4}, "min_sentences 6 is too small: min_pronouns 4 and min_deictic 2"),
        ({"min_sentences": 14, "min_pronouns": 6, "min_deictic": 6}, "require 15"),
        ({"max_sentences": 9}, "max_sentences"),
        ({"n_suite_items": 100}, "n_suite_items"),
        ({"n_train_documents": 0}, "n_train_documents"),
        ({"n_train_document": 10}, "did you mean 'n_train_documents'"),
        ({"weights": {"pronouns": 1.0}}, "did you mean 'pronoun'"),
        ({"generator": "nested", "weights": {"closes": 1.0}}, "weights.closes: unknown key; did you mean 'close'?"),
        ({"weights": {"pronoun": 0.0}}, "weights.pronoun"),
        ({"generator": "nested", "weights": {"ellipsis": 0.0}}, "weights.ellipsis"),  # every suite needs items
        ({"seed": "one"}, "seed"),
        ({"generator": "segment"}, "corpora.controlled.generator: no generator 'segment'; known: flat, nested"),
        ({"generator": "nested", "min_pronouns": 2}, "corpora.controlled.min_pronouns: unknown key"),
        ({"n_deictic": 1}, "corpora.controlled.n_deictic: unknown key"),
        ([], "corpora.controlled: must be a mapping"),
    ],
)
def test_wrong_settings_are_refused(values, message):
    if isinstance(values, dict):
        values = {"generator": "flat"} | values
    with pytest.raises(UserError) as caught:
        load_settings(json.dumps(values))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_generator_must_be_named():
    with pytest.raises(UserError, match=r"corpora\.controlled\.generator: this key is missing"):
        load_settings('{"seed": 1}')


@pytest.mark.parametrize(
    "values",
    [
        {"min_sentences": 10, "max_sentences": 10},
        {"min_sentences": 30, "max_sentences": 40},
        {"min_sentences": 4, "min_pronouns": 1, "min_deictic": 1},
        {"min_pronouns": 0, "min_deictic": 0},
        {"weights": {"ambiguous": 0.0, "consistent": 0.0, "ellipsis": 0.0, "filler": 0.0}},
        {"min_sentences": 15, "min_pronouns": 6, "min_deictic": 6},
        {"min_sentences": 9, "max_sentences": 10, "min_pronouns": 5, "min_deictic": 2},
        {"min_sentences": 32, "max_sentences": 40, "min_pronouns": 20, "min_deictic": 7},
    ],
)
def test_extreme_settings_still_make_whole_corpora(values, tmp_path):
    sizes = {"n_train_documents": 30, "n_dev_documents": 2, "n_test_documents": 2, "n_suite_items": 60}
    settings = SelectionSettings.model_validate({"generator": "flat", **sizes, **values})
    generate_corpus(settings, tmp_path)
    for document in read_all(tmp_path, "train"):
        assert settings.min_sentences <= len(document) <= settings.max_sentences
        text = " ".join(document.src)
        assert len(re.findall(r"\b[Ii]t\b", text)) >= settings.min_pronouns
        assert len(re.findall(r"\b[Yy]our?\b", text)) >= settings.min_deictic
    assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["suites"]["pronoun"]["n_items"] == 60


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_introductions_with_two_nouns(share):
    settings = SETTINGS["flat"].model_copy(update={"paired_introductions": share})
    documents = [
        [" and " in item.sentence.src for item in document.placed if item.kind == "introduction"]
        for document in generate_split(settings, "train", seen=set())
    ]
    later = [has_two for introductions in documents for has_two in introductions[1:]]
    assert {introductions[0] for introductions in documents} == {share > 0}
    assert sum(later) / len(later) == pytest.approx(share, abs=0.08)


def test_more_documents_than_exist_are_refused():
    settings = SETTINGS["flat"].model_copy(update={"n_dev_documents": 5})

    class Everything(set):
        def __contains__(self, _):
            return True

    with pytest.raises(UserError, match="reduce the number of documents"):
        generate_split(settings, "dev", seen=Everything())
