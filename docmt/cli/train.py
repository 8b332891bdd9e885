"""`docmt train`."""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import get_args

from docmt.cli.options import CommandParser
from docmt.training.launching import LOST_PEER, is_lost_peer, launch
from docmt.training.settings import LoggerName

log = logging.getLogger(__name__)


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("--settings", required=True, help='JSON or @FILE: {"model": {…}, "training": {…}}')
    parser.add_paths(train="folder of training instances", dev="folder of validation instances")
    parser.add_argument("--sentences", type=Path, help="folder of sentence pairs, for the task `pairs`")
    parser.add_argument("--monolingual", type=Path, help="folder of monolingual documents, for the task `restoration`")
    parser.add_argument("--monolingual-lang", help="language of --monolingual; default: the source language")
    parser.add_paths(vocabulary="vocabulary file", pipeline="text pipeline, stored in the model")
    parser.add_argument("--init", type=Path, help="model file, or folder of a published model, to start from")
    parser.add_argument("--seed", type=int, default=1, help="seed of initialization, order and dropout")
    parser.add_paths(checkpoints="folder for checkpoints, to resume from")
    parser.add_paths(history="CSV file to write", out="model file to write")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto", help="kind of device")
    parser.add_argument(
        "--devices", type=int, default=1, help="devices per node, one process each; 0 means one process on the CPU"
    )
    parser.add_argument("--nodes", type=int, default=1, help="nodes; each runs the same command")
    parser.add_argument(
        "--device-tokens",
        type=int,
        default=0,
        help="tokens that a device computes at once, whatever the size of an update; 0 means what the memory of a GPU "
        "allows, max_batch_tokens on a CPU",
    )
    summary = "loggers that follow the training, in `loggers/` beside the model"
    parser.add_argument("--loggers", nargs="*", choices=get_args(LoggerName), default=[], help=summary)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train; after a signal the exit code is 128 + its number, and the next call resumes."""
    if options.devices == 0:
        options.accelerator, options.devices = "cpu", 1
    n_devices = options.devices * options.nodes
    if n_devices > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    code = launch(sys.argv[1:], devices=options.devices, nodes=options.nodes)
    if code is not None:
        return code
    if n_devices == 1:
        return _train(options)
    if any(int(os.environ.get(name, 0)) for name in ("LOCAL_RANK", "NODE_RANK")):
        logging.getLogger("docmt").setLevel(logging.ERROR)  # the first process logs for all
    try:
        return _train(options)
    except RuntimeError as error:
        if not is_lost_peer(error):
            raise
        log.info("lost the connection to another process: %s", str(error).splitlines()[0])
        return LOST_PEER


def _start(init: Path | None) -> Path | None:
    """A model file, or the folder of a published model, which its config.json stands for in the workflow."""
    return init.parent if init is not None and init.name == "config.json" else init


def _train(options: argparse.Namespace) -> int:
    import torch

    from docmt.training.run import RunSettings, TrainingFiles, train
    from docmt.training.stopping import Interrupted

    torch.set_num_threads(options.threads)
    try:
        train(
            RunSettings.from_argument(options.settings, where="train"),
            TrainingFiles(
                train_folder=options.train,
                dev_folder=options.dev,
                vocabulary_file=options.vocabulary,
                pipeline_file=options.pipeline,
                checkpoints=options.checkpoints,
                history=options.history,
                out=options.out,
                init=_start(options.init),
                sentences_folder=options.sentences,
                monolingual_folder=options.monolingual,
                monolingual_lang=options.monolingual_lang,
            ),
            seed=options.seed,
            accelerator=options.accelerator,
            devices=options.devices,
            nodes=options.nodes,
            device_tokens=options.device_tokens or None,
            loggers=options.loggers,
        )
    except Interrupted as interruption:
        return 128 + interruption.signal_number
    return 0
