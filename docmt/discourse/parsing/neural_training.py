"""Training of the neural parser: examples from gold trees, and the networks of the ensemble.

Shapes: Q states or nodes, L slots, F features.
"""

import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from docmt.discourse.constituents import Node
from docmt.discourse.documents import DiscourseDocument, sentences_of
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.neural_network import EduInputs, Ensemble, ParserNetwork
from docmt.discourse.parsing.neural_parser import (
    NO_EDU,
    NeuralParser,
    edge_words,
    edu_inputs,
    merge_slots,
    number_words,
    state_slots,
    word_states,
)
from docmt.discourse.parsing.settings import NeuralSettings, ParserSettings
from docmt.discourse.parsing.structural_features import merge_values, state_values
from docmt.discourse.parsing.transitions import FORMS, State
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.discourse.segmentation.training import adam, averaged

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decisions:
    """States or nodes with their gold classes."""

    slots_QL: np.ndarray  # int64, EDUs of the document; −1 for none
    values_QF: tuple[np.ndarray, np.ndarray]  # int16, structural values; one array with paragraphs and one without
    labels_Q: np.ndarray  # int64, the gold classes


@dataclass(frozen=True)
class ParserExample:
    """A training document: its words, the states on the way to its tree, and the internal nodes of the tree."""

    inputs: EduInputs
    steps: Decisions
    nodes: Decisions


def train_neural(
    documents: Sequence[DiscourseDocument],
    trees: Sequence[Node],
    segmenter: Segmenter,
    settings: ParserSettings,
    *,
    relations: Sequence[str],
    seed: int,
) -> NeuralParser:
    """Train all networks on documents with at least one EDU each and their binary trees of coarse `relations`."""
    counts: Counter[str] = Counter()  # of words at the edges of EDUs
    for document in documents:
        for edu in range(len(document.edus)):
            counts.update(edge_words(document, edu))
    words = tuple(sorted(word for word, count in counts.items() if word and count >= settings.neural.min_word_count))
    reads_lower = settings.neural.layers == "both"
    readings = segmenter.read(sentences_of(documents))
    states = word_states(readings, documents, reads_lower=reads_lower)
    examples = [
        make_example(document, tree, word_vectors, relations=relations, numbers=number_words(words))
        for document, tree, word_vectors in zip(documents, trees, states, strict=True)
        if not tree.is_leaf
    ]
    sizes = {"n_words": len(words), "n_relations": len(relations)}
    networks = [
        train_member(examples, **sizes, settings=settings.neural, seed=1000 * seed + member)
        for member in range(settings.neural.members)
    ]
    return NeuralParser(
        Ensemble(networks),
        relations,
        words,
        segmenter,
        reads_lower=reads_lower,
        sentence_constraint=settings.sentence_constraint,
        paragraph_constraint=settings.paragraph_constraint,
    )


def train_member(
    examples: Sequence[ParserExample], *, n_words: int, n_relations: int, settings: NeuralSettings, seed: int
) -> ParserNetwork:
    """Train one network on examples of at least two EDUs each, and return it with the averaged weights.

    The seed decides the initial weights, the order of documents, hidden paragraphs and the dropout.
    """
    chance = random.Random(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ParserNetwork(examples[0].inputs.words_WD.shape[1], n_words, n_relations, settings).train()
        average = averaged(network, settings.average_decay, head_start=0)
        optimizer = adam(network, settings.learning_rate, settings.weight_decay)
        n_updates = settings.epochs * -(-len(examples) // settings.documents_per_batch)
        n_warmup = max(1, n_updates // 20)
        update = 0
        for epoch in range(1, settings.epochs + 1):
            order = list(range(len(examples)))
            chance.shuffle(order)
            total = 0.0
            for start in range(0, len(order), settings.documents_per_batch):
                chosen = [examples[number] for number in order[start : start + settings.documents_per_batch]]
                hidden = [chance.random() < settings.paragraph_dropout for _ in chosen]
                # A short warm-up, then linear decay to 0.
                share = min((update + 1) / n_warmup, (n_updates - update) / max(1, n_updates - n_warmup))
                optimizer.param_groups[0]["lr"] = settings.learning_rate * share
                loss = total_loss(network, chosen, hidden, settings.label_smoothing)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                update += 1
                average.update_parameters(network)
                total += loss.item()
            log.info("parser, seed %d: epoch %d of %d, loss %.1f", seed, epoch, settings.epochs, total)
    return cast(ParserNetwork, average.module)  # AveragedModel is not generic


def total_loss(
    network: ParserNetwork, chosen: Sequence[ParserExample], hidden: Sequence[bool], smoothing: float
) -> Tensor:
    """Mean cross-entropy of actions plus mean cross-entropy of relations (a scalar)."""
    inputs = EduInputs.join([example.inputs for example in chosen])
    edus_ER = network.encoder(inputs)
    loss = torch.zeros(())
    for classifier, parts in (
        (network.actions, [example.steps for example in chosen]),
        (network.relations, [example.nodes for example in chosen]),
    ):
        *arguments, labels_Q = collate(parts, inputs.n_edus, hidden)
        scores_QC = classifier(classifier.cache(edus_ER, inputs.n_edus), *arguments)
        loss = loss + functional.cross_entropy(scores_QC, labels_Q, label_smoothing=smoothing)
    return loss


def make_example(
    document: DiscourseDocument,
    tree: Node,
    states: Sequence[Tensor],
    *,
    relations: Sequence[str],
    numbers: Mapping[str, int],
) -> ParserExample:
    """Replay the oracle on a document with at least two EDUs and its binary tree of coarse `relations`.

    The word states and numbers are as for `edu_inputs`.
    """
    # Structural values with and without paragraphs, since each epoch hides the paragraphs of other documents.
    actions = [FORMS.index(node.nuclearity) for node in tree.postorder()]
    names = [node.relation for node in tree.postorder() if not node.is_leaf]
    step_values, node_values, slots, node_slots = [], [], [], []
    for variant in (document, replace(document, paragraphs=None)):
        profile, state = DocumentProfile(variant), State(len(document.edus))
        rows, slots = [], []
        for action in actions:
            rows.append(state_values(profile, state))
            slots.append(state_slots(profile, state))
            state.apply(action)
        step_values.append(np.array(rows, dtype=np.int16))
        node_values.append(np.array(merge_values(profile, state.nodes), dtype=np.int16))
        node_slots = list(map(merge_slots, state.nodes))
    labels = [relations.index(name) for name in names]
    return ParserExample(
        edu_inputs(document, states, numbers),
        Decisions(np.array(slots), (step_values[0], step_values[1]), np.array(actions)),
        Decisions(np.array(node_slots), (node_values[0], node_values[1]), np.array(labels)),
    )


def collate(decisions: Sequence[Decisions], lengths: Sequence[int], hidden: Sequence[bool]) -> list[Tensor]:
    """Join the decisions of several documents: slots_QL, values_QF and documents_Q of `SpanClassifier`, and labels_Q.

    `lengths` are the numbers of EDUs of the documents; `hidden` tells whether to hide their paragraphs.
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
