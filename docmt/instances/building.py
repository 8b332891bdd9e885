"""Instance building from subword text."""

import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from docmt.checksums import sha256_file
from docmt.corpora.documents import iterate_index, iterate_masked
from docmt.discourse.discourse_documents import iterate_discourse
from docmt.errors import UserError
from docmt.files import iterate_lines, write_lines
from docmt.instances.cutting import split_documents
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import MASKED, MONOLINGUAL, array_writer, ids_path, instances_folder
from docmt.instances.trees import SubwordTrees, align_document, store_trees
from docmt.logs import progress
from docmt.provenance import describe
from docmt.ranges import offsets_of
from docmt.text.vocabulary import BOS, EOS, UNK, Vocabulary

log = logging.getLogger(__name__)
Item = TypeVar("Item")

SENTENCES_OF_A_BLOCK = 10_000  # sentences with token ids in memory at a time
SENTENCES_OF_A_GAP = 3  # a gap sentence needs a neighbor on each side
SHUFFLING_SEED = 1


class StoredSide(NamedTuple):
    """One side of a text. Token ids are on disk, because large corpora do not fit in memory."""

    path: Path  # `.npy` file, int32 [N], sentences as `<s> w1 … wn </s>`
    lengths: np.ndarray  # int32 [sentences], tokens with boundary tokens
    n_unknown: int

    def take(self, is_taken: np.ndarray) -> "StoredSide":
        """Keep the sentences in `is_taken` (bool [sentences]), also in the file."""
        rest = self.path.with_suffix(".rest")
        rows = np.load(self.path, mmap_mode="r")
        with array_writer(rest, np.int32) as append:
            for start in range(0, len(is_taken), SENTENCES_OF_A_BLOCK):
                block = slice(start, start + SENTENCES_OF_A_BLOCK)
                tokens, rows = np.split(rows, [self.lengths[block].sum()])
                append(tokens[np.repeat(is_taken[block], self.lengths[block])])
        rest.replace(self.path)
        return self._replace(lengths=self.lengths[is_taken])


def encode_sentences(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary, path: Path) -> StoredSide:
    """Encode sentences block by block, since corpora can be large, and write token ids to a `.npy` file."""
    lengths = array("i")
    n_unknown = 0
    # `<s>` and `</s>` are stored with the sentence, so that a batch is one slice of the file.
    encoded = ((BOS, *vocabulary.encode(sentence), EOS) for sentence in sentences)
    with array_writer(path, np.int32) as append:
        while block := list(islice(encoded, SENTENCES_OF_A_BLOCK)):
            lengths.extend(map(len, block))
            tokens = np.fromiter(chain.from_iterable(block), dtype=np.int32)
            n_unknown += int((tokens == UNK).sum())
            append(tokens)
    return StoredSide(path, np.frombuffer(lengths, dtype=np.int32), n_unknown)


def build_instances(
    src: Iterable[Sequence[str]],
    tgt: Iterable[Sequence[str]] | None,
    index: Iterable[tuple[str, int]],
    vocabulary: Vocabulary,
    settings: InstancesSettings,
    *,
    out: Path,
    trees: Iterable[SubwordTrees] | None = None,
    masked: np.ndarray | None = None,
    **facts: Any,
) -> dict[str, int]:
    """Encode and split the documents in a parallel or monolingual text, and write the instances to a folder.

    Texts contain subwords by sentence. They are read once, as streams, so that memory only grows by a few numbers per
    sentence. Without `tgt`, the source side is also the target side. The index contains (id, number of sentences) per
    document. `masked` (bool [sentences]) marks sentences without loss. `facts` are added to the manifest. Returns the
    counts in the manifest.
    """
    texts = {"src": src}
    manifest = dict(facts)
    if tgt is None:
        manifest[MONOLINGUAL] = True
    else:
        texts["tgt"] = tgt
    with instances_folder(out, manifest) as folder:
        lengths = array("i")

        def ids() -> Iterator[str]:
            for name, length in index:
                lengths.append(length)
                yield name

        write_lines(ids_path(folder), ids())
        sides = {}
        for name, text in texts.items():
            sides[name] = encode_sentences(text, vocabulary, folder / f"{name}_tokens.npy")
        for side in sides.values():
            _check_length(len(side.lengths), sum(lengths), "the document index")
        manifest["counts"] = _cut(folder, sides, lengths, settings, trees, masked)
    return manifest["counts"]


def _cut(
    folder: Path,
    sides: dict[str, StoredSide],
    lengths: Sequence[int],
    settings: InstancesSettings,
    trees: Iterable[SubwordTrees] | None,
    masked: np.ndarray | None,
) -> dict[str, int]:
    """Split documents with these lengths, and write all arrays except tokens. Returns the counts."""
    src, tgt = sides["src"], sides.get("tgt", sides["src"])
    costs = np.maximum(src.lengths, tgt.lengths)
    offsets, documents = split_documents(costs, lengths, settings)
    subset = _choose(documents, costs, lengths, settings)
    counts = {
        "documents_read": len(lengths),
        "sentences_read": len(costs),
        "instances_split": len(documents),
        "instances_left_out": len(documents) - len(subset),
        "sentences_over_limit": int((costs > settings.max_tokens).sum()),
        "src_unknown_tokens": src.n_unknown,
        "tgt_unknown_tokens": tgt.n_unknown,
    }
    # Before `take`, since omitted sentences' trees are also read.
    if trees is not None:
        counts |= store_trees(folder, trees, _instance_of_sentence(offsets, subset))
    if len(subset) < len(documents):
        is_in_subset = _instance_of_sentence(offsets, subset) >= 0
        sides = {name: side.take(is_in_subset) for name, side in sides.items()}
        if masked is not None:
            masked = masked[is_in_subset]
        costs = costs[is_in_subset]
        offsets = offsets_of(np.diff(offsets)[subset])
        documents = documents[subset]
    counts |= {
        "documents": 1 + int(np.count_nonzero(np.diff(documents))),
        "sentences": int(offsets[-1]),
        "instances": len(documents),
        "tokens": int(costs.sum()),
        "longest_instance_tokens": int(np.add.reduceat(costs, offsets[:-1], dtype=np.int32).max()),
    }
    if "tgt" not in sides:
        counts["documents_split"] = int((np.bincount(documents) > 1).sum())
        counts["instances_without_gap"] = int((np.diff(offsets) < SENTENCES_OF_A_GAP).sum())
    if masked is not None:
        counts["masked_sentences"] = int(masked.sum())
        np.save(folder / f"{MASKED}.npy", masked)
    np.save(folder / "instances.npy", offsets)
    np.save(folder / "documents.npy", documents)
    for name, side in sides.items():
        end = 0
        with array_writer(folder / f"{name}_offsets.npy", np.int64) as append:
            append(np.zeros(1, dtype=np.int64))
            # In parts, because all int64 offsets for a large corpus would take gigabytes.
            for start in range(0, len(side.lengths), SENTENCES_OF_A_BLOCK):
                part = offsets_of(side.lengths[start : start + SENTENCES_OF_A_BLOCK])[1:] + end
                append(part)
                end = int(part[-1])
    return counts


def _instance_of_sentence(offsets: np.ndarray, subset: np.ndarray) -> np.ndarray:
    """Return the chosen instance's index per sentence, or −1, int32 [sentences]."""
    numbers = np.full(len(offsets) - 1, -1, dtype=np.int32)
    numbers[subset] = np.arange(len(subset))
    return np.repeat(numbers, np.diff(offsets))


def build_from_files(
    texts: Sequence[Path],
    *,
    documents: Path,
    vocabulary: Path,
    settings: InstancesSettings,
    out: Path,
    discourse: Sequence[Path] = (),
) -> None:
    """Build instances from files (`docmt instances build`). A single text is monolingual, for restoration."""
    if len(texts) not in (1, 2):
        raise UserError(f"--texts: {len(texts)} files: pass source and target, or one file of monolingual text")
    is_monolingual = len(texts) == 1
    if is_monolingual and discourse:
        raise UserError("--discourse: document restoration uses no trees: remove this option")
    n_sentences = sum(length for _, length in iterate_index(documents))
    symbols = Vocabulary.load(vocabulary)
    if settings.shuffled and discourse:
        raise UserError("--discourse: shuffled sentences have no trees: remove this option")
    if is_monolingual:
        try:
            symbols.masks()
        except UserError as error:
            raise UserError(f"{vocabulary}: {error}") from None

    def in_order(sentences: Iterable[Item]) -> Iterable[Item]:
        if not settings.shuffled:
            return sentences
        shuffled = list(sentences)
        # The same order for both sides, because they have the same number of sentences.
        return [shuffled[number] for number in np.random.default_rng(SHUFFLING_SEED).permutation(len(shuffled))]

    def read(path: Path) -> Iterable[list[str]]:
        return in_order(_read_sentences(path, n_sentences, documents))

    masked = read_masked(documents)

    counts = build_instances(
        progress(read(texts[0]), label="source", unit="sentences", total=n_sentences),
        None if is_monolingual else progress(read(texts[1]), label="target", unit="sentences", total=n_sentences),
        iterate_index(documents),
        symbols,
        settings,
        out=out,
        trees=iterate_trees(discourse, read(texts[0]), iterate_index(documents)) if discourse else None,
        masked=None if masked is None else np.array(in_order(masked)),
        vocabulary_sha256=sha256_file(vocabulary),
        provenance=describe(settings=settings.model_dump()),
    )
    message = f"{counts['sentences']} sentences of {counts['documents']} documents make {counts['instances']} instances"
    if is_monolingual:
        message += f", {counts['instances_without_gap']} of them too short for a gap sentence"
    log.info(message)
    if counts["sentences_over_limit"]:
        log.warning("%d sentences are longer than %d tokens", counts["sentences_over_limit"], settings.max_tokens)


def read_masked(path: Path) -> np.ndarray | None:
    """Read the masked sentences in `PREFIX.documents.tsv`, bool [sentences]. None without a `masked` column."""
    documents = iterate_masked(path)
    if documents is None:
        return None
    parts = []
    for n_sentences, masked in documents:
        parts.append(np.zeros(n_sentences, dtype=bool))
        parts[-1][masked] = True
    return np.concatenate(parts)


def _read_sentences(path: Path, n_sentences: int, documents: Path) -> Iterator[list[str]]:
    """Yield the subwords per sentence. The number of lines is checked at the end."""
    n_lines = 0
    for line in iterate_lines(path):
        n_lines += 1
        yield line.split()
    _check_length(n_lines, n_sentences, str(documents), where=f"{path}: ")


def _check_length(n_lines: int, n_sentences: int, index_name: str, *, where: str = "") -> None:
    if not n_lines:
        raise UserError(f"{where}the text is empty: instances need sentences")
    if n_lines != n_sentences:
        raise UserError(f"{where}{n_lines} lines, but {index_name} lists {n_sentences} sentences")


def iterate_trees(
    files: Sequence[Path], src: Iterable[list[str]], index: Iterable[tuple[str, int]]
) -> Iterator[SubwordTrees]:
    """Yield the trees in `*.discourse.jsonl` files, aligned with subwords, one document at a time."""
    path = " ".join(map(str, files))
    documents_with_trees = chain.from_iterable(map(iterate_discourse, files))
    rest = iter(src)
    number = 0
    for number, (name, length) in enumerate(index, start=1):
        document = next(documents_with_trees, None)
        if document is None:
            raise UserError(f"{path}: document {number} must be {name!r}, not none: parse the text again")
        if document.id != name:
            raise UserError(f"{path}: document {number} must be {name!r}, not {document.id!r}: parse the text again")
        try:
            aligned = align_document(document, list(islice(rest, length)))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        yield aligned  # outside `try`, so that the caller's errors are not caught
    document = next(documents_with_trees, None)
    if document is not None:
        raise UserError(
            f"{path}: document {document.id!r} follows after the {number} documents of the text: parse the text again"
        )


def _choose(
    documents: np.ndarray, costs: np.ndarray, lengths: Sequence[int], settings: InstancesSettings
) -> np.ndarray:
    """Choose instances in order: from documents that are long enough, then a random subset."""
    keep = np.arange(len(documents))
    if settings.min_document_tokens is not None:
        document_tokens = np.diff(offsets_of(costs)[offsets_of(lengths)])
        keep = np.flatnonzero(document_tokens[documents] >= settings.min_document_tokens)
    if settings.subset is not None and settings.subset < len(keep):
        sample = np.random.default_rng(settings.subset_seed).choice(len(keep), settings.subset, replace=False)
        keep = keep[np.sort(sample)]
    if not len(keep):
        raise UserError(
            f"no instances are left, because no document has min_document_tokens ({settings.min_document_tokens}) "
            "or more"
        )
    return keep
