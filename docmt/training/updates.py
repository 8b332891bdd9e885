"""Updates: which instances each one reads, and their batches, prepared ahead of the training.

An update is a function of the settings, the seed and its turn. Processes may therefore prepare updates in any number,
in any order, and after any resume, and the training reads the same numbers.
"""

import copy
import ctypes
import itertools
import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from docmt.errors import UserError
from docmt.models.batch import Batch
from docmt.models.plans import Kernel
from docmt.models.settings import ModelSettings
from docmt.text.vocabulary import N_SPECIALS
from docmt.training.batches import Draws, draw, drop_trees, drop_words, n_inputs, share_update, training_batches
from docmt.training.launching import SIGNALS
from docmt.training.settings import TrainingSettings
from docmt.training.state import TaskState
from docmt.training.tasks import Task

TASKS = 0x7461736B
"""With the number of a task, part of the seeds of all but the first, so that no two draw the same random numbers."""
N_WORKERS_FOR_A_GPU = 2
"""Processes that prepare updates for one GPU, if there are cores for them; each prepares two updates ahead."""
PR_SET_PDEATHSIG = 1
"""Of `prctl`: the signal that a process gets when its parent ends."""


@dataclass(frozen=True)
class Turn:
    """Which update it is: the turn of a task.

    Attributes:
        task: its number.
        epoch: finished passes over the instances of the task.
        position: earlier updates of this pass.
        passes: finished passes of the first task, which end word dropout.
    """

    task: int
    epoch: int
    position: int
    passes: int


@dataclass
class MicroBatch:
    """What a device computes at once: instances, by their numbers in the training set of the task, as a batch."""

    instances: np.ndarray
    batch: Batch


@dataclass
class Update:
    """The share of one device in an update.

    Attributes:
        turn: of the update.
        n_updates: in this pass of the task.
        drawn: the instances of the update, over all devices, by batches.
        micro_batches: at least one.
        weight: of their loss; 0 where the share is empty, and the device computes an instance only because all devices
            must take part in exchanging gradients.
        n_labels: over all devices.
        n_tokens: source tokens and decoder inputs in the share.
    """

    turn: Turn
    n_updates: int
    drawn: list[np.ndarray]
    micro_batches: list[MicroBatch]
    weight: float
    n_labels: int
    n_tokens: int

    def pin_memory(self) -> Self:
        """The same update in pinned memory."""
        return replace(self, micro_batches=[MicroBatch(m.instances, m.batch.pin_memory()) for m in self.micro_batches])


@dataclass
class UpdateReader:
    """Prepares the updates of a training for one of its devices.

    Attributes:
        tasks, model_settings, settings, seed: of the training.
        n_ranks, rank: number of devices, and which one this is.
        device_tokens: most tokens that a device computes at once; None means `max_batch_tokens`.
        n_specials: ids below are not words.
        kernel: which attention the device computes, see `ragged.kernel_for`.
    """

    tasks: Sequence[Task]
    model_settings: ModelSettings
    settings: TrainingSettings
    seed: int
    n_ranks: int = 1
    rank: int = 0
    device_tokens: int | None = None
    n_specials: int = N_SPECIALS
    kernel: Kernel = "padded"

    def __post_init__(self) -> None:
        self._passes: list[tuple[int, list[np.ndarray]] | None] = [None for _ in self.tasks]
        self._sizes: dict[tuple[int, int], int] = {}

    def n_updates(self, task: int, epoch: int) -> int:
        """The number of updates in a pass."""
        if (task, epoch) not in self._sizes:
            self.note_size(task, epoch, -(-len(self._batches(task, epoch)) // self.settings.accumulation_steps))
        return self._sizes[task, epoch]

    def note_size(self, task: int, epoch: int, n_updates: int) -> None:
        """Learn the number of updates in a pass from another process: counting takes long in large sets."""
        self._sizes[task, epoch] = n_updates

    def drawn(self, task: int, epoch: int, position: int) -> list[np.ndarray]:
        """The instances of an update, by batches."""
        n = self.settings.accumulation_steps
        return self._batches(task, epoch)[position * n : (position + 1) * n]

    def turns(self, step: int, tasks: Sequence[TaskState]) -> Iterator[Turn]:
        """The turns of all updates after update `step`, without end. No task may be at the end of its pass."""
        tasks = copy.deepcopy(list(tasks))
        for number in itertools.islice(itertools.cycle(range(len(tasks))), step % len(tasks), None):
            task = tasks[number]
            yield Turn(number, task.epoch, task.position, tasks[0].epoch)
            task.position += 1
            if task.position == self.n_updates(number, task.epoch):
                task.epoch, task.position = task.epoch + 1, 0

    def read(self, turn: Turn) -> Update:
        """Prepare the update of a turn."""
        return self.prepare(self.drawn(turn.task, turn.epoch, turn.position), turn)

    def prepare(self, drawn: list[np.ndarray], turn: Turn) -> Update:
        """Prepare an update from batches of instances that were drawn for it."""
        task = self.tasks[turn.task]
        all_B = np.concatenate(drawn)
        batches = np.split(np.arange(len(all_B)), np.cumsum([len(batch) for batch in drawn])[:-1])
        share = share_update(
            batches,
            task.tokens[all_B],
            n_ranks=self.n_ranks,
            rank=self.rank,
            turn=turn.position,
            max_tokens=self.settings.max_batch_tokens,
            device_tokens=self.device_tokens,
        )
        rows = share or [batches[0][:1]]
        mine_M = np.sort(np.concatenate(rows))
        # Where noise adds tokens, the random numbers of an instance follow those of all instances before it.
        needs_all = task.noise is not None and self._word_dropout(turn) > 0
        read_R = np.arange(len(all_B)) if needs_all else mine_M
        reading = task.read([all_B[read_R]], epoch=turn.epoch)
        numbers_B = np.zeros_like(all_B)
        numbers_B[read_R] = reading.batches[0]
        src_B, tgt_B = n_inputs(task.train, all_B, self.model_settings)
        src_B[read_R] = n_inputs(reading.instance_set, reading.batches[0], self.model_settings)[0]
        draws = self._draw(batches, src_B, tgt_B, mine_M, turn)
        micro_batches = []
        for part in rows:
            batch = task.collate(reading.instance_set, numbers_B[part], self.model_settings)
            if draws is not None:
                batch = self._drop(batch, draws.take(np.searchsorted(mine_M, part)), turn)
            micro_batches.append(MicroBatch(all_B[part], batch.prepare(self.kernel)))
        return Update(
            turn,
            self.n_updates(turn.task, turn.epoch),
            drawn,
            micro_batches,
            weight=1.0 if share else 0.0,
            n_labels=int(tgt_B.sum()),
            n_tokens=int(src_B[mine_M].sum() + tgt_B[mine_M].sum()) if share else 0,
        )

    def _batches(self, task: int, epoch: int) -> list[np.ndarray]:
        """The batches of a pass; the latest one of each task is kept."""
        kept = self._passes[task]
        if kept is None or kept[0] != epoch:
            batches = training_batches(
                self.tasks[task].train,
                max_tokens=self.settings.max_batch_tokens,
                seed=self.seed,
                epoch=epoch,
                stream=self._stream(task),
            )
            kept = self._passes[task] = (epoch, batches)
        return kept[1]

    @staticmethod
    def _stream(task: int) -> tuple[int, ...]:
        """The part of a task's seeds that does not depend on its progress."""
        return (TASKS, task) if task else ()

    def _word_dropout(self, turn: Turn) -> float:
        limit = self.settings.word_dropout_epochs
        return self.settings.word_dropout if limit is None or turn.passes < limit else 0.0

    def _draw(
        self, batches: list[np.ndarray], src_B: np.ndarray, tgt_B: np.ndarray, mine_M: np.ndarray, turn: Turn
    ) -> Draws | None:
        """The random numbers of the instances of this device; None if nothing can be dropped."""
        if self._word_dropout(turn) == 0 and (self.settings.drop_rst == 0 or not self.model_settings.needs_trees):
            return None
        is_mine_B = np.zeros(len(src_B), dtype=bool)
        is_mine_B[mine_M] = True
        seed = (self.seed, turn.epoch, turn.position)
        return Draws.join(
            [
                draw(
                    src_B[batch],
                    tgt_B[batch],
                    np.flatnonzero(is_mine_B[batch]),
                    seed=(*seed, number, *self._stream(turn.task)),
                )
                for number, batch in enumerate(batches)
            ]
        )

    def _drop(self, batch: Batch, draws: Draws, turn: Turn) -> Batch:
        batch = drop_words(batch, draws, probability=self._word_dropout(turn), n_specials=self.n_specials)
        return drop_trees(batch, draws.trees, probability=self.settings.drop_rst)


def read_ahead(
    reader: UpdateReader, *, step: int, tasks: Sequence[TaskState], device: torch.device, n_workers: int | None = None
) -> Generator[Update, None, None]:
    """The updates after update `step`, without end; close the generator to end the processes that prepare them.

    Updates are prepared ahead, and put into pinned memory, where that pays: for a GPU (by `n_workers` processes; None
    means two, or as many as there are other cores). On a CPU, the training itself needs the cores.

    Raises:
        UserError: one of these processes was killed, most likely for lack of memory.
    """
    is_cuda = device.type == "cuda"
    if n_workers is None:
        n_workers = min(N_WORKERS_FOR_A_GPU, len(os.sched_getaffinity(0)) - 1) if is_cuda else 0
    loader = DataLoader(
        _Stream(reader, step, tasks),
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
            f"training: a process that prepares batches is gone ({reason}): memory may be too "
            "small; the same command resumes from the last checkpoint"
        ) from None


class _Stream(IterableDataset[Update]):
    """Updates in order; of several processes, each prepares every so-many-th one."""

    def __init__(self, reader: UpdateReader, step: int, tasks: Sequence[TaskState]) -> None:
        self.reader, self.step, self.tasks = reader, step, copy.deepcopy(list(tasks))

    def __iter__(self) -> Iterator[Update]:
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        turns = self.reader.turns(self.step, self.tasks)
        return map(self.reader.read, itertools.islice(turns, first, None, stride))


def _start_worker(_: int) -> None:
    """Leave signals to the training, and end with it even if it is killed: the lock of its folder is shared."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
