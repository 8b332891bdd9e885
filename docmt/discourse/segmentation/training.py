"""Train the segmenter.

Shapes: B sentences, T words of the longest, N words with a target, L labels.
"""

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel

from docmt.discourse.segmentation.examples import IGNORED, ExampleSet, SentenceExample, Targets
from docmt.discourse.segmentation.network import SegmenterNetwork, SentenceBatch
from docmt.discourse.segmentation.segmenter import Segmenter, score_starts
from docmt.discourse.segmentation.settings import AuxiliaryWeights, SegmenterSettings, SegmenterTrainingSettings
from docmt.discourse.segmentation.vocabulary import LABELS, WordTypes, WordVocabulary
from docmt.logs import progress

log = logging.getLogger(__name__)

LAST_LEARNING_RATE = 0.01
"""Share of the learning rate that is left at the last update."""
PERFECT = 100.0
"""An F1 that no later epoch can beat."""


def train_segmenter(
    train: Sequence[SentenceExample], dev: Sequence[SentenceExample], *, settings: SegmenterSettings, seed: int
) -> Segmenter:
    """Train from scratch; equal seeds give equal weights.

    Returns:
        The moving average of the weights after the epoch with the highest F1 inside sentences of `dev` (the earliest
        one on ties), with the scores of all epochs. An epoch without any error is the last.
    """
    recipe = settings.training
    vocabulary = learn_vocabulary(train, recipe)
    examples = ExampleSet(train, vocabulary)
    # Batches have a separate generator, so that dropout does not change which sentences are read together.
    generator = np.random.default_rng(seed)
    epochs = [list(examples.shuffled_batches(recipe.max_batch_words, generator)) for _ in range(recipe.epochs)]
    n_updates = sum(map(len, epochs))

    def rate(update: int) -> float:
        if update < recipe.warmup_steps:
            return (update + 1) / (recipe.warmup_steps + 1)
        share = (update - recipe.warmup_steps) / max(1, n_updates - recipe.warmup_steps)
        return LAST_LEARNING_RATE + (1 - LAST_LEARNING_RATE) * (1 + math.cos(math.pi * min(1.0, share))) / 2

    history: list[dict[str, Any]] = []
    best: dict[str, Tensor] = {}
    best_f1 = -1.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SegmenterNetwork(settings.network, vocabulary)
        network.dropout.rate, network.encoder.word_dropout = recipe.dropout, recipe.word_dropout
        average = averaged(network, recipe.average_decay, head_start=1)
        # What is scored and kept is the average; AveragedModel is not generic.
        segmenter = Segmenter(cast(SegmenterNetwork, average.module), settings, vocabulary)
        optimizer = adam(network, recipe.learning_rate, recipe.weight_decay)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
        for epoch, batches in enumerate(epochs, start=1):
            network.train()
            sums: Counter[str] = Counter()
            for chosen in progress(batches, label=f"epoch {epoch}", unit="batches", total=len(batches)):
                parts = losses(network, *examples.batch(chosen))
                optimizer.zero_grad()
                total_loss(parts, recipe.auxiliary).backward()
                nn.utils.clip_grad_norm_(network.parameters(), recipe.max_gradient_norm)
                optimizer.step()
                schedule.step()
                average.update_parameters(network)
                sums.update({name: part.item() for name, part in parts.items()})
            means = {name: value / len(batches) for name, value in sums.items()}
            starts = segmenter.segment([example.words for example in dev])
            scores = score_starts(starts, [example.starts for example in dev], n_sentences=len(dev))
            history.append({"epoch": epoch, "losses": means, **scores})
            inside = scores["inside"]
            shown = " ".join(f"{name} {value:.4f}" for name, value in means.items())
            summary = f"F1 {scores['all']['f1']:.2f}, inside {inside['f1']:.2f} "
            summary += f"(precision {inside['precision']:.2f}, recall {inside['recall']:.2f})"
            log.info("epoch %d of %d: %s; dev %s", epoch, recipe.epochs, shown, summary)
            if inside["f1"] > best_f1:
                best_f1 = inside["f1"]
                best = {name: weight.clone() for name, weight in average.module.state_dict().items()}
            if best_f1 == PERFECT:
                break
    average.module.load_state_dict(best)
    chosen = max(history, key=lambda row: row["inside"]["f1"])
    kept = {name: chosen[name] for name in ("epoch", "all", "inside")} | {"history": history}
    return replace(segmenter, scores=kept)


def learn_vocabulary(train: Sequence[SentenceExample], settings: SegmenterTrainingSettings) -> WordVocabulary:
    """Collect the words and characters of the training sentences, and their syntactic labels in alphabetical order."""
    known = WordVocabulary.learn((example.words for example in train), min_word_count=settings.min_word_count)
    trees = [example.syntax for example in train if example.syntax is not None]
    labels = {name: sorted({label for tree in trees for label in getattr(tree, name)}) for name in LABELS}
    return replace(known, **{name: tuple(found) for name, found in labels.items()})


def losses(network: SegmenterNetwork, types: WordTypes, batch: SentenceBatch, targets: Targets) -> dict[str, Tensor]:
    """Compute the mean loss per word of `edus` and, where there is syntax, of `pos`, `relation`, `head`, `opening`."""
    states = network.states(network.encoder(types)[batch.index_BT], batch)
    mask_BT = batch.mask_BT
    likelihood_B = network.crf.log_likelihood(network.emissions(states), targets.labels_BT, mask_BT)
    found = {"edus": -likelihood_B.sum() / batch.lengths_B.sum()}
    heads = network.auxiliary
    if heads is not None and bool((targets.heads_BT != IGNORED).any()):
        # Parts of speech from the lower BiLSTM, which is nearer to the words (Søgaard and Goldberg 2016).
        for name, scores_BTL, targets_BT in (
            ("pos", heads.pos(states.lower_BTD), targets.pos_BT),
            ("relation", heads.relation(states.upper_BTD), targets.relations_BT),
            ("head", heads.head(states.upper_BTD, mask_BT), targets.heads_BT),
            ("opening", heads.opening(states.upper_BTD), targets.openings_BT),
        ):
            found[name] = cross_entropy(scores_BTL.flatten(0, 1), targets_BT.flatten(), ignore_index=IGNORED)
    return found


def total_loss(parts: dict[str, Tensor], weights: AuxiliaryWeights) -> Tensor:
    """Compute the weighted sum of the losses."""
    return sum((getattr(weights, name) * part for name, part in parts.items() if name != "edus"), parts["edus"])


def averaged(network: nn.Module, decay: float, *, head_start: int) -> AveragedModel:
    """Start an exponential moving average of a network's weights, in a copy of the network in evaluation mode.

    The decay of update n is at most (head_start + n) / (10 + n), so that the initial weights are soon forgotten.
    """

    def average(mean: Tensor, current: Tensor, n_averaged: Tensor | int) -> Tensor:
        n = int(n_averaged)
        return torch.lerp(mean, current, 1 - min(decay, (head_start + n) / (10 + n)))

    model = AveragedModel(network, avg_fn=average)
    model.n_averaged += 1  # the initial weights: without them, the first update would copy the network
    return model.eval()


def adam(network: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW as segmenter and parser use it."""
    betas = (0.9, 0.98)
    return torch.optim.AdamW(network.parameters(), learning_rate, betas, weight_decay=weight_decay, fused=True)
