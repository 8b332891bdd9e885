"""The cross-attention of a model in use, and the words between which it is.

Shape letters: N packed target tokens, S packed source tokens, D width, H heads, K head width.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from docmt.models.attention.grouping import Grouping
from docmt.models.attention.multi_head import FusedAttention, Gate, MultiHeadAttention, parts
from docmt.models.attention.ragged import dense_weights
from docmt.models.model_file import TrainedModel
from docmt.models.systems.transformer import Transformer
from docmt.text.subwords import SEPARATOR


class AttentionRecorder:
    """A context manager that notes the cross-attention of a decoder layer while a model is in use.

    Attributes:
        weights: float32 [N, S] of each part (`group`, `global`, …): the mean over heads.
        gate_N: the mean over dimensions of the gate, the share of the part before it; None without one.
    """

    def __init__(self, model: Transformer, layer: int = -1) -> None:
        self.attention = model.decoder_layers[layer].cross_attention
        self.weights: dict[str, Tensor] = {}
        self.gate_N: Tensor | None = None

    def __enter__(self) -> "AttentionRecorder":
        self.handles = [part.register_forward_pre_hook(self._note_weights) for part in parts(self.attention)]
        if isinstance(self.attention, FusedAttention) and self.attention.has_gate:
            self.handles.append(self.attention.gate.register_forward_pre_hook(self._note_gate))
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self.handles:
            handle.remove()

    def _note_weights(self, module: MultiHeadAttention, arguments: tuple[Any, ...]) -> None:
        query_ND, memory_MD, groupings = arguments
        query_NHK, key_MHK, _ = module.project(query_ND, memory_MD)
        grouping = groupings(module.pattern)
        assert isinstance(grouping, Grouping), "models that translate are not compiled"
        self.weights[module.pattern] = dense_weights(query_NHK.float(), key_MHK.float(), grouping).mean(0)

    def _note_gate(self, module: Gate, arguments: tuple[Tensor, Tensor]) -> None:
        self.gate_N = torch.sigmoid(module.weigh(torch.cat(arguments, dim=-1))).float().mean(-1)


def words_of(
    trained: TrainedModel,
    sentences: Sequence[np.ndarray | Sequence[str]],
    side: Literal["src", "tgt"],
    *,
    skipped: int = 0,
) -> tuple[list[list[str]], list[np.ndarray]]:
    """The words of sentences, and the packed rows of the subwords of each.

    Sentences are token ids with marks, or subwords without marks, which may be unknown to the model. The first
    `skipped` tokens of each have no row.
    """
    words: list[list[str]] = []
    rows: list[np.ndarray] = []
    n_before, n_after = map(len, trained.marks.around(side))
    start = 0
    for sentence in sentences:
        if isinstance(sentence, np.ndarray):
            symbols = trained.vocabulary.decode(sentence)
        else:
            symbols = [*[""] * n_before, *sentence, *[""] * n_after]
        words.append([])
        ends = np.cumsum([0, *(not symbol.endswith(SEPARATOR) for symbol in symbols[:-1])])
        for _, group in groupby(range(n_before, len(symbols) - n_after), key=lambda place, ends=ends: ends[place]):
            places = np.array(list(group))
            words[-1].append("".join(symbols[place].removesuffix(SEPARATOR) for place in places))
            rows.append(start + places - skipped)
        start += len(symbols) - skipped
    return words, rows
