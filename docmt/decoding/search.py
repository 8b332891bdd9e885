"""Beam search over whole instances.

One search runs from the first to the last sentence of an instance. A hypothesis's group tag is the number of sentences
it has ended, so its group attention follows the source sentence by sentence; with an aligned target stream `</s>` leads
to the `<s>` of the next sentence, and the last `</s>` ends the hypothesis: there are as many target as source sentences
by construction. Unlike in the published code, a `</s>` forced by the length limit pays its probability, and a search
with M finished hypotheses continues as long as a running one is better.

The search itself stays on the device. Every few steps, what it has found is read back in one piece: finished
hypotheses are noted, and documents that are done leave the batch.

Shape letters: B documents, M beam, R = B × M rows, C = 2 × M candidates per document, V vocabulary, n steps.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.candidates import CandidateSearch
from docmt.decoding.hypotheses import BeamHypothesis, SearchRecord
from docmt.decoding.incremental import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.streams import PLAIN_SYMBOLS, AlignedStream, FreeStream, TargetSymbols, word_limits
from docmt.models.context_module import DecoderPass
from docmt.models.layout import Layout
from docmt.models.transformer import Transformer

KEEP_SHARE = 0.75
"""Documents that are done leave the batch when at most this share of it is still running."""
STEPS_PER_CHECK = {"cpu": 2, "cuda": 16}
"""Steps between two looks at what has been found. Every look makes a GPU wait; steps after the end are lost."""


class BeamSearch:
    """The search of one batch of instances, with a model in evaluation mode.

    The layout is that of the source (`Layout.of_source`); each of its instances is one search. For `source` see
    `IncrementalDecoder`.
    """

    def __init__(
        self,
        model: Transformer,
        source: Tensor | DecoderPass,
        layout: Layout,
        settings: DecodingSettings,
        symbols: TargetSymbols = PLAIN_SYMBOLS,
    ) -> None:
        self.beam, self.device = settings.beam_size, model.embedding.weight.device
        self.n_symbols = model.embedding.num_embeddings
        self.decoder = IncrementalDecoder(model, source, layout, self.beam)
        kind = FreeStream if model.settings.target_stream == "free" else AlignedStream
        self.stream = kind(layout, word_limits(layout, settings), symbols, self.beam, self.device)
        n_specials = symbols.n_specials
        self.candidates = CandidateSearch(
            self.n_symbols, n_specials, self.stream.generated, beam=self.beam, device=self.device
        )
        self.documents = np.arange(len(layout.sentences_B))
        self.record = SearchRecord(len(self.documents), self.beam, self.n_symbols, settings.length_penalty)
        self.steps_per_check = STEPS_PER_CHECK[self.device.type]

    @torch.inference_mode()
    def run(self) -> list[list[BeamHypothesis]]:
        """The finished hypotheses of each instance, best first, at most `beam_size`."""
        self.scores_BM = torch.full((len(self.documents), self.beam), -torch.inf, device=self.device)
        self.scores_BM[:, 0] = 0
        step = 0
        while len(self.documents):
            found = []
            for _ in range(self.steps_per_check):
                found.append(self._step(step))
                step += 1
            self._check(found)
        return self.record.hypotheses(self.stream)

    def _step(self, step: int) -> tuple[Tensor, Tensor]:
        """Feed the newest tokens and choose the next ones; returns what `SearchRecord.add` reads, each [B, C]."""
        stream = self.stream
        positions_R = stream.positions(step).flatten()
        logits = self.decoder.step(stream.tokens_BM.flatten(), positions_R, stream.sentences_BM)
        scores_BMX = self.scores_BM[:, :, None].masked_fill(stream.banned(step), -torch.inf)
        scores, codes = self.candidates.best(logits.log_softmax(-1), scores_BMX)
        slots, tokens = codes // self.n_symbols, codes % self.n_symbols
        is_end = stream.ends(tokens, slots) & scores.isfinite()
        # The best M candidates that do not end their document go on; if there are fewer, the rest are dead.
        going = torch.sort(is_end, dim=1, stable=True).indices[:, : self.beam]
        self.scores_BM = scores.masked_fill(is_end, -torch.inf).gather(1, going)
        slots_BM = slots.gather(1, going)
        stream.advance(tokens.gather(1, going), slots_BM, step)
        first_rows = torch.arange(0, slots_BM.numel(), self.beam, device=self.device)[:, None]
        self.decoder.follow((first_rows + slots_BM).flatten())
        return torch.where(is_end, ~codes, codes).int(), scores

    def _check(self, found: list[tuple[Tensor, Tensor]]) -> None:
        """Read what the last steps have found, and drop what is no longer needed."""
        codes, scores = (torch.stack(parts) for parts in zip(*found, strict=True))
        survey = self.decoder.survey(self.stream.sentences_BM).int()
        read = torch.cat((codes.flatten(), scores.view(torch.int32).flatten(), survey)).cpu().numpy()
        codes_nBC, scores_nBC = read[: 2 * codes.numel()].reshape(2, *codes.shape)
        self.record.add(self.documents, codes_nBC, scores_nBC.view(np.float32))
        self.decoder.drop(read[2 * codes.numel() :].tolist())
        running = np.flatnonzero(~self.record.is_done[self.documents])
        if len(running) > KEEP_SHARE * len(self.documents) and len(running):
            return
        self.documents = self.documents[running]
        if len(running):
            index = torch.from_numpy(running).to(self.device)
            self.scores_BM = self.scores_BM.index_select(0, index)
            self.stream.select_documents(index)
            self.decoder.select_documents(index)


@torch.inference_mode()
def search_instances(
    model: Transformer,
    src_tokens: np.ndarray,
    layout: Layout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[list[BeamHypothesis]]:
    """One search over all sentences of each instance, see `BeamSearch`; source tokens [S] are packed, with marks.

    A model that drafts makes its first pass; for both, see `TwoPassSearch`.
    """
    return BeamSearch(model, encode_source(model, src_tokens, layout), layout, settings, symbols).run()


@torch.inference_mode()
def search_sentences(
    model: Transformer,
    src_tokens: np.ndarray,
    layout: Layout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[BeamHypothesis]:
    """The best translation of each instance, with a separate search for each sentence, all side by side.

    For models whose target sentences do not see one another (`ModelSettings.decodes_sentences_alone`). The whole source
    is encoded once, so what the encoder sees of a document reaches every sentence. Arguments as `search_instances`.
    """
    memory_SD = encode_source(model, src_tokens, layout)
    found = BeamSearch(model, memory_SD, layout.one_by_one(), settings, symbols).run()
    return join_sentences([hypotheses[0] for hypotheses in found], layout, settings)


def join_sentences(best: Sequence[BeamHypothesis], layout: Layout, settings: DecodingSettings) -> list[BeamHypothesis]:
    """One hypothesis for each instance of those of its sentences."""
    ends = np.cumsum(layout.sentences_B)
    return [
        BeamHypothesis.join(best[end - count : end], length_penalty=settings.length_penalty)
        for end, count in zip(ends, layout.sentences_B, strict=True)
    ]


def encode_source(model: Transformer, src_tokens: np.ndarray, layout: Layout) -> Tensor:
    """Encoder states of packed source tokens [S], with marks; on the device of the model."""
    tokens_S = torch.from_numpy(np.asarray(src_tokens, dtype=np.int64))
    return model.encode(tokens_S.to(model.embedding.weight.device), layout)
