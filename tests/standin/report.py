"""Prints what a GPU would do, by line of code: `PYTHONPATH=tests:. python -m standin.report --preset rst_mix`."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import standin.device  # before torch

# isort: split
from core_fixtures import make_study

from docmt.decoding.settings import DecodingSettings
from standin.counting import KINDS, Counts
from standin.scenarios import HALF, decode, micro_batch, random_trained, updates

DEVICE = standin.device.LIBRARY
KEEP_QUIET = {"log_every_steps": 1000, "validate_every_steps": 1000, "checkpoint_every_steps": 1000}


def _micro_batch(preset: str) -> tuple[str, Counts]:
    return "forward and backward of one micro-batch, 6 + 6 layers", micro_batch(preset)


def _update(preset: str) -> tuple[str, Counts]:
    with tempfile.TemporaryDirectory() as folder:
        study = make_study(Path(folder) / "study")
        training = KEEP_QUIET | {"max_steps": 6, "precision": "auto"}
        counts, _ = updates(study, Path(folder), preset, model=HALF, training=training)
    return "the fourth update of a training, 2 + 2 layers", counts[2]


def _decode(preset: str) -> tuple[str, Counts]:
    with tempfile.TemporaryDirectory() as folder:
        study = make_study(Path(folder))
        settings = DecodingSettings(beam_size=3, max_length_offset=4)
        found = decode(random_trained(study, preset, **HALF), study, settings, device="cuda")
    return f"translation of 8 documents in {found.n_steps} steps, 2 + 2 layers", found.counts


WHAT: dict[str, Callable[[str], tuple[str, Counts]]] = {
    "micro-batch": _micro_batch,
    "update": _update,
    "decode": _decode,
}


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="g_transformer")
    parser.add_argument("--what", choices=WHAT, default="update")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind of events; repeat for several")
    arguments = parser.parse_args()
    title, counts = WHAT[arguments.what](arguments.preset)
    print(f"{arguments.preset}: {title}")
    print(counts.describe(*(arguments.kind or ())))


if __name__ == "__main__":
    main()
