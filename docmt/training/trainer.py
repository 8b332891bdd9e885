"""The training loop.

Every update is a function of the settings, the seed and the state before it: the order of batches, dropout of words
and trees and dropout are seeded by (seed, update). So a killed and resumed training equals an uninterrupted one, on a
CPU bit by bit.
"""

import logging
import math
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import torch
from lightning.fabric import Fabric
from tqdm import tqdm

from docmt.errors import UserError
from docmt.files import atomic_writer
from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch, collate
from docmt.models.transformer import Transformer
from docmt.training.batches import drop_trees, drop_words, training_batches, validation_batches
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.entropy import EntropyMeter
from docmt.training.loss import LossModule
from docmt.training.optimizer import build_optimizer, set_learning_rate
from docmt.training.settings import TrainingSettings
from docmt.training.state import HISTORY_COLUMNS, TrainingState, Window

log = logging.getLogger(__name__)

ENTROPY_BATCHES = 4
"""Validation batches on which attention entropies are measured."""
TREES = 1
"""Keeps the random numbers of dropped trees apart from those of dropped words."""


class Interrupted(Exception):
    """A signal asked to stop; the state is saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class Trainer:
    """Trains one model on one set of instances.

    Args:
        model: on the CPU; its initial weights count when there is no checkpoint.
        pretrained: names of parameters that were copied from another model.
        train, dev: instances.
        settings: the recipe.
        seed: of order, word dropout and dropout.
        folder: for checkpoints and the running history.
        fabric: device and precision.
    """

    def __init__(
        self,
        model: Transformer,
        pretrained: set[str],
        *,
        train: InstanceSet,
        dev: InstanceSet,
        settings: TrainingSettings,
        seed: int,
        folder: Path,
        fabric: Fabric,
    ) -> None:
        self.settings, self.seed, self.fabric = settings, seed, fabric
        self.train_set, self.dev_set = train, dev
        self.checkpoints = CheckpointFolder(folder)
        self.state = TrainingState()
        module = LossModule(model, settings.label_smoothing)
        self.raw_module = module
        optimizer = build_optimizer(module, {f"model.{name}" for name in pretrained}, settings)
        self.module, self.optimizer = fabric.setup(module, optimizer)
        self.model_settings = model.settings
        self.stop_signal: int | None = None

    def run(self) -> Transformer:
        """Train until a limit or the patience is reached; returns the model with the best weights, on the CPU.

        Raises:
            Interrupted: SIGTERM, SIGUSR1 or SIGINT came; the state after the running update is saved.
            UserError: loss or gradients are no longer finite.
        """
        self._resume()
        handlers = {n: signal.signal(n, self._note_signal) for n in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)}
        try:
            self._train()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        self.write_history(self.checkpoints.folder / "history.csv")
        model = self.raw_module.model
        model.load_state_dict(self.checkpoints.load_best(self.state.best_step))
        return model.cpu().eval()

    def write_history(self, path: Path) -> None:
        """Write the history as CSV; what was not measured is empty."""
        with atomic_writer(path) as file:
            pd.DataFrame(self.state.history, columns=list(HISTORY_COLUMNS)).to_csv(file, index=False)

    def _train(self) -> None:
        state, settings = self.state, self.settings
        with tqdm(desc="train", unit=" update", total=settings.max_steps, initial=state.step, disable=None) as bar:
            while not self._is_done():
                updates = self._updates(state.epoch)
                while state.position < len(updates) and not self._is_done():
                    self._update(updates[state.position])
                    state.step += 1
                    state.position += 1
                    bar.update()
                    self._after_update(bar)
                if state.position >= len(updates):
                    state.epoch += 1
                    state.position = 0
                    if settings.validate_every_steps is None:
                        self._validate(bar)
                        self._save()
        if state.validated_step != state.step:
            self._validate(bar)
        self._save()

    def _is_done(self) -> bool:
        state, settings = self.state, self.settings
        return (
            (settings.max_steps is not None and state.step >= settings.max_steps)
            or (settings.max_epochs is not None and state.epoch >= settings.max_epochs)
            or (settings.patience is not None and state.validations_without_gain >= settings.patience)
        )

    def _updates(self, epoch: int) -> list[list[np.ndarray]]:
        """The batches of each update of an epoch."""
        n = self.settings.accumulation_steps
        batches = training_batches(
            self.train_set, max_tokens=self.settings.max_batch_tokens, seed=self.seed, epoch=epoch
        )
        return [batches[first : first + n] for first in range(0, len(batches), n)]

    def _update(self, groups: list[np.ndarray]) -> None:
        """One update of the weights from the batches of `groups`."""
        state, settings = self.state, self.settings
        started = time.perf_counter()
        step = state.step + 1
        torch.manual_seed(int(np.random.SeedSequence((self.seed, step)).generate_state(1)[0]))
        batches = [self._training_batch(group, number) for number, group in enumerate(groups)]
        n_labels = sum(len(batch.tgt_labels_N) for batch in batches)
        loss_sum = 0.0
        self.module.train()
        for batch in batches:
            loss = self.module(batch)
            self.fabric.backward(loss / n_labels)
            loss_sum += float(loss.detach())
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
        n_tokens = sum(len(batch.src_tokens_S) + len(batch.tgt_inputs_N) for batch in batches)
        seconds = time.perf_counter() - started
        state.tokens += n_tokens
        state.seconds += seconds
        window = state.window
        window.loss += loss_sum
        window.labels += n_labels
        window.tokens += n_tokens
        window.seconds += seconds

    def _training_batch(self, instances: np.ndarray, number: int) -> Batch:
        settings, state = self.settings, self.state
        batch = collate(self.train_set, instances, self.model_settings, device=self.fabric.device)
        limit = settings.word_dropout_epochs
        probability = settings.word_dropout if limit is None or state.epoch < limit else 0.0
        seed = (self.seed, state.epoch, state.position, number)
        batch = drop_words(batch, probability=probability, seed=seed)
        return drop_trees(batch, probability=settings.drop_rst, seed=(*seed, TREES))

    def _validation_batch(self, instances: np.ndarray) -> Batch:
        """With trees, unless the model never sees one."""
        batch = collate(self.dev_set, instances, self.model_settings, device=self.fabric.device)
        return drop_trees(batch, probability=float(self.settings.drop_rst == 1), seed=(self.seed,))

    def _after_update(self, bar: tqdm) -> None:
        """Log, validate, save and stop where they are due."""
        state, settings = self.state, self.settings
        if state.step % settings.log_every_steps == 0:
            self._log_window(bar)
        if settings.validate_every_steps is not None and state.step % settings.validate_every_steps == 0:
            self._validate(bar)
            self._save()
        elif state.step % settings.checkpoint_every_steps == 0 or self.stop_signal is not None:
            self._save()
        if self.stop_signal is not None and not self._is_done():
            raise Interrupted(self.stop_signal)

    def _log_window(self, bar: tqdm) -> None:
        """Add a row to the history and start a new window."""
        state, window = self.state, self.state.window
        row = {
            "step": state.step,
            "epoch": state.epoch,
            "tokens": state.tokens,
            "seconds": round(state.seconds, 3),
            "tokens_per_second": round(window.tokens / window.seconds),
            "learning_rate": self.last_rate,
            "gradient_norm": self.last_norm,
            "train_loss": window.loss / window.labels,
        }
        state.history.append(row)
        state.window = Window()
        bar.set_postfix(loss=f"{row['train_loss']:.3f}", tok_s=row["tokens_per_second"])
        if bar.disable:
            log.info(
                "update %d  loss %.4f  %d tokens/s  learning rate %.3g",
                *(row[key] for key in ("step", "train_loss", "tokens_per_second", "learning_rate")),
            )

    @torch.no_grad()
    def _validate(self, bar: tqdm) -> None:
        """Validation loss and attention entropies; keeps the weights when they are the best so far."""
        state = self.state
        self.module.eval()
        batches = validation_batches(self.dev_set, max_tokens=self.settings.max_batch_tokens)
        smoothed = plain = count = 0.0
        meter = EntropyMeter(self.raw_module.model)
        with self.fabric.autocast():
            for number, instances in enumerate(batches):
                batch = self._validation_batch(instances)
                if number < ENTROPY_BATCHES:
                    with meter:
                        sums = self.raw_module.validate(batch)
                else:
                    sums = self.raw_module.validate(batch)
                smoothed, plain, count = smoothed + sums[0], plain + sums[1], count + sums[2]
        loss = smoothed / count
        if not math.isfinite(loss):
            raise UserError(f"training: validation loss is {loss} after update {state.step}: lower learning_rate")
        entropies = {f"entropy_{kind}": value for kind, value in meter.entropies().items()}
        measured = {"dev_loss": loss, "dev_nll": plain / count, **entropies}
        if not state.history or state.history[-1]["step"] != state.step:
            state.history.append({"step": state.step, "tokens": state.tokens, "seconds": round(state.seconds, 3)})
        state.history[-1] |= {"epoch": state.epoch, **measured}
        state.validated_step = state.step
        if state.best_loss is None or loss < state.best_loss:
            state.best_loss, state.best_step, state.validations_without_gain = loss, state.step, 0
            self.checkpoints.save_best(state.step, self.raw_module.model.state_dict())
        else:
            state.validations_without_gain += 1
        bar.set_postfix(dev_loss=f"{loss:.4f}")
        log.info("update %d  epoch %d  validation loss %.4f  best %.4f", state.step, state.epoch, loss, state.best_loss)

    def _save(self) -> None:
        content: dict[str, Any] = {
            "state": self.state.to_dict(),
            "best_step": self.state.best_step,
            "weights": self.raw_module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        self.checkpoints.save(self.state.step, content)
        self.write_history(self.checkpoints.folder / "history.csv")

    def _resume(self) -> None:
        content = self.checkpoints.load_newest(max_step=self.settings.max_steps)
        if content is None:
            return
        self.raw_module.load_state_dict(content["weights"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.state = TrainingState.from_dict(content["state"])
        log.info("resumed after update %d", self.state.step)

    def _note_signal(self, number: int, _: FrameType | None) -> None:
        log.warning("%s: saving a checkpoint after the running update", signal.Signals(number).name)
        self.stop_signal = number
