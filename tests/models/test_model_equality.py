"""Whole models: compared with the dense-mask computation, packed and one by one, and in bfloat16."""

import numpy as np
import pytest
import torch
from architectures import DIVERSE, slow_but
from core_fixtures import (
    assert_close,
    decoder_states,
    document_trees,
    make_batch,
    make_model,
    make_study,
    model_settings,
    random_documents,
)

from benchmarks.gpu.dense import dense_loss
from docmt.instances.storage import load_instances
from docmt.models.batch import collate
from docmt.models.model_file import boundary_tokens
from docmt.models.presets import ARCHITECTURES
from docmt.models.systems.transformer import sinusoids
from docmt.text.vocabulary import BOS
from docmt.training.loss import LossModule

COUNTS = (1, 4, 7, 2, 1)
DENSE = ("g_transformer", "g_transformer_no_target_context", "g_transformer_no_language_locality")
DENSE += ("g_transformer_only_group", "g_transformer_only_global")


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


def batch_of(model, documents):
    """With trees if the model reads them. Documents with 7 sentences have open trees."""
    if not model.settings.needs_trees:
        return make_batch(model.settings, documents)
    is_open = [len(src) == 7 for src, _ in documents]
    return make_batch(model.settings, documents, document_trees(documents, open_B=is_open))


@pytest.mark.parametrize("architecture", DENSE)
@pytest.mark.parametrize("seed", [0, 1])
def test_loss_and_gradients_equal_the_dense_mask(architecture, seed):
    model = make_model(architecture, seed=seed)
    batch = make_batch(model.settings, random_documents(COUNTS, seed=seed))
    ours, theirs = LossModule(model, 0.1)(batch.prepare("padded")), dense_loss(model, batch, 0.1)
    assert_close(ours, theirs)
    for gradient, expected in zip(gradients(model, ours), gradients(model, theirs), strict=True):
        # Rounding adds up over the layers, differently on each kind of CPU. One attention alone is held to 1e-5.
        assert_close(gradient, expected, 5e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_batch_equals_single_documents(architecture):
    model = make_model(architecture)
    documents = random_documents(COUNTS)
    packed = decoder_states(model, batch_of(model, documents))
    alone = torch.cat([decoder_states(model, batch_of(model, [document])) for document in documents])
    assert_close(packed, alone)


@pytest.mark.parametrize("architecture", slow_but(DIVERSE))
def test_bfloat16_never_gives_nan(architecture):
    model = make_model(architecture, n_symbols=24).bfloat16()
    loss = LossModule(model, 0.1)(
        batch_of(model, [*random_documents(COUNTS), *random_documents((30,), longest=40, seed=1)]).prepare("padded")
    )
    assert loss.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(model, loss))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_parameter_gets_a_gradient(architecture):
    model = make_model(architecture)
    loss = LossModule(model, 0.1)(batch_of(model, random_documents(COUNTS)).prepare("padded"))
    for (name, _), gradient in zip(model.named_parameters(), gradients(model, loss), strict=True):
        assert gradient.any(), name


# Batches


def test_aligned_batch_predicts_next_tokens():
    src, tgt = [np.array([1, 9, 2]), np.array([1, 2])], [np.array([1, 7, 8, 2]), np.array([1, 2])]
    batch = make_batch(make_model().settings, [(src, tgt)])
    assert batch.src_tokens_S.tolist() == [1, 9, 2, 1, 2]
    assert batch.tgt_inputs_N.tolist() == [1, 7, 8, 1]
    assert batch.tgt_labels_N.tolist() == [7, 8, 2, 2]
    assert batch.is_word_or_end_N.all()


def test_free_batch_is_a_self_ending_stream():
    src = [np.array([1, 9, 2]), np.array([1, 2])]
    tgt = [np.array([1, 7, 8, 2]), np.array([1, 2])]
    batch = make_batch(make_model("document_transformer").settings, [(src, tgt), (src[1:], tgt[:1])])
    assert batch.tgt_inputs_N.tolist() == [1, 7, 8, 2, 1, 2, 1, 7, 8, 2]
    assert batch.tgt_labels_N.tolist() == [7, 8, 2, 1, 2, 5, 7, 8, 2, 5]
    assert batch.tgt_labels_N[batch.is_word_or_end_N].tolist() == [7, 8, 2, 2, 7, 8, 2]
    assert batch.layout.tgt_lengths_G.tolist() == [6, 4]


@pytest.mark.parametrize("architecture", ["document_transformer", "document_transformer_aligned"])
@pytest.mark.parametrize(
    ("tags", "before"),
    [((), ["<s>"]), ((), ["</s>"]), (("en", "de"), None), (("en", "de"), ["{tgt}"]), (("en", "de"), ["</s>", "{tgt}"])],
)
def test_losses_ignore_the_marks(architecture, tags, before, tmp_path):
    """For all first symbols in a sentence: `<s>`, a language tag, fairseq's `</s>`, or two symbols."""
    if before and before[0] == "</s>" and architecture == "document_transformer":
        pytest.skip("a free stream begins sentences with one symbol, and ends them with </s>")
    study = make_study(tmp_path, tags=tags)
    settings = model_settings(architecture, marks=before and {"tgt_before": before})
    instances = load_instances(study.instances())
    batch = collate(
        instances,
        range(len(instances)),
        settings,
        boundaries=boundary_tokens(settings.marks, study.vocabulary, study.pipeline),
    )
    labels = batch.tgt_labels_N[batch.is_word_or_end_N]
    assert labels.tolist() == [symbol for symbol in instances.tgt_tokens.tolist() if symbol != BOS]


# Positions


@pytest.mark.parametrize(
    ("architecture", "src", "tgt"),
    [
        ("g_transformer", [0, 1, 2, 3, 4, 0, 1], [0, 1, 2, 3, 0]),
        ("sentence_transformer", [0, 1, 2, 0, 1, 0, 1], [0, 1, 2, 0, 0]),
        ("document_transformer", [0, 1, 2, 3, 4, 0, 1], [0, 1, 2, 3, 4, 5, 0, 1]),
    ],
)
def test_positions_run_through_the_instance_or_the_sentence(architecture, src, tgt):
    empty = np.array([1, 2])
    documents = [([np.array([1, 9, 2]), empty], [np.array([1, 7, 8, 2]), empty]), ([empty], [empty])]
    layout = make_batch(make_model(architecture).settings, documents).prepare("padded").layout
    assert layout.positions("src").tolist() == src
    assert layout.positions("tgt").tolist() == tgt


def test_sinusoids_are_those_of_the_original_transformer():
    table = sinusoids(3000, 8)
    assert len(table) >= 3000
    position, i = 2777, 2
    rate = 10000 ** -(i / 3)
    assert table[position, i] == pytest.approx(np.sin(position * rate), abs=1e-3)
    assert table[position, 4 + i] == pytest.approx(np.cos(position * rate), abs=1e-3)
    assert table[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert torch.equal(sinusoids(2, 8)[:2], table[:2])
