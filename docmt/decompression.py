"""Decompression with a limit, since a few kilobytes of gzip can expand to terabytes and fill memory or disk."""

import gzip
import io
import os
from io import BufferedReader
from typing import Any

from docmt.errors import UserError

# Largest ratio of the sizes of a file and its archive; text is rarely more than 20 times larger.
MAX_RATIO = 200
# Up to this size, any ratio is accepted.
MAX_UNCHECKED_BYTES = 1 << 26
BLOCK_BYTES = 1 << 18


def check_expansion(n_bytes: int, n_packed: int, *, where: str) -> None:
    """Raise UserError when the compressed bytes are suspiciously few."""
    if n_bytes > max(MAX_UNCHECKED_BYTES, MAX_RATIO * n_packed):
        raise UserError(
            f"{where}: expands to more than {MAX_RATIO} times its {n_packed:,} compressed bytes: this does not look "
            "like text; if you trust the file, decompress it yourself"
        )


class _Limited(io.RawIOBase):
    """Stream of decompressed gzip content. Reading raises UserError when it becomes suspiciously large."""

    def __init__(self, packed: BufferedReader, where: str) -> None:
        self._content = gzip.GzipFile(fileobj=packed)
        self._n_packed = os.fstat(packed.fileno()).st_size
        self._n_bytes = 0
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        n_bytes = self._content.readinto(buffer)
        self._n_bytes += n_bytes
        check_expansion(self._n_bytes, self._n_packed, where=self._where)
        return n_bytes


def open_gzip(packed: BufferedReader, *, where: str) -> BufferedReader:
    """Return a stream that decompresses an open gzip file. `where` is the file name in messages.

    Reading raises UserError like `check_expansion`. For corrupt data, it raises the exceptions of `gzip`.
    """
    return io.BufferedReader(_Limited(packed, where), BLOCK_BYTES)
