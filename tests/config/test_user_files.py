"""Fingerprints depend on the content of user files, and not on their times."""

import json
import os

import pytest
from smoke_study import smoke_study

from docmt.checksums import sha256_file
from docmt.config import user_files
from docmt.config.artifacts.base import Artifact, UserFile, ancestors
from docmt.config.artifacts.study import check_user_files
from docmt.config.plan import Plan
from docmt.config.user_files import content_digest
from docmt.errors import UserError
from docmt.snakemake_records import check_records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content_digest.cache_clear()
    return tmp_path


def write(path, text, *, time=10**9):
    path.write_text(text)
    os.utime(path, (time, time))


def test_same_size_and_time_is_no_proof(folder, monkeypatch):
    monkeypatch.setattr(user_files, "LARGE_BYTES", 0)
    monkeypatch.setattr(user_files, "SETTLED_SECONDS", -1)
    file = folder / "a.en"
    write(file, "one")
    first = content_digest(file)
    assert json.loads((folder / user_files.CACHE).read_text())[str(file)]["sha256"] == first
    content_digest.cache_clear()
    write(file, "two")
    assert content_digest(file) == sha256_file(file) != first


def test_large_file_is_hashed_once(folder, monkeypatch):
    monkeypatch.setattr(user_files, "LARGE_BYTES", 0)
    file = folder / "a.en"
    write(file, "one")
    content_digest(file)
    assert not (folder / user_files.CACHE).exists(), "it changed a moment ago"
    monkeypatch.setattr(user_files, "SETTLED_SECONDS", -1)
    content_digest.cache_clear()
    content_digest(file)
    content_digest.cache_clear()
    monkeypatch.setattr(user_files, "sha256_file", lambda path: pytest.fail("hashed again"))
    content_digest(file)


def test_blocked_cache_costs_only_time(folder, monkeypatch):
    monkeypatch.setattr(user_files, "LARGE_BYTES", 0)
    monkeypatch.setattr(user_files, "SETTLED_SECONDS", -1)
    (folder / "resources").write_text("a file where a folder is needed")
    write(folder / "a.en", "one")
    assert content_digest(folder / "a.en") == sha256_file(folder / "a.en")


CACHES = [b"", b"\xff\x00", b"[]", b"null", b"1", b'"a"', b'{"PATH": 1}', b'{"PATH": []}', b'{"PATH": {"state": 1}}']
CACHES += [b'{"PATH": {"state": STATE, "sha256": 1}}', b"[" * 100_000, b"9" * 5000, None]


@pytest.mark.parametrize("content", CACHES, ids=lambda content: str(content)[:40])
def test_damaged_cache_costs_only_time(content, folder, monkeypatch):
    monkeypatch.setattr(user_files, "LARGE_BYTES", 0)
    monkeypatch.setattr(user_files, "SETTLED_SECONDS", -1)
    file, cache = folder / "a.en", folder / user_files.CACHE
    write(file, "one")
    content_digest(file)
    entry = json.loads(cache.read_text())[str(file)]
    cache.unlink()
    if content is None:
        cache.mkdir()
    else:
        state = json.dumps(entry["state"]).encode()
        cache.write_bytes(content.replace(b"PATH", str(file).encode()).replace(b"STATE", state))
    content_digest.cache_clear()
    assert content_digest(file) == sha256_file(file)
    assert content is None or json.loads(cache.read_text())[str(file)] == entry, "the cache was replaced"


def test_missing_files_are_named_with_their_key(folder):
    (folder / "b").mkdir()
    for name, words in (("a", "config.x: a: no such file"), ("b", "config.x: b: is a folder, not a file")):
        with pytest.raises(UserError, match=words):
            UserFile.at(name, where="config.x").check()
    with pytest.raises(UserError, match="cannot be read"):
        content_digest(folder / "a")


def test_user_files_can_be_artifacts():
    user_file = UserFile.at("trees.jsonl", where="config.x")
    trees = Artifact(user_file.files, {"user_file": user_file}, stage="discourse")
    final = Artifact(["b"], {"trees": [trees]}, stage="instances")
    assert [type(artifact) for artifact in ancestors([final, final])] == [Artifact, Artifact, UserFile]


def test_pattern_counts_by_its_files(folder):
    (folder / "po").mkdir()

    def made():
        content_digest.cache_clear()
        row = {
            "languages": ["en", "de"],
            "format": {"reader": "po_files"},
            "splits": {"all": {"files": {"both": "po/*.po"}}},
        }
        changes = {
            "corpora": {"custom": {"help": row}},
            "datasets": {"smoke": {"train": ["smoke/train", "help/all"]}},
        }
        return smoke_study(changes)

    def fingerprint():
        return made().dataset_split("smoke", "train").fingerprint

    (missing,) = made().user_files()
    with pytest.raises(UserError, match=r"config\.corpora\.custom\.help\.splits\.all\.files\.both: po/\*\.po: no such"):
        missing.check()
    (folder / "po/a.po").write_text("a")
    first = fingerprint()
    assert fingerprint() == first
    (folder / "po/a.po").rename(folder / "po/b.po")
    second = fingerprint()
    (folder / "po/c.po").write_text("c")
    assert len({first, second, fingerprint()}) == 3


def outputs_of_mine():
    row = {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {"all": {"files": {"en": "mine.en", "de": "mine.de"}}},
    }
    return {"corpora": {"custom": {"mine": row}}, "datasets": {"smoke": {"train": ["smoke/train", "mine/all"]}}}


def test_user_files_among_results_need_no_record(folder):
    files = {f"smoke/{part}": "results/trees/mine.jsonl" for part in ("train", "dev", "test_smoke", "suite_pronoun")}
    changes = {
        "systems": {"external": {"hypotheses": {"smoke/smoke": "results/mine.txt"}}},
        "discourse": {"trees": {"mine": {"files": files}}},
        "instances": {"documents_with_trees": {"trees": "mine"}},
    }
    (folder / "results/trees").mkdir(parents=True)
    for name in ("results/mine.txt", "results/trees/mine.jsonl"):
        (folder / name).touch()
    outputs = Plan(smoke_study(changes).config).files()
    check_records(outputs)
    assert "results/smoke/runs/external/seed1/decoding/test_smoke.jsonl" in outputs
    (folder / "results/smoke/text").mkdir(parents=True)
    (folder / "results/smoke/text/pipeline.json").touch()
    with pytest.raises(UserError, match=r"1 of 1 results .*: results/smoke/text/pipeline.json"):
        check_records(outputs)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("results/corpora/mine/en-de/all.en", "corpora_read, mine all en-de"),
        ("results/x/../corpora/mine/en-de/all.en", "corpora_read, mine all en-de"),
        ("link/corpora/mine/en-de/all.en", "corpora_read, mine all en-de"),
        ("results/smoke/text/pipeline.json", "save_pipeline, smoke"),
        ("results/report/report.html", "report_render"),
        ("results/report/summary.txt", "report_render"),
        ("results/report/tables/mine.en", "report_render"),
        ("results/report/figures/a/mine.en", "report_render"),
        ("results/corpora/smoke/en-de/suites/ellipsis.jsonl", "corpora_read, smoke train en-de"),
        ("results/smoke/runs/rst_mix/seed1/model.pt", "train, smoke rst_mix"),
    ],
)
def test_a_user_file_is_no_output(path, rule, folder):
    (folder / "link").symlink_to(folder / "results")
    (folder / "results/x").mkdir(parents=True)
    for file in (path, "mine.de", "results/mine.en"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    changes = outputs_of_mine()
    files = changes["corpora"]["custom"]["mine"]["splits"]["all"]["files"]
    files["en"] = "results/mine.en"  # no output is there
    check_user_files(smoke_study(changes))
    files["en"] = path
    with pytest.raises(UserError) as error:
        check_user_files(smoke_study(changes))
    message = str(error.value)
    where = "config.corpora.custom.mine.splits.all.files.en"
    assert message.startswith(f"{where}: {path}: is an output of the study (rule {rule}")
    assert (folder / path).exists()
