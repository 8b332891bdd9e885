"""The complete training loop in one process."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch
from architectures import slow_but
from core_fixtures import RECIPE, make_model, model_settings, run_training
from lightning_fabric import Fabric

from docmt.errors import UserError
from docmt.instances.storage import load_instances
from docmt.models.batch import Batch
from docmt.models.model_file import TrainedModel, save_model
from docmt.models.systems.context_transformer import build_transformer
from docmt.text.vocabulary import MASK, Vocabulary
from docmt.training.progress import HISTORY_COLUMNS
from docmt.training.settings import TrainingOptions, TrainingSettings
from docmt.training.tasks import Task
from docmt.training.trainer import Trainer
from docmt.training.updates import UpdateIndex, UpdateReader


@pytest.mark.slow
def test_history_has_all_rows(study_files, tmp_path):
    trained, history = run_training(study_files, tmp_path, training={"log_every_steps": 3})
    kinds = ("encoder", "decoder", "cross")
    even = [f"below_uniform_{kind}" for kind in kinds]
    measured = [*even, *(f"entropy_{kind}" for kind in kinds)]
    parts = [*even, *(f"{name}_{part}" for name in measured for part in ("group", "global"))]
    assert tuple(history.columns[: len(HISTORY_COLUMNS)]) == HISTORY_COLUMNS
    assert sorted(history.columns[len(HISTORY_COLUMNS) :]) == sorted(parts)
    assert history["step"].tolist() == [3, 4, 6, 8, 9, 12]
    logged, validated = history["step"] % 3 == 0, history["step"] % 4 == 0
    for column in ("train_loss", "learning_rate", "gradient_norm", "tokens_per_second"):
        assert history[column].notna().equals(logged), column
    for column in ("dev_loss", "dev_nll", "entropy_cross", "entropy_encoder", "entropy_decoder", *parts):
        assert history[column].notna().equals(validated), column
    assert (history[["step", "tokens", "seconds"]].diff().dropna() >= 0).all(axis=None)
    assert history["learning_rate"].dropna().tolist() == pytest.approx([9e-4, 18e-4, 27e-4, 3e-3 * (10 / 12) ** 0.5])
    # Entropies in bits of at most 3 sentences of a few subwords.
    assert history["entropy_cross"].dropna().between(0.5, 5).all()
    best = history.loc[history["dev_loss"].idxmin()]
    assert trained.provenance["best_step"] == best["step"]
    assert trained.provenance["steps"] == 12
    assert trained.instance_settings["max_tokens"] == 512
    assert [path.name for path in tmp_path.glob(".*")] == [".checksums"]


@pytest.mark.parametrize("architecture", slow_but(("g_transformer", "cadec")))
def test_every_architecture_trains(study_files, tmp_path, architecture):
    _, history = run_training(study_files, tmp_path, architecture=architecture, training={"max_steps": 8})
    losses = history["dev_loss"].dropna()
    assert losses.iloc[-1] < losses.iloc[0]


def test_accumulated_batches_equal_one_large_batch(study_files, tmp_path):
    """Without dropout, losses and gradient norms in all updates are the same as for the large batch."""
    values = {"word_dropout": 0.0, "log_every_steps": 1, "max_steps": 5}
    histories = []
    for name, sizes in (("large", (10_000, 1)), ("small", (20, 100))):
        recipe = values | dict(zip(("max_batch_tokens", "accumulation_steps"), sizes, strict=True))
        _, history = run_training(study_files, tmp_path / name, training=recipe, model={"dropout": 0.0})
        histories.append(history[["step", "tokens", "train_loss", "gradient_norm"]])
    pd.testing.assert_frame_equal(*histories, rtol=1e-4)


@pytest.mark.slow
def test_a_row_counts_the_epochs_that_are_complete(study_files, tmp_path):
    """Including the row for the last update in a pass, with validations at any update."""
    epochs = []
    for every in (None, 6):
        recipe = {"max_batch_tokens": 40, "log_every_steps": 1, "validate_every_steps": every, "max_steps": 12}
        trained, history = run_training(study_files, tmp_path / str(every), training=recipe)
        epochs.append(history["epoch"].tolist())
    n_updates = epochs[0].index(1) + 1
    assert 12 / n_updates == trained.provenance["passes"]["documents"]
    assert epochs[0] == epochs[1] == [step // n_updates for step in range(1, 13)]


def test_patience_stops_and_the_best_weights_are_kept(study_files, tmp_path):
    recipe = {"learning_rate": 1e-12, "patience": 3, "validate_every_steps": 2, "max_steps": 100}
    trained, history = run_training(study_files, tmp_path, training=recipe)
    assert history["step"].max() == 2 + 3 * 2
    assert trained.provenance["best_step"] == 2


def test_word_dropout_ends_after_its_epochs(study_files):
    instance_set = load_instances(study_files.instances())
    settings = TrainingSettings.load(RECIPE | {"word_dropout": 0.5, "word_dropout_epochs": 2}, where="t")
    reader = UpdateReader([Task("documents", instance_set, instance_set)], model_settings(), settings, 1)
    is_masked = []
    for epoch in range(4):
        update = reader.prepare([np.arange(8)], UpdateIndex(step=1, task=0, epoch=epoch, position=0, first_epoch=epoch))
        (batch,) = (part.batch for part in update.micro_batches)
        is_masked.append(bool((batch.src_tokens_S == MASK).any() and (batch.tgt_inputs_N == MASK).any()))
    assert is_masked == [True, True, False, False]


def test_drop_rst_acts_in_training(study_files, tmp_path, monkeypatch):
    monkeypatch.setattr(Batch, "prepare", lambda self, _: self)
    monkeypatch.setattr(Batch, "to", lambda self, _: self, raising=False)
    instance_set = load_instances(study_files.instances("trees"))
    task = Task("documents", instance_set, instance_set)
    for probability, in_training, in_validation in ((0.0, {0.0}, 0.0), (0.5, {0.0, 0.5, 1.0}, 0.0), (1.0, {1.0}, 1.0)):
        model = build_transformer(model_settings("rst_mix"), len(study_files.vocabulary))
        trainer = Trainer(
            model,
            set(),
            tasks=[task],
            settings=TrainingSettings.load(RECIPE | {"drop_rst": probability}, where="t"),
            seed=1,
            folder=tmp_path,
            fabric=Fabric(accelerator="cpu", devices=1),
            options=TrainingOptions(),
        )
        shares = set()
        for position in range(30):
            index = UpdateIndex(step=1, task=0, epoch=0, position=position, first_epoch=0)
            (part,) = trainer.reader.prepare([np.array([0, 2])], index).micro_batches
            shares.add(part.batch.layout.trees.open_B.mean())
        assert shares == in_training
        assert trainer.dev_batch(task, np.arange(8), "padded").layout.trees.open_B.mean() == in_validation


def test_rst_attention_needs_instances_with_trees(study_files, tmp_path):
    folder = study_files.instances("documents")
    for name in ("train", "dev"):
        with pytest.raises(UserError, match=r"documents: has no trees, .*: build the instances with trees"):
            run_training(study_files, tmp_path, architecture="rst_mix", **{name: folder})
    assert not list(tmp_path.iterdir())


# Starting from another model


def test_a_model_with_another_vocabulary_is_refused(study_files, tmp_path):
    other = Vocabulary.from_symbols(["x", "y"])
    model = make_model("sentence_transformer", n_symbols=len(other))
    save_model(tmp_path / "other.pt", TrainedModel(model, other, study_files.pipeline, {}, {}))
    with pytest.raises(UserError, match=r"other\.pt: its vocabulary differs"):
        run_training(study_files, tmp_path, init=tmp_path / "other.pt")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("pipeline", "missing.json", r"missing\.json: no such file"),
        ("train", "missing", r"missing/manifest\.json: no such file"),
        ("vocabulary", "missing.txt", "no such file"),
        ("init", "missing.pt", "no such file"),
        ("seed", -1, "must not be negative"),
        ("accelerator", "gpu", "none is visible here"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(study_files, tmp_path, monkeypatch, option, value, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    value = tmp_path / value if isinstance(value, str) and option != "accelerator" else value
    with pytest.raises(UserError, match=message):
        run_training(study_files, tmp_path, **{option: value})
    assert not (tmp_path / "checkpoints").exists()


def test_divergence_is_found_by_the_last_validation_too(study_files, tmp_path):
    recipe = {"learning_rate": 1e11, "warmup_steps": 0, "max_steps": 1}
    with pytest.raises(UserError, match=r"validation loss is .*: lower learning_rate"):
        run_training(study_files, tmp_path, training=recipe)
    assert not (tmp_path / "model.pt").exists()


def test_seed_decides_the_model(study_files, tmp_path):
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trained, _ = run_training(study_files, tmp_path / name, seed=seed, training={"max_steps": 3})
        weights.append(trained.model.embedding.weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.slow
def test_a_document_model_starts_from_a_sentence_model(study_files, tmp_path, caplog):
    sentence, _ = run_training(study_files, tmp_path / "s", architecture="sentence_transformer", cutting="sentences")
    caplog.set_level(logging.INFO)
    recipe = {"max_steps": 1, "learning_rate": 1e-12, "pretrained_learning_rate": 1e-12}
    trained, _ = run_training(study_files, tmp_path / "d", init=tmp_path / "s/model.pt", training=recipe)
    assert "parameters come from" in caplog.text
    before = sentence.model.encoder[1].self_attention.in_weight
    torch.testing.assert_close(trained.model.encoder[1].self_attention.group.in_weight, before, atol=1e-9, rtol=0)
    assert trained.provenance["init"]
    assert not sentence.provenance["init"]
