"""Files in archives of publishers, read without unpacking, and tars that docmt packs from them.

Publishers compress archives again, add a folder or further files, and users pack tars of a checkout. Therefore the
members of such an archive have checksums, and not the archive.
"""

import contextlib
import errno
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from docmt.corpora.download import AddressError
from docmt.corpora.readers.tar_files import CORRUPT_TAR
from docmt.decompression import check_expansion

# The last three for impossible offsets, unknown compression, and encrypted members in zip archives.
CORRUPT_ARCHIVE = (*CORRUPT_TAR, zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError)
MAX_MEMBER_BYTES = 1 << 26
"""Maximum size of a file in a packed tar. Of a larger one, only the start is read, which has another checksum."""


def extract(archive: Path, name: str, target: Path, *, where: str) -> None:
    """Copy a file from an archive to `target`. `where` names the archive in errors.

    Raises AddressError if the archive is corrupt or has no such file, and UserError if it expands suspiciously.
    """
    path = PurePosixPath(name)  # some publishers write `./name`
    with _refuse_corrupt():
        for stream in _read(archive, lambda member: PurePosixPath(member) == path, where=where):
            with open(target, "wb") as file:
                shutil.copyfileobj(stream, file)
            return
    raise AddressError(f"the archive has no file {name}")


def pack(source: Path, target: Path, members: Mapping[str, str], *, where: str) -> None:
    """Write a tar of `members` (name → SHA-256) from an archive or a folder. `where` names the source in errors.

    The bytes of the tar depend only on the names and contents of the members. A checksum identifies a member, so
    `source` can contain it in any folder. Raises the same errors as `extract`.
    """
    names = {PurePosixPath(name).name for name in members}
    digests = set(members.values())
    contents: dict[str, bytes] = {}
    with _refuse_corrupt():
        for stream in _read(source, lambda member: PurePosixPath(member).name in names, where=where):
            content = stream.read(MAX_MEMBER_BYTES)
            digest = hashlib.sha256(content).hexdigest()
            if digest in digests:
                contents[digest] = content
    missing = [name for name, digest in members.items() if digest not in contents]
    if missing:
        message = f"{missing[0]} is missing or has another checksum"
        if len(missing) > 1:
            message += f" (like {len(missing) - 1} others)"
        raise AddressError(message)
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as packed:
        for name, digest in sorted(members.items()):
            member = tarfile.TarInfo(name)
            member.size = len(contents[digest])
            packed.addfile(member, io.BytesIO(contents[digest]))


def _read(source: Path, is_wanted: Callable[[str], bool], *, where: str) -> Iterator[IO[bytes]]:
    """Yield the contents of wanted files in a folder, a tar or a zip archive, one after the other."""
    if source.is_dir():
        for path in source.rglob("*"):
            if is_wanted(path.name) and path.is_file():
                with open(path, "rb") as stream:
                    yield stream
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as zipped:
            for name in filter(is_wanted, dict.fromkeys(zipped.namelist())):
                # Check sizes in the directory of the archive before unpacking (zip bombs).
                facts = zipped.getinfo(name)
                n_packed = min(facts.compress_size, source.stat().st_size)  # the directory can contain wrong sizes
                check_expansion(facts.file_size, n_packed, where=f"{where}: {name}")
                with zipped.open(name) as stream:
                    yield stream
    else:
        with tarfile.open(source) as tarred:
            for member in tarred:
                # Links are skipped, since they could lead to any file.
                if member.isfile() and is_wanted(member.name):
                    check_expansion(member.size, source.stat().st_size, where=f"{where}: {member.name}")
                    stream = tarred.extractfile(member)
                    if stream:
                        yield stream


@contextlib.contextmanager
def _refuse_corrupt() -> Iterator[None]:
    try:
        yield
    except CORRUPT_ARCHIVE as error:
        # A full disk does not mean a corrupt archive, but a negative offset (EINVAL) does.
        if getattr(error, "errno", None) not in (None, errno.EINVAL):
            raise
        raise AddressError(f"the archive is corrupt ({error})") from None
