"""Search in two passes: the sentence model drafts all sentences, then a second decoder translates one after another.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B sentences to search, W sentences of their
windows, E width of what is kept of a translation.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.hypotheses import BeamHypothesis
from docmt.decoding.prepared import PreparedTransformer
from docmt.decoding.search import BeamSearch, encode_source, join_sentences, search_instances, search_sentences
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.streams import PLAIN_SYMBOLS, TargetSymbols
from docmt.instances.storage import expand_ranges
from docmt.models.cadec import SecondDecoder
from docmt.models.grouping import Grouping
from docmt.models.layout import Layout, Slot
from docmt.models.transformer import Transformer
from docmt.text.vocabulary import EOS


class SecondLayout(Layout):
    """Some sentences of a layout, each an instance that sees a window: itself and sentences before it.

    Attributes:
        sentences_W: those of all windows, one window after another.
    """

    def __init__(self, layout: Layout, sentences_B: np.ndarray) -> None:
        ones_B = np.ones_like(sentences_B)
        super().__init__(layout.src_lengths_G[sentences_B], ones_B, ones_B, settings=layout.settings)
        first_B = layout.first_sentences(layout.settings.n_before)[sentences_B]
        self.counts_B = sentences_B + 1 - first_B
        self.sentences_W = expand_ranges(first_B, self.counts_B)
        self.back_W = np.repeat(sentences_B, self.counts_B) - self.sentences_W

    def see(self, source_lengths_W: np.ndarray, translation_lengths_W: np.ndarray) -> None:
        """Say how many rows each sentence of the windows has on both sides."""
        starts_B = np.cumsum(self.counts_B) - self.counts_B
        lengths: dict[tuple[Slot, str], np.ndarray] = {
            ("near", "near"): source_lengths_W,
            ("drafted", "drafts"): translation_lengths_W,
        }
        for key, lengths_W in lengths.items():
            self._groupings[key] = Grouping(
                np.ones_like(self.counts_B),
                np.add.reduceat(lengths_W, starts_B),
                np.arange(lengths_W.sum()),
                False,
                distances=np.repeat(self.back_W, lengths_W),
            )


class TwoPassSearch:
    """The search of one batch of instances with a model that drafts, in evaluation mode; arguments as `BeamSearch`.

    A sentence's second search reads its draft, and the final translations of the sentences before. All first sentences
    stay as drafted, then all second ones are searched, and so on.
    """

    def __init__(
        self,
        model: Transformer,
        src_tokens: np.ndarray,
        layout: Layout,
        settings: DecodingSettings,
        symbols: TargetSymbols = PLAIN_SYMBOLS,
    ) -> None:
        self.model = PreparedTransformer.of(model)
        assert isinstance(self.model.context, SecondDecoder)
        self.context = self.model.context
        self.layout, self.settings, self.symbols = layout, settings, symbols
        self.memory_SD = encode_source(self.model, src_tokens, layout)
        self.starts_G = np.cumsum(layout.src_lengths_G) - layout.src_lengths_G

    @torch.inference_mode()
    def draft(self) -> list[BeamHypothesis]:
        """The best translation of each sentence by the sentence model."""
        found = BeamSearch(self.model, self.memory_SD, self.layout.one_by_one(), self.settings, self.symbols).run()
        return [hypotheses[0] for hypotheses in found]

    @torch.inference_mode()
    def run(self) -> list[BeamHypothesis]:
        """The best translation of each instance."""
        numbers_G, best = self.layout.sentence_numbers(), self.draft()
        # Of each sentence, what is kept of its final translation, or until then, of its draft.
        kept = self._translated(np.arange(len(best)), best)
        for number in range(1, numbers_G.max() + 1):
            sentences_B = np.flatnonzero(numbers_G == number)
            found = self._search(sentences_B, kept)
            rows = self._translated(sentences_B, found)
            for sentence, hypothesis, rows_NE in zip(sentences_B.tolist(), found, rows, strict=True):
                best[sentence], kept[sentence] = hypothesis, rows_NE
        return join_sentences(best, self.layout, self.settings)

    def _search(self, sentences_B: np.ndarray, kept: Sequence[Tensor]) -> list[BeamHypothesis]:
        """The best translation of some sentences by the second decoder."""
        layout = SecondLayout(self.layout, sentences_B)
        rows = [kept[sentence] for sentence in layout.sentences_W.tolist()]
        layout.see(self.layout.src_lengths_G[layout.sentences_W], np.array([len(rows_NE) for rows_NE in rows]))
        source = self.context.second_pass(torch.cat(rows), self._encoded(layout.sentences_W))
        found = BeamSearch(self.model, source, layout, self.settings, self.symbols).run()
        return [hypotheses[0] for hypotheses in found]

    def _encoded(self, sentences_W: np.ndarray) -> Tensor:
        """The encoder states of some sentences."""
        rows = expand_ranges(self.starts_G[sentences_W], self.layout.src_lengths_G[sentences_W])
        return self.memory_SD[torch.from_numpy(rows).to(self.memory_SD.device)]

    def _translated(self, sentences_B: np.ndarray, hypotheses: Sequence[BeamHypothesis]) -> list[Tensor]:
        """What is kept of translations of some sentences: `SecondDecoder.translated`, [N, E] for each."""
        forced = [] if self.symbols.forced is None else [self.symbols.forced]
        tokens = [[self.symbols.start, *forced, *hypothesis.sentences[0], EOS] for hypothesis in hypotheses]
        inputs_N, labels_N = (
            torch.tensor([token for sentence in tokens for token in sentence[part]], device=self.memory_SD.device)
            for part in (slice(-1), slice(1, None))
        )
        lengths_B = np.array([len(sentence) - 1 for sentence in tokens])
        layout = Layout(
            self.layout.src_lengths_G[sentences_B], lengths_B, np.ones_like(lengths_B), settings=self.layout.settings
        )
        states_ND = self.model.decode_once(inputs_N, self._encoded(sentences_B), layout)
        return list(self.context.translated(self.model, labels_N, states_ND).split(lengths_B.tolist()))


def search_best(
    model: Transformer,
    src_tokens: np.ndarray,
    layout: Layout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[BeamHypothesis]:
    """The best translation of each instance, by the search that the model needs; arguments as `search_instances`."""
    arguments = (model, src_tokens, layout, settings, symbols)
    if model.settings.drafts and layout.reads_context:
        return TwoPassSearch(*arguments).run()
    if model.settings.decodes_sentences_alone:
        return search_sentences(*arguments)
    return [hypotheses[0] for hypotheses in search_instances(*arguments)]
