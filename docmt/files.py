r"""File input and output: strict UTF-8, lines that end only in "\n", checksums, atomic writes.

Writing records a checksum and reading verifies it (see `docmt.checksums`). `checksum=False` is for files that are
rewritten while other processes read them, that have other checksums, or that belong to the user.
"""

import contextlib
import errno
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from docmt import checksums
from docmt.decompression import open_gzip
from docmt.errors import UserError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of UTF-16. In other encodings, they are rare letters."""
UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}")
"""Name pattern for the temporary folders of `atomic_path`."""
ZIP_MARK = b"PK\x03\x04"
GZIP_MARK = b"\x1f\x8b"
PROBE_BYTES = 1 << 20
# Bytes of a line that is no line: a file without line ends must not fill the memory.
MAX_LINE_BYTES = 1 << 28


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed if its name ends in `.gz`."""
    with _open_content(Path(path)) as file:
        return file.read()


@contextlib.contextmanager
def _open_content(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading, decompressed if its name ends in `.gz`. Raises UserError if this fails."""
    try:
        with checksums.open_verified(path) as file:
            yield open_gzip(file, where=str(path)) if path.suffix == ".gz" else file
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder, not a file") from None
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file without a leading byte order mark."""
    data = read_bytes(path).removeprefix(BYTE_ORDER_MARK)
    _refuse_other_kinds(path, data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(not_utf8(path, line, data[error.start])) from None


def read_xml(path: Path) -> str:
    """Return the text of an XML or SGML file in the declared encoding (default: UTF-8)."""
    data = read_bytes(path)
    is_wide = data[:2] in UTF_16_MARKS
    declared = re.match(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", data)
    codec = "utf-16" if is_wide else declared[1].decode() if declared else "utf-8"
    # A declaration of UTF-16 that can be read as single bytes is wrong: the file was converted.
    if not is_wide and re.fullmatch(r"(utf-?(8|16(-?(le|be))?)|us-ascii)", codec.lower().replace("_", "-")):
        return read_text(path)
    try:
        return data.decode(codec)
    except LookupError:
        raise UserError(f"{path}: declares the unknown encoding {codec!r}: convert the file to UTF-8") from None
    except UnicodeError as error:
        raise UserError(
            f"{path}: is not in {codec}, as declared in its first line ({error}): correct this line"
        ) from None


def _refuse_other_kinds(path: Path, data: bytes) -> None:
    """Reject files that would be read as one line: archives, and text whose lines end in a single CR."""
    if data.startswith(ZIP_MARK):
        raise UserError(f"{path}: is a zip archive, not text: unpack it")
    if data.startswith(GZIP_MARK):
        raise UserError(f"{path}: is compressed with gzip: add .gz to its name")
    if b"\n" not in data and b"\r" in data.rstrip(b"\r"):
        raise UserError(f"{path}: its lines end in CR only: convert the file, for example with `tr '\\r' '\\n'`")


def not_utf8(path: Path, line: int, byte: int) -> str:
    """Return the error message for a line that is not UTF-8."""
    is_wide = line == 1 and bytes([byte]) in (mark[:1] for mark in UTF_16_MARKS)
    return (
        f"{path}: line {line} is not UTF-8 (byte 0x{byte:02x}): convert the file with "
        f"`iconv -f {'UTF-16' if is_wide else 'ENCODING'} -t UTF-8`"
        + ("" if is_wide else ", where ENCODING is the one that it was written in")
    )


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a UTF-8 file. Only "\n" ends a line: U+2028, NEL and a lone CR are characters."""
    text = read_text(path)
    lines = text.split("\n")
    # Not `splitlines`, which also splits at U+2028, NEL and a lone CR.
    if lines[-1] == "":
        lines.pop()
    return lines


def iterate_lines(path: Path) -> Iterator[str]:
    """Yield the lines like `read_lines`, in constant memory. A bad line raises UserError when it is reached."""
    path = Path(path)
    with _open_content(path) as file:
        for number, data in enumerate(iter(partial(file.readline, MAX_LINE_BYTES), b""), start=1):
            if len(data) == MAX_LINE_BYTES:
                raise UserError(
                    f"{path}: line {number} has {MAX_LINE_BYTES:,} bytes or more: this does not look like text"
                )
            if number == 1:
                _refuse_other_kinds(path, data)
                data = data.removeprefix(BYTE_ORDER_MARK)
                if not data:
                    return  # the file is nothing but a byte order mark
            try:
                yield data.removesuffix(b"\n").decode()
            except UnicodeDecodeError as error:
                raise UserError(not_utf8(path, number, data[error.start])) from None


def count_lines(path: Path) -> int | None:
    """Return the number of lines, for progress bars. None for compressed or missing files, and for pipes."""
    path = Path(path)
    if path.suffix == ".gz" or not path.is_file():  # a pipe can be read only once
        return None
    with contextlib.suppress(OSError), open(path, "rb") as file:
        n_lines, last = 0, b"\n"
        while block := file.read(PROBE_BYTES):
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
        return n_lines + (last != b"\n")
    return None


def modified(path: Path) -> float:
    """Return the modification time in seconds since 1970, or 0 if another process has removed the file."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@contextlib.contextmanager
def atomic_path(path: Path, *, checksum: bool = True) -> Iterator[Path]:
    """Yield a temporary path in the same folder. It is renamed to `path` on success and removed on failure.

    A file is flushed to disk before the rename, so that it is always complete under its final name. For an output
    folder, create the temporary path as a folder. It then replaces the old one.

    Args:
        path: final name.
        checksum: record checksums, for a folder of all its files.

    Raises:
        UserError: the disk or the quota is full. An existing file stays unchanged.
    """
    path = Path(path)
    with (
        describe_disk_full(path),
        create_folder(path.parent),
        tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder,
    ):
        temporary = Path(folder) / path.name
        try:
            yield temporary
        except (OSError, RuntimeError) as error:
            # NumPy and torch lose the error number of a failed write. On a full disk, this write fails with it.
            if getattr(error, "errno", None) is None:
                (Path(folder) / "probe").write_bytes(bytes(PROBE_BYTES))
            raise
        _replace(temporary, path, checksum=checksum)


@contextlib.contextmanager
def create_folder(folder: Path) -> Iterator[None]:
    """Create a folder. After an error, remove it if it is new and empty."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _replace(temporary: Path, path: Path, *, checksum: bool) -> None:
    """Move a finished file or folder to its final name."""
    if temporary.is_dir():
        if checksum:
            checksums.record_folder(temporary)
        checksum = False
        if path.exists():
            os.replace(path, temporary.with_name(f"{path.name}.old"))  # removed with the temporary folder
    else:
        # Before the rename: after a power cut, a new name must not lead to old or missing data.
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
    if checksum:
        checksums.replace_and_record(temporary, path)
    else:
        checksums.checksum_path(path).unlink(missing_ok=True)
        os.replace(temporary, path)


def final_path(path: Path) -> Path:
    """Return the path that `atomic_path` will give to a file, which can be inside a temporary folder."""
    return Path(*(part for part in path.parts if not UNFINISHED.fullmatch(part)))


@contextlib.contextmanager
def describe_disk_full(path: Path) -> Iterator[None]:
    """Raise UserError in place of the OSError for a full disk or quota."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(
            f"{final_path(path)}: cannot be written ({error.strerror}): free some space, and run the same command "
            "again. Existing files are unchanged"
        ) from None


@contextlib.contextmanager
def atomic_writer(path: Path, *, checksum: bool = True) -> Iterator[IO[str]]:
    r"""Open a text file for writing (UTF-8, "\n" line ends). It appears as `path` only when complete."""
    with (
        atomic_path(path, checksum=checksum) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def write_lines(path: Path, lines: Iterable[str], *, checksum: bool = True) -> None:
    r"""Write one line per string.

    Raises ValueError if a string contains "\n", since this would shift all later lines.
    """
    with atomic_writer(path, checksum=checksum) as file:
        for line in lines:
            if "\n" in line:
                raise ValueError(f"{path}: a line must not contain a line end: {line!r}")
            file.write(line + "\n")


def read_json(path: Path, *, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse a JSON file. `make_object` makes each object from its keys and values (default: the last of equal keys)."""
    try:
        return json.loads(read_text(path), object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: line {error.lineno} is not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # thousands of brackets; a number of thousands of digits
        raise UserError(f"{path}: cannot be read as JSON ({error})") from None


def read_facts(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of docmt or Snakemake, not in a result. Empty if it is missing or damaged."""
    try:
        facts = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def write_json(path: Path, value: Any, *, checksum: bool = True) -> None:
    """Write indented JSON with sorted keys, so that equal values give equal files."""
    with atomic_writer(path, checksum=checksum) as file:
        json.dump(value, file, ensure_ascii=False, indent=1, sort_keys=True)
        file.write("\n")


def read_jsonl(path: Path) -> list[Any]:
    """Parse one JSON value per line."""
    return list(iterate_jsonl(path))


def iterate_jsonl(path: Path) -> Iterator[Any]:
    """Yield the values like `read_jsonl`, one at a time, for files larger than the memory."""
    for number, line in enumerate(iterate_lines(path), start=1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            problem = f"is not JSON ({error.msg})" if line.strip() else "is empty: every line must contain JSON"
            raise UserError(f"{path}: line {number} {problem}") from None
        except (RecursionError, ValueError) as error:
            raise UserError(f"{path}: line {number} cannot be read as JSON ({error})") from None


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Write one JSON value per line."""
    write_lines(path, map(to_jsonl, values))


def to_jsonl(value: Any) -> str:
    """Return a value as one line of JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
