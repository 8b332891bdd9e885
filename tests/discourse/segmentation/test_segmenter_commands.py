"""`docmt discourse train-segmenter`, `evaluate-segmenter` and `segment`."""

import json

import pytest
from segmenter_fixtures import EXAMPLES, TINY
from test_segmenter_training import write_examples
from tree_fixtures import run

from docmt.corpora.documents import INDEX_HEADER
from docmt.discourse.discourse_documents import (
    DiscourseDocument,
    Edu,
    edus_from_starts,
    read_discourse,
    write_discourse,
)
from docmt.discourse.evaluation import evaluate_segmenter
from docmt.errors import UserError
from docmt.files import read_json, write_lines


def test_train_evaluate_segment(tmp_path, caplog):
    caplog.set_level("INFO")
    gold = write_examples(tmp_path / "train", EXAMPLES)
    settings = json.dumps(TINY)
    model = tmp_path / "segmenter.pt"
    run("train-segmenter", "--settings", settings, "--train", gold, "--dev", gold, "--seed", 1, "--out", model)
    epochs = [record.getMessage() for record in caplog.records if record.getMessage().startswith("epoch ")]
    assert "dev F1" in epochs[0]
    assert ["inside 100.00" in message for message in epochs] == [False] * (len(epochs) - 1) + [True]

    run("evaluate-segmenter", "--model", model, "--gold", gold, "--out", tmp_path / "scores.json")
    content = read_json(tmp_path / "scores.json")
    assert content["scores"]["inside"]["f1"] == 100
    assert content["scores"]["inside"]["gold"] == 4
    assert content["scores"]["all"]["gold"] == 9
    assert content["scores"]["words"] == 29
    assert content["provenance"]["model"]["seed"] == 1
    assert set(content["provenance"]["model"]["data"]) == {"train.discourse.jsonl", "train.syntax.jsonl"}

    plain, out = tmp_path / "plain.en", tmp_path / "plain.json"
    write_lines(plain, [" ".join(e.words).replace(" .", ".").replace(" ,", ",") for e in EXAMPLES])
    run("evaluate-segmenter", "--model", model, "--gold", gold, "--text", plain, "--lang", "en", "--out", out)
    assert read_json(out)["scores"] == {**content["scores"], "sentences_in_the_same_words": 5}
    with pytest.raises(UserError, match="pass both --text and --lang"):
        run("evaluate-segmenter", "--model", model, "--gold", gold, "--lang", "en", "--out", out)

    write_lines(tmp_path / "text.en", ["He said that Mary left.", "", "Yes."])
    write_lines(tmp_path / "text.documents.tsv", [INDEX_HEADER, "one\t2", "two\t1"])
    out = tmp_path / "text.discourse.jsonl"
    files = ("--text", tmp_path / "text.en", "--documents", tmp_path / "text.documents.tsv")
    run("segment", "--model", model, *files, "--lang", "en", "--out", out)
    first, second = read_discourse(out)
    assert (first.id, second.id) == ("one", "two")
    assert first.sentences == (("He", "said", "that", "Mary", "left", "."), ())
    assert first.edus == (Edu(0, 0, 2), Edu(0, 2, 6), Edu(1, 0, 0))
    assert second.edus == (Edu(0, 0, 2),)
    assert second.tree is None


class StartsAt:
    """A segmenter that finds a start at some words."""

    def __init__(self, *words):
        self.words = words

    def segment(self, sentences):
        return [[i for i, word in enumerate(words) if i and word in self.words] for words in sentences]


def test_starts_are_compared_by_position(tmp_path):
    words = ("I", "did", "n't", "go", "home", "because", "it", "'s", "late", ".")
    document = DiscourseDocument("d", (words, ()), edus_from_starts([[5], []], [10, 0]))
    write_discourse(tmp_path / "gold.jsonl", [document])
    write_lines(tmp_path / "text", ["I didn't go home because it's late.", ""])
    files = {"gold": tmp_path / "gold.jsonl", "text": tmp_path / "text", "lang": "en"}
    scores = evaluate_segmenter(StartsAt("because", "late"), **files)
    assert (scores["inside"]["correct"], scores["inside"]["predicted"], scores["inside"]["gold"]) == (1, 2, 1)
    assert (scores["all"]["gold"], scores["empty_sentences"]) == (2, 1)
    assert scores["sentences_in_the_same_words"] == 1  # the empty one
    write_lines(tmp_path / "text", ["I did go home because it's late.", ""])
    with pytest.raises(UserError, match="line 1 differs from sentence 1"):
        evaluate_segmenter(StartsAt(), **files)
    write_lines(tmp_path / "text", [""])
    with pytest.raises(UserError, match="1 lines"):
        evaluate_segmenter(StartsAt(), **files)
