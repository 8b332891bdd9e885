"""Document models that start from published sentence models translate the same at first, and then learn."""

import dataclasses
import functools
import random

import pytest
import torch
from architectures import slow_but
from core_fixtures import SIZE, assert_close, make_study, random_trees, run_training
from published_models import LINES, make_published

from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Source, Translator
from docmt.errors import UserError
from docmt.models.attention.multi_head import FusedAttention
from docmt.models.initialization import copy_weights, zero_init_outputs
from docmt.models.model_file import save_model
from docmt.models.presets import ARCHITECTURES
from docmt.models.published.importing import published_weights
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.text.vocabulary import BOS, EOD, PAD

pytest.importorskip("sentencepiece")

FAMILIES = ("marian", "mbart", "m2m_100")
DOCUMENT_MODELS = ("g_transformer", "g_transformer_no_target_context", "rst_parallel", "rst_mix", "global_context")
NO_NORM = {"context": {"norm": False}}


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory):
    """Folder of a published model, and its import, by family."""

    @functools.cache
    def make(family):
        folder = tmp_path_factory.mktemp(family)
        return folder, make_published(folder, family)

    return make


@pytest.fixture(scope="module")
def marian_study(sentence_model, tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"), trained=sentence_model("marian")[1])


def changed_settings(settings, architecture):
    """Settings for a document model with the same size and form."""
    preset = {
        key: value | {"upper_layers": 1} if key.endswith("attention") else value
        for key, value in ARCHITECTURES[architecture].items()
    }
    values = settings.model_dump() | preset | {"positions": "sentence"}
    return ModelSettings.load(values | (NO_NORM if architecture == "global_context" else {}), where="test")


def grown(folder, trained, architecture):
    """A fresh document model."""
    settings = changed_settings(trained.model.settings, architecture)
    torch.manual_seed(5)
    model = build_transformer(settings, len(trained.vocabulary)).eval()
    copy_weights(model, published_weights(folder, settings, trained.vocabulary, ("en", "de")))
    zero_init_outputs(model)
    return dataclasses.replace(trained, model=model)


def two_hundred_sentences():
    draw = random.Random(4)
    words = sorted({word for line in LINES for word in line.split()})
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(200)]


def translations(trained, lengths, *, with_trees):
    """Ids of 200 sentences in documents with these lengths."""
    encoded = iter([trained.encode(line, "src") for line in two_hundred_sentences()])
    sources = []
    for number, length in enumerate(lengths):
        sentences = [next(encoded) for _ in range(length)]
        trees = random_trees([len(sentence) for sentence in sentences], seed=number) if with_trees else None
        sources.append(Source(sentences, trees))
    # Greedy: a wider beam is shared by all sentences of a document, whatever the model is.
    settings = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=8)
    hypotheses = dict(Translator(trained, settings).translate_sources(sources))
    return [sentence for number in range(len(sources)) for sentence in hypotheses[number].sentences]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("architecture", slow_but(("g_transformer", "han"), DOCUMENT_MODELS))
def test_document_model_starts_as_the_sentence_model(sentence_model, family, architecture):
    if (family, architecture) in {("mbart", "global_context"), ("m2m_100", "global_context")}:
        pytest.skip("a context encoder needs post-norm")
    folder, trained = sentence_model(family)
    model = grown(folder, trained, architecture)
    expected = translations(trained, [1] * 200, with_trees=False)
    assert len({tuple(sentence) for sentence in expected}) > 10
    assert translations(model, [10] * 20, with_trees=model.model.settings.needs_trees) == expected


def test_silent_parts_change_no_state(sentence_model):
    folder, trained = sentence_model("marian")
    model = grown(folder, trained, "g_transformer").model
    fused = [attention for _, attention in model.attentions() if isinstance(attention, FusedAttention)]
    assert len(fused) == 3
    query_ND = torch.randn(5, model.settings.width)

    def attend(part, rows_ND):
        return part.out(rows_ND.cumsum(0))

    for attention in fused:
        assert torch.equal(attention.fuse(query_ND, attend), attend(attention.group, query_ND) / 2)


@pytest.mark.parametrize("architecture", DOCUMENT_MODELS)
def test_new_parts_get_gradients(sentence_model, marian_study, architecture, tmp_path):
    """Parts behind silent projections get gradients as soon as the projections have moved."""
    folder, trained = sentence_model("marian")
    settings = changed_settings(trained.model.settings, architecture).model_dump(exclude={"encoder_layers"})
    settings = {key: value for key, value in settings.items() if key not in SIZE or key == "dropout"}
    before = grown(folder, trained, architecture).model.state_dict()
    recipe = {"init_new_parameters": "zero", "max_steps": 3, "warmup_steps": 0}
    recipe |= {"word_dropout": 0.0, "validate_every_steps": 3}
    tuned, _ = run_training(
        marian_study, tmp_path, architecture=architecture, init=folder, model=settings, training=recipe
    )
    after = tuned.model.state_dict()
    still = [name for name in after if torch.equal(after[name], before[name]) and "embedding" not in name]
    assert not still


@pytest.mark.slow
def test_fine_tuning_on_documents_learns(sentence_model, marian_study, tmp_path):
    folder, trained = sentence_model("marian")
    values = changed_settings(trained.model.settings, "g_transformer").model_dump()
    settings = {key: values[key] for key in ("positions", "form", "marks", "dropout")}
    recipe = {"init_new_parameters": "zero", "max_steps": 60, "validate_every_steps": 20}
    recipe |= {"pretrained_learning_rate": 3e-3}
    tuned, history = run_training(marian_study, tmp_path, init=folder, model=settings, training=recipe)
    assert history["dev_loss"].dropna().iloc[-1] < 0.7 * history["train_loss"].iloc[0]
    assert Translator(tuned, DecodingSettings()).translate_documents([["the dog sees", "a house"]])


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_free_stream_can_learn_its_breaks(kind, sentence_model, marian_study, tmp_path):
    """The published model never wrote `<s>` and `<eod>`. Other symbols that it never writes still start at −100."""
    init, trained = sentence_model("marian")
    if kind == "file":
        init = tmp_path / "imported.pt"
        save_model(init, trained)
    values = trained.model.settings.model_dump()
    settings = {key: values[key] for key in ("form", "marks", "dropout")} | {"positions": "sentence"}
    recipe = {"max_steps": 1, "validate_every_steps": 1, "warmup_steps": 1000}
    options = {"architecture": "document_transformer", "model": settings, "training": recipe}
    tuned, history = run_training(marian_study, tmp_path, init=init, **options)
    bias = tuned.model.output_bias.detach()
    assert_close(bias[[BOS, EOD]], torch.zeros(2), 1e-2)
    assert_close(bias[PAD], torch.tensor(-100.0), 1e-2)
    # As likely as a word at first, and counted apart from the words.
    assert 0 < history["dev_nll_marks"].iloc[0] < 20


@pytest.mark.slow
def test_imported_file_equals_its_folder(sentence_model, marian_study, tmp_path):
    folder, trained = sentence_model("marian")
    save_model(tmp_path / "imported.pt", trained)
    values = changed_settings(trained.model.settings, "g_transformer").model_dump()
    settings = {key: values[key] for key in ("positions", "form", "marks", "dropout")}
    recipe = {"init_new_parameters": "zero", "max_steps": 2, "validate_every_steps": 2}
    options = {"model": settings, "training": recipe}
    weights = [
        run_training(marian_study, tmp_path / name, init=init, **options)[0].model.state_dict()
        for name, init in (("folder", folder), ("file", tmp_path / "imported.pt"))
    ]
    for name, value in weights[0].items():
        assert_close(weights[1][name], value, 0), name


def test_what_cannot_start_silently_is_refused(sentence_model, marian_study, tmp_path):
    folder, trained = sentence_model("marian")
    with pytest.raises(UserError, match="have no gate"):
        grown(folder, trained, "rst_serial")
    settings = changed_settings(trained.model.settings, "global_context")
    settings = settings.model_copy(update={"context": settings.context.model_copy(update={"norm": True})})
    with pytest.raises(UserError, match="norm false"):
        zero_init_outputs(build_transformer(settings, 20))
    with pytest.raises(UserError, match=r"model.form of the published model is .*swish.*, not"):
        run_training(marian_study, tmp_path, init=folder, model={"dropout": 0.0})


def test_another_vocabulary_is_refused(sentence_model, study_files, tmp_path):
    folder, trained = sentence_model("marian")
    values = trained.model.settings.model_dump()
    with pytest.raises(UserError, match="has no symbol"):
        run_training(study_files, tmp_path, init=folder, model={key: values[key] for key in ("form", "marks")})
