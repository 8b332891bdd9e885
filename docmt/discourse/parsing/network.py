"""The parser network: an encoder for EDUs in their document, and two classifiers over EDU spans.

Shapes: E EDUs in a batch, W their words, D word state width, K queries, R encoded EDU width, H hidden width, Q states
or nodes to classify, L slots (EDU positions in a state), C classes, B documents, T maximum number of EDUs per document,
P comparison width, J slot columns (L × H), V structure width, M ensemble members.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from docmt.discourse.constituents import Node
from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits
from docmt.discourse.parsing.transitions import (
    FORMS,
    N_ACTIONS,
    N_NODE_STRUCTURES,
    N_STATE_STRUCTURES,
    Constituent,
    State,
    node_structure,
    state_structure,
)
from docmt.discourse.settings import NeuralSettings

SCORE_BOUND = 8.0
NO_EDU = -1


class SpanInputs(NamedTuple):
    """Classifier inputs for states or nodes."""

    n_slots: int
    pairs: tuple[tuple[int, int], ...]  # slots whose EDUs are compared
    n_structures: int  # classes of structures, see `transitions`


# Slots of a state: EDUs of the upper three spans S1, S2 and S3, the front Q1 of the queue, the last EDU in its
# sentence, and the EDU after this sentence.
S1_FIRST, S1_LAST, S1_NUCLEUS, S2_FIRST, S2_LAST, S2_NUCLEUS, S3_LAST, S3_NUCLEUS, Q1, Q1_END, Q1_NEXT = range(11)
N_STATE_SLOTS = 11
STATE_PAIRS = (
    (S2_NUCLEUS, S1_NUCLEUS),
    (S2_LAST, S1_FIRST),
    (S1_NUCLEUS, Q1),
    (S1_LAST, Q1),
    (S2_NUCLEUS, Q1),
    (S3_NUCLEUS, S2_NUCLEUS),
)
STATE_INPUTS = SpanInputs(N_STATE_SLOTS, STATE_PAIRS, N_STATE_STRUCTURES)
# Slots of a node: EDUs of its left and right child.
LEFT_FIRST, LEFT_LAST, LEFT_NUCLEUS, RIGHT_FIRST, RIGHT_LAST, RIGHT_NUCLEUS = range(6)
NODE_PAIRS = ((LEFT_NUCLEUS, RIGHT_NUCLEUS), (LEFT_LAST, RIGHT_FIRST), (LEFT_FIRST, RIGHT_FIRST))
NODE_INPUTS = SpanInputs(6, NODE_PAIRS, N_NODE_STRUCTURES)


def state_slots(units: DocumentUnits, state: State) -> list[int]:
    """Return the EDU in every slot of a state (missing: −1)."""
    slots = [NO_EDU] * N_STATE_SLOTS
    for first_slot, span in zip((S1_FIRST, S2_FIRST), state.stack[:-3:-1], strict=False):
        slots[first_slot : first_slot + 3] = span.first, span.last, span.nucleus
    if len(state.stack) > 2:
        slots[S3_LAST] = state.stack[-3].last
        slots[S3_NUCLEUS] = state.stack[-3].nucleus
    if state.next < state.n_edus:
        end = units.sentences.last[state.next]
        slots[Q1] = state.next
        slots[Q1_END] = end
        if end + 1 < state.n_edus:
            slots[Q1_NEXT] = end + 1
    return slots


def node_slots(node: Constituent) -> list[int]:
    """Return the EDU in every slot of a node."""
    slots = []
    for child in node.children:
        slots += (child.first, child.last, child.nucleus)
    return slots


@dataclass(frozen=True)
class EduInputs:
    """EDU words in one or more documents."""

    words_WD: Tensor  # float32, word states
    edu_W: Tensor  # int64, EDU per word, ascending
    edges_E3: Tensor  # int64, vocabulary numbers of the first, second and last word, 0 for unknown words
    n_edus: tuple[int, ...]  # number of EDUs per document, at least 1

    @classmethod
    def join(cls, parts: Sequence["EduInputs"]) -> "EduInputs":
        words = []
        edus = []
        edges = []
        n_edus: list[int] = []
        first_edu = 0
        for part in parts:
            words.append(part.words_WD)
            edus.append(part.edu_W + first_edu)
            edges.append(part.edges_E3)
            n_edus += part.n_edus
            first_edu += sum(part.n_edus)
        return cls(torch.cat(words), torch.cat(edus), torch.cat(edges), tuple(n_edus))


def edge_words(document: DiscourseDocument, edu: int) -> tuple[str, str, str]:
    """Return the first, second and last word in an EDU, lower-cased (missing: empty)."""
    words = list(map(str.lower, document.edu_words(edu)))
    if not words:
        return "", "", ""
    second = words[1] if len(words) > 1 else ""
    return words[0], second, words[-1]


def number_words(words: Sequence[str]) -> dict[str, int]:
    """Number words from 1. Number 0 is for unknown words."""
    return {word: number for number, word in enumerate(words, start=1)}


def edu_inputs(document: DiscourseDocument, states: Sequence[Tensor], numbers: Mapping[str, int]) -> EduInputs:
    """Return the network input for a document with EDUs.

    `states` are the word states per sentence, [words, D]. `numbers` is the vocabulary from `number_words`.
    """
    lengths = torch.tensor([edu.end - edu.start for edu in document.edus])
    edu_W = torch.arange(len(document.edus)).repeat_interleave(lengths)
    edges = []
    for edu in range(len(document.edus)):
        edges.append([numbers.get(word, 0) for word in edge_words(document, edu)])
    return EduInputs(torch.cat(list(states)).float(), edu_W, torch.tensor(edges), (len(document.edus),))


@dataclass(frozen=True)
class Decisions:
    """States or nodes with their gold classes."""

    slots_QL: np.ndarray  # int64, EDUs (missing: −1)
    structures_Q2: tuple[np.ndarray, np.ndarray]  # int64, classes of structures with and without paragraphs
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
    # With and without paragraphs, since training hides the paragraphs of random documents.
    units = DocumentUnits(document)
    hidden = DocumentUnits(replace(document, paragraphs=None))
    actions = []
    slots = []
    structures = []
    structures_if_hidden = []
    labels = []
    state = State(units.n_edus)
    for node in tree.postorder():
        slots.append(state_slots(units, state))
        structures.append(state_structure(units, state))
        structures_if_hidden.append(state_structure(hidden, state))
        actions.append(FORMS.index(node.nuclearity))
        state.apply(actions[-1])
        if not node.is_leaf:
            labels.append(relations.index(node.relation))
    steps = Decisions(np.array(slots), (np.array(structures), np.array(structures_if_hidden)), np.array(actions))
    structures = [node_structure(units, node) for node in state.nodes]
    structures_if_hidden = [node_structure(hidden, node) for node in state.nodes]
    nodes = Decisions(
        np.array(list(map(node_slots, state.nodes))),
        (np.array(structures), np.array(structures_if_hidden)),
        np.array(labels),
    )
    return ParserExample(edu_inputs(document, states, numbers), steps, nodes)


def collate(decisions: Sequence[Decisions], lengths: Sequence[int], hidden: Sequence[bool]) -> list[Tensor]:
    """Join decisions in several documents: slots_QL, structures_Q2 and documents_Q for `SpanClassifier`, and labels_Q.

    `lengths` are the numbers of EDUs per document. `hidden` is true for documents whose paragraphs are hidden.
    """
    slots = []
    structures = []
    numbers = []
    labels = []
    missing_edu = sum(lengths)
    first_edu = 0
    for number, (part, n_edus, is_hidden) in enumerate(zip(decisions, lengths, hidden, strict=True)):
        slots.append(np.where(part.slots_QL == NO_EDU, missing_edu, part.slots_QL + first_edu))
        structures.append(part.structures_Q2[int(is_hidden)])
        numbers.append(np.full(len(part.labels_Q), number))
        labels.append(part.labels_Q)
        first_edu += n_edus
    columns = (slots, structures, numbers, labels)
    return [torch.from_numpy(np.concatenate(column).astype(np.int64)) for column in columns]


class WordPooling(nn.Module):
    """EDU vectors from word states: first word, last word, mean, and means weighted by learned queries."""

    def __init__(self, width: int, n_queries: int) -> None:
        super().__init__()
        self.queries = nn.Linear(width, n_queries)
        self.width = (3 + n_queries) * width

    def forward(self, inputs: EduInputs) -> Tensor:
        """Pool words, float32 [E, (3 + K) · D], with zeros for EDUs without words."""
        words_WD = inputs.words_WD
        edu_W = inputs.edu_W
        zeros_ED = torch.zeros(sum(inputs.n_edus), words_WD.shape[1])
        # A softmax over the words in an EDU. Scores are bounded, so that the exponential cannot overflow without
        # subtracting the maximum. The first column of ones gives the plain mean.
        weights_WK = torch.exp(SCORE_BOUND * torch.tanh(self.queries(words_WD) / SCORE_BOUND))
        weights_WK = torch.cat([torch.ones(len(edu_W), 1), weights_WK], dim=1)
        totals_EK = torch.zeros(len(zeros_ED), weights_WK.shape[1]).index_add(0, edu_W, weights_WK)
        weights_WK = weights_WK / totals_EK[edu_W]
        means = []
        for weight_W1 in weights_WK.split(1, 1):
            means.append(zeros_ED.index_add(0, edu_W, words_WD * weight_W1))
        is_first_W = torch.ones(len(edu_W), dtype=torch.bool)
        is_first_W[1:] = edu_W[1:] != edu_W[:-1]
        is_last_W = is_first_W.roll(-1)
        first_ED = zeros_ED.index_copy(0, edu_W[is_first_W], words_WD[is_first_W])
        last_ED = zeros_ED.index_copy(0, edu_W[is_last_W], words_WD[is_last_W])
        return torch.cat([first_ED, last_ED, *means], dim=1)


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
    """Scores for states or nodes, from the EDUs in their slots and the class of their structure.

    The contribution of a slot is a linear map of its EDU. It is computed once per EDU and slot (`cache`), so that a
    state only sums rows. Some pairs of slots are compared by the product of two further maps.
    """

    def __init__(
        self, width: int, inputs: SpanInputs, settings: NeuralSettings, *, n_classes: int, dropout: float
    ) -> None:
        super().__init__()
        n_slots, pairs, n_structures = inputs
        self.n_slots = n_slots
        self.slots = nn.Linear(width, n_slots * settings.hidden_width)
        self.document = nn.Linear(width, settings.hidden_width)
        self.lefts = [left for left, _ in pairs]
        self.rights = [right for _, right in pairs]
        self.sides = nn.Linear(width, 2 * settings.pair_width)
        self.compare = nn.Linear(len(pairs) * settings.pair_width, settings.hidden_width, bias=False)
        self.structures = nn.Embedding(n_structures, settings.structure_width)
        self.widen = nn.Linear(settings.structure_width, settings.hidden_width, bias=False)
        self.norm = nn.LayerNorm(settings.hidden_width)
        self.drop = nn.Dropout(dropout)
        self.hidden = nn.Linear(settings.hidden_width, settings.hidden_width)
        self.out = nn.Linear(settings.hidden_width, n_classes)
        nn.init.normal_(self.structures.weight, std=0.05)

    def cache(self, edus_ER: Tensor, lengths: Sequence[int]) -> ClassifierCache:
        """Return the contributions of EDUs and documents."""
        # The last row is 0, for slots without an EDU, so that sums and products need no mask.
        slots_EJ = functional.pad(self.slots(edus_ER), (0, 0, 0, 1))
        means_BR = torch.stack([part.mean(0) for part in edus_ER.split(list(lengths))])
        left_EP, right_EP = functional.pad(self.sides(edus_ER), (0, 0, 0, 1)).chunk(2, dim=1)
        rows = slots_EJ.view(slots_EJ.shape[0] * self.n_slots, -1)
        return ClassifierCache(rows, left_EP, right_EP, self.document(means_BR))

    def forward(self, cache: ClassifierCache, slots_QL: Tensor, structures_Q2: Tensor, documents_Q: Tensor) -> Tensor:
        """Return class scores [Q, C] from slots (missing EDU: E), structures and document numbers."""
        spans_QH = functional.embedding_bag(self.slot_rows(slots_QL), cache.slots, mode="sum")
        pairs_QP = cache.left_EP[slots_QL[:, self.lefts]] * cache.right_EP[slots_QL[:, self.rights]]
        spans_QH = spans_QH + self.compare(pairs_QP.flatten(1))
        structures_QV = self.structures(structures_Q2).sum(1)
        hidden_QH = spans_QH + self.widen(structures_QV) + cache.documents_BH[documents_Q]
        hidden_QH = self.drop(torch.relu(self.norm(hidden_QH)))
        return self.out(self.drop(torch.relu(self.hidden(hidden_QH))))

    def slot_rows(self, slots_QL: Tensor) -> Tensor:
        """Return the cache rows for EDUs in slots."""
        return slots_QL * self.n_slots + torch.arange(self.n_slots)


class ParserNetwork(nn.Module):
    """An ensemble member: encoder, action classifier, relation classifier."""

    def __init__(self, state_width: int, n_words: int, n_relations: int, settings: NeuralSettings) -> None:
        super().__init__()
        self.encoder = EduEncoder(state_width, n_words, settings)
        width = self.encoder.width
        self.actions = SpanClassifier(
            width, STATE_INPUTS, settings, n_classes=N_ACTIONS, dropout=settings.hidden_dropout
        )
        self.relations = SpanClassifier(
            width, NODE_INPUTS, settings, n_classes=n_relations, dropout=settings.relation_dropout
        )


class EnsembleClassifier:
    """The classifiers of all members, computed together.

    Greedy parsing calls it once per step with few rows, so that speed depends on the number of operations. Therefore,
    the weights of all members are stacked, and `baddbmm` computes a layer for all members.
    """

    def __init__(self, members: Sequence[SpanClassifier]) -> None:
        first = members[0]
        self.members = members
        self.n_members = len(members)
        self.epsilon = first.norm.eps
        self.slot_rows = first.slot_rows
        self.lefts = first.lefts
        self.rights = first.rights
        with torch.no_grad():
            self._structures = torch.cat([member.widen(member.structures.weight) for member in members], dim=1)
            self._compare_MPH = torch.stack([member.compare.weight.T for member in members])
            self._scale_M1H = torch.stack([member.norm.weight for member in members])[:, None]
            self._shift_M1H = torch.stack([member.norm.bias for member in members])[:, None]
            self._hidden_MHH = torch.stack([member.hidden.weight.T for member in members])
            self._hidden_bias_M1H = torch.stack([member.hidden.bias for member in members])[:, None]
            self._out_MHC = torch.stack([member.out.weight.T for member in members])
            self._out_bias_M1C = torch.stack([member.out.bias for member in members])[:, None]

    def cache(self, encoded: Sequence[Tensor], lengths: Sequence[int]) -> ClassifierCache:
        """Concatenate the caches of all members in the last dimension, from their encoded EDUs."""
        caches = []
        for member, edus_ER in zip(self.members, encoded, strict=True):
            caches.append(member.cache(edus_ER, lengths))
        slots, lefts, rights, documents = zip(*caches, strict=True)
        return ClassifierCache(
            torch.cat(slots, dim=1), torch.cat(lefts, dim=1), torch.cat(rights, dim=1), torch.cat(documents, dim=1)
        )

    def log_probabilities(
        self, cache: ClassifierCache, slots_QL: Tensor, structures_Q2: Tensor, documents_Q: Tensor
    ) -> Tensor:
        """Return the mean log probabilities of all members, [Q, C]. Arguments as in `SpanClassifier`."""
        sums = functional.embedding_bag(self.slot_rows(slots_QL), cache.slots, mode="sum")
        sums = sums + self._structures[structures_Q2].sum(1) + cache.documents_BH[documents_Q]
        hidden_MQH = sums.unflatten(1, (self.n_members, -1)).transpose(0, 1)
        pairs = cache.left_EP[slots_QL[:, self.lefts]] * cache.right_EP[slots_QL[:, self.rights]]
        pairs_MQP = pairs.unflatten(2, (self.n_members, -1)).permute(2, 0, 1, 3).flatten(2)
        hidden_MQH = torch.baddbmm(hidden_MQH, pairs_MQP, self._compare_MPH)
        hidden_MQH = functional.layer_norm(hidden_MQH, hidden_MQH.shape[2:], eps=self.epsilon)
        hidden_MQH = torch.relu(hidden_MQH * self._scale_M1H + self._shift_M1H)
        hidden_MQH = torch.relu(torch.baddbmm(self._hidden_bias_M1H, hidden_MQH, self._hidden_MHH))
        return torch.baddbmm(self._out_bias_M1C, hidden_MQH, self._out_MHC).log_softmax(-1).mean(0)


class Ensemble:
    """Networks with equal shapes, whose log probabilities are averaged."""

    def __init__(self, networks: Sequence[ParserNetwork]) -> None:
        self.networks = tuple(networks)
        self.actions = EnsembleClassifier([network.actions for network in networks])
        self.relations = EnsembleClassifier([network.relations for network in networks])

    def encode(self, inputs: EduInputs) -> list[Tensor]:
        return [network.encoder(inputs) for network in self.networks]
