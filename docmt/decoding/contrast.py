"""Log probabilities of given translations, for contrastive test sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from docmt.corpora.contrastive import ContrastiveItem
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import prepare_model
from docmt.logs import progress
from docmt.models.batch import Batch, pack
from docmt.models.model_file import TrainedModel
from docmt.models.transformer import Transformer
from docmt.text.vocabulary import BOS, EOS


@dataclass(frozen=True)
class Pair:
    """An instance with a given target: token ids of aligned sentences with marks, and the candidate it belongs to."""

    candidate: int
    src: list[np.ndarray]
    tgt: list[np.ndarray]

    @property
    def n_tokens(self) -> int:
        """As batches count them."""
        return max(sum(map(len, self.src)), sum(map(len, self.tgt)))


class TargetScorer:
    """Scores given target documents, teacher-forced.

    Args:
        trained: from a model file.
        settings: batch size and precision.
        device: `cpu` or `cuda`.
    """

    def __init__(self, trained: TrainedModel, settings: DecodingSettings, *, device: str = "cpu") -> None:
        self.trained, self.settings, self.device = trained, settings, device
        self.model = prepare_model(trained.model, settings.precision, device)
        self.encode = cache(self._encode)

    def score(self, candidates: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[float]:
        """Log probability in nats of each (source sentences, target sentences) document."""
        pairs = [pair for number, (src, tgt) in enumerate(candidates) for pair in self._split(number, src, tgt)]
        totals = np.zeros(len(candidates))
        batches = list(_fill(pairs, self.settings.max_batch_tokens))
        for batch in progress(batches, label="score", unit="batches"):
            sums = instance_log_probabilities(self.model, self._pack(batch))
            np.add.at(totals, [pair.candidate for pair in batch], sums)
        return totals.tolist()

    def _split(self, number: int, src: Sequence[str], tgt: Sequence[str]) -> Iterator[Pair]:
        """The instances of a candidate, by the rule that the model was trained with."""
        pipeline = self.trained.pipeline
        src_ids = [self.encode(sentence, pipeline.src_lang) for sentence in src]
        tgt_ids = [self.encode(sentence, pipeline.tgt_lang) for sentence in tgt]
        costs = [max(len(a), len(b)) for a, b in zip(src_ids, tgt_ids, strict=True)]
        start = 0
        for count in self.trained.split(costs):
            yield Pair(number, src_ids[start : start + count], tgt_ids[start : start + count])
            start += count

    def _encode(self, sentence: str, lang: str) -> np.ndarray:
        subwords = self.trained.pipeline.prepare(sentence, lang=lang)
        return np.array([BOS, *self.trained.vocabulary.encode(subwords), EOS], dtype=np.int64)

    def _pack(self, pairs: Sequence[Pair]) -> Batch:
        src = [sentence for pair in pairs for sentence in pair.src]
        tgt = [sentence for pair in pairs for sentence in pair.tgt]
        return pack(
            np.concatenate(src),
            np.array([len(sentence) for sentence in src]),
            np.concatenate(tgt),
            np.array([len(sentence) for sentence in tgt]),
            np.array([len(pair.src) for pair in pairs]),
            settings=self.model.settings,
            device=self.device,
        )


@torch.inference_mode()
def instance_log_probabilities(model: Transformer, batch: Batch) -> np.ndarray:
    """Log probability in nats of all labels of each instance; float64 [instances]."""
    logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)).float()
    losses = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none").double().cpu().numpy()
    layout = batch.layout
    ends = np.cumsum(layout.tgt_lengths_G)[np.cumsum(layout.tgt_sentences_B) - 1]
    return -np.diff(np.concatenate(([0.0], np.cumsum(losses)))[np.concatenate(([0], ends))])


def score_suite(items: Sequence[ContrastiveItem], scorer: TargetScorer) -> list[dict[str, Any]]:
    """`{"id", "scores"}` of each item: log probabilities of its candidates."""
    flat = [(item.src, candidate) for item in items for candidate in item.candidates]
    scores = iter(scorer.score(flat))
    return [{"id": item.id, "scores": [next(scores) for _ in item.candidates]} for item in items]


def _fill(pairs: Sequence[Pair], max_tokens: int) -> Iterator[list[Pair]]:
    """Batches in order, of at most `max_tokens` tokens."""
    batch: list[Pair] = []
    total = 0
    for pair in pairs:
        if batch and total + pair.n_tokens > max_tokens:
            yield batch
            batch, total = [], 0
        batch.append(pair)
        total += pair.n_tokens
    if batch:
        yield batch
