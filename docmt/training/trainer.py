"""Training, top to bottom: build, read an update, step, log, validate, save, stop.

An update is a function of the settings, the seed and the previous state. The order of batches, word and tree dropout,
and dropout in the model are seeded by (seed, update). A training that is killed and resumed therefore equals an
uninterrupted one, on a CPU bit by bit. Several devices share every update. Its instances and dropped words do not
depend on their number.

An update waits for nothing: its batches were prepared ahead, its loss stays on the device until it is logged, and
checkpoints are written in the background.
"""

import contextlib
import logging
import math
from collections.abc import Generator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm, vector_to_parameters
from tqdm import tqdm

from docmt.errors import UserError
from docmt.models.attention.kernels import Kernel
from docmt.models.batch import DeviceBatch
from docmt.models.gpus import DeviceMeter
from docmt.models.systems.transformer import Transformer
from docmt.training.agreement import Interrupted, Measurement, MeasurementQueue, StopSignals
from docmt.training.checkpoints import BackgroundWriter, CheckpointFolder, layout_of, model_weights, snapshot
from docmt.training.compiling import compiled_loss
from docmt.training.entropy import EntropyMeter
from docmt.training.graphs import Number, Parts, run_parts, update_graphs
from docmt.training.input_dropout import drop_trees
from docmt.training.loggers import Loggers
from docmt.training.loss import LossModule, ValidationSums
from docmt.training.memory import MicroBatchSize, OutOfMemory, describe_oom
from docmt.training.optimizer import build_optimizer, learning_rate_factor
from docmt.training.progress import Schedule, Session, TaskState, TrainingState, write_history, write_progress
from docmt.training.settings import TrainingOptions, TrainingSettings
from docmt.training.tasks import Task
from docmt.training.updates import Update, UpdateReader, read_ahead

log = logging.getLogger(__name__)

ENTROPY_BATCHES = 4  # number of validation batches on which attention entropies are measured


class Trainer:
    """Trains a model on one task, or on several tasks that take turns, one update per turn.

    The model is on the CPU. Its weights are the initial ones, used if `folder` has no checkpoint. `pretrained` names
    the parameters that were copied from another model. The first task determines epochs and the best weights. A device
    computes up to `micro_batch_tokens` at once. None chooses the size.
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
        micro_batch_tokens: int | None = None,
        options: TrainingOptions,
        loggers: Loggers | None = None,
    ) -> None:
        self.settings, self.fabric, self.tasks = settings, fabric, list(tasks)
        self.loggers = loggers or Loggers({})
        self.state = TrainingState(tasks=[TaskState(task.name) for task in tasks])
        self.schedule = Schedule(settings, options)
        # One model with its loss in three forms: plain (weights, validation), wrapped by Fabric (autocast), and
        # compiled, which the plain form calls unless it is None.
        self.raw_module = LossModule(model, settings.label_smoothing)
        optimizer = build_optimizer(self.raw_module, {f"model.{name}" for name in pretrained}, settings)
        self.module, self.optimizer = fabric.setup(self.raw_module, optimizer)
        self.scaler = getattr(fabric.strategy.precision, "scaler", None)  # of losses, only with float16
        with fabric.autocast():
            kernel = model.kernel()
        self.compiled = compiled_loss(self.raw_module, kernel) if settings.compile == "auto" else None
        self.raw_module.compiled = self.compiled
        n_entries = sum(map(torch.numel, model.parameters())) * (fabric.world_size > 1)
        self.vector = torch.empty(n_entries, device=fabric.device)  # of gradients, the same for all graphs
        steps = self.compute, self.exchange, self.optimizer
        self.graphs = None
        if options.graphs == "auto":
            self.graphs = update_graphs(*steps, model.settings, kernel=kernel, fabric=fabric)
        self.raw_module.few_launches = self.graphs is not None
        self.reader = UpdateReader(
            self.tasks,
            model.settings,
            settings,
            seed,
            n_ranks=fabric.world_size,
            rank=fabric.global_rank,
            micro_batch_tokens=micro_batch_tokens,
            n_specials=model.n_specials,
            kernel=kernel,
            fills=self.graphs is not None,
        )
        self.signals = StopSignals(fabric)
        self.measurements = MeasurementQueue(fabric, self.signals, has_scaler=self.scaler is not None)
        start = {"weights": self.raw_module.state_dict(), "optimizer": self.optimizer.state_dict()}
        self.checkpoints = CheckpointFolder(folder, layout_of(start))
        self.writer = BackgroundWriter()
        self.micro_batch_size = MicroBatchSize(self.reader, self.checkpoints, fabric)
        self._saved: dict[str, Any] | None = None

    def run(self) -> Transformer:
        """Train until a limit is reached or patience runs out. Returns the model with the best weights, on the CPU.

        Raises Interrupted after SIGTERM, SIGUSR1 or SIGINT. The state after the current update is saved.
        """
        is_resumed = self._resume()
        self.meter = DeviceMeter(self.fabric.device)
        self.state.sessions.append(Session(self.state.step))
        with self.signals, contextlib.closing(self.writer), contextlib.closing(self.loggers):
            # On a CPU, the first session has already shown that memory suffices.
            if not self.schedule.is_done(self.state) and (not is_resumed or self.fabric.device.type == "cuda"):
                self.micro_batch_size.probe(self.module, self.optimizer, self.compiled)
            self.reader.report_idle_share(self.state.tasks)
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
        self.fabric.barrier()  # the folder may be removed once the first process is done
        return model.cpu().eval()

    def _train(self) -> None:
        state, schedule = self.state, self.schedule
        schedule.start_clock()
        self.module.train()
        is_quiet = None if self.fabric.is_global_zero else True  # None: only in a terminal
        total = self.settings.max_steps
        with (
            tqdm(desc="train", unit=" update", total=total, initial=state.step, disable=is_quiet) as bar,
            contextlib.closing(self._updates()) as updates,
        ):
            is_save_due = False
            while True:
                # Before an update, because a resumed training may have stopped before a validation that was due.
                if schedule.is_validation_due(state):
                    self._validate_and_save(bar)
                    self.module.train()
                elif is_save_due:
                    self._save()
                if schedule.is_done(state):
                    break
                self.signals.raise_if_stopped()
                update = next(updates)
                is_save_due = False
                try:
                    self._step(update)
                except Exception as error:
                    if not self._can_repeat(error):
                        raise
                    # Its frames, and the frames of its cause, keep the tensors of the update.
                    error.with_traceback(None).__context__ = None
                    continue
                bar.update()
                self._log_if_due(bar)
                # Several processes save after the same update.
                is_alone = self.fabric.world_size == 1
                is_save_due = schedule.is_time_to_save() if is_alone else self.measurements.save_requested
                is_save_due |= schedule.is_step_to_save(state) or self.signals.number is not None
        # Not for a session without updates: a kill while it replaces the only checkpoint would destroy the training.
        if {**(self._saved or {}), "sessions": None} != {**state.to_dict(), "sessions": None}:
            self._save()
        self._finish_writing()

    def _updates(self) -> Generator[Update, None, None]:
        """Yield updates without end, prepared ahead. An update that did not complete is repeated."""
        state = self.state
        while True:
            ahead = read_ahead(self.reader, step=state.step, tasks=state.tasks, device=self.fabric.device)
            step = -1
            with contextlib.closing(ahead):
                # The step is unchanged if the last update failed: it is prepared again, perhaps in smaller parts.
                while state.step != step:
                    started, step = perf_counter(), state.step
                    update = next(ahead)
                    state.add_seconds(perf_counter() - started)
                    yield update
            self.optimizer.zero_grad()
            torch.cuda.empty_cache()

    def _step(self, update: Update) -> None:
        """Make an update: draw its random numbers, compute this process's share, and count it."""
        started = perf_counter()
        state, settings = self.state, self.settings
        step, number = update.index.step, update.index.task
        self.reader.set_n_updates(number, update.index.epoch, update.n_updates)
        # A resumed training draws the same numbers. Not `torch.manual_seed`, which takes as long as everything else
        # that the CPU does for a recorded update.
        torch.default_generator.manual_seed(update.seed)
        if self.fabric.device.type == "cuda":
            torch.cuda.manual_seed(update.seed)
        factor = learning_rate_factor(step, settings.warmup_steps, settings.decay_steps)
        groups = self.optimizer.param_groups
        rates = [group["peak"] * factor for group in groups]
        self.is_exchanged = False
        if self.graphs is not None:
            results = self.graphs(update, rates)
        else:
            results = run_parts(self.compute(update, rates), lambda part: part(), self.exchange)
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate  # for checkpoints: graphs leave a tensor there
        # On a GPU, the host is ahead here: loss and norm are read when they are logged (see `MeasurementQueue`).
        seconds = perf_counter() - started
        counts = update.n_labels, update.n_tokens
        self.measurements.add(Measurement(step, number, *results, max(rates), *counts, seconds))
        state.add_seconds(seconds)
        state.step += 1
        task = state.tasks[number]
        task.position += 1
        if task.position >= update.n_updates:
            task.epoch, task.position = task.epoch + 1, 0

    def compute(self, update: Update, rates: Sequence[Number]) -> Parts:
        """Compute loss and gradients, and change the weights, without waiting for the device.

        Several devices exchange the gradients that are yielded. `UpdateGraphs` records the parts before and after them.
        All numbers that change from update to update are then on the device.
        """
        settings, fabric = self.settings, self.fabric
        loss_sum = torch.zeros((), dtype=torch.float64, device=fabric.device)
        for micro_batch in update.micro_batches:
            with describe_oom(self.tasks[update.index.task].train, micro_batch.instances, fabric.device):
                loss = self.module(micro_batch.batch.to(fabric.device)) * update.weight
                fabric.backward(loss / update.n_labels)  # the labels of all devices
            loss_sum += loss.detach()
        if fabric.world_size > 1:
            # The same in all processes: a task uses the same parameters in all of its batches.
            gradients = [p.grad for p in self.module.parameters() if p.grad is not None]
            vector = self.vector[: sum(map(torch.numel, gradients))]
            torch.cat([gradient.view(-1) for gradient in gradients], out=vector)
            yield vector
            vector_to_parameters(vector, gradients)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        if self.scaler is not None:
            # Before the norm is taken. Fabric refuses to do this for a fused optimizer.
            self.scaler.unscale_(self.optimizer.optimizer)
        parameters = list(self.module.parameters())
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None])  # stays on the device
        if settings.max_gradient_norm is not None:
            clip_grads_with_norm_(parameters, settings.max_gradient_norm, norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss_sum, norm

    def exchange(self, vector: Tensor) -> None:
        """Replace gradients by their sums over all devices."""
        self.is_exchanged = True
        torch.distributed.all_reduce(vector)

    def _can_repeat(self, failure: Exception) -> bool:
        """True if a failed update can be repeated, from here on in smaller parts, or without graphs or the compiler.

        An update is a function of its number and of weights that it has not changed yet.
        """
        if self.graphs is not None and not self.is_exchanged:
            log.warning("training continues without CUDA graphs: %s", str(failure).partition("\n")[0])
            self.graphs, self.reader.fills, self.raw_module.few_launches = None, False, False
            return True
        if isinstance(failure, OutOfMemory) and failure.n_instances > 1:
            return self.micro_batch_size.halve(self.state.step + 1)
        # After an exchange, the other devices go on with the next update.
        return bool(self.compiled and not self.is_exchanged and self.compiled.disable_if_compiler_failed(failure))

    # Logging

    def _flush_measurements(self) -> None:
        """Add the measurements of the last updates to the state. This waits for the device."""
        started = perf_counter()
        self.measurements.flush(self.state, is_time_to_save=self.schedule.is_time_to_save())
        self.state.add_seconds(perf_counter() - started)

    def _log_if_due(self, bar: tqdm) -> None:
        """Check for errors and signals. If due, read the measurements and add a row to the history."""
        self.writer.check()
        self.signals.poll()
        if self.measurements.is_flush_due():
            self._flush_measurements()
        if self.state.step % self.settings.log_every_steps != 0:
            return
        self._flush_measurements()
        row = self.state.end_window(
            learning_rate=self.measurements.rate, gradient_norm=self.measurements.norm, passes=self.passes()
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
        """Return the number of passes over the instances by task name (Table 10 of the cross-task paper)."""
        return {
            task.name: round(task.epoch + task.position / self.reader.n_updates(number, task.epoch), 4)
            for number, task in enumerate(self.state.tasks)
        }

    def _write_progress(self) -> None:
        if self.fabric.is_global_zero:
            path = self.checkpoints.folder / "progress.json"
            write_progress(path, self.state, max_steps=self.settings.max_steps)

    # Validation

    def _validate_and_save(self, bar: tqdm) -> None:
        """Validate, and keep the weights if they are the best so far.

        Raises Interrupted if a signal came first. The training is saved, and validates after resuming.
        """
        state = self.state
        self._flush_measurements()
        try:
            self.signals.raise_if_stopped()
            measured = self._validate(self.tasks[0], n_metered=ENTROPY_BATCHES)
            if len(self.tasks) > 1:
                measured[f"dev_loss_{self.tasks[0].name}"] = measured["dev_loss"]
                for task in self.tasks[1:]:
                    measured[f"dev_loss_{task.name}"] = self._validate(task)["dev_loss"]
        except Interrupted:
            self._save()
            raise
        loss = measured["dev_loss"]
        if not math.isfinite(loss):
            raise UserError(f"training: validation loss is {loss} after update {state.step}: lower learning_rate")
        self.loggers.log(measured, state.step)
        is_best = state.add_validation(measured, passes=self.passes(), is_due=self.schedule.ends_interval(state))
        bar.set_postfix(dev_loss=f"{loss:.4f}")
        self._save(is_best=is_best)
        log.info("update %d  epoch %d  validation loss %.4f  best %.4f", state.step, state.epoch, loss, state.best_loss)

    @torch.no_grad()
    def _validate(self, task: Task, *, n_metered: int = 0) -> dict[str, float]:
        """Return a task's losses in nats per label, and attention entropies in bits, by column.

        Entropies are measured on the first `n_metered` batches.
        """
        fabric, n_ranks = self.fabric, self.fabric.world_size
        self.raw_module.eval()
        batches = self.reader.validation_batches(task, n_metered)
        sums = np.zeros(len(ValidationSums._fields))
        meter = EntropyMeter(self.raw_module.model)
        with fabric.autocast():
            for first in range(0, len(batches), n_ranks):
                number = first + fabric.global_rank
                if number < len(batches):
                    is_metered = number < n_metered
                    compiled = None if is_metered else self.compiled  # a graph would not call the meter
                    with meter if is_metered else contextlib.nullcontext():
                        batch = self.dev_batch(task, batches[number], "padded" if is_metered else self.reader.kernel)
                        sums += self.raw_module.validate(batch, compiled and compiled.states)
                self.signals.all_reduce()  # all processes agree on a signal, and stop at the same batch
                if self.signals.number is not None:
                    log.info("validation interrupted; it will be repeated after resuming")
                self.signals.raise_if_stopped()
        smoothed, plain, count, other_plain, n_other = self.signals.all_reduce(*sums.tolist())
        losses = {"dev_loss": smoothed / count, "dev_nll": plain / count}
        if n_other:
            losses["dev_nll_marks"] = other_plain / n_other
        if n_metered:
            meter.all_reduce(self.signals.all_reduce)
        return losses | (meter.entropies() if n_metered else {})

    def dev_batch(self, task: Task, instances: np.ndarray, kernel: Kernel) -> DeviceBatch:
        """Collate development instances, with trees unless the model never sees any in training."""
        batch = task.collate(task.dev, instances, self.raw_module.model.settings)
        if self.settings.drop_rst == 1:  # training never uses trees
            batch = drop_trees(batch, np.zeros(len(instances)), probability=1.0)
        return batch.prepare(kernel).to(self.fabric.device)

    # Checkpoints

    def _save(self, *, is_best: bool = False) -> None:
        """Write a checkpoint in the background, from the first process. The other processes continue."""
        self._flush_measurements()
        process_joules = self.meter.joules()
        (joules,) = self.signals.all_reduce(math.nan if process_joules is None else process_joules)
        self.state.sessions[-1].joules = None if math.isnan(joules) else joules
        self._saved = self.state.to_dict()
        self.schedule.start_clock()
        self.measurements.save_requested = False
        if not self.fabric.is_global_zero:
            return
        # A copy in memory: the next update changes weights and optimizer while the thread writes.
        content: dict[str, Any] = {
            "state": self._saved,
            "best_steps": [self.state.best_step, self.state.without_end().best_step],
            "weights": snapshot(self.raw_module.state_dict()),
            "optimizer": snapshot(self.optimizer.state_dict()),
            "scaler": self.fabric.strategy.precision.state_dict(),
        }
        self.writer.submit(self._write, content, is_best)
        self._write_progress()

    def _write(self, content: dict[str, Any], is_best: bool) -> None:
        """Write the weights if they are the best so far, then the checkpoint that names them, then the history."""
        state = TrainingState.from_dict(content["state"])
        if is_best:
            self.checkpoints.save_best(state.step, model_weights(content))
        self.checkpoints.save(state.step, content)
        write_history(self.checkpoints.folder / "history.csv", state, checksum=False)

    def _finish_writing(self) -> None:
        """Wait until the last checkpoint is on disk. No process may end before."""
        self.writer.wait()
        self.fabric.barrier()

    def _resume(self) -> bool:
        """Load the newest valid checkpoint, the same in all processes. Returns False if there is none."""
        is_first, max_step = self.fabric.is_global_zero, self.settings.max_steps
        content = None
        if is_first:
            content = self.checkpoints.load_newest(max_step=max_step)
        state = self.fabric.broadcast(None if content is None else content["state"])
        if state is None:
            return False
        if content is None:
            content = self.checkpoints.load(state["step"])
        self.raw_module.load_state_dict(content["weights"])
        self.optimizer.load_state_dict(content["optimizer"])
        scaler = content.get("scaler")
        if scaler:  # of a session in float16
            self.fabric.strategy.precision.load_state_dict(scaler)
        ended = TrainingState.from_dict(state)
        self.state = ended.without_end()
        if self.schedule.is_done(self.state):
            self.state = ended
        self._saved = ended.to_dict()
        log.info("resumed after update %d", self.state.step)
        return True
