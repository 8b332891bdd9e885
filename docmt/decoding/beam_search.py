"""Beam search over whole instances.

One search runs from the first to the last sentence of an instance. A hypothesis's group tag is the number of sentences
it has ended, so its group attention follows the source sentence by sentence. In an aligned target stream, `</s>` leads
to the `<s>` of the next sentence, and the `</s>` of the last source sentence ends the hypothesis. Unlike in the
published code, a `</s>` forced by the length limit counts with its probability, and a search with M finished hypotheses
goes on as long as a running one is better.

The search itself stays on the device. Every few steps its results are read back in one piece: finished hypotheses are
recorded, and completed instances leave the batch.

Shape letters: B instances, M beam, R = B × M rows, C = 2 × M candidates per instance, n steps, G source sentences in
the batch, X symbol kinds: words, then the specials that can be labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.target_streams import PLAIN_SYMBOLS, AlignedStream, FreeStream, TargetStream, TargetSymbols
from docmt.decoding.top_k import BlockwiseTopK
from docmt.errors import UserError
from docmt.models.attention.layout import AttentionLayout
from docmt.models.systems.context_module import DecoderPass

KEEP_SHARE = 0.75  # finished instances leave the batch when at most this share of it is still running
# Steps between two checks of the results. Every check makes a GPU wait. Steps after the end are lost.
STEPS_PER_CHECK = {"cpu": 2, "cuda": 16}
NAN_REMEDY = "states overflow in this precision: use decoding.precision float32, or train the model again"


@dataclass(frozen=True)
class BeamHypothesis:
    """A finished translation for one instance: token ids without boundary tokens.

    `log_probability` is the sum over all labels, in nats. `score` is the log probability divided by (number of labels)
    to the power of the length penalty. `forced_ends` counts sentences ended by the length limit.
    """

    sentences: list[list[int]]
    log_probability: float
    score: float
    forced_ends: int


class BeamSearch:
    """The search for one batch of instances.

    Instances in the layout, made by `AttentionLayout.of_source`, are separate searches. `source` contains their encoder
    states or, in the second search of CADec, its decoder and memory.
    """

    def __init__(
        self,
        model: DecodingModel,
        source: Tensor | DecoderPass,
        layout: AttentionLayout,
        settings: DecodingSettings,
        symbols: TargetSymbols = PLAIN_SYMBOLS,
    ) -> None:
        embedding = model.transformer.embedding
        self.beam = settings.beam_size
        self.device = embedding.weight.device
        self.n_symbols = embedding.num_embeddings
        self.decoder = IncrementalDecoder(model, source, layout, self.beam)
        words_G = layout.src_lengths_G - sum(layout.settings.n_src_boundaries)
        limits_G = (settings.max_length_ratio * words_G).astype(np.int64) + settings.max_length_offset
        limits_G = np.where(words_G == 0, 0, limits_G)  # an empty source sentence has an empty translation
        stream = FreeStream if model.settings.target_stream == "free" else AlignedStream
        self.stream = stream(layout, limits_G, symbols, self.beam, self.device)
        self.top_k = BlockwiseTopK(
            self.n_symbols, symbols.n_specials, self.stream.generated, beam=self.beam, device=self.device
        )
        self.instances = np.arange(len(layout.sentences_B))
        self.record = SearchRecord(len(self.instances), self.beam, self.n_symbols, settings.length_penalty)

    @torch.inference_mode()
    def run(self) -> list[list[BeamHypothesis]]:
        """Return the finished hypotheses per instance, best first, at most `beam_size`."""
        # All hypotheses start alike: only the first of each instance may be continued, or the beam would hold copies.
        self.scores_BM = torch.full((len(self.instances), self.beam), -torch.inf, device=self.device)
        self.scores_BM[:, 0] = 0
        step = 0
        while len(self.instances):
            steps = []
            for _ in range(STEPS_PER_CHECK[self.device.type]):
                steps.append(self._step(step))
                step += 1
            self._check(steps)
        return self.record.hypotheses(self.stream)

    def _step(self, step: int) -> tuple[Tensor, Tensor]:
        """Choose the next tokens. Returns codes (inverted where one ends its instance) and scores, both [B, C]."""
        stream = self.stream
        states_RD = self.decoder.step(stream.tokens_BM.flatten(), stream.positions(step).flatten(), stream.sentences_BM)
        scores_BMX = self.scores_BM[:, :, None].masked_fill(stream.banned(step), -torch.inf)
        scores, codes = self.top_k.best_next(states_RD, self.decoder.logits, scores_BMX)
        parents, tokens = codes // self.n_symbols, codes % self.n_symbols
        is_end = stream.ends(tokens, parents) & scores.isfinite()
        # The best M candidates that do not end their instance go on (stable: best first). Of 2 × M candidates at most M
        # end it, one per hypothesis. If fewer than M can go on, the rest have score −inf and are dead.
        going = torch.sort(is_end, dim=1, stable=True).indices[:, : self.beam]
        self.scores_BM = scores.masked_fill(is_end, -torch.inf).gather(1, going)
        parents_BM = parents.gather(1, going)
        stream.advance(tokens.gather(1, going), parents_BM, step)
        first_rows = torch.arange(0, parents_BM.numel(), self.beam, device=self.device)[:, None]
        self.decoder.reorder((first_rows + parents_BM).flatten())
        return torch.where(is_end, ~codes, codes).int(), scores

    def _check(self, steps: list[tuple[Tensor, Tensor]]) -> None:
        """Record the results of the last steps, and drop completed instances and unneeded cache entries."""
        codes, scores = (torch.stack(parts) for parts in zip(*steps, strict=True))
        live = self.decoder.count_live(self.stream.sentences_BM).int()
        # One copy to the host, because each would wait for the GPU: scores travel as the bits of int32.
        read = torch.cat((codes.flatten(), scores.view(torch.int32).flatten(), live)).cpu().numpy()
        codes_nBC, scores_nBC = read[: 2 * codes.numel()].reshape(2, *codes.shape)
        self.record.add(self.instances, codes_nBC, scores_nBC.view(np.float32))
        self.decoder.evict(read[2 * codes.numel() :].tolist())
        running = np.flatnonzero(~self.record.is_done[self.instances])
        if len(running) > KEEP_SHARE * len(self.instances):
            return
        self.instances = self.instances[running]
        if len(running):
            index = torch.from_numpy(running).to(self.device)
            self.scores_BM = self.scores_BM.index_select(0, index)
            self.stream.select_instances(index)
            self.decoder.select_instances(index)


@torch.inference_mode()
def search_instances(
    model: DecodingModel,
    src_tokens: np.ndarray,
    layout: AttentionLayout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[list[BeamHypothesis]]:
    """Search over all sentences in an instance at once, see `BeamSearch`. Source tokens [S] are packed.

    A model that drafts makes only its first pass, see `TwoPassSearch`.
    """
    return BeamSearch(model, encode_source(model, src_tokens, layout), layout, settings, symbols).run()


@torch.inference_mode()
def search_sentences(
    model: DecodingModel,
    src_tokens: np.ndarray,
    layout: AttentionLayout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[BeamHypothesis]:
    """Return the best translation per instance, with a separate search for every sentence, side by side.

    For models whose target sentences do not depend on one another (`ModelSettings.decodes_sentences_alone`). The whole
    source is encoded once, so that document context in the encoder reaches every sentence. Arguments as
    `search_instances`.
    """
    memory_SD = encode_source(model, src_tokens, layout)
    sentences = BeamSearch(model, memory_SD, layout.split_into_sentences(), settings, symbols).run()
    best = [hypotheses[0] for hypotheses in sentences]
    return join_sentences(best, layout.sentences_B.tolist(), symbols, length_penalty=settings.length_penalty)


def join_sentences(
    best: Sequence[BeamHypothesis], counts_B: Sequence[int], symbols: TargetSymbols, *, length_penalty: float
) -> list[BeamHypothesis]:
    """Join sentence hypotheses into one hypothesis per instance, scored as if searched together (aligned streams)."""
    remaining = iter(best)
    joined = []
    for count in counts_B:
        hypotheses = list(islice(remaining, count))
        sentences: list[list[int]] = []
        forced_ends = 0
        for hypothesis in hypotheses:
            sentences += hypothesis.sentences
            forced_ends += hypothesis.forced_ends
        log_probability = sum(hypothesis.log_probability for hypothesis in hypotheses)
        n_marks = len(sentences) * (1 if symbols.forced is None else 2)  # `</s>` and the forced first label
        n_labels = sum(map(len, sentences)) + n_marks
        score = log_probability / n_labels**length_penalty
        joined.append(BeamHypothesis(sentences, log_probability, score, forced_ends))
    return joined


def encode_source(model: DecodingModel, src_tokens: np.ndarray, layout: AttentionLayout) -> Tensor:
    """Return encoder states for packed source tokens [S], on the model's device."""
    tokens_S = torch.from_numpy(np.asarray(src_tokens, dtype=np.int64))
    transformer = model.transformer
    return transformer.encode(tokens_S.to(transformer.embedding.weight.device), transformer.place(layout))


class Ending(NamedTuple):
    """A finished hypothesis: step of its last label, and number of the hypothesis that it continues."""

    step: int
    parent: int
    log_probability: float
    score: float


class SearchRecord:
    """Record of a search, some steps behind: finished hypotheses and completed instances.

    An instance is complete when it has M finished hypotheses and the best one beats the best running one, or when none
    is running. M finished hypotheses are not enough. When a model is confident of its translation, the rest of the beam
    are bad hypotheses, and short ones would fill the list before the good one ends. Later steps on the device are
    ignored.

    Attributes:
        best: score of the best finished hypothesis per instance with M of them, otherwise −inf.
        blocks: instances, and the codes of their hypotheses after every step, int32 [n, B, M].
    """

    def __init__(self, n_instances: int, beam: int, n_symbols: int, length_penalty: float) -> None:
        self.beam = beam
        self.n_symbols = n_symbols
        self.length_penalty = length_penalty
        self.endings: list[list[Ending]] = [[] for _ in range(n_instances)]
        self.best = np.full(n_instances, -np.inf)
        self.is_done = np.zeros(n_instances, dtype=bool)
        self.n_steps = 0
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, instances: np.ndarray, signed_codes_nBC: np.ndarray, scores_nBC: np.ndarray) -> None:
        """Add a block of steps: the candidates in every step, best first, and their log probabilities.

        A candidate is a code from `BlockwiseTopK.best`, inverted (`~code`) if it ends its instance. The others
        continue, up to M. Raises UserError if scores are NaN.
        """
        ends_nBC = signed_codes_nBC < 0
        codes_nBC = np.where(ends_nBC, ~signed_codes_nBC, signed_codes_nBC)
        # The same stable order as in `BeamSearch._step`: column m is hypothesis m of the device.
        order = np.argsort(ends_nBC, axis=2, kind="stable")[:, :, : self.beam]
        self.blocks.append((instances, np.take_along_axis(codes_nBC, order, 2)))
        running_nB = np.where(ends_nBC, -np.inf, scores_nBC.astype(np.float64)).max(2)
        for codes, scores, ends, running in zip(codes_nBC, scores_nBC, ends_nBC, running_nB, strict=True):
            if np.isnan(running[~self.is_done[instances]]).any():
                raise UserError(f"model scores are NaN: {NAN_REMEDY}")
            length = (self.n_steps + 1) ** self.length_penalty
            # Only an end among the best M candidates finishes a hypothesis. A worse one is pruned.
            for number, candidate in zip(*np.nonzero(ends[:, : self.beam]), strict=True):
                instance = int(instances[number])
                log_probability = float(scores[number, candidate])
                endings = self.endings[instance]
                score = log_probability / length
                # With M finished hypotheses, only a better one can still win.
                if self.is_done[instance] or score <= self.best[instance]:
                    continue
                parent = int(codes[number, candidate]) // self.n_symbols
                endings.append(Ending(self.n_steps, parent, log_probability, score))
                if len(endings) >= self.beam:
                    self.best[instance] = max(ending.score for ending in endings)
            self.is_done[instances] |= (running / length <= self.best[instances]) | ~np.isfinite(running)
            self.n_steps += 1

    def hypotheses(self, stream: TargetStream) -> list[list[BeamHypothesis]]:
        """Return the finished hypotheses per instance, best first, at most M."""
        best = [sorted(endings, key=lambda ending: -ending.score)[: self.beam] for endings in self.endings]
        instances = np.repeat(np.arange(len(best)), list(map(len, best)))
        endings = list(chain.from_iterable(best))
        trace = np.zeros((self.n_steps, len(self.endings), self.beam), dtype=np.int32)
        start = 0
        for block_instances, codes_nBM in self.blocks:
            trace[start : start + len(codes_nBM), block_instances] = codes_nBM
            start += len(codes_nBM)
        last_steps = np.array([ending.step for ending in endings], dtype=np.int64)
        hypothesis_numbers = np.array([ending.parent for ending in endings], dtype=np.int64)
        labels = np.zeros((len(endings), self.n_steps), dtype=np.int32)
        # From the last label back to the first: a code holds the label and the number of the hypothesis before it.
        for step in range(self.n_steps - 1, -1, -1):
            codes = trace[step, instances, hypothesis_numbers]
            is_inside = step < last_steps
            labels[is_inside, step] = codes[is_inside] % self.n_symbols
            hypothesis_numbers = np.where(is_inside, codes // self.n_symbols, hypothesis_numbers)
        finished: list[list[BeamHypothesis]] = [[] for _ in best]
        for instance, ending, row in zip(instances.tolist(), endings, labels, strict=True):
            sentences, forced_ends = stream.read(row[: ending.step], instance)
            finished[instance].append(BeamHypothesis(sentences, ending.log_probability, ending.score, forced_ends))
        return finished
