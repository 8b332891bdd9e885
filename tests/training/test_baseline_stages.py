"""Training in stages: from a sentence model to models with context modules, with frozen parts, resumed, and decoded."""

import numpy as np
import pytest
import torch
from core_fixtures import assert_same_training, model_settings, run_training

from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.models.initialization import freeze
from docmt.models.systems.context_transformer import build_transformer
from docmt.training.optimizer import build_optimizer
from docmt.training.settings import TrainingSettings

CONTEXT = "context."  # how the names of the parameters of context modules begin
FROZEN = {"freeze": "pretrained"}
STEPS = {"max_steps": 24, "validate_every_steps": 8, "word_dropout": 0.0}


@pytest.fixture(scope="module")
def sentence_model(study_files, tmp_path_factory):
    """File of a sentence model."""
    folder = tmp_path_factory.mktemp("sentence")
    run_training(study_files, folder, architecture="sentence_transformer", training=STEPS)
    return folder / "model.pt"


def weights(trained):
    return trained.model.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["doct", "han_encoder", "san", "cadec"])
def test_frozen_parts_do_not_move(architecture, sentence_model, study_files, tmp_path):
    options = {"architecture": architecture, "init": sentence_model}
    recipe = STEPS | FROZEN | {"max_steps": 48}
    trained, history = run_training(study_files, tmp_path, training=recipe, **options)
    before = torch.load(sentence_model, weights_only=True)["weights"]
    assert all(torch.equal(weights(trained)[name], value) for name, value in before.items())
    torch.manual_seed(1)
    fresh = build_transformer(trained.model.settings, len(trained.vocabulary)).state_dict()
    moved = {
        name for name in fresh if name.startswith(CONTEXT) and not torch.equal(fresh[name], weights(trained)[name])
    }
    assert moved == set(fresh) - set(before)
    assert history["dev_loss"].dropna().iloc[-1] < history["dev_loss"].dropna().iloc[0]


def test_stage_chain_takes_over_everything(sentence_model, study_files, tmp_path):
    _, first = run_training(
        study_files, tmp_path / "1", architecture="han_encoder", init=sentence_model, training=STEPS
    )
    joint, second = run_training(
        study_files, tmp_path / "2", architecture="han", init=tmp_path / "1" / "model.pt", training=STEPS
    )
    assert second["train_loss"].iloc[-1] < first["train_loss"].iloc[0]
    documents = [["the dog sees a house", "", "a child", "the house"], ["a dog"], [""]]
    translated = Translator(joint, DecodingSettings()).translate_documents(documents)
    assert [[bool(text) for text in document] for document in translated] == [
        [bool(text) for text in document] for document in documents
    ]
    candidates = [Candidate(document, document) for document in documents]
    together = TargetScorer(joint, DecodingSettings()).score(candidates)
    alone = [TargetScorer(joint, DecodingSettings()).score([candidate])[0] for candidate in candidates]
    assert np.allclose(together, alone, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "recipe"), [("doct", FROZEN), ("han", {}), ("cadec", FROZEN)])
def test_a_resumed_stage_equals_an_uninterrupted_one(architecture, recipe, sentence_model, study_files, tmp_path):
    options = {"architecture": architecture, "init": sentence_model}
    whole = run_training(study_files, tmp_path / "whole", training=recipe | {"max_steps": 8}, **options)
    run_training(study_files, tmp_path / "parts", training=recipe | {"max_steps": 4}, **options)
    resumed = run_training(study_files, tmp_path / "parts", training=recipe | {"max_steps": 8}, **options)
    assert_same_training(resumed, whole)


def test_the_optimizer_keeps_nothing_of_what_is_frozen():
    model = build_transformer(model_settings("doct"), 20)
    names = {name for name, _ in model.named_parameters() if not name.startswith(CONTEXT)}
    freeze(model, names)
    optimizer = build_optimizer(model, names, TrainingSettings())
    ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert ids == {id(p) for name, p in model.named_parameters() if name.startswith(CONTEXT)}


def test_wrong_freezing_is_refused(sentence_model, study_files, tmp_path):
    with pytest.raises(UserError, match="no parameters were copied: pass a model with --init"):
        run_training(study_files, tmp_path, architecture="doct", training=FROZEN)
    with pytest.raises(UserError, match="nothing is left to train"):
        run_training(study_files, tmp_path, architecture="sentence_transformer", init=sentence_model, training=FROZEN)
    recipe = FROZEN | {"tasks": ["documents", "sentences"]}
    with pytest.raises(UserError, match="the tasks 'sentences' and 'pairs' read no context"):
        run_training(study_files, tmp_path, architecture="doct", init=sentence_model, training=recipe)
