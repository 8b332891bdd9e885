"""Checksums of user-supplied files for fingerprints."""

import contextlib
import functools
import os
import time
from pathlib import Path

from docmt.checksums import sha256_file
from docmt.errors import UserError
from docmt.files import read_facts, write_json

CACHE = Path("resources/own_files.json")
"""Checksum cache for large files, so that cluster jobs do not compute them again. A damaged cache is replaced."""
LARGE_BYTES = 1 << 26
"""Minimum file size in bytes for caching. Hashing takes 0.1 seconds."""
SETTLED_SECONDS = 2.0
"""Seconds since the last change before a checksum is cached. A second change could leave the same times."""


@functools.cache
def content_digest(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal.

    A large file's checksum is cached until its size, inode or times change.
    """
    try:
        facts = os.stat(path)
        if facts.st_size < LARGE_BYTES:
            return sha256_file(path)
        return _remembered(path, facts)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _remembered(path: Path, facts: os.stat_result) -> str:
    # Programs cannot set ctime. Therefore a file that was replaced by an older file is hashed again.
    state = [facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns]
    cache = read_facts(CACHE)
    match cache.get(str(path)):
        case {"state": recorded, "sha256": str(digest)} if recorded == state:
            return digest
    digest = sha256_file(path)
    if time.time() - facts.st_ctime > SETTLED_SECONDS:
        with contextlib.suppress(UserError, OSError):  # it only saves time
            write_json(CACHE, cache | {str(path): {"state": state, "sha256": digest}}, checksum=False)
    return digest
