"""Training, its data, and the model file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from segmenter_fixtures import EXAMPLES, example, tiny_settings, untrained

from docmt.checksums import checksum_path
from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts, write_discourse
from docmt.discourse.segmentation.segmenter import (
    ExampleSet,
    Segmenter,
    averaged,
    learn_vocabulary,
    read_examples,
    train_segmenter,
)
from docmt.discourse.syntax import write_syntax
from docmt.errors import UserError
from docmt.files import write_jsonl


def write_examples(prefix, examples):
    sentences = [e.words for e in examples]
    edus = edus_from_starts([e.starts for e in examples], map(len, sentences))
    path = Path(f"{prefix}.discourse.jsonl")
    write_discourse(path, [DiscourseDocument("d", tuple(sentences), edus)])
    write_syntax(f"{prefix}.syntax.jsonl", [("d", tuple(e.syntax for e in examples))])
    return path


@pytest.fixture(scope="module")
def trained():
    return train_segmenter(EXAMPLES, EXAMPLES, settings=tiny_settings(), seed=1)


@pytest.mark.slow
def test_all_losses_fall():
    """In all epochs. The development set contradicts itself, so that every epoch has errors."""
    dev = [*EXAMPLES, replace(EXAMPLES[0], starts=())]
    scores = train_segmenter(EXAMPLES, dev, settings=tiny_settings(), seed=1).scores
    history = scores["history"]
    assert len(history) == 50
    best = max(row["inside"]["f1"] for row in history)
    assert scores["epoch"] == next(row["epoch"] for row in history if row["inside"]["f1"] == best), "the earliest"
    first, last = (history[i]["losses"] for i in (0, -1))
    assert set(first) == {"edus", "pos", "relation", "head", "opening"}
    assert all(last[name] < 0.3 * first[name] for name in first)


def test_seed_decides_the_weights():
    settings = tiny_settings(epochs=2, dropout=0.3, word_dropout=0.3)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (train_segmenter(EXAMPLES, EXAMPLES, settings=settings, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    weights = [part.network.state_dict() for part in (first, again, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_the_average_moves_slowly_and_starts_at_once():
    network = untrained().network
    average = averaged(network, 0.9, head_start=1)
    with torch.no_grad():
        network.output.bias += 1.0
    start = average.module.output.bias.clone()
    average.update_parameters(network)
    torch.testing.assert_close(average.module.output.bias, start + 1 - 2 / 11)
    for _ in range(200):
        average.update_parameters(network)
    torch.testing.assert_close(average.module.output.bias, network.output.bias)


def test_saved_and_loaded_is_the_same(trained, tmp_path):
    trained.save(tmp_path / "segmenter.pt")
    loaded = Segmenter.load(tmp_path / "segmenter.pt")
    assert (loaded.settings, loaded.vocabulary, loaded.scores) == (trained.settings, trained.vocabulary, trained.scores)
    sentences = [["He", "said", "that", "Zoe", "sang", "."], [], ["Yes"]]
    pairs = zip(trained.encode(sentences), loaded.encode(sentences), strict=True)
    assert all(torch.equal(a.states_TD, b.states_TD) for a, b in pairs)
    assert trained.segment(sentences) == loaded.segment(sentences)


def test_damaged_files_are_one_line(trained, tmp_path):
    path = tmp_path / "segmenter.pt"
    trained.save(path)
    whole = path.read_bytes()
    content = torch.load(path, weights_only=True)
    for name, bad in {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"no model\n"}.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(UserError, match=rf"{name}: not a segmenter") as caught:
            Segmenter.load(tmp_path / name)
        assert "\n" not in str(caught.value)
    for name, change in {
        "segmenter of format": {"format": 99},
        "of format 1": {"kind": "parser"},
        "do not match": {"weights": {}},
        "unknown key": {"settings": {"sizes": {}}},
        "damaged": {"vocabulary": {"words": [1]}},
    }.items():
        torch.save(content | change, path)
        checksum_path(path).unlink(missing_ok=True)
        with pytest.raises(UserError, match=name):
            Segmenter.load(path)
    with pytest.raises(UserError, match="no such file"):
        Segmenter.load(tmp_path / "missing")


def test_examples_come_from_files(tmp_path):
    file = write_examples(tmp_path / "train", EXAMPLES)
    assert read_examples(file) == EXAMPLES
    (tmp_path / "train.syntax.jsonl").unlink()
    assert [e.syntax for e in read_examples(file)] == [None] * 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value | {"document": "other"}, "found 'other'"),
        (lambda value: value | {"sentences": value["sentences"][1:]}, "4 sentences, but the document"),
        (lambda value: {"document": "d"}, "not syntax in the format of docs/files.md"),
        (
            lambda value: json.loads(json.dumps(value).replace('"PRP", ', "", 1)),
            "sentence 1: the syntax must",
        ),
        (lambda value: json.loads(json.dumps(value).replace("-1", "0", 1)), "sentence 1"),
    ],
)
def test_syntax_that_does_not_fit_is_one_line(tmp_path, change, message):
    file = write_examples(tmp_path / "train", EXAMPLES)
    path = tmp_path / "train.syntax.jsonl"
    value = json.loads(path.read_text(encoding="utf-8"))
    write_jsonl(path, [change(value)])
    with pytest.raises(UserError, match=message):
        read_examples(file)


def test_no_sentence_is_one_line(tmp_path):
    file = tmp_path / "train.discourse.jsonl"
    file.write_text("")
    with pytest.raises(UserError, match="no sentence"):
        read_examples(file)


def test_openings_name_the_largest_phrase():
    openings = [e.syntax.openings for e in EXAMPLES]
    assert openings[0] == ("root", "_", "ccomp", "nsubj", "_", "punct")
    assert openings[1] == ("root", "nsubj", "_", "punct", "nsubj", "_", "advmod", "punct")
    assert openings[3][2] == "conj"
    assert openings[3][5] == "advcl"
    chain = example("a b c", "X/2/one X/3/two X/0/root").syntax
    assert chain.openings == ("root", "_", "_")


def test_targets_of_a_batch():
    examples = [EXAMPLES[0], EXAMPLES[2]]
    vocabulary = learn_vocabulary(examples, tiny_settings().training)
    _, batch, targets = ExampleSet(examples, vocabulary).batch([1, 0])
    assert batch.lengths_B.tolist() == [2, 6]
    assert targets.labels_BT.tolist() == [[0] * 6, [0, 0, 1, 0, 0, 0]]
    assert targets.heads_BT.tolist() == [[6, 0, *[-100] * 4], [1, 6, 4, 4, 1, 1]]
    assert targets.pos_BT[0, 2:].tolist() == [-100] * 4
    names = [vocabulary.relations[i] for i in targets.relations_BT[1].tolist()]
    assert names == list(EXAMPLES[0].syntax.relations)
