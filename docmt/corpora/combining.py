"""Several splits as one: the splits of a dataset, and how much of a test split occurs in the training split."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmt.corpora.documents import Document, read_documents, write_documents
from docmt.errors import UserError
from docmt.files import write_json

SEEN_SHARE = 0.5


def combine(prefixes: Sequence[Path], out: Path, *, languages: Sequence[str]) -> None:
    """Concatenate splits, in the order given; for one language, also one side of parallel splits.

    A document's id becomes `CORPUS.SPLIT/ID`, which says where it comes from. `OUT.counts.json` has the numbers of
    documents and sentences of each input. Raises UserError on a duplicate or unreadable prefix.
    """
    if not 1 <= len(languages) <= 2 or len(set(languages)) != len(languages):
        raise UserError(f"--languages {' '.join(languages)}: give one language, or two different ones")
    combined: list[Document] = []
    counts: dict[str, dict[str, int]] = {}
    for prefix in map(Path, prefixes):
        name = source_name(prefix, languages=languages)
        if name in counts:
            raise UserError(f"{prefix}: {name} is already among the inputs")
        documents = read_documents(prefix, languages=languages)
        counts[name] = {"documents": len(documents), "sentences": sum(map(len, documents))}
        combined += [replace(document, id=f"{name}/{document.id}") for document in documents]
    totals = {key: sum(count[key] for count in counts.values()) for key in ("documents", "sentences")}
    write_json(Path(f"{out}.counts.json"), totals | {"inputs": counts})
    write_documents(out, combined, languages=languages)


def source_name(prefix: Path, *, languages: Sequence[str]) -> str:
    """`CORPUS.SPLIT`, from the path: the last part and its folder.

    A folder named after the languages (for one language, after it or a pair with it) is skipped: the name of both
    `bible-ende/train` and `bible-ende/en-de/train` is `bible-ende.train`.
    """
    prefix = Path(prefix).absolute()
    folder = prefix.parent
    if folder.name == "-".join(languages) or (len(languages) == 1 and _is_pair_with(languages[0], folder.name)):
        folder = folder.parent
    return f"{folder.name}.{prefix.name}"


def _is_pair_with(lang: str, folder: str) -> bool:
    return lang in folder.split("-") and re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", folder) is not None


def count_overlap(train: Sequence[Document], test: Sequence[Document]) -> dict[str, Any]:
    """Count the test sentences and documents that also occur, word for word, in the training split.

    Empty sentences do not count as seen. A document is seen when more than half of its source sentences are. Shares
    are percentages.
    """
    sources = {sentence for document in train for sentence in document.src if sentence}
    pairs = {pair for document in train for pair in zip(document.src, document.tgt, strict=True) if all(pair)}
    seen = [sum(sentence in sources for sentence in document.src) for document in test]
    seen_pairs = sum(pair in pairs for document in test for pair in zip(document.src, document.tgt, strict=True))
    seen_documents = [d.id for d, n in zip(test, seen, strict=True) if n > SEEN_SHARE * len(d)]
    n_sentences = sum(map(len, test))
    return {
        "documents": len(test),
        "sentences": n_sentences,
        "seen_sources": sum(seen),
        "seen_sources_percent": _percent(sum(seen), n_sentences),
        "seen_pairs": seen_pairs,
        "seen_pairs_percent": _percent(seen_pairs, n_sentences),
        "seen_documents": len(seen_documents),
        "seen_documents_percent": _percent(len(seen_documents), len(test)),
        "seen_document_ids": seen_documents,
    }


def write_overlap(train: Sequence[Path], tests: Sequence[Path], out: Path, *, languages: Sequence[str]) -> None:
    """Write the overlap of each test split with all training splits, by the test's name (`test_{name}`, `dev`)."""
    names = [Path(test).name for test in tests]
    if len(set(names)) != len(names):
        names = [source_name(test, languages=languages) for test in tests]
    if len(set(names)) != len(names):
        raise UserError(f"--tests: duplicate prefix among {', '.join(map(str, tests))}")
    train_documents = [document for prefix in train for document in read_documents(prefix, languages=languages)]
    overlaps = {
        name: count_overlap(train_documents, read_documents(test, languages=languages))
        for name, test in zip(names, tests, strict=True)
    }
    size = {"documents": len(train_documents), "sentences": sum(map(len, train_documents))}
    write_json(out, {"train": size, "tests": overlaps})


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
