"""Training of the RST parser on gold trees."""

import hashlib
import logging
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from docmt.discourse.constituents import Node, binarize, rename_relations
from docmt.discourse.discourse_documents import DiscourseDocument, read_discourse, sentences_of
from docmt.discourse.evaluation import Coarse, coarse_classes, evaluate
from docmt.discourse.parsing.network import (
    EduInputs,
    Ensemble,
    ParserExample,
    ParserNetwork,
    collate,
    edge_words,
    make_example,
    number_words,
)
from docmt.discourse.parsing.parser import NeuralParser, TrainedParser, word_states
from docmt.discourse.segmentation.segmenter import Segmenter, adam, averaged
from docmt.discourse.settings import NeuralSettings, ParserSettings
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.provenance import describe

log = logging.getLogger(__name__)


def train_parser(*, train: Path, dev: Path, segmenter: Path, settings: ParserSettings, seed: int) -> TrainedParser:
    """Train on the gold trees in a `.discourse.jsonl` with a segmenter file, and score on another."""
    data = read_bytes(segmenter)
    model = Segmenter.from_bytes(data, where=str(segmenter))
    coarse = coarse_classes(settings.relations)
    documents = []
    trees = []
    relations: set[str] = set()
    for document in read_discourse(train):
        if document.edus:
            tree = training_tree(document, coarse)
            documents.append(document)
            trees.append(tree)
            relations.update(node.relation for node in tree.postorder() if not node.is_leaf)
    if not relations:
        raise UserError("parser training: no document has two or more EDUs to learn from")
    gold = read_discourse(dev)
    parser = train_neural(documents, trees, model, settings, relations=sorted(relations), seed=seed)
    # On gold EDUs: with paragraphs, if any document has them, and without.
    variants = {"without paragraphs": [replace(document, paragraphs=None) for document in gold]}
    if any(document.paragraphs is not None for document in gold):
        variants = {"with paragraphs": gold} | variants
    scores = {}
    for name, variant in variants.items():
        scores[name] = evaluate(zip(gold, parser.parse_batch(variant), strict=True), coarse=coarse)
        log.info("development set, %s: original Parseval %s", name, scores[name]["parseval"])
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        train_documents=len(documents),
        segmenter=hashlib.sha256(data).hexdigest(),
    )
    return TrainedParser(parser, data, scores, provenance)


def training_tree(document: DiscourseDocument, coarse: Coarse) -> Node:
    """Return the binarized tree of a document with coarse relations."""
    if document.tree is None:
        raise UserError(f"parser training: document {document.id!r} has no tree: train on gold trees")
    return binarize(rename_relations(document.tree, coarse))


def train_neural(
    documents: Sequence[DiscourseDocument],
    trees: Sequence[Node],
    segmenter: Segmenter,
    settings: ParserSettings,
    *,
    relations: Sequence[str],
    seed: int,
) -> NeuralParser:
    """Train all networks on documents with EDUs and their binary trees with coarse `relations`."""
    counts: Counter[str] = Counter()  # words at EDU edges
    for document in documents:
        for edu in range(len(document.edus)):
            counts.update(edge_words(document, edu))
    frequent = [word for word, count in counts.items() if word and count >= settings.neural.min_word_count]
    words = tuple(sorted(frequent))
    numbers = number_words(words)
    outputs = segmenter.encode(sentences_of(documents))
    states = word_states(outputs, documents, reads_lower=settings.neural.reads_lower)
    examples = []
    for document, tree, document_states in zip(documents, trees, states, strict=True):
        if not tree.is_leaf:
            examples.append(make_example(document, tree, document_states, relations=relations, numbers=numbers))
    networks = []
    for member in range(settings.neural.members):
        network = train_member(
            examples,
            n_words=len(words),
            n_relations=len(relations),
            settings=settings.neural,
            seed=1000 * seed + member,
        )
        networks.append(network)
    return NeuralParser(Ensemble(networks), relations, words, segmenter, settings)


def train_member(
    examples: Sequence[ParserExample], *, n_words: int, n_relations: int, settings: NeuralSettings, seed: int
) -> ParserNetwork:
    """Train one network on examples with at least two EDUs, and return it with averaged weights.

    Initial weights, document order, hidden paragraphs and dropout depend on the seed.
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
                batch = [examples[number] for number in order[start : start + settings.documents_per_batch]]
                hidden = [chance.random() < settings.paragraph_dropout for _ in batch]
                # A short warm-up, then linear decay to 0.
                share = min((update + 1) / n_warmup, (n_updates - update) / max(1, n_updates - n_warmup))
                optimizer.param_groups[0]["lr"] = settings.learning_rate * share
                loss = total_loss(network, batch, hidden, settings.label_smoothing)
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
    network: ParserNetwork, batch: Sequence[ParserExample], hidden: Sequence[bool], smoothing: float
) -> Tensor:
    """Return the mean cross-entropy of actions plus the mean cross-entropy of relations (scalar)."""
    inputs = EduInputs.join([example.inputs for example in batch])
    edus_ER = network.encoder(inputs)
    loss = torch.zeros(())
    for classifier, parts in (
        (network.actions, [example.steps for example in batch]),
        (network.relations, [example.nodes for example in batch]),
    ):
        *arguments, labels_Q = collate(parts, inputs.n_edus, hidden)
        scores_QC = classifier(classifier.cache(edus_ER, inputs.n_edus), *arguments)
        loss = loss + functional.cross_entropy(scores_QC, labels_Q, label_smoothing=smoothing)
    return loss
