"""The global context encoder: Eq. 1–7 sentence by sentence, isolation of documents, and use without context."""

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, decoder_states, make_batch, make_model, random_documents, random_sentence
from plain_layers import add, attend, embed, encode_sentence, join, read, transform

from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.training.loss import LossModule

LAYOUTS = {
    "several documents": ((4, 1, 6), (2,), (5, 9, 1, 2)),
    "one-token sentences": ((1, 1, 1), (1,)),
    "empty sentences": ((2, 2, 5), (2, 2), (2,)),
    "one-sentence documents": ((7,), (3,), (1,), (12,)),
    "thirty sentences": (tuple(2 + i % 9 for i in range(30)), (3, 4)),
    "one long sentence": ((1, 70, 2), (3,)),
}
"""Numbers of source tokens per sentence and document, including marks if there is room for them."""


def literal_document(model, sentences):
    """H′ for all sentences in a document of token tensors, as in §2.2.1."""
    context = model.context
    encoded = [encode_sentence(model, sentence) for sentence in sentences]
    states = [embed(model, sentence) for sentence in sentences]
    for layer, vectors in zip(model.encoder, context.vectors, strict=False):
        b = [attend(layer, hidden) for hidden in states]  # Eq. 1
        alphas = [(torch.tanh(x @ vectors.inner.weight.T) @ vectors.query).softmax(0) for x in b]  # Eq. 2
        c = torch.stack([alpha @ x for alpha, x in zip(alphas, b, strict=True)])  # Eq. 3
        d = [add(context.sublayer, x, read(context.attention, x, c)) for x in b]  # Eq. 4
        states = [transform(layer, x) for x in d]  # Eq. 5
    return join(context.gate, torch.cat(encoded), torch.cat(states))  # Eq. 6–7


def make_case(layout, *, seed=0):
    """A batch of random tokens with these source sentence lengths."""
    generator = np.random.default_rng(seed)
    src = [[generator.integers(6, 24, length) for length in document] for document in layout]
    tgt = [[random_sentence(generator, int(generator.integers(0, 5)), 24) for _ in document] for document in layout]
    return make_batch(make_model("global_context").settings, list(zip(src, tgt, strict=True)))


def literal_memory(model, batch):
    layout = batch.layout
    sentences = list(batch.src_tokens_S.split(layout.src_lengths_G.tolist()))
    ends = np.cumsum(layout.sentences_B)
    documents = [sentences[end - count : end] for end, count in zip(ends, layout.sentences_B, strict=True)]
    return torch.cat([literal_document(model, document) for document in documents])


@pytest.mark.parametrize("context_layers", [1, 3])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_document_model_is_equations_1_to_7(name, context_layers):
    model = make_model("global_context", encoder_layers=3, context={"layers": context_layers}).double()
    batch = make_case(LAYOUTS[name])
    states, expected = model.encode(batch.src_tokens_S, model.place(batch.layout)), literal_memory(model, batch)
    assert_close(states, expected, 1e-10)
    gradients = []
    for memory in (states, expected):
        logits = model.logits(model.decode(batch.tgt_inputs_N, memory, model.place(batch.layout)))
        loss = torch.nn.functional.cross_entropy(logits, batch.tgt_labels_N)
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, 1e-10)


# One model, two uses


def sentences_of(documents):
    return [([src], [tgt]) for document in documents for src, tgt in zip(*document, strict=True)]


def test_without_context_equals_the_sentence_transformer():
    model = make_model("global_context")
    sentence_model = make_model("sentence_transformer")
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("context.")}
    sentence_model.load_state_dict(weights)
    documents = random_documents((1, 4, 2, 1))
    expected = decoder_states(sentence_model, make_batch(sentence_model.settings, sentences_of(documents)))
    for items in (documents, sentences_of(documents)):
        assert_close(decoder_states(model, make_batch(model.settings, items, context="none")), expected, 1e-6)


def test_sentences_without_context_train_no_parameter_of_it():
    model = make_model("global_context")
    batch = make_batch(model.settings, random_documents((3, 2)), context="none")
    LossModule(model, 0.1)(batch.prepare("padded")).backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert idle == {name for name, _ in model.named_parameters() if name.startswith("context.")}


@pytest.mark.parametrize(("positions", "sees_order"), [("sentence", False), ("instance", True)])
def test_only_document_positions_tell_the_order(positions, sees_order):
    model = make_model("global_context", context={"positions": positions})
    (src, tgt), *_ = random_documents((5,), seed=3)
    order = [3, 0, 4, 2, 1]
    batches = [
        make_batch(model.settings, [document])
        for document in ((src, tgt), ([src[i] for i in order], [tgt[i] for i in order]))
    ]
    with torch.no_grad():
        plain, moved = (
            torch.split(decoder_states(model, batch), batch.layout.tgt_lengths_G.tolist()) for batch in batches
        )
    differences = [float((plain[i] - moved[position]).abs().max()) for position, i in enumerate(order)]
    assert max(differences) > 1e-2 if sees_order else max(differences) < 1e-5
    alone = [
        decoder_states(model, make_batch(model.settings, [(src, tgt)], context=context))
        for context in ("none", "document")
    ]
    assert not torch.equal(*alone)


# Numbers of parameters

TABLE_9 = {
    # pair: (rows of the Transformer's embeddings, of ours. Published millions of the Transformer, of ours)
    "en-de": (33_700, 33_700, 61.4, 64.0),
    "zh-en": (71_200, 76_000, 80.6, 86.2),
}
"""The paper does not specify vocabulary sizes. They follow from the totals.

The parameters that its model adds to the Transformer do not depend on vocabulary sizes, but the paper adds 2.6 M for
one pair and 5.6 M for the other. The two models for the second pair therefore cannot have had the same vocabulary.
"""


@pytest.mark.parametrize("pair", TABLE_9)
def test_numbers_of_parameters_are_those_of_table_9(pair):
    plain_symbols, own_symbols, *published = TABLE_9[pair]
    sizes = []
    for architecture, n_symbols in (("sentence_transformer", plain_symbols), ("global_context", own_symbols)):
        settings = ModelSettings.load(SIZES["base"] | ARCHITECTURES[architecture], where="model")
        with torch.device("meta"):
            model = build_transformer(settings, n_symbols)
        sizes.append(sum(parameter.numel() for parameter in model.parameters()) / 1e6)
    assert sizes == pytest.approx(published, rel=0.01)
