"""DocT, HAN and SAN: equations token by token, influence of tokens, and cases without context."""

import math

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, decoder_states, make_batch, make_model, random_documents, random_sentence
from plain_attention import influence, sees_back
from plain_layers import decode_sentence, embed, encode_sentence, encoder_layer, feed_forward, join, normalize, read

from docmt.errors import UserError
from docmt.models.initialization import zero_init_outputs
from docmt.models.systems.context_traits import CONTEXTS
from docmt.models.systems.san import sparsemax
from docmt.text.vocabulary import BOS, EOS

KINDS = ["doct", "han_encoder", "han", "san"]
COUNTS = [5, 1, 7, 2]


def hierarchical(module, row, before):
    """States of previous sentences. The nearest sentence comes first."""
    if not before:
        return row
    vectors = [read(module.words, normalize(module.words_norm, row), states) for states in before]
    vectors = torch.stack([normalize(module.vectors_norm, vector) for vector in vectors])
    context = read(module.sentences, normalize(module.sentences_norm, row), vectors)
    return normalize(module.norm, join(module.gate, row, feed_forward(module.feed_forward, context)))


def plain_sparsemax(scores):
    """By definition, with the threshold above which values sum to 1."""
    ordered = sorted(scores.tolist(), reverse=True)
    n = max(k for k in range(1, len(ordered) + 1) if 1 + k * ordered[k - 1] > sum(ordered[:k]))
    return (scores - (sum(ordered[:n]) - 1) / n).clamp_min(0)


def selective(module, row, others):
    """Word states of all other non-empty sentences."""
    if not others:
        return row
    width = len(row)
    weights, biases = module.words.in_weight.split(width), module.words.in_bias.split(width)
    heads = []
    for part in torch.arange(width).chunk(module.words.heads):
        scale = math.sqrt(len(part))
        sentence_query = (module.query.weight @ row + module.query.bias)[part]
        keys = [(module.key.weight @ states.mean(0) + module.key.bias)[part] for states in others]
        alphas = plain_sparsemax(torch.stack([sentence_query @ key / scale for key in keys]))
        query = (weights[0] @ row + biases[0])[part]
        total = torch.zeros(len(part), dtype=row.dtype)
        for alpha, states in zip(alphas, others, strict=True):
            betas = ((states @ weights[1].T + biases[1])[:, part] @ query / scale).softmax(0)
            total = total + alpha * (betas @ (states @ weights[2].T + biases[2])[:, part])
        heads.append(total)
    context = module.words.out.weight @ torch.cat(heads) + module.words.out.bias
    context = normalize(module.norm, feed_forward(module.feed_forward, normalize(module.read_norm, context)))
    return join(module.gate, row, context)


def with_sentences_before(module, sentences, n):
    """Hierarchical attention for all states in a document."""
    return [
        torch.stack([hierarchical(module, row, sentences[max(0, i - n) : i][::-1]) for row in states])
        for i, states in enumerate(sentences)
    ]


def with_other_sentences(context, sentences):
    """Selective attention for all states in a document."""
    words, outputs = [states[1:-1] for states in sentences], []
    for i, states in enumerate(sentences):
        others = [w for j, w in enumerate(words) if len(w) and (j < i or (j > i and context.sees_future))]
        outputs.append(torch.stack([selective(context, row, others) for row in states]))
    return outputs


def literal(model, document):
    """Decoder states for a document with source and target sentences with marks."""
    src, tgt = ([torch.as_tensor(sentence) for sentence in side] for side in document)
    kind, context, n = model.settings.context.kind, model.context, model.settings.n_before
    rows = [None] * len(src)
    if kind == "doct":
        before = [torch.cat(src[max(0, i - n) : i]) for i in range(1, len(src))]
        rows[1:] = [encoder_layer(context.layer, embed(model, tokens)) for tokens in before]
    memories = [encode_sentence(model, *pair) for pair in zip(src, rows, strict=True)]
    if kind.startswith("han"):
        memories = with_sentences_before(context.encoder, memories, n)
    if kind == "san":
        memories = with_other_sentences(context, memories)
    outputs = [decode_sentence(model, *triple) for triple in zip(tgt, memories, rows, strict=True)]
    return torch.cat(with_sentences_before(context.decoder, outputs, n) if kind == "han" else outputs)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        *((kind, {}) for kind in KINDS),
        ("doct", {"sentences": 1}),
        ("han", {"sentences": 5}),
        ("san", {"future": False}),
    ],
)
@torch.no_grad()
def test_a_model_computes_its_equations(kind, values):
    model = make_model(kind, context={"kind": kind, **values}).double()
    documents = random_documents(COUNTS, longest=4)
    batch = make_batch(model.settings, documents)
    states = decoder_states(model, batch)
    assert_close(states, torch.cat([literal(model, document) for document in documents]), 1e-10)


def without_words(n):
    return [np.array([BOS, EOS])] * n


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_without_context_equals_the_sentence_model(kind):
    """The first sentence in a document. For SAN, a sentence whose neighbors have no words."""
    model = make_model(kind).double()
    (src, tgt), *_ = random_documents([3], seed=1)
    document = (src[:1] + without_words(2), tgt) if kind == "san" else (src, tgt)
    states = decoder_states(model, make_batch(model.settings, [document]))[: len(tgt[0]) - 1]
    for context in ("document", "none"):
        alone = make_batch(model.settings, [(src[:1], tgt[:1])], context=context)
        assert_close(states, decoder_states(model, alone), 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_without_words_give_numbers_and_gradients(kind):
    model = make_model(kind).train()
    documents = [(without_words(4), without_words(4)), (without_words(1), without_words(1))]
    decoder_states(model, make_batch(model.settings, documents)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


N = 8
OWN, ALL = np.eye(N, dtype=bool), np.ones((N, N), dtype=bool)


SEEN = {
    # Influence with the gradients of what is detached, and without: (source, target) sentences.
    ("doct", True): (sees_back(N, 2), OWN),
    ("doct", False): (sees_back(N, 2), OWN),
    ("han_encoder", True): (sees_back(N, 3), OWN),
    ("han_encoder", False): (OWN, OWN),
    # A state before the last attention of the decoder has read three sentences back, and so have those that it reads.
    ("han", True): (sees_back(N, 6), sees_back(N, 3)),
    ("han", False): (OWN, OWN),
    ("san", True): (ALL, OWN),
    ("san", False): (OWN, OWN),
}


@pytest.mark.parametrize(("kind", "is_attached"), SEEN)
def test_what_a_model_sees(kind, is_attached, monkeypatch):
    """Exact influence by gradients of the output. Context without gradients has no influence in training."""
    if is_attached:
        monkeypatch.setattr(torch.Tensor, "detach", lambda self: self)
    model = make_model(kind)
    generator = np.random.default_rng(2)
    src, tgt = ([random_sentence(generator, int(n)) for n in generator.integers(1, 4, N)] for _ in range(2))
    batch = make_batch(model.settings, [(src, tgt)])
    sizes = {"src": len(batch.src_tokens_S), "tgt": len(batch.tgt_inputs_N)}
    leaves = {side: torch.zeros(n, model.settings.width, requires_grad=True) for side, n in sizes.items()}
    embed = model._embed

    def embed_with_leaves(tokens, layout, side, **options):
        rows = leaves["src"][layout.index(side, "row")] if side == "before" else leaves[side]
        return embed(tokens, layout, side, **options) + rows

    monkeypatch.setattr(model, "_embed", embed_with_leaves)
    if kind == "san":  # sentences of about the same weight: none is left out
        torch.nn.init.zeros_(model.context.query.weight)
    states = decoder_states(model, batch)
    tags = {
        "src": np.repeat(np.arange(N), list(map(len, src))),
        "tgt": np.repeat(np.arange(N), [len(s) - 1 for s in tgt]),
    }
    for side, expected in zip(("src", "tgt"), SEEN[kind, is_attached], strict=True):
        assert np.array_equal(influence(states, leaves[side], tags["tgt"], tags[side]), expected), side


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    generator = torch.Generator().manual_seed(0)
    for scale in (0.1, 1.0, 10.0):
        scores = scale * torch.randn(50, 7, generator=generator, dtype=torch.float64)
        probabilities = sparsemax(scores)
        assert_close(probabilities, torch.stack([plain_sparsemax(row) for row in scores]), 1e-12)
        assert_close(probabilities.sum(-1), torch.ones(50, dtype=torch.float64), 1e-12)
    assert (sparsemax(torch.tensor([5.0, 0.0, 0.0])) == torch.tensor([1.0, 0.0, 0.0])).all()
    scores = torch.randn(4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sparsemax, (scores,))


def test_only_the_global_context_encoder_starts_silently():
    for kind in set(CONTEXTS) - {"global"}:
        with pytest.raises(UserError, match="not supported for this context module"):
            zero_init_outputs(make_model(kind))
