"""Checksums of the files that docmt writes: a file that was damaged or swapped is refused where it is read.

The record of `DIR/NAME` is `DIR/.checksums/NAME.sha256`, in the format of `sha256sum`: after `cd DIR`,
`sha256sum -c .checksums/*` checks a whole folder. A file without a record is not checked: it is a user's own, or was
written by an older docmt. A record without a file is what Snakemake leaves of a temporary file.

A command that a rule of the workflow runs is given the fingerprint of what it makes (`--fingerprint`), and adds it to
the records as a comment (`# fingerprint 0123456789ab`), which `sha256sum` skips, and the file's time of modification in
nanoseconds (`# made 1763904825123456789`). The results of a study thus tell by themselves what they were made from, and
in which order, wherever they are copied. The number of the file in its file system (`# inode 1234`) tells copies apart.

The command is also given what its inputs are made from (`--made-from`): a file of an older run, or of another system,
is refused although it agrees with its record.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from docmt.errors import UserError

FOLDER = ".checksums"
FINGERPRINT_VARIABLE = "DOCMT_FINGERPRINT"
INPUTS_VARIABLE = "DOCMT_INPUTS"
FINGERPRINT_MARK = "# fingerprint "
TIME_MARK = "# made "
INODE_MARK = "# inode "
# An hour in nanoseconds: longer than most jobs take from their first file to their end.
MOST_LATER = 3600 * 10**9
# The file in a folder whose time Snakemake takes as the folder's.
DIRECTORY_TIME = ".snakemake_timestamp"


def record_of(path: Path) -> Path:
    """Where the checksum of a file is recorded."""
    return path.parent / FOLDER / f"{path.name}.sha256"


def file_of(record: Path) -> Path:
    """The file whose checksum a record holds."""
    return record.parents[1] / record.name.removesuffix(".sha256")


def place(temporary: Path, path: Path) -> None:
    """Rename a finished file to its final name and record its checksum.

    The old record goes first and the new one comes last: a kill in between leaves a file without a record, never a
    file with the record of another. All data are on disk before the first of these steps, so that a full disk leaves
    the existing file and its record unchanged.
    """
    record = record_of(path)
    record.parent.mkdir(exist_ok=True)
    new_record = temporary.with_name(record.name)
    _write_record(temporary, new_record)
    record.unlink(missing_ok=True)
    os.replace(temporary, path)
    os.replace(new_record, record)


def record_folder(folder: Path) -> None:
    """Record the checksums of all files in a folder that have no record yet."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent.name != FOLDER and not (record := record_of(path)).exists():
            record.parent.mkdir(exist_ok=True)
            _write_record(path, record)


def _write_record(path: Path, record: Path) -> None:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with open(record, "w", encoding="utf-8", newline="\n") as file:
        file.write(f"{digest}  {path.name}\n")
        if fingerprint := os.environ.get(FINGERPRINT_VARIABLE):
            found = os.stat(path)
            file.write(f"{FINGERPRINT_MARK}{fingerprint}\n{TIME_MARK}{found.st_mtime_ns}\n{INODE_MARK}{found.st_ino}\n")
        file.flush()
        os.fsync(file.fileno())


def recorded_fingerprint(path: Path) -> str | None:
    """The fingerprint in the record of a file, or in the first record of a folder that has one; None without any."""
    found = (_read_record(record).get(FINGERPRINT_MARK) for record in _records(path))
    return next((fingerprint for fingerprint in found if fingerprint), None)


def is_in_place(path: Path) -> bool:
    """Whether a file, or one in a folder, was made here, or is a copy whose time was restored before."""
    for record in _records(path):
        content = _read_record(record)
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(file_of(record))
            later = found.st_mtime_ns - int(content.get(TIME_MARK, ""))
            # When a job ends, Snakemake sets the times of what it made once more. Without the limit, a copy on another
            # disk could have the same inode by chance.
            if later == 0 or (0 < later < MOST_LATER and str(found.st_ino) == content.get(INODE_MARK)):
                return True
    return False


def recorded_time(path: Path) -> str:
    """The recorded time of a file, or the last one in a folder, as digits; empty without any."""
    return max((_read_record(record).get(TIME_MARK, "") for record in _records(path)), default="")


def restore_time(path: Path) -> None:
    """Give a file or folder the recorded time of modification again, which copies lack, if its content is as recorded.

    A file that was changed keeps its time, so that what depends on it runs again and refuses it. A file whose time
    cannot be set, as it belongs to someone else, keeps it, too.
    """
    times = {}
    with contextlib.suppress(OSError, ValueError):
        for record in _records(path):
            file = file_of(record)
            content = _read_record(record)
            times[file] = int(content.get(TIME_MARK, ""))
            if os.stat(file).st_mtime_ns != times[file]:
                with open(file, "rb") as opened:
                    if hashlib.file_digest(opened, "sha256").hexdigest() != content[""]:
                        return
        if path not in times and (path / DIRECTORY_TIME).exists():
            times[path / DIRECTORY_TIME] = max(times.values())
        for file, made in times.items():
            if os.stat(file).st_mtime_ns != made:
                os.utime(file, ns=(made, made))


def _records(path: Path) -> list[Path]:
    """The record of a file, or those in a folder."""
    record = record_of(path)
    return sorted((path / FOLDER).glob("*.sha256")) if not record.exists() and path.is_dir() else [record]


def _read_record(record: Path) -> dict[str, str]:
    """The checksum (under ""), fingerprint, time and inode in a record; empty if it cannot be read."""
    try:
        first, *lines = record.read_text(encoding="ascii", errors="replace").splitlines()
    except (OSError, ValueError):
        return {}
    marks = (FINGERPRINT_MARK, TIME_MARK, INODE_MARK)
    marked = {mark: line.removeprefix(mark) for line in lines for mark in marks if mark in line}
    return {"": first.split(" ")[0], **marked}


@contextlib.contextmanager
def open_verified(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading in binary mode, once its checksum agrees with its record.

    Raises:
        UserError: the file differs from its record, or the workflow expects another one in its place.
        OSError: it cannot be opened.
    """
    path = Path(path)
    if not _is_expected(path):
        raise UserError(
            f"{path}: made with other settings or data than this command is for: run snakemake, which makes it again, "
            f"or delete {record_of(path)} to use it as it is"
        )
    for _ in range(2):  # a writer may replace both between our opening the one and reading the other
        with open(path, "rb") as file:
            if _agrees(file, path):
                yield file
                return
    raise UserError(
        f"{path}: changed since docmt wrote it (its checksum differs): remove it and run again, or delete "
        f"{record_of(path)} if the change is intended"
    )


def input_token(path: str, fingerprint: str) -> str:
    """An input of a command in twelve characters: six for its place, six for the place and what it is made from."""
    place = os.path.normpath(path)
    return "".join(hashlib.sha256(text.encode()).hexdigest()[:6] for text in (place, f"{place} {fingerprint}"))


def _is_expected(path: Path) -> bool:
    """Whether a file is what the workflow plans at its place: an older one agrees with its record, too.

    What the plan does not name, or has no fingerprint, is expected: another command wrote it, or a person.
    """
    planned = os.environ.get(INPUTS_VARIABLE, "").split(",")
    if not (any(planned) and (fingerprint := recorded_fingerprint(path))):
        return True
    # An input can be a folder whose files are read.
    tokens = [input_token(os.path.relpath(place), fingerprint) for place in (path, path.parent)]
    own = [token for token in planned if token[:6] in {known[:6] for known in tokens}]
    return not own or not {*own}.isdisjoint(tokens)


def is_checking() -> bool:
    """Whether this process compares checksums: of the processes of a training, the first on each machine does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _agrees(file: BufferedReader, path: Path) -> bool:
    """Whether an open file, hashed as a stream and rewound, agrees with the record of its path or has none."""
    record = record_of(path)
    if not (is_checking() and os.path.exists(record)):
        return True
    # Of the open file, not of the path: what is read later is what was compared.
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        return record.read_text(encoding="ascii", errors="replace").split()[:1] == [digest]
    except FileNotFoundError:  # a writer is replacing the file: what is open here is the old one, still whole
        return True
