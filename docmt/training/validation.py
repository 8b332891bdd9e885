"""Validation loss and attention entropies, over all devices."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from lightning_fabric import Fabric

from docmt.models.batch import Batch
from docmt.models.plans import Kernel
from docmt.models.ragged import kernel_for
from docmt.training.batches import drop_trees, validation_batches
from docmt.training.devices import computed_type
from docmt.training.entropy import EntropyMeter
from docmt.training.loss import LossModule
from docmt.training.settings import TrainingSettings
from docmt.training.stopping import StopSignals
from docmt.training.tasks import Task

log = logging.getLogger(__name__)

ENTROPY_BATCHES = 4
"""Number of validation batches on which attention entropies are measured."""


class Validator:
    """Validates a model on the development instances of each task; the first one determines the best weights.

    The module is not wrapped for several devices. A signal interrupts a validation.
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
        self.kernel: Kernel = kernel_for(fabric.device, computed_type(fabric))

    def run(self) -> dict[str, float]:
        """Validate all tasks.

        Returns:
            `dev_loss` and `dev_nll` of the first task in nats per label, entropies in bits; with several tasks also the
            `dev_loss_{task}` of each.

        Raises:
            Interrupted: a signal came before the end.
        """
        measured = self._run(self.tasks[0], has_entropies=True)
        if len(self.tasks) == 1:
            return measured
        measured[f"dev_loss_{self.tasks[0].name}"] = measured["dev_loss"]
        for task in self.tasks[1:]:
            measured[f"dev_loss_{task.name}"] = self._run(task, has_entropies=False)["dev_loss"]
        return measured

    @torch.no_grad()
    def _run(self, task: Task, *, has_entropies: bool) -> dict[str, float]:
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
                    log.info("validation interrupted; it will be repeated after resuming")
                self.signals.check()
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
        """Collate development instances; with trees, unless the model never sees any in training."""
        batch = task.collate(task.dev, instances, self.module.model.settings)
        batch = drop_trees(batch, np.zeros(len(instances)), probability=float(self.settings.drop_rst == 1))
        return batch.prepare(self.kernel).to(self.fabric.device)
