"""CADec: equations token by token, influence of tokens, and drafts."""

import contextlib
import math

import numpy as np
import pytest
import torch
from core_fixtures import (
    assert_close,
    decoder_states,
    make_batch,
    make_model,
    make_study,
    pack_documents,
    random_documents,
    random_sentence,
    run_training,
)
from plain_attention import sees_back
from plain_layers import add, attend, decode_sentence, embed, encode_sentence, transform

from docmt.models.batch import pack
from docmt.models.numerics import CHUNK_SCORES
from docmt.models.systems import cadec
from docmt.models.systems.cadec import SecondDecoder, corrupt, draw_words
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS

COUNTS = [5, 1, 7, 2]


def batch_of(model, documents, drafts=None, **options):
    """A batch. Drafts are lists of sentences."""
    if drafts is None:
        return make_batch(model.settings, documents, **options)
    sentences = iter(drafts)
    drafted = [(src, [next(sentences) for _ in src]) for src, _ in documents]
    return pack(pack_documents(documents), drafts=pack_documents(drafted), settings=model.settings)


def random_drafts(counts, *, seed=9):
    """Some drafts are empty, and others are longer than the references."""
    return [sentence for _, tgt in random_documents(counts, seed=seed, longest=9) for sentence in tgt]


def read_rows(attention, query, rows, distances):
    """Multi-head attention from one token to rows [n, E] at distances, head by head. Returns [D]."""
    width = len(query)
    size, biases = width // attention.heads, attention.in_bias.split(width)
    if attention.memory_weight is None:
        to_query, *to_rows = attention.in_weight.split(width)
    else:
        to_query, to_rows = attention.in_weight, attention.memory_weight.split(width)
    q = to_query @ query + biases[0]
    heads = []
    for head in range(attention.heads):
        part = slice(head * size, (head + 1) * size)
        keys, values = (
            torch.stack(
                [weight[part] @ row + bias[part] + table[d, head] for row, d in zip(rows, distances, strict=True)]
            )
            for weight, bias, table in zip(
                to_rows, biases[1:], (attention.distances.keys, attention.distances.values), strict=True
            )
        )
        shares = (keys @ q[part] / math.sqrt(size)).softmax(0)
        heads.append(sum(share * value for share, value in zip(shares, values, strict=True)))
    return attention.out.weight @ torch.cat(heads) + attention.out.bias


def with_distances(parts):
    """Rows of sentences, ending with the nearest sentence, with the distance per row."""
    back = [distance for distance, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True) for _ in part]
    return torch.cat(parts), back


def second_layer(layer, states, sources, translations):
    rows = attend(layer, states, is_causal=True)
    rows = [add(layer.source_sublayer, row, read_rows(layer.source_attention, row, *sources)) for row in rows]
    rows = [add(layer.cross_sublayer, row, read_rows(layer.cross_attention, row, *translations)) for row in rows]
    return transform(layer, torch.stack(rows))


def literal(model, document, drafts):
    """Decoder states for a document with source and target sentences with marks, and drafts of all sentences."""
    src, tgt, drafts = ([torch.as_tensor(sentence) for sentence in side] for side in (*document, drafts))
    n, outputs = model.settings.n_before, []
    encoded = [encode_sentence(model, tokens) for tokens in src]

    def translated(tokens, memory):
        words = model.embedding.weight[tokens[1:]]
        return torch.cat((words, decode_sentence(model, tokens, memory)), dim=1)

    before = [translated(*pair) for pair in zip(tgt, encoded, strict=True)]
    for i, tokens in enumerate(tgt):
        first = max(0, i - n)
        sources = with_distances(encoded[first : i + 1])
        translations = with_distances([*before[first:i], translated(drafts[i], encoded[i])])
        states = embed(model, tokens[:-1])
        for layer in model.context.layers:
            states = second_layer(layer, states, sources, translations)
        outputs.append(states if i else decode_sentence(model, tokens, encoded[i]))
    return torch.cat(outputs)


@pytest.mark.parametrize("values", [{}, {"sentences": 1}])
@torch.no_grad()
def test_a_model_computes_its_equations(values):
    model = make_model("cadec", context={"kind": "cadec", **values}).double()
    documents, drafts = random_documents(COUNTS, longest=4), random_drafts(COUNTS)
    states, sentences = decoder_states(model, batch_of(model, documents, drafts)), iter(drafts)
    expected = [literal(model, document, [next(sentences) for _ in document[0]]) for document in documents]
    assert_close(states, torch.cat(expected), 1e-10)


@torch.no_grad()
def test_batch_equals_single_documents():
    model, counts = make_model("cadec").double(), [3, 1, 9, 2, 1]
    documents = random_documents(counts, seed=4)
    drafts = np.split(np.array([None, *random_drafts(counts)], dtype=object)[1:], np.cumsum(counts)[:-1])
    together = decoder_states(model, batch_of(model, documents, np.concatenate(drafts)))
    pairs = zip(documents, drafts, strict=True)
    alone = [decoder_states(model, batch_of(model, [document], part)) for document, part in pairs]
    assert_close(together, torch.cat(alone), 1e-10)


@pytest.mark.parametrize("mode", [True, False])
def test_first_sentence_equals_the_sentence_model(mode):
    """This also holds in training without dropout, and for all sentences without context."""
    model = make_model("cadec", dropout=0.5).train(mode)
    documents = random_documents([1, 3], seed=1)
    batches = [batch_of(model, documents, context=context) for context in ("document", "none")]
    states, plain = (decoder_states(model, batch) for batch in batches)
    first = sum(len(sentence) - 1 for sentence in (*documents[0][1], documents[1][1][0]))
    assert torch.equal(states[:first], plain[:first])
    assert not torch.isclose(states[first:], plain[first:]).all(1).any()


@pytest.mark.parametrize("mode", [True, False])
def test_sentences_without_words_give_numbers_and_gradients(mode):
    model, empty = make_model("cadec").train(mode), np.array([BOS, EOS])
    for documents, drafts in (([([empty] * 4,) * 2, ([empty],) * 2], None), ([([empty] * 3,) * 2], [empty] * 3)):
        model.zero_grad()
        decoder_states(model, batch_of(model, documents, drafts)).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


N = 8


FIRST = np.arange(N) == 0
SEEN = {
    # Influence with the gradients of what is detached, and without: sentences of the source, the target, the drafts.
    True: (sees_back(N, 3), sees_back(N, 3), np.diag(~FIRST)),
    False: (sees_back(N, 3), np.eye(N, dtype=bool), np.zeros((N, N), dtype=bool)),
}


@pytest.mark.parametrize("is_attached", SEEN)
def test_what_a_model_sees(is_attached, monkeypatch):
    """Exact influence by gradients of the output. A token attends to no later words in its sentence."""
    model = make_model("cadec")
    if is_attached:
        monkeypatch.setattr(torch, "no_grad", contextlib.nullcontext)
    generator = np.random.default_rng(2)
    src, tgt, drafts = ([random_sentence(generator, int(n)) for n in generator.integers(1, 4, N)] for _ in range(3))
    batch = batch_of(model, [(src, tgt)], drafts).prepare("padded")
    width, part = model.settings.width, batch.layout.drafts
    sizes = len(batch.src_tokens_S), len(batch.tgt_inputs_N), len(part.inputs_N)
    leaves = [torch.zeros(size, width, requires_grad=True) for size in sizes]
    plain = model._embed

    def embed_with_leaves(tokens, layout, side, **more):
        return plain(tokens, layout, side, **more) + leaves[0 if side == "src" else 2 if layout is part.layout else 1]

    monkeypatch.setattr(model, "_embed", embed_with_leaves)
    states = decoder_states(model, batch)
    tags = [np.repeat(np.arange(N), [len(s) - (i > 0) for s in side]) for i, side in enumerate((src, tgt, drafts))]
    direction = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    matrices = [np.zeros((N, N), dtype=bool) for _ in leaves]
    for token, sentence in enumerate(tags[1]):
        output = (states[token] * direction[token]).sum()
        gradients = torch.autograd.grad(output, leaves, retain_graph=True, materialize_grads=True)
        for seen, tag, gradient in zip(matrices, tags, gradients, strict=True):
            np.logical_or.at(seen[sentence], tag, gradient.any(1).numpy())
        assert not gradients[1][token + 1 :].any()
    for seen, expected in zip(matrices, SEEN[is_attached], strict=True):
        assert np.array_equal(seen, expected)


# Drafts


@pytest.fixture
def notes(monkeypatch):
    """Labels and draft states that `translated` gets, before the target."""
    calls, plain = [], SecondDecoder.translated

    def note(model, labels, states):
        calls.append((labels, states))
        return plain(model, labels, states)

    monkeypatch.setattr(SecondDecoder, "translated", staticmethod(note))
    return calls


def plain_draft(model, tokens, memory, length, noise):
    """Word after word, up to `</s>` or the limit. Without noise, the most likely words."""
    words = []
    while len(words) < length and EOS not in words:
        states = decode_sentence(model, torch.tensor([BOS, *words, EOS]), memory)
        scores = model.embedding.weight @ states[len(words)]
        if noise is None:
            words.append(int(scores.argmax()))
            continue
        sums = (scores / 0.5).exp().cumsum(0)
        words.append(int((sums / sums[-1] <= noise[len(words)]).sum()))
    return words


@pytest.mark.parametrize("mode", [True, False])
@torch.no_grad()
def test_drafts_become_samples_or_greedy(mode, notes, monkeypatch):
    monkeypatch.setattr(cadec, "CORRUPTED", 0.0)
    model = make_model("cadec").double().train(mode)
    model.embedding.weight[EOS] *= 3  # some drafts end early
    documents = random_documents(COUNTS, longest=12, seed=3)
    batch = batch_of(model, documents)
    lengths = batch.layout.tgt_lengths_G.tolist()
    model.context.n_rounds = max(lengths)
    torch.manual_seed(5)
    noise = torch.rand(len(batch.tgt_inputs_N))
    torch.manual_seed(5)
    decoder_states(model, batch)
    (words, states), _ = notes
    sentences = [torch.as_tensor(tokens) for src, _ in documents for tokens in src]
    expected = []
    for tokens, numbers in zip(sentences, noise.split(lengths), strict=True):
        memory = encode_sentence(model, tokens)
        expected.append(plain_draft(model, tokens, memory, len(numbers), numbers if mode else None))
    drafts = [part[: len(draft)].tolist() for part, draft in zip(words.split(lengths), expected, strict=True)]
    assert drafts == expected
    n_early = sum(len(draft) < length for draft, length in zip(expected, lengths, strict=True))
    n_late = sum(EOS not in draft for draft in expected)
    assert n_early > 0
    assert n_late > 0
    for tokens, draft, part in zip(sentences, expected, states.split(lengths), strict=True):
        memory = encode_sentence(model, tokens)
        assert_close(part[: len(draft)], decode_sentence(model, torch.tensor([BOS, *draft]), memory), 1e-10)


def test_a_draft_that_ends_early_is_repeated(monkeypatch):
    """Rows that attention reads, for drafts that are forced to be `7 8 </s> 9 9 9 9 9`, and `9 9 9`, a cut draft."""
    model, read = make_model("cadec"), []
    monkeypatch.setattr(cadec, "draw_words", lambda *_: torch.tensor([9] * 3 + [7, 8, EOS, 9, 9, 9, 9, 9]))
    plain = model.context.second_pass
    monkeypatch.setattr(model.context, "second_pass", lambda rows, memory: read.append(rows) or plain(rows, memory))
    sentences = [np.array([BOS, *[6] * n, EOS]) for n in (2, 7)]
    decoder_states(model, batch_of(model, [(sentences, sentences)]))
    rows = read[0][11:]
    assert torch.equal(rows[3:6], rows[6:9])
    assert torch.equal(rows[3:5], rows[9:11])
    words = rows[:, : model.settings.width]
    assert torch.equal(words, model.embedding.weight[[9, 9, 9, 7, 8, EOS, 7, 8, EOS, 7, 8]])


@torch.no_grad()
def test_half_of_the_drafts_are_references(notes):
    model, shares = make_model("cadec", n_symbols=400).train(), []
    documents = random_documents([40] * 10, longest=40, n_symbols=400)
    batch = batch_of(model, documents)
    torch.manual_seed(1)
    decoder_states(model, batch)
    (words, _), (labels, _) = notes
    assert torch.equal(labels, batch.tgt_labels_N)
    ends = np.cumsum(batch.layout.tgt_lengths_G)
    for draft, reference in zip(np.split(words, ends[:-1]), np.split(labels, ends[:-1]), strict=True):
        if len(reference) > 8:
            shares.append(float((draft == reference).float().mean()))
    is_reference = np.array(shares) > 0.5
    assert 0.4 < is_reference.mean() < 0.6
    assert np.array(shares)[is_reference].mean() == pytest.approx(0.8, abs=0.03)


def test_language_tags_leave_drafts_empty(monkeypatch, tmp_path):
    """Tags and masks in a vocabulary are no words, so they cannot replace words."""
    drawn = []
    monkeypatch.setattr(cadec, "corrupt", lambda labels, _, words: drawn.append(words) or labels)
    study = make_study(tmp_path, tags=("en", "de"))
    run_training(study, tmp_path, architecture="cadec", training={"max_steps": 1})
    assert set(drawn) == {(study.vocabulary.n_specials, len(study.vocabulary))}
    assert study.vocabulary.n_specials > N_SPECIALS


def test_random_words_take_the_place_of_words_alone():
    torch.manual_seed(0)
    labels = torch.tensor([7, 8, 9, EOS] * 5000)
    words = corrupt(labels, labels != EOS, (6, 12))
    assert set(words[labels != EOS].tolist()) == set(range(6, 12))
    assert bool((words[labels == EOS] == EOS).all())
    # Of 7 words, one is that of the reference.
    assert float((words != labels)[labels != EOS].float().mean()) == pytest.approx(0.2 * 6 / 7, abs=0.01)


@pytest.mark.parametrize("has_bias", [True, False])
def test_words_are_drawn_as_they_are_distributed(has_bias, monkeypatch):
    torch.manual_seed(0)
    state, table, n = torch.randn(1, 8), torch.randn(30, 8), 4000
    bias = torch.randn(30) if has_bias else None
    noise = (torch.arange(n) + 0.5) / n
    words = draw_words(state.expand(n, 8), table, bias, noise)
    scores = state @ table.T + (0 if bias is None else bias)
    assert_close(words.bincount(minlength=30) / n, (scores[0] / 0.5).softmax(0), 1e-3)
    assert set(draw_words(state.expand(n, 8), table, bias, None).tolist()) == {int(scores.argmax())}
    monkeypatch.setitem(CHUNK_SCORES, "cpu", 30 * 7)
    assert torch.equal(draw_words(state.expand(n, 8), table, bias, noise), words)


def test_no_noise_is_too_high():
    assert draw_words(torch.ones(1, 2), torch.zeros(7, 2), None, torch.tensor([1.0])).tolist() == [6]


@torch.no_grad()
def test_seed_decides_training_draws():
    model = make_model("cadec")
    batch = batch_of(model, random_documents([6, 6]))

    def after(seed, mode):
        torch.manual_seed(seed)
        return decoder_states(model.train(mode), batch)

    assert torch.equal(after(1, True), after(1, True))
    assert not torch.equal(after(1, True), after(2, True))
    assert torch.equal(after(1, False), after(2, False))


@torch.no_grad()
def test_drafts_get_the_second_symbol(notes):
    marks = {"src_before": [], "src_after": ["</s>"], "tgt_before": ["</s>", "{tgt}"]}
    model, tag = make_model("cadec", marks=marks).train(), 8
    sentences = [np.array([BOS, tag, *words, EOS]) for words in ([10, 11, 12], [], [13])]
    decoder_states(model, batch_of(model, [([np.array([9, EOS])] * 3, sentences)]))
    words = notes[0][0]
    positions = batch_of(model, [([np.array([9, EOS])] * 3, sentences)]).prepare("padded").layout.positions("tgt")
    assert bool((words[positions == 0] == tag).all())
