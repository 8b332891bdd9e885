"""CADec (Voita et al. 2019): a second decoder reads a draft by the sentence model and the previous sentences.

The frozen sentence model drafts a translation for every sentence. A layer in the second decoder has self-attention,
attention to the encoder states of the sentence and of the previous sentences (three in the paper), attention to
translations, and feed-forward. Translations are the draft for the sentence and the final translations of the previous
sentences. A translated word is represented by its embedding, concatenated with the state from which the sentence model
predicts it. Encoder states and words also have the distance to their sentence, as a one-hot vector.

Shape letters: N packed target tokens, S packed source tokens, G sentences, M tokens in targets and drafts, C tokens in
a chunk, V vocabulary, D width, E = 2 D.
"""

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.multi_head import MultiHeadAttention, SentenceDistances
from docmt.models.layers import DecoderLayer, build_sublayer
from docmt.models.numerics import chunks, dropout, product_dtype, symbol_scores
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule, ContextReader, DecoderPass, TargetBatch
from docmt.models.systems.transformer import Transformer
from docmt.text.vocabulary import EOS

TEMPERATURE = 0.5
"""Softmax temperature for drafts that are sampled in training."""
ROUNDS = 4
"""Number of rounds in which all words in a draft are sampled. A round reads the words from the previous round."""
CORRUPTED = 0.5
"""Share of training sentences whose draft is a corrupted reference."""
RANDOM_WORDS = 0.2
"""Share of random words in a corrupted reference."""


class SecondLayer(DecoderLayer):
    """Self-attention, attention to the source, attention to translations (`cross_attention`), and feed-forward.

    A one-hot distance next to a state becomes, after a linear map, a vector per distance, added to keys and values.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings, pattern="group", cross_pattern="group")
        width, heads = settings.width, settings.heads
        near, far = (SentenceDistances(settings.n_before + 1, heads, width // heads) for _ in range(2))
        self.source_attention = MultiHeadAttention(width, heads, "near", distances=near)
        self.source_sublayer = build_sublayer(settings)
        self.cross_attention = MultiHeadAttention(width, heads, "drafts", memory_width=2 * width, distances=far)

    def read_source(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """Attend to the source. [N, D] → [N, D]."""
        sublayer = self.source_sublayer
        return sublayer(hidden_ND, reader.attend_context(self.source_attention, sublayer.enter(hidden_ND)))


class SecondDecoder(ContextModule):
    """A decoder that reads the source, its draft, and the translations of the previous sentences.

    In training, previous translations are references. A draft is sampled from the sentence model, or is the reference
    with some random words. Otherwise it is the most likely draft, unless the layout has drafts.

    Sampling word after word would take one pass per word. Here, all words are sampled at once, in a few rounds: first
    after the words in the reference, then after the words from the previous round. After n rounds, the first n words
    are exactly a sample (or the words of a greedy search), and the others nearly so. A draft longer than the reference
    is cut. A shorter one is repeated, which hardly changes attention to it.

    The first sentence in a document is translated by the sentence model. No gradient reaches drafts and translations.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings, self.n_rounds = settings, ROUNDS
        self.layers = nn.ModuleList(SecondLayer(settings) for _ in range(settings.decoder_layers))

    @override
    def in_decoder(self, number: int, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        return self.second_layers[number].read_source(hidden_ND, reader)

    @override
    def context_attentions(self) -> list[MultiHeadAttention]:
        return [layer.source_attention for layer in self.second_layers]

    @property
    def second_layers(self) -> list[SecondLayer]:
        return list(self.layers)  # pyright: ignore[reportReturnType] - a ModuleList does not know their type

    def second_pass(self, translated_ME: Tensor, memory_SD: Tensor) -> DecoderPass:
        """Return the second decoder's layers with encoder states and `translated` states."""
        return DecoderPass(self.second_layers, translated_ME, self, memory_SD, ("drafted", "near"))

    @staticmethod
    def translated(model: Transformer, labels_N: Tensor, states_ND: Tensor) -> Tensor:
        """Return label embeddings concatenated with the states from which the sentence model predicts them, [N, E]."""
        return torch.cat((model.embedding(labels_N).to(states_ND), states_ND), dim=1).to(product_dtype(states_ND))

    @override
    def decode_again(self, model: Transformer, target: TargetBatch) -> Tensor:
        layout, inputs_N = target.layout, target.inputs_N
        positions_N, drafts = layout.positions("tgt"), layout.drafts
        # Position 0 of the next sentence marks the end of this one, whose last label is </s>.
        labels_N = inputs_N.roll(-1).masked_fill(positions_N.roll(-1) == 0, EOS)
        with torch.no_grad():
            if drafts is None:
                drafted_NE = self._draft(model, target, labels_N, positions_N)
            else:
                states_ND = target.decode(drafts.inputs_N, target.memory_SD, drafts.layout)
                drafted_NE = self.translated(model, drafts.labels_N, states_ND)
            translated_ME = torch.cat((self.translated(model, labels_N, target.states_ND), drafted_NE))
        hidden_ND = dropout(target.embedded_ND, self.settings.dropout, self.training)
        hidden_ND = self.second_pass(translated_ME, target.memory_SD).run(hidden_ND, layout, model.decoder_norm)
        is_first_N = layout.index("tgt", "number") == 0
        return torch.where(is_first_N[:, None], target.states_ND, hidden_ND)

    def _draft(self, model: Transformer, target: TargetBatch, labels_N: Tensor, positions_N: Tensor) -> Tensor:
        """Return the `translated` states of drafts as long as the target."""
        layout, n_given = target.layout, self.settings.n_starts - 1
        sentences_N = layout.index("tgt", "in_batch")
        noise_N = None
        if self.training:
            noise_N = torch.rand(labels_N.shape, device=labels_N.device)

        def draw(states_ND: Tensor) -> Tensor:
            compute = draw_words
            if torch.compiler.is_compiling():
                compute = _traced_words
            table_VD, bias_V, dtype = model.embedding.weight, model.output_bias, product_dtype(states_ND)
            words_N = compute(states_ND.to(dtype), table_VD.to(dtype), bias_V, noise_N)
            return torch.where(positions_N < n_given, labels_N, words_N)

        def read(words_N: Tensor) -> Tensor:
            # A word is the input at the next position. A sentence begins with its boundary token.
            inputs_N = torch.where(positions_N == 0, target.inputs_N, words_N.roll(1))
            return target.decode(inputs_N, target.memory_SD, layout)

        words_N = draw(target.states_ND)
        for _ in range(self.n_rounds - 1):
            words_N = draw(read(words_N))
        if self.training:
            is_corrupted_G = torch.rand(layout.n_sentences, device=labels_N.device) < CORRUPTED
            is_word_N = (labels_N != EOS) & (positions_N >= n_given)
            corrupted_N = corrupt(labels_N, is_word_N, (model.n_specials, model.embedding.num_embeddings))
            words_N = torch.where(is_corrupted_G[sentences_N], corrupted_N, words_N)
        never = 2**31
        ends_N = torch.where(words_N == EOS, positions_N, never)
        ends_G = ends_N.new_full((layout.n_sentences,), never).scatter_reduce(0, sentences_N, ends_N, "amin")
        rows_N = torch.arange(len(labels_N), device=labels_N.device)
        # The position modulo the length of the draft: a short draft is repeated until the sentence is full.
        rows_N = rows_N - positions_N + positions_N % (ends_G[sentences_N] + 1)
        return self.translated(model, words_N, read(words_N))[rows_N]


def corrupt(labels_N: Tensor, is_word_N: Tensor, words: tuple[int, int]) -> Tensor:
    """Replace some words by random words. `words` is the range of word ids."""
    first, end = words
    is_drawn_N, numbers_N = (torch.rand(labels_N.shape, device=labels_N.device) for _ in range(2))
    random_N = (first + numbers_N * (end - first)).long()
    return torch.where((is_drawn_N < RANDOM_WORDS) & is_word_N, random_N, labels_N)


def draw_words(hidden_ND: Tensor, table_VD: Tensor, bias_V: Tensor | None, noise_N: Tensor | None) -> Tensor:
    """Sample words from states, embeddings and bias by inverse transform sampling, int64 [N].

    The noise is uniform in [0, 1). A word is drawn if the noise falls into its part of the cumulative distribution.
    Without noise, the most likely words are returned.
    """
    words = []
    parts = chunks(hidden_ND, len(table_VD))
    for number, hidden_CD in enumerate(parts):
        scores_CV = symbol_scores(hidden_CD, table_VD, bias_V)
        if noise_N is None:
            words.append(scores_CV.argmax(1))
            continue
        sums_CV = (scores_CV / TEMPERATURE).softmax(1).cumsum(1)
        noise_C1 = noise_N[number * len(parts[0]) :][: len(hidden_CD), None]
        # Rounding may keep the last sum from 1, so the noise is scaled by it.
        words.append((sums_CV <= noise_C1 * sums_CV[:, -1:]).sum(1).clamp(max=len(table_VD) - 1))
    return torch.cat(words)


# The number of chunks depends on the batch, so a compiler must not look inside.
_traced_words = torch.library.custom_op("docmt::draw_words", draw_words, mutates_args=())


@_traced_words.register_fake
def _(hidden_ND: Tensor, table_VD: Tensor, bias_V: Tensor | None, noise_N: Tensor | None) -> Tensor:
    return hidden_ND.new_empty(hidden_ND.shape[0], dtype=torch.int64)
