"""Instances on disk: memory-mapped arrays and a manifest (see docs/files.md)."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from docmt.batching import take_shard
from docmt.checksums import is_checking, record_file, sha256_file
from docmt.errors import UserError
from docmt.files import atomic_path, read_json, read_lines, write_json, write_lines
from docmt.outputs import MANIFEST

ARRAYS = {
    "src_tokens": np.int32,
    "src_offsets": np.int64,
    "tgt_tokens": np.int32,
    "tgt_offsets": np.int64,
    "instances": np.int64,
    "documents": np.int32,
}
MASKED = "masked"
# Manifest key for monolingual instances, whose stored source side is also the target side.
MONOLINGUAL = "monolingual"
DOCUMENT_IDS = "document_ids"  # document id file name, and key in older manifests
NEGATIVE = 1 << 31  # first int32 that is negative, as a number without a sign
INSTANCES_OF_A_BLOCK = 10_000  # instances per tree check, since a large corpus would take gigabytes
TREE_ARRAYS = {"edu_offsets": np.int64, "sentence_edus": np.int64, "edu_heads": np.int64, "sentence_heads": np.int64}


@dataclass(frozen=True)
class InstanceTrees:
    """Source EDUs and their trees, cut to instances, int64.

    EDU e is src_tokens[edu_offsets[e] : edu_offsets[e + 1]]. A sentence's first and last EDU contain `<s>`
    and `</s>`. A head is −1 for a root, and if the head is outside the instance.
    """

    edu_offsets: np.ndarray  # [EDUs + 1]
    sentence_edus: np.ndarray  # [sentences + 1], EDU offsets
    edu_heads: np.ndarray  # [EDUs], row of the head EDU
    sentence_heads: np.ndarray  # [sentences], row of the head sentence in the sentence tree


@dataclass(frozen=True)
class InstanceSet:
    """The instances in one split."""

    src_tokens: np.ndarray  # int32 [N], all sentences as `<s> w1 … wn </s>`
    src_offsets: np.ndarray  # int64 [sentences + 1]
    tgt_tokens: np.ndarray
    tgt_offsets: np.ndarray
    instances: np.ndarray  # int64 [instances + 1], sentence offsets
    documents: np.ndarray  # int32 [instances]
    manifest: dict[str, Any]
    trees: InstanceTrees | None = None
    masked: np.ndarray | None = None  # bool [sentences], true for sentences without loss
    folder: Path | None = None  # None: not stored

    def __len__(self) -> int:
        return len(self.instances) - 1

    def n_sentences(self) -> np.ndarray:
        """Return the number of sentences per instance, int64."""
        return np.diff(self.instances)

    def n_tokens(self) -> np.ndarray:
        """Return the number of tokens per instance (larger side, including boundary tokens), int64."""
        return np.maximum(np.diff(self.src_offsets[self.instances]), np.diff(self.tgt_offsets[self.instances]))

    def document_ids(self) -> list[str]:
        """Read the document ids, indexed by `documents`."""
        if self.folder is None or DOCUMENT_IDS in self.manifest:
            return self.manifest[DOCUMENT_IDS]
        path = ids_path(self.folder)
        ids = read_lines(path)
        n_documents = self.manifest["counts"]["documents_read"]
        if len(ids) != n_documents:
            raise UserError(f"{path}: {len(ids)} ids, not {n_documents}: build the instances again")
        return ids

    def sentences(self, instance: int, side: str) -> list[np.ndarray]:
        """Return the token ids per sentence in an instance. `side` is `src` or `tgt`."""
        tokens, offsets = getattr(self, f"{side}_tokens"), getattr(self, f"{side}_offsets")
        first, last = self.instances[instance], self.instances[instance + 1]
        return [tokens[offsets[i] : offsets[i + 1]] for i in range(first, last)]

    def of_shard(self, shard: int, n_shards: int) -> list[int]:
        """Return the instances of the documents in one of `n_shards` shards, in order."""
        documents = [list(group) for _, group in groupby(range(len(self)), key=self.documents.__getitem__)]
        n_sentences = [int(self.instances[group[-1] + 1] - self.instances[group[0]]) for group in documents]
        return list(chain.from_iterable(take_shard(documents, n_sentences, shard=shard, n_shards=n_shards)))


def ids_path(folder: Path) -> Path:
    """Return the path of the document ids (one per line) in an instances folder."""
    return folder / f"{DOCUMENT_IDS}.txt"


@contextlib.contextmanager
def array_writer(path: Path, dtype: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Write a one-dimensional array in parts, as `np.save` would. Yields a function that appends a part."""
    length = 0
    with open(path, "wb") as file:

        def write_header() -> None:
            # NumPy pads the header, so that its size does not depend on the length.
            file.seek(0)
            description = np.lib.format.dtype_to_descr(np.dtype(dtype))
            header = {"descr": description, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(file, header)

        def append(part: np.ndarray) -> None:
            nonlocal length
            length += len(part)
            part.astype(dtype, copy=False).tofile(file)

        write_header()
        yield append
        write_header()


@contextlib.contextmanager
def instances_folder(folder: Path, manifest: dict[str, Any]) -> Iterator[Path]:
    """Yield a new folder for arrays and document ids, which replaces `folder` at the end.

    At the end, `manifest` is written with array checksums. After an error, the new folder is removed.
    """
    with atomic_path(folder, checksum=False) as temporary:  # the manifest has the array checksums
        temporary.mkdir()
        yield temporary
        checksums = {path.stem: record_file(path) for path in temporary.glob("*.npy")}
        write_json(temporary / MANIFEST, manifest | {"sha256": checksums})


def save_instances(folder: Path, instance_set: InstanceSet) -> None:
    """Write arrays, document ids, and the manifest with checksums."""
    manifest = dict(instance_set.manifest)
    arrays = {}
    for name, dtype in _stored(manifest).items():
        arrays[name] = getattr(instance_set, name), dtype
    if instance_set.trees is not None:
        for name, dtype in TREE_ARRAYS.items():
            arrays[name] = getattr(instance_set.trees, name), dtype
    if instance_set.masked is not None:
        arrays[MASKED] = instance_set.masked, np.bool_
    with instances_folder(folder, manifest) as temporary:
        write_lines(ids_path(temporary), instance_set.document_ids())
        manifest.pop(DOCUMENT_IDS, None)
        for name, (array, dtype) in arrays.items():
            with array_writer(temporary / f"{name}.npy", dtype) as append:
                append(array)


def load_instances(folder: Path, *, n_symbols: int | None = None) -> InstanceSet:
    """Open an instances folder. Raises UserError if checksums differ, or if offsets, documents or tokens are invalid.

    `n_symbols` is the size of the vocabulary. Default: unknown.
    """
    folder = folder_of(folder)
    # The manifest contains array checksums, and its own checksum is recorded.
    manifest = read_manifest(folder)
    arrays = _load_arrays(folder, manifest, _stored(manifest))
    if manifest.get(MONOLINGUAL):
        arrays |= {"tgt_tokens": arrays["src_tokens"], "tgt_offsets": arrays["src_offsets"]}
    _check_offsets(folder, arrays)
    _check_numbers(folder, arrays, n_symbols, manifest["counts"].get("documents_read"))
    masked = None
    if MASKED in manifest.get("sha256", {}):
        masked = _load_arrays(folder, manifest, {MASKED: np.bool_})[MASKED]
        if len(masked) != len(arrays["src_offsets"]) - 1:
            raise UserError(f"{folder}: its arrays do not match: build the instances again")
    trees = None
    if "edu_offsets" in manifest.get("sha256", {}):
        trees = InstanceTrees(**_load_arrays(folder, manifest, TREE_ARRAYS))
        _check_trees(folder, trees, arrays)
    return InstanceSet(**arrays, manifest=manifest, trees=trees, masked=masked, folder=folder)


def folder_of(path: Path) -> Path:
    """Return the instances folder for a path to the folder or its manifest (as in workflow rules)."""
    return path.parent if path.name == MANIFEST else path


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest, from a path to the instances folder or the manifest."""
    path = folder_of(folder) / MANIFEST
    manifest = read_json(path)
    if not isinstance(manifest, dict) or "counts" not in manifest:
        raise UserError(f"{path}: not a manifest of instances: build the instances again")
    return manifest


def _stored(manifest: dict[str, Any]) -> dict[str, type]:
    """Return array names and types in a folder, without trees."""
    if not manifest.get(MONOLINGUAL):
        return ARRAYS
    return {name: dtype for name, dtype in ARRAYS.items() if not name.startswith("tgt_")}


def _load_arrays(folder: Path, manifest: dict[str, Any], dtypes: dict[str, type]) -> dict:
    """Open memory-mapped arrays. Returns name → array."""
    arrays = {}
    for name, dtype in dtypes.items():
        path = folder / f"{name}.npy"
        try:
            if is_checking() and sha256_file(path) != manifest["sha256"][name]:
                raise UserError(f"{path}: checksum differs from {folder / MANIFEST}: build the instances again")
            # Without pickle, which could execute code.
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise UserError(f"{path}: cannot be read ({error}): build the instances again") from None
        if arrays[name].dtype != dtype:
            raise UserError(f"{path}: has dtype {arrays[name].dtype}, not {np.dtype(dtype)}")
    return arrays


def _check_offsets(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Reject arrays from different builds, with offsets that do not fit the indexed array, and empty parts."""
    pairs = [
        (arrays["src_offsets"][-1], len(arrays["src_tokens"])),
        (arrays["tgt_offsets"][-1], len(arrays["tgt_tokens"])),
        (len(arrays["src_offsets"]), len(arrays["tgt_offsets"])),
        (arrays["instances"][-1], len(arrays["src_offsets"]) - 1),
        (len(arrays["documents"]), len(arrays["instances"]) - 1),
    ]
    if any(value != needed for value, needed in pairs):
        raise UserError(f"{folder}: its arrays do not match: build the instances again")
    for name in ("src_offsets", "tgt_offsets", "instances"):
        if arrays[name][0] != 0 or not (np.diff(arrays[name]) > 0).all():
            raise UserError(f"{folder / name}.npy: does not ascend from 0: build the instances again")


def _check_numbers(folder: Path, arrays: dict[str, np.ndarray], n_symbols: int | None, n_documents: int | None) -> None:
    """Reject tokens and documents outside of their range."""
    limits = {"src_tokens": n_symbols, "tgt_tokens": n_symbols, "documents": n_documents}
    for name, limit in limits.items():
        # As numbers without a sign, negative ones are the largest. One pass over the file finds both.
        largest = int(arrays[name].view(np.uint32).max(initial=0))
        if largest >= (limit or NEGATIVE):
            value = largest - (largest >= NEGATIVE) * 2 * NEGATIVE
            what = "symbol of the vocabulary" if "tokens" in name else "document"
            raise UserError(f"{folder / name}.npy: {value} is not the number of a {what}: build the instances again")


def _check_trees(folder: Path, trees: InstanceTrees, arrays: dict[str, np.ndarray]) -> None:
    """Reject trees over other sentences, EDUs that do not cover the text, and heads outside their instance."""
    n_edus, n_sentences = len(trees.edu_heads), len(trees.sentence_heads)
    fits = (
        len(trees.edu_offsets) == n_edus + 1
        and n_sentences + 1 == len(trees.sentence_edus) == len(arrays["src_offsets"])
        and trees.sentence_edus[0] == 0
        and trees.sentence_edus[-1] == n_edus
        and bool((np.diff(trees.sentence_edus) > 0).all())
        and bool((np.diff(trees.edu_offsets) >= 0).all())
        and np.array_equal(trees.edu_offsets[trees.sentence_edus], arrays["src_offsets"])
    )
    if not fits:
        raise UserError(f"{folder}: EDUs do not cover the source sentences: build the instances with trees again")
    bounds = arrays["instances"]
    for what, heads, ends in (
        ("EDU", trees.edu_heads, trees.sentence_edus[bounds]),
        ("sentence", trees.sentence_heads, bounds),
    ):
        for first in range(0, len(ends) - 1, INSTANCES_OF_A_BLOCK):
            # Instance starts in the block, and the last end.
            block = ends[first : first + INSTANCES_OF_A_BLOCK + 1]
            units = np.arange(block[0], block[-1])
            parents = heads[block[0] : block[-1]]
            firsts = np.repeat(block[:-1], np.diff(block))
            lasts = np.repeat(block[1:], np.diff(block))
            is_bad = (parents != -1) & ((parents < firsts) | (parents >= lasts) | (parents == units))
            if is_bad.any():
                child = int(units[is_bad.argmax()])
                raise UserError(
                    f"{folder}: the head of {what} {child} is {heads[child]}, which is not a different {what} in "
                    "the same instance: build the instances with trees again"
                )
