"""The network of the EDU segmenter, and its vocabulary.

Wang, Li and Yang (2018), "Toward fast and accurate neural discourse segmentation", with character convolutions instead
of pretrained vectors, and with auxiliary losses on syntax.

Shapes: B sentences, T words in the longest one, U word types, C characters in a type, D width, L labels.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from docmt.discourse.settings import NetworkSettings
from docmt.errors import UserError

PADDING, UNKNOWN = 0, 1
"""Reserved numbers. Words and characters are numbered after them."""
N_SPECIAL = 2
MAX_CHARACTERS = 24
HEAD_CHARACTERS = 16
"""In words with more than 24 characters, only the first 16 and the last 8 characters are used."""
LABELS = ("pos", "relations", "openings")
"""Word labels in auxiliary losses, as fields of `WordVocabulary` and `SentenceSyntax`."""
SHAPES = ("lower", "initial", "upper", "mixed", "digits", "alphanumeric", "punctuation", "caseless")
INSIDE, START = 0, 1
"""Word labels. START marks the first word in an EDU, except at the beginning of a sentence."""
IMPOSSIBLE = -1e4
"""A finite score, small enough that the label is never chosen."""


@dataclass(frozen=True)
class WordVocabulary:
    """Known words, characters and labels, numbered by position."""

    words: tuple[str, ...]  # lower-cased words
    characters: tuple[str, ...]  # single characters
    pos: tuple[str, ...] = ()  # labels in auxiliary losses, empty without syntax in the training data
    relations: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()

    @classmethod
    def learn(cls, sentences: Iterable[Sequence[str]], *, min_word_count: int) -> "WordVocabulary":
        """Collect words and characters by decreasing frequency, ties by code points."""
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for sentence in sentences:
            words.update(map(str.lower, sentence))
            characters.update("".join(sentence))
        frequent = [word for word, count in words.items() if count >= min_word_count]
        frequent.sort(key=lambda word: (-words[word], word))
        ordered = sorted(characters, key=lambda character: (-characters[character], character))
        return cls(tuple(frequent), tuple(ordered))

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "WordVocabulary":
        try:
            lists = {name: tuple(value[name]) for name in cls.__dataclass_fields__}
        except (KeyError, TypeError) as error:
            raise UserError(f"segmenter: its vocabulary is damaged ({error!r}): train it again") from None
        if not all(isinstance(item, str) for item in itertools.chain.from_iterable(lists.values())):
            raise UserError("segmenter: its vocabulary is damaged (not text): train it again")
        return cls(**lists)

    def to_dict(self) -> dict[str, list[str]]:
        return {name: list(items) for name, items in asdict(self).items()}


@dataclass(frozen=True)
class WordTypes:
    """Distinct word forms in sentences, so that every form is encoded once."""

    words_U: Tensor  # int64, numbers of lower-cased words
    shapes_U: Tensor  # int64, positions in SHAPES
    characters_UC: Tensor  # int64, character numbers, padded on the right

    def select(self, used_U: Tensor) -> "WordTypes":
        return WordTypes(self.words_U[used_U], self.shapes_U[used_U], self.characters_UC[used_U])

    @classmethod
    def encode(cls, words: Sequence[str], vocabulary: WordVocabulary) -> "WordTypes":
        """Convert word forms to numbers."""
        number = {word: number for number, word in enumerate(vocabulary.words, start=N_SPECIAL)}
        character_number = {character: number for number, character in enumerate(vocabulary.characters, N_SPECIAL)}
        rows = []
        for word in words:
            if len(word) > MAX_CHARACTERS:
                word = word[:HEAD_CHARACTERS] + word[HEAD_CHARACTERS - MAX_CHARACTERS :]
            row = [character_number.get(character, UNKNOWN) for character in word]
            rows.append(row + [PADDING] * (MAX_CHARACTERS - len(row)))
        return cls(
            torch.tensor([number.get(word.lower(), UNKNOWN) for word in words], dtype=torch.int64),
            torch.tensor(list(map(word_shape, words)), dtype=torch.int64),
            torch.tensor(rows, dtype=torch.int64).view(len(words), MAX_CHARACTERS),
        )


def number_types(sentences: Iterable[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """Return the distinct word forms in order of appearance, and every sentence as indices into them."""
    numbers: dict[str, int] = {}
    encoded = []
    for sentence in sentences:
        encoded.append([numbers.setdefault(word, len(numbers)) for word in sentence])
    return list(numbers), encoded


def word_shape(word: str) -> int:
    """Return the position of a word shape in `SHAPES`."""
    if word.isalpha():
        if word.islower():
            name = "lower"
        elif word.isupper():
            name = "upper" if len(word) > 1 else "initial"
        elif word.lower() == word.upper():
            name = "caseless"
        else:
            name = "initial" if word[:1].isupper() and word[1:].islower() else "mixed"
    elif not any(map(str.isalnum, word)):
        name = "punctuation"
    elif not any(map(str.isalpha, word)):
        name = "digits"
    else:
        name = "alphanumeric" if any(map(str.isdigit, word)) else "mixed"
    return SHAPES.index(name)


@dataclass(frozen=True)
class SentenceBatch:
    """Sentences padded to the longest."""

    index_BT: Tensor  # int64, word type per word, ignored beyond the end of a sentence
    lengths_B: Tensor  # int64, number of words per sentence, at least one

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int]]) -> "SentenceBatch":
        """Pad every sentence (indices of word forms) with its first index."""
        lengths = list(map(len, sentences))
        longest = max(lengths)
        rows = []
        for numbers in sentences:
            padding = [numbers[0]] * (longest - len(numbers))
            rows.append([*numbers, *padding])
        return cls(torch.tensor(rows), torch.tensor(lengths))

    @property
    def mask_BT(self) -> Tensor:  # noqa: N802 (a tensor, so it ends in shape letters)
        """bool, true for words and false for padding."""
        return torch.arange(self.index_BT.shape[1]) < self.lengths_B[:, None]


@dataclass(frozen=True)
class States:
    """Output of the lower and the upper BiLSTM, float32 [B, T, D]."""

    lower_BTD: Tensor
    upper_BTD: Tensor


class LockedDropout(nn.Module):
    """Dropout with one mask for all words in a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x_BTD: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return x_BTD
        keep = 1 - self.rate
        return x_BTD * (torch.rand(x_BTD.shape[0], 1, x_BTD.shape[2]) < keep) / keep


class WordEncoder(nn.Module):
    """Word encoding: word embedding, character convolution (width 3, max pooling), and shape embedding."""

    def __init__(self, settings: NetworkSettings, vocabulary: WordVocabulary) -> None:
        super().__init__()
        n_words = len(vocabulary.words) + N_SPECIAL
        n_characters = len(vocabulary.characters) + N_SPECIAL
        self.words = nn.Embedding(n_words, settings.word_width)
        self.characters = nn.Embedding(n_characters, settings.character_width)
        self.convolution = nn.Conv1d(settings.character_width, settings.character_filters, kernel_size=3, padding=1)
        self.shapes = nn.Embedding(len(SHAPES), settings.shape_width)
        self.width = settings.word_width + settings.character_filters + settings.shape_width
        self.word_dropout = 0.0
        for table in (self.words, self.characters, self.shapes):
            nn.init.uniform_(table.weight, -0.3, 0.3)

    def forward(self, types: WordTypes) -> Tensor:
        """Encode word types, float32 [U, D]."""
        words_U = types.words_U
        if self.training and self.word_dropout:
            words_U = words_U.masked_fill(torch.rand(words_U.shape) < self.word_dropout, UNKNOWN)
        # Padding that no word needs costs time. An empty word still needs one column for the maximum.
        n_used = max(1, int((types.characters_UC != PADDING).sum(1).max()))
        characters_UC = types.characters_UC[:, :n_used]
        is_used_U1C = (characters_UC != PADDING)[:, None]
        # Padding is zeroed before the convolution and again after the ReLU, so that it cannot be the maximum.
        features_UDC = self.convolution(self.characters(characters_UC).transpose(1, 2) * is_used_U1C)
        features_UD = (features_UDC.relu() * is_used_U1C).amax(dim=2)
        return torch.cat([self.words(words_U), features_UD, self.shapes(types.shapes_U)], dim=1)


class BiLstm(nn.Module):
    """A BiLSTM over padded sentences, without influence of the padding.

    It consists of two LSTMs, the second over sentences reversed within their length. On a CPU, training takes a third
    less time than with one bidirectional LSTM over a packed sequence, since torch has no fused kernel for it.
    """

    def __init__(self, in_width: int, width: int) -> None:
        super().__init__()
        self.forwards = _lstm(in_width, width)
        self.backwards = _lstm(in_width, width)
        self.width = 2 * width

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Run both directions, float32 [B, T, 2 × width]."""
        # Reverse words within the length, and keep padding in place. The same index restores the order.
        position_T = torch.arange(x_BTD.shape[1])
        turned_BT = torch.where(position_T < lengths_B[:, None], lengths_B[:, None] - 1 - position_T, position_T)
        row_B1 = torch.arange(len(x_BTD))[:, None]
        left_TBD = self.forwards(x_BTD.transpose(0, 1).contiguous())[0]
        right_TBD = self.backwards(x_BTD[row_B1, turned_BT].transpose(0, 1).contiguous())[0]
        return torch.cat([left_TBD.transpose(0, 1), right_TBD.transpose(0, 1)[row_B1, turned_BT]], dim=2)


def _lstm(in_width: int, width: int) -> nn.LSTM:
    lstm = nn.LSTM(in_width, width)
    input_weight, hidden_weight, input_bias, hidden_bias = lstm.parameters()
    nn.init.xavier_uniform_(input_weight)
    for gate in hidden_weight.data.chunk(4):
        nn.init.orthogonal_(gate)
    nn.init.zeros_(hidden_bias)
    nn.init.zeros_(input_bias)
    input_bias.data[width : 2 * width] = 1  # the forget gate starts open
    return lstm


class RestrictedAttention(nn.Module):
    """Attention to words at most `window` positions away (Wang et al. 2018, §3.3).

    The score for words i and j is w1·h_i + w2·h_j + w3·(h_i * h_j). As sentences are short, one masked product over all
    pairs is faster than gathering windows.
    """

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.query = nn.Linear(width, 1)
        self.key = nn.Linear(width, 1, bias=False)
        self.product_D = nn.Parameter(torch.empty(width).uniform_(-1, 1) / width**0.5)

    def forward(self, h_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Average the visible words per word, weighted by the softmax of the scores, float32 [B, T, D]."""
        # h_i * h_j · w3 for all pairs is one matrix product.
        scores_BTT = (h_BTD * self.product_D) @ h_BTD.transpose(1, 2)
        scores_BTT = scores_BTT + self.query(h_BTD) + self.key(h_BTD).transpose(1, 2)
        position_T = torch.arange(h_BTD.shape[1])
        near_TT = (position_T[:, None] - position_T).abs() <= self.window
        scores_BTT = scores_BTT.masked_fill(~(near_TT & mask_BT[:, None, :]), IMPOSSIBLE)
        return scores_BTT.softmax(dim=2) @ h_BTD


class HeadAttention(nn.Module):
    """Scores for all pairs of word and head (Dozat and Manning 2017)."""

    def __init__(self, in_width: int, width: int) -> None:
        super().__init__()
        self.dependent = nn.Linear(in_width, width)
        self.head = nn.Linear(in_width, width)
        self.bilinear_DD = nn.Parameter(torch.zeros(width, width))
        self.prior = nn.Linear(width, 1)
        self.root_D = nn.Parameter(torch.zeros(width))

    def forward(self, states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Score the heads per word, float32 [B, T, T + 1]. The last column is the root."""
        # Biaffine: a bilinear term for the pair, and a linear prior for the head.
        dependents_BTD = self.dependent(states_BTD).relu()
        heads_BTD = self.head(states_BTD).relu()
        n = len(heads_BTD)
        heads_BTD = torch.cat([heads_BTD, self.root_D.expand(n, 1, -1)], dim=1)
        scores_BTT = dependents_BTD @ self.bilinear_DD @ heads_BTD.transpose(1, 2) + self.prior(heads_BTD).mT
        open_BT = torch.cat([mask_BT, torch.ones(n, 1, dtype=torch.bool)], dim=1)
        return scores_BTT.masked_fill(~open_BT[:, None], IMPOSSIBLE)


class AuxiliaryHeads(nn.Module):
    """Auxiliary tasks: part of speech, relation, head, and opening phrase."""

    def __init__(self, lower_width: int, upper_width: int, *, head_width: int, vocabulary: WordVocabulary) -> None:
        super().__init__()
        self.pos = nn.Linear(lower_width, len(vocabulary.pos))
        self.relation = nn.Linear(upper_width, len(vocabulary.relations))
        self.opening = nn.Linear(upper_width, len(vocabulary.openings))
        self.head = HeadAttention(upper_width, head_width)


class LinearChainCrf(nn.Module):
    """Scores for label sequences: emissions, transitions, and first label (Lafferty et al. 2001)."""

    def __init__(self, n_labels: int) -> None:
        super().__init__()
        self.first_L = nn.Parameter(torch.zeros(n_labels))
        self.transitions_LL = nn.Parameter(torch.zeros(n_labels, n_labels))
        """Scores for transitions from label (row) to label (column)."""

    def log_likelihood(self, emissions_BTL: Tensor, labels_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the log probabilities of label sequences, float32 [B].

        The mask is true for words, at least one per sentence.
        """
        scores_BT = emissions_BTL.gather(2, labels_BT[..., None])[..., 0]
        moves_BT = self.transitions_LL[labels_BT[:, :-1], labels_BT[:, 1:]]
        score_B = self.first_L[labels_BT[:, 0]] + (scores_BT * mask_BT).sum(1) + (moves_BT * mask_BT[:, 1:]).sum(1)

        # The forward algorithm in log space, since products of probabilities would underflow in float32. After the end
        # of a sentence, the sums stay unchanged.
        alpha_BL = self.first_L + emissions_BTL[:, 0]
        for t in range(1, emissions_BTL.shape[1]):
            step_BL = torch.logsumexp(alpha_BL[:, :, None] + self.transitions_LL, dim=1) + emissions_BTL[:, t]
            alpha_BL = torch.where(mask_BT[:, t, None], step_BL, alpha_BL)
        return score_B - torch.logsumexp(alpha_BL, dim=1)

    def viterbi(self, emissions_BTL: Tensor, lengths_B: Tensor) -> Tensor:
        """Return the most probable label sequences, int64 [B, T], undefined beyond the end of a sentence."""
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
        # Backtracking starts at the last word of the sentence.
        ends_BL = torch.stack(finals, dim=1)[torch.arange(len(lengths_B)), last_B]
        label_B = ends_BL.argmax(dim=1)
        labels_BT = torch.zeros(emissions_BTL.shape[:2], dtype=torch.int64)
        labels_BT[:, -1] = label_B
        for t in range(n_words - 2, -1, -1):
            previous_B = before[t].gather(1, label_B[:, None])[:, 0]
            label_B = torch.where(last_B > t, previous_B, label_B)  # beyond the end, keep the last label
            labels_BT[:, t] = label_B
        return labels_BT


class SegmenterNetwork(nn.Module):
    """Words → BiLSTM → restricted attention → BiLSTM → CRF."""

    def __init__(self, settings: NetworkSettings, vocabulary: WordVocabulary) -> None:
        super().__init__()
        self.encoder = WordEncoder(settings, vocabulary)
        self.lower = BiLstm(self.encoder.width, settings.lower_width)
        self.attention = RestrictedAttention(self.lower.width, settings.attention_window)
        self.upper = BiLstm(2 * self.lower.width, settings.upper_width)
        self.output = nn.Linear(self.upper.width, 2)
        self.crf = LinearChainCrf(2)
        self.auxiliary = None  # without syntax in the training data
        if vocabulary.pos:
            self.auxiliary = AuxiliaryHeads(
                self.lower.width, self.upper.width, head_width=settings.head_width, vocabulary=vocabulary
            )
        self.dropout = LockedDropout(0.0)

    def states(self, encoded_BTD: Tensor, batch: SentenceBatch) -> States:
        """Run both BiLSTMs on encoded words."""
        x_BTD = self.dropout(encoded_BTD)
        lower_BTD = self.dropout(self.lower(x_BTD, batch.lengths_B))
        seen_BTD = self.attention(lower_BTD, batch.mask_BT)
        upper_BTD = self.upper(torch.cat([lower_BTD, seen_BTD], dim=2), batch.lengths_B)
        return States(lower_BTD, self.dropout(upper_BTD))

    def emissions(self, states: States) -> Tensor:
        """Score both labels per word, float32 [B, T, 2].

        The first word in a sentence always starts an EDU, and its label is always INSIDE.
        """
        scores_BTL = self.output(states.upper_BTD)
        closed_TL = torch.zeros(scores_BTL.shape[1:])
        closed_TL[0, START] = IMPOSSIBLE
        return scores_BTL + closed_TL
