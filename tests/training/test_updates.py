"""Updates that are prepared ahead do not depend on processes, devices, tokens at once, or resuming."""

import itertools
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest
import torch
from core_fixtures import RECIPE, model_settings, run_training

from docmt.errors import UserError
from docmt.instances.packing import as_sentences
from docmt.instances.restoration import Noise
from docmt.instances.storage import load_instances
from docmt.models.batch import Batch
from docmt.training.progress import TaskState
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import Task, TaskData, build_tasks
from docmt.training.updates import UpdateIndex, UpdateReader, read_ahead

ALL = ["documents", "sentences", "pairs", "restoration"]
CPU = torch.device("cpu")


def make_reader(study, *, tasks=ALL, n_ranks=1, rank=0, micro_batch_tokens=None, **values):
    recipe = {"tasks": tasks, "max_batch_tokens": 40, "accumulation_steps": 2, "word_dropout": 0.3}
    settings = TrainingSettings.load(RECIPE | recipe | values, where="t")
    sets = {name: load_instances(study.instances(name)) for name in ("documents", "sentences", "monolingual")}
    pairs, monolingual = (
        sets[name] if task in tasks else None for task, name in (("pairs", "sentences"), ("restoration", "monolingual"))
    )
    data = TaskData(sets["documents"], sets["documents"], pairs, monolingual)
    built = build_tasks(settings, data, study.vocabulary, study.pipeline, seed=1)
    model = model_settings("global_context")
    return UpdateReader(built, model, settings, 1, n_ranks, rank, micro_batch_tokens, study.vocabulary.n_specials)


@pytest.fixture(autouse=True)
def host_batches(monkeypatch):
    """Leave batches as they are collated, with the lengths of sentences."""
    monkeypatch.setattr(Batch, "prepare", lambda self, _: self)


def states(reader):
    return [TaskState(task.name) for task in reader.tasks]


def content(update):
    """Content of an update as plain values."""
    parts = [
        (p.instances, p.batch.src_tokens_S, p.batch.tgt_inputs_N, p.batch.tgt_labels_N, p.batch.layout.src_lengths_G)
        for p in update.micro_batches
    ]
    return (
        (update.index, update.n_updates, update.weight, update.n_labels, update.n_tokens),
        [[array.tolist() for array in part] for part in parts],
    )


def sentences_of(update):
    """Source tokens and decoder inputs, by instance."""
    sentences = {}
    for part in update.micro_batches:
        for name, side in (("src_tokens_S", "src"), ("tgt_inputs_N", "tgt")):
            lengths = part.batch.layout.instance_lengths(side)
            rows = np.split(getattr(part.batch, name).numpy(), np.cumsum(lengths)[:-1])
            for instance, row in zip(part.instances.tolist(), rows, strict=True):
                sentences[instance, name] = row.tolist()
    return sentences


@pytest.mark.slow
def test_processes_prepare_the_updates_of_one(study):
    expected = [content(u) for u in itertools.islice(read(make_reader(study), n_workers=0), 25)]
    for n_workers in (1, 3):
        updates = read(make_reader(study), n_workers=n_workers)
        assert [content(next(updates)) for _ in expected] == expected
        updates.close()


def read(reader, *, step=0, tasks=None, n_workers=0):
    return read_ahead(reader, step=step, tasks=tasks or states(reader), device=CPU, n_workers=n_workers)


@pytest.mark.parametrize("n_workers", [0, 2])
def test_updates_go_on_from_any_place(study, n_workers):
    reader = make_reader(study)
    tasks, expected = states(reader), []
    for step, update in enumerate(itertools.islice(read(reader), 22)):
        expected.append(content(update))
        if step + 1 in (1, 7, 14):
            updates = read(make_reader(study), step=step, tasks=tasks, n_workers=n_workers)
            assert content(next(updates)) == expected[-1]
            updates.close()
        task = tasks[step % 4]
        assert update.index == UpdateIndex(step + 1, step % 4, task.epoch, task.position, tasks[0].epoch)
        task.position += 1
        if task.position == update.n_updates:
            task.epoch, task.position = task.epoch + 1, 0
    assert max(task.epoch for task in tasks) > 1


@pytest.mark.parametrize("word_dropout", [0.0, 0.3])
@pytest.mark.parametrize("n_ranks", [2, 3, 9])
def test_devices_together_read_the_instances_of_one(study, n_ranks, word_dropout):
    """With the same noise and the same dropped words, even if noise makes instances longer."""
    alone = make_reader(study, word_dropout=word_dropout)
    readers = [make_reader(study, n_ranks=n_ranks, rank=rank, word_dropout=word_dropout) for rank in range(n_ranks)]
    for index in itertools.islice(alone.indices(0, states(alone)), 16):
        whole = alone.read(index)
        shares = [reader.read(index) for reader in readers]
        expected = sentences_of(whole)
        parts = [sentences_of(share) for share in shares if share.weight]
        assert sum(map(len, parts)) == len(expected)
        assert {key: value for part in parts for key, value in part.items()} == expected
        assert {share.n_labels for share in shares} == {whole.n_labels}
        assert sum(share.n_tokens for share in shares) == whole.n_tokens
        assert all(len(share.micro_batches) >= 1 for share in shares)


def test_a_device_noises_its_own_share_alone(study, monkeypatch):
    reader = make_reader(study, tasks=["restoration"], n_ranks=2, word_dropout=0.0)
    apply, noised = Noise.apply, []

    def note(noise, instance_set, instances, *, epoch):
        noised.extend(instances.tolist())
        return apply(noise, instance_set, instances, epoch=epoch)

    monkeypatch.setattr(Noise, "apply", note)
    update = reader.read(UpdateIndex(1, 0, 0, 0, 0))
    share = np.concatenate([part.instances for part in update.micro_batches])
    assert sorted(noised) == sorted(share.tolist())
    assert 0 < len(share) < sum(map(len, reader.update_batches(0, 0, 0)))


# Tokens at once


def test_device_tokens_do_not_change_updates(study):
    expected = make_reader(study, accumulation_steps=4)
    for micro_batch_tokens in (20, 60, 80, 10_000):
        reader = make_reader(study, accumulation_steps=4, micro_batch_tokens=micro_batch_tokens)
        for index in itertools.islice(reader.indices(0, states(reader)), 8):
            one, other = expected.read(index), reader.read(index)
            assert sentences_of(other) == sentences_of(one)
            assert (other.n_labels, other.n_tokens) == (one.n_labels, one.n_tokens)
            tokens = reader.tasks[index.task].tokens
            for part in other.micro_batches:
                assert tokens[part.instances].sum() <= micro_batch_tokens or len(part.instances) == 1
            if micro_batch_tokens == 10_000:
                assert len(other.micro_batches) == 1


# Processes


def workers():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


def test_processes_ignore_signals_and_end_with_the_training(study):
    before = set(workers())
    updates = read(make_reader(study), n_workers=2)
    next(updates)
    started = set(workers()) - before
    assert len(started) == 2
    for pid in started:
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            os.kill(pid, number)
    for _ in range(12):
        next(updates)
    updates.close()
    deadline = time.monotonic() + 20
    while set(workers()) & started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(workers()) & started


def test_a_killed_process_is_one_clear_error(study):
    before = set(workers())
    updates = read(make_reader(study), n_workers=1)
    next(updates)
    (pid,) = set(workers()) - before
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(UserError, match=r"a process that prepares batches has died \(.*the same command resumes"):
        list(itertools.islice(updates, 50))


def test_extreme_instances_are_read(study):
    """A sentence without words, one-sentence documents, and a document with 10,000 tokens."""
    (task,) = make_reader(study, tasks=["sentences"]).tasks
    long = as_sentences(task.train)
    n = 10_000 // 9
    lengths = np.array([2, 9, *[9] * n])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    tokens = np.concatenate([[2, *[20] * (k - 2), 3] for k in lengths]).astype(np.int32)
    values = {"src_tokens": tokens, "src_offsets": offsets, "tgt_tokens": tokens, "tgt_offsets": offsets}
    instance_set = type(long)(
        **values, instances=np.array([0, 1, 2, 2 + n]), documents=np.arange(3, dtype=np.int32), manifest={}
    )
    settings = TrainingSettings.load(RECIPE | {"accumulation_steps": 3, "word_dropout": 0.5}, where="t")
    for n_ranks in (1, 2):
        readers = [
            UpdateReader([Task("documents", instance_set, instance_set)], model_settings(), settings, 1, n_ranks, rank)
            for rank in range(n_ranks)
        ]
        shares = [reader.read(UpdateIndex(1, 0, 0, 0, 0)) for reader in readers]
        numbers = [i for share in shares for part in share.micro_batches for i in part.instances.tolist()]
        assert sorted(numbers) == [0, 1, 2]
        assert sum(share.n_tokens for share in shares) == 2 * lengths.sum() - len(lengths)


@pytest.mark.slow
def test_device_tokens_do_not_change_losses(study, tmp_path, monkeypatch):
    monkeypatch.undo()
    recipe = {"max_batch_tokens": 30, "accumulation_steps": 4, "word_dropout": 0.2, "log_every_steps": 1}
    histories = {}
    for micro_batch_tokens in (None, 30, 15, 90, 1000):
        folder = tmp_path / str(micro_batch_tokens)
        options = {"training": dict(recipe), "model": {"dropout": 0.0}, "micro_batch_tokens": micro_batch_tokens}
        _, history = run_training(study, folder, **options)
        histories[micro_batch_tokens] = history.drop(columns=["seconds", "tokens_per_second"])
    pd.testing.assert_frame_equal(histories[30], histories[None], check_exact=True)
    for history in histories.values():
        pd.testing.assert_frame_equal(history, histories[None], rtol=1e-4)
