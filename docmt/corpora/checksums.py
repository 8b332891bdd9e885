"""Checks whether a file is the one that the catalogue describes, plain or compressed with gzip."""

import contextlib
import gzip
import hashlib
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from docmt.corpora.catalogue import SourceFile

CHUNK_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"


def is_same(path: Path, file: SourceFile) -> bool:
    """Whether `path` has the content of the file, or is the gzip file that a mirror may hold.

    A file without a published checksum is accepted if its size matches, or if no size is published either.
    """
    digests = _digests(path)
    if file.sha256_gz and digests[0] == file.sha256_gz:
        return True
    if file.sha256:
        return digests[0] == file.sha256
    if file.git_blob:
        return digests[1] == file.git_blob
    return file.bytes is None or path.stat().st_size == file.bytes


def unpack(path: Path, target: Path) -> bool:
    """Decompress a gzip file to `target`; a plain file is copied. Returns False when the gzip file is corrupt."""
    with open(path, "rb") as raw, open(target, "wb") as out:
        is_gzip = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        try:
            with gzip.open(raw) if is_gzip else contextlib.nullcontext(raw) as content:
                shutil.copyfileobj(content, out, CHUNK_BYTES)
        except (EOFError, OSError, zlib.error):
            return False
    return True


def _digests(path: Path) -> tuple[str, str]:
    """The SHA-256 and the git blob id of a file."""
    sha256 = hashlib.sha256()
    git_blob = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as file:
        for chunk in _chunks(file):
            sha256.update(chunk)
            git_blob.update(chunk)
    return sha256.hexdigest(), git_blob.hexdigest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
