"""Masked sentences are context without loss, from the document index to the loss of an update."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from core_fixtures import decoder_states, make_model, run_training

from docmt.corpora.documents import INDEX_HEADER, MASKED_HEADER, iterate_index
from docmt.errors import UserError
from docmt.files import write_lines
from docmt.instances.building import build_from_files, read_masked
from docmt.instances.packing import as_sentences
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import load_instances, save_instances
from docmt.models.batch import NO_LABEL
from docmt.training.loss import LossModule
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import Task
from docmt.training.updates import UpdateIndex, UpdateReader


@pytest.fixture(scope="module")
def build(study_files, tmp_path_factory):
    """Build instances in which every third sentence is masked."""
    folder = tmp_path_factory.mktemp("masks")
    rows, start = [MASKED_HEADER], 0
    for name, length in iterate_index(study_files.folder / "train.documents.tsv"):
        numbers = [str(number + 1) for number in range(length) if (start + number) % 3 == 1]
        rows.append(f"{name}\t{length}\t{' '.join(numbers)}")
        start += length
    write_lines(folder / "train.documents.tsv", rows)

    def make(**settings):
        build_from_files(
            [study_files.folder / "train.bpe.en", study_files.folder / "train.bpe.de"],
            documents=folder / "train.documents.tsv",
            vocabulary=study_files.folder / "vocabulary.txt",
            settings=InstancesSettings(**settings),
            out=folder / "instances",
        )
        return load_instances(folder / "instances")

    return make


def source_of(instance_set, number):
    offsets = instance_set.src_offsets
    return tuple(instance_set.src_tokens[offsets[number] : offsets[number + 1]].tolist())


@pytest.mark.parametrize("settings", [{"subset": 2}, {"min_document_tokens": 15}, {"shuffled": True}])
def test_masks_follow_their_sentences(build, settings):
    whole, part = build(), build(max_sentences=2, **settings)
    assert whole.masked.sum() == whole.manifest["counts"]["masked_sentences"] > 0
    masks = {}
    for number, is_masked in enumerate(whole.masked.tolist()):
        masks.setdefault(source_of(whole, number), set()).add(is_masked)
    assert len(part.masked) == len(part.src_offsets) - 1
    for number, is_masked in enumerate(part.masked.tolist()):
        assert is_masked in masks[source_of(part, number)]
    if "shuffled" in settings:
        assert part.masked.sum() == whole.masked.sum()
        assert part.masked.tolist() != whole.masked.tolist()


def test_masks_are_stored_and_checked(build, tmp_path):
    whole = build()
    save_instances(tmp_path / "copy", whole)
    assert np.array_equal(load_instances(tmp_path / "copy").masked, whole.masked)
    save_instances(tmp_path / "short", dataclasses.replace(whole, masked=whole.masked[1:]))
    with pytest.raises(UserError, match="arrays do not match"):
        load_instances(tmp_path / "short")
    for masked in ("3", "0", "-1", "one"):
        write_lines(tmp_path / "index", [MASKED_HEADER, f"a\t2\t{masked}"])
        with pytest.raises(UserError, match="line 2: masked sentences must be numbers from 1 to 2"):
            read_masked(tmp_path / "index")
    for header, row in ((MASKED_HEADER, "a\t2"), (INDEX_HEADER, "a\t2\t1")):
        write_lines(tmp_path / "index", [header, row])
        with pytest.raises(UserError, match="line 2 must be a document id, a tab and a number"):
            list(iterate_index(tmp_path / "index"))


def test_validations_have_no_masks(build, study_files, tmp_path):
    save_instances(tmp_path / "masked", build())
    with pytest.raises(UserError, match="masked: has masked sentences, but a validation counts all"):
        run_training(study_files, tmp_path, dev=tmp_path / "masked")


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer"])
@pytest.mark.parametrize("unit", ["documents", "sentences"])
@torch.no_grad()
def test_update_ignores_masked_sentences(build, architecture, unit):
    masked = build()
    model = make_model(architecture, n_symbols=int(max(masked.src_tokens.max(), masked.tgt_tokens.max())) + 1)
    masked = as_sentences(masked) if unit == "sentences" else masked
    context = "none" if unit == "sentences" else "document"
    updates = []
    for instance_set in (masked, dataclasses.replace(masked, masked=None)):
        task = Task(unit, instance_set, instance_set, context=context)
        reader = UpdateReader([task], model.settings, TrainingSettings(), seed=1)
        updates.append(reader.read(UpdateIndex(step=1, task=0, epoch=0, position=0, first_epoch=0)))
    update, plain = updates
    batch, whole = update.micro_batches[0].batch, plain.micro_batches[0].batch
    # Sentence by sentence, in the order of the batch. An input belongs to the sentence that it is in.
    lengths = np.diff(masked.tgt_offsets) - (0 if architecture == "document_transformer" else 1)
    order = [
        sentence
        for instance in update.micro_batches[0].instances
        for sentence in range(masked.instances[instance], masked.instances[instance + 1])
    ]
    is_masked = torch.from_numpy(np.concatenate([np.repeat(masked.masked[i], lengths[i]) for i in order]))
    assert torch.equal(batch.tgt_inputs_N, whole.tgt_inputs_N)
    assert torch.equal(batch.tgt_labels_N == NO_LABEL, is_masked)
    assert update.n_labels == int((~is_masked).sum()) < plain.n_labels
    losses = F.cross_entropy(
        model.logits(decoder_states(model, whole)), whole.tgt_labels_N, label_smoothing=0.1, reduction="none"
    )
    assert float(LossModule(model, 0.1)(batch)) == pytest.approx(float(losses[~is_masked].sum()), rel=1e-5)
