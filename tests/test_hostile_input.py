"""Input that attacks memory, disk, time or the terminal is refused in one line, or printed as text."""

import gzip
import io
import subprocess
import tarfile
import threading
import zipfile

import pytest
import torch
from core_fixtures import run_training

from docmt import files as docmt_files
from docmt.cli.main import main
from docmt.corpora.download import AddressError, Patience, download
from docmt.corpora.fetching import fetch_corpus, unpack
from docmt.corpora.readers.tar_files import read_members
from docmt.decompression import MAX_RATIO, MAX_UNCHECKED_BYTES
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.errors import UserError
from docmt.files import iterate_lines, read_bytes, read_lines
from docmt.models.model_file import load_model

BOMB = b"\n".join([b"x" * 1000] * (MAX_UNCHECKED_BYTES // 1000 + 100_000))


@pytest.fixture(scope="module")
def bomb():
    return gzip.compress(BOMB)


@pytest.mark.parametrize(
    "read",
    [
        read_bytes,
        read_lines,
        lambda path: sum(1 for _ in iterate_lines(path)),
        lambda path: unpack(path, path.with_name("out"), where=path.name),
        lambda path: read_members(path, ".po", what="PO"),
    ],
)
def test_gzip_that_expands_without_end_is_refused(bomb, tmp_path, read):
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(bomb)
    assert len(BOMB) > MAX_RATIO * len(bomb)
    with pytest.raises(UserError, match=rf"bomb\.tar\.gz: expands to more than 200 times its {len(bomb):,} compressed"):
        read(path)
    out = tmp_path / "out"
    assert not out.exists() or out.stat().st_size <= max(MAX_UNCHECKED_BYTES, MAX_RATIO * len(bomb))


def test_small_files_may_compress_well(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n" * 1_000_000))
    assert len(read_lines(path)) == sum(1 for _ in iterate_lines(path)) == 1_000_000


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(docmt_files, "MAX_LINE_BYTES", 100)
    path = tmp_path / "a.en"
    path.write_bytes(b"short\n" + b"x" * 98 + b"\n" + b"y" * 101)
    lines = iterate_lines(path)
    assert [next(lines), next(lines)] == ["short", "x" * 98]
    with pytest.raises(UserError, match=r"a\.en: line 3 has 100 bytes or more: this does not look like text"):
        next(lines)


def test_a_sparse_file_in_a_tar_is_refused(tmp_path):
    hole = tmp_path / "hole.po"
    with open(hole, "wb") as file:
        file.truncate(1 << 40)
    archive = tmp_path / "a.tar"
    packed = subprocess.run(["tar", "--sparse", "-cf", archive, "-C", tmp_path, "hole.po"], check=False)
    if packed.returncode or archive.stat().st_size > 1 << 20:
        pytest.skip("no tar that writes sparse files")
    with pytest.raises(UserError, match=r"a\.tar: hole\.po is a sparse file"):
        read_members(archive, ".po", what="PO")


def packed_bomb(kind):
    if kind == "gzip":
        return gzip.compress(BOMB)
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", BOMB)
    else:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            member = tarfile.TarInfo("a")
            member.size = len(BOMB)
            archive.addfile(member, io.BytesIO(BOMB))
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "reading", "name"),
    [
        ("gzip", "file", "https://here/x"),
        *(
            pytest.param(kind, reading, "https://here/x: a", marks=pytest.mark.slow)
            for kind in ("zip", "tar.gz")
            for reading in ("member", "members")
        ),
    ],
)
def test_expanding_download_is_named_by_address(kind, reading, name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(__file__).rpartition("/")[0] + "/corpora")
    from test_download import entry  # in another folder of tests

    def write(url, target, **options):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed_bomb(kind))
        options.get("is_right", bool)(target)

    monkeypatch.setattr("docmt.corpora.fetching.download", write)
    monkeypatch.setattr("docmt.corpora.catalog._read_catalog_file", {"list": f"{'0' * 64}  a\n"}.__getitem__)
    address = {"url": "https://here/x"} | ({"member": "a"} if reading == "member" else {})
    file = {"addresses": [address], "sha256": "0" * 64}
    if reading == "members":
        file["members"] = {"list": "list", "pattern": "*"}
    with pytest.raises(UserError, match=f"^{name}: expands to more than 200 times"):
        fetch_corpus(entry({"a": file}), tmp_path / "c")
    assert not (tmp_path / "c/a").exists()


def test_slow_server_is_given_up(tmp_path):
    import http.server

    class Trickle(http.server.BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x")
                self.wfile.flush()
                if stopped.wait(0.05):
                    return

    stopped = threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickle) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        patience = Patience(n_attempts=2, first_wait_seconds=0.01, timeout_seconds=5, slow_seconds=0.3, slow_bytes=1000)
        with pytest.raises(AddressError, match=r"sends less than 1,000 bytes in 0\.3 s; the received part is kept"):
            download(f"http://127.0.0.1:{server.server_port}/a", tmp_path / "a", patience=patience)
        stopped.set()
        server.shutdown()
    assert 0 < (tmp_path / "a.part").stat().st_size < 100


@pytest.mark.parametrize("text", ["red \x1b[31m", "title \x1b]0;owned\x07", "\x9b2J", "bell \x07"])
def test_what_messages_quote_cannot_speak_to_the_terminal(text, tmp_path, capsys):
    assert "\\x" in str(UserError(f"{text}: no such file"))
    assert main(["text", "tokenize", "--lang", "en", "--input", str(tmp_path / text), "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert error.endswith("no such file\n")
    assert not [character for character in error[:-1] if ord(character) < 32 or 127 <= ord(character) < 160]


def test_xml_escapes_are_decoded_in_names():
    text = '<rst><header/><body><segment id="1" parent="2" relname="&#x9b;2J">a</segment><segment id="2"/></body></rst>'
    with pytest.raises(UserError, match=r"unknown relation '\\x9b2J'"):
        parse_rs3(text, where="a.rs3")


def test_huge_model_is_refused_early(study_files, tmp_path):
    run_training(study_files, tmp_path, training={"max_steps": 1})
    path = tmp_path / "model.pt"
    content = torch.load(path, weights_only=True)
    content["model"] |= {"width": 1 << 20, "feed_forward_width": 1 << 22}
    (tmp_path / "huge").mkdir()
    torch.save(content, tmp_path / "huge/model.pt")
    with pytest.raises(UserError, match=r"weights and settings do not match .*embedding\.weight has a different shape"):
        load_model(tmp_path / "huge/model.pt")
    assert load_model(path).model.settings.width < 1 << 20
