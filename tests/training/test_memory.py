"""The largest batch is tried before the first update."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from core_fixtures import RECIPE, assert_same_training, model_settings, run_training, train_arguments
from torch.optim.optimizer import register_optimizer_step_post_hook

from docmt.errors import UserError
from docmt.instances.storage import load_instances
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.loss import LossModule
from docmt.training.memory import MicroBatchSize, OutOfMemory, describe_oom, largest_batches, largest_that_fits
from docmt.training.progress import TrainingState
from docmt.training.settings import TrainingSettings
from docmt.training.trainer import Trainer

LIMITED = """
import resource, sys
import torch
import docmt.training.run
from docmt.cli.main import main
torch.ones(8, 8) @ torch.ones(8, 8)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_too_large_batch_is_named_early(study_files, tmp_path):
    """With a real memory limit. The feed-forward layers of this model need more for one batch."""
    model = model_settings("g_transformer", feed_forward_width=200_000, encoder_layers=1, decoder_layers=1)
    settings = {"model": model.model_dump(), "training": RECIPE | {"max_batch_tokens": 60}}
    arguments = train_arguments(study_files, tmp_path, settings)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "300", *arguments], capture_output=True, text=True, check=False
    )
    tokens = load_instances(study_files.instances()).n_tokens()
    assert done.returncode == 2, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("docmt: error: "))
    assert "training: out of memory on cpu with a batch of " in line
    assert "lower max_batch_tokens" in line
    longest, document = re.search(r"the longest of (\d+) tokens \(document (\d+) of the training set\)", line).groups()
    assert tokens[int(document) - 1] == int(longest)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("instances", "error", "message"),
    [
        ([0, 2], MemoryError(), "lower max_batch_tokens"),
        ([0, 2], RuntimeError("DefaultCPUAllocator: can't"), "lower max_batch_tokens"),
        ([2], torch.OutOfMemoryError("CUDA out of memory"), "this instance alone is too large: lower max_tokens"),
        ([0], RuntimeError("shape"), "^shape$"),  # not explained away
    ],
)
def test_the_remedy_depends_on_the_batch(study_files, instances, error, message):
    expected = RuntimeError if message == "^shape$" else UserError
    explained = describe_oom(load_instances(study_files.instances()), np.array(instances), torch.device("cpu"))
    with pytest.raises(expected, match=message), explained:
        raise error


def test_worst_batches_are_long_or_full(study_files):
    instance_set = load_instances(study_files.instances())
    tokens = instance_set.n_tokens()
    longest, *others = largest_batches(instance_set, max_tokens=int(tokens.max()) + 1)
    assert longest.tolist() == [tokens.argmax()]
    assert all(tokens[batch].sum() == tokens.max() + 1 for batch in others)
    (whole,) = largest_batches(instance_set, max_tokens=10_000)
    assert sorted(whole) == list(range(len(instance_set)))


@pytest.mark.parametrize(
    ("fixed", "fits", "most", "tried", "size"),
    [
        (0, 1000, 100, [100], 100),  # an update is no larger
        (0, 100_000, 1000, [100, 200, 400, 800, 1000], 1000),
        (0, 1000, 5000, [100, 200, 400, 800], 800),
        (0, 300, 5000, [100, 200, 255], 255),
        (600, 1000, 5000, [100, 121, 142, 162, 180], 180),
    ],
)
def test_batches_grow_until_memory_is_used(fixed, fits, most, tried, size):
    """A memory of `fits` units. The model needs `fixed`, and a token one."""
    runs = []

    def run(tokens):
        runs.append(tokens)
        if fixed + tokens > fits:
            raise OutOfMemory("too small")

    assert largest_that_fits(run, least=100, most=most, used=lambda: (fixed + runs[-1]) / fits) == size
    assert runs == tried


def test_misfit_batches_are_not_used():
    def run(tokens):
        if tokens > 300:
            raise OutOfMemory("fragments")

    assert largest_that_fits(run, least=100, most=1000, used=lambda: 0.1) == 200
    with pytest.raises(OutOfMemory):
        largest_that_fits(run, least=400, most=1000, used=lambda: 0.1)


@pytest.mark.slow
def test_the_probe_changes_nothing(study_files, tmp_path, monkeypatch):
    with_probe = run_training(study_files, tmp_path / "with", training={"max_steps": 4})
    monkeypatch.setattr(MicroBatchSize, "probe", lambda *_: None)
    assert_same_training(run_training(study_files, tmp_path / "without", training={"max_steps": 4}), with_probe)


@pytest.fixture
def small_memory(monkeypatch):
    """A device that fits fewer tokens from update 4 than in the probe. The list contains the number."""
    steps, limit = [], [40]
    forward = LossModule.forward

    def run_out(self, batch):
        if self.training and len(steps) >= 3 and len(batch.src_tokens_S) > limit[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, batch)

    monkeypatch.setattr(LossModule, "forward", run_out)
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    yield limit
    hook.remove()


LARGE = {"max_batch_tokens": 100, "accumulation_steps": 2, "log_every_steps": 1, "max_steps": 6, "word_dropout": 0.3}


@pytest.mark.slow
def test_a_training_goes_on_in_smaller_parts(study_files, tmp_path, request, caplog):
    """Updates are equal. A resumed training starts with these parts."""
    options = {"model": {"dropout": 0.0}, "training": LARGE}
    _, expected = run_training(study_files, tmp_path / "plain", **options)
    request.getfixturevalue("small_memory")
    _, history = run_training(study_files, tmp_path / "small", **options)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"update 4: out of memory: using at most {limit} tokens at once from now on" for limit in (50, 25)
    ]
    for name in ("train_loss", "gradient_norm", "dev_loss", "tokens"):
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-4)
    caplog.clear()
    run_training(study_files, tmp_path / "small", **options | {"training": LARGE | {"max_steps": 8}})
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_an_instance_beyond_the_memory_ends_a_training(study_files, tmp_path, small_memory):
    small_memory[0] = 5
    with pytest.raises(OutOfMemory, match="this instance alone is too large"):
        run_training(study_files, tmp_path, training=LARGE)


def test_next_start_has_smaller_parts(tmp_path, caplog):
    """Other processes exchange gradients, so the training ends, and resumes."""
    checkpoints = CheckpointFolder(tmp_path)
    fabric = SimpleNamespace(world_size=2, device=torch.device("cuda"))
    reader = SimpleNamespace(micro_batch_tokens=None, settings=TrainingSettings(max_batch_tokens=100))
    size = MicroBatchSize(reader, checkpoints, fabric)
    state = TrainingState(step=3)
    trainer = SimpleNamespace(fabric=fabric, state=state, micro_batch_size=size, graphs=None, is_exchanged=True)
    checkpoints.save_hint("micro_batch_tokens", "4 × cuda", 70)
    assert not Trainer._can_repeat(trainer, OutOfMemory("too small", n_instances=2))
    assert reader.micro_batch_tokens is None
    assert "at most 50 tokens at once after a restart" in caplog.text
    noted = {kind: checkpoints.load_hint("micro_batch_tokens", kind) for kind in ("1 × cuda", "2 × cuda", "4 × cuda")}
    assert noted == {"1 × cuda": None, "2 × cuda": 50, "4 × cuda": 70}


@pytest.mark.parametrize(("requested", "later"), [(None, 50), (100, 50), (64, 32), (7, 3)])
def test_next_session_starts_with_half_the_size(requested, later, tmp_path):
    fabric = SimpleNamespace(world_size=2, device=torch.device("cuda"))

    def start(requested):
        reader = SimpleNamespace(micro_batch_tokens=requested, settings=TrainingSettings(max_batch_tokens=100))
        return MicroBatchSize(reader, CheckpointFolder(tmp_path), fabric)

    assert not start(requested).halve(step=7)
    assert start(requested).reader.micro_batch_tokens == later
    assert start(21).reader.micro_batch_tokens == 21  # another request


def test_progress_says_where_a_training_stands(study_files, tmp_path):
    _, history = run_training(study_files, tmp_path)
    (folder,) = (tmp_path / "checkpoints").iterdir()
    progress = json.loads((folder / "progress.json").read_text())
    last = history.iloc[-1]
    assert progress["step"] == progress["max_steps"] == 12
    assert progress["dev_loss"] == pytest.approx(last["dev_loss"])
    assert progress["tokens_per_second"] == last["tokens_per_second"]
    assert progress["seconds"] > 0
    assert progress["updated"].endswith("+00:00")
