"""Validation loss and attention entropies, over all devices."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from lightning.fabric import Fabric

from docmt.models.batch import Batch
from docmt.training.batches import drop_trees, validation_batches
from docmt.training.entropy import EntropyMeter
from docmt.training.loss import LossModule
from docmt.training.settings import TrainingSettings
from docmt.training.stopping import StopSignals
from docmt.training.tasks import Task

log = logging.getLogger(__name__)

ENTROPY_BATCHES = 4
"""Validation batches on which attention entropies are measured."""


class Validator:
    """Validates a model on the development instances of each task.

    Args:
        module: the model with its loss, not wrapped for several devices.
        tasks: the first one decides which weights are the best.
        settings: the recipe.
        fabric: devices and precision.
        signals: a signal ends a validation early.
    """

    def __init__(
        self,
        module: LossModule,
        *,
        tasks: Sequence[Task],
        settings: TrainingSettings,
        fabric: Fabric,
        signals: StopSignals,
    ) -> None:
        self.module, self.tasks, self.settings = module, tasks, settings
        self.fabric, self.signals = fabric, signals

    def run(self) -> dict[str, float] | None:
        """`dev_loss` and `dev_nll` of the first task in nats per label, entropies in bits; of several tasks the
        `dev_loss_{task}` of each. None when a signal came before the end.
        """
        measured = self._run(self.tasks[0], has_entropies=True)
        if len(self.tasks) == 1 or measured is None:
            return measured
        measured[f"dev_loss_{self.tasks[0].name}"] = measured["dev_loss"]
        for task in self.tasks[1:]:
            further = self._run(task, has_entropies=False)
            if further is None:
                return None
            measured[f"dev_loss_{task.name}"] = further["dev_loss"]
        return measured

    @torch.no_grad()
    def _run(self, task: Task, *, has_entropies: bool) -> dict[str, float] | None:
        n_ranks, rank = self.fabric.world_size, self.fabric.global_rank
        self.module.eval()
        batches = validation_batches(task.dev, max_tokens=self.settings.max_batch_tokens)
        sums = np.zeros(3)
        meter = EntropyMeter(self.module.model)
        n_metered = ENTROPY_BATCHES if has_entropies else 0
        with self.fabric.autocast():
            for first in range(0, len(batches), n_ranks):
                if first + rank < len(batches):
                    is_metered = first + rank < n_metered
                    sums += self._sums(task, batches[first + rank], meter if is_metered else None)
                self.signals.add_up()
                if self.signals.number is not None:
                    log.info("this validation is broken off and made again after the resume")
                    return None
        smoothed, plain, count = self.signals.add_up(*sums.tolist())
        losses = {"dev_loss": smoothed / count, "dev_nll": plain / count}
        if not has_entropies:
            return losses
        meter.add_up(self.signals.add_up)
        return losses | {f"entropy_{kind}": value for kind, value in meter.entropies().items()}

    def _sums(self, task: Task, instances: np.ndarray, meter: EntropyMeter | None) -> tuple[float, float, int]:
        batch = self.batch(task, instances)
        if meter is None:
            return self.module.validate(batch)
        with meter:
            return self.module.validate(batch)

    def batch(self, task: Task, instances: np.ndarray) -> Batch:
        """With trees, unless the model never sees one."""
        batch = task.collate(task.dev, instances, self.module.model.settings, device=self.fabric.device)
        return drop_trees(batch, np.zeros(len(instances)), probability=float(self.settings.drop_rst == 1))
