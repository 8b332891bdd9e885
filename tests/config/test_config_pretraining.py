"""Datasets with sentence pairs and monolingual documents for pre-training."""

import pytest
from smoke_study import StudyView, smoke_study

from docmt.config.plan import Plan

NOVELS = {
    "languages": ["en"],
    "format": {"reader": "blank_lines"},
    "splits": {"all": {"files": {"en": "novels.txt"}}},
}
TEXT = {"sentences": ["smoke/train"], "monolingual": ["novels/all", "smoke/train", "bible-enzh/train"]}


def study(**dataset):
    return smoke_study({"corpora": {"custom": {"novels": NOVELS}}, "datasets": {"smoke": dataset}})


@pytest.fixture(autouse=True)
def _own_files(tmp_path, monkeypatch):
    """A user file in the study folder. Fingerprints depend on its content."""
    (tmp_path / "novels.txt").write_text("One .\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan():
    return Plan(study(**TEXT).config)


def test_splits_for_pretraining_have_their_languages(plan):
    row = plan.config.datasets["smoke"]
    assert list(row.all_parts()) == ["train", "dev", "test_smoke", "sentences", "monolingual"]
    assert list(row.parallel_parts()) == ["train", "dev", "test_smoke", "sentences"]
    assert row.part_languages("monolingual") == ("en",)
    assert row.part_languages("sentences") == ("en", "de")
    assert row.learned_on("en") == ["train", "sentences", "monolingual"]
    assert row.learned_on("de") == ["train", "sentences"]
    assert "monolingual" in plan.split_pattern().split("|")


def test_text_is_learned_on_all_documents(plan):
    view = StudyView(plan.config)
    folder = "results/smoke/text"
    assert view.codes("smoke").input_files("inputs") == [
        f"{folder}/train.true.en",
        f"{folder}/sentences.true.en",
        f"{folder}/monolingual.true.en",
        f"{folder}/train.true.de",
        f"{folder}/sentences.true.de",
    ]
    instances = view.instances("smoke", "documents", "monolingual")
    assert instances.input_files("texts") == [f"{folder}/monolingual.bpe.en"]
    vocabulary = view.vocabulary("smoke")
    assert f"{folder}/monolingual.bpe.en" in vocabulary.input_files()
    assert f"{folder}/monolingual.bpe.de" not in vocabulary.input_files()
    assert vocabulary.params["tags"] == ["en", "de"]
    assert study().vocabulary("smoke").params["tags"] == []


def test_monolingual_documents_have_one_language(plan):
    split = StudyView(plan.config).dataset_split("smoke", "monolingual")
    assert split.params["inputs"] == [
        "results/corpora/novels/en/all",
        "results/corpora/smoke/en-de/train",
        "results/corpora/bible-enzh/en-zh/train",
    ]
    assert split.input_files()[:2] == [
        "results/corpora/novels/en/all.en",
        "results/corpora/novels/en/all.documents.tsv",
    ]
    assert split.files == [
        "results/smoke/corpora/en/monolingual.en",
        "results/smoke/corpora/en/monolingual.documents.tsv",
    ]
    counts = [artifact.file for artifact in StudyView(plan.config).text_counts()]
    assert "results/corpora/novels/en/all.counts.json" in counts
    assert not any("corpora/smoke/" in file for file in counts)


def test_pretraining_pairs_count_for_overlap(plan):
    folder = "results/smoke/corpora/en-de"
    overlap = StudyView(plan.config).overlap("smoke")
    assert overlap.params["train"] == [f"{folder}/train", f"{folder}/sentences"]
    assert f"{folder}/sentences.documents.tsv" in overlap.input_files()
    without = study(monolingual=["smoke/train"]).overlap("smoke")
    assert without.params["train"] == [f"{folder}/train"]
    assert without.fingerprint == study().overlap("smoke").fingerprint
    assert without.fingerprint != overlap.fingerprint


def test_the_target_side_can_be_monolingual():
    text = {"monolingual": ["smoke/train"], "monolingual_lang": "de"}
    row = study(**text).config.datasets["smoke"]
    assert row.learned_on("de") == ["train", "monolingual"]
    assert row.learned_on("en") == ["train"]


def test_pretraining_instances_belong_to_a_row():
    sections = {"corpora": {"custom": {"novels": NOVELS}}, "datasets": {"smoke": TEXT}}
    sections["systems"] = {"g_transformer_finetuned": {"training": {"tasks": ["pairs", "restoration"]}}}
    run = ("smoke", "g_transformer_finetuned", "1")
    view = smoke_study(sections)
    folder = "results/smoke/instances/documents"
    assert view.model(*run).input_files("pairs") == [f"{folder}/sentences/manifest.json"]
    assert view.model(*run).input_files("monolingual") == [f"{folder}/monolingual/manifest.json"]
    pairs = view.instances("smoke", "documents", "sentences")
    assert pairs.params["settings"].max_sentences == 1
    without = study().model(*run)
    assert without.input_files("pairs") == without.input_files("monolingual") == []


def test_other_training_text_changes_the_text_stage():
    plain, with_text = study(), study(**TEXT)
    assert fingerprints(plain)["split"] == fingerprints(with_text)["split"]
    for name in ("truecaser", "codes", "subwords", "instances"):
        assert fingerprints(plain)[name] != fingerprints(with_text)[name]


def fingerprints(view):
    artifacts = {
        "split": view.dataset_split("smoke", "train"),
        "tokens": view.tokens("smoke", "train", "en"),
        "truecaser": view.truecaser("smoke", "en"),
        "codes": view.codes("smoke"),
        "subwords": view.subwords("smoke", "train", "en"),
        "instances": view.instances("smoke", "documents", "train"),
    }
    return {name: artifact.fingerprint for name, artifact in artifacts.items()}


def test_monolingual_corpora_of_the_catalog():
    study(monolingual=["gigaword-en/train", "gum-texts/train"], sentences=["wmt14-ende/train_europarl"])
