"""`docmt train`."""

import argparse
from pathlib import Path


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--settings", required=True, help='JSON or @FILE: {"model": {…}, "training": {…}}')
    parser.add_argument("--train", type=Path, required=True, help="folder of training instances")
    parser.add_argument("--dev", type=Path, required=True, help="folder of validation instances")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary file")
    parser.add_argument("--pipeline", type=Path, required=True, help="text pipeline, stored in the model")
    parser.add_argument("--init", type=Path, help="model file to start from")
    parser.add_argument("--seed", type=int, default=1, help="seed of initialisation, order and dropout")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder for checkpoints; resumes from it")
    parser.add_argument("--history", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--out", type=Path, required=True, help="model file to write")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto", help="device")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train; after a signal the exit code is 128 + its number and the next call goes on."""
    import torch

    from docmt.training.run import RunSettings, train
    from docmt.training.trainer import Interrupted

    torch.set_num_threads(options.threads)
    try:
        train(
            RunSettings.from_argument(options.settings, where="train"),
            train_folder=options.train,
            dev_folder=options.dev,
            vocabulary_file=options.vocabulary,
            pipeline_file=options.pipeline,
            init=options.init,
            seed=options.seed,
            checkpoints=options.checkpoints,
            history=options.history,
            out=options.out,
            accelerator=options.accelerator,
        )
    except Interrupted as interruption:
        return 128 + interruption.signal_number
    return 0
