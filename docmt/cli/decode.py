"""`docmt decode`: translate instances, score given targets."""

import argparse
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.corpora.contrastive import read_suite
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.files import sha256_file, write_json, write_jsonl
from docmt.provenance import describe, write_job_facts


def add_commands(parser: CommandParser) -> None:
    """Add `translate` and `contrast`."""
    translate = parser.add_command("translate", run_translate, "translate instances by beam search")
    translate.add_paths(instances="folder of instances")
    contrast = parser.add_command(
        "contrast", run_contrast, "log probability of each candidate of a contrastive test set"
    )
    contrast.add_paths(suite="contrastive test set, JSON lines")
    contrast.add_argument("--discourse", type=Path, help="trees of the source documents, one per item")
    for command in (translate, contrast):
        command.add_settings("DecodingSettings")
        command.add_paths(model="model file", out="file to write")
        add_device_options(command)
    add_batch_option(translate)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where to compute."""
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute")


def add_batch_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how much is translated side by side."""
    parser.add_argument(
        "--batch-tokens",
        type=_positive,
        metavar="N",
        help="source tokens translated side by side; changes speed and memory, not the result (default: "
        "max_batch_tokens of the settings; on a GPU at least 98,304, less where memory ends)",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def choose_device(options: argparse.Namespace) -> str:
    """Set the number of threads and return `cpu` or `cuda`. Raises UserError if the GPU asked for is missing."""
    import torch

    torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no GPU is visible here; use --device cpu")
    if options.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return options.device


def run_translate(options: argparse.Namespace) -> None:
    """Translate a folder of instances."""
    device = choose_device(options)
    from docmt.decoding.translation import Translator
    from docmt.instances.storage import load_instances
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained, instances = load_model(options.model), load_instances(options.instances)
    of_model, of_instances = trained.provenance.get("vocabulary"), instances.manifest.get("vocabulary_sha256")
    is_another = None not in (of_model, of_instances) and of_model != of_instances
    if is_another or instances.src_tokens.max() >= len(trained.vocabulary):
        raise UserError(f"{options.instances}: built with another vocabulary than that of {options.model}")
    translator = Translator(trained, settings, device=device, batch_tokens=options.batch_tokens)
    write_jsonl(options.out, translator.translate_instances(instances))
    write_job_facts(options.out, device=device, n_devices=1)


def run_contrast(options: argparse.Namespace) -> None:
    """Score the candidates of a contrastive test set."""
    device = choose_device(options)
    from docmt.decoding.contrast import TargetScorer, score_suite
    from docmt.discourse.documents import read_discourse
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained = load_model(options.model)
    trees = read_discourse(options.discourse) if options.discourse else None
    items = score_suite(read_suite(options.suite), TargetScorer(trained, settings, device=device), trees)
    facts = {"suite": sha256_file(options.suite), "model": trained.provenance}
    provenance = describe(settings=settings.model_dump(), device=device, n_devices=1, **facts)
    write_json(options.out, {"items": items, "provenance": provenance})
