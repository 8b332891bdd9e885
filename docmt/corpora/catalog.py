"""The corpus catalog: corpora with the addresses, checksums and sizes of their files.

The entries are data: `catalog/*.yaml`, one file per corpus family. A corpus is one language pair, so that the name
identifies the text, and can be read in either direction.
"""

import csv
import functools
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, model_validator

from docmt.corpora.file_patterns import matching_names
from docmt.corpora.readers.reader import DocumentFormat
from docmt.corpora.readers.registry import Format
from docmt.errors import UserError
from docmt.settings import Settings, UserPath, check_name, nearest


def _read_catalog_file(name: str) -> str:
    return (resources.files("docmt.corpora") / "catalog" / name).read_text(encoding="utf-8")


class Address(Settings):
    """An address for fetching a file."""

    url: str = Field(pattern="^https?://")
    """Address with https."""
    member: str | None = None
    """Path of the file inside an archive (tar or zip) at this address. null: the address serves the file itself."""
    is_checked: bool = True
    """false if the address serves another edition of the same text with different bytes. The numbers of documents and
    sentences are still checked on reading."""


class Members(Settings):
    """The members of a tar that docmt packs from a publisher's archive."""

    list: str
    """Name of a file next to the YAML file of the family, with SHA-256 and name of each member, as `sha256sum` prints
    them."""
    pattern: str
    """Pattern for the names in `list` that belong to this tar."""

    def read(self) -> dict[str, str]:
        """Return member name → SHA-256, sorted by name."""
        digests = {}
        for line in _read_catalog_file(self.list).splitlines():
            digest, name = line.split(maxsplit=1)
            digests[name] = digest
        return {name: digests[name] for name in matching_names(self.pattern, digests)}


class SourceFile(Settings):
    """One file of a corpus, under its published name."""

    addresses: list[Address] = Field(default=[])
    """Addresses, best first. Without addresses, you have to obtain the file as described in `obtain`."""
    obtain: str | None = None
    """For a file without addresses: its name and source."""
    members: Members | None = None
    """For a tar that docmt packs: its members. The addresses serve archives that contain them, in any folder and next
    to other files."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of the uncompressed content."""
    sha256_gz: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of the gzip file that a mirror can contain instead."""
    git_blob: str | None = Field(default=None, pattern="^[0-9a-f]{40}$")
    """Git blob id: SHA-1 of `blob`, a space, the size, NUL and the content."""
    bytes: int | None = None
    """Size of the content."""
    bytes_gz: int | None = None
    """Size of the gzip file."""
    most_bytes: int | None = None
    """Maximum download size, for a file with roughly known size. null: a general limit."""

    @model_validator(mode="after")
    def _is_obtainable(self) -> "SourceFile":
        if not self.addresses and not self.obtain:
            raise ValueError("a file needs `addresses`, or instructions in `obtain`")
        return self

    @property
    def has_checksum(self) -> bool:
        """True if a checksum is published."""
        return bool(self.sha256 or self.sha256_gz or self.git_blob)

    @property
    def check(self) -> str:
        """The published checksum in messages."""
        if self.sha256:
            return f"sha256 {self.sha256}"
        if self.git_blob:
            return f"git blob {self.git_blob}"
        return "no checksum is published"


class FileTable(Settings):
    """Many files from one server or archive, as a table next to the YAML file of the family."""

    table: str
    """Name of a tab-separated file with the columns `file` and `path`, and optionally `sha256`, `sha256_gz`, `bytes`
    and `bytes_gz`. These cells can be empty."""
    addresses: list[Address]
    """Address templates, best first, with `{path}` in url or member."""

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return file name → values of a SourceFile."""
        lines = _read_catalog_file(self.table).splitlines()
        files = {}
        for row in csv.DictReader(lines, delimiter="\t"):
            name = row.pop("file")
            path = row.pop("path")
            values: dict[str, Any] = {"addresses": []}
            for address in self.addresses:
                member = address.member and address.member.format(path=path)
                update = {"url": address.url.format(path=path), "member": member}
                values["addresses"].append(address.model_copy(update=update))
            # The other columns are checksums and sizes, named as the fields of SourceFile.
            for key, value in row.items():
                if value:
                    values[key] = int(value) if key.startswith("bytes") else value
            files[name] = values
        return files


class Split(Settings):
    """A split of a corpus."""

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
    splits: dict[Annotated[str, AfterValidator(check_name)], Split]
    """Splits with their files, by name."""

    @model_validator(mode="after")
    def _has_two_languages(self) -> "ReadableCorpus":
        if not 1 <= len(self.languages) <= 2 or len(set(self.languages)) != len(self.languages):
            raise ValueError("`languages` must be one language, or two different ones (source and target)")
        return self

    def holds(self, split: str) -> Literal["documents", "sentences", "monolingual", "suite", "generative", "files"]:
        """Return the type of a split. `suite` is a contrastive test set, and `files` are used unchanged."""
        form = self.format_of(split)
        if len(self.languages) == 1 and isinstance(form, DocumentFormat):
            return "monolingual"
        return form.holds

    def format_of(self, split: str) -> Format:
        """Return the format of a split."""
        return self.splits[split].format or self.format

    def split(self, name: str, *, where: str) -> Split:
        """Return a split by name."""
        if name not in self.splits:
            raise UserError(f"{where} has no split {name!r}; {nearest(name, list(self.splits))}")
        return self.splits[name]


class Corpus(ReadableCorpus):
    """A corpus: a language pair (or, for a treebank, one language) from one source."""

    version: str
    """A commit, a release or a year that identifies the content."""
    title: str
    """A one-line description."""
    choices: dict[str, str] = {}
    """For test sets: the choice that depends on context, with an example in Latin script, by phenomenon."""


class Family(Settings):
    """Corpora with a common source, license and files, in one YAML file."""

    source: str
    """Source, for human readers."""
    license: str
    """Terms of use."""
    terms: Literal["open", "research", "unstated", "licensed"]
    """`open`: use and share under the license, `research`: research use, do not republish, `unstated`: without license,
    only for local tests, `licensed`: must be bought or applied for."""
    mirror_folder: str
    """Mirror folder with the files."""
    tables: list[FileTable] = []
    """Further files in tables."""
    files: dict[str, SourceFile] = {}
    """File name (below the folder) → file, including the files in tables."""
    corpora: dict[str, Corpus]
    """Name → corpus."""

    @model_validator(mode="after")
    def _add_tables(self) -> "Family":
        for table in self.tables:
            for name, row in table.rows().items():
                self.files[name] = SourceFile.model_validate(row)
        return self

    # After `_add_tables`: pydantic runs validators in the order of their definition, and splits name files of tables.
    @model_validator(mode="after")
    def _names_fit(self) -> "Family":
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"file {name!r} must be a relative path inside the folder")
        for corpus_name, corpus in self.corpora.items():
            for split_name, split in corpus.splits.items():
                for file in split.files.values():
                    if not set(matching_names(file, self.files)) & self.files.keys():
                        raise ValueError(f"{corpus_name} {split_name}: file {file!r} is not under `files`")
        return self


@dataclass(frozen=True)
class Entry:
    """A corpus in the catalog, with its family."""

    name: str
    corpus: Corpus
    family: Family

    @property
    def where(self) -> str:
        """Name of the corpus in messages."""
        return f"corpus {self.name}"

    def file_names(self, splits: list[str] | None = None) -> list[str]:
        """Return the files of these splits (default: all) without duplicates."""
        names: dict[str, None] = {}
        for split in splits or self.corpus.splits:
            for pattern in self.corpus.split(split, where=self.where).files.values():
                names |= dict.fromkeys(matching_names(pattern, self.family.files))
        return list(names)

    def kind(self, split: str) -> Literal["download", "manual"]:
        """Return `download` if all files of the split have an address, otherwise `manual`."""
        if all(self.family.files[name].addresses for name in self.file_names([split])):
            return "download"
        return "manual"


@functools.cache
def load_catalog() -> dict[str, Entry]:
    """Return all corpora by name, with families in alphabetical order."""
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
    """Return a corpus by name."""
    catalog = load_catalog()
    if name not in catalog:
        raise UserError(f"no corpus {name!r} in the catalog; {nearest(name, list(catalog))}")
    return catalog[name]
