"""Every corpus that the mirror holds: checksums, readers and counts."""

import json
import os
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.corpora.catalog import load_catalog
from docmt.corpora.documents import read_documents
from docmt.corpora.mirror import check_corpus

MIRROR = os.environ.get("DOCMT_MIRROR")
pytestmark = [pytest.mark.mirror, pytest.mark.skipif(not MIRROR, reason="DOCMT_MIRROR is not set")]

# corpus, split → documents, sentences (items, candidates for contrastive sets); None: checksums only
EXPECTED = {
    ("bcontrast-ende", "train"): (550, 13845),
    ("bcontrast-ende", "dev"): (78, 1902),
    ("bcontrast-ende", "test"): (78, 2100),
    ("bible-ende", "train"): (1189, 31086),
    ("bible-enzh", "train"): (1189, 31085),
    ("bible-enru", "train"): (1004, 27756),
    ("contrapro-ende", "test"): (12000, 36031),
    ("contrapro-ende", "generative"): (12000, 12000),
    ("contrapro-items-ende", "synonyms"): None,
    ("contrapro-items-ende", "bolsena"): None,
    ("contrapro-items-ende", "cat"): None,
    ("ctxpro-ende", "auxiliary_dev"): (615, 615),
    ("ctxpro-ende", "auxiliary_devtest"): (615, 615),
    ("ctxpro-ende", "auxiliary_test"): (3180, 3180),
    ("ctxpro-ende", "formality_dev"): (9000, 9000),
    ("ctxpro-enru", "auxiliary_dev"): (1733, 1733),
    ("ctxpro-enru", "auxiliary_devtest"): (1733, 1733),
    ("ctxpro-enru", "inflection_dev"): (6000, 6000),
    ("gcdt", "all"): None,
    ("gum", "all"): None,
    ("gum-texts", "train"): (237, 13263),
    ("gnome-admin-ende", "train"): (57, 927),
    ("gnome-admin-enru", "train"): (57, 927),
    ("gnome-help-ende", "train"): (310, 4796),
    ("gnome-help-enru", "train"): (310, 4796),
    ("gnome-help-enzh", "train"): (302, 4686),
    ("iwslt16-tedx-deen", "dev2012"): (7, 1165),
    ("iwslt16-tedx-deen", "tst2013"): (9, 1363),
    ("iwslt16-tedx-deen", "tst2014"): (10, 1414),
    ("libreoffice-help-ende", "test"): (60, 1868),
    ("libreoffice-help-ende", "dev"): (40, 930),
    ("libreoffice-help-ende", "train"): (2469, 56147),
    ("libreoffice-help-enru", "test"): (57, 1156),
    ("libreoffice-help-enru", "dev"): (39, 584),
    ("libreoffice-help-enru", "train"): (2390, 36412),
    ("libreoffice-help-enzh", "test"): (51, 1307),
    ("libreoffice-help-enzh", "dev"): (36, 699),
    ("libreoffice-help-enzh", "train"): (2214, 38821),
    ("maruf2019-ted", "dev"): (93, 8967),
    ("maruf2019-ted", "test"): (23, 2271),
    ("maruf2019-news", "dev"): (81, 2169),
    ("maruf2019-news", "test"): (155, 2999),
    ("maruf2019-europarl", "dev"): (240, 3587),
    ("maruf2019-europarl", "test"): (360, 5134),
    ("msctd-ende", "train"): (2066, 20240),
    ("msctd-ende", "dev"): (504, 5063),
    ("msctd-ende", "test"): (509, 5067),
    ("msctd-enzh", "dev"): (504, 5063),
    ("msctd-enzh", "test"): (509, 5067),
    ("python-docs-zhen", "test"): (25, 3377),
    ("python-docs-zhen", "dev"): (15, 1789),
    ("python-docs-zhen", "train"): (573, 79253),
    ("voita2019-suites-enru", "dev"): (1000, 2124),
    ("voita2019-suites-enru", "test"): (4999, 16121),
    ("wesnoth-ende", "descent"): (26, 1599),
    ("wesnoth-ende", "sceptre"): (26, 1036),
    ("wesnoth-ende", "dev"): (36, 839),
    ("wesnoth-ende", "train"): (1241, 26185),
    ("wesnoth-enru", "descent"): (26, 1666),
    ("wesnoth-enru", "sceptre"): (26, 1163),
    ("wesnoth-enru", "dev"): (37, 1004),
    ("wesnoth-enru", "train"): (1257, 30963),
    ("wesnoth-enzh", "descent"): (26, 1696),
    ("wesnoth-enzh", "sceptre"): (26, 1198),
    ("wesnoth-enzh", "dev"): (37, 1081),
    ("wesnoth-enzh", "train"): (1257, 30064),
    ("wmt15-newstest-ende", "test"): (81, 2169),
    ("wmt15-newstest-enru", "test"): (122, 2818),
    ("wmt16-newstest-ende", "test"): (155, 2999),
    ("wmt16-newstest-enru", "test"): (150, 2998),
    ("wmt17-newstest-zhen", "test"): (169, 2001),
    ("wmt19-newstest-ende", "test"): (123, 1997),
    ("wmt19-newstest-deen", "test"): (145, 2000),
    ("wmt19-newstest-enru", "test"): (123, 1997),
    ("wmt19-newstest-ruen", "test"): (196, 2000),
    ("wmt19-newstest-enzh", "test"): (123, 1997),
    ("wmt19-newstest-zhen", "test"): (163, 2000),
}


def smallest(entry):
    """The corpus with only the smallest of its splits that can be read."""
    splits = [split for split in entry.corpus.splits if EXPECTED.get((entry.name, split))]
    chosen = {min(splits, key=lambda split: EXPECTED[entry.name, split][1])} if splits else entry.corpus.splits
    splits = {name: split for name, split in entry.corpus.splits.items() if name in chosen}
    return entry.model_copy(update={"corpus": entry.corpus.model_copy(update={"splits": splits})})


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_mirror_reads_as_expected(is_whole):
    """The smallest split of each corpus; everything."""
    entries = [entry if is_whole else smallest(entry) for entry in load_catalog().values()]
    results = [result for entry in entries for result in check_corpus(entry, Path(MIRROR))]
    assert [result for result in results if result.state == "bad"] == []
    found = {
        (result.corpus, result.split): None if result.documents is None else (result.documents, result.sentences)
        for result in results
        if result.state == "ok"
    }
    asked = {(entry.name, split) for entry in entries for split in entry.corpus.splits}
    assert found == {key: counts for key, counts in EXPECTED.items() if key in asked}
    assert {corpus for corpus, _ in found} == {corpus for corpus, _ in EXPECTED}


def run(*arguments: str) -> None:
    assert main(["corpora", *arguments]) == 0


def test_from_the_mirror_to_text_by_commands(tmp_path):
    """News of Maruf et al. is newstest without document ids: both must give the same sentences."""
    texts = []
    for corpus in ("maruf2019-news", "wmt16-newstest-ende"):
        run(
            "fetch",
            "--corpus",
            corpus,
            "--splits",
            "test",
            "--out",
            str(tmp_path / "files" / corpus),
            "--mirror",
            MIRROR,
        )
        prefix = tmp_path / corpus / "test"
        files = ["--files", str(tmp_path / "files" / corpus)]
        run("read", "--corpus", corpus, "--split", "test", "--languages", "en", "de", *files, "--out", str(prefix))
        texts.append([(d.src, d.tgt) for d in read_documents(prefix, languages=["en", "de"])])
    assert texts[0] == texts[1]
    tests = str(tmp_path / "wmt16-newstest-ende" / "test")
    run(
        "overlap",
        "--train",
        str(tmp_path / "maruf2019-news" / "test"),
        "--tests",
        tests,
        "--src-lang",
        "en",
        "--tgt-lang",
        "de",
        "--out",
        f"{tmp_path}/o.json",
    )
    overlap = json.loads((tmp_path / "o.json").read_text())["tests"]["test"]
    assert overlap["seen_pairs_percent"] == overlap["seen_documents_percent"] == 100.0


def test_suite_by_command(tmp_path):
    run("fetch", "--corpus", "voita2019-suites-enru", "--out", str(tmp_path / "files"), "--mirror", MIRROR)
    out = tmp_path / "suite.jsonl"
    run("suite", "--corpus", "voita2019-suites-enru", "--files", str(tmp_path / "files"), "--out", str(out))
    items = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len({item["id"] for item in items}) == len(items) == 4999
    for item in items:
        assert all(len(candidate) == len(item["src"]) == 4 for candidate in item["candidates"])
        assert item["candidates"].count(item["candidates"][item["correct"]]) == 1
