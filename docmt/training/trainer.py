"""The training loop.

Every update is a function of the settings, the seed and the state before it: the order of batches, the dropout of
words and trees, and dropout in the model are seeded by (seed, update). A training that is killed and resumed therefore
equals an uninterrupted one, on a CPU bit by bit. Several devices share each update, and what it reads and drops does
not depend on their number.

An update waits for nothing: its batches were prepared ahead, its loss stays on the device until it is logged, and
checkpoints are written in the background.
"""

import contextlib
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from tqdm import tqdm

from docmt.errors import UserError
from docmt.models.ragged import kernel_for
from docmt.models.transformer import Transformer
from docmt.text.vocabulary import N_SPECIALS
from docmt.training.batches import idle_share
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.compiling import compiled_loss
from docmt.training.devices import computed_type
from docmt.training.ledger import Ledger, Measurement
from docmt.training.loggers import Loggers
from docmt.training.loss import LossModule
from docmt.training.memory import explained_memory, probe_memory
from docmt.training.optimizer import build_optimizer, clip_gradients, set_learning_rate
from docmt.training.progress import write_history, write_progress
from docmt.training.replication import ReplicatedLoss
from docmt.training.saving import BackgroundWriter, snapshot
from docmt.training.settings import TrainingSettings
from docmt.training.state import Session, TaskState, TrainingState
from docmt.training.stopping import Interrupted, StopSignals
from docmt.training.tasks import Task
from docmt.training.updates import Update, UpdateReader, read_ahead
from docmt.training.validation import Validator

log = logging.getLogger(__name__)

IDLE_UPDATES = 1000
"""How long devices wait for one another is estimated from so many updates."""
IDLE_LIMIT = 0.05
"""The log warns if devices wait for more than this share of their time."""


class Trainer:
    """Trains a model, given on the CPU, on one task or on several that take turns, one update each.

    The folder is for checkpoints and the history so far; the initial weights of the model are used if there is no
    checkpoint. `pretrained` names the parameters that were copied from another model. Ids below `n_specials` are not
    words.
    """

    def __init__(
        self,
        model: Transformer,
        pretrained: set[str],
        *,
        tasks: Sequence[Task],
        settings: TrainingSettings,
        seed: int,
        folder: Path,
        fabric: Fabric,
        n_specials: int = N_SPECIALS,
        device_tokens: int | None = None,
        loggers: Loggers | None = None,
    ) -> None:
        self.loggers = loggers or Loggers({})
        self.settings, self.seed, self.fabric = settings, seed, fabric
        self.tasks = list(tasks)
        self.checkpoints = CheckpointFolder(folder)
        self.state = TrainingState(tasks=[TaskState(task.name) for task in tasks])
        module = (LossModule if fabric.world_size == 1 else ReplicatedLoss)(model, settings.label_smoothing)
        self.raw_module = module
        optimizer = build_optimizer(module, {f"model.{name}" for name in pretrained}, settings)
        self.module, self.optimizer = fabric.setup(module, optimizer)
        kernel = kernel_for(fabric.device, computed_type(fabric))
        module.compiled = compiled_loss(module, kernel) if settings.compile == "auto" else None
        self.reader = UpdateReader(
            self.tasks,
            model.settings,
            settings,
            seed,
            n_ranks=fabric.world_size,
            rank=fabric.global_rank,
            device_tokens=device_tokens,
            n_specials=n_specials,
            kernel=kernel,
        )
        self.signals = StopSignals(fabric)
        self.ledger = Ledger(fabric, self.signals)
        self.writer = BackgroundWriter()
        self._saved: dict[str, Any] | None = None
        self._saved_at = monotonic()
        self.validator = Validator(module, tasks=self.tasks, settings=settings, fabric=fabric, signals=self.signals)

    def run(self) -> Transformer:
        """Train until a limit is reached or patience runs out; returns the model with the best weights, on the CPU.

        Raises:
            Interrupted: SIGTERM, SIGUSR1 or SIGINT came; the state after the current update is saved.
            UserError: loss or gradients are no longer finite, memory or the disk is too small, or the best weights
                have been damaged.
        """
        is_resumed = self._resume()
        self.state.sessions.append(Session(self.state.step))
        with self.signals, contextlib.closing(self.writer), contextlib.closing(self.loggers):
            if not self._is_done() and (not is_resumed or self.fabric.device.type == "cuda"):
                self.reader.device_tokens = probe_memory(
                    self.module,
                    self.optimizer,
                    tasks=self.tasks,
                    model_settings=self.reader.model_settings,
                    settings=self.settings,
                    device_tokens=self.reader.device_tokens,
                    fabric=self.fabric,
                )
            self._report_idle_share()
            try:
                self._train()
            except Interrupted:
                self._finish_writing()
                raise
        if self.fabric.is_global_zero:
            write_history(self.checkpoints.folder / "history.csv", self.state, checksum=False)
        assert self.state.best_step is not None  # every training ends with a validation
        model = self.raw_module.model
        model.load_state_dict(self.checkpoints.load_best(self.state.best_step))
        self.fabric.barrier()
        return model.cpu().eval()

    def _train(self) -> None:
        state, settings = self.state, self.settings
        is_quiet = None if self.fabric.is_global_zero else True
        self._saved_at = monotonic()
        with tqdm(desc="train", unit=" update", total=settings.max_steps, initial=state.step, disable=is_quiet) as bar:
            if self._is_validation_due():  # a signal interrupted it before the checkpoint that we resumed from
                self._validate_and_save(bar)
            self._end_pass(bar)
            updates = read_ahead(self.reader, step=state.step, tasks=state.tasks, device=self.fabric.device)
            with contextlib.closing(updates):
                while not self._is_done():
                    started = time.perf_counter()
                    update = next(updates)
                    state.add_seconds(time.perf_counter() - started)
                    self._update(update)
                    bar.update()
                    self._after_update(bar)
                    self._end_pass(bar)
            if state.validated_step != state.step:
                self._validate_and_save(bar)
        if self._saved != state.to_dict():
            self._save()
        self._finish_writing()

    def _is_done(self) -> bool:
        state, settings = self.state, self.settings
        return (
            (settings.max_steps is not None and state.step >= settings.max_steps)
            or (settings.max_epochs is not None and state.epoch >= settings.max_epochs)
            or (settings.patience is not None and state.validations_without_gain >= settings.patience)
        )

    def _is_validation_due(self) -> bool:
        state, every = self.state, self.settings.validate_every_steps
        if state.step == 0 or state.validated_step == state.step:
            return False
        if every is not None:
            return state.step % every == 0
        return self._turn(state.step - 1) == 0 and state.tasks[0].position == 0

    def _turn(self, step: int) -> int:
        """The number of the task of update `step` + 1."""
        return step % len(self.tasks)

    def _end_pass(self, bar: tqdm) -> None:
        """Start the next pass over the instances of the task just trained, if it has read all of them."""
        state = self.state
        number = self._turn(state.step - 1)
        task = state.tasks[number]
        if task.position < self.reader.n_updates(number, task.epoch):
            return
        task.epoch += 1
        task.position = 0
        if self._is_validation_due():
            self._validate_and_save(bar)

    def _update(self, update: Update) -> None:
        """Update the weights from the share of this process in an update."""
        started = time.perf_counter()
        state, number = self.state, update.turn.task
        step = state.step + 1
        self.reader.note_size(number, update.turn.epoch, update.n_updates)
        self._seed_dropout(step)
        self.module.train()
        loss = self._backward(update)
        rate = set_learning_rate(self.optimizer, step, self.settings.warmup_steps)
        norm = clip_gradients(self.module, self.settings.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        seconds = time.perf_counter() - started
        self.ledger.add(Measurement(step, number, loss, norm, rate, update.n_labels, update.n_tokens, seconds))
        state.add_seconds(seconds)
        state.step += 1
        state.tasks[number].position += 1

    def _seed_dropout(self, step: int) -> None:
        """Seed dropout for this process and update; the first process draws the same numbers as a single one."""
        rank = [self.fabric.global_rank] if self.fabric.global_rank else []
        torch.manual_seed(int(np.random.SeedSequence((self.seed, step, *rank)).generate_state(1)[0]))

    @property
    def task(self) -> Task:
        """The task of the next update."""
        return self.tasks[self._turn(self.state.step)]

    def _backward(self, update: Update) -> torch.Tensor:
        """Compute gradients of the mean loss over all devices from the share of this process; returns its loss sum.

        The sum is a float64 scalar on the device.
        """
        n_ranks, train = self.fabric.world_size, self.task.train
        loss_sum = torch.zeros((), dtype=torch.float64, device=self.fabric.device)
        for number, part in enumerate(update.micro_batches, start=1):
            is_last = number == len(update.micro_batches)
            with (
                explained_memory(train, part.instances, self.fabric.device),
                contextlib.nullcontext() if is_last else self.fabric.no_backward_sync(self.module),
            ):
                loss = self.module(part.batch.to(self.fabric.device)) * update.weight
                # Devices average their gradients, but the mean over all labels is the sum of their parts.
                self.fabric.backward(loss / (update.n_labels / n_ranks))
            loss_sum += loss.detach()
        if isinstance(self.raw_module, ReplicatedLoss):
            self.raw_module.forget(update.micro_batches[0].batch)
        return loss_sum

    def _after_update(self, bar: tqdm) -> None:
        """Log, validate, save and stop when due."""
        state, settings = self.state, self.settings
        self.writer.check()
        self.signals.notice()
        if self.ledger.is_agreement_due():
            self._settle()
        if state.step % settings.log_every_steps == 0:
            self._log_window(bar)
        if settings.validate_every_steps is not None and self._is_validation_due():
            self._validate_and_save(bar)
        elif self._is_save_due():
            self._save()
        if not (self._is_done() and state.validated_step == state.step):
            self.signals.check()

    def _settle(self) -> None:
        """Add what the last updates measured to the state; this waits for the device."""
        started = time.perf_counter()
        self.ledger.settle(self.state, is_time_to_save=self._is_time_to_save())
        self.state.add_seconds(time.perf_counter() - started)

    def _is_time_to_save(self) -> bool:
        return monotonic() - self._saved_at >= 60 * self.settings.checkpoint_every_minutes

    def _is_save_due(self) -> bool:
        """Whether to save between validations; the same in all processes."""
        every = self.settings.checkpoint_every_steps
        is_time = self._is_time_to_save() if self.fabric.world_size == 1 else self.ledger.is_time_to_save
        return is_time or self.signals.number is not None or (every is not None and self.state.step % every == 0)

    def _log_window(self, bar: tqdm) -> None:
        self._settle()
        row = self.state.end_window(
            learning_rate=self.ledger.rate, gradient_norm=self.ledger.norm, passes=self.passes()
        )
        self.loggers.log(row, self.state.step)
        bar.set_postfix(loss=f"{row['train_loss']:.3f}", tok_s=row["tokens_per_second"])
        if bar.disable:
            log.info(
                "update %d  loss %.4f  %d tokens/s  learning rate %.3g",
                *(row[key] for key in ("step", "train_loss", "tokens_per_second", "learning_rate")),
            )
        self._write_progress()

    def passes(self) -> dict[str, float]:
        """How often each task has read its instances (Table 10 of the paper), by name."""
        return {
            task.name: round(task.epoch + task.position / self.reader.n_updates(number, task.epoch), 4)
            for number, task in enumerate(self.state.tasks)
        }

    def _validate_and_save(self, bar: tqdm) -> None:
        """Validate, and keep the weights if they are the best so far.

        Raises:
            Interrupted: a signal came first; the training is saved, and validates after resuming.
        """
        state = self.state
        self._settle()
        try:
            self.signals.check()
            measured = self.validator.run()
        except Interrupted:
            self._save()
            raise
        loss = measured["dev_loss"]
        if not math.isfinite(loss):
            raise UserError(f"training: validation loss is {loss} after update {state.step}: lower learning_rate")
        self.loggers.log(measured, state.step)
        is_best = state.add_validation(measured, passes=self.passes())
        bar.set_postfix(dev_loss=f"{loss:.4f}")
        self._save(is_best=is_best)
        log.info("update %d  epoch %d  validation loss %.4f  best %.4f", state.step, state.epoch, loss, state.best_loss)

    def _save(self, *, is_best: bool = False) -> None:
        """Let the first process write a checkpoint in the background; the others go on."""
        self._settle()
        self._saved, self._saved_at = self.state.to_dict(), monotonic()
        self.ledger.is_time_to_save = False
        if not self.fabric.is_global_zero:
            return
        content: dict[str, Any] = {
            "state": self._saved,
            "best_step": self.state.best_step,
            "weights": snapshot(self.raw_module.state_dict()),
            "optimizer": snapshot(self.optimizer.state_dict()),
        }
        self.writer.submit(self._write, content, is_best)
        self._write_progress()

    def _write(self, content: dict[str, Any], is_best: bool) -> None:
        """Write a checkpoint, the weights that are the best so far, and the history."""
        state = TrainingState.from_dict(content["state"])
        if is_best:
            names = self.raw_module.model.state_dict()
            self.checkpoints.save_best(state.step, {name: content["weights"][f"model.{name}"] for name in names})
        self.checkpoints.save(state.step, content)
        write_history(self.checkpoints.folder / "history.csv", state, checksum=False)

    def _finish_writing(self) -> None:
        """Wait until the last checkpoint is on disk; no process may end before."""
        self.writer.wait()
        self.fabric.barrier()

    def _write_progress(self) -> None:
        if self.fabric.is_global_zero:
            path = self.checkpoints.folder / "progress.json"
            write_progress(path, self.state, max_steps=self.settings.max_steps)

    def _resume(self) -> bool:
        """Resume from the newest valid checkpoint, the same in all processes; returns False if there is none."""
        content = None
        if self.fabric.is_global_zero:
            content = self.checkpoints.load_newest(max_step=self.settings.max_steps)
        step = self.fabric.broadcast(None if content is None else content["state"]["step"])
        if step is None:
            return False
        if content is None:
            content = self.checkpoints.load(step)
        self.raw_module.load_state_dict(content["weights"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.state = TrainingState.from_dict(content["state"])
        log.info("resumed after update %d", self.state.step)
        return True

    def _report_idle_share(self) -> None:
        if self.fabric.world_size == 1:
            return
        share = max(self._idle_share(number) for number in range(len(self.tasks)))
        advice = "" if share <= IDLE_LIMIT else ": raise accumulation_steps or max_batch_tokens, or use fewer devices"
        log.log(
            logging.WARNING if advice else logging.INFO,
            "%d devices share each update; they wait %.1f %% of the time for the busiest%s",
            *(self.fabric.world_size, 100 * share, advice),
        )

    def _idle_share(self, number: int) -> float:
        """How long devices wait for one another in the current pass of a task."""
        epoch = self.state.tasks[number].epoch
        n_updates = min(self.reader.n_updates(number, epoch), IDLE_UPDATES)
        updates = [self.reader.drawn(number, epoch, position) for position in range(n_updates)]
        return idle_share(updates, self.tasks[number].tokens, n_ranks=self.fabric.world_size)
