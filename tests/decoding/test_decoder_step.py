"""Compiled decoder layers equal Python bit by bit. Python replaces them if the library is not available."""

import logging
import os
import shutil

import numpy as np
import pytest
import torch
from core_fixtures import document_trees, make_model, random_sentence

from docmt.decoding import decoder_step
from docmt.decoding.beam_search import BeamSearch, encode_source
from docmt.decoding.decoder_step import DecoderStep
from docmt.decoding.decoding_model import prepare_search
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.models.attention.layout import AttentionLayout

KNOWN = (
    "sentence_transformer",
    "g_transformer",
    "concatenation",
    "document_transformer",
    "lstm_transformer",
    "rst_serial",
    "rst_parallel",
    "rst_mix",
)
COUNTS = (4, 1, 12, 5)  # documents end early, and hypotheses are in different sentences


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    # Of the environment, if it is there: other tests may have loaded it, and a process can load one copy only.
    for folder in decoder_step.FOLDERS:
        if (folder / decoder_step.library_name()).exists():
            return folder
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("library")
    decoder_step.build(folder)
    return folder


@pytest.fixture
def use_library(monkeypatch):
    """A function that makes docmt look for the library in a single folder."""

    def use(folder):
        monkeypatch.setattr(decoder_step, "FOLDERS", (folder,))
        decoder_step.classes.cache_clear()

    yield use
    decoder_step.classes.cache_clear()


def make_search(model, precision="float32"):
    """A search over some documents."""
    generator = np.random.default_rng(0)
    documents = [[random_sentence(generator, int(generator.integers(0, 9))) for _ in range(n)] for n in COUNTS]
    sentences = [sentence for document in documents for sentence in document]
    settings = DecodingSettings(beam_size=4, precision=precision)
    trees = document_trees([(document, document) for document in documents])
    layout = AttentionLayout.of_source(
        np.array([len(sentence) for sentence in sentences]), np.array(COUNTS), settings=model.settings, trees=trees
    )
    prepared = prepare_search(model, settings, "cpu")
    with torch.inference_mode():
        source = encode_source(prepared, np.concatenate(sentences), layout)
        if model.settings.decodes_sentences_alone:
            layout = layout.split_into_sentences()
        return BeamSearch(prepared, source, layout, settings)


def states_and_hypotheses(search, monkeypatch):
    """States of all steps, and the hypotheses."""
    states, step = [], IncrementalDecoder.step

    def noted(self, *arguments):
        states.append(step(self, *arguments))
        return states[-1]

    with monkeypatch.context() as patched:
        patched.setattr(IncrementalDecoder, "step", noted)
        return states, search.run()


@pytest.mark.parametrize(
    ("architecture", "precision"),
    [
        ("g_transformer", "float32"),
        ("rst_mix", "float32"),
        ("g_transformer", "int8"),
        *(
            pytest.param(name, "float32", marks=pytest.mark.slow)
            for name in KNOWN
            if name not in ("g_transformer", "rst_mix")
        ),
        *(pytest.param(name, "int8", marks=pytest.mark.slow) for name in ("document_transformer", "rst_mix")),
    ],
)
def test_compiled_steps_equal_those_in_python(architecture, precision, built, use_library, monkeypatch, tmp_path):
    model = make_model(architecture)
    use_library(tmp_path)
    plain = make_search(model, precision)
    assert plain.decoder.compiled is None
    use_library(built)
    compiled = make_search(model, precision)
    calls, call = [], DecoderStep.__call__
    monkeypatch.setattr(DecoderStep, "__call__", lambda *arguments: calls.append(1) or call(*arguments))
    expected_states, expected = states_and_hypotheses(plain, monkeypatch)
    assert not calls
    states, hypotheses = states_and_hypotheses(compiled, monkeypatch)
    assert len(calls) == len(states) == len(expected_states)
    assert all(map(torch.equal, states, expected_states))
    assert hypotheses == expected


@pytest.mark.slow
@pytest.mark.parametrize("form", [{"norm": "pre"}, {"activation": "gelu"}, {"activation": "swish", "norm": "pre"}])
def test_forms_of_layers(form, built, use_library, monkeypatch, tmp_path):
    model = make_model("g_transformer", form=form)
    use_library(tmp_path)
    expected_states, expected = states_and_hypotheses(make_search(model), monkeypatch)
    use_library(built)
    search = make_search(model)
    assert search.decoder.compiled is not None
    states, hypotheses = states_and_hypotheses(search, monkeypatch)
    assert all(map(torch.equal, states, expected_states))
    assert hypotheses == expected


@pytest.mark.parametrize(
    ("architecture", "precision"),
    [
        ("han", "float32"),
        ("san", "float32"),
        ("global_context", "float32"),
        ("hybrid_context", "float32"),
        ("g_transformer", "bfloat16"),
    ],
)
def test_python_computes_what_the_library_does_not_know(architecture, precision, built, use_library):
    use_library(built)
    search = make_search(make_model(architecture), precision)
    assert search.decoder.compiled is None
    assert all(search.run())


def test_python_computes_without_a_library_that_fits(built, use_library, monkeypatch, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / decoder_step.library_name()).write_bytes(b"no library")
    use_library(tmp_path)
    assert make_search(make_model()).decoder.compiled is None
    assert "cannot be loaded" in caplog.text
    use_library(built)
    assert make_search(make_model()).decoder.compiled is not None
    with monkeypatch.context() as patched:
        patched.setattr(torch, "__version__", "2.0.0")
        use_library(built)
        assert make_search(make_model()).decoder.compiled is None
