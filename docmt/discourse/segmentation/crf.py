"""A linear-chain conditional random field.

Shapes: B sentences, T words of the longest, L labels.
"""

import torch
from torch import Tensor, nn


class LinearChainCrf(nn.Module):
    """Scores of label sequences: emissions, transitions, and a score for the first label (Lafferty et al. 2001)."""

    def __init__(self, n_labels: int) -> None:
        super().__init__()
        self.first_L = nn.Parameter(torch.zeros(n_labels))
        self.transitions_LL = nn.Parameter(torch.zeros(n_labels, n_labels))
        """Score of moving from the label of the row to the label of the column."""

    def log_likelihood(self, emissions_BTL: Tensor, labels_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Compute the log probability of each label sequence.

        Args:
            emissions_BTL: float32.
            labels_BT: int64; ignored where the mask is false.
            mask_BT: bool; true for the words of each sentence, at least one.

        Returns:
            float32 [B].
        """
        chosen_BT = emissions_BTL.gather(2, labels_BT[..., None])[..., 0]
        moves_BT = self.transitions_LL[labels_BT[:, :-1], labels_BT[:, 1:]]
        score_B = self.first_L[labels_BT[:, 0]] + (chosen_BT * mask_BT).sum(1) + (moves_BT * mask_BT[:, 1:]).sum(1)

        # The forward algorithm in log space; behind its end, a sentence keeps its last sums.
        alpha_BL = self.first_L + emissions_BTL[:, 0]
        for t in range(1, emissions_BTL.shape[1]):
            step_BL = torch.logsumexp(alpha_BL[:, :, None] + self.transitions_LL, dim=1) + emissions_BTL[:, t]
            alpha_BL = torch.where(mask_BT[:, t, None], step_BL, alpha_BL)
        return score_B - torch.logsumexp(alpha_BL, dim=1)

    def viterbi(self, emissions_BTL: Tensor, lengths_B: Tensor) -> Tensor:
        """Find the most probable label sequences.

        Args:
            emissions_BTL: float32.
            lengths_B: int64, number of words of each sentence, at least one.

        Returns:
            int64 [B, T]; meaningless beyond the end of a sentence.
        """
        n_words = emissions_BTL.shape[1]
        best_BL = self.first_L + emissions_BTL[:, 0]
        before = []
        finals = [best_BL]
        for t in range(1, n_words):
            scores_BL, from_BL = (best_BL[:, :, None] + self.transitions_LL).max(dim=1)
            best_BL = scores_BL + emissions_BTL[:, t]
            before.append(from_BL)
            finals.append(best_BL)
        last_B = lengths_B - 1
        # Each sentence is read back from its own last word.
        ends_BL = torch.stack(finals, dim=1)[torch.arange(len(lengths_B)), last_B]
        label_B = ends_BL.argmax(dim=1)
        labels_BT = torch.zeros(emissions_BTL.shape[:2], dtype=torch.int64)
        labels_BT[:, -1] = label_B
        for t in range(n_words - 2, -1, -1):
            previous_B = before[t].gather(1, label_B[:, None])[:, 0]
            label_B = torch.where(last_B > t, previous_B, label_B)  # beyond the end, keep the last label
            labels_BT[:, t] = label_B
        return labels_BT
