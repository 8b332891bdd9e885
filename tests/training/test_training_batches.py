"""Batch order, word dropout, loss and learning rates."""

import itertools
import math

import numpy as np
import pytest
import torch
from core_fixtures import decoder_states, document_trees, make_batch, make_model, random_documents
from hypothesis import given
from hypothesis import strategies as st

from docmt.errors import UserError
from docmt.instances.storage import load_instances
from docmt.models.batch import collate
from docmt.text.vocabulary import MASK, N_SPECIALS
from docmt.training.entropy import EntropyMeter
from docmt.training.input_dropout import draw_numbers, drop_trees, drop_words
from docmt.training.optimizer import build_optimizer, learning_rate_factor
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import Task
from docmt.training.updates import UpdateReader, instance_batches, n_inputs


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 120), st.integers(0, 5))
def test_batches_cover_instances_within_limits(costs, max_tokens, seed):
    tokens = np.array(costs)
    order = np.random.default_rng(seed).permutation(len(tokens))
    batches = instance_batches(order, tokens, max_tokens)
    assert np.concatenate(batches).tolist() == order.tolist()
    assert all(tokens[batch].sum() <= max_tokens or len(batch) == 1 for batch in batches)
    for batch, following in itertools.pairwise(batches):
        assert tokens[batch].sum() + tokens[following[0]] > max_tokens


def make_reader(study, *, seed=1, **options):
    """A reader for sentences of the tiny corpus."""
    sentences = load_instances(study.instances("sentences"))
    settings = TrainingSettings(max_batch_tokens=30, accumulation_steps=10**6)
    return UpdateReader([Task("documents", sentences, sentences)], make_model().settings, settings, seed, **options)


def test_order_follows_seed_and_epoch(study_files):
    instance_set = load_instances(study_files.instances("sentences"))

    def order(seed, epoch):
        batches = make_reader(study_files, seed=seed).update_batches(0, epoch, 0)
        assert sorted(np.concatenate(batches)) == list(range(len(instance_set)))
        return [batch.tolist() for batch in batches]

    assert order(1, 0) == order(1, 0)
    assert len({str(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6


@pytest.mark.parametrize("n_metered", [0, 2, 10**6])
@pytest.mark.parametrize("n_ranks", [1, 3])
def test_gpu_validation_batches_grow(study_files, n_ranks, n_metered):
    readers = [make_reader(study_files, n_ranks=n_ranks, micro_batch_tokens=n, kernel="varlen") for n in (20, 120)]
    instance_set = readers[0].tasks[0].dev
    before, after = (reader.validation_batches(reader.tasks[0], n_metered) for reader in readers)
    sizes = [[instance_set.n_tokens()[batch].sum() for batch in batches] for batches in (before, after)]
    assert sizes[0][:n_metered] == sizes[1][:n_metered]
    assert max(sizes[1]) <= 120
    for batches in (before, after):
        assert np.concatenate(batches).tolist() == list(range(len(instance_set)))
    if n_metered < len(before):
        assert n_ranks <= len(after[n_metered:]) <= len(before[n_metered:])
        assert n_ranks > 1 or len(after) < len(before)


# Word dropout


def drop(batch, *seed, probability=0.3):
    """Word dropout of a batch."""
    numbers = np.random.default_rng(seed).random(len(batch.src_tokens_S) + len(batch.tgt_inputs_N))
    return drop_words(batch, *np.split(numbers, [len(batch.src_tokens_S)]), probability=probability)


def long_batch(architecture="g_transformer"):
    documents = random_documents((30, 20), longest=40)
    return make_batch(make_model(architecture).settings, documents)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
def test_word_dropout_masks_words_alone_on_both_sides(architecture):
    batch = long_batch(architecture)
    dropped = drop(batch, 1, 2, 3, 0)
    for name in ("src_tokens_S", "tgt_inputs_N"):
        before, after = getattr(batch, name), getattr(dropped, name)
        changed = before != after
        assert (after[changed] == MASK).all()
        assert (before[changed] >= N_SPECIALS).all()
        share = float(changed.sum() / (before >= N_SPECIALS).sum())
        assert share == pytest.approx(0.3, abs=0.06)
    assert torch.equal(dropped.tgt_labels_N, batch.tgt_labels_N)
    assert dropped.layout is batch.layout


# Random numbers of words and trees


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
def test_random_numbers_are_those_of_the_whole_batch(study_files, architecture):
    """Random numbers of an instance are the same as in its batch, at its tokens. Dropout does not depend on devices."""
    instance_set = load_instances(study_files.instances())
    settings = make_model(architecture).settings
    instances = np.array([5, 0, 3])
    batch = collate(instance_set, instances, settings)
    src, tgt = n_inputs(instance_set, instances, settings)
    src_numbers, tgt_numbers, trees = zip(*draw_numbers(src, tgt, seed=(1, 0, 0, 0)), strict=True)
    assert (src.sum(), tgt.sum()) == (len(batch.src_tokens_S), len(batch.tgt_inputs_N))
    whole = np.random.default_rng((1, 0, 0, 0)).random(src.sum() + tgt.sum())
    assert np.concatenate([*src_numbers, *tgt_numbers]).tolist() == whole.tolist()
    assert trees == tuple(np.random.default_rng((1, 0, 0, 0, 1)).random(3))
    assert [*map(len, src_numbers)] == src.tolist()
    assert [*map(len, tgt_numbers)] == tgt.tolist()


# Dropped trees


def tree_batch(n_documents=400):
    documents = random_documents((2,) * n_documents)
    return make_batch(make_model("rst_mix").settings, documents, document_trees(documents))


def open_trees(batch, probability=0.5):
    numbers = np.random.default_rng(1).random(len(batch.layout.sentences_B))
    return drop_trees(batch, numbers, probability=probability)


def test_dropped_trees_open_a_share_of_the_instances():
    batch = tree_batch()
    assert open_trees(batch, 0.3).layout.trees.open_B.mean() == pytest.approx(0.3, abs=0.06)
    assert open_trees(batch, 1.0).layout.trees.open_B.all()
    assert not batch.layout.trees.open_B.any()
    dropped = open_trees(batch)
    assert dropped.src_tokens_S is batch.src_tokens_S
    assert dropped.tgt_labels_N is batch.tgt_labels_N


def test_without_dropout_the_batch_is_left_alone():
    batch, without = tree_batch(3), long_batch("rst_mix")
    assert open_trees(batch, 0.0) is drop(batch, 1, probability=0.0) is batch
    assert open_trees(without) is without


# Learning rates


def test_the_schedule_warms_up_and_falls():
    """With the inverse square root, or on a straight line as in the script for mBART."""
    root = {(1, 4000): 1 / 4000, (2000, 4000): 0.5, (4000, 4000): 1.0, (16000, 4000): 0.5, (1, 0): 1.0, (4, 0): 0.5}
    line = {1: 1 / 2500, 2500: 1.0, 251_875: 0.75, 501_250: 0.5, 1_000_000: 0.0, 1_000_001: 0.0}
    assert {key: learning_rate_factor(*key) for key in root} == pytest.approx(root)
    assert {step: learning_rate_factor(step, 2500, 1_000_000) for step in line} == pytest.approx(line)


@pytest.mark.parametrize("architecture", ["g_transformer", "rst_serial", "rst_mix"])
def test_fresh_and_copied_parameters_have_their_own_rates(architecture):
    model = make_model(architecture)
    fresh = (".global_.", ".rst.", ".gate.")
    copied = {name for name, _ in model.named_parameters() if not any(part in name for part in fresh)}
    settings = TrainingSettings(warmup_steps=10)
    optimizer = build_optimizer(model, copied, settings)
    peaks = {id(p): group["peak"] for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        assert peaks[id(parameter)] == (1e-4 if name in copied else 5e-4), name
    assert len(peaks) == len(list(model.parameters()))
    assert [group["peak"] for group in optimizer.param_groups] == pytest.approx([5e-4, 1e-4])
    assert optimizer.defaults["betas"] == (0.9, 0.98)
    assert optimizer.defaults["eps"] == 1e-8
    assert len(build_optimizer(model, set(), settings).param_groups) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_steps": None, "max_epochs": None, "patience": None}, "are all null: set one of them"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": "1e-4"}, "write it with a point"),
        ({"warmup": 10}, "did you mean 'warmup_steps'"),
        ({"word_dropout": 1.0}, "word_dropout"),
        ({"drop_rst": 1.5}, "drop_rst"),
        ({"precision": "fp16"}, "precision"),
        ({"decay_steps": 4000}, "decay_steps is 4000: it must be above warmup_steps, 4000"),
    ],
)
def test_bad_recipes_are_named(values, message):
    with pytest.raises(UserError, match=message):
        TrainingSettings.load(values, where="training")


# Entropy of whole models


def uniform_model(architecture, *, upper_layers):
    """A model with uniform attention, because all queries are zero."""
    model = make_model(architecture, upper_layers=upper_layers)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "in_weight" in name:
                parameter[: len(parameter) // 3] = 0
    return model


def test_uniform_attention_has_group_entropies():
    model = uniform_model("g_transformer", upper_layers=0)
    documents = [random_documents((3, 2), seed=seed) for seed in (1, 2)]
    meter = EntropyMeter(model)
    src, tgt = [], []
    for pair in documents:
        batch = make_batch(model.settings, pair)
        with meter:
            decoder_states(model, batch)
        src += batch.layout.src_lengths_G.tolist()
        tgt += batch.layout.tgt_lengths_G.tolist()
    decoder_states(model, batch)  # not measured
    measures = meter.entropies()
    assert measures["entropy_encoder"] == pytest.approx(sum(n * math.log2(n) for n in src) / sum(src), rel=1e-5)
    assert measures["entropy_cross"] == pytest.approx(
        sum(t * math.log2(s) for s, t in zip(src, tgt, strict=True)) / sum(tgt)
    )
    causal = sum(math.log2(i) for n in tgt for i in range(1, n + 1))
    assert measures["entropy_decoder"] == pytest.approx(causal / sum(tgt), rel=1e-5)
    assert [measures[f"below_uniform_{kind}"] for kind in ("cross", "encoder", "decoder")] == [0, 0, 0]


def test_masked_keys_do_not_count():
    batch = make_batch((model := make_model("g_transformer", upper_layers=1)).settings, random_documents((3, 2)))
    with EntropyMeter(model) as meter:
        decoder_states(model, batch)
    measures = meter.entropies()
    lengths = batch.layout.src_lengths_G
    tgt_lengths = batch.layout.tgt_lengths_G
    even = (tgt_lengths * np.log2(lengths)).sum() / tgt_lengths.sum()
    assert 0.01 < measures["below_uniform_cross_group"] < 1
    assert measures["entropy_cross_group"] + measures["below_uniform_cross_group"] == pytest.approx(even, rel=1e-5)


@pytest.mark.parametrize("architecture", ["rst_serial", "rst_parallel", "rst_mix"])
def test_rst_entropy_counts_visible_units(architecture):
    model = uniform_model(architecture, upper_layers=2)
    documents = random_documents((4, 2))
    batch = make_batch(model.settings, documents, document_trees(documents))
    with EntropyMeter(model) as meter:
        decoder_states(model, batch)
    lengths = batch.layout.src_lengths_G
    n_tokens = lengths.sum()
    local = (lengths * np.log2(lengths)).sum() / n_tokens
    seen = batch.layout.grouping("encoder", "rst").dense_mask(n_tokens).sum(1)
    measures = meter.entropies()
    assert measures["entropy_encoder"] == pytest.approx((local + np.log2(seen).mean()) / 2, rel=1e-5)
    assert measures["entropy_encoder_group"] == pytest.approx(local, rel=1e-5)
    assert measures["entropy_encoder_rst"] == pytest.approx(np.log2(seen).mean(), rel=1e-5)
