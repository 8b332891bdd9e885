"""Compare our conversion to dependency trees with the dependency trees that GUM publishes."""

from dataclasses import dataclass, field
from pathlib import Path

from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.rsd import RsdFile, parse_rsd, rsd_of_tree
from docmt.discourse.treebanks.treebank_files import RstFile, by_name, read_files
from docmt.errors import UserError

SOURCES = {"rs4": ("rstweb", parse_rs3), "dis": ("lisp_binary", parse_brackets)}


@dataclass
class Agreement:
    """Number of EDUs whose arc equals the published one.

    Attributes:
        n_edus: EDUs compared.
        n_heads: with the same head.
        n_arcs: with the same head, relation and kind (satellite or further nucleus).
        n_documents, n_equal_documents: documents, and those that agree in every arc.
        n_secondary_edges, n_lifted: edges that the n-ary reader skipped, and constituents that it moved up.
    """

    n_edus: int = 0
    n_heads: int = 0
    n_arcs: int = 0
    n_documents: int = 0
    n_equal_documents: int = 0
    n_secondary_edges: int = 0
    n_lifted: int = 0
    different: list[str] = field(default_factory=list)
    """Documents that differ, each with its first differing EDU."""

    def add(self, name: str, rst: RstFile, published: RsdFile) -> None:
        """Compare a document; raise UserError when the numbers of EDUs differ."""
        if len(rst.texts) != len(published.texts):
            raise UserError(f"{name}: a tree over {len(rst.texts)} EDUs, but its .rsd has {len(published.texts)}")
        ours, theirs = _rows(rsd_of_tree(rst)), _rows(published)
        same = [ours_row == theirs_row for ours_row, theirs_row in zip(ours, theirs, strict=True)]
        self.n_edus += len(same)
        self.n_arcs += sum(same)
        self.n_heads += sum(a[0] == b[0] for a, b in zip(ours, theirs, strict=True))
        self.n_documents += 1
        self.n_equal_documents += all(same)
        self.n_secondary_edges += rst.n_secondary_edges
        self.n_lifted += rst.n_lifted
        if not all(same):
            self.different.append(f"{name}: EDU {same.index(False) + 1}")


def check_conversion(folder: Path) -> dict[str, Agreement]:
    """Convert all trees of GUM and compare them, by source: `rs4` (n-ary) and `dis` (binary).

    The folder holds `rsd.tar.gz`, `rstweb.tar.gz` and `lisp_binary.tar.gz`, or their files in plain folders. Raises
    UserError when a file is missing or malformed; the message names file and place.
    """
    published = by_name(read_files(folder, archive="rsd", suffix=".rsd"))
    found = {}
    for source, (archive, parse) in SOURCES.items():
        files = by_name(read_files(folder, archive=archive, suffix=f".{source}"))
        found[source] = Agreement()
        for name, file in sorted(files.items()):
            rst = parse(file.text, where=file.where)
            if name not in published:
                raise UserError(f"{file.where}: this document has no .rsd file")
            found[source].add(name, rst, parse_rsd(published[name].text, where=published[name].where))
    return found


def _rows(rsd: RsdFile) -> list[tuple[int, str, bool]]:
    return list(zip(rsd.arcs.heads, rsd.arcs.relations, rsd.is_nucleus, strict=True))
