"""Instances on disk: memory-mapped arrays and a manifest (see docs/files.md)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from docmt.errors import UserError
from docmt.files import atomic_path, read_json, sha256_file, write_json

ARRAYS = {
    "src_tokens": np.int32,
    "src_offsets": np.int64,
    "tgt_tokens": np.int32,
    "tgt_offsets": np.int64,
    "instances": np.int64,
    "documents": np.int32,
}


@dataclass(frozen=True)
class InstanceSet:
    """The instances of one split.

    Attributes:
        src_tokens, tgt_tokens: int32 [N], ids of all sentences, each as `<s> w1 … wn </s>`.
        src_offsets, tgt_offsets: int64 [sentences + 1].
        instances: int64 [instances + 1], sentence offsets.
        documents: int32 [instances].
        manifest: counts, settings, document ids, provenance.
    """

    src_tokens: np.ndarray
    src_offsets: np.ndarray
    tgt_tokens: np.ndarray
    tgt_offsets: np.ndarray
    instances: np.ndarray
    documents: np.ndarray
    manifest: dict[str, Any]

    def __len__(self) -> int:
        return len(self.instances) - 1

    def n_sentences(self) -> np.ndarray:
        """Sentences of each instance; int64."""
        return np.diff(self.instances)

    def n_tokens(self) -> np.ndarray:
        """Tokens of each instance as batches count them: the larger side, marks included; int64."""
        sides = [offsets[self.instances[1:]] - offsets[self.instances[:-1]] for offsets in self._offsets()]
        return np.maximum(*sides)

    def _offsets(self) -> tuple[np.ndarray, np.ndarray]:
        return self.src_offsets, self.tgt_offsets

    def sentences(self, instance: int, side: str) -> list[np.ndarray]:
        """Token ids of each sentence of an instance; `side` is `src` or `tgt`."""
        tokens, offsets = getattr(self, f"{side}_tokens"), getattr(self, f"{side}_offsets")
        first, last = self.instances[instance], self.instances[instance + 1]
        return [tokens[offsets[i] : offsets[i + 1]] for i in range(first, last)]


def save_instances(folder: Path, instance_set: InstanceSet) -> None:
    """Write the arrays and the manifest, which records each array's checksum."""
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        checksums = {}
        for name, dtype in ARRAYS.items():
            path = temporary / f"{name}.npy"
            np.save(path, getattr(instance_set, name).astype(dtype))
            checksums[name] = sha256_file(path)
        write_json(temporary / "manifest.json", instance_set.manifest | {"sha256": checksums})


def load_instances(folder: Path, *, verify: bool = True) -> InstanceSet:
    """Open a folder of instances.

    Args:
        verify: compare checksums first, so that a damaged file is named instead of being trained on.

    Raises:
        UserError: a file is missing, damaged or does not fit the others.
    """
    folder = Path(folder)
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or "counts" not in manifest:
        raise UserError(f"{folder / 'manifest.json'}: not a manifest of instances: build the instances again")
    arrays = {}
    for name, dtype in ARRAYS.items():
        path = folder / f"{name}.npy"
        try:
            if verify and sha256_file(path) != manifest["sha256"][name]:
                raise UserError(f"{path}: checksum differs from {folder / 'manifest.json'}: build the instances again")
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise UserError(f"{path}: cannot be read ({error}): build the instances again") from None
        if arrays[name].dtype != dtype:
            raise UserError(f"{path}: has dtype {arrays[name].dtype}, not {np.dtype(dtype)}")
    _check_offsets(folder, arrays)
    return InstanceSet(**arrays, manifest=manifest)


def _check_offsets(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays of different builds: offsets end where the array that they point into ends."""
    pairs = [
        (arrays["src_offsets"][-1], len(arrays["src_tokens"])),
        (arrays["tgt_offsets"][-1], len(arrays["tgt_tokens"])),
        (len(arrays["src_offsets"]), len(arrays["tgt_offsets"])),
        (arrays["instances"][-1], len(arrays["src_offsets"]) - 1),
        (len(arrays["documents"]), len(arrays["instances"]) - 1),
    ]
    if any(found != needed for found, needed in pairs):
        raise UserError(f"{folder}: its arrays do not fit each other: build the instances again")
