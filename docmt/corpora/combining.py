"""Split concatenation for datasets, and overlap between test and training splits."""

import itertools
import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from docmt.corpora.documents import (
    Document,
    index_path,
    iterate_documents,
    iterate_masked,
    read_documents,
    write_documents,
)
from docmt.errors import UserError
from docmt.files import write_json
from docmt.logs import progress
from docmt.settings import look_up

if TYPE_CHECKING:
    from docmt.corpora.filtering import DocumentFilter

# A test document is seen if the training split contains more than this share of its source sentences.
SEEN_SHARE = 0.5
LEAK_PERCENT = 1.0
"""Minimum percentage of seen source sentences for a warning in log and report."""

log = logging.getLogger(__name__)


def combine(
    prefixes: Sequence[Path], out: Path | None, *, languages: Sequence[str], filter: "DocumentFilter | None" = None
) -> None:
    """Concatenate splits in order. With a single language, inputs can also be parallel.

    Document ids become `CORPUS.SPLIT/ID`. `OUT.counts.json` contains document and sentence counts per input, and
    dropped pairs if there is a filter. Without `out`, nothing is written.
    """
    if not 1 <= len(languages) <= 2 or len(set(languages)) != len(languages):
        raise UserError(f"--languages {' '.join(languages)}: expected one language, or two different ones")
    names = _name_inputs(prefixes, languages)
    if out is not None and len(languages) == 2:
        _refuse_masks(prefixes)
    # `CORPUS/SPLIT`, as in the settings. Both can contain full stops.
    references = {}
    for name, prefix in names.items():
        corpus = name.removesuffix(f".{prefix.name}")
        references[f"{corpus}/{prefix.name}"] = name
    if filter is not None:
        for reference in filter.settings.external:
            look_up(references, reference, where="corpora.filters: external", what="split among the inputs")
    counts: dict[str, dict[str, int]] = {}

    # A generator, so that splits are not in memory. Counts are complete after writing.
    def combined() -> Iterator[Document]:
        for reference, name in references.items():
            prefix = names[name]
            if filter is None:
                documents = iterate_documents(prefix, languages=languages)
            else:
                documents = filter.read(prefix, reference)
            counts[name] = {"documents": 0, "sentences": 0}
            for document in progress(documents, label=f"read {prefix}", unit="documents"):
                counts[name]["documents"] += 1
                counts[name]["sentences"] += len(document)
                yield replace(document, id=f"{name}/{document.id}")
        if filter is not None and not any(count["documents"] for count in counts.values()):
            raise UserError(
                f"no document passes the filter of {', '.join(names)}: try `docmt corpora filter --show 20`"
            )

    if out is None:
        deque(combined(), maxlen=0)
        return
    has_masks = filter is not None and filter.settings.on_failure == "mask"
    write_documents(out, combined(), languages=languages, has_masks=has_masks)
    content: dict[str, Any] = {"documents": 0, "sentences": 0}
    for count in counts.values():
        content["documents"] += count["documents"]
        content["sentences"] += count["sentences"]
    if filter is not None:
        content |= filter.as_dict()
    write_json(Path(f"{out}.counts.json"), {**content, "inputs": counts})


def _name_inputs(prefixes: Sequence[Path], languages: Sequence[str]) -> dict[str, Path]:
    """Return the inputs by their `source_name`."""
    names: dict[str, Path] = {}
    for prefix in map(Path, prefixes):
        name = source_name(prefix, languages=languages)
        if names.setdefault(name, prefix) is not prefix:
            raise UserError(f"{prefix}: {name} is already among the inputs")
    return names


def _refuse_masks(prefixes: Sequence[Path]) -> None:
    for prefix in prefixes:
        if any(masked for _, masked in iterate_masked(index_path(prefix)) or ()):
            raise UserError(
                f"{prefix}: has masked pairs (`on_failure: mask`), which would be lost: filter the unfiltered splits "
                "together, with all as --inputs of `docmt corpora filter`"
            )


def source_name(prefix: Path, *, languages: Sequence[str]) -> str:
    """Return `CORPUS.SPLIT` for a path: folder name and last part.

    A folder named like the language pair is skipped. For example, `bible-ende/train` and `bible-ende/en-de/train` both
    become `bible-ende.train`.
    """
    prefix = Path(prefix).absolute()
    folder = prefix.parent
    is_pair = re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", folder.name) is not None
    has_language = is_pair and len(languages) == 1 and languages[0] in folder.name.split("-")
    if has_language or folder.name == "-".join(languages):
        folder = folder.parent
    return f"{folder.name}.{prefix.name}"


@dataclass
class Overlap:
    """Test sentences in a training split. Training splits are not kept in memory.

    Attributes:
        sources, pairs: test source sentences and pairs → true if found in the training split.
        documents, sentences: numbers of training documents and sentences.
    """

    sources: dict[str, bool]
    pairs: dict[tuple[str, str], bool]
    documents: int = 0
    sentences: int = 0

    @classmethod
    def of_tests(cls, tests: Iterable[Sequence[Document]]) -> Self:
        """Start with all nonempty sentences in test splits."""
        # Keys are test sentences, not training sentences, since test splits are smaller.
        overlap = cls({}, {})
        for document in itertools.chain.from_iterable(tests):
            for src, tgt in zip(document.src, document.tgt, strict=True):
                if src:
                    overlap.sources[src] = False
                if src and tgt:
                    overlap.pairs[src, tgt] = False
        return overlap

    def add(self, train: Iterable[Document]) -> None:
        """Search training documents."""
        for document in train:
            self.documents += 1
            self.sentences += len(document)
            for src, tgt in zip(document.src, document.tgt, strict=True):
                if src in self.sources:
                    self.sources[src] = True
                    if (src, tgt) in self.pairs:
                        self.pairs[src, tgt] = True

    def count(self, test: Sequence[Document]) -> dict[str, Any]:
        """Count sentences and documents in a test split that also occur, word for word, in the training split.

        Empty sentences are not seen. A document is seen if more than half of its source sentences are. Shares are in
        percent.
        """
        n_sentences = n_seen_sources = n_seen_pairs = 0
        seen_documents = []
        for document in test:
            n_sentences += len(document)
            n_seen = sum(self.sources.get(sentence, False) for sentence in document.src)
            n_seen_sources += n_seen
            if n_seen > SEEN_SHARE * len(document):
                seen_documents.append(document.id)
            for pair in zip(document.src, document.tgt, strict=True):
                n_seen_pairs += self.pairs.get(pair, False)
        counts: dict[str, Any] = {"documents": len(test), "sentences": n_sentences}
        for what, n_seen, n_all in (
            ("sources", n_seen_sources, n_sentences),
            ("pairs", n_seen_pairs, n_sentences),
            ("documents", len(seen_documents), len(test)),
        ):
            counts[f"seen_{what}"] = n_seen
            counts[f"seen_{what}_percent"] = round(100 * n_seen / max(n_all, 1), 2)
        return counts | {"seen_document_ids": seen_documents}


def write_overlap(train: Sequence[Path], tests: Sequence[Path], out: Path, *, languages: Sequence[str]) -> None:
    """Write the overlap between test and training splits, by test name (`test_{name}`, `dev`).

    Test splits are in memory. Training splits are read one document at a time.
    """
    # Short names if they are unique, otherwise with the corpus.
    names = [Path(test).name for test in tests]
    if len(set(names)) != len(names):
        names = [source_name(test, languages=languages) for test in tests]
    if len(set(names)) != len(names):
        raise UserError(f"--tests: duplicate prefix among {', '.join(map(str, tests))}")
    documents = [read_documents(test, languages=languages) for test in tests]
    overlap = Overlap.of_tests(documents)
    for prefix in train:
        read = iterate_documents(prefix, languages=languages)
        overlap.add(progress(read, label=f"read {prefix}", unit="documents"))
    size = {"documents": overlap.documents, "sentences": overlap.sentences}
    counts = dict(zip(names, map(overlap.count, documents), strict=True))
    for name, count in counts.items():
        if count["seen_sources_percent"] >= LEAK_PERCENT:
            log.warning(
                "%.1f %% of the source sentences of %s are in the training text", count["seen_sources_percent"], name
            )
    write_json(out, {"train": size, "tests": counts})
