"""Checksums of the files that docmt writes: a file that was damaged or swapped is refused where it is read.

The record of `DIR/NAME` is `DIR/.checksums/NAME.sha256`, in the format of `sha256sum`: after `cd DIR`,
`sha256sum -c .checksums/*` checks a whole folder. A user-supplied file has no record. In a job of a workflow, it is
compared with the checksum when the run was planned. A record without a file is what Snakemake leaves of a temporary
file.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from docmt.current_run import planned_digest
from docmt.errors import UserError

FOLDER = ".checksums"
VERIFIED, EDITABLE = ".sha256", ".written"
"""File name suffixes of records. Files with the second suffix are not verified when they are read."""


def checksum_path(path: Path) -> Path:
    """Return the path of the recorded checksum of a file."""
    return path.parent / FOLDER / f"{path.name}{VERIFIED}"


def replace_and_record(temporary: Path, path: Path) -> None:
    """Rename a finished file to its final name and record its checksum.

    The old record goes first and the new one comes last: a kill in between leaves a file without a record, never a
    file with the record of another. All data are on disk before the first of these steps, so that a full disk leaves
    the existing file and its record unchanged.
    """
    record = checksum_path(path)
    record.parent.mkdir(exist_ok=True)
    new_record = temporary.with_name(record.name)
    _write_record(temporary, new_record)
    record.unlink(missing_ok=True)
    os.replace(temporary, path)
    os.replace(new_record, record)


def record_folder(folder: Path) -> None:
    """Record the checksums of all files in a folder that have no record yet."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent.name != FOLDER and not checksum_path(path).exists():
            record_file(path)


def record_file(path: Path, *, suffix: str = VERIFIED) -> str:
    """Record and return the checksum of a file. With the suffix `EDITABLE`, the file can be edited."""
    record = checksum_path(path).with_suffix(suffix)
    record.parent.mkdir(exist_ok=True)
    return _write_record(path, record)


def is_unchanged(path: Path) -> bool:
    """True if docmt wrote a file, and nothing has changed it since."""
    records = [checksum_path(path).with_suffix(suffix) for suffix in (VERIFIED, EDITABLE)]
    digests = [record.read_text(encoding="ascii", errors="replace")[:64] for record in records if record.is_file()]
    return bool(digests) and not path.is_symlink() and path.is_file() and sha256_file(path) in digests


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file as stored on disk, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_record(path: Path, record: Path) -> str:
    digest = sha256_file(path)
    with open(record, "w", encoding="utf-8", newline="\n") as file:
        file.write(f"{digest}  {path.name}\n")
        file.flush()
        os.fsync(file.fileno())
    return digest


@contextlib.contextmanager
def open_verified(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading in binary mode, once its checksum agrees with its record.

    Raises:
        UserError: the file differs from its record, or from the user-supplied file that the run was planned with.
        OSError: it cannot be opened.
    """
    path = Path(path)
    planned = planned_digest(path)
    if planned is not None:
        with open(path, "rb") as file:
            _check_planned(file, path, planned)
            yield file
        return
    for _ in range(2):  # a writer may replace both between our opening the one and reading the other
        with open(path, "rb") as file:
            if _checksum_matches(file, path):
                yield file
                return
    raise UserError(
        f"{path}: was changed after docmt wrote it (its checksum differs): remove it and run again. If the change "
        f"is intended, delete {checksum_path(path)}"
    )


def check_planned(path: Path) -> None:
    """Raise UserError if a user-supplied file was changed after the run was planned.

    For files that a library or another program reads. Other files are checked by `open_verified`.
    """
    planned = planned_digest(path)
    if planned is not None:
        with open(path, "rb") as file:
            _check_planned(file, path, planned)


def _check_planned(file: BufferedReader, path: Path, planned: str) -> None:
    if is_checking() and hashlib.file_digest(file, "sha256").hexdigest() != planned:
        raise UserError(f"{path}: was changed after this run was planned: start the run again to use the change")
    file.seek(0)


def is_checking() -> bool:
    """True if this process compares checksums. In a training, the first process on each machine does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _checksum_matches(file: BufferedReader, path: Path) -> bool:
    """True if an open file has the recorded checksum, or has no record. The file is read and rewound."""
    record = checksum_path(path)
    if not (is_checking() and os.path.exists(record)):
        return True
    # Of the open file, not of the path: what is read later is what was compared.
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        return record.read_text(encoding="ascii", errors="replace").split()[:1] == [digest]
    except FileNotFoundError:  # a writer is replacing the file: what is open here is the old one, still whole
        return True
