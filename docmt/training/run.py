"""A training from files to a model file."""

import logging
from pathlib import Path

import torch
from lightning.fabric import Fabric

from docmt.errors import UserError
from docmt.files import read_json, sha256_file
from docmt.instances.storage import load_instances
from docmt.models.initialise import copy_weights
from docmt.models.model_file import TrainedModel, load_content, save_model
from docmt.models.settings import ModelSettings
from docmt.models.transformer import Transformer
from docmt.provenance import describe, fingerprint
from docmt.settings import Settings
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import Vocabulary
from docmt.training.settings import TrainingSettings
from docmt.training.trainer import Trainer

log = logging.getLogger(__name__)


class RunSettings(Settings):
    """What `docmt train` needs to know."""

    model: ModelSettings
    """Size and attention."""
    training: TrainingSettings
    """Recipe."""


def train(
    settings: RunSettings,
    *,
    train_folder: Path,
    dev_folder: Path,
    vocabulary_file: Path,
    pipeline_file: Path,
    init: Path | None,
    seed: int,
    checkpoints: Path,
    history: Path,
    out: Path,
    accelerator: str = "auto",
) -> None:
    """Train a model and write it with its history.

    Checkpoints lie in a folder of their own for each combination of settings, data and seed, so that a changed setting
    never resumes from the wrong weights. `max_steps` does not count: raising it goes on.

    Raises:
        UserError: a file does not fit, or training diverged.
    """
    vocabulary = Vocabulary.load(vocabulary_file)
    train_set, dev_set = load_instances(train_folder), load_instances(dev_folder)
    torch.manual_seed(seed)
    model = Transformer(settings.model, len(vocabulary))
    pretrained: set[str] = set()
    if init is not None:
        content = load_content(init)
        if content["vocabulary"] != list(vocabulary.symbols):
            raise UserError(f"{init}: has another vocabulary than {vocabulary_file}: train both on the same text")
        pretrained = copy_weights(model, content["weights"])
        log.info("%d of %d parameters come from %s", len(pretrained), len(list(model.parameters())), init)
    identity = {
        "model": settings.model.model_dump(),
        "training": settings.training.model_dump(exclude={"max_steps"}),
        "train": train_set.manifest["sha256"],
        "dev": dev_set.manifest["sha256"],
        "vocabulary": sha256_file(vocabulary_file),
        "init": sha256_file(init) if init else None,
        "seed": seed,
    }
    fabric = _fabric(settings.training.precision, accelerator)
    trainer = Trainer(
        model,
        pretrained,
        train=train_set,
        dev=dev_set,
        settings=settings.training,
        seed=seed,
        folder=checkpoints / fingerprint(identity),
        fabric=fabric,
    )
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    log.info("%.2fM parameters, %s, %s", n_parameters / 1e6, fabric.device, fabric._precision.precision)
    model = trainer.run()
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        data={"train": identity["train"], "dev": identity["dev"]},
        init=identity["init"],
        n_parameters=n_parameters,
        best_step=trainer.state.best_step,
        steps=trainer.state.step,
        seconds=round(trainer.state.seconds, 1),
        device=str(fabric.device),
    )
    pipeline = TextPipeline.from_dict(read_json(pipeline_file))
    segmentation = train_set.manifest.get("provenance", {}).get("settings", {})
    save_model(out, TrainedModel(model, vocabulary, pipeline, segmentation, provenance))
    trainer.write_history(history)


def _fabric(precision: str, accelerator: str) -> Fabric:
    """One device; bfloat16 by default on a GPU."""
    is_gpu = accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
    use_bfloat16 = precision == "bfloat16" or (precision == "auto" and is_gpu)
    return Fabric(accelerator=accelerator, devices=1, precision="bf16-mixed" if use_bfloat16 else "32-true")
