# ruff: noqa: F811 (fixtures of another file)
"""Servers that send too much or too slowly, or redirect elsewhere."""

import contextlib
import io
import itertools
import socketserver
import threading
import time
from dataclasses import replace

import pytest
import requests
import urllib3
from test_download import CONTENT, PART, QUICK, entry, is_content, server, sha256  # noqa: F401 (a fixture)

from docmt.corpora.download import CHUNK_BYTES, AddressError, download
from docmt.corpora.fetching import fetch_corpus
from docmt.errors import UserError
from docmt.models.published.catalog import find_model


def endless(chunk: bytes, seconds: float):
    """Endless data from a server: header lines, or a body."""
    return iter(lambda: time.sleep(seconds) or chunk, b"")


@pytest.fixture
def raw_server():
    """A function that starts a server and returns its address. The server answers connections with these pieces."""
    stopped = threading.Event()

    def start(*pieces):
        class Answer(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.recv(65536)
                with contextlib.suppress(OSError):
                    for piece in itertools.chain(*pieces):
                        self.request.sendall(piece)
                        if stopped.is_set():
                            return

        running = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer)
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(running)
        return f"http://127.0.0.1:{running.server_address[1]}/a"

    servers: list[socketserver.TCPServer] = []
    yield start
    stopped.set()
    for running in servers:
        running.shutdown()
        running.server_close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("keys", "as_member", "most_bytes"),
    [
        ({"bytes": PART}, False, PART + 1024),
        ({"most_bytes": PART}, False, PART),
        ({}, False, 77_777),
        ({}, True, 77_777),
    ],
    ids=["size known", "size roughly known", "size unknown", "archive"],
)
@pytest.mark.parametrize("has_length", [True, False])
def test_too_large_file_is_given_up(raw_server, tmp_path, monkeypatch, keys, as_member, most_bytes, has_length):
    monkeypatch.setattr("docmt.corpora.fetching.MAX_BYTES", 77_777)
    length = f"Content-Length: {1 << 40}\r\n".encode() if has_length else b""
    url = raw_server([OK + length + b"\r\n"], endless(bytes(CHUNK_BYTES), 0))
    described = entry({"a": {"addresses": [{"url": url} | ({"member": "a"} if as_member else {})]} | keys})
    with pytest.raises(UserError, match=f"sent more than {most_bytes:,} bytes"):
        fetch_corpus(described, tmp_path / "c")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1024]


def test_published_models_have_a_limit_near_their_size():
    model = find_model("opus-mt-en-de")
    assert {file.most_bytes for file in model.sources().values()} == {model.megabytes * 2_000_000}


@pytest.mark.parametrize(
    ("start", "line"), [(b"", b"X"), (OK, b"X"), (OK, b"X: y\r\n")], ids=["status", "bytes", "lines"]
)
def test_headers_that_trickle_are_given_up(raw_server, tmp_path, start, line):
    url = raw_server([start], endless(line, 0.05))
    patience = replace(QUICK, slow_seconds=0.4)
    began = time.monotonic()
    with pytest.raises(AddressError, match=r"/a: no complete headers within 0\.4 s; try again later"):
        download(url, tmp_path / "a", patience=patience)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("url", ["http://[::1", "http://[x]/", "ftp://127.0.0.1/a", "file:///etc/hostname", "//:x/"])
def test_bad_redirection_leaves_other_addresses(server, raw_server, tmp_path, url):
    bad = raw_server([f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()])
    good = server.plan("/a", {"body": CONTENT})
    described = entry({"a": {"addresses": [{"url": bad}, {"url": good}], "sha256": sha256(CONTENT)}})
    assert fetch_corpus(described, tmp_path / "c") == {"a": good}


def test_the_body_of_a_redirection_is_not_read(server, raw_server, tmp_path):
    good = server.plan("/a", {"body": CONTENT})
    head = f"HTTP/1.1 302 Found\r\nLocation: {good}\r\n\r\n".encode()
    url = raw_server([head], endless(bytes(CHUNK_BYTES), 0))
    download(url, tmp_path / "a", patience=replace(QUICK, slow_seconds=5))
    assert is_content(tmp_path / "a")


@pytest.mark.parametrize("hops", [["http://elsewhere/a"], ["http://elsewhere/a", "https://there/a"]])
def test_downgrade_to_plain_http_is_refused(tmp_path, monkeypatch, hops):
    """Even if the last address is encrypted again."""
    places = {url: following for url, following in zip(["https://here/a", *hops], [*hops, None], strict=True)}
    asked = []

    def send(adapter, request, **options):
        asked.append(request.url)
        answer = requests.Response()
        answer.url, answer.request, answer.raw = (
            request.url,
            request,
            urllib3.HTTPResponse(io.BytesIO(CONTENT), preload_content=False),
        )
        answer.status_code = 302 if places[request.url] else 200
        answer.headers["Location"] = places[request.url] or ""
        return answer

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", send)
    with pytest.raises(AddressError, match=r"https://here/a: redirects to an unencrypted address .*http://elsewhere"):
        download("https://here/a", tmp_path / "a", patience=QUICK)
    assert asked == ["https://here/a"]
    places["https://here/a"] = "https://there/a"
    places["https://there/a"] = None
    download("https://here/a", tmp_path / "a", patience=QUICK)
    assert is_content(tmp_path / "a")
