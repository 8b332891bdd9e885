"""Batches with the largest size that fits in memory. The size never changes the result."""

import logging

import pytest
import torch
from architectures import slow_but
from core_fixtures import DOCUMENTS, translate

from docmt.decoding import beam_search, translation
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import GPU_BATCH_TOKENS, Translator, run_in_batches
from docmt.errors import UserError
from docmt.models.model_file import load_model


class SmallMemory:
    """Doubles costs, runs out of memory above a number of padded tokens, and records the sizes of all batches."""

    def __init__(self, limit):
        self.limit, self.sizes = limit, []

    def __call__(self, costs):
        self.sizes.append(len(costs))
        if max(costs) * len(costs) > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [2 * cost for cost in costs]


def run(costs, memory, budget):
    batches = list(run_in_batches(costs, memory, budget, cost=lambda cost: cost))
    assert [pair for batch in batches for pair in batch] == [(cost, 2 * cost) for cost in costs]
    return [len(batch) for batch in batches]


def test_too_large_batch_is_halved(caplog):
    costs = [10] * 8 + [5] * 8
    memory = SmallMemory(25)
    with caplog.at_level(logging.WARNING):
        assert run(costs, memory, 80) == [2, 2, 2, 2, 4, 4]
    assert memory.sizes == [8, 4, 2, 2, 2, 2, 4, 4]
    assert [record.args for record in caplog.records] == [(8, 40), (4, 20)]


def test_too_large_instance_is_one_line():
    with pytest.raises(UserError, match="an instance of 30 source tokens does not fit") as error:
        run([30, 10], SmallMemory(25), 60)
    assert "\n" not in str(error.value)


def test_other_errors_are_not_about_memory():
    def fail(costs):
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        list(run_in_batches([1], fail, 10, cost=lambda cost: cost))


def test_no_items_make_no_batches():
    assert run([], SmallMemory(1), 10) == []


def test_gpu_takes_large_batches(overfitted, monkeypatch):
    monkeypatch.setattr(translation, "prepare_search", lambda model, *_: DecodingModel(model))
    trained = load_model(overfitted("g_transformer"))
    budgets = [(4096, "cpu", 4096), (4096, "cuda", GPU_BATCH_TOKENS), (1_000_000, "cuda", 1_000_000)]
    for tokens, device, expected in budgets:
        translator = Translator(trained, DecodingSettings(max_batch_tokens=tokens), device=device)
        assert translator.batch_tokens == expected


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_running_out_of_memory_changes_no_translation(overfitted, limit, monkeypatch):
    searched = beam_search.search_instances

    def search_little(model, tokens, layout, *rest):
        if len(layout.sentences_B) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return searched(model, tokens, layout, *rest)

    monkeypatch.setattr(translation, "search_instances", search_little)
    translator = Translator(load_model(overfitted("g_transformer")), DecodingSettings())
    expected = [[translate(sentence) for sentence in document] for document in DOCUMENTS]
    assert translator.translate_documents(DOCUMENTS) == expected


@pytest.mark.parametrize("steps", slow_but((7,), (1, 2, 7, 16, 1000)))
def test_the_steps_between_two_looks_change_nothing(overfitted, steps, monkeypatch):
    monkeypatch.setitem(beam_search.STEPS_PER_CHECK, "cpu", steps)
    translator = Translator(load_model(overfitted("g_transformer")), DecodingSettings())
    expected = [[translate(sentence) for sentence in document] for document in DOCUMENTS]
    assert translator.translate_documents(DOCUMENTS) == expected
