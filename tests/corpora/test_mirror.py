"""Every corpus in the mirror, with checksums, readers and counts."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.corpora.catalog import load_catalog
from docmt.corpora.documents import read_documents
from docmt.corpora.mirror import check_corpus

MIRROR = os.environ.get("DOCMT_MIRROR")
pytestmark = [pytest.mark.mirror, pytest.mark.skipif(not MIRROR, reason="DOCMT_MIRROR is not set")]

# The splits that the mirror holds. Reading refuses counts other than those of the catalog.
HELD = {
    "bcontrast-ende": "train dev test",
    "bible-ende": "train",
    "bible-enru": "train",
    "bible-parts-ende": "train dev test books number number_foreign number_books",
    "bible-parts-enru": "train dev test books number number_foreign number_books",
    "bible-enzh": "train",
    "contrapro-ende": "test generative",
    "contrapro-items-ende": "synonyms bolsena cat",
    "ctxpro-ende": "auxiliary_dev auxiliary_devtest auxiliary_test formality_dev",
    "ctxpro-enru": "auxiliary_dev auxiliary_devtest inflection_dev",
    "gcdt": "all",
    "gnome-admin-ende": "train",
    "gnome-admin-enru": "train",
    "gnome-help-ende": "train",
    "gnome-help-enru": "train",
    "gnome-help-enzh": "train",
    "gum": "all",
    "gum-texts": "train",
    "iwslt16-tedx-deen": "dev2012 tst2013 tst2014",
    "libreoffice-help-ende": "test dev train",
    "libreoffice-help-enru": "test dev train",
    "libreoffice-help-enzh": "test dev train",
    "maruf2019-europarl": "dev test",
    "maruf2019-news": "dev test",
    "maruf2019-ted": "dev test",
    "msctd-ende": "train dev test",
    "msctd-enzh": "dev test",
    "python-docs-zhen": "test dev train",
    "voita2019-suites-enru": "dev test",
    "wesnoth-ende": "descent sceptre dev train address address_foreign",
    "wesnoth-enru": "descent sceptre dev train",
    "wesnoth-enzh": "descent sceptre dev train",
    "wmt15-newstest-ende": "test",
    "wmt15-newstest-enru": "test",
    "wmt16-newstest-ende": "test",
    "wmt16-newstest-enru": "test",
    "wmt17-newstest-zhen": "test",
    "wmt19-newstest-deen": "test",
    "wmt19-newstest-ende": "test",
    "wmt19-newstest-enru": "test",
    "wmt19-newstest-enzh": "test",
    "wmt19-newstest-ruen": "test",
    "wmt19-newstest-zhen": "test",
}
# Items and candidates that are left without duplicates, where the catalog has the published counts.
WITHOUT_DUPLICATES = {("voita2019-suites-enru", "test"): (4999, 16121)}


def smallest(entry):
    """The corpus with only its smallest readable split."""
    splits = [name for name in HELD.get(entry.name, "").split() if entry.corpus.splits[name].sentences]
    names = {min(splits, key=lambda name: entry.corpus.splits[name].sentences)} if splits else entry.corpus.splits
    splits = {name: split for name, split in entry.corpus.splits.items() if name in names}
    return replace(entry, corpus=entry.corpus.model_copy(update={"splits": splits}))


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_mirror_reads_as_expected(is_whole):
    """Read the smallest split of a corpus per family and format, or the complete mirror."""
    catalog = load_catalog()
    entries = list(catalog.values())
    if not is_whole:
        formats = {(e.family.mirror_folder, repr(e.corpus.format)): e for e in entries[::-1] if e.name in HELD}
        entries = [smallest(entry) for entry in formats.values()]
    results = [result for entry in entries for result in check_corpus(entry, Path(MIRROR))]
    assert [result for result in results if result.state == "bad"] == []
    successes = {(result.corpus, result.split): result for result in results if result.state == "ok"}
    assert successes.keys() == {
        (entry.name, split)
        for entry in entries
        for split in entry.corpus.splits
        if split in HELD.get(entry.name, "").split()
    }
    assert {corpus for corpus, _ in successes} == HELD.keys() & {entry.name for entry in entries}
    for (corpus, split), result in successes.items():
        entry, described = catalog[corpus].corpus, catalog[corpus].corpus.splits[split]
        counts = (None, None) if entry.holds(split) == "files" else (described.documents, described.sentences)
        assert (result.documents, result.sentences) == WITHOUT_DUPLICATES.get((corpus, split), counts)


def run(command: str) -> None:
    assert main(["corpora", *command.split()]) == 0


def test_from_the_mirror_to_text_by_commands(tmp_path):
    """News of Maruf et al. is newstest without document ids, so both must contain the same sentences."""
    texts = []
    for corpus in ("maruf2019-news", "wmt16-newstest-ende"):
        files, prefix = tmp_path / "files" / corpus, tmp_path / corpus / "test"
        run(f"fetch --corpus {corpus} --splits test --out {files} --mirror {MIRROR}")
        run(f"read --corpus {corpus} --split test --languages en de --files {files} --out {prefix}")
        texts.append([(d.src, d.tgt) for d in read_documents(prefix, languages=["en", "de"])])
    assert texts[0] == texts[1]
    train, test = (tmp_path / corpus / "test" for corpus in ("maruf2019-news", "wmt16-newstest-ende"))
    run(f"count-overlap --train {train} --tests {test} --src-lang en --tgt-lang de --out {tmp_path}/o.json")
    overlap = json.loads((tmp_path / "o.json").read_text())["tests"]["test"]
    assert overlap["seen_pairs_percent"] == overlap["seen_documents_percent"] == 100.0


def test_suite_by_command(tmp_path):
    out = tmp_path / "suite.jsonl"
    run(f"fetch --corpus voita2019-suites-enru --out {tmp_path}/files --mirror {MIRROR}")
    run(f"convert-suite --corpus voita2019-suites-enru --files {tmp_path}/files --out {out}")
    items = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len({item["id"] for item in items}) == len(items) == 4999
    for item in items:
        assert all(len(candidate) == len(item["src"]) == 4 for candidate in item["candidates"])
        assert item["candidates"].count(item["candidates"][item["correct"]]) == 1
