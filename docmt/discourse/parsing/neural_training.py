"""Training the neural parser's networks on gold trees."""

import logging
import random
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from docmt.discourse.parsing.neural_examples import ParserExample, collate
from docmt.discourse.parsing.neural_network import EduInputs, ParserNetwork
from docmt.discourse.parsing.settings import NeuralSettings
from docmt.discourse.segmentation.training import averaged

log = logging.getLogger(__name__)


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
        optimizer = torch.optim.AdamW(
            network.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.98),
            fused=True,
        )
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
                loss = _loss(network, chosen, hidden, settings.label_smoothing)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                update += 1
                average.update_parameters(network)
                total += loss.item()
            log.info("parser, seed %d: epoch %d of %d, loss %.1f", seed, epoch, settings.epochs, total)
    return cast(ParserNetwork, average.module)  # AveragedModel is not generic


def _loss(network: ParserNetwork, chosen: Sequence[ParserExample], hidden: Sequence[bool], smoothing: float) -> Tensor:
    """Mean cross-entropy of actions plus mean cross-entropy of relations (a scalar)."""
    inputs = EduInputs.join([example.inputs for example in chosen])
    lengths = inputs.n_edus
    edus_ER = network.encoder(inputs)
    loss = torch.zeros(())
    for classifier, parts in (
        (network.actions, [example.steps for example in chosen]),
        (network.relations, [example.nodes for example in chosen]),
    ):
        *arguments, labels_Q = collate(parts, lengths, hidden)
        scores_QC = classifier(classifier.cache(edus_ER, lengths), *arguments)
        loss = loss + functional.cross_entropy(scores_QC, labels_Q, label_smoothing=smoothing)
    return loss
