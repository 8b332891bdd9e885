"""Check of a mirror: all catalog corpora in it are read and compared with the catalog."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmt.corpora.catalog import Entry
from docmt.corpora.download import AddressError
from docmt.corpora.fetching import mirrored, place
from docmt.corpora.readers.reader import SuiteFormat
from docmt.corpora.splits import convert_suite, read_split
from docmt.errors import UserError


@dataclass(frozen=True)
class CheckResult:
    """The state of a split in a mirror: `ok`, `absent`, or `bad`.

    For contrastive sets, documents and sentences are items and candidates. The note contains problems and omissions.
    """

    corpus: str
    split: str
    state: str
    documents: int | None = None
    sentences: int | None = None
    note: str = ""


def check_corpus(entry: Entry, mirror: Path) -> Iterator[CheckResult]:
    """Verify checksums and read all splits. Problems are yielded as results, not raised."""
    held = mirror / entry.family.mirror_folder
    described = entry.family.files
    for name in entry.corpus.splits:
        wanted = entry.file_names([name])
        sources = {}
        for file in wanted:
            source = mirrored(held, file, described[file])
            if source:
                sources[file] = source
        n_missing = len(wanted) - len(sources)
        if n_missing:
            yield CheckResult(entry.name, name, "absent", note=f"{n_missing} of {len(wanted)} files are missing")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                for file, source in sources.items():
                    place(source, Path(folder) / file, described[file], where=str(source))
                yield _read(entry, name, Path(folder))
            except (UserError, AddressError) as error:
                yield CheckResult(entry.name, name, "bad", note=str(error))


def _read(entry: Entry, name: str, folder: Path) -> CheckResult:
    corpus = entry.corpus
    form = corpus.format_of(name)
    if form.holds == "files":
        return CheckResult(entry.name, name, "ok", note="checksums only")
    if isinstance(form, SuiteFormat):
        items, dropped = convert_suite(corpus, name, folder=folder, where=entry.where)
        n_documents = len(items)
        n_sentences = sum(len(item.get("candidates", [""])) for item in items)
    else:
        documents, counts = read_split(corpus, name, folder=folder, languages=corpus.languages, where=entry.where)
        for _ in documents:  # counts are complete after the last one
            pass
        n_documents = counts.documents
        n_sentences = counts.sentences
        dropped = counts.dropped
    note = "; ".join(f"{n} {cause}" for cause, n in sorted(dropped.items()) if n)
    return CheckResult(entry.name, name, "ok", n_documents, n_sentences, note)
