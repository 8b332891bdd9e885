"""Fetching of catalog files from a mirror folder or the first working address, with checksums."""

import errno
import functools
import hashlib
import logging
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from docmt import checksums
from docmt.corpora.catalog import Address, Entry, SourceFile
from docmt.corpora.download import MAX_BYTES, AddressError, download
from docmt.corpora.readers.tar_files import CORRUPT_TAR
from docmt.decompression import check_expansion, open_gzip
from docmt.errors import UserError
from docmt.files import atomic_path, describe_disk_full, read_json, sha256_file, write_json

log = logging.getLogger(__name__)

ARCHIVES = ".archives"
RECORD = "fetched.json"
GZIP_MAGIC = b"\x1f\x8b"
# The last three for impossible offsets, unknown compression, and encrypted members in zip archives.
CORRUPT_ARCHIVE = (*CORRUPT_TAR, zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError)


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

    Correct files in `out` are kept. `fetched.json` records the origins of files. Returns name → origin.
    """
    if mirror is not None and not mirror.is_dir():
        raise UserError(f"mirror {mirror}: no such folder")
    held = None if mirror is None else mirror / mirror_folder
    record_path = out / RECORD
    record: dict[str, str] = read_json(record_path) if record_path.exists() else {}
    with describe_disk_full(out):
        for name, file in files.items():
            target = out / name
            unchecked = {address.url for address in file.addresses if not address.is_checked}
            if target.is_file() and (_is_same(target, file) or record.get(name) in unchecked):
                # Without a published checksum, the file must still have the checksum of the first fetch.
                with checksums.open_verified(target):
                    record.setdefault(name, "placed by hand")
                continue
            record[name] = _fetch_file(name, file, out, where=where, held=held)
            log.info("%s: %s", target, record[name])
            # After every file, so that an interrupted fetch remembers the origins of unchecked files.
            write_json(record_path, record, checksum=False)
        write_json(record_path, record, checksum=False)
        shutil.rmtree(out / ARCHIVES, ignore_errors=True)
    return record


def _fetch_file(name: str, file: SourceFile, out: Path, *, where: str, held: Path | None) -> str:
    """Put a file into place, from a mirror folder or an address. Returns the origin."""
    target = out / name
    tried = ["the existing file has another checksum"] if target.is_file() else []
    if held is not None:
        source = mirrored(held, name)
        if source is None:
            tried.append("the mirror does not contain it")
        else:
            try:
                place(source, target, file)
                return "mirror"
            except AddressError as error:
                tried.append(f"mirror: {error}")
    for address in file.addresses:
        try:
            _fetch_address(address, target, file, archives=out / ARCHIVES)
            return address.url
        except AddressError as error:
            log.warning("%s", error)
            tried.append(str(error))
    advice = f"obtain {file.obtain}, and put it at" if file.obtain else "put the file at"
    reasons = f" (tried: {'; '.join(tried)})" if tried else ""
    raise UserError(f"{where}: cannot fetch {name}: {advice} {target} ({file.check}){reasons}")


def mirrored(folder: Path, name: str) -> Path | None:
    """Return the path of a plain or gzip file in a mirror folder. None if there is none."""
    path = folder / name
    return next((found for found in (path, path.with_name(path.name + ".gz")) if found.is_file()), None)


def _fetch_address(address: Address, target: Path, file: SourceFile, *, archives: Path) -> None:
    """Fetch a file, possibly inside an archive. Raises AddressError."""
    # Named by the address, so that several members in an archive need one download.
    key = hashlib.sha256(address.url.encode("utf-8")).hexdigest()[:16]
    if address.member is None:
        arrived = archives / f"{key}-{target.name}"

        def is_right(path: Path) -> bool:
            # Servers can send gzip for a name without `.gz`: check the received bytes, then their content.
            if not address.is_checked or _is_same(path, file):
                return True
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                content = Path(folder) / "content"
                return unpack(path, content) and _is_same(content, file)

        # Compressed files are rarely larger, apart from the overhead of gzip (less than a kilobyte).
        is_known = file.bytes and address.is_checked
        most_bytes = max(file.bytes or 0, file.bytes_gz or 0) + 1024 if is_known else file.most_bytes or MAX_BYTES
        download(address.url, arrived, is_right=is_right, most_bytes=most_bytes)
        place(arrived, target, file, is_checked=address.is_checked)
        arrived.unlink()
        return
    archive = archives / key
    if not archive.exists():
        download(address.url, archive, most_bytes=MAX_BYTES)
    with tempfile.TemporaryDirectory(dir=archives) as folder:
        member = Path(folder) / "member"
        _extract(archive, address.member, target=member, url=address.url)
        place(member, target, file, is_checked=address.is_checked)


def place(source: Path, target: Path, file: SourceFile, *, is_checked: bool = True) -> None:
    """Write the content of a plain or gzip file to `target`. Without a published checksum, record one.

    Raises AddressError and writes nothing if the checksum differs or the gzip file is corrupt.
    """
    with atomic_path(target, checksum=not (is_checked and file.is_published)) as temporary:
        # Files with names such as corpus.tar.gz keep their compression.
        if target.suffix == ".gz":
            shutil.copyfile(source, temporary)
        elif not unpack(source, temporary):
            raise AddressError(f"{source}: the gzip file is corrupt")
        if is_checked and not _is_same(temporary, file):
            raise AddressError(f"{source}: the checksum differs")


def unpack(path: Path, target: Path) -> bool:
    """Decompress a gzip file to `target`, or copy a plain file. Returns False if the gzip file is corrupt."""
    with open(path, "rb") as raw, open(target, "wb") as out:
        is_gzip = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        try:
            shutil.copyfileobj(open_gzip(raw, where=str(path)) if is_gzip else raw, out)
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


def _extract(archive: Path, name: str, *, target: Path, url: str) -> None:
    """Copy a regular file from an archive to `target`.

    Raises AddressError if the archive is corrupt or has no such file, and UserError if it expands suspiciously.
    """
    try:
        if zipfile.is_zipfile(archive):
            # Check sizes in the directory of the archive before unpacking (zip bombs).
            with zipfile.ZipFile(archive) as zipped:
                if name in zipped.namelist():
                    facts = zipped.getinfo(name)
                    n_packed = min(facts.compress_size, archive.stat().st_size)  # the directory can contain wrong sizes
                    check_expansion(facts.file_size, n_packed, where=f"{url}: {name}")
                    with zipped.open(name) as stream, open(target, "wb") as file:
                        shutil.copyfileobj(stream, file)
                    return
        else:
            with tarfile.open(archive) as tarred:
                for member in tarred:
                    # Some publishers write `./name`. Links are skipped, since they could lead to any file.
                    if not member.isfile() or PurePosixPath(member.name) != PurePosixPath(name):
                        continue
                    check_expansion(member.size, archive.stat().st_size, where=f"{url}: {name}")
                    if stream := tarred.extractfile(member):
                        with open(target, "wb") as file:
                            shutil.copyfileobj(stream, file)
                        return
    except CORRUPT_ARCHIVE as error:
        # A full disk does not mean a corrupt archive, but a negative offset (EINVAL) does.
        if getattr(error, "errno", None) not in (None, errno.EINVAL):
            raise
        # The next file or call must not use a corrupt archive.
        archive.unlink(missing_ok=True)
        raise AddressError(f"{url}: the archive is corrupt ({error})") from None
    raise AddressError(f"{url}: the archive has no file {name}")
