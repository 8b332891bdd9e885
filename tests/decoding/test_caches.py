"""The two caches of source keys and values: copies in slots, as on a CPU, and biases over documents, as on a GPU."""

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, document_trees, make_model, model_settings, random_sentence
from plain_search import search
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from docmt.decoding import caches
from docmt.decoding.caches import DocumentKVCache, SlotKVCache, SourceKVCache, make_source_cache
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import MultiHeadAttention, SentenceDistances

LENGTHS = [[3, 0, 2, 7], [1], [4, 9, 4], [0, 6]]


@pytest.fixture
def search_with(monkeypatch):
    """Searches with one of the caches; gives the hypotheses."""

    def search_cached(kind, model, *, beam_size=3):
        monkeypatch.setattr(caches, "SLOT_DEVICES", ("cpu",) if kind == "slots" else ())
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
    for slots, biases in zip(search_with("slots", model), search_with("biases", model), strict=True):
        assert [hypothesis.sentences for hypothesis in slots] == [hypothesis.sentences for hypothesis in biases]
        scores = [[hypothesis.score for hypothesis in hypotheses] for hypotheses in (slots, biases)]
        assert scores[1] == pytest.approx(scores[0], rel=1e-5)


def test_keys_seen_at_several_distances(monkeypatch):
    """As a plug-in may: the own sentence and the one before, with a vector for each distance."""
    layout = AttentionLayout.of_source(
        np.array([3, 1, 4, 2, 2]), np.array([3, 2]), settings=model_settings("concatenation")
    )
    layout.groupings["cross", "window"] = layout.grouping("cross", "segments")
    distances = SentenceDistances(2, 2, 4)
    part = MultiHeadAttention(8, 2, "window", distances=distances).requires_grad_(False)
    for table in distances.parameters():
        torch.nn.init.normal_(table)
    memory, query, outputs = torch.randn(12, 8), torch.randn(4, 2, 4), []
    for kind, devices in ((SlotKVCache, ("cpu",)), (DocumentKVCache, ())):
        monkeypatch.setattr(caches, "SLOT_DEVICES", devices)
        cache = make_source_cache([part], memory, layout, "cross", like=memory)
        assert type(cache) is kind
        for sentences in ([[0, 0], [3, 3]], [[0, 2], [3, 4]]):
            cache.advance(torch.tensor(sentences))
            outputs.append(cache.attend(0, query))
        cache.select_documents(torch.tensor([1]))
        cache.advance(torch.tensor([[3, 4]]))
        outputs.append(cache.attend(0, query[2:]))
    for slots, biases in zip(outputs[:3], outputs[3:], strict=True):
        assert_close(biases, slots)


class Written(TorchDispatchMode):
    """Counts the bytes that operations write, views aside."""

    n_bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        if not function.is_view:
            self.n_bytes += sum(x.nbytes for x in tree_leaves(output) if isinstance(x, torch.Tensor))
        return output


def test_biases_are_a_small_part_of_what_slots_copy(monkeypatch, search_with):
    """With a slot for each row, every step wrote the keys and values of all rows twice."""
    written, slots = Written(), []
    plain = SourceKVCache.advance

    def advance(cache, sentences_BM):
        layers, _, _, heads, _, width = cache.keys_values.shape
        longest = 9 + 2  # words and marks
        slots.append(2 * 2 * layers * sentences_BM.numel() * heads * longest * width * cache.keys_values.itemsize)
        cache.sentences_BM = torch.empty(0, 0)  # a GPU does not compare
        with written:
            plain(cache, sentences_BM)

    monkeypatch.setattr(SourceKVCache, "advance", advance)
    search_with("biases", make_model("g_transformer_only_group", width=64))
    assert 0 < written.n_bytes <= 0.1 * sum(slots)
