"""How context modules read, one step at a time: the rows of the source's context, and the target sentences before.

Shape letters: B documents, M beam, R = B × M rows, G source sentences of the batch, J previous sentences, N nodes, H
heads, K head width, D width.
"""

import torch
from torch import Tensor

from docmt.decoding.memories import Memory, attend_side_by_side
from docmt.decoding.prefixes import PrefixTree, RangeView
from docmt.models.context_module import ContextReader
from docmt.models.layers import MultiHeadAttention
from docmt.models.layout import Layout


class EachTree(PrefixTree):
    """The past of all hypotheses, whose tokens attend to each of the J sentences before theirs by itself.

    `shape` and `like` are as those of `PrefixTree`.
    """

    def __init__(self, layout: Layout, n_before: int, shape: tuple[int, int, int, int, int], *, like: Tensor) -> None:
        super().__init__(RangeView(layout.first_sentences(n_before), like.device), shape, like=like)
        self.ranks_J111 = torch.arange(1, n_before + 1, device=like.device)[:, None, None, None]
        # Finite, so that the attention to a sentence that does not exist gives numbers.
        self.hidden = like.new_full((), torch.finfo(like.dtype).min)

    def grow(self, sentences_BM: Tensor) -> None:
        """See `PrefixTree.grow`."""
        super().grow(sentences_BM)
        distances_BMN = sentences_BM[:, :, None] - self.sentences_BC[:, None, : self.n]
        is_seen_JBMN = self._narrow(distances_BMN == self.ranks_J111)
        self.bias_JBMN = torch.where(is_seen_JBMN, self.nothing, self.hidden)

    def attend_each(self, layer: int, projected_R3HK: Tensor) -> Tensor:
        """As `attend`, to each sentence; [J, R, H × K]."""
        added = self._add(layer, projected_R3HK)
        return torch.stack([attend_side_by_side(*added, bias_BMN[:, None]) for bias_BMN in self.bias_JBMN])


class StepReader(ContextReader):
    """Reads the context of the newest token of each row.

    Args:
        layout: of the source.
        memories: the rows of context for each attention to them, and its number there.
        trees: the past likewise, for each attention to the target sentences before.
        like: attention is computed in its dtype and on its device.
    """

    def __init__(
        self,
        layout: Layout,
        memories: dict[MultiHeadAttention, tuple[Memory, int]],
        trees: dict[MultiHeadAttention, tuple[EachTree, int]],
        *,
        like: Tensor,
    ) -> None:
        self.numbers_G = torch.from_numpy(layout.sentence_numbers()).to(like.device)
        self.memories, self.trees, self.dtype = memories, trees, like.dtype

    def turn(self, sentences_BM: Tensor) -> None:
        """A step in which each row writes a token of its sentence, numbered over the batch."""
        self.numbers_R = self.numbers_G[sentences_BM.flatten()]

    def numbers(self) -> Tensor:
        """See `ContextReader.numbers`."""
        return self.numbers_R

    def to_rows(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        """See `ContextReader.to_rows`."""
        memory, number = self.memories[part]
        return part.out(memory.attend(number, self._query(part, query_ND)).to(query_ND.dtype))

    def to_each(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        """See `ContextReader.to_each`."""
        tree, number = self.trees[part]
        keys_values = (rows.to(self.dtype) for rows in part.project_memory(states_ND))
        projected_R3HK = torch.stack((self._query(part, query_ND), *keys_values), dim=1)
        return part.out(tree.attend_each(number, projected_R3HK).to(query_ND.dtype))

    def _query(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        """Scaled queries, [R, H, K]."""
        query_RHK = part.project_query(query_ND).to(self.dtype)
        return query_RHK * query_RHK.shape[-1] ** -0.5
