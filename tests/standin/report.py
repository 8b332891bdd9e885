"""Prints GPU operations by line of code: `PYTHONPATH=tests:. python -m standin.report PRESET [KIND …]`.

Kinds of events are in `counting.KINDS`. The default is all kinds.
"""

import sys
import tempfile
from pathlib import Path

import standin.device  # before torch

# isort: split
from core_fixtures import make_study

from standin.scenarios import HALF, QUIET, micro_batch, updates

DEVICE = standin.device.LIBRARY


def main() -> None:
    """Print a table for an update, and one for a micro-batch."""
    preset, *kinds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        study, training = make_study(Path(folder) / "study"), QUIET | {"max_steps": 6, "log_every_steps": 100}
        counts = updates(study, Path(folder), preset, model=HALF, training=training)
    print(f"{preset}: the fourth update of a training, 2 + 2 layers\n{counts[2].describe(*kinds)}")
    print(f"{preset}: forward and backward of a micro-batch, 6 + 6 layers\n{micro_batch(preset).describe(*kinds)}")


if __name__ == "__main__":
    main()
