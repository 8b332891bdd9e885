"""Text files in a tar, which is read where it is."""

import io
import tarfile
from pathlib import Path

from docmt.errors import UserError
from docmt.files import read_bytes


def read_members(path: Path, suffix: str, *, what: str) -> list[tuple[str, str]]:
    """Name and text of each file of a tar (or tar.gz) with a suffix, sorted by name; nothing is unpacked to disk.

    Raises UserError when the archive is corrupt (`what` names the kind of files) or a file in it is not UTF-8.
    """
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path))) as archive:
            for member in archive:
                is_wanted = member.isfile() and member.name.endswith(suffix)
                # A few bytes of a sparse member can expand to any size.
                if is_wanted and member.issparse():
                    raise UserError(f"{path}: {member.name} is sparse (holes that take no space): pack it again")
                if is_wanted and (stream := archive.extractfile(member)):
                    files[member.name] = stream.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{path}: not a tar of {what} files ({error}): fetch it again") from None
    return [(name, decode(files[name], where=f"{path}:{name}")) for name in sorted(files)]


def decode(content: bytes, *, where: str) -> str:
    """The text of a file in an archive. Raises UserError when it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 (byte {error.start})") from None
