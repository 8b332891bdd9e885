"""Several splits as one: the splits of a dataset, and what of a test split stands in the training split."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docmt.corpora.documents import (
    Document,
    MonolingualDocument,
    read_documents,
    read_monolingual_documents,
    write_documents,
    write_monolingual_documents,
)
from docmt.errors import UserError
from docmt.files import write_json

SEEN_SHARE = 0.5


def combine(prefixes: Sequence[Path], out: Path, *, src_lang: str, tgt_lang: str) -> None:
    """Concatenate splits, in the order given.

    A document's id becomes `CORPUS.SPLIT/ID`, so that it says where it is from. `OUT.counts.json`
    counts documents and sentences of each. Raises UserError when a prefix stands twice or is not readable.
    """
    combined: list[Document] = []
    counts: dict[str, dict[str, int]] = {}
    for prefix in map(Path, prefixes):
        name = source_name(prefix, src_lang=src_lang, tgt_lang=tgt_lang)
        if name in counts:
            raise UserError(f"{prefix}: {name} is already among the inputs")
        documents = read_documents(prefix, src_lang=src_lang, tgt_lang=tgt_lang)
        counts[name] = {"documents": len(documents), "sentences": sum(map(len, documents))}
        combined += [dataclasses.replace(document, id=f"{name}/{document.id}") for document in documents]
    totals = {key: sum(count[key] for count in counts.values()) for key in ("documents", "sentences")}
    write_json(Path(f"{out}.counts.json"), totals | {"inputs": counts})
    write_documents(out, combined, src_lang=src_lang, tgt_lang=tgt_lang)


def combine_monolingual(prefixes: Sequence[Path], out: Path, *, lang: str) -> None:
    """Concatenate documents of one language: texts of one language, or one side of parallel documents.

    Ids and counts are as `combine` makes them. Raises UserError when a prefix stands twice or is not readable.
    """
    combined: list[MonolingualDocument] = []
    counts: dict[str, dict[str, int]] = {}
    for prefix in map(Path, prefixes):
        folder = prefix.absolute().parent.name
        languages = folder.split("-")
        is_pair = lang in languages and re.fullmatch(r"[a-z]{2,3}(-[a-z]{2,3})?", folder)
        name = _source_name(prefix, folder if is_pair else "")
        if name in counts:
            raise UserError(f"{prefix}: {name} is already among the inputs")
        documents = read_monolingual_documents(prefix, lang=lang)
        counts[name] = {"documents": len(documents), "sentences": sum(map(len, documents))}
        combined += [dataclasses.replace(document, id=f"{name}/{document.id}") for document in documents]
    totals = {key: sum(count[key] for count in counts.values()) for key in ("documents", "sentences")}
    write_json(Path(f"{out}.counts.json"), totals | {"inputs": counts})
    write_monolingual_documents(out, combined, lang=lang)


def source_name(prefix: Path, *, src_lang: str, tgt_lang: str) -> str:
    """`CORPUS.SPLIT`, from the path: the last part and its folder.

    A folder named after the language pair says nothing, so that `bible-ende/train` and `bible-ende/en-de/train` are
    both `bible-ende.train`.
    """
    return _source_name(prefix, f"{src_lang}-{tgt_lang}")


def _source_name(prefix: Path, skipped: str) -> str:
    """As `source_name`, where `skipped` is the name of a folder that says nothing."""
    prefix = Path(prefix).absolute()
    folder = prefix.parent
    if folder.name == skipped:
        folder = folder.parent
    return f"{folder.name}.{prefix.name}"


def count_overlap(train: Sequence[Document], test: Sequence[Document]) -> dict[str, Any]:
    """How much of a test split stands, word for word, in the training split.

    Empty sentences do not count as seen. `seen_documents` are those of which more than half of the source sentences
    are seen. Shares are in percent.
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


def write_overlap(train: Sequence[Path], tests: Sequence[Path], out: Path, *, src_lang: str, tgt_lang: str) -> None:
    """Write the overlap of each test split with all training splits, by the test's name (`test_{name}`, `dev`)."""
    names = [Path(test).name for test in tests]
    if len(set(names)) != len(names):
        names = [source_name(test, src_lang=src_lang, tgt_lang=tgt_lang) for test in tests]
    if len(set(names)) != len(names):
        raise UserError(f"--tests: a prefix stands twice among {', '.join(map(str, tests))}")
    train_documents = [
        document for prefix in train for document in read_documents(prefix, src_lang=src_lang, tgt_lang=tgt_lang)
    ]
    overlaps = {
        name: count_overlap(train_documents, read_documents(test, src_lang=src_lang, tgt_lang=tgt_lang))
        for name, test in zip(names, tests, strict=True)
    }
    size = {"documents": len(train_documents), "sentences": sum(map(len, train_documents))}
    write_json(out, {"train": size, "tests": overlaps})


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
