"""The training loss."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.models.batch import Batch
from docmt.models.transformer import Transformer


class LossModule(nn.Module):
    """A model with its loss in one forward pass, so that wrappers for several devices see all of it."""

    def __init__(self, model: Transformer, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch) -> Tensor:
        """Label-smoothed cross-entropy in nats, summed over all labels."""
        return F.cross_entropy(
            self._logits(batch).float(), batch.tgt_labels_N, label_smoothing=self.label_smoothing, reduction="sum"
        )

    @torch.no_grad()
    def validate(self, batch: Batch) -> tuple[float, float, int]:
        """Sum losses over words and `</s>`, the labels that every kind of target stream has.

        Returns:
            Label-smoothed loss, negative log likelihood (both in nats) and the number of labels.
        """
        chosen = batch.is_word_or_end()
        logits, labels = self._logits(batch).float()[chosen], batch.tgt_labels_N[chosen]
        smoothed = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing, reduction="sum")
        plain = F.cross_entropy(logits, labels, reduction="sum")
        return float(smoothed), float(plain), len(labels)

    def _logits(self, batch: Batch) -> Tensor:
        return self.model.logits(self.model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout))
