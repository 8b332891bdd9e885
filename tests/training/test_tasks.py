"""Training with several tasks: their inputs and order, resuming, and the ablations of cross-task training."""

import itertools
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from core_fixtures import (
    RECIPE,
    assert_same_training,
    interrupted,
    model_settings,
    run_training,
    train_arguments,
)

from docmt.errors import UserError
from docmt.instances.building import build_from_files
from docmt.instances.packing import BoundaryTokens
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import load_instances
from docmt.models.model_file import load_model
from docmt.text.vocabulary import MASK, Vocabulary
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import TaskData, build_tasks
from docmt.training.trainer import Trainer
from docmt.training.updates import UpdateIndex, UpdateReader

PRETRAINING = ["pairs", "restoration"]
FINE_TUNING = ["documents", "sentences"]
ALL = ["documents", "sentences", "pairs", "restoration"]


def recipe(tasks, **values):
    return TrainingSettings.load(RECIPE | {"tasks": tasks, "word_dropout": 0.0} | values, where="t")


def data(study, **changes):
    sets = {name: load_instances(study.instances(name)) for name in ("documents", "sentences", "monolingual")}
    values = {"train": "documents", "dev": "documents", "pairs": "sentences", "monolingual": "monolingual"} | changes
    return TaskData(**{key: None if name is None else sets[name] for key, name in values.items()})


def tasks_of(study, tasks=ALL, **values):
    changes = {name: None for name, task in (("pairs", "pairs"), ("monolingual", "restoration")) if task not in tasks}
    return build_tasks(recipe(tasks, **values), data(study, **changes), study.vocabulary, study.pipeline, seed=1)


def run(study, folder, tasks, **options):
    options = {"pairs": study.instances("sentences")} | options if "pairs" in tasks else options
    options = {"monolingual": study.instances("monolingual")} | options if "restoration" in tasks else options
    options["training"] = {"tasks": tasks} | options.get("training", {})
    return run_training(study, folder, architecture="global_context", **options)


def first_tokens(study, tokens, lengths):
    return {study.vocabulary.symbols[i] for i in tokens[np.cumsum(lengths) - lengths].tolist()}


# What each task reads


@pytest.mark.parametrize("key", ["train", "dev", "pairs", "monolingual"])
def test_reordered_vocabulary_is_refused(study, tmp_path, key):
    """Token ids do not reveal it, because both vocabularies have the same words."""
    other = tmp_path / "other"
    shutil.copytree(study.folder, other)
    *specials, first, second = study.vocabulary.symbols
    Vocabulary.from_symbols([*specials, second, first]).save(other / "vocabulary.txt")
    is_monolingual = key == "monolingual"
    build_from_files(
        [other / f"train.bpe.{lang}" for lang in (["en"] if is_monolingual else ["en", "de"])],
        documents=other / "train.documents.tsv",
        vocabulary=other / "vocabulary.txt",
        settings=InstancesSettings(),
        out=other / "built",
    )
    with pytest.raises(UserError, match=r"vocabulary\.txt: damaged, or not the vocabulary of .*built"):
        run(study, tmp_path, ALL, **{key: other / "built"})
    assert not (tmp_path / "model.pt").exists()


@pytest.mark.parametrize("name", ALL)
def test_each_task_has_its_instances_tags_and_context(study, name):
    (task,) = tasks_of(study, [name])
    context, n_instances = ("none", 20) if name in ("sentences", "pairs") else ("document", 8)
    tags = ("<en>", "<en>" if name == "restoration" else "<de>")
    assert (task.name, task.context, len(task.train), len(task.dev)) == (name, context, n_instances, n_instances)
    settings = model_settings("global_context")
    for instance_set, instances in (task.read(np.array([3, 1]), epoch=0), (task.dev, np.array([3, 1]))):
        assert len(instances) == 2
        batch = task.collate(instance_set, instances, settings)
        assert batch.layout.context == context
        assert first_tokens(study, batch.src_tokens_S.numpy(), batch.layout.src_lengths_G) == {tags[0]}
        assert first_tokens(study, batch.tgt_inputs_N.numpy(), batch.layout.tgt_lengths_G) == {tags[1]}


def test_restoration_is_new_per_epoch(study):
    (task,) = tasks_of(study, ["restoration"], restoration={"mask_ratio": 0.5})

    def sources(epoch, numbers):
        instance_set, order = task.read(np.array(numbers), epoch=epoch)
        assert instance_set.documents.tolist() == numbers
        sides = [(instance_set.sentences(i, "src"), instance_set.sentences(i, "tgt")) for i in order]
        for number, (_, tgt) in zip(numbers, sides, strict=True):
            clean = task.train.sentences(int(number), "tgt")
            assert all(np.array_equal(one, other) for one, other in zip(tgt, clean, strict=True))
        return {n: np.concatenate(src).tolist() for n, (src, _) in zip(numbers, sides, strict=True)}

    assert sources(0, [0, 1, 2, 3]) == sources(0, [3, 1]) | sources(0, [2, 0])
    assert sources(0, [0, 1, 2, 3]) != sources(1, [0, 1, 2, 3])


def test_development_documents_have_their_language(study):
    values = data(study, pairs=None)
    sides = {}
    for side in ("src", "tgt"):
        changed = TaskData(values.train, values.dev, None, values.monolingual, side)
        (task,) = build_tasks(recipe(["restoration"]), changed, study.vocabulary, study.pipeline, seed=1)
        sides[side] = task
        assert np.array_equal(task.dev.tgt_tokens, getattr(values.dev, f"{side}_tokens"))
    boundaries = sides["tgt"].boundaries
    assert study.vocabulary.decode(boundaries.src_before) == study.vocabulary.decode(boundaries.tgt_before) == ["<de>"]


def test_word_dropout_spares_masks_and_tags(study):
    tasks = tasks_of(study, ["restoration"], restoration={"mask_ratio": 1.0, "mask_share": 1.0, "random_share": 0.0})
    settings = recipe(["restoration"], word_dropout=0.99)
    n_specials = study.vocabulary.n_specials
    reader = UpdateReader(tasks, model_settings("global_context"), settings, 1, n_specials=n_specials)
    index = UpdateIndex(step=1, task=0, epoch=0, position=0, first_epoch=0)
    (part,) = reader.prepare([np.arange(8)], index).micro_batches
    batch = part.batch
    noised, _ = tasks[0].read(np.arange(8), epoch=0)
    plain = tasks[0].collate(noised, np.arange(8), reader.model_settings)
    is_special = plain.src_tokens_S < n_specials
    assert torch.equal(batch.src_tokens_S[is_special], plain.src_tokens_S[is_special])
    assert (batch.src_tokens_S[~is_special] == MASK).float().mean() > 0.8
    assert set(study.vocabulary.masks()) <= set(batch.src_tokens_S.tolist())


# Turns


@pytest.mark.slow
def test_tasks_take_turns_and_count_their_own_passes(study, tmp_path, monkeypatch):
    update, turns = Trainer._step, []

    def note(trainer, prepared):
        task = trainer.state.tasks[prepared.index.task]
        turns.append((task.name, task.epoch, [i for part in prepared.micro_batches for i in part.instances]))
        update(trainer, prepared)

    monkeypatch.setattr(Trainer, "_step", note)
    trained, history = run(study, tmp_path, ALL, training={"max_steps": 40, "max_batch_tokens": 50})
    assert [name for name, *_ in turns] == (ALL * 10)
    for name, size in zip(ALL, (8, 20, 20, 8), strict=True):
        share = [(epoch, instances) for task, epoch, instances in turns if task == name]
        epochs = [
            [i for _, instances in group for i in instances] for _, group in itertools.groupby(share, lambda p: p[0])
        ]
        assert len(epochs) > 1
        assert all(sorted(epoch) == list(range(size)) for epoch in epochs[:-1])
        assert epochs[0] != epochs[1]
    passes = {name: history[f"passes_{name}"].iloc[-1] for name in ALL}
    assert trained.provenance["passes"] == passes
    assert len(set(passes.values())) > 1
    for name in ALL:
        assert history[f"train_loss_{name}"].notna().sum() >= 10
        assert history[f"dev_loss_{name}"].notna().sum() == 10
    assert history["dev_loss"].equals(history["dev_loss_documents"].rename("dev_loss"))
    assert history["dev_loss_sentences"].equals(history["dev_loss_pairs"].rename("dev_loss_sentences"))


@pytest.mark.slow
def test_epochs_are_those_of_the_first_task(study, tmp_path):
    limits = {"max_steps": None, "max_epochs": 2, "validate_every_steps": None, "max_batch_tokens": 1000}
    _, history = run(study, tmp_path, ["documents", "pairs"], training=limits)
    # One batch holds all: documents, pairs, documents.
    assert history["step"].tolist() == [1, 2, 3]
    validated = history[history["dev_loss"].notna()]
    assert (validated["step"].tolist(), validated["epoch"].tolist()) == ([1, 3], [1, 2])
    assert validated["passes_pairs"].tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "steps"), [(PRETRAINING, (1, 4, 8)), (FINE_TUNING, (4, 7, 11))])
def test_several_tasks_resume_bit_by_bit(study, tmp_path, tasks, steps):
    options = {"max_batch_tokens": 100, "max_steps": 11, "validate_every_steps": None, "word_dropout": 0.2}
    whole = run(study, tmp_path / "whole", tasks, training=options)
    for step in steps:
        with interrupted(step):
            run(study, tmp_path / str(step), tasks, training=options)
        assert_same_training(run(study, tmp_path / str(step), tasks, training=options), whole)


@pytest.mark.slow
def test_two_devices_have_the_losses_of_one(study, tmp_path):
    """All tasks with and without the context encoder. In some updates, its parameters have no gradient."""
    options = {"max_batch_tokens": 50, "max_steps": 8, "accumulation_steps": 2, "log_every_steps": 1}
    _, expected = run(study, tmp_path / "one", ALL, model={"dropout": 0.0}, training=options)
    settings = {
        "model": model_settings("global_context", dropout=0.0).model_dump(),
        "training": RECIPE | options | {"tasks": ALL},
    }
    more = {"devices": 2, "pairs": study.instances("sentences"), "monolingual": study.instances("monolingual")}
    arguments = train_arguments(study, tmp_path, settings, **more)
    done = subprocess.run(
        [sys.executable, "-m", "docmt.cli.main", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    history = pd.read_csv(tmp_path / "history.csv")
    times = ["seconds", "tokens_per_second"]
    pd.testing.assert_frame_equal(history.drop(columns=times), expected.drop(columns=times), rtol=1e-4)


# Settings that make another training


@pytest.mark.parametrize(
    "tasks",
    [
        PRETRAINING,
        FINE_TUNING,
        *(pytest.param([task], marks=pytest.mark.slow) for task in ("pairs", "restoration", "documents")),
    ],
    ids=["both", "fine-tuning", "no monolingual documents", "no sentence pairs", "without the sentence task"],
)
def test_every_ablation_of_tasks_trains(study, tmp_path, tasks):
    """Tables 2 and 3. Neither kind of pre-training is a fine-tuning without `init`."""
    _, history = run(study, tmp_path, tasks, training={"max_steps": 16, "word_dropout": 0.0})
    for task in tasks:
        losses = history["dev_loss" if len(tasks) == 1 else f"dev_loss_{task}"].dropna()
        assert losses.iloc[-1] < losses.iloc[0], task


@pytest.mark.parametrize("gap_ratio", [0.0, 0.1, 0.2, 0.3])
def test_the_share_of_gap_sentences_is_a_setting(study, gap_ratio):
    """Tables 6 and 7. With 0, there are only masked sentences."""
    (task,) = tasks_of(study, ["restoration"], restoration={"gap_ratio": gap_ratio})
    gap_mask, _ = study.vocabulary.masks()
    n_gaps = sum(int((task.read(np.arange(8), epoch=epoch)[0].src_tokens == gap_mask).sum()) for epoch in range(3))
    wanted = [min(int(gap_ratio * n + 0.5), (n - 1) // 2) for n in np.diff(task.train.instances).tolist()]
    assert n_gaps == 3 * sum(wanted)
    assert (n_gaps > 0) == (gap_ratio >= 0.2)


@pytest.mark.slow
def test_checkpoints_depend_on_noise_and_data(study, tmp_path):
    short = {"max_steps": 1}
    for changes in ({}, {"training": short | {"restoration": {"gap_ratio": 0.3}}}, {"monolingual_lang": "de"}):
        run(study, tmp_path, ["restoration"], **{"training": short} | changes)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 3


@pytest.mark.slow
def test_pre_training_goes_over_into_fine_tuning(study, tmp_path):
    run(study, tmp_path / "pretrained", PRETRAINING)
    tuned, _ = run(study, tmp_path / "tuned", FINE_TUNING, init=tmp_path / "pretrained/model.pt")
    assert tuned.provenance["init"]
    assert load_model(tmp_path / "tuned/model.pt").marks != BoundaryTokens()


# Mistakes


@pytest.mark.parametrize(
    ("tasks", "changes", "message"),
    [
        (["pairs"], {"pairs": None, "monolingual": None}, "contains 'pairs', which needs --pairs FOLDER"),
        (["restoration"], {"pairs": None, "monolingual": None}, "'restoration', which needs --monolingual FOLDER"),
        (["documents"], {"monolingual": None}, "--pairs: training.tasks does not contain 'pairs'"),
        (["pairs"], {}, "--monolingual: training.tasks does not contain 'restoration'"),
    ],
)
def test_tasks_and_data_must_fit(study, tasks, changes, message):
    with pytest.raises(UserError, match=message):
        build_tasks(recipe(tasks), data(study, **changes), study.vocabulary, study.pipeline, seed=1)


def test_restoration_needs_masks_and_language(study_files, study, tmp_path):
    settings, values = recipe(["restoration"]), data(study, pairs=None)
    with pytest.raises(UserError, match="no \\[MASK1\\] and \\[MASK2\\]"):
        build_tasks(settings, values, study_files.vocabulary, study_files.pipeline, seed=1)
    with pytest.raises(UserError, match="--monolingual-lang zh: must be en or de"):
        run(study, tmp_path, ["restoration"], monolingual_lang="zh")
    with pytest.raises(UserError, match="--monolingual-lang de: add --monolingual FOLDER"):
        run(study, tmp_path, ["documents"], monolingual=None, monolingual_lang="de")


@pytest.mark.parametrize("tasks", [[], ["documents", "documents"], ["translation"]])
def test_senseless_tasks_are_refused(tasks):
    with pytest.raises(UserError, match="tasks"):
        recipe(tasks)
