"""Updates: their instances and batches, prepared ahead of the training.

An update is a function of the settings, the seed and its index, and its instances do not depend on the number of
devices. Processes can therefore prepare updates in any number, in any order, and after any resume.
"""

import copy
import heapq
import itertools
import logging
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from docmt.batching import fill_batches
from docmt.errors import UserError
from docmt.instances.storage import InstanceSet
from docmt.models.attention.kernels import Kernel
from docmt.models.settings import ModelSettings
from docmt.processes import end_with_parent
from docmt.ranges import expand_ranges
from docmt.text.vocabulary import N_SPECIALS
from docmt.training.filling import FilledBatch
from docmt.training.input_dropout import draw_numbers, drop_trees, drop_words
from docmt.training.launching import SIGNALS
from docmt.training.progress import TaskState
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import Task

log = logging.getLogger(__name__)

TASK_SEED = 0x7461736B  # `task` in ASCII
"""Combined with the task number in the seed of every task except the first, so tasks draw different random numbers."""
N_WORKERS_FOR_A_GPU = 2
"""Number of processes that prepare updates for a GPU, if there are enough cores."""
IDLE_UPDATES = 1000  # number of updates used to estimate the share of time for which devices wait
IDLE_LIMIT = 0.05  # share of time for which devices wait, above which the log warns


@dataclass(frozen=True)
class UpdateIndex:
    """Position of an update in a training."""

    step: int  # its number, from 1
    task: int  # the number of its task
    epoch: int  # finished epochs of the task
    position: int  # earlier updates in this epoch
    first_epoch: int  # finished epochs of the first task. Word dropout stops after `word_dropout_epochs`


@dataclass
class MicroBatch:
    """Instances that a device computes at once, by number in the task's training set, and their batch.

    The batch is a `DeviceBatch`, or with graphs a `FilledBatch` as long as it is on the CPU.
    """

    instances: np.ndarray
    batch: Any


@dataclass
class Update:
    """One device's share in an update.

    With an empty share, the device computes an instance with loss weight 0, because all devices must take part in
    exchanging gradients.
    """

    index: UpdateIndex
    n_updates: int  # in this pass of the task
    micro_batches: list[MicroBatch]  # at least one
    weight: float  # 1, or 0 for an empty share
    seed: int  # of dropout in this share
    n_labels: int  # over all devices
    n_tokens: int  # source tokens and decoder inputs in the share

    def pin_memory(self) -> Self:
        return replace(self, micro_batches=[MicroBatch(m.instances, m.batch.pin_memory()) for m in self.micro_batches])


@dataclass
class UpdateReader:
    """Prepares the updates of a training for a single device.

    Shape letters: B instances of an update over all devices, M instances of this device, R instances that it must read
    to draw its random numbers.
    """

    tasks: Sequence[Task]
    model_settings: ModelSettings
    settings: TrainingSettings
    seed: int
    n_ranks: int = 1  # number of devices
    rank: int = 0  # number of this one
    micro_batch_tokens: int | None = None  # maximum that a device computes at once; None means `max_batch_tokens`
    n_specials: int = N_SPECIALS  # ids below are not words
    kernel: Kernel = "padded"  # see `kernels.kernel_for`
    fills: bool = False  # whether batches are filled up to few shapes

    def __post_init__(self) -> None:
        self._epoch_batches: list[tuple[int, list[np.ndarray]] | None] = [None for _ in self.tasks]
        self._n_updates: dict[tuple[int, int], int] = {}

    def n_updates(self, task: int, epoch: int) -> int:
        if (task, epoch) not in self._n_updates:
            self.set_n_updates(task, epoch, -(-len(self._batches(task, epoch)) // self.settings.accumulation_steps))
        return self._n_updates[task, epoch]

    def set_n_updates(self, task: int, epoch: int, n_updates: int) -> None:
        """Record the number of updates in a pass, counted by another process. Counting is slow for large sets."""
        self._n_updates[task, epoch] = n_updates

    def update_batches(self, task: int, epoch: int, position: int) -> list[np.ndarray]:
        """Return the instances in an update, by batch."""
        n = self.settings.accumulation_steps
        return self._batches(task, epoch)[position * n : (position + 1) * n]

    def report_idle_share(self, tasks: Sequence[TaskState]) -> None:
        """Log the share of time for which devices wait for the busiest one, for the task where it is largest."""
        if self.n_ranks == 1:
            return
        shares = []
        for number, task in enumerate(tasks):
            tokens, n_updates = self.tasks[number].tokens, min(self.n_updates(number, task.epoch), IDLE_UPDATES)
            loads = np.zeros((n_updates, self.n_ranks))
            for position in range(n_updates):
                instances = np.concatenate(self.update_batches(number, task.epoch, position))
                loads[position] = [tokens[part].sum() for part in balance(instances, tokens, self.n_ranks)]
            # If time is proportional to tokens.
            shares.append(float(1 - loads.mean(1).sum() / loads.max(1).sum()))
        share = max(shares)
        advice = ": raise accumulation_steps or max_batch_tokens, or use fewer devices"
        if share <= IDLE_LIMIT:
            advice = ""
        log.log(
            logging.WARNING if advice else logging.INFO,
            "%d devices share every update and wait %.1f %% of the time for the busiest device%s",
            *(self.n_ranks, 100 * share, advice),
        )

    def indices(self, step: int, tasks: Sequence[TaskState]) -> Iterator[UpdateIndex]:
        """Yield the indices of all updates after update `step`, without end. No task may be at the end of its pass."""
        # The training changes these states while indices are generated ahead.
        tasks = copy.deepcopy(list(tasks))
        for n_before in itertools.count(step):
            number = n_before % len(tasks)
            task = tasks[number]
            yield UpdateIndex(n_before + 1, number, task.epoch, task.position, tasks[0].epoch)
            task.position += 1
            if task.position == self.n_updates(number, task.epoch):
                task.epoch, task.position = task.epoch + 1, 0

    def read(self, index: UpdateIndex) -> Update:
        return self.prepare(self.update_batches(index.task, index.epoch, index.position), index)

    def prepare(self, drawn_batches: list[np.ndarray], index: UpdateIndex) -> Update:
        """Prepare an update from batches of instances that were drawn for it."""
        task, settings, model_settings = self.tasks[index.task], self.settings, self.model_settings

        # Share: the instances of this device, by numbers in the update, in the micro-batches that it computes at once.
        all_B = np.concatenate(drawn_batches)
        batches = np.split(np.arange(len(all_B)), np.cumsum([len(batch) for batch in drawn_batches])[:-1])
        share = share_update(
            batches,
            task.tokens[all_B],
            n_ranks=self.n_ranks,
            rank=self.rank,
            position=index.position,
            max_tokens=settings.max_batch_tokens,
            micro_batch_tokens=self.micro_batch_tokens,
        )
        # Every device must run backward for the exchange of gradients; this instance counts with weight 0.
        micro_batches = share or [batches[0][:1]]
        mine_M = np.sort(np.concatenate(micro_batches))

        # Read: tasks noise instances as they read them. Places are numbers in what was read; lengths count the inputs.
        limit = settings.word_dropout_epochs
        word_dropout = 0.0
        if limit is None or index.first_epoch < limit:
            word_dropout = settings.word_dropout
        # Random numbers are drawn in batch order, as many as an instance has tokens. Noise changes that number, so a
        # device that drops words must noise the instances of all devices.
        read_R = mine_M
        if task.noise is not None and word_dropout > 0:
            read_R = np.arange(len(all_B))
        instance_set, places_R = task.read(all_B[read_R], epoch=index.epoch)
        places_B = np.zeros_like(all_B)
        places_B[read_R] = places_R
        src_B, tgt_B = n_inputs(task.train, all_B, model_settings)
        src_B[read_R] = n_inputs(instance_set, places_R, model_settings)[0]

        # Dropout: random numbers for dropped words and trees.
        numbers = []  # of each instance; each batch as drawn has its own seed
        if word_dropout > 0 or (settings.drop_rst > 0 and model_settings.needs_trees):
            for number, batch in enumerate(batches):
                seed = (self.seed, index.epoch, index.position, number, *self._task_seed(index.task))
                numbers += draw_numbers(src_B[batch], tgt_B[batch], seed=seed)

        # Pack: the tensors of each micro-batch.
        packed = []
        for part in micro_batches:
            batch = task.collate(instance_set, places_B[part], model_settings)
            if numbers:
                src, tgt, trees = zip(*(numbers[i] for i in part), strict=True)
                src_S, tgt_N = np.concatenate(src), np.concatenate(tgt)
                batch = drop_words(batch, src_S, tgt_N, probability=word_dropout, n_specials=self.n_specials)
                batch = drop_trees(batch, np.array(trees), probability=settings.drop_rst)
            packed.append(MicroBatch(all_B[part], FilledBatch.of(batch) if self.fills else batch.prepare(self.kernel)))
        return Update(
            index,
            self.n_updates(index.task, index.epoch),
            packed,
            weight=1.0 if share else 0.0,
            seed=self._dropout_seed(index.step),
            n_labels=max(int(tgt_B.sum()) - n_masked_labels(task.train, all_B, model_settings), 1),
            n_tokens=int(src_B[mine_M].sum() + tgt_B[mine_M].sum()) if share else 0,
        )

    def _dropout_seed(self, step: int) -> int:
        # Devices draw different numbers. The first one draws the same as a single device.
        rank = [self.rank] if self.rank else []
        return int(np.random.SeedSequence((self.seed, step, *rank)).generate_state(1)[0])

    def _batches(self, task: int, epoch: int) -> list[np.ndarray]:
        """Return the batches in a pass, a function of (seed, epoch, task). The latest pass per task is cached."""
        cached = self._epoch_batches[task]
        if cached is None or cached[0] != epoch:
            tokens = self.tasks[task].tokens
            order = np.random.default_rng((self.seed, epoch, *self._task_seed(task))).permutation(len(tokens))
            cached = self._epoch_batches[task] = (
                epoch,
                instance_batches(order, tokens, self.settings.max_batch_tokens),
            )
        return cached[1]

    def validation_batches(self, task: Task, n_metered: int) -> list[np.ndarray]:
        """Return all instances in file order, in batches.

        On a GPU, batches after the first `n_metered` are as large as memory allows, or smaller if some devices would
        otherwise have no batch.
        """
        tokens, max_tokens = task.dev.n_tokens(), self.settings.max_batch_tokens
        batches = instance_batches(np.arange(len(tokens)), tokens, max_tokens)
        # Padded attention gains nothing by large batches, and on a CPU losses would be rounded otherwise than before.
        if self.kernel != "varlen" or self.micro_batch_tokens is None:
            return batches
        rest = np.concatenate([*batches[n_metered:], np.array([], dtype=np.int64)])
        larger = min(self.micro_batch_tokens, int(tokens[rest].sum()) // self.n_ranks)
        if larger > max_tokens:
            return batches[:n_metered] + instance_batches(rest, tokens, larger)
        return batches

    @staticmethod
    def _task_seed(task: int) -> tuple[int, ...]:
        if task:
            return (TASK_SEED, task)
        return ()


def n_inputs(
    instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Return source tokens and decoder inputs (= labels) per instance, with the model's boundary tokens. int64."""
    bounds, src_offsets, tgt_offsets = map(
        np.asarray, (instance_set.instances, instance_set.src_offsets, instance_set.tgt_offsets)
    )
    first, last = bounds[instances], bounds[instances + 1]
    # Sentences are stored with `<s>` and `</s>`.
    src = src_offsets[last] - src_offsets[first] + (sum(settings.n_src_boundaries) - 2) * (last - first)
    return src, tgt_offsets[last] - tgt_offsets[first] + _n_added_inputs(settings) * (last - first)


def n_masked_labels(instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings) -> int:
    """Count the labels in masked sentences of instances."""
    if instance_set.masked is None:
        return 0
    bounds, offsets = map(np.asarray, (instance_set.instances, instance_set.tgt_offsets))
    sentences = expand_ranges(bounds[instances], bounds[instances + 1] - bounds[instances])
    sentences = sentences[instance_set.masked[sentences]]
    return int((offsets[sentences + 1] - offsets[sentences] + _n_added_inputs(settings)).sum())


def _n_added_inputs(settings: ModelSettings) -> int:
    """Return the decoder inputs per sentence in addition to its stored tokens (`<s>`, words, `</s>`)."""
    return settings.n_starts - (1 if settings.target_stream == "free" else 2)


def instance_batches(order: np.ndarray, tokens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Cut an order of instances into batches with at most `max_tokens` tokens. A larger instance is a batch by itself.

    Tokens are packed, so the instances in a batch need not have similar lengths, and the order can be fully random.
    """
    places = fill_batches(range(len(order)), max_tokens, cost=tokens[order].item)
    return [order[batch[0] : batch[-1] + 1] for batch in places]


def balance(instances: np.ndarray, tokens: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Distribute instances over parts with similar numbers of tokens: the longest first, always to the lightest part.

    Parts keep the given order. They stay empty if there are fewer instances than parts.
    """
    lightest = [(0, part) for part in range(n_parts)]
    part_of = np.zeros(len(instances), dtype=np.int64)
    for index in np.argsort(-tokens[instances], kind="stable").tolist():
        total, part = heapq.heappop(lightest)
        part_of[index] = part
        heapq.heappush(lightest, (total + int(tokens[instances[index]]), part))
    return [instances[part_of == part] for part in range(n_parts)]


def share_update(
    batches: Sequence[np.ndarray],
    tokens: np.ndarray,
    *,
    n_ranks: int,
    rank: int,
    position: int,
    max_tokens: int,
    micro_batch_tokens: int | None = None,
) -> list[np.ndarray]:
    """Share the batches in one update among devices, and cut one device's share into batches that it computes at once.

    Over all devices, every instance occurs once, and tokens are about equal. The lightest share goes to a different
    device at every `position`. A device without instances has no batch. A single device with `micro_batch_tokens`
    equal to `max_tokens` (the default) reads the batches as drawn.
    """
    micro_batch_tokens = micro_batch_tokens or max_tokens
    if n_ranks == 1 and micro_batch_tokens == max_tokens:
        return list(batches)
    share = balance(np.concatenate(batches), tokens, n_ranks)[(rank + position) % n_ranks]
    # As few batches as possible, of about equal size. Equal numbers of tokens may need one batch more than their sum.
    fewest = -(-int(tokens[share].sum()) // micro_batch_tokens)
    for n_batches in range(fewest, len(share) + 1):
        parts = balance(share, tokens, n_batches)
        if all(len(part) == 1 or tokens[part].sum() <= micro_batch_tokens for part in parts):
            return parts
    return [share[i : i + 1] for i in range(len(share))]


def read_ahead(
    reader: UpdateReader, *, step: int, tasks: Sequence[TaskState], device: torch.device, n_workers: int | None = None
) -> Generator[Update, None, None]:
    """Yield the updates after update `step`, without end. Close the generator to end the processes that prepare them.

    For a GPU, `n_workers` processes prepare updates ahead and in pinned memory. None means two processes, or fewer if
    there are not enough cores. On a CPU, the training itself needs the cores.
    """
    is_cuda = device.type == "cuda"
    if n_workers is None:
        n_workers = 0
        if is_cuda:
            n_workers = min(N_WORKERS_FOR_A_GPU, len(os.sched_getaffinity(0)) - 1)
    loader = DataLoader(
        _Updates(reader, reader.indices(step, tasks)),
        batch_size=None,
        num_workers=n_workers,
        pin_memory=is_cuda,
        worker_init_fn=_start_worker,
        multiprocessing_context="fork" if n_workers else None,  # the instances are memory maps, which children share
    )
    try:
        yield from loader
    except (RuntimeError, ConnectionError, EOFError) as error:  # the latter two if it ends while it hands a batch over
        if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
            raise
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"training: a process that prepares batches has died ({reason}), possibly for lack of memory; the same "
            "command resumes from the last checkpoint"
        ) from None


@dataclass
class _Updates(IterableDataset[Update]):
    """Updates in order. With n processes, a process prepares every n-th update."""

    reader: UpdateReader
    indices: Iterator[UpdateIndex]

    def __iter__(self) -> Iterator[Update]:
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        return map(self.reader.read, itertools.islice(self.indices, first, None, stride))


def _start_worker(_: int) -> None:
    """Ignore signals, because the training handles them, and end with the training."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()  # a process left behind would hold the lock of the folder, which it shares
