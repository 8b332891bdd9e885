"""The files of a treebank: archives as fetched or the same files in plain folders, and the trees read from them."""

import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from docmt.corpora.readers.tar_files import decode
from docmt.discourse.constituents import Node
from docmt.errors import UserError
from docmt.files import BYTE_ORDER_MARK, read_text


@dataclass(frozen=True)
class TreebankFile:
    """One file of a treebank.

    Attributes:
        where: path for messages, with that of its archive.
        name: file name without folder and suffix, which is the document's id.
        folder: name of its folder.
    """

    where: str
    name: str
    folder: str
    text: str


@dataclass(frozen=True)
class RstFile:
    """One annotated document.

    Attributes:
        tree: constituents over the EDUs.
        texts: of each EDU.
        is_nary: whether the format holds n-ary trees, so that nodes with two children were not binarized.
        n_secondary_edges: edges outside the tree (eRST, `.rs4`), which were skipped.
        n_lifted: constituents placed higher than annotated, because their edges cross others.
        n_wrong_spans: nodes of a `.dis` file whose span is not that of their children, which was taken instead.
        n_trees: trees of an `.rs3` file; several were joined as the nuclei of one node.
    """

    tree: Node
    texts: tuple[str, ...]
    is_nary: bool = False
    n_secondary_edges: int = 0
    n_lifted: int = 0
    n_wrong_spans: int = 0
    n_trees: int = 1


def read_files(folder: Path, *, archive: str, suffix: str) -> list[TreebankFile]:
    """Read the files with a suffix, sorted by path, from `archive`.tar.gz or `archive`.tar, else from below `folder`.

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
        raise UserError(f"{folder}: no {suffix} files: put {archive}.tar.gz there, or these files in plain folders")
    return files


def by_name(files: list[TreebankFile]) -> dict[str, TreebankFile]:
    """Index files by document id; raise UserError when a document has two files."""
    found: dict[str, TreebankFile] = {}
    for file in files:
        if file.name in found:
            raise UserError(f"{file.where}: {found[file.name].where} is the same document: remove one of them")
        found[file.name] = file
    return found


def _members(path: Path, suffix: str) -> list[TreebankFile]:
    files = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                is_wanted = member.isfile() and place.name.endswith(suffix)
                content = archive.extractfile(member) if is_wanted else None
                if content is None:
                    continue
                where, name = f"{path}:{member.name}", place.name.removesuffix(suffix)
                text = decode(content.read().removeprefix(BYTE_ORDER_MARK), where=where)
                files.append(TreebankFile(where, name, place.parent.name, text))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({error}): fetch it again") from None
    return sorted(files, key=lambda file: file.where)
