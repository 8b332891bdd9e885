"""The decoder layers of a search step in one call to compiled code, without the time between operations.

Run `python -m docmt.decoding.decoder_step` to build the library for the installed torch, with a C++ compiler. Without
the library, and for models with unsupported parts, `IncrementalDecoder` computes the same in Python, equal bit by bit.

Shape letters: R rows, D width.
"""

import functools
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from docmt.decoding.caches import PrefixTree, SourceKVCache
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.matmuls import FloatMatmul, Int8Matmul
from docmt.models.attention.multi_head import FUSIONS, MultiHeadAttention, parts
from docmt.models.layers import ACTIVATIONS, SUBLAYERS, DecoderLayer, FeedForward, Sublayer

log = logging.getLogger(__name__)

SOURCE = Path(__file__).with_suffix(".cpp")
FOLDERS = (Path(sys.prefix, "lib", "docmt"), Path(os.path.expanduser("~"), ".cache", "docmt"))
"""Folders in which the library is searched. It is built in the first one that is writable."""


class UnknownPartError(Exception):
    """A model part that the library does not support."""


class DecoderStep:
    """The decoder layers with the caches in one search: for self-attention (trees) and cross-attention."""

    def __init__(self, compiled: Any, trees: Sequence[PrefixTree], caches: Sequence[SourceKVCache]) -> None:
        self.run = compiled.run
        self.trees = trees
        self.caches = caches

    @classmethod
    def of(
        cls,
        model: DecodingModel,
        layers: Sequence[DecoderLayer],
        past: Mapping[MultiHeadAttention, tuple[PrefixTree, int]],
        source: Mapping[MultiHeadAttention, tuple[SourceKVCache, int]],
    ) -> "DecoderStep | None":
        """Return the step for some layers without a context module, or None if only Python supports them."""
        if classes() is None:
            return None
        trees: list[PrefixTree] = []
        caches: list[SourceKVCache] = []
        numbers = {}
        for part, (tree, number) in past.items():
            if tree not in trees:
                trees.append(tree)
            numbers[part] = trees.index(tree), number
        for part, (cache, number) in source.items():
            if cache not in caches:
                caches.append(cache)
            numbers[part] = caches.index(cache), number
        key = tuple(layers)
        if key not in model.compiled_steps:  # once: its parts have the same places in each search
            try:
                sublayers = []
                for layer in layers:
                    sublayers += _sublayers(model, layer, numbers)
                model.compiled_steps[key] = classes().DecoderStep(sublayers)
            except UnknownPartError:
                model.compiled_steps[key] = None
        compiled = model.compiled_steps[key]
        if compiled is None:
            return None
        return cls(compiled, trees, caches)

    def __call__(self, hidden_RD: Tensor) -> Tensor:
        """Return states after the last layer, [R, D]. All caches must have advanced."""
        return self.run(
            hidden_RD,
            self.trees[0].beam,
            [tree.keys_values_L2BHCK for tree in self.trees],
            [tree.n for tree in self.trees],
            [tree.bias_B1MN for tree in self.trees],
            [cache.keys_values_L2BHNK for cache in self.caches],
            [cache.bias for cache in self.caches],
        )


def _sublayers(
    model: DecodingModel, layer: DecoderLayer, numbers: Mapping[MultiHeadAttention, tuple[int, int]]
) -> list[Any]:
    """Return the library's sublayers for a layer. `numbers` maps parts to their cache and their layer number there."""
    # Any: decoding replaces the methods of linear maps by products.
    modules: tuple[Any, ...] = (layer.self_attention, layer.cross_attention, layer.feed_forward)
    residuals = layer.self_sublayer, layer.cross_sublayer, layer.feed_forward_sublayer
    names = {function: name for name, function in ACTIVATIONS.items()}
    types = {MultiHeadAttention, FeedForward, *FUSIONS.values(), *SUBLAYERS.values()}
    is_known = type(layer) is DecoderLayer and types.issuperset(map(type, (*modules, *residuals)))
    if not is_known or layer.feed_forward.activation not in names:
        raise UnknownPartError
    sublayers = []
    for attention, sublayer, fused in zip(modules, residuals, model.projections[layer], strict=False):
        outputs = []
        caches = []
        layer_numbers = []
        for part in parts(attention):
            if part.distances is not None:
                raise UnknownPartError
            cache, layer_number = numbers[part]
            outputs.append(part.out.forward)
            caches.append(cache)
            layer_numbers.append(layer_number)
        gate = []
        if hasattr(attention, "gate"):
            gate.append(_matmul(attention.gate.weigh))
        n_outputs, heads = fused.shape[2:4]
        sublayers.append(_sublayer(sublayer, fused.products, outputs))
        sublayers[-1].set_attention(gate, attention.shares_queries, heads, n_outputs, caches, layer_numbers)
    feed_forward = modules[2]
    activation = names[feed_forward.activation]
    return [*sublayers, _sublayer(residuals[2], [feed_forward.inner.forward], [feed_forward.outer.forward], activation)]


def _sublayer(sublayer: Sublayer, first: Sequence[Any], last: Sequence[Any], activation: str = "") -> Any:
    norm = sublayer.norm
    is_pre = isinstance(sublayer, SUBLAYERS["pre"])
    inputs = list(map(_matmul, first))
    outputs = list(map(_matmul, last))
    return classes().Sublayer(norm.weight, norm.bias, norm.eps, is_pre, inputs, outputs, activation)


def _matmul(product: FloatMatmul | Int8Matmul) -> Any:
    if isinstance(product, Int8Matmul):
        return classes().Matmul(None, None, product.packed, product.has_7_bits)
    if not product.is_packed:  # on a GPU, in bfloat16, or without oneDNN
        raise UnknownPartError
    return classes().Matmul(product.weight, product.bias, None, False)


def library_name() -> str:
    """Return the library's file name, with the version of torch and a hash of the source."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    return f"decoder_step-{torch.__version__}-{digest[:12]}.so"


def build(folder: Path) -> None:
    """Compile the library. Takes half a minute."""
    from torch.utils.cpp_extension import include_paths, library_paths  # slow to import

    folder.mkdir(parents=True, exist_ok=True)
    paths = [f"-I{path}" for path in include_paths()]
    paths += [f"-L{path}" for path in library_paths()]
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        built = Path(temporary, "library.so")
        options = ["-O2", "-std=c++20", "-shared", "-fPIC", str(SOURCE), "-o", str(built), *paths]
        subprocess.run([os.environ.get("CXX", "c++"), *options, "-ltorch", "-ltorch_cpu", "-lc10"], check=True)
        built.replace(folder / library_name())


@functools.cache
def classes() -> Any:
    """Return the library's classes, `torch.classes.docmt`, or None if it is not built."""
    for folder in FOLDERS:
        path = folder / library_name()
        try:
            if path.exists():
                torch.classes.load_library(str(path))
                return torch.classes.docmt
        except OSError as error:
            log.info("beam search steps run in Python, because %s cannot be loaded: %s", path, error)
    return None


if __name__ == "__main__":
    try:
        build(next((folder for folder in FOLDERS if os.access(folder.parent, os.W_OK)), FOLDERS[-1]))
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"cannot build the library for steps of beam search, which Python computes without it: {error}")
