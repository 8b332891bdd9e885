"""From subword text to instances."""

import logging
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from docmt.corpora.documents import DocumentIndex, read_index
from docmt.discourse.documents import iterate_discourse
from docmt.errors import UserError
from docmt.files import read_lines, sha256_file
from docmt.instances.segmentation import N_MARKS, document_tokens, sentence_costs, split_documents
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import InstanceSet
from docmt.instances.trees import PlacedTrees, join_trees, place_trees
from docmt.provenance import describe
from docmt.text.vocabulary import BOS, EOS, UNK, Vocabulary

log = logging.getLogger(__name__)


def encode_sentences(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Token ids with marks of all sentences: int32 [N] and int64 [sentences + 1] offsets."""
    lengths = np.fromiter((len(sentence) + N_MARKS for sentence in sentences), dtype=np.int64, count=len(sentences))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    tokens = np.empty(offsets[-1], dtype=np.int32)
    for sentence, start, end in zip(sentences, offsets[:-1], offsets[1:], strict=True):
        tokens[start:end] = [BOS, *vocabulary.encode(sentence), EOS]
    return tokens, offsets


def build_instances(
    src: Sequence[Sequence[str]],
    tgt: Sequence[Sequence[str]],
    index: DocumentIndex,
    vocabulary: Vocabulary,
    settings: InstancesSettings,
    *,
    trees: Sequence[PlacedTrees] | None = None,
) -> InstanceSet:
    """Encode and split aligned documents.

    Args:
        src, tgt: subwords of each sentence, index.n_sentences each.
        trees: of each document, for models that read them.

    Raises:
        UserError: there is no document, or none is left after the choice of documents.
    """
    if not index.n_sentences:
        raise UserError("there is no sentence to make instances of: the text is empty")
    src_tokens, src_offsets = encode_sentences(src, vocabulary)
    tgt_tokens, tgt_offsets = encode_sentences(tgt, vocabulary)
    costs = sentence_costs(np.diff(src_offsets) - N_MARKS, np.diff(tgt_offsets) - N_MARKS)
    offsets, documents = split_documents(costs, index.lengths, settings)
    counts = {
        "documents_read": len(index.ids),
        "sentences_read": index.n_sentences,
        "instances_split": len(documents),
        "sentences_over_limit": int((costs > settings.max_tokens).sum()),
        "src_unknown_tokens": int((src_tokens == UNK).sum()),
        "tgt_unknown_tokens": int((tgt_tokens == UNK).sum()),
    }
    keep = _choose(documents, document_tokens(costs, index.lengths), settings)
    if not len(keep):
        raise UserError(
            f"no instance is left: min_document_tokens {settings.min_document_tokens} is above every document"
        )
    counts["instances_left_out"] = len(documents) - len(keep)
    instance_trees = None
    if trees is not None:
        numbers = np.full(len(documents), -1, dtype=np.int64)
        numbers[keep] = np.arange(len(keep))
        instance_trees, tree_counts = join_trees(trees, np.repeat(numbers, np.diff(offsets)))
        counts |= tree_counts
    if len(keep) < len(documents):
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in keep])
        src_tokens, src_offsets = _take(src_tokens, src_offsets, rows)
        tgt_tokens, tgt_offsets = _take(tgt_tokens, tgt_offsets, rows)
        costs = costs[rows]
        offsets = np.concatenate(([0], np.cumsum(np.diff(offsets)[keep])))
        documents = documents[keep]
    counts |= {
        "documents": len(np.unique(documents)),
        "sentences": int(offsets[-1]),
        "instances": len(documents),
        "tokens": int(costs.sum()),
        "longest_instance_tokens": int(np.add.reduceat(costs, offsets[:-1]).max()),
    }
    manifest = {"counts": counts, "document_ids": list(index.ids)}
    return InstanceSet(src_tokens, src_offsets, tgt_tokens, tgt_offsets, offsets, documents, manifest, instance_trees)


def build_from_files(
    *,
    src: Path,
    tgt: Path,
    documents: Path,
    vocabulary: Path,
    settings: InstancesSettings,
    discourse: Sequence[Path] = (),
) -> InstanceSet:
    """As `build_instances`, from `{split}.bpe.{lang}` files, the document index, the vocabulary and the trees.

    Raises:
        UserError: a file is missing, the numbers of lines differ from the document index, or the trees are those of
            other documents.
    """
    index = read_index(documents)
    sides = []
    for path in (src, tgt):
        lines = read_lines(path)
        if len(lines) != index.n_sentences:
            raise UserError(f"{path}: {len(lines)} lines, but {documents} counts {index.n_sentences} sentences")
        sides.append([line.split() for line in lines])
    trees = read_trees(discourse, sides[0], index) if discourse else None
    built = build_instances(*sides, index, Vocabulary.load(vocabulary), settings, trees=trees)
    built.manifest["vocabulary_sha256"] = sha256_file(vocabulary)
    built.manifest["provenance"] = describe(settings=settings.model_dump())
    counts = built.manifest["counts"]
    log.info(
        "%d sentences of %d documents make %d instances", *(counts[k] for k in ("sentences", "documents", "instances"))
    )
    if counts["sentences_over_limit"]:
        log.warning("%d sentences are longer than %d tokens", counts["sentences_over_limit"], settings.max_tokens)
    return built


def read_trees(files: Sequence[Path], src: list[list[str]], index: DocumentIndex) -> list[PlacedTrees]:
    """The trees of `*.discourse.jsonl` files, one after the other, over the subwords of all documents.

    Raises UserError when the files hold other documents, or in another order.
    """
    placed = []
    path = " ".join(map(str, files))
    found = chain.from_iterable(map(iterate_discourse, files))
    for name, sentences in zip(index.ids, index.split(src), strict=True):
        document = next(found, None)
        if document is None or document.id != name:
            there = f"{document.id!r}" if document else "none"
            raise UserError(f"{path}: document {len(placed) + 1} should be {name!r}, but it is {there}: parse the text")
        try:
            placed.append(place_trees(document, sentences))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    if (document := next(found, None)) is not None:
        raise UserError(f"{path}: holds {document.id!r} beyond the {len(index.ids)} documents of the text")
    return placed


def _choose(documents: np.ndarray, tokens: np.ndarray, settings: InstancesSettings) -> np.ndarray:
    """The instances to keep, in order: long enough documents, then a random subset."""
    keep = np.arange(len(documents))
    if settings.min_document_tokens is not None:
        keep = keep[tokens[documents] >= settings.min_document_tokens]
    if settings.subset is not None and settings.subset < len(keep):
        chosen = np.random.default_rng(settings.subset_seed).choice(len(keep), settings.subset, replace=False)
        keep = keep[np.sort(chosen)]
    return keep


def _take(tokens: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Only some sentences."""
    parts = [tokens[offsets[row] : offsets[row + 1]] for row in rows]
    lengths = np.diff(offsets)[rows]
    return np.concatenate(parts), np.concatenate(([0], np.cumsum(lengths)))
