"""The catalog as data. It is strict and consistent, and only has https addresses."""

import re

import pytest

from docmt.corpora.catalog import Family, find_corpus, load_catalog
from docmt.corpora.readers.registry import can_read
from docmt.errors import UserError

CATALOG = load_catalog()


@pytest.mark.parametrize("name", CATALOG)
def test_entry_is_consistent(name):
    entry = CATALOG[name]
    corpus = entry.corpus
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", corpus.version), "the version is a folder name"
    assert entry.family.license
    assert corpus.title
    assert corpus.splits
    for split_name, split in corpus.splits.items():
        assert re.fullmatch(r"[A-Za-z0-9_]+", split_name)
        assert entry.kind(split_name) in ("download", "manual")
        form = corpus.format_of(split_name)
        if corpus.holds(split_name) == "monolingual":
            assert can_read(form, n_languages=1)
            assert list(split.files) == corpus.languages
        elif can_read(form, n_languages=2):
            assert len(corpus.languages) == 2
            assert set(split.files) in ({"both"}, set(corpus.languages), {*corpus.languages, "index"})
        for file_name in entry.file_names([split_name]):
            file = entry.family.files[file_name]
            assert all(address.url.startswith("https://") for address in file.addresses)
            assert not file_name.endswith(".gz") or file.sha256_gz


def test_every_family_uses_all_its_files():
    for entry in CATALOG.values():
        used = {f for other in CATALOG.values() if other.family is entry.family for f in other.file_names()}
        unused = set(entry.family.files) - used
        assert all("scoring_data" in name for name in unused), unused


@pytest.mark.parametrize(
    ("name", "split", "holds"),
    [
        ("maruf2019-ted", "train", "documents"),
        ("wmt14-ende", "train_europarl", "sentences"),
        ("wmt14-ende", "test", "documents"),
        ("gigaword-en", "train", "monolingual"),
        ("gum-texts", "train", "monolingual"),
        ("gum", "all", "files"),
        ("voita2019-suites-enru", "test", "suite"),
        ("ctxpro-ende", "formality_dev", "generative"),
    ],
)
def test_what_a_split_holds(name, split, holds):
    assert CATALOG[name].corpus.holds(split) == holds


def test_unknown_names_get_the_nearest():
    with pytest.raises(UserError, match="did you mean 'maruf2019-ted'"):
        find_corpus("maruf-ted")
    with pytest.raises(UserError, match="corpus maruf2019-ted has no split 'tset'; did you mean 'test'"):
        CATALOG["maruf2019-ted"].file_names(["tset"])


FAMILY = {
    "source": "s",
    "license": "l",
    "terms": "open",
    "mirror_folder": "m",
    "files": {"a": {"addresses": [{"url": "https://x.org/a"}]}},
    "corpora": {
        "c": {
            "title": "t",
            "version": "1",
            "languages": ["en", "de"],
            "format": {"reader": "jsonl"},
            "splits": {"train": {"files": {"both": "a"}}},
        }
    },
}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"files": {"a": {}}}, "a file needs `addresses`"),
        ({"files": {"a": {"obtain": "x", "sha256": "zz"}}}, "a.sha256: must match"),
        ({"files": {"a": {"addresses": [{"url": "ftp://x"}]}}}, "url: must match pattern '^https?://'"),
        ({"files": {"b": {"obtain": "x"}}}, "file 'a' is not under"),
        ({"files": {"a": {"obtain": "x"}, "../b": {"obtain": "x"}}}, "inside the folder"),
        ({"terms": "free"}, "terms"),
        ({"licnce": "l"}, "did you mean 'license'"),
        ({"corpora": {"c": FAMILY["corpora"]["c"] | {"languages": ["en", "en"]}}}, "two different ones"),
        ({"corpora": {"c": FAMILY["corpora"]["c"] | {"format": {"reader": "jsnl"}}}}, "jsonl"),
    ],
)
def test_bad_entries_are_refused(changes, part):
    with pytest.raises(UserError) as caught:
        Family.load(FAMILY | changes, where="catalog")
    assert part in str(caught.value)
