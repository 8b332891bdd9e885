"""Memory of text stages grows only by some numbers per sentence pair, and not with the text."""

import tracemalloc

import pytest
from architectures import slow_but

from docmt.cli.main import main
from docmt.corpora import filtering
from docmt.instances import building

SIZES = (4_000, 8_000)
"""More than one chunk of lines, and more than one block of tokens."""
LIMIT = 50
"""Bytes per pair."""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Folders by size. They contain a parallel text that every stage can read, in documents with 20 sentences."""
    folders = {}
    for size in SIZES:
        folders[size] = folder = tmp_path_factory.mktemp(f"pairs{size}") / "en-de"
        folder.mkdir()
        for lang, word in (("en", "word"), ("de", "wort")):
            lines = [f"One {word}{i % 97} {word}{i % 31} {word}{i % 13}.\n" for i in range(size)]
            (folder / f"train.{lang}").write_text("".join(lines), encoding="utf-8")
            (folder / f"test.{lang}").write_text("".join(lines[:20]), encoding="utf-8")
        index = ["document\tn_sentences\n", *(f"document-{i}\t20\n" for i in range(size // 20))]
        (folder / "train.documents.tsv").write_text("".join(index), encoding="utf-8")
        (folder / "test.documents.tsv").write_text("".join(index[:2]), encoding="utf-8")
        learn(folder)
    return folders


def run(*arguments):
    assert main([*map(str, arguments)]) == 0


def learn(folder):
    text = folder / "test.en"
    run("text", "learn-truecaser", "--input", text, "--out", folder / "truecaser")
    run("text", "learn-vocabulary", "--inputs", text, "--tags", "en", "de", "--out", folder / "vocabulary")


STAGES = {
    "combine": "corpora combine --inputs {0}/train {0}/test --languages en de --out {0}/out/made",
    "filter": "corpora filter --inputs {0}/train --languages en de --out {0}/out/made",
    "filter duplicates": "corpora filter --inputs {0}/train --languages en de --out {0}/out/made"
    ' --settings {{"duplicates":false}}',
    "overlap": "corpora count-overlap --train {0}/train --tests {0}/test --src-lang en --tgt-lang de"
    " --out {0}/out/made",
    "learn truecaser": "text learn-truecaser --input {0}/train.en --out {0}/out/made",
    "truecase": "text truecase --model {0}/truecaser --input {0}/train.en --out {0}/out/made",
    "learn BPE": "text learn-bpe --inputs {0}/train.en {0}/train.de --out {0}/out/made",
    "learn vocabulary": "text learn-vocabulary --inputs {0}/train.en {0}/train.de --out {0}/out/made",
    "instances": "instances build --texts {0}/train.en {0}/train.de --documents {0}/train.documents.tsv"
    " --vocabulary {0}/vocabulary --out {0}/out/folder",
}


@pytest.mark.parametrize("stage", slow_but(("combine", "truecase", "instances"), STAGES))
def test_memory_grows_by_a_few_bytes_per_pair(texts, monkeypatch, stage):
    monkeypatch.setattr(building, "SENTENCES_OF_A_BLOCK", 1000)
    monkeypatch.setattr(filtering, "BLOCK_PAIRS", 1000)
    monkeypatch.setattr(filtering, "DUPLICATE_CHARACTERS", 1)
    peaks = []
    for size in (SIZES[0], *SIZES):  # once before, so that what is loaded at the first time does not count
        tracemalloc.start()
        run(*STAGES[stage].format(texts[size]).split())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < LIMIT * (SIZES[1] - SIZES[0])
