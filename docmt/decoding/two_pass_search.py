"""Two-pass search: the sentence model drafts all sentences, then a second decoder translates one after another.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B sentences to search, W sentences in their
windows, E width of a translation state (`SecondDecoder.translated`).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from docmt.decoding.beam_search import BeamHypothesis, BeamSearch, encode_source, join_sentences
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.target_streams import PLAIN_SYMBOLS, TargetSymbols
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.patterns import Grouping, Slot
from docmt.models.systems.cadec import SecondDecoder
from docmt.models.systems.context_transformer import ContextTransformer
from docmt.ranges import expand_ranges, starts_of
from docmt.text.vocabulary import EOS


class WindowLayout(AttentionLayout):
    """Some sentences in a layout as separate instances that see a window: themselves and previous sentences."""

    def __init__(self, layout: AttentionLayout, sentences_B: np.ndarray) -> None:
        ones_B = np.ones_like(sentences_B)
        super().__init__(layout.src_lengths_G[sentences_B], ones_B, ones_B, settings=layout.settings)
        first_B = layout.first_sentences(layout.settings.n_before)[sentences_B]
        self.counts_B = sentences_B + 1 - first_B
        self.sentences_W = expand_ranges(first_B, self.counts_B)
        self.back_W = np.repeat(sentences_B, self.counts_B) - self.sentences_W

    def set_lengths(self, source_lengths_W: np.ndarray, translation_lengths_W: np.ndarray) -> None:
        """Set the number of rows per sentence in the windows, on both sides."""
        starts_B = starts_of(self.counts_B)
        keys: list[tuple[Slot, str]] = [("near", "near"), ("drafted", "drafts")]
        for key, lengths_W in zip(keys, (source_lengths_W, translation_lengths_W), strict=True):
            self.groupings[key] = Grouping(
                np.ones_like(self.counts_B),
                np.add.reduceat(lengths_W, starts_B),
                # The rows of the windows are copied one after another: every key is its own row.
                np.arange(lengths_W.sum()),
                False,
                distances=np.repeat(self.back_W, lengths_W),
            )


class TwoPassSearch:
    """The search for one batch of instances with a model that drafts. Arguments as `BeamSearch`.

    A sentence's second search reads its draft and the final translations of the previous sentences.
    """

    def __init__(
        self,
        model: DecodingModel,
        src_tokens: np.ndarray,
        layout: AttentionLayout,
        settings: DecodingSettings,
        symbols: TargetSymbols = PLAIN_SYMBOLS,
    ) -> None:
        assert isinstance(model.transformer, ContextTransformer)
        assert isinstance(model.transformer.context, SecondDecoder)
        self.model = model
        self.transformer = model.transformer
        self.context = model.transformer.context
        self.layout = layout
        self.settings = settings
        self.symbols = symbols
        self.memory_SD = encode_source(self.model, src_tokens, layout)
        self.starts_G = starts_of(layout.src_lengths_G)

    @torch.inference_mode()
    def draft(self) -> list[BeamHypothesis]:
        """Return the sentence model's best translation per sentence."""
        layout = self.layout.split_into_sentences()
        sentences = BeamSearch(self.model, self.memory_SD, layout, self.settings, self.symbols).run()
        return [hypotheses[0] for hypotheses in sentences]

    @torch.inference_mode()
    def run(self) -> list[BeamHypothesis]:
        """Return the best translation per instance."""
        numbers_G = self.layout.sentence_numbers()
        best = self.draft()
        # The states of each sentence's draft, until its final translation replaces them.
        states = self._translation_states(np.arange(len(best)), best)
        # First sentences stay as drafted. Then all second ones of the batch are searched side by side, and so on.
        for number in range(1, numbers_G.max() + 1):
            sentences_B = np.flatnonzero(numbers_G == number)
            layout = WindowLayout(self.layout, sentences_B)
            rows = [states[sentence] for sentence in layout.sentences_W.tolist()]
            lengths_W = np.array(list(map(len, rows)))
            layout.set_lengths(self.layout.src_lengths_G[layout.sentences_W], lengths_W)
            source = self.context.second_pass(torch.cat(rows), self._encoded(layout.sentences_W))
            searched = BeamSearch(self.model, source, layout, self.settings, self.symbols).run()
            translations = [hypotheses[0] for hypotheses in searched]
            rows = self._translation_states(sentences_B, translations)
            for sentence, hypothesis, rows_NE in zip(sentences_B.tolist(), translations, rows, strict=True):
                best[sentence] = hypothesis
                states[sentence] = rows_NE
        counts = self.layout.sentences_B.tolist()
        return join_sentences(best, counts, self.symbols, length_penalty=self.settings.length_penalty)

    def _encoded(self, sentences_W: np.ndarray) -> Tensor:
        """Return the encoder states of some sentences."""
        rows = expand_ranges(self.starts_G[sentences_W], self.layout.src_lengths_G[sentences_W])
        return self.memory_SD[torch.from_numpy(rows).to(self.memory_SD.device)]

    def _translation_states(self, sentences_B: np.ndarray, hypotheses: Sequence[BeamHypothesis]) -> list[Tensor]:
        """Return the states that the second decoder reads from translations, [N, E] per sentence."""
        before = [self.symbols.start]
        if self.symbols.forced is not None:
            before.append(self.symbols.forced)
        inputs: list[int] = []
        labels: list[int] = []
        counts = []
        for hypothesis in hypotheses:
            tokens = [*before, *hypothesis.sentences[0], EOS]
            # Teacher forcing, as in training: inputs lack the last token, labels the first.
            inputs += tokens[:-1]
            labels += tokens[1:]
            counts.append(len(tokens) - 1)
        inputs_N = torch.tensor(inputs, device=self.memory_SD.device)
        labels_N = torch.tensor(labels, device=self.memory_SD.device)
        lengths_B = np.array(counts)
        lengths = self.layout.src_lengths_G[sentences_B], lengths_B, np.ones_like(lengths_B)
        layout = AttentionLayout(*lengths, settings=self.layout.settings, context="none")
        states_ND = self.transformer.decode(inputs_N, self._encoded(sentences_B), self.transformer.place(layout))
        return list(self.context.translated(self.transformer, labels_N, states_ND).split(counts))
