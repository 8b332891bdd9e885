"""The files of a treebank: members of the archives as fetched, or the same files in plain folders."""

import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from docmt.errors import UserError
from docmt.files import BYTE_ORDER_MARK, read_text


@dataclass(frozen=True)
class TreebankFile:
    """One file of a treebank.

    Attributes:
        where: its path for messages; with that of the archive it is in.
        name: without folder and suffix: the document's id.
        folder: the name of the folder it is in.
    """

    where: str
    name: str
    folder: str
    text: str


def read_files(folder: Path, *, archive: str, suffix: str) -> list[TreebankFile]:
    """The files with a suffix, sorted by path: of `archive`.tar.gz or `archive`.tar, else of folders below `folder`.

    Archives are read in memory and never unpacked. Raises UserError when there is no such file, or one cannot be read.
    """
    for path in (folder / f"{archive}.tar.gz", folder / f"{archive}.tar"):
        if path.is_file():
            files = _members(path, suffix)
            break
    else:
        files = [
            TreebankFile(str(path), path.name.removesuffix(suffix), path.parent.name, read_text(path))
            for path in sorted(folder.rglob(f"*{suffix}"))
            if path.is_file()
        ]
    if not files:
        raise UserError(f"{folder}: no {suffix} files: it needs {archive}.tar.gz, or these files in plain folders")
    return files


def by_name(files: list[TreebankFile]) -> dict[str, TreebankFile]:
    """The files by document id. Raises UserError when a document is there twice."""
    found: dict[str, TreebankFile] = {}
    for file in files:
        if file.name in found:
            raise UserError(f"{file.where}: {found[file.name].where} holds the same document: remove one of them")
        found[file.name] = file
    return found


def _members(path: Path, suffix: str) -> list[TreebankFile]:
    files = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if not member.isfile() or not place.name.endswith(suffix):
                    continue
                data = archive.extractfile(member).read().removeprefix(BYTE_ORDER_MARK)
                name = place.name.removesuffix(suffix)
                files.append(TreebankFile(f"{path}:{member.name}", name, place.parent.name, data.decode("utf-8")))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({error}): fetch it again") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{member.name}: not UTF-8 (byte {error.start})") from None
    return sorted(files, key=lambda file: file.where)
