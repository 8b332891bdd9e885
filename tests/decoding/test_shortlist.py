"""Shortlists of the output layer."""

import numpy as np
import pytest
import torch
from core_fixtures import DOCUMENTS, make_model, translate
from torch import nn

from docmt.decoding.inference_model import InferenceTransformer
from docmt.decoding.matmul import FloatMatmul, Int8Matmul
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.shortlist import Shortlist, lexical_table
from docmt.decoding.translation import Translator, prepare_search, search_best
from docmt.errors import UserError
from docmt.models.attention.layout import AttentionLayout
from docmt.models.model_file import load_model
from docmt.models.presets import ARCHITECTURES
from docmt.text.vocabulary import N_SPECIALS, Vocabulary

VOCABULARY = Vocabulary([(f"w{number}", 100 - number) for number in range(74)])
SETTINGS = DecodingSettings(beam_size=3)


def random_batch(settings):
    generator = np.random.default_rng(0)
    lengths = np.array([4, 1, 7, 2])
    sentences = [np.concatenate(([1], generator.integers(6, 80, n), [2])) for n in lengths]
    return np.concatenate(sentences), AttentionLayout.of_source(lengths + 2, np.array([3, 1]), settings=settings)


class Masked(nn.Module):
    """An output layer that finds other symbols than some impossible: the plain way."""

    def __init__(self, output, kept):
        super().__init__()
        self.output, self.kept = output, kept

    def forward(self, rows):
        logits = self.output(rows)
        masked = torch.full_like(logits, -torch.inf)
        masked[:, self.kept] = logits[:, self.kept]
        return masked


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
@pytest.mark.parametrize("n_frequent", [5, 70, 74])  # few, more than a block of symbols, all
def test_a_search_with_a_shortlist_equals_one_that_masks_the_other_symbols(architecture, n_frequent):
    model = make_model(architecture, n_symbols=len(VOCABULARY)).eval()
    tokens, layout = random_batch(model.settings)
    shortlist = Shortlist({6: [60, 61], 9: [61, 70, 72]}, VOCABULARY, n_frequent)
    prepared = prepare_search(model, SETTINGS, "cpu")
    found = search_best(prepared, tokens, layout, SETTINGS, shortlist=shortlist)
    kept = shortlist.of(tokens)
    prepared.output = Masked(prepared.output, kept)
    expected = search_best(prepared, tokens, layout, SETTINGS)
    assert [each.sentences for each in found] == [each.sentences for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=1e-4)
    assert {token for each in found for sentence in each.sentences for token in sentence} <= set(kept.tolist())


@pytest.mark.parametrize("make", [FloatMatmul, Int8Matmul])
def test_a_restricted_model_has_the_logits_of_its_symbols(make):
    model = make_model("g_transformer", n_symbols=len(VOCABULARY)).eval()
    prepared = InferenceTransformer(model, make)
    kept = torch.tensor([0, 1, 2, 3, 4, 5, 9, 40, 79])
    restricted, rows = prepared.restricted(kept), torch.randn(7, model.settings.width)
    torch.testing.assert_close(restricted.logits(rows), prepared.logits(rows)[:, kept], rtol=1e-5, atol=1e-5)
    assert prepared.embedding.num_embeddings == len(VOCABULARY)
    tokens, layout = random_batch(model.settings)
    with torch.inference_mode():
        one, other = (each.encode(torch.from_numpy(tokens), layout) for each in (restricted, prepared))
    assert torch.equal(one, other)


def test_a_shortlist_keeps_the_best_frequent_and_own_symbols(tmp_path):
    path = tmp_path / "lex.s2t"
    path.write_text("w50 w20 0.5\nw51 w20 0.2\nw52 w20 0.3\nNULL w20 0.9\nw53 NULL 0.1\nw54 w21 1.0\n")
    shortlist = Shortlist.read(path, VOCABULARY, 2)
    assert {source - N_SPECIALS: [t - N_SPECIALS for t in found] for source, found in shortlist.targets.items()} == {
        20: [50, 52],
        21: [54],
    }
    kept = shortlist.of(np.array([26, 26, 36]))  # w20, w20 and w30, which the table lacks
    assert VOCABULARY.decode(kept) == [*VOCABULARY.symbols[:N_SPECIALS], "w0", "w1", "w20", "w30", "w50", "w52"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("w1 w2 0.5\nw1 w2\n", "line 2 must be a target symbol"),
        ("w1 w2 much\n", "line 1 must be a target symbol"),
        ("w1 w2 nan\n", "line 1 must be a target symbol"),
        ("NULL x 0.5\n", "none of its symbols is in the vocabulary"),
        ("", "none of its symbols is in the vocabulary"),
    ],
)
def test_a_bad_table_is_named(tmp_path, content, message):
    path = tmp_path / "lex.s2t"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        Shortlist.read(path, VOCABULARY)


def test_a_table_has_probabilities_of_targets_given_sources():
    links = [[("the", "der"), ("dog", "Hund")], [("the", "die")], [("the", "der")], [("the", "das")]]
    assert list(lexical_table(links)) == [
        "Hund dog 1.0000000",
        "der the 0.5000000",
        "das the 0.2500000",
        "die the 0.2500000",
    ]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_translations_with_a_table_of_the_training_text_are_the_same(overfitted, tmp_path, precision):
    trained = load_model(overfitted("g_transformer"))

    def symbols(sentence, side):
        return trained.vocabulary.decode(trained.encode(sentence, side)[1:-1])

    sentences = [sentence for document in DOCUMENTS for sentence in document]
    links = [[(s, t) for s in symbols(each, "src") for t in symbols(translate(each), "tgt")] for each in sentences]
    path = tmp_path / "lex.s2t"
    path.write_text("\n".join(lexical_table(links)))
    settings = DecodingSettings(precision=precision, shortlist=8)
    found = Translator(trained, settings, shortlist=path).translate_documents(DOCUMENTS)
    expected = Translator(trained, settings).translate_documents(DOCUMENTS)
    assert found == expected
