"""Both caches for source keys and values: copies, as on a CPU, and biases over documents, as on a GPU."""

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, document_trees, make_model, model_settings, random_sentence
from plain_search import search

from docmt.decoding import caches
from docmt.decoding.caches import CopyKVCache, DocumentKVCache, make_source_cache
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import MultiHeadAttention, SentenceDistances

LENGTHS = [[3, 0, 2, 7], [1], [4, 9, 4], [0, 6]]


@pytest.fixture
def search_with(monkeypatch):
    """Search with one of the caches. Returns the hypotheses."""

    def search_cached(kind, model, *, beam_size=3):
        monkeypatch.setattr(caches, "COPY_DEVICES", ("cpu",) if kind == "copies" else ())
        generator = np.random.default_rng(0)
        documents = [[random_sentence(generator, n) for n in document] for document in LENGTHS]
        trees = document_trees([(d, d) for d in documents]) if model.settings.needs_trees else None
        return search(model, documents, trees, beam_size=beam_size)

    return search_cached


@pytest.mark.parametrize(
    "architecture", ["g_transformer", "concatenation", "rst_mix", "g_transformer_no_language_locality"]
)
def test_both_caches_find_the_same_hypotheses(architecture, search_with):
    model = make_model(architecture)
    for copies, biases in zip(search_with("copies", model), search_with("biases", model), strict=True):
        assert [hypothesis.sentences for hypothesis in copies] == [hypothesis.sentences for hypothesis in biases]
        scores = [[hypothesis.score for hypothesis in hypotheses] for hypotheses in (copies, biases)]
        assert scores[1] == pytest.approx(scores[0], rel=1e-5)


def test_keys_seen_at_several_distances(monkeypatch):
    """Every sentence reads itself and the previous sentence, with a vector per distance. A plug-in could do this."""
    layout = AttentionLayout.of_source(
        np.array([3, 1, 4, 2, 2]), np.array([3, 2]), settings=model_settings("concatenation")
    )
    layout.groupings["cross", "window"] = layout.grouping("cross", "segments")
    distances = SentenceDistances(2, 2, 4)
    part = MultiHeadAttention(8, 2, "window", distances=distances).requires_grad_(False)
    for table in distances.parameters():
        torch.nn.init.normal_(table)
    memory, query, outputs = torch.randn(12, 8), torch.randn(4, 2, 4), []
    for kind, devices in ((CopyKVCache, ("cpu",)), (DocumentKVCache, ())):
        monkeypatch.setattr(caches, "COPY_DEVICES", devices)
        cache = make_source_cache([part], memory, layout, "cross", like=memory)
        assert type(cache) is kind
        for sentences in ([[0, 0], [3, 3]], [[0, 2], [3, 4]]):
            cache.advance(torch.tensor(sentences))
            outputs.append(cache.attend(0, query))
        cache.select_instances(torch.tensor([1]))
        cache.advance(torch.tensor([[3, 4]]))
        outputs.append(cache.attend(0, query[2:]))
    for copies, biases in zip(outputs[:3], outputs[3:], strict=True):
        assert_close(biases, copies)
