"""The training loop.

Every update is a function of the settings, the seed and the state before it: the order of batches, the dropout of
words and trees, and dropout in the model are seeded by (seed, update). A training that is killed and resumed therefore
equals an uninterrupted one, on a CPU bit by bit. Several devices share each update, and what it reads and drops does
not depend on their number.
"""

import contextlib
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from tqdm import tqdm

from docmt.errors import UserError
from docmt.models.batch import Batch
from docmt.models.transformer import Transformer
from docmt.text.vocabulary import N_SPECIALS
from docmt.training.batches import (
    Draws,
    draw,
    drop_trees,
    drop_words,
    idle_share,
    n_inputs,
    share_update,
    training_batches,
)
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.loss import LossModule
from docmt.training.memory import explained_memory, probe_memory
from docmt.training.optimizer import build_optimizer, set_learning_rate
from docmt.training.progress import write_history, write_progress
from docmt.training.settings import TrainingSettings
from docmt.training.state import Session, TaskState, TrainingState
from docmt.training.stopping import Interrupted, StopSignals
from docmt.training.tasks import Reading, Task
from docmt.training.validation import Validator

log = logging.getLogger(__name__)

TASKS = 0x7461736B
"""With the number of a task, part of the seeds of all but the first, so that no two draw the same random numbers."""
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
    ) -> None:
        self.settings, self.seed, self.fabric = settings, seed, fabric
        self.tasks, self.n_specials = list(tasks), n_specials
        self.checkpoints = CheckpointFolder(folder)
        self.state = TrainingState(tasks=[TaskState(task.name) for task in tasks])
        self._passes: list[tuple[int, list[list[np.ndarray]]] | None] = [None for _ in tasks]
        module = LossModule(model, settings.label_smoothing)
        self.raw_module = module
        optimizer = build_optimizer(module, {f"model.{name}" for name in pretrained}, settings)
        self.module, self.optimizer = fabric.setup(module, optimizer)
        self.model_settings = model.settings
        self.signals = StopSignals(fabric)
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
        with self.signals:
            if not self._is_done() and (not is_resumed or self.fabric.device.type == "cuda"):
                probe_memory(
                    self.module,
                    self.optimizer,
                    tasks=self.tasks,
                    model_settings=self.model_settings,
                    max_tokens=self.settings.max_batch_tokens,
                    fabric=self.fabric,
                )
            self._report_idle_share()
            self._train()
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
        with tqdm(desc="train", unit=" update", total=settings.max_steps, initial=state.step, disable=is_quiet) as bar:
            if self._is_validation_due():  # a signal interrupted it before the checkpoint that we resumed from
                self._validate_and_save(bar)
            self._end_pass(bar)
            while not self._is_done():
                number = self._turn(state.step)
                self._update(self._updates(number)[state.tasks[number].position])
                state.step += 1
                state.tasks[number].position += 1
                bar.update()
                self._after_update(bar)
                self._end_pass(bar)
            if state.validated_step != state.step:
                self._validate_and_save(bar)
        self._save()

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
        if task.position < len(self._updates(number)):
            return
        task.epoch += 1
        task.position = 0
        if self._is_validation_due():
            self._validate_and_save(bar)

    def _updates(self, number: int) -> list[list[np.ndarray]]:
        """The batches of each update in the current pass of a task."""
        epoch = self.state.tasks[number].epoch
        drawn = self._passes[number]
        if drawn is None or drawn[0] != epoch:
            batches = training_batches(
                self.tasks[number].train,
                max_tokens=self.settings.max_batch_tokens,
                seed=self.seed,
                epoch=epoch,
                stream=self._stream(number),
            )
            n = self.settings.accumulation_steps
            drawn = self._passes[number] = (epoch, [batches[i : i + n] for i in range(0, len(batches), n)])
        return drawn[1]

    @staticmethod
    def _stream(number: int) -> tuple[int, ...]:
        """The part of a task's seeds that does not depend on its progress."""
        return (TASKS, number) if number else ()

    def _update(self, drawn: list[np.ndarray]) -> None:
        """Update the weights from the batches drawn for this update, of which this process reads its share."""
        state, settings = self.state, self.settings
        started = time.perf_counter()
        step = state.step + 1
        self._seed_dropout(step)
        number = self._turn(state.step)
        reading = self.task.read(drawn, epoch=state.tasks[number].epoch)
        src_inputs, tgt_inputs = n_inputs(reading.instance_set, np.concatenate(reading.batches), self.model_settings)
        n_labels = int(tgt_inputs.sum())
        self.module.train()
        (loss_sum,) = self.signals.add_up(self._backward(reading, n_labels))
        rate = set_learning_rate(self.optimizer, step, settings.warmup_steps)
        norm = float(torch.nn.utils.clip_grad_norm_(self.module.parameters(), settings.max_gradient_norm or math.inf))
        if not (math.isfinite(norm) and math.isfinite(loss_sum)):
            raise UserError(
                f"training: loss {loss_sum / n_labels:.4g}, gradient norm {norm:.4g} at update {step}, learning rate "
                f"{rate:.3g}: lower learning_rate or set max_gradient_norm; the last checkpoint is kept"
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.last_rate, self.last_norm = rate, norm
        state.add_update(
            number,
            loss=loss_sum,
            labels=n_labels,
            tokens=int(src_inputs.sum()) + n_labels,
            seconds=time.perf_counter() - started,
        )

    def _seed_dropout(self, step: int) -> None:
        """Seed dropout for this process and update; the first process draws the same numbers as a single one."""
        rank = [self.fabric.global_rank] if self.fabric.global_rank else []
        torch.manual_seed(int(np.random.SeedSequence((self.seed, step, *rank)).generate_state(1)[0]))

    @property
    def task(self) -> Task:
        """The task of the next update."""
        return self.tasks[self._turn(self.state.step)]

    def _backward(self, reading: Reading, n_labels: int) -> float:
        """Compute gradients of the mean loss over all devices from the share of this process; returns its loss sum."""
        n_ranks = self.fabric.world_size
        shares = share_update(
            reading.batches,
            reading.tokens,
            n_ranks=n_ranks,
            turn=self.state.tasks[self._turn(self.state.step)].position,
            max_tokens=self.settings.max_batch_tokens,
        )
        share = shares[self.fabric.global_rank]
        draws = self._draws(reading)
        weight = 1.0
        if not share:  # all processes must take part in exchanging gradients
            share, weight = [reading.batches[0][:1]], 0.0
        loss_sum = 0.0
        for number, instances in enumerate(share, start=1):
            with (
                explained_memory(reading.instance_set, instances, self.fabric.device),
                self.fabric.no_backward_sync(self.module) if number < len(share) else contextlib.nullcontext(),
            ):
                loss = self.module(self._training_batch(reading, instances, draws)) * weight
                # Devices average their gradients, but the mean over all labels is the sum of their parts.
                self.fabric.backward(loss / (n_labels / n_ranks))
            loss_sum += float(loss.detach())
        return loss_sum

    def _draws(self, reading: Reading) -> dict[int, Draws]:
        """The random numbers of each instance in the current update."""
        turn = self._turn(self.state.step)
        task, draws = self.state.tasks[turn], {}
        for number, instances in enumerate(reading.batches):
            seed = (self.seed, task.epoch, task.position, number, *self._stream(turn))
            draws |= draw(reading.instance_set, instances, self.model_settings, seed=seed)
        return draws

    def _training_batch(self, reading: Reading, instances: np.ndarray, draws: dict[int, Draws]) -> Batch:
        settings = self.settings
        batch = self.task.collate(reading.instance_set, instances, self.model_settings)
        limit = settings.word_dropout_epochs
        probability = settings.word_dropout if limit is None or self.state.epoch < limit else 0.0
        numbers = [draws[instance] for instance in instances.tolist()]
        batch = drop_words(batch, numbers, probability=probability, n_specials=self.n_specials)
        batch = drop_trees(batch, np.array([n.tree for n in numbers]), probability=settings.drop_rst)
        return batch.to(self.fabric.device)

    def _after_update(self, bar: tqdm) -> None:
        """Log, validate, save and stop when due."""
        state, settings = self.state, self.settings
        if state.step % settings.log_every_steps == 0:
            self._log_window(bar)
        if settings.validate_every_steps is not None and self._is_validation_due():
            self._validate_and_save(bar)
        elif state.step % settings.checkpoint_every_steps == 0 or self.signals.number is not None:
            self._save()
        if not (self._is_done() and state.validated_step == state.step):
            self.signals.check()

    def _log_window(self, bar: tqdm) -> None:
        row = self.state.end_window(learning_rate=self.last_rate, gradient_norm=self.last_norm, passes=self.passes())
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
            task.name: round(task.epoch + task.position / len(self._updates(number)), 4)
            for number, task in enumerate(self.state.tasks)
        }

    def _validate_and_save(self, bar: tqdm) -> None:
        """Validate, and keep the weights if they are the best so far.

        Raises:
            Interrupted: a signal came first; the training is saved, and validates after resuming.
        """
        state = self.state
        try:
            self.signals.check()
            measured = self.validator.run()
        except Interrupted:
            self._save()
            raise
        loss = measured["dev_loss"]
        if not math.isfinite(loss):
            raise UserError(f"training: validation loss is {loss} after update {state.step}: lower learning_rate")
        if state.add_validation(measured, passes=self.passes()) and self.fabric.is_global_zero:
            self.checkpoints.save_best(state.step, self.raw_module.model.state_dict())
        bar.set_postfix(dev_loss=f"{loss:.4f}")
        self._save()
        log.info("update %d  epoch %d  validation loss %.4f  best %.4f", state.step, state.epoch, loss, state.best_loss)

    def _save(self) -> None:
        """Let the first process write a checkpoint while the others wait."""
        if self.fabric.is_global_zero:
            content: dict[str, Any] = {
                "state": self.state.to_dict(),
                "best_step": self.state.best_step,
                "weights": self.raw_module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            }
            self.checkpoints.save(self.state.step, content)
            write_history(self.checkpoints.folder / "history.csv", self.state, checksum=False)
            self._write_progress()
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
        share = max(
            idle_share(
                self._updates(number),
                task.tokens,
                n_ranks=self.fabric.world_size,
                max_tokens=self.settings.max_batch_tokens,
            )
            for number, task in enumerate(self.tasks)
        )
        advice = "" if share <= IDLE_LIMIT else ": raise accumulation_steps or max_batch_tokens, or use fewer devices"
        log.log(
            logging.WARNING if advice else logging.INFO,
            "%d devices share each update; they wait %.1f %% of the time for the busiest%s",
            *(self.fabric.world_size, 100 * share, advice),
        )
