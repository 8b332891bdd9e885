# ruff: noqa: F811 (fixtures of another file)
"""Tars that docmt packs from an archive, a checkout, a user's tar or a mirror, and downloads in two processes."""

import bz2
import gzip
import hashlib
import io
import multiprocessing
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from test_download import CONTENT, PART, entry, quick_fetching, server, sha256, tar_gz, zipped  # noqa: F401

from docmt.corpora.catalog import load_catalog
from docmt.corpora.fetching import DOWNLOADS, fetch_corpus
from docmt.corpora.mirror import check_corpus
from docmt.errors import UserError

FILES = {
    "trees/dev/b.dis": b"( Root (b) )",
    "trees/train/a.dis": b"( Root (a) )",
    "trees/train/same.dis": b"( Root (a) )",
}
OTHERS = {
    "README.md": b"a treebank",
    "older/trees/train/a.dis": b"( Root (older) )",
    "trees/../../../a.dis": b"evil",
    "trees/dev/no_text.dis": b"( Root (_) )",
}


def plain_tar(files: dict[str, bytes]) -> bytes:
    """The documented form, with sorted names and without file system metadata."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


TAR = plain_tar(FILES)
WRONG = FILES | {"trees/train/a.dis": b"( Root (A) )", "trees/train/same.dis": b"( Root (A) )"}


@pytest.fixture(autouse=True)
def members_list(monkeypatch):
    lines = "".join(f"{sha256(content)}  {name}\n" for name, content in FILES.items())
    lines += f"{sha256(b'x')}  others/x.txt\n"
    monkeypatch.setattr("docmt.corpora.catalog._read_catalog_file", {"t.sha256": lines}.__getitem__)


def treebank(url: str = "http://127.0.0.1:9/unused"):
    file = {"addresses": [{"url": url}], "members": {"list": "t.sha256", "pattern": "trees/*"}, "sha256": sha256(TAR)}
    return entry({"trees.tar": file})


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(tar_gz(below("bank-72ce5ac", FILES | OTHERS)), id="archive of a repository"),
        pytest.param(zipped(below("bank-main", FILES | OTHERS)), id="the same as zip"),
        pytest.param(bz2.compress(plain_tar(below("home/me/bank", FILES))), id="deeper, other compression"),
        pytest.param(tar_gz({name.removeprefix("trees/"): content for name, content in FILES.items()}), id="no folder"),
    ],
)
@pytest.mark.parametrize("origin", ["address", "mirror", "by hand", "by hand, compressed"])
def test_forms_of_an_archive_give_one_tar(server, tmp_path, body, origin):
    url = server.plan("/archive", {"body": body})
    out, mirror = tmp_path / "deep" / "er" / "out", tmp_path / "mirror"
    copies = {
        "mirror": mirror / "family" / "trees.tar",
        "by hand": out / "trees.tar",
        "by hand, compressed": out / "trees.tar.gz",
    }
    if origin in copies:
        copies[origin].parent.mkdir(parents=True)
        copies[origin].write_bytes(body)
    fetch_corpus(treebank(url), out, mirror=mirror if origin == "mirror" else None)
    assert (out / "trees.tar").read_bytes() == TAR
    assert len(server.requests) == (origin == "address")
    assert not list(tmp_path.rglob("a.dis"))


def test_checkout_serves_as_mirror(tmp_path):
    checkout = tmp_path / "mirror" / "family"
    for name, content in (FILES | OTHERS).items():
        path = (checkout / name).resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert fetch_corpus(treebank(), tmp_path / "out", mirror=tmp_path / "mirror") == {"trees.tar": "mirror"}
    assert (tmp_path / "out" / "trees.tar").read_bytes() == TAR
    assert [result.state for result in check_corpus(treebank(), tmp_path / "mirror")] == ["ok"]
    for name in ("a", "same"):
        (checkout / f"trees/train/{name}.dis").write_bytes(b"( Root (changed) )")
    assert [result.state for result in check_corpus(treebank(), tmp_path / "mirror")] == ["bad"]


@pytest.mark.parametrize("pack", [tar_gz, zipped, lambda files: gzip.compress(plain_tar(files))])
def test_changed_member_is_named(server, tmp_path, pack):
    url = server.plan("/archive", {"body": pack(below("bank", WRONG))})
    with pytest.raises(UserError, match=rf"{url}: trees/train/a\.dis is missing or has another.*\(like 1 others\)"):
        fetch_corpus(treebank(url), tmp_path)
    assert not (tmp_path / "trees.tar").exists()
    packed = pack(WRONG)  # once, because an archive contains its time
    (tmp_path / "trees.tar").write_bytes(packed)
    with pytest.raises(UserError, match=r"trees\.tar is not the published file \(trees/train/a\.dis is .*: remove it"):
        fetch_corpus(treebank(url), tmp_path)
    assert (tmp_path / "trees.tar").read_bytes() == packed


def test_lists_in_the_catalog_fit(monkeypatch):
    monkeypatch.undo()
    files = [file for entry in load_catalog().values() for file in entry.family.files.values() if file.members]
    assert files
    for file in files:
        members = file.members.read()
        assert file.bytes
        assert len(members) * 1024 < file.bytes
        assert all(len(digest) == 64 for digest in members.values())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_corrected_file_is_not_replaced(server, tmp_path, suffix):
    url = server.plan("/a.txt", {"body": CONTENT})
    corpus = entry({"a.txt": {"addresses": [{"url": url}], "sha256": sha256(CONTENT)}})
    fetch_corpus(corpus, tmp_path)
    (tmp_path / "a.txt").unlink()
    corrected = CONTENT.replace(b"line 7\n", b"seven\n")
    (tmp_path / f"a.txt{suffix}").write_bytes(gzip.compress(corrected) if suffix else corrected)
    with pytest.raises(UserError, match=r"is not the published file .*: remove it to fetch .* `corpora\.custom`"):
        fetch_corpus(corpus, tmp_path)
    assert len(server.requests) == 1


def test_wrong_archive_is_fetched_again(server, tmp_path):
    """After an older edition from a proxy, and after a partial download by a killed process."""
    url = server.plan("/archive", {"body": zipped({"a.txt": b"old edition"})})
    corpus = entry({"a.txt": {"addresses": [{"url": url, "member": "a.txt"}], "sha256": sha256(CONTENT)}})
    with pytest.raises(UserError, match=f"{url}: the checksum differs"):
        fetch_corpus(corpus, tmp_path)
    (downloads,) = (tmp_path / DOWNLOADS).iterdir()
    assert not list(downloads.iterdir())
    (downloads / hashlib.sha256(url.encode()).hexdigest()[:16]).write_bytes(zipped({"a.txt": b"old edition"}))
    server.plan("/archive", {"body": zipped({"a.txt": CONTENT})})
    fetch_corpus(corpus, tmp_path)
    assert (tmp_path / "a.txt").read_bytes() == CONTENT
    assert len(server.requests) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "fetched.json"]


def test_ended_process_leaves_its_download(server, tmp_path):
    """A download by an ended process resumes. Downloads by running processes and other machines stay."""
    url = server.plan("/a.txt", {"body": CONTENT, "breaks_after": PART}, {"status": 404})
    corpus = entry({"a.txt": {"addresses": [{"url": url}], "sha256": sha256(CONTENT)}})
    with pytest.raises(UserError):
        fetch_corpus(corpus, tmp_path)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    downloads = tmp_path / DOWNLOADS
    (downloads / f"{platform.node()}-{os.getpid()}").rename(downloads / f"{platform.node()}-{int(ended.stdout)}")
    others = {f"{platform.node()}-{os.getppid()}", f"{platform.node()}-login-{int(ended.stdout)}", "elsewhere-1"}
    for name in others:
        (downloads / name).mkdir()
    server.plan("/a.txt", {"body": CONTENT})
    fetch_corpus(corpus, tmp_path)
    assert server.ranges("/a.txt")[-1] == f"bytes={PART}-"
    assert {path.name for path in downloads.iterdir()} == others


def test_two_processes_share_a_folder(server, tmp_path):
    files = {f"{n}.txt": {"addresses": [{"url": server.plan(f"/{n}", {"body": CONTENT})}]} for n in range(20)}
    url = server.plan("/archive", {"body": tar_gz(below("bank", FILES))})
    corpus = entry(files | {"trees.tar": treebank(url).family.files["trees.tar"].model_dump()})
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=fetch_corpus, args=(corpus, tmp_path)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert (tmp_path / "trees.tar").read_bytes() == TAR
    assert all((tmp_path / name).read_bytes() == CONTENT for name in files)
    assert not (tmp_path / DOWNLOADS).exists()


def test_members_of_links_are_skipped(server, tmp_path):
    url = server.plan("/archive", {"body": tar_gz(FILES | {"trees/dev/b.dis": b"LINK"})})
    with pytest.raises(UserError, match=r"trees/dev/b\.dis is missing"):
        fetch_corpus(treebank(url), Path(tmp_path))
