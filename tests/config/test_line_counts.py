"""`docmt config check` reads user-supplied trees, outputs and references, and counts lines of known test sets."""

import json
from pathlib import Path

import pytest
import yaml

from docmt.cli.main import main
from docmt.config import line_counts

SPLIT = {"files": {"en": "test.en", "de": "test.de"}}
CORPUS = {
    "languages": ["en", "de"],
    "format": {"reader": "blank_lines"},
    "splits": dict.fromkeys(("all", "dev", "t"), SPLIT),
}
DATASET = {"src_lang": "en", "tgt_lang": "de", "train": ["mine/all"], "dev": ["mine/dev"]}
STUDY = {
    "corpora": {"custom": {"mine": CORPUS}},
    "datasets": {"ours": DATASET | {"test": {"talks": ["mine/t"]}, "references": {"talks": ["second.de"]}}},
    "systems": {"llm": {"hypotheses": {"ours/talks": "llm.de"}}},
}
TEXT = "Ein Hund.\nEin Haus.\n\nDas Ende.\n"
FILES = {"test.en": TEXT, "test.de": TEXT, "second.de": "a\nb\nc\n", "llm.de": TEXT}


def check(folder, values=STUDY, **files):
    for name, text in (FILES | files).items():
        Path(folder / name).write_text(text, encoding="utf-8")
    (folder / "study.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return main(["config", "check", "study.yaml"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("llm.de", TEXT, ""),
        ("llm.de", "Ein Hund. Ein Haus.\n\nDas Ende.\n", "llm.de: 1 of 2 documents re-aligned to the reference"),
        ("llm.de", "a\nb\nc\nd\n", "llm.de: 4 lines, but the test set has 3 sentences in 2 documents"),
        ("llm.de", f"{TEXT}\nx\n", "the text at line 6 after document 'mine.t/"),
        ("second.de", "a\n", "second.de: 1 lines, but the test set has 3 sentences"),
    ],
)
def test_check_counts_lines(tmp_path, monkeypatch, capsys, name, text, message):
    monkeypatch.chdir(tmp_path)
    is_refused = "but the test set" in message or "the text at" in message
    assert check(tmp_path, **{name: text}) == (2 if is_refused else 0)
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == bool(message)


ALONE = {
    "corpora": STUDY["corpora"],
    "datasets": {"ours": DATASET | {"test": {"talks": ["mine/t"]}}},
    "instances": {"sentences": {"max_sentences": 1}},
    "training": {"scratch": {}},
    "systems": {"base": {"architecture": "sentence_transformer", "instances": "sentences", "recipe": "scratch"}},
}
"""A study without external systems."""


@pytest.mark.parametrize("limit", [line_counts.READ_BYTES, 10])
@pytest.mark.parametrize(("split", "part"), [("all", "train"), ("dev", "dev"), ("t", "test"), ("other", None)])
@pytest.mark.parametrize(
    ("reader", "text", "short", "message"),
    [
        ("blank_lines", TEXT, "Ein Hund.\n\nDas Ende.\n", "they diverge at or before line 2 of the first file"),
        (
            "marked_lines",
            "<d>\na\nb\n",
            "<d>\na\n",
            "line 3 of the first file; the document ends after line 2 of the second: align",
        ),
        ("single_lines", "a\nb\n", "a\n", "2 lines in own.en, 1 in own.de: line 2 is the first without a counterpart"),
    ],
)
def test_check_reads_each_split_in_use(tmp_path, monkeypatch, capsys, limit, split, part, reader, text, short, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(line_counts, "READ_BYTES", limit)
    values = yaml.safe_load(yaml.safe_dump(ALONE))
    broken = {"files": {"en": "own.en", "de": "own.de"}, "format": {"reader": reader}}
    values["corpora"]["custom"]["mine"]["splits"][split] = broken
    assert check(tmp_path, values, **{"own.en": text, "own.de": short}) == (2 if part else 0)
    printed = capsys.readouterr()
    assert (message in printed.err) == bool(part)
    assert check(tmp_path, values, **{"own.en": text, "own.de": text}) == 0


@pytest.mark.parametrize(
    ("reader", "text", "other", "is_read"),
    [
        ("blank_lines", "a\nb\n", "c\nd\n", False),
        ("blank_lines", "a\n\nb\n", "c\n\n\nd\n", False),
        ("marked_lines", "<d>\na\n\n", "<d>\nb\nc\n", False),
        ("blank_lines", "a\n \nb\n", "\ufeffc\n\nd", False),
        ("blank_lines", "PK\x03\x04", "PK\x03\x04", True),
    ],
)
def test_large_splits_are_only_counted(tmp_path, monkeypatch, reader, text, other, is_read):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(line_counts, "READ_BYTES", 2)
    calls = []
    monkeypatch.setattr(line_counts, "read_split", lambda *args, **kwargs: (calls.append(args), [])[::-1])
    values = yaml.safe_load(yaml.safe_dump(ALONE))
    values["corpora"]["custom"]["mine"]["format"]["reader"] = reader
    assert check(tmp_path, values, **{"test.en": text, "test.de": other}) == 0
    assert bool(calls) == is_read


def test_check_reads_suites_in_use(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load(yaml.safe_dump(ALONE))
    form = {"reader": "jsonl_suite"}
    values["corpora"]["custom"]["mine"]["splits"]["suite"] = {"files": {"items": "s.jsonl"}, "format": form}
    assert check(tmp_path, values, **{"s.jsonl": "{}\n"}) == 0
    values["datasets"]["ours"]["suites"] = ["mine/suite"]
    assert check(tmp_path, values, **{"s.jsonl": "{}\n"}) == 2
    assert "s.jsonl: line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "text", "message"),
    [
        ("scores", "1\n2\n3\n", ""),
        ("scores", "1\n2\n3\n4\n", "x.txt: 4 lines, but the test set has 3 sentences in 2 documents: write one score"),
        ("scores", "1\nnan\n", "x.txt: line 2: 'nan' is not a finite number"),
        ("candidates", "-1 -2\n", ""),
        ("candidates", "-1 -2\n-3 -4\n", "x.txt: 2 lines for 1 items"),
    ],
)
def test_check_counts_lines_of_scores(tmp_path, monkeypatch, capsys, section, text, message):
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load(yaml.safe_dump(STUDY))
    if section == "scores":
        values["evaluation"] = {"external": {"X": {"ours/talks": {"llm": "x.txt"}}}}
    else:
        form = {"reader": "jsonl_suite"}
        values["corpora"]["custom"]["mine"]["splits"]["suite"] = {"files": {"items": "s.jsonl"}, "format": form}
        values["datasets"]["ours"]["suites"] = ["mine/suite"]
        values["systems"]["llm"]["log_probabilities"] = {"ours/suite": "x.txt"}
    item = {"id": "1", "phenomenon": "p", "src": ["a"], "candidates": [["b"], ["c"]], "correct": 0}
    assert check(tmp_path, values, **{"x.txt": text, "s.jsonl": f"{json.dumps(item)}\n"}) == (2 if message else 0)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("text", "unit"), [("5\n6\n", None), ("5\n6\n7\n", "3 sentences")])
def test_scores_of_systems_have_one_unit(tmp_path, monkeypatch, capsys, text, unit):
    monkeypatch.chdir(tmp_path)
    files = {"llm": "x.txt", "other": "y.txt"}
    values = STUDY | {
        "systems": STUDY["systems"] | {"other": {"hypotheses": {"ours/talks": "llm.de"}}},
        "evaluation": {"external": {"X": {"ours/talks": files}}},
    }
    assert check(tmp_path, values, **{"x.txt": "1\n2\n", "y.txt": text}) == (2 if unit else 0)
    expected = (
        f"y.txt: scores of other by 'X' are for {unit}, but scores of llm in x.txt are for 2 documents: write one"
    )
    assert (expected in capsys.readouterr().err) == bool(unit)


@pytest.mark.parametrize("is_current", [True, False])
def test_only_current_text_is_counted(tmp_path, monkeypatch, capsys, is_current):
    """A filter can drop pairs, so the test set is known when the study has prepared it, with the same settings."""
    monkeypatch.chdir(tmp_path)
    corpora = STUDY["corpora"] | {"filters": {"strict": {}}}
    dataset = STUDY["datasets"]["ours"] | {"filters": {"test_talks": "strict"}}
    values = STUDY | {"corpora": corpora, "datasets": {"ours": dataset}}
    lines = {"llm.de": "a\nb\nc\nd\n"}
    assert check(tmp_path, values, **lines) == 0
    prefix = tmp_path / "results/ours/corpora/en-de/test_talks"
    prefix.parent.mkdir(parents=True)
    Path(f"{prefix}.de").write_text("a\nb\nc\n", encoding="utf-8")
    Path(f"{prefix}.documents.tsv").write_text("document\tn_sentences\na\t2\nb\t1\n", encoding="utf-8")

    class Recorded(dict):
        def __contains__(self, fingerprint):
            return is_current

    monkeypatch.setattr(line_counts, "read_record", lambda path: {"params": Recorded()})
    assert check(tmp_path, values, **lines) == (2 if is_current else 0)
    assert ("4 lines, but the test set has 3 sentences" in capsys.readouterr().err) == is_current


TREES = {
    **STUDY,
    "systems": {
        **STUDY["systems"],
        "rst": {"instances": "with_trees", "architecture": "rst_mix", "size": "tiny", "recipe": "scratch"},
    },
    "training": {"scratch": {"max_steps": 1}},
    "discourse": {
        "trees": {
            "own": {"files": {"ours/train": "train.jsonl", "ours/dev": "own.jsonl", "ours/test_talks": "talks.jsonl"}}
        }
    },
    "instances": {"with_trees": {"trees": "own"}},
}
TREE = {
    "document": "mine.all/00001",
    "sentences": [["Ein", "Hund"]],
    "edus": [{"sentence": 0, "start": 0, "end": 2}],
    "tree": [0],
}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (TREE | {"document": "00001"}, "own.jsonl: document '00001': the ids of ours/dev begin with mine.dev/"),
        (TREE, "own.jsonl: document 'mine.all/00001': the ids of ours/dev begin with mine.dev/"),
        (TREE | {"tree": [1]}, "own.jsonl: line 1: "),
    ],
)
def test_check_reads_trees(tmp_path, monkeypatch, capsys, document, message):
    monkeypatch.chdir(tmp_path)
    documents = {"own.jsonl": document, "train.jsonl": TREE, "talks.jsonl": TREE | {"document": "mine.t/00001"}}
    assert check(tmp_path, TREES, **{name: json.dumps(value) + "\n" for name, value in documents.items()}) == 2
    assert message in capsys.readouterr().err


def test_unused_trees_are_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check(tmp_path, TREES | {"systems": STUDY["systems"]}) == 0
    assert not Path("own.jsonl").exists()
