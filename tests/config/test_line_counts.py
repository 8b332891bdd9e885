"""`docmt config check` counts the lines of user-supplied outputs and references if the test set is known."""

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
