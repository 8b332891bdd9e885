"""`docmt decode`: translate instances, score given targets."""

import argparse
from pathlib import Path
from typing import Any

from docmt.cli.main import HelpFormatter


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add `translate` and `contrast`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    translate = commands.add_parser(
        "translate", help="translate instances by beam search", formatter_class=HelpFormatter
    )
    translate.add_argument("--instances", type=Path, required=True, help="folder of instances")
    translate.set_defaults(run=run_translate)
    contrast = commands.add_parser(
        "contrast", help="log probability of each candidate of a contrastive test set", formatter_class=HelpFormatter
    )
    contrast.add_argument("--suite", type=Path, required=True, help="contrastive test set, JSON lines")
    contrast.add_argument("--discourse", type=Path, help="trees of the source documents, one per item")
    contrast.set_defaults(run=run_contrast)
    for command in (translate, contrast):
        command.add_argument("--settings", default="{}", help="DecodingSettings as JSON or @FILE")
        command.add_argument("--model", type=Path, required=True, help="model file")
        command.add_argument("--out", type=Path, required=True, help="file to write")
        add_device_options(command)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where to compute."""
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute")


def choose_device(options: argparse.Namespace) -> str:
    """Set the number of threads and return `cpu` or `cuda`. Raises UserError if the GPU asked for is missing."""
    import torch

    from docmt.errors import UserError

    torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no GPU is visible here; use --device cpu")
    if options.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return options.device


def run_translate(options: argparse.Namespace) -> None:
    """Translate a folder of instances."""
    device = choose_device(options)
    from docmt.decoding.settings import DecodingSettings
    from docmt.decoding.translation import Translator
    from docmt.files import write_jsonl
    from docmt.instances.storage import load_instances
    from docmt.models.model_file import load_model
    from docmt.provenance import write_job_facts

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    translator = Translator(load_model(options.model), settings, device=device)
    write_jsonl(options.out, translator.translate_instances(load_instances(options.instances)))
    write_job_facts(options.out, **_facts(device))


def run_contrast(options: argparse.Namespace) -> None:
    """Score the candidates of a contrastive test set."""
    device = choose_device(options)
    from docmt.corpora.contrastive import read_suite
    from docmt.decoding.contrast import TargetScorer, score_suite
    from docmt.decoding.settings import DecodingSettings
    from docmt.discourse.documents import read_discourse
    from docmt.files import write_json
    from docmt.models.model_file import load_model
    from docmt.provenance import describe

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained = load_model(options.model)
    trees = read_discourse(options.discourse) if options.discourse else None
    items = score_suite(read_suite(options.suite), TargetScorer(trained, settings, device=device), trees)
    provenance = describe(settings=settings.model_dump(), model=trained.provenance, **_facts(device))
    write_json(options.out, {"items": items, "provenance": provenance})


def _facts(device: str) -> dict[str, Any]:
    """What the table of costs needs to know."""
    return {"device": device, "n_devices": 1}
