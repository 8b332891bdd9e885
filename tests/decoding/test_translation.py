"""Translation with a model that has memorized eight documents."""

import dataclasses

import numpy as np
import pytest
from core_fixtures import DOCUMENTS, translate
from plain_scores import untrained

from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.instances.storage import load_instances
from docmt.models.model_file import load_model

ARCHITECTURES = ("g_transformer", "sentence_transformer", "document_transformer", "document_transformer_aligned")
TARGETS = [[translate(sentence) for sentence in document] for document in DOCUMENTS]


def make_translator(trained, **values):
    return Translator(trained, DecodingSettings(**values))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("beam_size", [1, 5])
def test_eight_documents_are_learned_by_heart(overfitted, architecture, beam_size):
    translator = make_translator(load_model(overfitted(architecture)), beam_size=beam_size)
    assert translator.translate_documents(DOCUMENTS) == TARGETS


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_of_hypotheses_cover_every_sentence_in_order(overfitted, study_files, architecture):
    cutting = "sentences" if architecture == "sentence_transformer" else "documents"
    instance_set = load_instances(study_files.instances(cutting))
    rows = make_translator(load_model(overfitted(architecture))).translate_instances(instance_set)
    assert [row["instance"] for row in rows] == list(range(len(instance_set)))
    sentences = [sentence for row in rows for sentence in row["sentences"]]
    assert sentences == [sentence for document in TARGETS for sentence in document]
    ends = np.cumsum([row["n_sentences"] for row in rows])
    assert [row["first_sentence"] for row in rows] == [0, *ends[:-1]]
    assert ends[-1] == len(sentences)
    assert list(dict.fromkeys(row["document"] for row in rows)) == [f"d{i}" for i in range(8)]
    assert {row["aligned"] for row in rows} == {architecture != "document_transformer"}
    assert all(row["score"] < 0 and row["forced_ends"] == 0 for row in rows)


@pytest.mark.parametrize("max_batch_tokens", [1, 25, 100_000])
def test_the_size_of_batches_changes_nothing(overfitted, study_files, max_batch_tokens):
    trained = load_model(overfitted("g_transformer"))
    instance_set = load_instances(study_files.instances())
    rows = [
        make_translator(trained, max_batch_tokens=size).translate_instances(instance_set)
        for size in (max_batch_tokens, 4096)
    ]
    for one, other in zip(*rows, strict=True):
        assert one.pop("score") == pytest.approx(other.pop("score"), rel=1e-4)
        assert one == other


@pytest.mark.parametrize("cutting", [{"max_tokens": 8}, {"max_tokens": 20}, {"max_sentences": 2}, {}])
def test_long_documents_are_split_and_joined(overfitted, cutting):
    trained = load_model(overfitted("sentence_transformer"))
    translator = make_translator(dataclasses.replace(trained, instance_settings=cutting))
    sources = list(translator._split(DOCUMENTS[2], None))
    assert sum(len(source.sentences) for source in sources) == 4
    if "max_tokens" in cutting:
        assert len(sources) > 1
        assert all(s.n_tokens <= cutting["max_tokens"] or len(s.sentences) == 1 for s in sources)
    assert translator.translate_documents(DOCUMENTS) == TARGETS


UGLY = [
    ["", "the dog", ""],
    [""],
    ["unknown words: ☃, <s> and </s>", "x" * 200],
    ["the dog sees the house"] * 60,
    ["the " * 300],
]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer", "concatenation"])
def test_ugly_documents_keep_their_number_of_lines(study_files, architecture):
    translated = make_translator(untrained(study_files, architecture), beam_size=2).translate_documents(UGLY)
    assert [len(document) for document in translated] == [len(document) for document in UGLY]
    assert all("\n" not in sentence for document in translated for sentence in document)
    if architecture != "document_transformer":
        assert [bool(sentence) for sentence in translated[0]] == [False, True, False]


def test_other_numbers_of_sentences_are_counted(study_files, caplog):
    """An untrained free stream writes one sentence up to the length limit."""
    translator = make_translator(untrained(study_files, "document_transformer"), beam_size=1)
    ((first, *others),) = translator.translate_documents([["the dog", "a dog", "the house"]])
    assert first
    assert others == ["", ""]
    assert "1 of 1 instances were translated into another number of sentences" in caplog.text


def test_no_document_is_no_translation(study_files):
    assert make_translator(untrained(study_files, "g_transformer")).translate_documents([]) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam_size": 0}, "beam_size"),
        ({"beams": 4}, "did you mean 'beam_size'"),
        ({"precision": "half"}, "precision"),
        ({"length_penalty": 500.0}, "length_penalty: must be at most 10"),
        ({"max_length_ratio": float("inf")}, "max_length_ratio: must be a finite number"),
        ({"max_length_ratio": 1001.0}, "max_length_ratio: must be at most 1000"),
        ({"max_length_offset": 2**70}, "max_length_offset: must be at most 100000"),
    ],
)
def test_bad_settings_are_named(values, message):
    with pytest.raises(UserError, match=message):
        DecodingSettings.load(values, where="decoding")
