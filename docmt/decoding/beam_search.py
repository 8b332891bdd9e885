"""Beam search over whole instances.

One search runs from the first to the last sentence of an instance. A hypothesis's group tag is the number of sentences
it has ended, so its group attention follows the source sentence by sentence. In an aligned target stream, `</s>` leads
to the `<s>` of the next sentence, and the `</s>` of the last source sentence ends the hypothesis. Unlike in the
published code, a `</s>` forced by the length limit counts with its probability, and a search with M finished hypotheses
goes on as long as a running one is better.

The search itself stays on the device. Every few steps its results are read back in one piece: finished hypotheses are
recorded, and completed instances leave the batch.

Shape letters: B instances, M beam, R = B × M rows, C = 2 × M candidates per instance, V vocabulary, n steps, G source
sentences in the batch, X symbol kinds: words, then the specials that can be labels.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.top_k import BlockwiseTopK
from docmt.errors import UserError
from docmt.instances.packing import BoundaryTokens
from docmt.models.attention.layout import AttentionLayout
from docmt.models.systems.context_module import DecoderPass
from docmt.ranges import starts_of
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS, Vocabulary

KEEP_SHARE = 0.75  # finished instances leave the batch when at most this share of it is still running
# Steps between two checks of the results. Every check makes a GPU wait. Steps after the end are lost.
STEPS_PER_CHECK = {"cpu": 2, "cuda": 16}
NAN_REMEDY = "states overflow in this precision: use decoding.precision float32, or train the model again"


@dataclass(frozen=True)
class TargetSymbols:
    """Special symbols in a search.

    Attributes:
        start: first symbol of every target sentence, set without a search: `<s>` or a language tag.
        n_specials: ids below this number are specials. Among them, only `</s>`, `forced` and, in free streams, `start`
            and `<eod>` are generated.
        forced: a special that must be the first label in every sentence. None in most models.
    """

    start: int = BOS
    n_specials: int = N_SPECIALS
    forced: int | None = None

    @classmethod
    def of(cls, marks: BoundaryTokens, vocabulary: Vocabulary) -> "TargetSymbols":
        """Return a model's symbols."""
        start, *forced = marks.tgt_before
        return cls(start, vocabulary.n_specials, *forced)


PLAIN_SYMBOLS = TargetSymbols()


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
        self.beam, self.device = settings.beam_size, embedding.weight.device
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
    memory_SD, counts = encode_source(model, src_tokens, layout), layout.sentences_B.tolist()
    sentences = BeamSearch(model, memory_SD, layout.split_into_sentences(), settings, symbols).run()
    return join_sentences([hypotheses[0] for hypotheses in sentences], counts, length_penalty=settings.length_penalty)


def join_sentences(
    best: Sequence[BeamHypothesis], counts_B: Sequence[int], *, length_penalty: float
) -> list[BeamHypothesis]:
    """Join sentence hypotheses into one hypothesis per instance, scored as if searched together (aligned streams)."""
    remaining, joined = iter(best), []
    for count in counts_B:
        hypotheses = list(islice(remaining, count))
        sentences = [sentence for hypothesis in hypotheses for sentence in hypothesis.sentences]
        log_probability = sum(hypothesis.log_probability for hypothesis in hypotheses)
        score = log_probability / sum(len(sentence) + 1 for sentence in sentences) ** length_penalty
        forced_ends = sum(hypothesis.forced_ends for hypothesis in hypotheses)
        joined.append(BeamHypothesis(sentences, log_probability, score, forced_ends))
    return joined


def encode_source(model: DecodingModel, src_tokens: np.ndarray, layout: AttentionLayout) -> Tensor:
    """Return encoder states for packed source tokens [S], on the model's device."""
    tokens_S = torch.from_numpy(np.asarray(src_tokens, dtype=np.int64))
    return model.transformer.encode(tokens_S.to(model.transformer.embedding.weight.device), layout)


class TargetStream(ABC):
    """The running hypotheses in a batch as label streams. Steps count labels.

    Attributes:
        generated: the specials that can be labels.
        tokens_BM: int64, next input per hypothesis.
        sentences_BM: int64, the source sentence that a hypothesis translates, numbered over the batch.
        of_instances: names of tensors with one entry per instance.
    """

    of_instances: ClassVar[tuple[str, ...]]

    def __init__(
        self, sentences_B: np.ndarray, generated: list[int], symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        self.generated, self.symbols = generated, symbols
        self.tokens_BM = torch.full((len(sentences_B), beam), symbols.start, device=device)
        self.sentences_BM = torch.from_numpy(sentences_B).to(device)[:, None].repeat(1, beam)

    @abstractmethod
    def positions(self, step: int) -> Tensor:
        """Return the position of every input token, int64 [B, M]."""

    @abstractmethod
    def banned(self, step: int) -> Tensor:
        """Return the kinds of symbols that may not come next, bool [B, M, X]."""

    @abstractmethod
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        """Return the candidates that end their instance, bool [B, C]."""

    @abstractmethod
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        """Continue hypothesis `parents_BM[:, m]` with a token, as the new hypothesis m."""

    @abstractmethod
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        """Return the sentences in a finished stream without boundary tokens, and the number ended by the length limit.

        `labels` excludes the label that ended the instance. `instance` is its number in the original batch.
        """

    def select_instances(self, instances: Tensor) -> None:
        """Keep only some instances."""
        for name in self.of_instances:
            setattr(self, name, getattr(self, name).index_select(0, instances))


class AlignedStream(TargetStream):
    """Words and `</s>`, which leads to the next sentence. The last one ends the instance."""

    of_instances = ("tokens_BM", "sentences_BM", "began_BM", "last_B")

    def __init__(
        self, layout: AttentionLayout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        self.first_sentence = starts_of(layout.sentences_B)
        forced = [] if symbols.forced is None else [symbols.forced]
        self.n_forced = len(forced)
        super().__init__(self.first_sentence, [EOS, *forced], symbols, beam, device)
        self.limits = limits_G
        self.limits_G = torch.from_numpy(limits_G).to(device)
        self.last_B = torch.from_numpy(self.first_sentence + layout.sentences_B - 1).to(device)
        self.began_BM = torch.zeros_like(self.tokens_BM)
        self.restarts = layout.settings.positions == "sentence"

    @override
    def positions(self, step: int) -> Tensor:
        return step - self.began_BM if self.restarts else torch.full_like(self.began_BM, step)

    @override
    def banned(self, step: int) -> Tensor:
        # A sentence has at least one word, unless its limit is 0, and at most its limit.
        words_BM = step - self.began_BM - self.n_forced
        must_end_BM = words_BM >= self.limits_G[self.sentences_BM]
        may_not_end_BM = (words_BM == 0) & ~must_end_BM
        if not self.n_forced:
            return torch.stack((must_end_BM, may_not_end_BM), dim=2)
        is_first_BM = words_BM < 0
        # Words, `</s>`, forced.
        return torch.stack((must_end_BM | is_first_BM, may_not_end_BM | is_first_BM, ~is_first_BM), dim=2)

    @override
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        is_last_BM = self.sentences_BM == self.last_B[:, None]
        return (tokens_BC == EOS) & is_last_BM.gather(1, parents_BC)

    @override
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        is_end_BM = tokens_BM == EOS
        # Hypotheses of ended instances stay inside their instance, so that every index stays valid.
        sentences_BM = self.sentences_BM.gather(1, parents_BM) + is_end_BM
        self.sentences_BM = torch.minimum(sentences_BM, self.last_B[:, None])
        self.began_BM = self.began_BM.gather(1, parents_BM).masked_fill_(is_end_BM, step + 1)
        self.tokens_BM = tokens_BM.masked_fill(is_end_BM, self.symbols.start)

    @override
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        sentences = [words[self.n_forced :] for words in _split(labels)]
        limits = self.limits[self.first_sentence[instance] :][: len(sentences)].tolist()
        return sentences, sum(len(words) == limit > 0 for words, limit in zip(sentences, limits, strict=True))


class FreeStream(TargetStream):
    """Words and `</s>`, followed by the start of another sentence or by `<eod>`, which ends the instance."""

    of_instances = ("tokens_BM", "sentences_BM", "limits_B")

    def __init__(
        self, layout: AttentionLayout, limits_G: np.ndarray, symbols: TargetSymbols, beam: int, device: torch.device
    ) -> None:
        super().__init__(np.arange(len(layout.sentences_B)), [EOS, symbols.start, EOD], symbols, beam, device)
        # The limit of an instance: the words of its sentences and 2 marks of each.
        self.limits = np.add.reduceat(limits_G + 2, starts_of(layout.sentences_B))
        self.limits_B = torch.from_numpy(self.limits).to(device)

    @override
    def positions(self, step: int) -> Tensor:
        return torch.full_like(self.tokens_BM, step)

    @override
    def banned(self, step: int) -> Tensor:
        # From the limit on, a stream must end, which it only can after `</s>`.
        is_between = self.tokens_BM == EOS
        must_end = (self.limits_B <= step)[:, None]
        # Words, `</s>`, start, `<eod>`.
        return torch.stack((is_between | must_end, is_between, ~is_between | must_end, ~is_between), dim=2)

    @override
    def ends(self, tokens_BC: Tensor, parents_BC: Tensor) -> Tensor:
        return tokens_BC == EOD

    @override
    def advance(self, tokens_BM: Tensor, parents_BM: Tensor, step: int) -> None:
        self.tokens_BM = tokens_BM

    @override
    def read(self, labels: np.ndarray, instance: int) -> tuple[list[list[int]], int]:
        forced_ends = int((labels[self.limits[instance] :] == EOS).sum())
        return _split(labels[labels != self.symbols.start])[:-1], forced_ends


def _split(labels: np.ndarray) -> list[list[int]]:
    """Split labels at `</s>` into sentences without it. After a last `</s>` comes an empty sentence."""
    return [part[part != EOS].tolist() for part in np.split(labels, np.flatnonzero(labels == EOS))]


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
        self.beam, self.n_symbols, self.length_penalty = beam, n_symbols, length_penalty
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
                instance, log_probability = int(instances[number]), float(scores[number, candidate])
                endings, score = self.endings[instance], log_probability / length
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
        flat = [(instance, ending) for instance, endings in enumerate(best) for ending in endings]
        trace = np.zeros((self.n_steps, len(self.endings), self.beam), dtype=np.int32)
        start = 0
        for block_instances, codes_nBM in self.blocks:
            trace[start : start + len(codes_nBM), block_instances] = codes_nBM
            start += len(codes_nBM)
        instances = np.array([instance for instance, _ in flat], dtype=np.int64)
        last_steps, hypothesis_numbers = (np.array([ending[i] for _, ending in flat], dtype=np.int64) for i in (0, 1))
        labels = np.zeros((len(flat), self.n_steps), dtype=np.int32)
        # From the last label back to the first: a code holds the label and the number of the hypothesis before it.
        for step in range(self.n_steps - 1, -1, -1):
            codes = trace[step, instances, hypothesis_numbers]
            is_inside = step < last_steps
            labels[is_inside, step] = codes[is_inside] % self.n_symbols
            hypothesis_numbers = np.where(is_inside, codes // self.n_symbols, hypothesis_numbers)
        finished: list[list[BeamHypothesis]] = [[] for _ in best]
        for (instance, ending), row in zip(flat, labels, strict=True):
            sentences, forced_ends = stream.read(row[: ending.step], instance)
            finished[instance].append(BeamHypothesis(sentences, ending.log_probability, ending.score, forced_ends))
        return finished
