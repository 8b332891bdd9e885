"""Fetching of catalog files from a mirror folder or the first working address, with checksums."""

import contextlib
import functools
import hashlib
import logging
import os
import platform
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from docmt import checksums
from docmt.checksums import sha256_file
from docmt.corpora.archives import extract, pack
from docmt.corpora.catalog import Address, Entry, SourceFile
from docmt.corpora.download import MAX_BYTES, AddressError, download
from docmt.decompression import open_gzip
from docmt.errors import UserError
from docmt.files import GZIP_MARK, atomic_path, describe_disk_full, read_facts, write_json

log = logging.getLogger(__name__)

DOWNLOADS = ".archives"
RECORD = "fetched.json"
BY_HAND = "placed by hand"
"""Origin of files that docmt has not fetched."""


def fetch_corpus(
    entry: Entry, out: Path, *, splits: list[str] | None = None, mirror: Path | None = None
) -> dict[str, str]:
    """Fetch the files of a corpus or of some splits (see `fetch_files`)."""
    files = {name: entry.family.files[name] for name in entry.file_names(splits)}
    folder = entry.family.mirror_folder
    return fetch_files(files, out, where=entry.where, mirror_folder=folder, mirror=mirror)


def fetch_files(
    files: Mapping[str, SourceFile], out: Path, *, where: str, mirror_folder: str, mirror: Path | None = None
) -> dict[str, str]:
    """Put uncompressed files into the folder `out`, under their published names.

    Correct files in `out` are kept, and other files are never replaced. `fetched.json` records the origins of files.
    Several processes can fetch into the same folder. Returns name → origin.
    """
    if mirror is not None and not mirror.is_dir():
        raise UserError(f"mirror {mirror}: no such folder")
    mirror_copy = None if mirror is None else mirror / mirror_folder
    record: dict[str, str] = {}
    with describe_disk_full(out), _downloads_folder(out / DOWNLOADS) as downloads:
        for name, file in files.items():
            target = out / name
            record = read_facts(out / RECORD)
            unchecked = [address.url for address in file.addresses if not address.is_checked]
            if target.is_file() and (_is_same(target, file) or record.get(name) in unchecked):
                # Without a published checksum, the file must still have the checksum of the first fetch.
                with checksums.open_verified(target):
                    origin = record.get(name, BY_HAND)
            else:
                origin = _fetch_file(name, file, out, where=where, mirror_copy=mirror_copy, downloads=downloads)
                log.info("%s: %s", target, origin)
            # After every file, so that an interrupted fetch remembers the origins of unchecked files.
            if record.get(name) != origin:
                record = read_facts(out / RECORD) | {name: origin}  # another process can have written it
                write_json(out / RECORD, record, checksum=False)
    return record


@contextlib.contextmanager
def _downloads_folder(parent: Path) -> Iterator[Path]:
    """Yield this process's folder for unfinished downloads and archives. It is removed on success.

    The folder of a process that has ended on this machine is used again, so that its downloads resume.
    """
    prefix = f"{platform.node()}-"
    folder = parent / f"{prefix}{os.getpid()}"
    ended = []
    for path in parent.glob(f"{prefix}*"):
        process = path.name.removeprefix(prefix)
        if process.isdecimal() and _has_ended(int(process)):
            ended.append(path)
    if ended and not folder.exists():
        with contextlib.suppress(OSError):  # another process was faster
            ended[0].rename(folder)
    yield folder
    for path in (folder, *ended):
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):  # without downloads of other processes
        parent.rmdir()


def _has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _fetch_file(
    name: str, file: SourceFile, out: Path, *, where: str, mirror_copy: Path | None, downloads: Path
) -> str:
    """Put a file into place, from a mirror folder or an address. Returns the origin."""
    target = out / name
    existing = mirrored(out, name)
    if existing is not None:
        try:
            place(existing, target, file, where=str(existing))
            return BY_HAND
        except AddressError as error:
            raise UserError(
                f"{where}: {existing} is not the published file ({error}): remove it to fetch the published file. To "
                "use a corrected text, describe it in `corpora.custom`"
            ) from None
    tried = []
    if mirror_copy is not None:
        source = mirrored(mirror_copy, name, file)
        if source is None:
            tried.append("the mirror does not contain it")
        else:
            try:
                place(source, target, file, where=str(source))
                return "mirror"
            except AddressError as error:
                tried.append(f"{source}: {error}")
    for address in file.addresses:
        try:
            _fetch_address(address, target, file, downloads=downloads)
            return address.url
        except AddressError as error:
            log.warning("%s", error)
            tried.append(str(error))
    advice = "put the file at"
    if file.obtain:
        advice = f"obtain {file.obtain}, and put it at"
    message = f"{where}: cannot fetch {name}: {advice} {target} ({file.check})"
    if tried:
        message += f" (tried: {'; '.join(tried)})"
    raise UserError(message)


def mirrored(folder: Path, name: str, file: SourceFile | None = None) -> Path | None:
    """Return the path of a plain or gzip file in a mirror folder. None if there is none.

    The folder itself can contain the members of `file`, for example as a checkout.
    """
    path = folder / name
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    if file is not None and file.members is not None:
        member = PurePosixPath(next(iter(file.members.read())))
        if any(folder.rglob(member.name)):
            return folder
    return None


def _fetch_address(address: Address, target: Path, file: SourceFile, *, downloads: Path) -> None:
    """Fetch a file, possibly from an archive. Raises AddressError."""
    # Named by the address, so that several members in an archive need one download.
    key = hashlib.sha256(address.url.encode("utf-8")).hexdigest()[:16]
    if address.member is None and file.members is None:
        arrived = downloads / f"{key}-{target.name}"

        def is_right(path: Path) -> bool:
            # Servers can send gzip for a name without `.gz`: check the received bytes, then their content.
            if not address.is_checked or _is_same(path, file):
                return True
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                content = Path(folder) / "content"
                return unpack(path, content, where=address.url) and _is_same(content, file)

        most_bytes = file.most_bytes or MAX_BYTES
        if file.bytes and address.is_checked:
            # Compressed files are rarely larger, apart from the overhead of gzip (less than a kilobyte).
            most_bytes = max(file.bytes, file.bytes_gz or 0) + 1024
        download(address.url, arrived, is_right=is_right, most_bytes=most_bytes)
        place(arrived, target, file, where=address.url, is_checked=address.is_checked)
        arrived.unlink()
        return
    archive = downloads / key
    is_old = archive.exists()
    if not is_old:
        download(address.url, archive, most_bytes=MAX_BYTES)
    try:
        if address.member is None:
            place(archive, target, file, where=address.url, is_checked=address.is_checked)
            return
        with tempfile.TemporaryDirectory(dir=downloads) as folder:
            member = Path(folder) / "member"
            extract(archive, address.member, member, where=address.url)
            place(member, target, file, where=address.url, is_checked=address.is_checked)
    except AddressError as error:
        # The next file or call must not use a wrong archive.
        archive.unlink()
        if not is_old:
            raise AddressError(f"{address.url}: {error}") from None
        log.warning("%s, fetched earlier from %s: %s: fetching it again", archive, address.url, error)
        _fetch_address(address, target, file, downloads=downloads)


def place(source: Path, target: Path, file: SourceFile, *, where: str, is_checked: bool = True) -> None:
    """Write the content of a plain or gzip file, or a tar of its members, to `target`.

    `where` names the source in errors. Without a published checksum, record one.

    Raises AddressError and writes nothing if the checksum differs or the gzip file is corrupt.
    """
    with atomic_path(target, checksum=not (is_checked and file.has_checksum)) as temporary:
        if file.members is not None:
            pack(source, temporary, file.members.read(), where=where)
        # Files with names such as corpus.tar.gz keep their compression.
        elif target.suffix == ".gz":
            shutil.copyfile(source, temporary)
        elif not unpack(source, temporary, where=where):
            raise AddressError("the gzip file is corrupt")
        if is_checked and not _is_same(temporary, file):
            raise AddressError("the checksum differs")


def unpack(path: Path, target: Path, *, where: str) -> bool:
    """Decompress a gzip file to `target`, or copy a plain file. Returns False if the gzip file is corrupt.

    `where` names the file in errors.
    """
    with open(path, "rb") as raw, open(target, "wb") as out:
        is_gzip = raw.read(2) == GZIP_MARK
        raw.seek(0)
        try:
            shutil.copyfileobj(open_gzip(raw, where=where) if is_gzip else raw, out)
        except (EOFError, OSError, zlib.error) as error:
            if getattr(error, "errno", None) is not None:
                raise  # a system error, for example a full disk
            return False
    return True


def _is_same(path: Path, file: SourceFile) -> bool:
    """True if a file has the content described in the catalog, or is the gzip file for mirrors.

    Without a published checksum, the size must match, if it is published.
    """
    # Gzip files have a separate checksum, because compression is not reproducible.
    digest = sha256_file(path)
    if file.sha256 or digest == file.sha256_gz:
        return digest in (file.sha256, file.sha256_gz)
    if file.git_blob:
        start = functools.partial(hashlib.sha1, b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        with open(path, "rb") as content:
            return hashlib.file_digest(content, start).hexdigest() == file.git_blob
    return file.bytes is None or path.stat().st_size == file.bytes
