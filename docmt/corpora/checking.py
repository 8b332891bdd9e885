"""Checks a mirror: reads every catalogue corpus that it holds and compares the counts with the catalogue."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmt.corpora.catalogue import Entry
from docmt.corpora.fetching import WrongFileError, mirrored, place
from docmt.corpora.reading import files_by_role, read_split
from docmt.corpora.suites import CONVERTERS, convert_suite
from docmt.errors import UserError


@dataclass(frozen=True)
class CheckResult:
    """The result for one split.

    Attributes:
        state: `ok`, `absent` (not in the mirror), or `bad`.
        documents, sentences: as read (items and candidates for contrastive sets), None when not read.
        note: what is wrong, or what was left out.
    """

    corpus: str
    split: str
    state: str
    documents: int | None = None
    sentences: int | None = None
    note: str = ""


def check_corpus(entry: Entry, mirror: Path) -> Iterator[CheckResult]:
    """Verify the checksums of each split and read it. Problems are reported as results, not raised."""
    for name in entry.corpus.splits:
        wanted = entry.file_names([name])
        sources = {file: source for file in wanted if (source := mirrored(entry.family.mirror_folder, file, mirror))}
        if n_missing := len(wanted) - len(sources):
            yield CheckResult(entry.name, name, "absent", note=f"{n_missing} of {len(wanted)} files are missing")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                for file, source in sources.items():
                    place(source, Path(folder) / file, entry.family.files[file])
                yield _read(entry, name, Path(folder))
            except (UserError, WrongFileError) as error:
                yield CheckResult(entry.name, name, "bad", note=str(error))


def _read(entry: Entry, name: str, folder: Path) -> CheckResult:
    corpus, split = entry.corpus, entry.corpus.splits[name]
    files = files_by_role(split, folder)
    form = split.format or corpus.format
    if form.reader == "files":
        return CheckResult(entry.name, name, "ok", note="checksums only")
    if form.reader in CONVERTERS:
        items, dropped = convert_suite(corpus, name, files=files, where=entry.where)
        n_candidates = sum(len(item.get("candidates", [""])) for item in items)
        return CheckResult(entry.name, name, "ok", len(items), n_candidates, _describe(dropped))
    documents, counts = read_split(corpus, name, files=files, languages=corpus.languages, where=entry.where)
    for _ in documents:
        pass
    return CheckResult(entry.name, name, "ok", counts.documents, counts.sentences, _describe(counts.dropped))


def _describe(dropped: dict[str, int]) -> str:
    return "; ".join(f"{n} {cause}" for cause, n in sorted(dropped.items()) if n)
