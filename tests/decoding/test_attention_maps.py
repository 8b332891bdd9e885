"""The attention that the reader shows: it is that of the model, by word, and no more than asked for."""

import json
import math

import numpy as np
import pytest
import torch
from plain_scores import untrained

from docmt.bench.workload import random_instances
from docmt.cli.main import main
from docmt.decoding.attention_maps import MOST_WORDS, attend
from docmt.decoding.cross_attention import AttentionRecorder, words_of
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.files import write_jsonl
from docmt.instances.packing import Marks
from docmt.instances.storage import load_instances
from docmt.models.attention.multi_head import parts
from docmt.models.attention.ragged import attention_entropy
from docmt.models.batch import collate
from docmt.models.model_file import save_model

PARTS = {
    "sentence_transformer": ["group"],
    "g_transformer": ["group", "global"],
    "document_transformer": ["global"],
    "rst_mix": ["group", "rst"],
}


@pytest.fixture(scope="module")
def made(study_files, tmp_path_factory):
    """By architecture: an untrained model, its instances, and its translations of them."""
    known = {}

    def make(architecture):
        if architecture not in known:
            folder = tmp_path_factory.mktemp(architecture)
            trained = untrained(study_files, architecture)
            save_model(folder / "model.pt", trained)
            trees = trained.model.settings.needs_trees
            place = study_files.instances("trees" if trees else "documents")
            instances = load_instances(place)
            rows = list(Translator(trained, DecodingSettings()).translate_instances(instances))
            for number, row in enumerate(rows):  # a free stream may have any number of sentences
                n = len(instances.sentences(number, "src"))
                row["sentences"] = (row["sentences"] * n)[:n]
            known[architecture] = trained, instances, rows, folder, place
        return known[architecture]

    return make


def test_recorded_weights_are_those_that_the_model_computes_with(made):
    """The formula against the kernel: the entropy of each query is that of the weights in padded batches of groups."""
    trained, instances, *_ = made("g_transformer")
    model = trained.model.eval()
    batch = collate(instances, [0], model.settings)
    entropies = {}

    def measure(module, arguments):
        query_ND, memory_MD, groupings = arguments
        query_NHK, key_MHK, _ = module.project(query_ND, memory_MD)
        entropies[module.pattern] = attention_entropy(query_NHK, key_MHK, groupings(module.pattern))

    with torch.no_grad(), AttentionRecorder(model) as recorder:
        handles = [part.register_forward_pre_hook(measure) for part in parts(recorder.attention)]
        model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)
        for handle in handles:
            handle.remove()
    assert list(recorder.weights) == list(entropies) == ["group", "global"]
    for name, weights in recorder.weights.items():
        expected = torch.special.entr(weights).sum(1) / math.log(2)
        torch.testing.assert_close(entropies[name], expected, rtol=1e-4, atol=1e-4)
    for weights in recorder.weights.values():
        assert weights.shape == (len(batch.tgt_inputs_N), len(batch.src_tokens_S))
        torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))
    assert recorder.gate_N is not None
    assert ((recorder.gate_N > 0) & (recorder.gate_N < 1)).all()
    sentence_of = np.repeat(np.arange(len(batch.layout.src_lengths_G)), batch.layout.src_lengths_G)
    of_target = np.repeat(np.arange(len(batch.layout.tgt_lengths_G)), batch.layout.tgt_lengths_G)
    outside = torch.from_numpy(of_target[:, None] != sentence_of[None])
    assert (recorder.weights["group"][outside] == 0).all()
    assert (recorder.weights["global"][outside] > 0).all()


@pytest.mark.parametrize("architecture", PARTS)
def test_attention_by_word(architecture, made):
    trained, instances, rows, *_ = made(architecture)
    found = attend(trained, instances, rows, DecodingSettings(), n_documents=2)
    assert len(found) == 2
    members = [member for document in found.values() for member in document]
    assert members
    for member in members:
        n_words = sum(map(len, member["tgt"]))
        assert member["parts"] == PARTS[architecture]
        n_sources = sum(map(len, member["src"]))
        for part in member["parts"]:
            assert len(member["weights"][part]) == n_words
            for pairs in member["weights"][part]:
                assert len(pairs) <= MOST_WORDS
                assert all(0 <= word < n_sources and 0 < percent <= 100 for word, percent in pairs)
                assert [percent for _, percent in pairs] == sorted((p for _, p in pairs), reverse=True)
        assert ("gate" in member) == (len(member["parts"]) > 1)
        assert not any(
            "@@" in word or word in ("<s>", "</s>") for words in member["src"] + member["tgt"] for word in words
        )


def test_words_join_their_subwords_and_know_their_rows():
    class Symbols:
        def decode(self, ids):
            return [("<s>", "a@@", "b", "c", "</s>")[number] for number in ids]

    trained = type("Trained", (), {"vocabulary": Symbols(), "marks": Marks()})()
    words, rows = words_of(trained, [np.array([0, 1, 2, 3, 4]), np.array([0, 4]), np.array([0, 3, 4])], "src")
    assert words == [["ab", "c"], [], ["c"]]
    assert [each.tolist() for each in rows] == [[1, 2], [3], [8]]
    _, rows = words_of(trained, [np.array([0, 1, 2, 3, 4]), np.array([0, 3, 4])], "src", skipped=1)
    assert [each.tolist() for each in rows] == [[0, 1], [2], [4]]


def test_the_sample_is_as_large_as_asked_for_and_of_these_instances(made):
    trained, instances, rows, *_ = made("g_transformer")
    n = len({row["document"] for row in rows})
    assert len(attend(trained, instances, rows, DecodingSettings(), n_documents=1)) == 1
    assert len(attend(trained, instances, rows, DecodingSettings(), n_documents=100)) == n
    for bad in (rows[:-1], rows[::-1], [1] * n, [row | {"sentences": "das Tier"} for row in rows]):
        with pytest.raises(UserError, match="translate them again"):
            attend(trained, instances, bad, DecodingSettings(), n_documents=1)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
def test_an_instance_without_words(architecture, study_files):
    instances = random_instances([2], shortest=0, longest=0, n_symbols=len(study_files.vocabulary))
    for text in ("", "das Tier"):
        row = {"document": "d0", "sentences": ["", text]}
        found = attend(untrained(study_files, architecture), instances, [row], DecodingSettings(), n_documents=1)
        assert found["d0"][0]["src"] == [[], []]
        assert all(weights == [[]] * len(text.split()) for weights in found["d0"][0]["weights"].values())


def test_the_command(made):
    _, _, rows, folder, place = made("g_transformer")
    write_jsonl(folder / "t.jsonl", rows)
    arguments = ["--model", folder / "model.pt", "--instances", place, "--hypotheses", folder / "t.jsonl"]
    out = folder / "attention.json"
    assert main(["decode", "attention", *map(str, arguments), "--documents", "2", "--out", str(out)]) == 0
    assert len(json.loads(out.read_text())["documents"]) == 2
