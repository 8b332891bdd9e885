"""A tiny corpus and tiny models for tests of instances, models, training and decoding."""

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.gpu import workload
from benchmarks.gpu.workload import TINY, random_model
from docmt.corpora.documents import INDEX_HEADER
from docmt.files import write_lines
from docmt.instances.building import build_from_files, build_instances
from docmt.instances.packing import PackedSentences
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import InstanceSet, InstanceTrees, load_instances, save_instances
from docmt.models.attention.layout import BatchTrees
from docmt.models.batch import Batch, DeviceBatch, pack
from docmt.models.model_file import TrainedModel, load_model
from docmt.models.presets import ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.transformer import Transformer
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.subwords import learn_merges
from docmt.text.truecaser import Truecaser
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS, Vocabulary, extra_specials
from docmt.training.agreement import Interrupted
from docmt.training.run import train
from docmt.training.settings import WITHOUT_EFFECT, RunSettings, TrainingFiles, TrainingOptions, TrainingSettings
from docmt.training.trainer import Trainer

torch.set_num_threads(1)

SIZE = TINY | {"width": 16, "feed_forward_width": 24}
N_SYMBOLS = 24

RECIPE = workload.RECIPE | {"word_dropout": 0.1, "max_batch_tokens": 60, "max_steps": 12}

FILES = {field.name for field in fields(TrainingFiles)}

OVERFIT = {
    "model": {"width": 32, "feed_forward_width": 64, "dropout": 0.0},
    "training": {
        "learning_rate": 5e-3,
        "warmup_steps": 20,
        "label_smoothing": 0.0,
        "word_dropout": 0.0,
        "max_batch_tokens": 200,
        "max_steps": 120,
        "validate_every_steps": 40,
    },
    "checkpoint_every_steps": None,
}

WORDS = {"the": "das", "a": "ein", "dog": "Tier", "house": "Haus", "child": "Kind", "sees": "sieht", "wants": "will"}
DOCUMENTS = [
    ["the dog sees the house", "a child wants the dog", "the child sees"],
    ["a house", "the dog wants a child"],
    ["the child sees a dog", "the child wants the house", "a dog sees a house", "the house"],
    ["a dog"],
    ["the house sees the child", "a dog wants"],
    ["the child wants a house", "a child", "the dog sees"],
    ["a child sees the dog", "the dog wants the house"],
    ["a house wants a dog", "the child", "a dog sees the child"],
]


def translate(sentence: str) -> str:
    """Translate word by word, so that a tiny model can learn it at once."""
    return " ".join(WORDS[word] for word in sentence.split())


def model_settings(architecture: str = "g_transformer", **values) -> ModelSettings:
    """Settings for a tiny model."""
    upper = values.pop("upper_layers", 1)
    preset = dict(ARCHITECTURES[architecture])
    for name in ("encoder_attention", "decoder_attention", "cross_attention"):
        preset[name] = preset[name] | {"upper_layers": upper}
    return ModelSettings.load(SIZE | preset | values, where="test")


def make_model(architecture: str = "g_transformer", *, seed: int = 0, n_symbols: int = N_SYMBOLS, **values):
    """A tiny model in evaluation mode. Its matrices are enlarged, so that attention is far from uniform. None is 0."""
    return random_model(model_settings(architecture, **values), n_symbols, seed=seed)


def assert_close(result: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    """Equal up to the tolerance, relative to the largest entry if it is above 1."""
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(result, expected, atol=tolerance * scale, rtol=0)


def random_sentence(generator: np.random.Generator, n_words: int, n_symbols: int = N_SYMBOLS) -> np.ndarray:
    """`<s> w1 … wn </s>`."""
    return np.array([BOS, *generator.integers(N_SPECIALS, n_symbols, n_words), EOS])


Documents = list[tuple[list[np.ndarray], list[np.ndarray]]]
"""Source and target sentences per document."""


def pack_documents(documents: Documents) -> PackedSentences:
    src, tgt = ([sentence for document in documents for sentence in document[side]] for side in (0, 1))
    return PackedSentences.of(src, tgt, np.array([len(document[0]) for document in documents]))


def make_batch(settings: ModelSettings, documents: Documents, trees: BatchTrees | None = None, **options) -> Batch:
    """Pack documents, either all with trees or all without."""
    return pack(pack_documents(documents), settings=settings, trees=trees, **options)


def decoder_states(model: Transformer, batch: Batch | DeviceBatch) -> torch.Tensor:
    if isinstance(batch, Batch):
        batch = batch.prepare(model.kernel())
    return model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)


def random_heads(generator: np.random.Generator, n_units: int) -> np.ndarray:
    """A random tree, or sometimes a forest, over units in random order."""
    order = generator.permutation(n_units)
    heads = np.full(n_units, -1)
    for rank in range(1, n_units):
        if generator.random() < 0.9:
            heads[order[rank]] = order[generator.integers(rank)]
    return heads


def random_trees(lengths: list[int], *, seed: int = 0) -> BatchTrees:
    """An instance with these sentence lengths in source tokens, cut into EDUs at random. Some EDUs may be empty."""
    generator = np.random.default_rng(seed)
    cuts = [np.sort(generator.integers(1, length + 1, generator.integers(0, 3))) for length in lengths]
    edu_lengths = [np.diff([0, *cut, length]) for cut, length in zip(cuts, lengths, strict=True)]
    counts = np.array([len(part) for part in edu_lengths])
    return BatchTrees.of_instance(
        edu_lengths=np.concatenate(edu_lengths),
        edu_heads=random_heads(generator, counts.sum()),
        edu_counts=counts,
        sentence_heads=random_heads(generator, len(lengths)),
    )


def document_trees(documents: Documents, *, open_B=None) -> BatchTrees:
    """Random trees for documents. The same document has the same trees in any batch."""
    trees = BatchTrees.join(
        [random_trees([len(s) for s in src], seed=int(np.concatenate(src).sum())) for src, _ in documents]
    )
    return trees if open_B is None else trees.without_tree_mask(np.asarray(open_B))


def random_documents(counts, *, seed: int = 0, longest: int = 7, n_symbols: int = N_SYMBOLS):
    """Documents with these numbers of sentences. Some sentences are empty or have a single word."""
    generator = np.random.default_rng(seed)

    def side(count):
        return [random_sentence(generator, int(generator.integers(0, longest)), n_symbols) for _ in range(count)]

    return [(side(count), side(count)) for count in counts]


@dataclass(frozen=True)
class Study:
    """Files of the tiny corpus, in the workflow's formats."""

    folder: Path

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self.folder / "vocabulary.txt")

    @property
    def pipeline(self) -> TextPipeline:
        return TextPipeline.load(self.folder / "pipeline.json")

    def instances(self, name: str = "documents") -> Path:
        """Folder with the instances of a cutting: `documents`, `sentences`, or `trees` (also documents)."""
        return self.folder / "instances" / name


def make_study(folder: Path, *, tags: Sequence[str] = (), trained: TrainedModel | None = None) -> Study:
    """Text pipeline, vocabulary and instances for the tiny corpus.

    With language tags, the vocabulary is for cross-task training, and there are English instances `monolingual`.
    Pipeline and vocabulary can come from a trained model.
    """
    lines = {
        "en": [sentence for document in DOCUMENTS for sentence in document],
        "de": [translate(sentence) for document in DOCUMENTS for sentence in document],
    }
    codes = learn_merges([*lines["en"], *lines["de"]], merges=60, min_frequency=1)
    truecasers = {lang: Truecaser(None) for lang in lines}
    pipeline = TextPipeline(
        TextSettings(truecase=False, bpe_merges=60), languages=("en", "de"), truecasers=truecasers, codes=codes
    )
    pipeline = trained.pipeline if trained else pipeline
    pipeline.save(folder / "pipeline.json")
    subwords = {lang: [pipeline.prepare(line, lang=lang) for line in lines[lang]] for lang in lines}
    extras = extra_specials(tags) if tags else ()
    vocabulary = Vocabulary.from_sentences([*subwords["en"], *subwords["de"]], extras=extras)
    (trained.vocabulary if trained else vocabulary).save(folder / "vocabulary.txt")
    for lang, sentences in subwords.items():
        write_lines(folder / f"train.bpe.{lang}", map(" ".join, sentences))
    index = [f"d{number}\t{len(document)}" for number, document in enumerate(DOCUMENTS)]
    write_lines(folder / "train.documents.tsv", [INDEX_HEADER, *index])
    for name, values in (("documents", {"max_tokens": 512}), ("sentences", {"max_sentences": 1})):
        build_from_files(
            [folder / "train.bpe.en", folder / "train.bpe.de"],
            documents=folder / "train.documents.tsv",
            vocabulary=folder / "vocabulary.txt",
            settings=InstancesSettings(**values),
            out=folder / "instances" / name,
        )
        if name == "documents":
            built = load_instances(folder / "instances" / name)
            save_instances(folder / "instances" / "trees", replace(built, trees=instance_trees(built)))
    if tags:
        build_from_files(
            [folder / "train.bpe.en"],
            documents=folder / "train.documents.tsv",
            vocabulary=folder / "vocabulary.txt",
            settings=InstancesSettings(),
            out=folder / "instances" / "monolingual",
        )
    return Study(folder)


def build_and_load(src, tgt, index, vocabulary, settings: InstancesSettings, *, out: Path | None = None) -> InstanceSet:
    """Build instances from sentences in a folder and load them. Without `out`, the folder is temporary."""
    # A disk would take most of the time: what is written is flushed.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        out = out or Path(folder) / "set"
        build_instances(src, tgt, index, vocabulary, settings, out=out)
        return load_instances(out)


def instance_trees(built: InstanceSet) -> InstanceTrees:
    """Random trees for instances that were built without trees."""
    lengths = np.split(np.diff(built.src_offsets), built.instances[1:-1])
    trees = BatchTrees.join([random_trees(part.tolist(), seed=seed) for seed, part in enumerate(lengths)])
    return InstanceTrees(
        edu_offsets=np.concatenate(([0], np.cumsum(trees.edu_lengths_E))),
        sentence_edus=np.concatenate(([0], np.cumsum(trees.edu_counts_G))),
        edu_heads=trees.edu_heads_E,
        sentence_heads=trees.sentence_heads_G,
    )


def run_training(study: Study, folder: Path, *, architecture="g_transformer", cutting="documents", **options):
    """Train in `folder` and return the trained model and its history. `model` and `training` change the settings.

    RST attention trains on `trees` instead of `documents`.
    """
    model = model_settings(architecture, **({"dropout": 0.1} | options.pop("model", {})))
    if model.needs_trees and cutting == "documents":
        cutting = "trees"
    training = TrainingSettings.load(RECIPE | options.pop("training", {}), where="training")
    arguments = {
        "train": study.instances(cutting),
        "dev": study.instances(cutting),
        "vocabulary": study.folder / "vocabulary.txt",
        "pipeline": study.folder / "pipeline.json",
        "seed": 1,
        "checkpoints": folder / "checkpoints",
        "history": folder / "history.csv",
        "out": folder / "model.pt",
        "accelerator": "cpu",
        "checkpoint_every_steps": 2,
        "keep_checkpoints": 2,
    }
    arguments |= options
    files = TrainingFiles(**{name: arguments.pop(name) for name in FILES & set(arguments)})
    run_options = TrainingOptions(**{name: arguments.pop(name) for name in WITHOUT_EFFECT if name in arguments})
    train(RunSettings(model=model, training=training), files, options=run_options, **arguments)
    return load_model(folder / "model.pt"), pd.read_csv(folder / "history.csv")


@contextlib.contextmanager
def during_update(step: int, event: Callable[[], object]) -> Iterator[None]:
    """Call a function at the beginning of an update in trainings inside the context."""
    update = Trainer._step

    def run_event_and_update(trainer, prepared):
        if trainer.state.step + 1 == step:
            event()
        update(trainer, prepared)

    with mock.patch.object(Trainer, "_step", run_event_and_update):
        yield


@contextlib.contextmanager
def interrupted(step: int, number: int = signal.SIGTERM) -> Iterator[None]:
    """Send a signal to the training inside the context during an update. The training must then end."""
    with during_update(step, lambda: os.kill(os.getpid(), number)), pytest.raises(Interrupted) as interruption:
        yield
    assert interruption.value.signal_number == number


def assert_same_training(one, other) -> None:
    """The same weights bit by bit, and the same history except for times."""
    weights, expected = one[0].model.state_dict(), other[0].model.state_dict()
    assert list(weights) == list(expected)
    different = [name for name in weights if not torch.equal(weights[name], expected[name])]
    assert not different
    assert one[0].provenance["best_step"] == other[0].provenance["best_step"]
    histories = [history.drop(columns=["seconds", "tokens_per_second"]) for _, history in (one, other)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)


def checkpoint_folder(folder: Path) -> Path:
    """Folder with the checkpoints of the only training in `folder`."""
    (checkpoint,) = (folder / "checkpoints").iterdir()
    return checkpoint


def step_files(folder: Path) -> list[str]:
    """Names of the checkpoints of the only training in `folder`."""
    return sorted(path.name for path in checkpoint_folder(folder).glob("step-*.pt"))


def train_arguments(study, folder: Path, settings: dict, **changes) -> list[str]:
    """Command line for `docmt train` on a study, with all output in `folder`."""
    values = {
        "settings": json.dumps(settings),
        "train": study.instances(),
        "dev": study.instances(),
        "vocabulary": study.folder / "vocabulary.txt",
        "pipeline": study.folder / "pipeline.json",
        "checkpoints": folder / "checkpoints",
        "history": folder / "history.csv",
        "out": folder / "model.pt",
        "accelerator": "cpu",
        "checkpoint-every-steps": 2,
    } | changes
    return ["train", *(str(part) for name, value in values.items() for part in (f"--{name}", value))]
