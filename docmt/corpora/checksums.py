"""Checks whether a file is the one that the catalogue describes, plain or compressed with gzip."""

import functools
import hashlib
import shutil
import zlib
from pathlib import Path

from docmt.corpora.catalogue import SourceFile
from docmt.decompression import open_gzip
from docmt.files import sha256_file

GZIP_MAGIC = b"\x1f\x8b"


def is_same(path: Path, file: SourceFile) -> bool:
    """Whether `path` has the content of the file, or is the gzip file that a mirror may hold.

    A file without a published checksum is accepted if its size matches, or if no size is published either.
    """
    digest = sha256_file(path)
    if file.sha256 or digest == file.sha256_gz:
        return digest in (file.sha256, file.sha256_gz)
    if file.git_blob:
        return _git_blob(path) == file.git_blob
    return file.bytes is None or path.stat().st_size == file.bytes


def unpack(path: Path, target: Path) -> bool:
    """Decompress a gzip file to `target`; a plain file is copied. Returns False when the gzip file is corrupt.

    Raises UserError when it expands suspiciously, and OSError when the system refuses to read or to write.
    """
    with open(path, "rb") as raw, open(target, "wb") as out:
        is_gzip = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        try:
            shutil.copyfileobj(open_gzip(raw, where=str(path)) if is_gzip else raw, out)
        except (EOFError, OSError, zlib.error) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the system refused: a full disk says nothing of the file
            return False
    return True


def _git_blob(path: Path) -> str:
    start = functools.partial(hashlib.sha1, b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, start).hexdigest()
