"""Validation loss and attention entropies, over all devices."""

import logging

import numpy as np
import torch
from lightning.fabric import Fabric

from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch, collate
from docmt.training.batches import drop_trees, validation_batches
from docmt.training.entropy import EntropyMeter
from docmt.training.loss import LossModule
from docmt.training.settings import TrainingSettings
from docmt.training.stopping import StopSignals

log = logging.getLogger(__name__)

ENTROPY_BATCHES = 4
"""Validation batches on which attention entropies are measured."""


class Validator:
    """Validates a model on one set of instances.

    Args:
        module: the model with its loss, not wrapped for several devices.
        dev: instances.
        settings: the recipe.
        fabric: devices and precision.
        signals: a signal ends a validation early.
    """

    def __init__(
        self, module: LossModule, *, dev: InstanceSet, settings: TrainingSettings, fabric: Fabric, signals: StopSignals
    ) -> None:
        self.module, self.dev_set, self.settings = module, dev, settings
        self.fabric, self.signals = fabric, signals

    @torch.no_grad()
    def run(self) -> dict[str, float] | None:
        """`dev_loss` and `dev_nll` in nats per label, entropies in bits; None when a signal came before the end."""
        n_ranks, rank = self.fabric.world_size, self.fabric.global_rank
        self.module.eval()
        batches = validation_batches(self.dev_set, max_tokens=self.settings.max_batch_tokens)
        sums = np.zeros(3)
        meter = EntropyMeter(self.module.model)
        with self.fabric.autocast():
            for first in range(0, len(batches), n_ranks):
                if first + rank < len(batches):
                    sums += self._sums(batches[first + rank], meter if first + rank < ENTROPY_BATCHES else None)
                self.signals.add_up()
                if self.signals.number is not None:
                    log.info("this validation is broken off and made again after the resume")
                    return None
        smoothed, plain, count = self.signals.add_up(*sums.tolist())
        meter.add_up(self.signals.add_up)
        entropies = {f"entropy_{kind}": value for kind, value in meter.entropies().items()}
        return {"dev_loss": smoothed / count, "dev_nll": plain / count, **entropies}

    def _sums(self, instances: np.ndarray, meter: EntropyMeter | None) -> tuple[float, float, int]:
        batch = self.batch(instances)
        if meter is None:
            return self.module.validate(batch)
        with meter:
            return self.module.validate(batch)

    def batch(self, instances: np.ndarray) -> Batch:
        """With trees, unless the model never sees one."""
        batch = collate(self.dev_set, instances, self.module.model.settings, device=self.fabric.device)
        return drop_trees(batch, np.zeros(len(instances)), probability=float(self.settings.drop_rst == 1))
