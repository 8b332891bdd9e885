"""The EDU segmenter: model file, segmentation and training.

Shapes: B sentences, T words in the longest one, U word types, D width, L labels.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel

from docmt.batching import fill_batches
from docmt.discourse.dependencies import NO_HEAD, check_dependencies
from docmt.discourse.discourse_documents import inner_starts, read_discourse
from docmt.discourse.segmentation.network import (
    INSIDE,
    LABELS,
    START,
    SegmenterNetwork,
    SentenceBatch,
    WordTypes,
    WordVocabulary,
    number_types,
)
from docmt.discourse.settings import AuxiliaryWeights, SegmenterSettings, SegmenterTrainingSettings
from docmt.discourse.syntax import SentenceSyntax, read_syntax
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.logs import progress
from docmt.tensor_files import read_tensors

FORMAT = 1
KIND = "discourse segmenter"
KEYS = ("settings", "vocabulary", "weights", "scores", "provenance")
MAX_BATCH_WORDS = 2048
MAX_BATCH_TYPES = 1024
WINDOW_WORDS = 200
CONTEXT_WORDS = 50
"""Longer sentences are read in windows with context on both sides, in linear time and memory."""
IGNORED = -100
"""Target without loss: padding, or a label outside the vocabulary."""
LAST_LEARNING_RATE = 0.01
"""Factor on the learning rate at the last update."""
PERFECT = 100.0
"""Maximum F1. Training ends when it is reached."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SegmenterOutput:
    """EDU starts and word states of a sentence."""

    starts: list[int]  # inner starts: words, except the first, at which an EDU begins
    states_TD: Tensor  # float32, output of the upper BiLSTM per word
    lower_TD: Tensor  # float32, output of the lower BiLSTM per word


class SentenceWindow(NamedTuple):
    """Words `start` to `end` − 1 in a sentence, with results for words `core_start` to `core_end` − 1."""

    sentence: int
    start: int
    end: int
    core_start: int
    core_end: int

    def n_words(self) -> int:
        return self.end - self.start

    @property
    def core(self) -> slice:
        """The core, counted from the first word in the window."""
        return slice(self.core_start - self.start, self.core_end - self.start)


def cut_windows(sentence: int, n_words: int) -> Iterator[SentenceWindow]:
    """Yield windows whose cores cover every word once. An empty sentence has no window."""
    if 0 < n_words <= WINDOW_WORDS + 2 * CONTEXT_WORDS:
        yield SentenceWindow(sentence, 0, n_words, 0, n_words)
        return
    for core in range(0, n_words, WINDOW_WORDS):
        end = min(n_words, core + WINDOW_WORDS)
        yield SentenceWindow(sentence, max(0, core - CONTEXT_WORDS), min(n_words, end + CONTEXT_WORDS), core, end)


@dataclass(frozen=True, eq=False)
class Segmenter:
    """A trained segmenter. The result for a sentence does not depend on other sentences."""

    network: SegmenterNetwork  # on the CPU, in evaluation mode
    settings: SegmenterSettings
    vocabulary: WordVocabulary
    scores: dict[str, Any] = field(default_factory=dict)  # development scores, with the training history
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, settings, seed and training data

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.from_bytes(read_bytes(path), where=str(path))

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> Self:
        """Load a segmenter from the content of a model file. No code in it can run."""
        mend = "train it with `docmt discourse train-segmenter`"
        content = read_tensors(data, where=where, what="a segmenter", mend=mend, format=FORMAT, kind=KIND, keys=KEYS)
        settings = SegmenterSettings.load(content["settings"], where=f"{where}: settings")
        vocabulary = WordVocabulary.from_dict(content["vocabulary"])
        network = SegmenterNetwork(settings.network, vocabulary)
        try:
            network.load_state_dict(content["weights"])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise weights_refused(error, where=where) from None
        return cls(network.eval(), settings, vocabulary, content["scores"], content["provenance"])

    def save(self, path: Path) -> None:
        """Write a model file."""
        content = {
            "format": FORMAT,
            "kind": KIND,
            "settings": self.settings.model_dump(),
            "vocabulary": self.vocabulary.to_dict(),
            "weights": self.network.state_dict(),
            "scores": self.scores,
            "provenance": self.provenance,
        }
        with atomic_path(path) as temporary:
            torch.save(content, temporary)

    @property
    def width(self) -> int:
        """Width of upper BiLSTM states."""
        return self.network.upper.width

    @property
    def lower_width(self) -> int:
        """Width of lower BiLSTM states."""
        return self.network.lower.width

    def segment(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the sorted inner starts per sentence (see `inner_starts`)."""
        return [output.starts for output in self.encode(sentences)]

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[SegmenterOutput]:
        """Return EDU starts and word states per sentence."""
        outputs: list[SegmenterOutput] = []
        windows: list[SentenceWindow] = []
        for number, words in enumerate(sentences):
            states_TD = torch.empty(len(words), self.width)
            lower_TD = torch.empty(len(words), self.lower_width)
            outputs.append(SegmenterOutput([], states_TD, lower_TD))
            windows += cut_windows(number, len(words))
        if not windows:
            return outputs
        names, numbers = number_types(sentences)
        types = WordTypes.encode(names, self.vocabulary)
        with torch.no_grad():  # not inference mode: a parser may train on the states
            parts = map(types.select, torch.arange(len(names)).split(MAX_BATCH_TYPES))
            encoded_UD = torch.cat(list(map(self.network.encoder, parts)))
        windows.sort(key=SentenceWindow.n_words)  # similar lengths need little padding
        for batch_windows in fill_batches(windows, MAX_BATCH_WORDS, cost=SentenceWindow.n_words, padded=True):
            batch = SentenceBatch.pad([numbers[window.sentence][window.start : window.end] for window in batch_windows])
            with torch.no_grad():
                states = self.network.states(encoded_UD[batch.index_BT], batch)
                labels_BT = self.network.crf.viterbi(self.network.emissions(states), batch.lengths_B)
            for window, labels_T, upper_TD, lower_TD in zip(
                batch_windows, labels_BT, states.upper_BTD, states.lower_BTD, strict=True
            ):
                output = outputs[window.sentence]
                starts = (labels_T[window.core] == START).nonzero()[:, 0] + window.core_start
                output.starts.extend(starts.tolist())
                output.states_TD[window.core_start : window.core_end] = upper_TD[window.core]
                output.lower_TD[window.core_start : window.core_end] = lower_TD[window.core]
        for output in outputs:
            output.starts.sort()  # windows of a sentence can be in different batches
        return outputs


def weights_refused(error: Exception, *, where: str) -> UserError:
    """Return the error for a model file whose weights do not match the settings."""
    reason = " ".join(str(error).split())[:200]
    return UserError(f"{where}: weights and settings do not match ({reason}): train it again")


def score_starts(
    predicted: Iterable[Sequence[int]], gold: Iterable[Sequence[int]], *, n_sentences: int
) -> dict[str, dict[str, Any]]:
    """Return micro-averaged scores for inner starts per sentence.

    `n_sentences` is the number of sentences with words. Precision, recall and F1 are in percent (0 if undefined), with
    counts. `inside` compares starts inside sentences, as in Wang et al. (2018). `all` includes the first words of
    sentences, as in the DISRPT shared tasks, which are always correct with gold sentences.
    """
    correct = n_predicted = n_gold = 0
    for predicted_starts, gold_starts in zip(predicted, gold, strict=True):
        correct += len(set(predicted_starts) & set(gold_starts))
        n_predicted += len(predicted_starts)
        n_gold += len(gold_starts)
    scores = {}
    for name, more in (("all", n_sentences), ("inside", 0)):
        counts = {"correct": correct + more, "predicted": n_predicted + more, "gold": n_gold + more}
        precision = recall = f1 = 0.0
        if counts["predicted"]:
            precision = 100 * counts["correct"] / counts["predicted"]
        if counts["gold"]:
            recall = 100 * counts["correct"] / counts["gold"]
        if counts["correct"]:
            f1 = 200 * counts["correct"] / (counts["predicted"] + counts["gold"])
        scores[name] = {"precision": precision, "recall": recall, "f1": f1, **counts}
    return scores


@dataclass(frozen=True)
class SentenceExample:
    """A sentence with at least one word, inner EDU starts and optional syntax."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    syntax: SentenceSyntax | None = None


def syntax_path(discourse: Path) -> Path:
    """Return `NAME.syntax.jsonl`, the syntax of the sentences in `NAME.discourse.jsonl`."""
    return Path(f"{str(discourse).removesuffix('.discourse.jsonl')}.syntax.jsonl")


def read_examples(path: Path) -> list[SentenceExample]:
    """Read the nonempty sentences of a `.discourse.jsonl` and, if it exists, their `.syntax.jsonl`."""
    documents = read_discourse(path)
    syntax: Sequence[Sequence[SentenceSyntax | None]] = [[None] * len(document.sentences) for document in documents]
    parses = syntax_path(path)
    if parses.exists():
        syntax = read_syntax(parses, documents)
        for line, parts in enumerate(syntax, start=1):
            for number, part in enumerate(parts, start=1):
                # `openings` needs trees. Predicted syntax can have cycles.
                check_dependencies(part.heads, where=f"{parses}: line {line}: sentence {number}")
    examples = []
    for document, trees in zip(documents, syntax, strict=True):
        for words, starts, tree in zip(document.sentences, inner_starts(document), trees, strict=True):
            if words:
                examples.append(SentenceExample(words, tuple(starts), tree))
    if not examples:
        raise UserError(f"{path}: contains no sentence with words")
    return examples


@dataclass(frozen=True)
class Targets:
    """Gold output for a batch, int64 [B, T]."""

    labels_BT: Tensor  # `INSIDE` or `START`
    pos_BT: Tensor  # number in the vocabulary, or `IGNORED`
    relations_BT: Tensor
    openings_BT: Tensor
    heads_BT: Tensor  # head, T for the root, or `IGNORED`


class ExampleSet:
    """Examples with numbered words and labels."""

    def __init__(self, examples: Sequence[SentenceExample], vocabulary: WordVocabulary) -> None:
        names, self._words = number_types(example.words for example in examples)
        self._types = WordTypes.encode(names, vocabulary)
        self._starts = [example.starts for example in examples]
        numbers = {}
        for name in LABELS:
            labels = getattr(vocabulary, name)
            numbers[name] = dict(zip(labels, range(len(labels)), strict=True))
        # Per sentence with syntax: the labels of all kinds, and the heads.
        self._syntax: list[list[list[int]] | None] = []
        for example in examples:
            if example.syntax is None:
                self._syntax.append(None)
                continue
            rows = []
            for name in LABELS:
                rows.append([numbers[name].get(label, IGNORED) for label in getattr(example.syntax, name)])
            rows.append(list(example.syntax.heads))
            self._syntax.append(rows)

    def __len__(self) -> int:
        return len(self._words)

    def batch(self, sentences: Sequence[int]) -> tuple[WordTypes, SentenceBatch, Targets]:
        """Return a batch of examples in this order, with their word types and targets."""
        batch = SentenceBatch.pad([self._words[i] for i in sentences])
        n_columns = batch.index_BT.shape[1]
        labels_BT = torch.full_like(batch.index_BT, INSIDE)
        syntax_4BT = torch.full((len(LABELS) + 1, *labels_BT.shape), IGNORED)
        for row, i in enumerate(sentences):
            labels_BT[row, list(self._starts[i])] = START
            syntax = self._syntax[i]
            if syntax is not None:
                syntax_4BT[:, row, : len(self._words[i])] = torch.tensor(syntax)
        pos_BT, relations_BT, openings_BT, heads_BT = syntax_4BT
        # The root is one column after the longest sentence, as in `HeadAttention`.
        heads_BT[heads_BT == NO_HEAD] = n_columns
        used_U, index_BT = torch.unique(batch.index_BT, return_inverse=True)
        targets = Targets(labels_BT, pos_BT, relations_BT, openings_BT, heads_BT)
        return self._types.select(used_U), SentenceBatch(index_BT, batch.lengths_B), targets

    def shuffled_batches(self, max_words: int, generator: np.random.Generator) -> Iterator[list[int]]:
        """Yield batches with similar lengths in random order, with at most `max_words` words including padding."""
        # Sorted by noisy length: little padding, but different batches in all epochs.
        noise = generator.uniform(-0.5, 0.5, len(self))
        order = sorted(range(len(self)), key=lambda i: (len(self._words[i]) * (1 + 0.3 * noise[i]), i))
        batches = list(fill_batches(order, max_words, cost=lambda i: len(self._words[i]), padded=True))
        for number in generator.permutation(len(batches)):
            yield batches[number]


def train_segmenter(
    train: Sequence[SentenceExample], dev: Sequence[SentenceExample], *, settings: SegmenterSettings, seed: int
) -> Segmenter:
    """Train from scratch. Equal seeds give equal weights.

    Returns:
        The moving average of the weights after the epoch with the highest F1 inside sentences of `dev` (the earliest
        on ties), with the scores of all epochs. Training ends after an epoch without errors.
    """
    recipe = settings.training
    vocabulary = learn_vocabulary(train, recipe)
    examples = ExampleSet(train, vocabulary)
    # Batches have a separate generator, so that dropout does not change the batches.
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
        network.dropout.rate = recipe.dropout
        network.encoder.word_dropout = recipe.word_dropout
        average = averaged(network, recipe.average_decay, head_start=1)
        # The average is scored and kept. AveragedModel is not generic.
        segmenter = Segmenter(cast(SegmenterNetwork, average.module), settings, vocabulary)
        optimizer = adam(network, recipe.learning_rate, recipe.weight_decay)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
        for epoch, batches in enumerate(epochs, start=1):
            network.train()
            sums: Counter[str] = Counter()
            for sentences in progress(batches, label=f"epoch {epoch}", unit="batches", total=len(batches)):
                parts = losses(network, *examples.batch(sentences))
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
            loss_text = " ".join(f"{name} {value:.4f}" for name, value in means.items())
            summary = f"F1 {scores['all']['f1']:.2f}, inside {inside['f1']:.2f} "
            summary += f"(precision {inside['precision']:.2f}, recall {inside['recall']:.2f})"
            log.info("epoch %d of %d: %s; dev %s", epoch, recipe.epochs, loss_text, summary)
            if inside["f1"] > best_f1:
                best_f1 = inside["f1"]
                best = {name: weight.clone() for name, weight in average.module.state_dict().items()}
            if best_f1 == PERFECT:
                break
    average.module.load_state_dict(best)
    best_epoch = max(history, key=lambda row: row["inside"]["f1"])
    final_scores = {name: best_epoch[name] for name in ("epoch", "all", "inside")} | {"history": history}
    return replace(segmenter, scores=final_scores)


def learn_vocabulary(train: Sequence[SentenceExample], settings: SegmenterTrainingSettings) -> WordVocabulary:
    """Collect words and characters in the training sentences, and syntactic labels in alphabetical order."""
    vocabulary = WordVocabulary.learn((example.words for example in train), min_word_count=settings.min_word_count)
    labels = {}
    for name in LABELS:
        names: set[str] = set()
        for example in train:
            if example.syntax is not None:
                names.update(getattr(example.syntax, name))
        labels[name] = tuple(sorted(names))
    return replace(vocabulary, **labels)


def losses(network: SegmenterNetwork, types: WordTypes, batch: SentenceBatch, targets: Targets) -> dict[str, Tensor]:
    """Return the mean loss per word: `edus` and, with syntax, `pos`, `relation`, `head` and `opening`."""
    states = network.states(network.encoder(types)[batch.index_BT], batch)
    mask_BT = batch.mask_BT
    likelihood_B = network.crf.log_likelihood(network.emissions(states), targets.labels_BT, mask_BT)
    loss_by_task = {"edus": -likelihood_B.sum() / batch.lengths_B.sum()}
    heads = network.auxiliary
    if heads is not None and bool((targets.heads_BT != IGNORED).any()):
        # Parts of speech from the lower BiLSTM (Søgaard and Goldberg 2016).
        for name, scores_BTL, targets_BT in (
            ("pos", heads.pos(states.lower_BTD), targets.pos_BT),
            ("relation", heads.relation(states.upper_BTD), targets.relations_BT),
            ("head", heads.head(states.upper_BTD, mask_BT), targets.heads_BT),
            ("opening", heads.opening(states.upper_BTD), targets.openings_BT),
        ):
            loss_by_task[name] = cross_entropy(scores_BTL.flatten(0, 1), targets_BT.flatten(), ignore_index=IGNORED)
    return loss_by_task


def total_loss(parts: dict[str, Tensor], weights: AuxiliaryWeights) -> Tensor:
    """Return the weighted sum of the losses."""
    total = parts["edus"]
    for name, part in parts.items():
        if name != "edus":
            total = total + getattr(weights, name) * part
    return total


def averaged(network: nn.Module, decay: float, *, head_start: int) -> AveragedModel:
    """Return an exponential moving average of the weights, as a copy of the network in evaluation mode.

    The decay at update n is at most (head_start + n) / (10 + n), so that the initial weights vanish quickly.
    """

    def average(mean: Tensor, current: Tensor, n_averaged: Tensor | int) -> Tensor:
        n = int(n_averaged)
        return torch.lerp(mean, current, 1 - min(decay, (head_start + n) / (10 + n)))

    model = AveragedModel(network, avg_fn=average)
    model.n_averaged += 1  # counts the initial weights: otherwise, the first update would copy the network
    return model.eval()


def adam(network: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """Return the AdamW optimizer for segmenter and parser."""
    betas = (0.9, 0.98)
    return torch.optim.AdamW(network.parameters(), learning_rate, betas, weight_decay=weight_decay, fused=True)
