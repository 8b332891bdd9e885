"""The best next symbols of a search step, without sorting all scores.

Shape letters: B instances, M beam, R = B × M rows, D width, V vocabulary, C candidates per instance, X symbol kinds, F
symbols outside blocks, W block width, b instances in a chunk.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from docmt.models.numerics import chunks

# Symbols per block: the fastest width on a CPU.
BLOCK = 64


class BlockwiseTopK:
    """Finds the 2 × M best continuations per instance.

    Sorting all M × V scores would cost more than computing them. The best of every block of symbols is a plain maximum,
    and the C best symbols are in the C best blocks. Words are the symbols from `n_specials` on. Among the specials,
    only `generated` can be labels. Words are kind 0, and every generated special is a separate kind.
    """

    def __init__(
        self, n_symbols: int, n_specials: int, generated: Sequence[int], beam: int, device: torch.device
    ) -> None:
        self.n_symbols = n_symbols
        self.n_blocks = n_symbols // BLOCK
        self.n_specials = n_specials
        self.n_candidates = 2 * beam
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
        n_instances, beam, _ = scores_BMX.shape
        best_of_parts = []
        for states_bMD in chunks(states_RD.unflatten(0, (n_instances, beam)), beam * self.n_symbols):
            scores_bMX, scores_BMX = scores_BMX.tensor_split((len(states_bMD),))
            best_of_parts.append(self.best(logits(states_bMD.flatten(0, 1)).log_softmax(-1), scores_bMX))
        if len(best_of_parts) == 1:
            return best_of_parts[0]
        scores, codes = zip(*best_of_parts, strict=True)
        return torch.cat(scores), torch.cat(codes)

    def best(self, log_probabilities_RV: Tensor, scores_BMX: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best continuations, best first. Log probabilities of specials are overwritten.

        `scores_BMX` are the log probabilities of the hypotheses, or −inf for banned kinds. Returns scores, and codes
        int64 [B, C]: number of the hypothesis × V + symbol.
        """
        n_instances, beam, _ = scores_BMX.shape
        singles = log_probabilities_RV.index_select(1, self.singles_F).unflatten(0, (n_instances, beam))
        scores = (singles + scores_BMX.index_select(2, self.kinds_F)).flatten(1)
        codes = self.single_codes.expand(n_instances, -1)
        if self.n_blocks:
            # Specials have the lowest ids, so they are in the first block, but must not be found as words. Those that
            # can be labels are among the singles, which were copied above.
            log_probabilities_RV[:, : self.n_specials] = -torch.inf
            word_scores, word_codes = self._best_blocks(log_probabilities_RV, scores_BMX[:, :, 0])
            scores, codes = torch.cat((word_scores, scores), dim=1), torch.cat((word_codes, codes), dim=1)
        best = scores.topk(self.n_candidates, dim=1)
        return best.values, codes.gather(1, best.indices)

    def _best_blocks(self, log_probabilities_RV: Tensor, scores_BM: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and codes [B, blocks × W] for the blocks with the best words per instance."""
        n_instances, beam = scores_BM.shape
        blocks = log_probabilities_RV[:, : self.n_blocks * BLOCK].unflatten(1, (self.n_blocks, BLOCK))
        best_of_block = blocks.amax(2).unflatten(0, (n_instances, beam)) + scores_BM[:, :, None]
        # C blocks suffice: a symbol outside of them is worse than the best symbol of each of the C.
        count = min(self.n_candidates, beam * self.n_blocks)
        best_blocks = best_of_block.flatten(1).topk(count, dim=1, sorted=False).indices
        hypotheses, numbers = best_blocks // self.n_blocks, best_blocks % self.n_blocks
        first_rows = torch.arange(0, n_instances * beam, beam, device=best_blocks.device)[:, None]
        scores = blocks[first_rows + hypotheses, numbers] + scores_BM.gather(1, hypotheses)[:, :, None]
        codes = (hypotheses * self.n_symbols + numbers * BLOCK)[:, :, None] + self.inside_W
        return scores.flatten(1), codes.flatten(1)
