"""Fetching files of the catalogs from a mirror folder, or from the first address that serves them; all are checked."""

import hashlib
import logging
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from docmt import checksums
from docmt.corpora.catalogue import Address, Entry, SourceFile
from docmt.corpora.checksums import is_same, unpack
from docmt.corpora.download import AddressError, Patience, download
from docmt.decompression import check_expansion
from docmt.errors import UserError
from docmt.files import atomic_path, explained_full_disk, read_json, write_json

log = logging.getLogger(__name__)

ARCHIVES = ".archives"
RECORD = "fetched.json"


@dataclass(frozen=True)
class FileSet:
    """Files that are fetched together.

    Attributes:
        where: what they are of, as messages name it.
        files: by name below the folder.
        mirror_folder: the folder of a mirror that holds them.
    """

    where: str
    files: Mapping[str, SourceFile]
    mirror_folder: str


def fetch_corpus(
    entry: Entry,
    out: Path,
    *,
    splits: list[str] | None = None,
    mirror: Path | None = None,
    patience: Patience | None = None,
) -> dict[str, str]:
    """Fetch the files of a corpus, or of some of its splits; see `fetch_files`."""
    files = {name: entry.family.files[name] for name in entry.file_names(splits)}
    wanted = FileSet(entry.where, files, entry.family.mirror_folder)
    return fetch_files(wanted, out, mirror=mirror, patience=patience)


def fetch_files(
    wanted: FileSet, out: Path, *, mirror: Path | None = None, patience: Patience | None = None
) -> dict[str, str]:
    """Put files into the folder `out`, uncompressed, under their publisher's names, in their order.

    A correct file that is already there is kept. `fetched.json` records where each file came from. Returns name →
    origin. Raises UserError that says where to put a file that neither the mirror nor any address serves.
    """
    out = Path(out)
    if mirror is not None and not Path(mirror).is_dir():
        raise UserError(f"mirror {mirror}: no such folder")
    with explained_full_disk(out):
        return _fetch_files(wanted, out, mirror=mirror, patience=patience)


def _fetch_files(wanted: FileSet, out: Path, *, mirror: Path | None, patience: Patience | None) -> dict[str, str]:
    record_path = out / RECORD
    record: dict[str, str] = read_json(record_path) if record_path.exists() else {}
    for name, file in wanted.files.items():
        target = out / name
        unchecked = {address.url for address in file.addresses if not address.is_checked}
        if target.is_file() and (is_same(target, file) or record.get(name) in unchecked):
            with checksums.open_verified(target):  # one without a published checksum is still what was fetched first
                record.setdefault(name, "placed by hand")
            continue
        record[name] = _fetch_file(wanted, name, out, mirror=mirror, patience=patience)
        log.info("%s: %s", target, record[name])
        write_json(record_path, record, checksum=False)
    write_json(record_path, record, checksum=False)
    shutil.rmtree(out / ARCHIVES, ignore_errors=True)
    return record


def mirrored(folder: str, name: str, mirror: Path) -> Path | None:
    """The path of a file in a folder of a mirror, plain or as `.gz`; None when the mirror does not hold it."""
    path = Path(mirror) / folder / name
    return next((found for found in (path, path.with_name(path.name + ".gz")) if found.is_file()), None)


class WrongFileError(Exception):
    """A file differs from what the catalogue describes. The message names it."""


def place(source: Path, target: Path, file: SourceFile, *, is_checked: bool = True) -> None:
    """Write the content of a plain or gzip file to `target`; if there is no checksum to compare, record that of today.

    Raises WrongFileError, and writes nothing, when the checksum differs or the gzip file is corrupt.
    """
    with atomic_path(target, checksum=not (is_checked and file.is_published)) as temporary:
        # A name such as corpus.tar.gz promises gzip: such a file keeps its compression.
        if target.suffix == ".gz":
            shutil.copyfile(source, temporary)
        elif not unpack(source, temporary):
            raise WrongFileError(f"{source}: the gzip file is corrupt")
        if is_checked and not is_same(temporary, file):
            raise WrongFileError(f"{source}: the checksum differs")


def _fetch_file(wanted: FileSet, name: str, out: Path, *, mirror: Path | None, patience: Patience | None) -> str:
    """Put one file into place. Returns its origin: `mirror` or the address."""
    file, target = wanted.files[name], out / name
    tried = ["the existing file has another checksum"] if target.is_file() else []
    if mirror is not None:
        source = mirrored(wanted.mirror_folder, name, mirror)
        if source is None:
            tried.append("the mirror does not hold it")
        else:
            try:
                place(source, target, file)
                return "mirror"
            except WrongFileError as error:
                tried.append(f"mirror: {error}")
    for address in file.addresses:
        try:
            _fetch_address(address, target, file, archives=out / ARCHIVES, patience=patience)
            return address.url
        except (AddressError, WrongFileError) as error:
            log.warning("%s", error)
            tried.append(str(error))
    advice = f"obtain {file.obtain}, and put it at" if file.obtain else "put the file at"
    reasons = f" (tried: {'; '.join(tried)})" if tried else ""
    raise UserError(f"{wanted.where}: cannot fetch {name}: {advice} {target} ({file.check}){reasons}")


def _fetch_address(
    address: Address, target: Path, file: SourceFile, *, archives: Path, patience: Patience | None
) -> None:
    """Fetch a file, or an archive that has it as a member. Raises AddressError or WrongFileError."""
    if address.member is None:
        # The server may send gzip for a name without `.gz`: check the bytes as received, unpack afterwards.
        arrived = archives / f"{_key(address.url)}-{PurePosixPath(target.name)}"
        is_right = (lambda path: _may_hold(path, file)) if address.is_checked else (lambda _: True)
        # Compressed, a file is hardly ever larger; a kilobyte is room for what gzip adds.
        most_bytes = max(file.bytes, file.bytes_gz or 0) + 1024 if file.bytes and address.is_checked else None
        download(address.url, arrived, is_right=is_right, most_bytes=most_bytes, patience=patience)
        place(arrived, target, file, is_checked=address.is_checked)
        arrived.unlink()
        return
    archive = archives / _key(address.url)
    if not archive.exists():
        download(address.url, archive, patience=patience)
    with tempfile.TemporaryDirectory(dir=archives) as folder:
        member = Path(folder) / "member"
        _extract(archive, address.member, target=member, url=address.url)
        place(member, target, file, is_checked=address.is_checked)


def _may_hold(path: Path, file: SourceFile) -> bool:
    """Whether a download is the file, plain or compressed with gzip."""
    if is_same(path, file):
        return True
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        content = Path(folder) / "content"
        return unpack(path, content) and is_same(content, file)


def _extract(archive: Path, name: str, *, target: Path, url: str) -> None:
    """Copy one member of an archive to `target`; only regular files are accepted.

    Raises AddressError when the archive is corrupt or has no such file, and UserError when it expands suspiciously.
    """
    missing = AddressError(f"{url}: the archive has no file {name}")
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                if name not in zipped.namelist():
                    raise missing
                facts = zipped.getinfo(name)
                check_expansion(facts.file_size, facts.compress_size, where=f"{url}: {name}")
                with zipped.open(name) as stream, open(target, "wb") as file:
                    shutil.copyfileobj(stream, file)
            return
        with tarfile.open(archive) as tarred:
            for member in tarred:
                is_wanted = member.isfile() and PurePosixPath(member.name) == PurePosixPath(name)
                if is_wanted:
                    check_expansion(member.size, archive.stat().st_size, where=f"{url}: {name}")
                if is_wanted and (stream := tarred.extractfile(member)):
                    with open(target, "wb") as file:
                        shutil.copyfileobj(stream, file)
                    return
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the system refused: a full disk says nothing of the archive
        # The next file, or the next call, must not use a corrupt archive.
        archive.unlink(missing_ok=True)
        raise AddressError(f"{url}: the archive is corrupt ({error})") from None
    raise missing


def _key(url: str) -> str:
    """A file name that identifies an address."""
    return hashlib.sha256(url.encode("utf-8")).hexdigest()[:16]
