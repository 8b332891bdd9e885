"""Datasets with sentence pairs and monolingual documents for pre-training."""

from pathlib import Path

import pytest

from docmt.config.fingerprints import Fingerprints, Place
from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.plan import Plan
from docmt.errors import UserError

SMOKE = read_config_file(Path(__file__).parents[2] / "config/examples/smoke.yaml")
NOVELS = {
    "languages": ["en"],
    "format": {"reader": "blank_lines"},
    "splits": {"all": {"files": {"en": "novels.txt"}}},
}
TEXT = {"sentences": ["controlled/train"], "monolingual": ["novels/all", "controlled/train", "bible-enzh/train"]}


def values(**dataset):
    return merge(SMOKE, {"corpora": {"custom": {"novels": NOVELS}}, "datasets": {"controlled": dataset}})


@pytest.fixture
def plan():
    return Plan(load_config(values(**TEXT)))


def test_splits_for_pretraining_have_their_languages(plan):
    row = plan.config.datasets["controlled"]
    assert list(row.all_parts()) == ["train", "dev", "test_controlled", "sentences", "monolingual"]
    assert list(row.parallel_parts()) == ["train", "dev", "test_controlled", "sentences"]
    assert row.part_languages("monolingual") == ("en",)
    assert row.part_languages("sentences") == ("en", "de")
    assert row.learnt_on("en") == ["train", "sentences", "monolingual"]
    assert row.learnt_on("de") == [
        "train",
        "sentences",
    ]
    assert "monolingual" in plan.splits().split("|")
    assert "monolingual" not in plan.parallel_splits().split("|")


def test_text_is_learnt_on_parallel_and_monolingual_text_together(plan):
    place = Place(dataset="controlled")
    folder = "results/controlled/text"
    assert plan.text.truecased_train(place) == [
        f"{folder}/train.true.en",
        f"{folder}/sentences.true.en",
        f"{folder}/monolingual.true.en",
        f"{folder}/train.true.de",
        f"{folder}/sentences.true.de",
    ]
    assert plan.text.subwords_monolingual(place) == f"{folder}/monolingual.bpe.en"
    assert f"{folder}/monolingual.bpe.en" in plan.text.targets()
    assert f"{folder}/monolingual.bpe.de" not in plan.text.targets()
    assert (plan.text.tagged_datasets(), plan.text.tags(place)) == ("controlled", "en de")


def test_monolingual_documents_come_from_one_language_or_one_side(plan):
    place = Place(dataset="controlled", split="monolingual")
    assert plan.corpora.monolingual_members(place) == [
        "results/corpora/novels/en/all",
        "results/corpora/controlled/en-de/train",
        "results/corpora/bible-enzh/en-zh/train",
    ]
    assert plan.corpora.monolingual_member_files(place)[:2] == [
        "results/corpora/novels/en/all.en",
        "results/corpora/novels/en/all.documents.tsv",
    ]
    assert plan.corpora.files(place) == [
        "results/controlled/corpora/en/monolingual.en",
        "results/controlled/corpora/en/monolingual.documents.tsv",
    ]
    counts = plan.corpora.named_counts()
    assert counts["controlled/novels/all"] == "results/corpora/novels/en/all.counts.json"
    assert not any("controlled/controlled/" in name for name in counts)


def test_pairs_for_pretraining_count_for_the_overlap_with_tests(plan):
    place = Place(dataset="controlled")
    folder = "results/controlled/corpora/en-de"
    assert plan.corpora.train_prefixes(place) == f"{folder}/train {folder}/sentences"
    assert f"{folder}/sentences.documents.tsv" in plan.corpora.all_files(place)
    without = Plan(load_config(values(monolingual=["controlled/train"])))
    assert without.corpora.train_prefixes(place) == f"{folder}/train"
    assert without.fingerprints.overlap(place) == Plan(load_config(values())).fingerprints.overlap(place)
    assert without.fingerprints.overlap(place) != plan.fingerprints.overlap(place)


def test_the_target_side_can_be_monolingual():
    text = {"monolingual": ["controlled/train"], "monolingual_lang": "de"}
    row = load_config(values(**text)).datasets["controlled"]
    assert row.learnt_on("de") == ["train", "monolingual"]
    assert row.learnt_on("en") == ["train"]


def test_instances_for_pretraining_belong_to_the_segmentation_of_a_system():
    tasks = {"systems": {"g_transformer_finetuned": {"training": {"tasks": ["pairs", "restoration"]}}}}
    plan = Plan(load_config(merge(values(**TEXT), tasks)))
    place = Place(dataset="controlled", system="g_transformer_finetuned", segmentation="documents", split="sentences")
    assert plan.runs.sentence_instances(place) == ["results/controlled/instances/documents/sentences"]
    assert plan.runs.monolingual_instances(place) == ["results/controlled/instances/documents/monolingual"]
    assert '"max_sentences": 1' in plan.runs.instances_settings(place)
    without = Plan(load_config(values()))
    assert without.runs.sentence_instances(place) == without.runs.monolingual_instances(place) == []


def test_studies_without_such_text_keep_their_fingerprints():
    """Text and instances were made before these splits were there: nothing may be made anew."""
    place = Place(dataset="controlled", split="train", segmentation="documents")
    plain, with_text = (Fingerprints(load_config(each)) for each in (values(), values(**TEXT)))
    assert plain.dataset_split(place) == with_text.dataset_split(place)
    for name in ("truecaser", "bpe", "subwords", "instances"):
        assert getattr(plain, name)(place) != getattr(with_text, name)(place)
    assert plain.truecaser(place) == plain.tokens(place)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TEXT, {"sentences": ["controlled/train"]}),
        (TEXT, TEXT | {"monolingual": ["controlled/train"]}),
        ({"monolingual": ["controlled/train"]}, {"monolingual": ["controlled/train"], "monolingual_lang": "de"}),
    ],
)
def test_other_text_makes_vocabulary_and_instances_anew(one, other):
    place = Place(dataset="controlled", split="monolingual", segmentation="documents")
    first, second = (Fingerprints(load_config(values(**each))) for each in (one, other))
    assert first.bpe(place) != second.bpe(place)
    if "monolingual" in other:
        assert first.monolingual_instances(place) != second.monolingual_instances(place)


@pytest.mark.parametrize(
    ("dataset", "part"),
    [
        ({"sentences": ["novels/all"]}, "config.datasets.controlled.sentences: corpus 'novels' is in en, but"),
        ({"sentences": ["controlled/trian"]}, "no split 'trian'; did you mean 'train'"),
        ({"sentences": ["controlled/dev"]}, "sentences and config.datasets.controlled.dev both hold 'controlled/dev'"),
        ({"sentences": ["controlled/train"] * 2}, "sentences: 'controlled/train' stands twice"),
        ({"monolingual": ["novels/train"]}, "corpus 'novels' has no split 'train'"),
        ({"monolingual": ["gigaword-zh/train"]}, "is in zh, but the monolingual documents are to be in en"),
        ({"monolingual": ["gum/all"]}, "corpus 'gum' has no split 'all'; it has none"),
        ({"monolingual": ["nowhere/all"]}, "no corpus 'nowhere'"),
        ({"monolingual": ["controlled/test"]}, "test.controlled both hold 'controlled/test'"),
        ({"monolingual": ["novels/all"], "monolingual_lang": "zh"}, "'zh' is neither src_lang nor tgt_lang"),
        ({"monolingual_lang": "en"}, "monolingual names no documents"),
        ({"monolingual": ["novels/all"], "monolingual_lang": "de"}, "is in en, but the monolingual documents"),
    ],
)
def test_mistakes_are_named_in_one_line(dataset, part):
    with pytest.raises(UserError) as caught:
        load_config(values(**dataset))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_licensed_and_free_monolingual_corpora_of_the_catalogue_are_known():
    load_config(values(monolingual=["gigaword-en/train", "gum-texts/train"], sentences=["wmt14-ende/train_europarl"]))
