"""The catalog: the corpora, where their files come from, and what they must contain.

The entries are data: `catalog/*.yaml`, one file per family of corpora. A corpus is one language pair, so its name
alone identifies the text; it can be read in either direction.
"""

import csv
import functools
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, Literal

import yaml
from pydantic import Field, model_validator

from docmt.corpora.file_patterns import matching_names
from docmt.corpora.readers.reader import DocumentFormat
from docmt.corpora.readers.registry import Format
from docmt.errors import UserError
from docmt.settings import Settings, UserPath, nearest


class Address(Settings):
    """A place from which a file can be fetched."""

    url: str = Field(pattern="^https?://")
    """Its https address."""
    member: str | None = None
    """The file's path inside the archive (tar or zip) that the address serves; null: the address serves the file."""
    is_checked: bool = True
    """False if the address serves another edition of the same text, whose bytes differ from the file described; the
    counts of documents and sentences are still checked on reading."""


class SourceFile(Settings):
    """One file of a corpus, as its publisher names it."""

    addresses: list[Address] = Field(default=[])
    """Addresses, best first; without one, the user has to obtain the file as `obtain` says."""
    obtain: str | None = None
    """For a file that no address serves: what to obtain, and where."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of the content, uncompressed."""
    sha256_gz: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of the gzip file that a mirror may hold instead."""
    git_blob: str | None = Field(default=None, pattern="^[0-9a-f]{40}$")
    """Git's blob id of the content: SHA-1 of `blob`, a space, the size, NUL and the content."""
    bytes: int | None = None
    """Size of the content."""
    bytes_gz: int | None = None
    """Size of the gzip file."""
    most_bytes: int | None = None
    """Limit to what an address may send, for a file whose size is known roughly; null for a general limit."""

    @model_validator(mode="after")
    def _is_obtainable(self) -> "SourceFile":
        if not self.addresses and not self.obtain:
            raise ValueError("a file needs addresses, or `obtain`, which says what the user has to obtain")
        return self

    @property
    def is_published(self) -> bool:
        """Whether a checksum of the file is known before it is fetched."""
        return bool(self.sha256 or self.sha256_gz or self.git_blob)

    @property
    def check(self) -> str:
        """The checksum as messages show it."""
        if self.sha256:
            return f"sha256 {self.sha256}"
        return f"git blob {self.git_blob}" if self.git_blob else "no checksum is published"


class FileTable(Settings):
    """Many files of one place or archive, as a table beside the YAML file of their family."""

    table: str
    """Its name: tab-separated, with the columns `file` and `path`, and any of `sha256`, `sha256_gz`, `bytes` and
    `bytes_gz`, which may be empty."""
    addresses: list[Address]
    """The addresses of each file, best first, with `{path}` in the url or the member."""

    def rows(self) -> dict[str, dict[str, Any]]:
        """File name → values of a SourceFile."""
        folder = resources.files("docmt.corpora") / "catalog"
        lines = (folder / self.table).read_text(encoding="utf-8").splitlines()
        files = {}
        for row in csv.DictReader(lines, delimiter="\t"):
            name, path = row.pop("file"), row.pop("path")
            # What is left of the row are checksums and sizes, under the names of SourceFile's fields.
            values = {key: int(value) if key.startswith("bytes") else value for key, value in row.items() if value}
            addresses = []
            for address in self.addresses:
                member = address.member and address.member.format(path=path)
                addresses.append(address.model_copy(update={"url": address.url.format(path=path), "member": member}))
            files[name] = {"addresses": addresses, **values}
        return files


class Split(Settings):
    """One split of a corpus."""

    files: dict[str, UserPath]
    """Files by role: a language code, `both` for one file with both languages, or a role of the format such as `index`.
    Formats that read many files accept patterns with `*`, also for folders."""
    documents: int | None = None
    """Expected number of documents. Reading fails if it differs. Default: not checked."""
    sentences: int | None = None
    """Expected number of sentence pairs, or of candidates for contrastive test sets. Default: not checked."""
    format: Format | None = None
    """Format of this split. Default: the format of the corpus."""


class ReadableCorpus(Settings):
    """A corpus and the format of its files."""

    languages: list[str]
    """Source and target language, for example `[en, de]`, or one language for monolingual documents."""
    format: Format
    """Reader and its options."""
    splits: dict[str, Split]
    """Splits with their files, by name."""

    @model_validator(mode="after")
    def _has_two_languages(self) -> "ReadableCorpus":
        if not 1 <= len(self.languages) <= 2 or len(set(self.languages)) != len(self.languages):
            raise ValueError("`languages` must be two different languages, source and target, or one")
        return self

    def holds(self, split: str) -> Literal["documents", "sentences", "monolingual", "suite", "generative", "files"]:
        """The content of a split: `suite` is a contrastive test set, `files` are used unchanged."""
        form = self.format_of(split)
        return "monolingual" if len(self.languages) == 1 and isinstance(form, DocumentFormat) else form.holds

    def format_of(self, split: str) -> Format:
        """The format of a split."""
        return self.splits[split].format or self.format

    def split(self, name: str, *, where: str) -> Split:
        """A split by name."""
        if name not in self.splits:
            raise UserError(f"{where} has no split {name!r}; {nearest(name, list(self.splits))}")
        return self.splits[name]


class Corpus(ReadableCorpus):
    """One corpus: a language pair (or, for a treebank, one language) from one source."""

    version: str
    """A commit, a release or a year that identifies the content."""
    title: str
    """A one-line description."""


class Family(Settings):
    """Corpora that share a source, a license and files: one YAML file."""

    source: str
    """Where the family comes from, for human readers."""
    license: str
    """The terms under which its text may be used."""
    terms: Literal["open", "research", "unstated", "licensed"]
    """`open`: use and share under the license; `research`: research use, do not republish; `unstated`: no license
    stated, local tests only; `licensed`: must be bought or applied for."""
    mirror_folder: str
    """The folder of a mirror that holds the files."""
    tables: list[FileTable] = []
    """Further files, as tables."""
    files: dict[str, SourceFile] = {}
    """File name (below the folder) → file; the tables add theirs."""
    corpora: dict[str, Corpus]
    """Name → corpus."""

    @model_validator(mode="after")
    def _add_tables(self) -> "Family":
        for table in self.tables:
            self.files.update({name: SourceFile.model_validate(row) for name, row in table.rows().items()})
        return self

    # After `_add_tables`: pydantic runs validators in the order of their definition, and splits name files of tables.
    @model_validator(mode="after")
    def _names_fit(self) -> "Family":
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"file {name!r} must be a relative path below the folder")
        for corpus_name, corpus in self.corpora.items():
            for split_name, split in corpus.splits.items():
                for file in split.files.values():
                    if not set(matching_names(file, self.files)) & self.files.keys():
                        raise ValueError(f"{corpus_name} {split_name}: file {file!r} is not under `files`")
        return self


@dataclass(frozen=True)
class Entry:
    """A corpus found in the catalog, with its family."""

    name: str
    corpus: Corpus
    family: Family

    @property
    def where(self) -> str:
        """The corpus as messages name it."""
        return f"corpus {self.name}"

    def file_names(self, splits: list[str] | None = None) -> list[str]:
        """The files of the given splits (default: all), each once."""
        chosen = [self.corpus.split(split, where=self.where) for split in splits or self.corpus.splits]
        roles = [role for split in chosen for role in split.files.values()]
        return list(dict.fromkeys(name for role in roles for name in matching_names(role, self.family.files)))

    def kind(self, split: str) -> Literal["download", "manual"]:
        """`download` when every file of the split has an address, otherwise `manual`."""
        files = (self.family.files[name] for name in self.file_names([split]))
        return "download" if all(file.addresses for file in files) else "manual"


@functools.cache
def load_catalog() -> dict[str, Entry]:
    """All corpora by name, families in alphabetical order."""
    entries: dict[str, Entry] = {}
    folder = resources.files("docmt.corpora") / "catalog"
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".yaml"):
            continue
        family = Family.load(yaml.safe_load(file.read_text(encoding="utf-8")), where=f"catalog/{file.name}")
        for name, corpus in family.corpora.items():
            if name in entries:
                raise UserError(f"catalog/{file.name}: duplicate corpus {name}")
            entries[name] = Entry(name=name, corpus=corpus, family=family)
    return entries


def find_corpus(name: str) -> Entry:
    """A corpus by name."""
    catalog = load_catalog()
    if name not in catalog:
        raise UserError(f"no corpus {name!r} in the catalog; {nearest(name, list(catalog))}")
    return catalog[name]
