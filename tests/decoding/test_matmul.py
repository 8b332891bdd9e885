"""Matrix products with weights on a CPU, and models that are prepared for them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from architectures import DIVERSE, SLOW_ABLATIONS, slow_but
from core_fixtures import DOCUMENTS, make_model, translate
from plain_search import teacher_forced

from docmt.decoding.beam_search import search_instances
from docmt.decoding.decoding_model import DecodingModel, prepare_model, prepare_search
from docmt.decoding.matmuls import FloatMatmul, Int8Matmul
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.models.attention.layout import AttentionLayout
from docmt.models.model_file import load_model
from docmt.models.precisions import cpu_has_vnni
from docmt.models.presets import ARCHITECTURES

N_SYMBOLS = 40
ONE_PASS = [name for name in ARCHITECTURES if name != "cadec"]  # which reads drafts: test_two_pass_search.py
NEEDS_VNNI = pytest.mark.skipif(not cpu_has_vnni(), reason="without VNNI, sums of rows of 8 bits overflow")


def random_model(architecture):
    return make_model(architecture, n_symbols=N_SYMBOLS).eval()


def random_batch(settings):
    """Two documents, including an empty sentence, as packed tokens with marks, and their layout."""
    generator = np.random.default_rng(0)
    lengths = [4, 0, 7, 2, 1]
    sentences = [np.concatenate(([1], generator.integers(6, N_SYMBOLS, n), [2])) for n in lengths]
    layout = AttentionLayout.of_source(np.array(lengths) + 2, np.array([3, 2]), settings=settings)
    return np.concatenate(sentences), layout


def closeness(result, expected):
    return float(F.cosine_similarity(result.flatten(), expected.flatten(), dim=0))


@pytest.mark.parametrize("shape", [(7, 12), (96, 16), (16, 96)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_equal_linear_maps(shape, has_bias, dtype):
    torch.manual_seed(0)
    weight = torch.randn(shape, dtype=dtype)
    bias = torch.randn(shape[0], dtype=dtype) if has_bias else None
    product = FloatMatmul(weight, bias)
    assert (product.out_features, product.in_features) == shape
    for n_rows in (0, 1, 2, 6, 50):
        rows = torch.randn(n_rows, shape[1], dtype=dtype)
        outputs = product(rows)
        assert outputs.is_contiguous()
        tolerance = 1e-4 if dtype == torch.float32 else 0.1
        torch.testing.assert_close(outputs, F.linear(rows, weight, bias), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("has_vnni", [pytest.param(True, marks=NEEDS_VNNI), False])
@pytest.mark.parametrize("has_bias", [True, False])
def test_int8_products_are_as_near_as_their_rounding(monkeypatch, has_bias, has_vnni):
    monkeypatch.setattr("docmt.decoding.matmuls.cpu_has_vnni", lambda: has_vnni)
    torch.manual_seed(0)
    # Outputs of very different size, and one that is always 0.
    weight = torch.randn(30, 64) * torch.logspace(-3, 2, 30)[:, None]
    weight[3] = 0
    bias = torch.randn(30) if has_bias else None
    product = Int8Matmul(weight, bias)
    rows = torch.randn(9, 64)
    assert product.out_features == 30
    # A weight is off by at most half of its step. An input by half, and at the ends of the range by another half, since
    # zero has to be a step.
    input_step = (rows.max() - rows.min()) / (255 if has_vnni else 127)
    weight_steps = weight.abs().amax(1) / 127
    bounds = (
        input_step * (weight.abs() + weight_steps[:, None] / 2).sum(1) + rows.abs().sum(1)[:, None] * weight_steps / 2
    )
    assert bool(((product(rows) - F.linear(rows, weight, bias)).abs() <= bounds + 1e-6).all())


@pytest.mark.parametrize("architecture", SLOW_ABLATIONS)
def test_a_prepared_model_computes_as_the_model(architecture):
    model = random_model(architecture)
    tokens, layout = random_batch(model.settings)
    names = {"float32": DecodingModel(model), "int8": DecodingModel(model, Int8Matmul)}
    with torch.inference_mode():
        expected_SD = model.encode(torch.from_numpy(tokens), model.place(layout))
        for name, prepared in names.items():
            found_SD = prepared.transformer.encode(torch.from_numpy(tokens), prepared.transformer.place(layout))
            for result, expected in ((found_SD, expected_SD), (prepared.output(found_SD), model.logits(expected_SD))):
                if name == "float32":
                    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
                else:
                    # 0.9937 to 0.9995 for these models. Kernels of processors without VNNI are less exact.
                    assert closeness(result, expected) > 0.993


@pytest.mark.parametrize("architecture", slow_but(DIVERSE, ONE_PASS))
def test_int8_scores_its_translations_nearly_as_float32_does(architecture):
    """Both precisions score the same translations. They may choose different ones among nearly equal ones."""
    model = random_model(architecture)
    tokens, layout = random_batch(model.settings)
    settings = DecodingSettings(beam_size=3, precision="int8")
    hypotheses = [h[0] for h in search_instances(prepare_search(model, settings, "cpu"), tokens, layout, settings)]
    sources = np.split(tokens, np.cumsum(layout.src_lengths_G)[:-1])
    for source, hypothesis in zip((sources[:3], sources[3:]), hypotheses, strict=True):
        n_labels = hypothesis.log_probability / hypothesis.score
        expected = teacher_forced(model, source, hypothesis.sentences)
        # 0.00 to 0.11 nats per label, 0.16 once: these models have enlarged weights, which enlarge what rounding does.
        assert hypothesis.score == pytest.approx(expected / n_labels, abs=0.2)
        assert hypothesis.log_probability != expected


def test_prepared_model_keeps_its_weights():
    model = random_model("g_transformer")
    tokens, layout = random_batch(model.settings)
    prepared = prepare_search(model, DecodingSettings(), "cpu")
    with torch.inference_mode():
        before_SD = prepared.transformer.encode(torch.from_numpy(tokens), prepared.transformer.place(layout))
        for parameter in model.parameters():
            parameter.zero_()
        after_SD = prepared.transformer.encode(torch.from_numpy(tokens), prepared.transformer.place(layout))
        torch.testing.assert_close(after_SD, before_SD, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("architecture", "precision"),
    [
        ("g_transformer", "int8"),
        pytest.param("sentence_transformer", "int8", marks=pytest.mark.slow),
        pytest.param("document_transformer", "int8", marks=pytest.mark.slow),
        ("g_transformer", "bfloat16"),
    ],
)
def test_low_precision_translates_what_was_learned_by_heart(overfitted, architecture, precision):
    translator = Translator(load_model(overfitted(architecture)), DecodingSettings(precision=precision))
    assert {p.dtype for p in translator.model.transformer.parameters()} == {
        getattr(torch, precision.replace("int8", "float32"))
    }
    translations = [sentence for document in translator.translate_documents(DOCUMENTS) for sentence in document]
    expected = [translate(sentence) for document in DOCUMENTS for sentence in document]
    assert sum(one == other for one, other in zip(translations, expected, strict=True)) >= 18  # of 20


def test_int8_is_refused_on_a_gpu():
    with pytest.raises(UserError, match="int8 works only on a CPU"):
        prepare_model(random_model("g_transformer"), DecodingSettings(precision="int8"), "cuda")
