"""From subword text to instances."""

import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from docmt.corpora.documents import DocumentIndex, read_index
from docmt.discourse.documents import iterate_discourse
from docmt.errors import UserError
from docmt.files import iterate_lines, sha256_file
from docmt.instances.cutting import N_MARKS, document_tokens, sentence_costs, split_documents
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import MONOLINGUAL, InstanceSet, offsets_of
from docmt.instances.trees import PlacedTrees, join_trees, place_trees
from docmt.provenance import describe
from docmt.text.vocabulary import BOS, EOS, UNK, Vocabulary

log = logging.getLogger(__name__)

SENTENCES_OF_A_GAP = 3
"""A gap sentence needs a neighbor on each side."""


class EncodedText(NamedTuple):
    """Token ids of one side of a text.

    Attributes:
        tokens: int32 [N], each sentence as `<s> w1 … wn </s>`.
        offsets: int64 [sentences + 1].
    """

    tokens: np.ndarray
    offsets: np.ndarray

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self.offsets) - 1

    @property
    def n_unknown(self) -> int:
        """Subwords that are not in the vocabulary."""
        return int((self.tokens == UNK).sum())

    def take(self, rows: np.ndarray) -> "EncodedText":
        """The sentences in these rows."""
        parts = [self.tokens[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        return EncodedText(np.concatenate(parts), offsets_of(np.diff(self.offsets)[rows]))


def encode_sentences(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> EncodedText:
    """Encode sentences one at a time, since corpora may be large."""
    tokens, lengths = array("i"), array("q")
    for sentence in sentences:
        tokens.append(BOS)
        tokens.extend(vocabulary.encode(sentence))
        tokens.append(EOS)
        lengths.append(len(sentence) + N_MARKS)
    return EncodedText(np.frombuffer(tokens, dtype=np.int32), offsets_of(np.frombuffer(lengths, dtype=np.int64)))


def build_instances(
    src: Iterable[Sequence[str]],
    tgt: Iterable[Sequence[str]] | None,
    index: DocumentIndex,
    vocabulary: Vocabulary,
    settings: InstancesSettings,
    *,
    trees: Sequence[PlacedTrees] | None = None,
) -> InstanceSet:
    """Encode and split the documents of a parallel or a monolingual text.

    Args:
        src: subwords of each sentence, index.n_sentences of them.
        tgt: the same for the target side; None for monolingual text, whose source and target are the same arrays.
        index: the documents that the sentences belong to.
        vocabulary: of both sides.
        settings: how documents are split, and which are left out.
        trees: of each document, for models that read them.

    Raises:
        UserError: the text is empty or does not fit the index, or every document is left out.
    """
    sides = [encode_sentences(side, vocabulary) for side in (src, tgt) if side is not None]
    for side in sides:
        _check_length(side.n_sentences, index, "the document index")
    costs = sentence_costs(*(np.diff(side.offsets) - N_MARKS for side in (sides[0], sides[-1])))
    offsets, documents = split_documents(costs, index.lengths, settings)
    keep = _choose(documents, document_tokens(costs, index.lengths), settings)
    counts = {
        "documents_read": len(index.ids),
        "sentences_read": index.n_sentences,
        "instances_split": len(documents),
        "instances_left_out": len(documents) - len(keep),
        "sentences_over_limit": int((costs > settings.max_tokens).sum()),
        "src_unknown_tokens": sides[0].n_unknown,
        "tgt_unknown_tokens": sides[-1].n_unknown,
    }
    instance_trees = None
    if trees is not None:
        numbers = np.full(len(documents), -1, dtype=np.int64)
        numbers[keep] = np.arange(len(keep))
        instance_trees, tree_counts = join_trees(trees, np.repeat(numbers, np.diff(offsets)))
        counts |= tree_counts
    if len(keep) < len(documents):
        rows = np.concatenate([np.arange(int(offsets[i]), int(offsets[i + 1])) for i in keep])
        sides = [side.take(rows) for side in sides]
        costs, offsets, documents = costs[rows], offsets_of(np.diff(offsets)[keep]), documents[keep]
    counts |= _count_kept(costs, offsets, documents)
    manifest = {"counts": counts, "document_ids": list(index.ids)}
    if tgt is None:
        manifest[MONOLINGUAL] = True
        counts["documents_split"] = int((np.bincount(documents) > 1).sum())
        counts["instances_without_gap"] = int((np.diff(offsets) < SENTENCES_OF_A_GAP).sum())
    return InstanceSet(*sides[0], *sides[-1], offsets, documents, manifest, instance_trees)


def _count_kept(costs: np.ndarray, offsets: np.ndarray, documents: np.ndarray) -> dict[str, int]:
    return {
        "documents": len(np.unique(documents)),
        "sentences": int(offsets[-1]),
        "instances": len(documents),
        "tokens": int(costs.sum()),
        "longest_instance_tokens": int(np.add.reduceat(costs, offsets[:-1]).max()),
    }


def build_from_files(
    texts: Sequence[Path],
    *,
    documents: Path,
    vocabulary: Path,
    settings: InstancesSettings,
    discourse: Sequence[Path] = (),
) -> InstanceSet:
    """Build instances from subword files, the document index, the vocabulary and the trees.

    Args:
        texts: source and target; a single file is monolingual text for document restoration.
        documents: document index.
        vocabulary: with masks, for monolingual text.
        settings: how documents are split, and which are left out.
        discourse: trees of the source documents, in one or more files.

    Raises:
        UserError: a file is missing, the numbers of lines differ from the document index, the trees are those of
            other documents, or the vocabulary has no masks.
    """
    if len(texts) not in (1, 2):
        raise UserError(f"--texts: {len(texts)} files: give source and target, or one file of monolingual text")
    is_monolingual = len(texts) == 1
    if is_monolingual and discourse:
        raise UserError("--discourse: monolingual text is restored without trees: remove this option")
    index = read_index(documents)
    symbols = Vocabulary.load(vocabulary)
    if is_monolingual:
        try:
            symbols.masks()
        except UserError as error:
            raise UserError(f"{vocabulary}: {error}") from None
    src = _read_sentences(texts[0], index, documents)
    tgt = None if is_monolingual else _read_sentences(texts[1], index, documents)
    trees = None
    if discourse:
        src = list(src)
        trees = read_trees(discourse, src, index)
    built = build_instances(src, tgt, index, symbols, settings, trees=trees)
    built.manifest["vocabulary_sha256"] = sha256_file(vocabulary)
    built.manifest["provenance"] = describe(settings=settings.model_dump())
    _log_counts(built.manifest["counts"], settings)
    return built


def _read_sentences(path: Path, index: DocumentIndex, documents: Path) -> Iterator[list[str]]:
    """Subwords of each sentence, read as a stream; the number of lines is checked at the end."""
    n_lines = 0
    for line in iterate_lines(path):
        n_lines += 1
        yield line.split()
    try:
        _check_length(n_lines, index, str(documents))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _check_length(n_lines: int, index: DocumentIndex, index_name: str) -> None:
    if not n_lines:
        raise UserError("the text is empty: there are no sentences to build instances from")
    if n_lines != index.n_sentences:
        raise UserError(f"{n_lines} lines, but {index_name} counts {index.n_sentences} sentences")


def _log_counts(counts: dict[str, int], settings: InstancesSettings) -> None:
    message = "%d sentences of %d documents make %d instances"
    keys = ["sentences", "documents", "instances"]
    if "instances_without_gap" in counts:
        message += ", %d of them too short for a gap sentence"
        keys.append("instances_without_gap")
    log.info(message, *(counts[key] for key in keys))
    if counts["sentences_over_limit"]:
        log.warning("%d sentences are longer than %d tokens", counts["sentences_over_limit"], settings.max_tokens)


def read_trees(files: Sequence[Path], src: list[list[str]], index: DocumentIndex) -> list[PlacedTrees]:
    """Lay the trees of `*.discourse.jsonl` files over the subwords of all documents.

    Raises UserError when the files contain other documents or another order.
    """
    placed = []
    path = " ".join(map(str, files))
    found = chain.from_iterable(map(iterate_discourse, files))
    rest = iter(src)
    for name, length in zip(index.ids, index.lengths, strict=True):
        document = next(found, None)
        if document is None or document.id != name:
            there = f"{document.id!r}" if document else "none"
            raise UserError(f"{path}: document {len(placed) + 1} should be {name!r}, but it is {there}: parse the text")
        try:
            placed.append(place_trees(document, list(islice(rest, length))))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    if (document := next(found, None)) is not None:
        raise UserError(
            f"{path}: extra document {document.id!r} beyond the {len(index.ids)} documents of the text: parse the text"
        )
    return placed


def _choose(documents: np.ndarray, tokens: np.ndarray, settings: InstancesSettings) -> np.ndarray:
    """Choose instances, in order: those of documents that are long enough, then a random subset."""
    keep = np.arange(len(documents))
    if settings.min_document_tokens is not None:
        keep = keep[tokens[documents] >= settings.min_document_tokens]
    if settings.subset is not None and settings.subset < len(keep):
        chosen = np.random.default_rng(settings.subset_seed).choice(len(keep), settings.subset, replace=False)
        keep = keep[np.sort(chosen)]
    if not len(keep):
        raise UserError(
            f"no instances are left: no document has min_document_tokens ({settings.min_document_tokens}) or more"
        )
    return keep
