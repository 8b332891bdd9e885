"""Text files in tar archives, read without unpacking."""

import io
import lzma
import re
import tarfile
import zlib
from pathlib import Path

from docmt.decompression import check_expansion
from docmt.errors import UserError
from docmt.files import BYTE_ORDER_MARK, read_bytes

CORRUPT_TAR = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
"""Exceptions of tarfile for damaged archives, compressed or not."""


def is_tar(path: Path) -> bool:
    """True if a name is the name of a tar archive."""
    return re.search(r"\.(tar(\.(gz|bz2|xz))?|tgz)$", path.name, re.IGNORECASE) is not None


def read_members(path: Path, suffix: str, *, what: str) -> list[tuple[str, str]]:
    """Return name and text of files with a suffix in a tar (or tar.gz), sorted by name."""
    files: dict[str, bytes] = {}
    data = read_bytes(path)
    n_bytes = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                is_wanted = member.isfile() and member.name.endswith(suffix)
                # A few bytes of a sparse member can expand to any size.
                if is_wanted and member.issparse():
                    raise UserError(f"{path}: {member.name} is a sparse file: pack it again without --sparse")
                # tarfile also decompresses archives without the suffix `.gz`.
                n_bytes += member.size
                check_expansion(n_bytes, len(data), where=str(path))
                if not is_wanted:
                    continue
                stream = archive.extractfile(member)
                if stream:
                    files[member.name] = stream.read()
    except CORRUPT_TAR as error:
        raise UserError(f"{path}: not a tar archive of {what} files ({error}): fetch it again") from None
    return [(name, decode(files[name], where=f"{path}:{name}")) for name in sorted(files)]


def decode(content: bytes, *, where: str) -> str:
    """Decode a UTF-8 file in an archive."""
    try:
        return content.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 (byte {error.start})") from None
