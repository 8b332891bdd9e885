"""The parser network: an encoder for EDUs in their document, and two classifiers over EDU spans.

Shapes: E EDUs in a batch, W their words, D word state width, K queries, R encoded EDU width, H hidden width, Q states
or nodes to classify, L slots (EDU positions in a state), F features, C classes, B documents, T maximum number of EDUs
per document, P comparison width, J slot columns (L × H), I feature rows of a state or node, V feature width,
M ensemble members.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from docmt.discourse.constituents import Node
from docmt.discourse.discourse_documents import N_LEVELS, DiscourseDocument
from docmt.discourse.parsing.transitions import (
    FORMS,
    N_ACTIONS,
    NODE_TEMPLATES,
    STATE_TEMPLATES,
    Constituent,
    DocumentProfile,
    State,
    node_features,
    state_features,
)
from docmt.discourse.settings import NeuralSettings

SCORE_BOUND = 8.0
NO_EDU = -1


class SpanInputs(NamedTuple):
    """Classifier inputs for states or nodes."""

    n_slots: int
    pairs: tuple[tuple[int, int], ...]  # slots whose EDUs are compared
    templates: tuple[tuple[str, int], ...]  # names and sizes of structural features
    n_gates: int  # number of final templates (boundary levels) with which all features are conjoined


# Pairs in a state: nuclei of S2 and S1, neighbors at their boundary, S1 and Q1 (twice), S2 and Q1, S3 and S2.
STATE_INPUTS = SpanInputs(11, ((5, 2), (4, 0), (2, 8), (1, 8), (5, 8), (7, 5)), STATE_TEMPLATES, 2)
# Pairs in a node: nuclei, neighbors at the boundary, first EDUs of the children.
NODE_INPUTS = SpanInputs(6, ((2, 5), (1, 3), (0, 3)), NODE_TEMPLATES, 1)


def state_slots(profile: DocumentProfile, state: State) -> list[int]:
    """Return the EDUs that represent a state (missing: −1).

    They are the first, last and nucleus EDU of the upper two spans, the last and nucleus EDU of the third span, the
    front EDU in the queue, the last EDU in its sentence, and the next EDU.
    """
    slots = [NO_EDU] * 11
    for first_slot, span in zip((0, 3), state.stack[:-3:-1], strict=False):
        slots[first_slot : first_slot + 3] = span.first, span.last, span.nucleus
    if len(state.stack) > 2:
        slots[6:8] = state.stack[-3].last, state.stack[-3].nucleus
    if state.next < state.n_edus:
        end = profile.units.sentences.last[state.next]
        slots[8:10] = state.next, end
        if end + 1 < state.n_edus:
            slots[10] = end + 1
    return slots


def node_slots(node: Constituent) -> list[int]:
    """Return the EDUs that represent a node: first, last and nucleus EDU of both children."""
    return [edu for child in node.children for edu in (child.first, child.last, child.nucleus)]


@dataclass(frozen=True)
class EduInputs:
    """EDU words in one or more documents."""

    words_WD: Tensor  # float32, word states
    edu_W: Tensor  # int64, EDU per word, ascending
    edges_E3: Tensor  # int64, vocabulary numbers of the first, second and last word, 0 for unknown words
    n_edus: tuple[int, ...]  # number of EDUs per document, at least 1

    @classmethod
    def join(cls, parts: Sequence["EduInputs"]) -> "EduInputs":
        lengths = [sum(part.n_edus) for part in parts]
        offsets = itertools.accumulate(lengths[:-1], initial=0)
        return cls(
            torch.cat([part.words_WD for part in parts]),
            torch.cat([part.edu_W + offset for part, offset in zip(parts, offsets, strict=True)]),
            torch.cat([part.edges_E3 for part in parts]),
            tuple(length for part in parts for length in part.n_edus),
        )


def edge_words(document: DiscourseDocument, edu: int) -> tuple[str, str, str]:
    """Return the first, second and last word in an EDU, lower-cased (missing: empty)."""
    words = [word.lower() for word in document.edu_words(edu)]
    return words[0] if words else "", words[1] if len(words) > 1 else "", words[-1] if words else ""


def number_words(words: Sequence[str]) -> dict[str, int]:
    """Number words from 1. Number 0 is for unknown words."""
    return {word: number for number, word in enumerate(words, start=1)}


def edu_inputs(document: DiscourseDocument, states: Sequence[Tensor], numbers: Mapping[str, int]) -> EduInputs:
    """Return the network input for a document with EDUs.

    `states` are the word states per sentence, [words, D]. `numbers` is the vocabulary from `number_words`.
    """
    lengths = torch.tensor([edu.end - edu.start for edu in document.edus])
    edu_W = torch.arange(len(document.edus)).repeat_interleave(lengths)
    edges = [[numbers.get(word, 0) for word in edge_words(document, edu)] for edu in range(len(document.edus))]
    return EduInputs(torch.cat(list(states)).float(), edu_W, torch.tensor(edges), (len(document.edus),))


@dataclass(frozen=True)
class Decisions:
    """States or nodes with their gold classes."""

    slots_QL: np.ndarray  # int64, EDUs (missing: −1)
    values_QF: tuple[np.ndarray, np.ndarray]  # int16, structural values with and without paragraphs
    labels_Q: np.ndarray  # int64, gold classes


@dataclass(frozen=True)
class ParserExample:
    """A training document: words, oracle states, and internal nodes of the tree."""

    inputs: EduInputs
    steps: Decisions
    nodes: Decisions


def make_example(
    document: DiscourseDocument,
    tree: Node,
    states: Sequence[Tensor],
    *,
    relations: Sequence[str],
    numbers: Mapping[str, int],
) -> ParserExample:
    """Replay the oracle on a document with at least two EDUs and a binary tree with coarse `relations`.

    `states` and `numbers` are the arguments of `edu_inputs`.
    """
    # Structural values with and without paragraphs, since training hides the paragraphs of random documents.
    actions = [FORMS.index(node.nuclearity) for node in tree.postorder()]
    names = [node.relation for node in tree.postorder() if not node.is_leaf]
    step_values, node_values, slots, slots_of_nodes = [], [], [], []
    for variant in (document, replace(document, paragraphs=None)):
        profile, state = DocumentProfile(variant), State(len(document.edus))
        rows, slots = [], []
        for action in actions:
            rows.append(state_features(profile, state))
            slots.append(state_slots(profile, state))
            state.apply(action)
        step_values.append(np.array(rows, dtype=np.int16))
        node_values.append(np.array(node_features(profile, state.nodes), dtype=np.int16))
        slots_of_nodes = list(map(node_slots, state.nodes))
    labels = [relations.index(name) for name in names]
    return ParserExample(
        edu_inputs(document, states, numbers),
        Decisions(np.array(slots), (step_values[0], step_values[1]), np.array(actions)),
        Decisions(np.array(slots_of_nodes), (node_values[0], node_values[1]), np.array(labels)),
    )


def collate(decisions: Sequence[Decisions], lengths: Sequence[int], hidden: Sequence[bool]) -> list[Tensor]:
    """Join the decisions in several documents: slots_QL, values_QF and documents_Q for `SpanClassifier`, and labels_Q.

    `lengths` are the numbers of EDUs per document. `hidden` is true for documents whose paragraphs are hidden.
    """
    offsets = np.cumsum([0, *lengths])
    slots = [
        np.where(part.slots_QL == NO_EDU, offsets[-1], part.slots_QL + offset)
        for part, offset in zip(decisions, offsets[:-1], strict=True)
    ]
    values = [part.values_QF[int(hide)] for part, hide in zip(decisions, hidden, strict=True)]
    numbers = [np.full(len(part.labels_Q), number) for number, part in enumerate(decisions)]
    columns = (slots, values, numbers, [part.labels_Q for part in decisions])
    return [torch.from_numpy(np.concatenate(parts).astype(np.int64)) for parts in columns]


class WordPooling(nn.Module):
    """EDU vectors from word states: first word, last word, mean, and means weighted by learned queries."""

    def __init__(self, width: int, n_queries: int) -> None:
        super().__init__()
        self.queries = nn.Linear(width, n_queries)
        self.width = (3 + n_queries) * width

    def forward(self, inputs: EduInputs) -> Tensor:
        """Pool words, float32 [E, (3 + K) · D], with zeros for EDUs without words."""
        words_WD, edu_W = inputs.words_WD, inputs.edu_W
        n_edus, width = sum(inputs.n_edus), words_WD.shape[1]
        # A softmax over the words in an EDU. Scores are bounded, so that the exponential cannot overflow without
        # subtracting the maximum. The first column of ones gives the plain mean.
        weights_WK = torch.exp(SCORE_BOUND * torch.tanh(self.queries(words_WD) / SCORE_BOUND))
        weights_WK = torch.cat([torch.ones(len(edu_W), 1), weights_WK], dim=1)
        totals_EK = torch.zeros(n_edus, weights_WK.shape[1]).index_add(0, edu_W, weights_WK)
        weights_WK = weights_WK / totals_EK[edu_W]
        means = [
            torch.zeros(n_edus, width).index_add(0, edu_W, words_WD * weight_W1) for weight_W1 in weights_WK.split(1, 1)
        ]
        is_first_W = torch.ones(len(edu_W), dtype=torch.bool)
        is_first_W[1:] = edu_W[1:] != edu_W[:-1]
        is_last_W = is_first_W.roll(-1)
        edges = [torch.zeros(n_edus, width).index_copy(0, edu_W[at], words_WD[at]) for at in (is_first_W, is_last_W)]
        return torch.cat([*edges, *means], dim=1)


class EduEncoder(nn.Module):
    """EDU vectors: projected word states and edge word embeddings, and a BiLSTM over the EDUs in the document."""

    def __init__(self, width: int, n_words: int, settings: NeuralSettings) -> None:
        super().__init__()
        self.pool = WordPooling(width, settings.queries)
        self.words = nn.Embedding(1 + n_words, settings.word_width)
        self.word_dropout = settings.word_dropout
        self.drop_input = nn.Dropout(settings.input_dropout)
        self.project = nn.Linear(self.pool.width + 3 * settings.word_width, settings.edu_width)
        self.recurrent = nn.LSTM(settings.edu_width, settings.document_width, bidirectional=True, batch_first=True)
        self.drop_output = nn.Dropout(settings.hidden_dropout)
        self.width = settings.edu_width + 2 * settings.document_width

    def forward(self, inputs: EduInputs) -> Tensor:
        """Encode EDUs, [E, R]."""
        lengths = inputs.n_edus
        edges_E3 = inputs.edges_E3
        if self.training and self.word_dropout:
            # Number 0 is for unknown words.
            edges_E3 = edges_E3 * torch.empty(edges_E3.shape).bernoulli_(1 - self.word_dropout).long()
        vectors = torch.cat([self.pool(inputs), self.words(edges_E3).flatten(1)], dim=1)
        edus_ER = torch.tanh(self.project(self.drop_input(vectors)))
        # Packed, so that the backward LSTM starts at the last EDU in the document and not in the padding.
        padded_BTR = pad_sequence(list(edus_ER.split(list(lengths))), batch_first=True)
        packed = pack_padded_sequence(padded_BTR, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
        context_BTR, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        context_ER = torch.cat([context_BTR[i, :length] for i, length in enumerate(lengths)])
        return self.drop_output(torch.cat([edus_ER, context_ER], dim=-1))


class ClassifierCache(NamedTuple):
    """Classifier values computed once per document."""

    slots: Tensor  # [(E + 1) · L, H], contribution per EDU and slot; the last L rows (missing EDU) are 0
    left_EP: Tensor  # [E + 1, P], both sides of comparisons; the last row is 0
    right_EP: Tensor
    documents_BH: Tensor  # contribution per document


class SpanClassifier(nn.Module):
    """Scores for states or nodes, from the EDUs in their slots and from structural features.

    The contribution of a slot is a linear map of its EDU. It is computed once per EDU and slot (`cache`), so that a
    state only sums rows. Some pairs of slots are compared by the product of two further maps.
    """

    offsets_F: Tensor

    def __init__(
        self, width: int, inputs: SpanInputs, settings: NeuralSettings, *, n_classes: int, dropout: tuple[float, float]
    ) -> None:
        super().__init__()
        n_slots, pairs, templates, n_gates = inputs
        sizes = torch.tensor([size for _, size in templates])
        self.total, self.n_gates, self.n_slots = int(sizes.sum()), n_gates, n_slots
        self.register_buffer("offsets_F", sizes.cumsum(0) - sizes, persistent=False)
        self.slots = nn.Linear(width, n_slots * settings.hidden_width)
        self.document = nn.Linear(width, settings.hidden_width)
        self.lefts, self.rights = [left for left, _ in pairs], [right for _, right in pairs]
        self.sides = nn.Linear(width, 2 * settings.pair_width)
        self.compare = nn.Linear(len(pairs) * settings.pair_width, settings.hidden_width, bias=False)
        self.features = nn.Parameter(torch.empty(self.total * (1 + n_gates * N_LEVELS), settings.feature_width))
        self.widen = nn.Linear(settings.feature_width, settings.hidden_width, bias=False)
        self.norm = nn.LayerNorm(settings.hidden_width)
        self.drop, self.feature_dropout = nn.Dropout(dropout[0]), dropout[1]
        self.hidden = nn.Linear(settings.hidden_width, settings.hidden_width)
        self.out = nn.Linear(settings.hidden_width, n_classes)
        nn.init.normal_(self.features, std=0.05)

    def cache(self, edus_ER: Tensor, lengths: Sequence[int]) -> ClassifierCache:
        """Return the contributions of EDUs and documents."""
        # The last row is 0, for slots without an EDU, so that sums and products need no mask.
        slots_EJ = functional.pad(self.slots(edus_ER), (0, 0, 0, 1))
        means_BR = torch.stack([part.mean(0) for part in edus_ER.split(list(lengths))])
        left_EP, right_EP = functional.pad(self.sides(edus_ER), (0, 0, 0, 1)).chunk(2, dim=1)
        rows = slots_EJ.view(slots_EJ.shape[0] * self.n_slots, -1)
        return ClassifierCache(rows, left_EP, right_EP, self.document(means_BR))

    def forward(self, cache: ClassifierCache, slots_QL: Tensor, values_QF: Tensor, documents_Q: Tensor) -> Tensor:
        """Return class scores [Q, C] from slots (missing EDU: E), template values and document numbers."""
        spans_QH = functional.embedding_bag(self.slot_rows(slots_QL), cache.slots, mode="sum")
        pairs_QP = cache.left_EP[slots_QL[:, self.lefts]] * cache.right_EP[slots_QL[:, self.rights]]
        spans_QH = spans_QH + self.compare(pairs_QP.flatten(1))
        rows_QI, weights_QI = self.feature_rows(values_QF), None
        if self.training and self.feature_dropout:
            keep = 1 - self.feature_dropout
            weights_QI = torch.empty(rows_QI.shape).bernoulli_(keep) / keep
        features = functional.embedding_bag(rows_QI, self.features, mode="sum", per_sample_weights=weights_QI)
        hidden_QH = spans_QH + self.widen(features) + cache.documents_BH[documents_Q]
        hidden_QH = self.drop(torch.relu(self.norm(hidden_QH)))
        return self.out(self.drop(torch.relu(self.hidden(hidden_QH))))

    def slot_rows(self, slots_QL: Tensor) -> Tensor:
        """Return the cache rows for EDUs in slots."""
        return slots_QL * self.n_slots + torch.arange(self.n_slots)

    def feature_rows(self, values_QF: Tensor) -> Tensor:
        """Return feature table rows, [Q, F · (1 + gates)]: every feature by itself, then combined with each gate."""
        plain_QF = values_QF + self.offsets_F
        rows = [plain_QF]
        for gate in range(self.n_gates):
            levels_Q1 = values_QF[:, -1 - gate :][:, :1]  # column −1 − gate, kept as a column
            rows.append(plain_QF + self.total * (1 + gate * N_LEVELS + levels_Q1))
        return torch.cat(rows, dim=1)


class ParserNetwork(nn.Module):
    """An ensemble member: encoder, action classifier, relation classifier."""

    def __init__(self, state_width: int, n_words: int, n_relations: int, settings: NeuralSettings) -> None:
        super().__init__()
        self.encoder = EduEncoder(state_width, n_words, settings)
        width = self.encoder.width
        dropout = settings.hidden_dropout, settings.feature_dropout
        self.actions = SpanClassifier(width, STATE_INPUTS, settings, n_classes=N_ACTIONS, dropout=dropout)
        dropout = settings.relation_dropout, settings.relation_feature_dropout
        self.relations = SpanClassifier(width, NODE_INPUTS, settings, n_classes=n_relations, dropout=dropout)


class EnsembleClassifier:
    """The classifiers of all members, computed together.

    Greedy parsing calls it once per step with few rows, so that speed depends on the number of operations. Therefore,
    the weights of all members are stacked, and `baddbmm` computes a layer for all members.
    """

    def __init__(self, members: Sequence[SpanClassifier]) -> None:
        self.members, first = members, members[0]
        self.n_members, self.epsilon = len(members), first.norm.eps
        self.slot_rows, self.feature_rows = first.slot_rows, first.feature_rows
        self.lefts, self.rights = first.lefts, first.rights
        with torch.no_grad():
            self._features = torch.cat([member.features for member in members], dim=1)
            self._widen_MVH, self._compare_MPH, self._hidden_MHH, self._out_MHC = (
                torch.stack([getattr(member, name).weight.T for member in members])
                for name in ("widen", "compare", "hidden", "out")
            )
            self._shift_M1H, self._hidden_bias_M1H, self._out_bias_M1C = (
                torch.stack([getattr(member, name).bias for member in members])[:, None]
                for name in ("norm", "hidden", "out")
            )
            self._scale_M1H = torch.stack([member.norm.weight for member in members])[:, None]

    def cache(self, encoded: Sequence[Tensor], lengths: Sequence[int]) -> ClassifierCache:
        """Concatenate the caches of all members in the last dimension, from their encoded EDUs."""
        caches = [member.cache(edus_ER, lengths) for member, edus_ER in zip(self.members, encoded, strict=True)]
        return ClassifierCache(*(torch.cat(parts, dim=1) for parts in zip(*caches, strict=True)))

    def log_probabilities(
        self, cache: ClassifierCache, slots_QL: Tensor, values_QF: Tensor, documents_Q: Tensor
    ) -> Tensor:
        """Return the mean log probabilities of all members, [Q, C]. Arguments as in `SpanClassifier`."""
        sums = functional.embedding_bag(self.slot_rows(slots_QL), cache.slots, mode="sum")
        hidden_MQH = self._by_member(sums + cache.documents_BH[documents_Q])
        features = functional.embedding_bag(self.feature_rows(values_QF), self._features, mode="sum")
        hidden_MQH = torch.baddbmm(hidden_MQH, self._by_member(features), self._widen_MVH)
        pairs = cache.left_EP[slots_QL[:, self.lefts]] * cache.right_EP[slots_QL[:, self.rights]]
        pairs_MQP = pairs.unflatten(2, (self.n_members, -1)).permute(2, 0, 1, 3).flatten(2)
        hidden_MQH = torch.baddbmm(hidden_MQH, pairs_MQP, self._compare_MPH)
        hidden_MQH = functional.layer_norm(hidden_MQH, hidden_MQH.shape[2:], eps=self.epsilon)
        hidden_MQH = torch.relu(hidden_MQH * self._scale_M1H + self._shift_M1H)
        hidden_MQH = torch.relu(torch.baddbmm(self._hidden_bias_M1H, hidden_MQH, self._hidden_MHH))
        return torch.baddbmm(self._out_bias_M1C, hidden_MQH, self._out_MHC).log_softmax(-1).mean(0)

    def _by_member(self, side_by_side: Tensor) -> Tensor:
        return side_by_side.unflatten(1, (self.n_members, -1)).transpose(0, 1)


class Ensemble:
    """Networks with equal shapes, whose log probabilities are averaged."""

    def __init__(self, networks: Sequence[ParserNetwork]) -> None:
        self.networks = tuple(networks)
        self.actions = EnsembleClassifier([network.actions for network in networks])
        self.relations = EnsembleClassifier([network.relations for network in networks])

    def encode(self, inputs: EduInputs) -> list[Tensor]:
        return [network.encoder(inputs) for network in self.networks]
