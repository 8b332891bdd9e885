"""The best continuations of each document's hypotheses, found without sorting all scores.

Shape letters: B documents, M beam, R = B × M rows, V vocabulary, C candidates per document, X symbol kinds, F symbols
outside of blocks, W width of a block, D width of a state, b documents of a chunk.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from docmt.models.numerics import chunks

# Symbols per block: the fastest width on a CPU.
BLOCK = 64


class BlockwiseTopK:
    """Finds the 2 × M best continuations of each document.

    Sorting all M × V scores would cost more than computing them. The best of every block of symbols is a plain maximum,
    and the C best symbols are in the C best blocks. Words are the symbols from `n_specials` on; of the specials, only
    `generated` can be labels. Words are kind 0, each generated special is a separate kind.
    """

    def __init__(
        self, n_symbols: int, n_specials: int, generated: Sequence[int], beam: int, device: torch.device
    ) -> None:
        self.n_symbols, self.n_blocks = n_symbols, n_symbols // BLOCK
        self.n_hidden, self.n_candidates = n_specials, 2 * beam
        # The words behind the last full block.
        words = list(range(max(self.n_blocks * BLOCK, n_specials), n_symbols))
        kinds = [0] * len(words) + list(range(1, len(generated) + 1))
        self.singles_F = torch.tensor([*words, *generated], device=device)
        self.kinds_F = torch.tensor(kinds, device=device)
        self.slots_M = torch.arange(beam, device=device)
        self.single_codes = (self.slots_M[:, None] * n_symbols + self.singles_F).flatten()
        self.inside_W = torch.arange(BLOCK, device=device)

    def best_next(
        self, states_RD: Tensor, logits: Callable[[Tensor], Tensor], scores_BMX: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`best` for the symbols after some states, whose logits [rows, V] `logits` gives.

        In chunks of documents: the scores of all symbols of a large batch fit into no cache, and the C library would
        give their memory back to the system after every step.
        """
        n_documents, beam, _ = scores_BMX.shape
        found = []
        for states_bMD in chunks(states_RD.unflatten(0, (n_documents, beam)), beam * self.n_symbols):
            scores_bMX, scores_BMX = scores_BMX.tensor_split((len(states_bMD),))
            found.append(self.best(logits(states_bMD.flatten(0, 1)).log_softmax(-1), scores_bMX))
        if len(found) == 1:
            return found[0]
        scores, codes = zip(*found, strict=True)
        return torch.cat(scores), torch.cat(codes)

    def best(self, log_probabilities_RV: Tensor, scores_BMX: Tensor) -> tuple[Tensor, Tensor]:
        """The best continuations, best first; log probabilities of specials are overwritten.

        `scores_BMX` are the log probabilities of the hypotheses, or −inf for banned kinds. Returns scores, and codes
        int64 [B, C]: the slot of the hypothesis × V + the symbol.
        """
        n_documents, beam, _ = scores_BMX.shape
        singles = log_probabilities_RV.index_select(1, self.singles_F).unflatten(0, (n_documents, beam))
        scores = (singles + scores_BMX.index_select(2, self.kinds_F)).flatten(1)
        codes = self.single_codes.expand(n_documents, -1)
        if self.n_blocks:
            # Specials have the lowest ids, so they are in the first block, but must not be found as words; those that
            # can be labels are among the singles, which were copied above.
            log_probabilities_RV[:, : self.n_hidden] = -torch.inf
            found = self._best_blocks(log_probabilities_RV, scores_BMX[:, :, 0])
            scores, codes = torch.cat((found[0], scores), dim=1), torch.cat((found[1], codes), dim=1)
        best = scores.topk(self.n_candidates, dim=1)
        return best.values, codes.gather(1, best.indices)

    def _best_blocks(self, log_probabilities_RV: Tensor, scores_BM: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and codes [B, blocks × W] of the blocks that hold the best words of each document."""
        n_documents, beam = scores_BM.shape
        blocks = log_probabilities_RV[:, : self.n_blocks * BLOCK].unflatten(1, (self.n_blocks, BLOCK))
        best_of_block = blocks.amax(2).unflatten(0, (n_documents, beam)) + scores_BM[:, :, None]
        # C blocks suffice: a symbol outside of them is worse than the best symbol of each of the C.
        count = min(self.n_candidates, beam * self.n_blocks)
        chosen = best_of_block.flatten(1).topk(count, dim=1, sorted=False).indices
        slots, numbers = chosen // self.n_blocks, chosen % self.n_blocks
        first_rows = torch.arange(0, n_documents * beam, beam, device=chosen.device)[:, None]
        scores = blocks[first_rows + slots, numbers] + scores_BM.gather(1, slots)[:, :, None]
        codes = (slots * self.n_symbols + numbers * BLOCK)[:, :, None] + self.inside_W
        return scores.flatten(1), codes.flatten(1)
