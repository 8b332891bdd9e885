"""Layers of a sentence Transformer, head by head, as in equations. A row is a token's state, [D]."""

import math

import torch
from torch.nn.functional import linear

from docmt.models.systems.transformer import sinusoids


def normalize(layer, rows):
    centered = rows - rows.mean(-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + layer.eps) * layer.weight + layer.bias


def read(attention, query, keys, mask=None):
    """Multi-head attention from one or more rows to states [n, D]. A mask is true where a row may attend to a state."""
    width = query.shape[-1]
    weights, biases = attention.in_weight.split(width), attention.in_bias.split(width)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, keys, keys), weights, biases, strict=True))
    heads = []
    for part in torch.arange(width).chunk(attention.heads):
        scores = q[..., part] @ k[:, part].T / math.sqrt(len(part))
        heads.append((scores if mask is None else scores + torch.where(mask, 0.0, -1e8)).softmax(-1) @ v[:, part])
    return torch.cat(heads, -1) @ attention.out.weight.T + attention.out.bias


def feed_forward(module, rows):
    inner = (rows @ module.inner.weight.T + module.inner.bias).clamp_min(0)
    return inner @ module.outer.weight.T + module.outer.bias


def join(gate, rows, others):
    share = torch.sigmoid(linear(torch.cat((rows, others), -1), gate.weight, gate.bias))
    return share * rows + (1 - share) * others


def add(sublayer, rows, outputs):
    return normalize(sublayer.norm, rows + outputs)


def attend(layer, states, *, is_causal=False):
    """The first part of a layer over the states in a sequence."""
    if not is_causal:
        return add(layer.self_sublayer, states, read(layer.self_attention, states, states))
    outputs = [read(layer.self_attention, row, states[: i + 1]) for i, row in enumerate(states)]
    return add(layer.self_sublayer, states, torch.stack(outputs))


def transform(layer, rows):
    """The last part of a layer."""
    return add(layer.feed_forward_sublayer, rows, feed_forward(layer.feed_forward, rows))


def encoder_layer(layer, states, between=lambda rows: rows):
    """A layer over the states in a sequence, with something between its two parts."""
    return transform(layer, between(attend(layer, states)))


def decoder_layer(layer, states, memory, between):
    rows = between(attend(layer, states, is_causal=True))
    return transform(layer, add(layer.cross_sublayer, rows, read(layer.cross_attention, rows, memory)))


def embed(model, tokens):
    width = model.settings.width
    places = sinusoids(len(tokens), width)[: len(tokens)].to(model.embedding.weight.dtype)
    return model.embedding.weight[tokens] * math.sqrt(width) + places


def attends(model, side, number, context):
    """Gated attention to a context of these states, as in DocT. Without a context, the identity."""
    if context is None:
        return lambda rows: rows
    layer = getattr(model.context, side)[number]
    return lambda rows: normalize(layer.norm, join(layer.gate, rows, read(layer.attention, rows, context)))


def encode_sentence(model, tokens, context=None):
    states = embed(model, tokens)
    for number, layer in enumerate(model.encoder):
        states = encoder_layer(layer, states, attends(model, "encoder", number, context))
    return states


def decode_sentence(model, tokens, memory, context=None):
    states = embed(model, tokens[:-1])
    for number, layer in enumerate(model.decoder):
        states = decoder_layer(layer, states, memory, attends(model, "decoder", number, context))
    return states
