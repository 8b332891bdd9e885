"""One search step: the states of the newest tokens, and the best next symbols, without sorting all scores.

There are three classes. `IncrementalDecoder` computes the states with its caches. `BlockwiseTopK` finds the symbols.
`DecoderStep` computes the layers in one call to compiled code, without the time between operations. Run
`python -m docmt.decoding.decoder_step` to build its library for the installed torch, with a C++ compiler. Without the
library, and for models with unsupported parts, `IncrementalDecoder` computes the same in Python, equal bit by bit.

Shape letters: B documents, M beam, R = B × M rows, D width, H heads, K head width, V vocabulary, G source sentences in
the batch. In `BlockwiseTopK`, C candidates per document, X symbol kinds, F symbols outside blocks, W block width, b
documents in a chunk.
"""

import functools
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from typing_extensions import override

from docmt.decoding.caches import PerSentencePrefixTree, PrefixTree, SourceKVCache, make_source_cache, make_visibility
from docmt.decoding.inference_model import (
    FloatMatmul,
    FusedProjections,
    InferenceAttention,
    InferenceTransformer,
    Int8Matmul,
)
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import FUSIONS, Attend, Attention, MultiHeadAttention, parts
from docmt.models.layers import ACTIVATIONS, SUBLAYERS, DecoderLayer, FeedForward, Sublayer
from docmt.models.numerics import chunks
from docmt.models.systems.context_module import ContextReader, DecoderPass
from docmt.models.systems.transformer import Transformer

log = logging.getLogger(__name__)

# Symbols per block: the fastest width on a CPU.
BLOCK = 64
SOURCE = Path(__file__).with_suffix(".cpp")
FOLDERS = (Path(sys.prefix, "lib", "docmt"), Path(os.path.expanduser("~"), ".cache", "docmt"))
"""Folders in which the library is searched. It is built in the first one that is writable."""
Cache = TypeVar("Cache")
# The cache of each attention, and the number of its layer in that cache.
CachePlaces: TypeAlias = dict[MultiHeadAttention, tuple[Cache, int]]


class IncrementalDecoder:
    """Decodes all hypotheses for a batch of documents in step, with a model in evaluation mode.

    The target side of the layout is not used. Nothing here reads from the device. `source` contains the encoder states,
    or a pass that replaces the first pass.
    """

    def __init__(self, model: Transformer, source: Tensor | DecoderPass, layout: AttentionLayout, beam: int) -> None:
        self.model = InferenceTransformer.of(model)
        self.n_steps = 0
        stack = source if isinstance(source, DecoderPass) else self.model.first_pass(source, layout)
        self.context, memory_MD = stack.context, stack.memory_MD
        self.layers: list[tuple[DecoderLayer, Attend, Attend]] = []
        for layer in stack.layers:
            self_projection, cross = self.model.projections[layer]
            attend = (
                functools.partial(self._attend_to_past, self_projection),
                functools.partial(self._attend_to_source, cross),
            )
            self.layers.append((layer, *attend))
        # Keys and values are float32 even if a CPU computes in bfloat16: its many small products are several times
        # slower in bfloat16.
        dtype = memory_MD.dtype if memory_MD.is_cuda else torch.float32
        self.like = torch.empty((), dtype=dtype, device=memory_MD.device)
        self.trees: list[PrefixTree] = []
        self.caches: list[SourceKVCache] = []
        self.past: CachePlaces[PrefixTree] = {}
        self.source: CachePlaces[SourceKVCache] = {}

        def tree_shape(members: Sequence[MultiHeadAttention]) -> tuple[int, int, int, int, int]:
            width = members[0].out.in_features // members[0].heads
            if members[0].distances is not None:
                width = members[0].distances.cache_width(width)
            return len(members), len(layout.sentences_B), beam, members[0].heads, width

        for members in _by_pattern(layer.self_attention for layer in stack.layers):
            visibility = make_visibility(layout, members[0].pattern, self.like.device)
            self.trees.append(PrefixTree(visibility, tree_shape(members), like=self.like))
            self.past |= _places(self.trees[-1], members)
        for members in _by_pattern(layer.cross_attention for layer in stack.layers):
            self.caches.append(make_source_cache(members, memory_MD, layout, stack.slots[0], like=self.like))
            self.source |= _places(self.caches[-1], members)
        self.reader: StepContextReader | None = None
        if self.context is not None:
            self.reader = StepContextReader(layout, like=self.like)
            members = self.context.context_attentions()
            if members and stack.rows_CD is not None:
                self.caches.append(make_source_cache(members, stack.rows_CD, layout, stack.slots[1], like=self.like))
                self.reader.rows |= _places(self.caches[-1], members)
            if members := self.context.previous_attentions():
                tree = PerSentencePrefixTree(layout, layout.settings.n_before, tree_shape(members), like=self.like)
                self.trees.append(tree)
                self.reader.trees |= _places(tree, members)
        self.compiled = None
        if self.context is None:
            self.compiled = DecoderStep.of(self.model, stack.layers, self.past, self.source)

    def step(self, tokens_R: Tensor, positions_R: Tensor, sentences_BM: Tensor) -> Tensor:
        """Feed one token per row. Returns states [R, D] for `logits`.

        Positions are below the number of steps. `sentences_BM` are the source sentences that the rows translate,
        numbered over the batch.
        """
        self.n_steps += 1
        hidden_RD = self.model.embed(tokens_R, positions_R, n_positions=self.n_steps)
        # The nodes and masks of a step are the same for all layers: set them once, before the first layer.
        for state in (*self.trees, *self.caches, *([self.reader] if self.reader else [])):
            state.advance(sentences_BM)
        if self.compiled is not None:
            return self.model.decoder_norm(self.compiled(hidden_RD))
        for number, (layer, attend_to_past, attend_to_source) in enumerate(self.layers):
            sublayer = layer.self_sublayer
            hidden_RD = sublayer(hidden_RD, layer.self_attention.fuse(sublayer.enter(hidden_RD), attend_to_past))
            if self.context is not None and self.reader is not None:
                hidden_RD = self.context.in_decoder(number, hidden_RD, self.reader)
            sublayer = layer.cross_sublayer
            hidden_RD = sublayer(hidden_RD, layer.cross_attention.fuse(sublayer.enter(hidden_RD), attend_to_source))
            sublayer = layer.feed_forward_sublayer
            hidden_RD = sublayer(hidden_RD, layer.feed_forward(sublayer.enter(hidden_RD)))
        hidden_RD = self.model.decoder_norm(hidden_RD)
        if self.context is not None and self.reader is not None:
            hidden_RD = self.context.after_decoder(hidden_RD, self.reader)
        return hidden_RD

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Return logits for the next symbol, float32 [R, V]."""
        return self.model.logits(hidden_RD).float()

    def _attend_to_past(self, projections: FusedProjections, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        projected_R3HK = projections.project(part, query_RD).to(self.like.dtype)
        tree, number = self.past[part]
        if part.distances is None:
            return part.out(tree.attend(number, projected_R3HK).to(query_RD.dtype))
        # Some distances widen queries, keys and values. `finish` removes the added columns from the output.
        extended = part.distances.extend_step(projected_R3HK, tree.position)
        output_RHE = tree.attend(number, extended).unflatten(1, extended.shape[2:])
        return part.out(part.distances.finish(output_RHE).flatten(1).to(query_RD.dtype))

    def _attend_to_source(self, projections: FusedProjections, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        query_RHK = projections.project(part, query_RD)[:, 0].to(self.like.dtype)
        cache, number = self.source[part]
        return part.out(cache.attend(number, query_RHK).to(query_RD.dtype))

    def reorder(self, parents_R: Tensor) -> None:
        """Make row r continue the hypothesis of row `parents_R[r]` in the same document."""
        for tree in self.trees:
            tree.reorder(parents_R)

    def count_live(self, sentences_BM: Tensor) -> Tensor:
        """Return the arguments of `evict` for rows in these sentences, int64 [2 × trees], on the device."""
        return torch.cat([tree.count_live(sentences_BM) for tree in self.trees])

    def evict(self, counts: Sequence[int]) -> None:
        """Evict cache entries that no row will see again. `counts` comes from `count_live`."""
        for number, tree in enumerate(self.trees):
            tree.evict(*counts[2 * number : 2 * number + 2])

    def select_documents(self, documents: Tensor) -> None:
        """Keep only some documents, in the given order."""
        for state in (*self.trees, *self.caches):
            state.select_documents(documents)


class StepContextReader(ContextReader):
    """Reads context for the newest token in every row, for context modules such as HAN."""

    def __init__(self, layout: AttentionLayout, *, like: Tensor) -> None:
        self.numbers_G = torch.from_numpy(layout.sentence_numbers()).to(like.device)
        self.dtype = like.dtype
        self.rows: CachePlaces[SourceKVCache] = {}
        self.trees: CachePlaces[PerSentencePrefixTree] = {}

    def advance(self, sentences_BM: Tensor) -> None:
        """Set the sentences of the rows in the next step, numbered over the batch."""
        self.numbers_R = self.numbers_G[sentences_BM.flatten()]

    @override
    def numbers(self) -> Tensor:
        return self.numbers_R

    @override
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        cache, number = self.rows[part]
        return part.out(cache.attend(number, self._scaled_query(part, query_ND)).to(query_ND.dtype))

    @override
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        tree, number = self.trees[part]
        keys_values = (rows.to(self.dtype) for rows in part.project_memory(states_ND))
        projected_R3HK = torch.stack((self._scaled_query(part, query_ND), *keys_values), dim=1)
        return part.out(tree.attend_per_sentence(number, projected_R3HK).to(query_ND.dtype))

    def _scaled_query(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        query_RHK = part.project_query(query_ND).to(self.dtype)
        # These projections are not fused, so their weights do not contain the factor 1/√K.
        return query_RHK * query_RHK.shape[-1] ** -0.5


def _by_pattern(attentions: Iterable[Attention]) -> list[list[MultiHeadAttention]]:
    """Group the parts in all layers by pattern and number of heads, in layer order."""
    groups: dict[tuple[str, int], list[MultiHeadAttention]] = {}
    for part in (part for attention in attentions for part in parts(attention)):
        groups.setdefault((part.pattern, part.heads), []).append(part)
    return list(groups.values())


def _places(cache: Cache, members: Sequence[MultiHeadAttention]) -> CachePlaces[Cache]:
    return {part: (cache, number) for number, part in enumerate(members)}


class BlockwiseTopK:
    """Finds the 2 × M best continuations per document.

    Sorting all M × V scores would cost more than computing them. The best of every block of symbols is a plain maximum,
    and the C best symbols are in the C best blocks. Words are the symbols from `n_specials` on. Among the specials,
    only `generated` can be labels. Words are kind 0, and every generated special is a separate kind.
    """

    def __init__(
        self, n_symbols: int, n_specials: int, generated: Sequence[int], beam: int, device: torch.device
    ) -> None:
        self.n_symbols, self.n_blocks = n_symbols, n_symbols // BLOCK
        self.n_specials, self.n_candidates = n_specials, 2 * beam
        # The words behind the last full block.
        words = list(range(max(self.n_blocks * BLOCK, n_specials), n_symbols))
        kinds = [0] * len(words) + list(range(1, len(generated) + 1))
        self.singles_F = torch.tensor([*words, *generated], device=device)
        self.kinds_F = torch.tensor(kinds, device=device)
        self.places_M = torch.arange(beam, device=device)
        self.single_codes = (self.places_M[:, None] * n_symbols + self.singles_F).flatten()
        self.inside_W = torch.arange(BLOCK, device=device)

    def best_next(
        self, states_RD: Tensor, logits: Callable[[Tensor], Tensor], scores_BMX: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return `best` for the symbols after some states. `logits` returns logits [rows, V].

        Documents are computed in chunks, because the scores for all symbols in a large batch fit into no cache, and the
        C library would return their memory to the system after every step.
        """
        n_documents, beam, _ = scores_BMX.shape
        best_of_parts = []
        for states_bMD in chunks(states_RD.unflatten(0, (n_documents, beam)), beam * self.n_symbols):
            scores_bMX, scores_BMX = scores_BMX.tensor_split((len(states_bMD),))
            best_of_parts.append(self.best(logits(states_bMD.flatten(0, 1)).log_softmax(-1), scores_bMX))
        if len(best_of_parts) == 1:
            return best_of_parts[0]
        scores, codes = zip(*best_of_parts, strict=True)
        return torch.cat(scores), torch.cat(codes)

    def best(self, log_probabilities_RV: Tensor, scores_BMX: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best continuations, best first. Log probabilities of specials are overwritten.

        `scores_BMX` are the log probabilities of the hypotheses, or −inf for banned kinds. Returns scores, and codes
        int64 [B, C]: hypothesis place × V + symbol.
        """
        n_documents, beam, _ = scores_BMX.shape
        singles = log_probabilities_RV.index_select(1, self.singles_F).unflatten(0, (n_documents, beam))
        scores = (singles + scores_BMX.index_select(2, self.kinds_F)).flatten(1)
        codes = self.single_codes.expand(n_documents, -1)
        if self.n_blocks:
            # Specials have the lowest ids, so they are in the first block, but must not be found as words. Those that
            # can be labels are among the singles, which were copied above.
            log_probabilities_RV[:, : self.n_specials] = -torch.inf
            word_scores, word_codes = self._best_blocks(log_probabilities_RV, scores_BMX[:, :, 0])
            scores, codes = torch.cat((word_scores, scores), dim=1), torch.cat((word_codes, codes), dim=1)
        best = scores.topk(self.n_candidates, dim=1)
        return best.values, codes.gather(1, best.indices)

    def _best_blocks(self, log_probabilities_RV: Tensor, scores_BM: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and codes [B, blocks × W] for the blocks with the best words per document."""
        n_documents, beam = scores_BM.shape
        blocks = log_probabilities_RV[:, : self.n_blocks * BLOCK].unflatten(1, (self.n_blocks, BLOCK))
        best_of_block = blocks.amax(2).unflatten(0, (n_documents, beam)) + scores_BM[:, :, None]
        # C blocks suffice: a symbol outside of them is worse than the best symbol of each of the C.
        count = min(self.n_candidates, beam * self.n_blocks)
        best_blocks = best_of_block.flatten(1).topk(count, dim=1, sorted=False).indices
        places, numbers = best_blocks // self.n_blocks, best_blocks % self.n_blocks
        first_rows = torch.arange(0, n_documents * beam, beam, device=best_blocks.device)[:, None]
        scores = blocks[first_rows + places, numbers] + scores_BM.gather(1, places)[:, :, None]
        codes = (places * self.n_symbols + numbers * BLOCK)[:, :, None] + self.inside_W
        return scores.flatten(1), codes.flatten(1)


class UnknownPartError(Exception):
    """A model part that the library does not support."""


class DecoderStep:
    """The decoder layers with the caches in one search: for self-attention (trees) and cross-attention."""

    def __init__(self, compiled: Any, trees: Sequence[PrefixTree], caches: Sequence[SourceKVCache]) -> None:
        self.run, self.trees, self.caches = compiled.run, trees, caches

    @classmethod
    def of(
        cls,
        model: InferenceTransformer,
        layers: Sequence[DecoderLayer],
        past: Mapping[MultiHeadAttention, tuple[PrefixTree, int]],
        source: Mapping[MultiHeadAttention, tuple[SourceKVCache, int]],
    ) -> "DecoderStep | None":
        """Return the step for some layers without a context module, or None if only Python supports them."""
        if classes() is None:
            return None
        trees = list(dict.fromkeys(tree for tree, _ in past.values()))
        caches = list(dict.fromkeys(cache for cache, _ in source.values()))
        numbers = {part: (trees.index(tree), number) for part, (tree, number) in past.items()}
        numbers |= {part: (caches.index(cache), number) for part, (cache, number) in source.items()}
        key = tuple(layers)
        if key not in model.compiled_steps:  # once: its parts have the same places in each search
            try:
                sublayers = [sublayer for layer in layers for sublayer in _sublayers(model, layer, numbers)]
                model.compiled_steps[key] = classes().DecoderStep(sublayers)
            except UnknownPartError:
                model.compiled_steps[key] = None
        compiled = model.compiled_steps[key]
        return None if compiled is None else cls(compiled, trees, caches)

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
    model: InferenceTransformer, layer: DecoderLayer, numbers: Mapping[MultiHeadAttention, tuple[int, int]]
) -> list[Any]:
    """Return the library's sublayers for a layer. `numbers` maps parts to their cache and their layer number there."""
    # Any: decoding replaces nn.Linear by products of other types.
    modules: tuple[Any, ...] = (layer.self_attention, layer.cross_attention, layer.feed_forward)
    residuals = layer.self_sublayer, layer.cross_sublayer, layer.feed_forward_sublayer
    names = {function: name for name, function in ACTIVATIONS.items()}
    types = {InferenceAttention, FeedForward, *FUSIONS.values(), *SUBLAYERS.values()}
    is_known = type(layer) is DecoderLayer and types.issuperset(map(type, (*modules, *residuals)))
    if not is_known or layer.feed_forward.activation not in names:
        raise UnknownPartError
    sublayers = []
    for attention, sublayer, fused in zip(modules, residuals, model.projections[layer], strict=False):
        members = parts(attention)
        if any(part.distances is not None for part in members):
            raise UnknownPartError
        sublayers.append(_sublayer(sublayer, fused.products, [part.out for part in members]))
        gate = [_matmul(attention.gate.product)] if hasattr(attention, "gate") else []
        n_outputs, heads = fused.shape[2:4]
        caches, places = map(list, zip(*(numbers[part] for part in members), strict=True))
        sublayers[-1].set_attention(gate, attention.shares_queries, heads, n_outputs, caches, places)
    feed_forward = modules[2]
    activation = names[feed_forward.activation]
    return [*sublayers, _sublayer(residuals[2], [feed_forward.inner], [feed_forward.outer], activation)]


def _sublayer(sublayer: Sublayer, first: Sequence[Any], last: Sequence[Any], activation: str = "") -> Any:
    inner: Any = sublayer.norm  # in a model for decoding, a `partial` of the function
    norm, is_pre = inner.keywords, isinstance(sublayer, SUBLAYERS["pre"])
    products = [[_matmul(product) for product in side] for side in (first, last)]
    return classes().Sublayer(norm["weight"], norm["bias"], norm["eps"], is_pre, *products, activation)


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
    paths = [*(f"-I{path}" for path in include_paths()), *(f"-L{path}" for path in library_paths())]
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        built = Path(temporary, "library.so")
        options = ["-O2", "-std=c++20", "-shared", "-fPIC", str(SOURCE), "-o", str(built), *paths]
        subprocess.run([os.environ.get("CXX", "c++"), *options, "-ltorch", "-ltorch_cpu", "-lc10"], check=True)
        built.replace(folder / library_name())


@functools.cache
def classes() -> Any:
    """Return the library's classes, `torch.classes.docmt`, or None if it is not built."""
    for path in (folder / library_name() for folder in FOLDERS):
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
