"""Downloads from a misbehaving server on the loopback interface."""

import gzip
import hashlib
import http.server
import io
import lzma
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

from docmt.corpora.catalog import Entry, Family
from docmt.corpora.download import CHUNK_BYTES, AddressError, Patience, download
from docmt.corpora.fetching import fetch_corpus
from docmt.errors import UserError
from docmt.files import read_lines

QUICK = Patience(n_attempts=3, first_wait_seconds=0.01, max_wait_seconds=0.05, timeout_seconds=5)
# Eleven chunks, so that nothing is lost when a connection breaks between two chunks.
CONTENT = b"".join(b"line %d\n" % n for n in range(20_000))[: 11 * CHUNK_BYTES]
PART = 4 * CHUNK_BYTES


@pytest.fixture(autouse=True)
def quick_fetching(monkeypatch):
    """Attempts to fetch a file follow immediately."""
    monkeypatch.setattr("docmt.corpora.fetching.download", partial(download, patience=QUICK))


class Server(http.server.ThreadingHTTPServer):
    """A server with a list of behaviors per path, one per request. The last behavior repeats."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plans: dict[str, list[dict]] = {}
        self.requests: list[tuple[str, str | None]] = []

    def plan(self, path: str, *steps: dict) -> str:
        self.plans[path] = list(steps)
        return f"http://127.0.0.1:{self.server_port}{path}"

    def ranges(self, path: str) -> list[str | None]:
        return [asked for name, asked in self.requests if name == path]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.requests.append((self.path, asked))
        steps = self.server.plans.get(self.path, [{"status": 404}])
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        status, body = step.get("status", 200), step.get("body", b"")
        etag = step.get("etag", '"v1"')
        start = 0
        if asked and status == 200 and step.get("has_ranges", True):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                status = 416
            elif self.headers.get("If-Range") in (None, etag):
                status = 206
            else:
                start = 0
        if status not in (200, 206):
            body, start = b"", 0
        self.send_response(status)
        if status == 206:
            first = step.get("claims", start)
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        if etag:
            self.send_header("ETag", etag)
        if "encoding" in step:
            self.send_header("Content-Encoding", step["encoding"])
        if "retry_after" in step:
            self.send_header("Retry-After", step["retry_after"])
        rest = body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: step.get("breaks_after", len(rest))])
        if "stalls" in step:
            self.wfile.flush()
            step["stalls"].wait(60)


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def is_content(path: Path) -> bool:
    return path.read_bytes() == CONTENT


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("steps", "ranges"),
    [
        pytest.param([{"body": CONTENT}], [None], id="plain"),
        pytest.param([{"status": 503}, {"body": CONTENT}], [None, None], id="busy, then fine"),
        pytest.param([{"status": 429, "retry_after": "1"}, {"body": CONTENT}], [None, None], id="asked to wait"),
        pytest.param(
            [{"body": CONTENT, "breaks_after": PART}, {"body": CONTENT}],
            [None, f"bytes={PART}-"],
            id="breaks off, resumed",
        ),
        pytest.param(
            [{"body": CONTENT, "breaks_after": PART}, {"body": CONTENT, "has_ranges": False}],
            [None, f"bytes={PART}-"],
            id="breaks off, no ranges: starts over",
        ),
        pytest.param(
            [{"body": CONTENT[::-1], "breaks_after": PART}, {"body": CONTENT, "etag": '"v2"'}],
            [None, f"bytes={PART}-"],
            id="changed meanwhile: starts over",
        ),
        pytest.param(
            [{"body": CONTENT, "breaks_after": PART, "etag": None}, {"body": CONTENT}],
            [None, None],
            id="no validator: starts over",
        ),
        pytest.param(
            [{"body": gzip.compress(CONTENT), "encoding": "gzip", "breaks_after": CHUNK_BYTES}, {"body": CONTENT}],
            [None, None],
            id="compressed on the way: starts over",
        ),
        pytest.param(
            [{"body": CONTENT, "breaks_after": PART}, {"body": CONTENT, "claims": 5}, {"body": CONTENT}],
            [None, f"bytes={PART}-", None],
            id="wrong range: starts over",
        ),
        pytest.param(
            [{"body": CONTENT * 2, "breaks_after": len(CONTENT)}, {"body": CONTENT}, {"body": CONTENT}],
            [None, f"bytes={len(CONTENT)}-", None],
            id="range beyond the end: starts over",
        ),
        pytest.param(
            [{"body": CONTENT, "breaks_after": CHUNK_BYTES * 2}] * 5 + [{"body": CONTENT}],
            [None, *(f"bytes={n * CHUNK_BYTES * 2}-" for n in range(1, 6))],
            id="more breaks than attempts, each with progress",
        ),
        pytest.param(
            [{"body": CONTENT[::-1], "breaks_after": PART}, {"body": CONTENT}, {"body": CONTENT}],
            [None, f"bytes={PART}-", None],
            id="resumed file is wrong: fetched once more",
        ),
    ],
)
def test_download_gets_there(server, tmp_path, steps, ranges):
    url = server.plan("/file", *steps)
    download(url, tmp_path / "file", is_right=is_content, patience=QUICK)
    assert is_content(tmp_path / "file")
    assert parts(tmp_path) == ["file"]
    assert server.ranges("/file") == ranges


@pytest.mark.parametrize(
    ("steps", "n_requests", "message"),
    [
        ([{"status": 404}], 1, "HTTP 404"),
        ([{"status": 403}], 1, "HTTP 403"),
        ([{"status": 503}], 3, "HTTP 503, 3 times"),
        ([{"body": b"something else"}], 1, r"the checksum differs \(14 bytes received\)"),
    ],
)
def test_download_gives_up_and_leaves_no_file(server, tmp_path, steps, n_requests, message):
    url = server.plan("/file", *steps)
    with pytest.raises(AddressError, match=message):
        download(url, tmp_path / "file", is_right=is_content, patience=QUICK)
    assert len(server.requests) == n_requests
    assert parts(tmp_path) == []


def test_download_keeps_the_part_for_the_next_call(server, tmp_path):
    url = server.plan("/file", {"body": CONTENT, "breaks_after": PART}, {"status": 503})
    with pytest.raises(AddressError):
        download(url, tmp_path / "file", is_right=is_content, patience=QUICK)
    assert parts(tmp_path) == ["file.part", "file.part.json"]
    server.plan("/file", {"body": CONTENT})
    download(url, tmp_path / "file", is_right=is_content, patience=QUICK)
    assert server.ranges("/file")[-1] == f"bytes={PART}-"
    assert is_content(tmp_path / "file")


def test_killed_download_resumes(server, tmp_path):
    release = threading.Event()
    url = server.plan("/file", {"body": CONTENT, "breaks_after": PART, "stalls": release}, {"body": CONTENT})
    code = f"from docmt.corpora.download import *; download({url!r}, Path({str(tmp_path / 'file')!r}))"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        part = tmp_path / "file.part"
        end = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
    release.set()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "file").exists()
    n_bytes = part.stat().st_size
    assert 0 < n_bytes <= PART
    download(url, tmp_path / "file", is_right=is_content, patience=QUICK)
    assert server.ranges("/file") == [None, f"bytes={n_bytes}-"]
    assert parts(tmp_path) == ["file"]


def test_download_from_nowhere_is_an_address_error(tmp_path):
    with pytest.raises(AddressError, match="ConnectionError"):
        download("http://127.0.0.1:9/file", tmp_path / "file", patience=QUICK)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry(files: dict[str, dict]) -> Entry:
    """A corpus with one split that contains these files."""
    corpus = {
        "version": "1",
        "title": "t",
        "languages": ["en"],
        "format": {"reader": "files"},
        "splits": {"all": {"files": {f"role{i}": name for i, name in enumerate(files)}}},
    }
    head = {"source": "s", "license": "l", "terms": "open", "mirror_folder": "family"}
    family = Family.load(head | {"files": files, "corpora": {"c": corpus}}, where="test")
    return Entry(name="c", corpus=family.corpora["c"], family=family)


def mirror_of(folder: Path, name: str, content: bytes) -> Path:
    """A mirror with one file of the corpus."""
    path = folder / "mirror" / "family" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return folder / "mirror"


def tar_gz(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if content == b"LINK":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_fetch_tries_the_next_address(server, tmp_path):
    wrong = server.plan("/wrong", {"body": b"wrong"})
    packed = server.plan("/packed", {"body": gzip.compress(CONTENT)})
    addresses = [{"url": server.plan("/lost", {"status": 404})}, {"url": wrong}, {"url": packed}]
    corpus = entry({"sub/a.txt": {"addresses": addresses, "sha256": sha256(CONTENT)}})
    record = fetch_corpus(corpus, tmp_path / "out")
    assert record == {"sub/a.txt": packed}
    assert is_content(tmp_path / "out" / "sub" / "a.txt")
    assert parts(tmp_path / "out") == ["a.txt", "fetched.json"]
    n_requests = len(server.requests)
    assert fetch_corpus(corpus, tmp_path / "out") == record
    assert len(server.requests) == n_requests, "a file that is there and right is not fetched again"


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"1", b'{"a.txt": []}', b"[" * 100_000])
def test_damaged_record_is_replaced(content, server, tmp_path):
    addresses = [{"url": server.plan("/a.txt", {"body": CONTENT})}]
    corpus = entry({"a.txt": {"addresses": addresses, "sha256": sha256(CONTENT)}})
    (tmp_path / "a.txt").write_bytes(CONTENT)
    (tmp_path / "fetched.json").write_bytes(content)
    for _ in range(2):
        assert fetch_corpus(corpus, tmp_path).keys() == {"a.txt"}
    assert not server.requests
    assert is_content(tmp_path / "a.txt")


def test_fetch_says_where_to_put_the_file(server, tmp_path):
    addresses = [{"url": server.plan("/lost", {"status": 404})}, {"url": server.plan("/bad", {"body": b"bad"})}]
    corpus = entry({"a.txt": {"addresses": addresses, "sha256": sha256(CONTENT)}})
    with pytest.raises(UserError) as caught:
        fetch_corpus(corpus, tmp_path / "out")
    text = str(caught.value)
    for part in ("put the file at", str(tmp_path / "out" / "a.txt"), sha256(CONTENT), "HTTP 404", "checksum differs"):
        assert part in text
    assert "\n" not in text
    assert not (tmp_path / "out" / "a.txt").exists()
    (tmp_path / "out" / "a.txt").write_bytes(CONTENT)
    assert fetch_corpus(corpus, tmp_path / "out") == {"a.txt": "placed by hand"}


def test_manual_file_says_what_to_obtain(tmp_path):
    corpus = entry({"a.txt": {"obtain": "the tapes from the archive"}})
    with pytest.raises(UserError, match=r"obtain the tapes from the archive, and put it at .*a\.txt"):
        fetch_corpus(corpus, tmp_path)
    (tmp_path / "a.txt").write_text("x")
    fetch_corpus(corpus, tmp_path)


@pytest.mark.parametrize("pack", [tar_gz, zipped])
def test_fetch_extracts_members_of_one_archive_fetched_once(server, tmp_path, pack):
    body = pack({"test/../../../evil.txt": b"evil", "test/a.txt": CONTENT, "test/b.txt": b"B\n"})
    url = server.plan("/archive", {"body": body})
    files = {
        name: {"addresses": [{"url": url, "member": f"test/{name}"}], "sha256": sha256(content)}
        for name, content in (("a.txt", CONTENT), ("b.txt", b"B\n"))
    }
    fetch_corpus(entry(files), tmp_path / "deep" / "er" / "out")
    assert len(server.requests) == 1
    assert parts(tmp_path) == ["a.txt", "b.txt", "fetched.json"]


TAR_XZ = lzma.compress(gzip.decompress(tar_gz({"test/a.txt": CONTENT})))
ZIP = zipped({"test/a.txt": CONTENT})
SIZES = ZIP.rindex(b"PK\1\2") + 20  # the place of both sizes in the directory of the archive


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (TAR_XZ[:1000] + bytes(100) + TAR_XZ[1100:], "the archive is corrupt"),
        (ZIP[:SIZES] + b"\0\0\0\x08" * 2 + ZIP[SIZES + 8 :], "expands to more than 200 times"),
        (tar_gz({"test/b.txt": b"B"}), "the archive has no file test/a.txt"),
        (tar_gz({"test/a.txt": b"LINK"}), "the archive has no file test/a.txt"),
        (zipped({"test/b.txt": b"B"}), "the archive has no file test/a.txt"),
        (tar_gz({"test/a.txt": b"wrong"}), "the checksum differs"),
        (tar_gz({"test/a.txt": CONTENT})[:2_000], "the archive is corrupt"),
        (b"<html>no archive</html>", "the archive is corrupt"),
        (zipped({"test/a.txt": CONTENT})[:-10] + b"\xff" * 3 + bytes(7), "the archive is corrupt"),
        (
            zipped({"test/a.txt": CONTENT}).replace(b"PK\1\2\24\3\24\0\0\0\0\0", b"PK\1\2\24\3\24\0\0\0\x63\0"),
            "is corrupt",
        ),
    ],
)
def test_fetch_refuses_bad_archives(server, tmp_path, body, reason):
    address = {"url": server.plan("/archive", {"body": body}), "member": "test/a.txt"}
    corpus = entry({"a.txt": {"addresses": [address], "sha256": sha256(CONTENT)}})
    with pytest.raises(UserError, match=reason):
        fetch_corpus(corpus, tmp_path)
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("check", [{"sha256": sha256(CONTENT)}, {"git_blob": git_blob(CONTENT)}])
def test_fetch_takes_the_mirror_first(server, tmp_path, is_packed, check):
    address = {"url": server.plan("/a.txt", {"body": CONTENT})}
    mirror = mirror_of(tmp_path, "a.txt.gz" if is_packed else "a.txt", gzip.compress(CONTENT) if is_packed else CONTENT)
    corpus = entry({"a.txt": {"addresses": [address]} | check})
    assert fetch_corpus(corpus, tmp_path / "out", mirror=mirror) == {"a.txt": "mirror"}
    assert is_content(tmp_path / "out" / "a.txt")
    assert server.requests == []


@pytest.mark.parametrize("bad", [b"another file", gzip.compress(CONTENT)[:-100], b"\x1f\x8bno gzip"])
def test_wrong_mirror_file_leads_to_the_network(server, tmp_path, bad):
    mirror = mirror_of(tmp_path, "a.txt.gz", bad)
    url = server.plan("/a.txt", {"body": CONTENT})
    corpus = entry({"a.txt": {"addresses": [{"url": url}], "sha256": sha256(CONTENT)}})
    assert fetch_corpus(corpus, tmp_path / "out", mirror=mirror) == {"a.txt": url}


def test_fetch_accepts_a_listed_variant(server, tmp_path):
    url = server.plan("/a.txt", {"body": b"other bytes, same text"})
    corpus = entry({"a.txt": {"addresses": [{"url": url, "is_checked": False}], "sha256": sha256(CONTENT)}})
    for _ in range(2):
        assert fetch_corpus(corpus, tmp_path) == {"a.txt": url}
    assert len(server.requests) == 1


@pytest.mark.parametrize("keys", [{}, {"bytes": len(CONTENT)}])
def test_first_fetch_records_a_checksum(server, tmp_path, keys):
    url = server.plan("/a.txt", {"body": CONTENT})
    corpus = entry({"a.txt": {"addresses": [{"url": url}]} | keys})
    for _ in range(2):
        assert fetch_corpus(corpus, tmp_path) == {"a.txt": url}
    record = tmp_path / ".checksums/a.txt.sha256"
    assert record.read_text(encoding="ascii") == f"{sha256(CONTENT)}  a.txt\n"
    (tmp_path / "a.txt").write_bytes(CONTENT[::-1])
    for use in (lambda: fetch_corpus(corpus, tmp_path), lambda: read_lines(tmp_path / "a.txt")):
        with pytest.raises(UserError, match=r"a\.txt: was changed after docmt wrote it \(its checksum differs\)"):
            use()
    assert len(server.requests) == 1
    (tmp_path / "a.txt").unlink()
    server.plan("/a.txt", {"body": CONTENT})
    fetch_corpus(corpus, tmp_path)
    assert is_content(tmp_path / "a.txt")


def test_fetch_keeps_archives_compressed_that_are_files_themselves(tmp_path):
    packed = gzip.compress(CONTENT, mtime=0)
    corpus = entry({"a.tar.gz": {"obtain": "it", "sha256": sha256(CONTENT), "sha256_gz": sha256(packed)}})
    fetch_corpus(corpus, tmp_path / "out", mirror=mirror_of(tmp_path, "a.tar.gz", packed))
    assert (tmp_path / "out" / "a.tar.gz").read_bytes() == packed


@pytest.mark.parametrize("as_member", [True, False])
def test_full_disk_keeps_the_download(server, small_disk, as_member):
    """A full disk does not mean that the archive is corrupt. With more space, it is not fetched again."""
    content = bytes(1_000_000)
    body = tar_gz({"a": content}) if as_member else gzip.compress(content)
    url = server.plan("/packed", {"body": body})
    address = {"url": url, "member": "a"} if as_member else {"url": url}
    described = entry({"a": {"addresses": [address], "sha256": hashlib.sha256(content).hexdigest()}})
    out = small_disk(500) / "c"
    for _ in range(2):
        with pytest.raises(UserError, match=f"{out}.*No space left on device\): free some space"):
            fetch_corpus(described, out)
    subprocess.run(["mount", "-o", "remount,size=5000k", str(out.parent)], check=True)
    fetch_corpus(described, out)
    assert (out / "a").read_bytes() == content
    assert not as_member or len(server.ranges("/packed")) == 1
