"""LSTM-Transformer: heads for sentences and heads for instances, compared with a plain attention."""

import pytest
import torch
from core_fixtures import assert_close, decoder_states, make_batch, make_model, random_documents
from plain_attention import (
    UGLY,
    assert_equal_with_gradients,
    attend_plainly,
    groupings_of,
    layout_of,
    places,
    projected,
    random_inputs,
    randomize,
    root,
)

from docmt.errors import UserError
from docmt.models.attention.multi_head import FUSIONS, SplitAttention, build_attention
from docmt.models.attention.patterns import PATTERNS, SIDES, SLOTS
from docmt.models.initialization import copy_weights, zero_init_outputs

WIDTH, HEADS = 16, 4


def literal(attention, query, memory, layout, slot):
    """Projections of all heads, one mask per head, one output projection."""
    memory = query if memory is None else memory
    queries, keys = (places(layout, side) for side in SIDES[slot])
    parts = (attention.group, attention.global_)
    q, k, v = (
        torch.cat([projected(part, rows, n) for part in parts], 1) for n, rows in enumerate((query, memory, memory))
    )

    def sees(i, h):
        level = 1 if h < HEADS // 2 else 0
        return [j for j, key in enumerate(keys) if key[level] == queries[i][level] and (slot != "decoder" or j <= i)]

    heads = attend_plainly(
        len(queries), HEADS, sees, lambda i, j, h: q[i, h] @ k[j, h] / root(WIDTH // HEADS), lambda i, j, h: v[j, h]
    )
    out = torch.cat([part.out.weight for part in parts], 1)
    return heads @ out.T + attention.group.out.bias


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("name", UGLY)
def test_one_attention_with_head_masks(slot, name):
    attention = randomize(build_attention(WIDTH, HEADS, "long_short"))
    layout = layout_of(UGLY[name], make_model("lstm_transformer").settings)
    query, memory = random_inputs(layout, slot, WIDTH)
    output = attention(query, memory, groupings_of(layout, slot))
    expected = literal(attention, query, memory, layout, slot)
    inputs = [query, *attention.parameters(), *([] if memory is None else [memory])]
    assert_equal_with_gradients(output, expected, inputs)


def test_heads_must_be_shared_evenly():
    with pytest.raises(UserError, match=r"group and global share heads: model\.heads 3 must be a multiple of 2"):
        SplitAttention(12, 3, ("group", "global"))


def test_starts_from_all_heads():
    """With one sentence, both kinds of heads read the same tokens, as in the sentence model."""
    sentence, model = make_model("sentence_transformer", seed=3), make_model("lstm_transformer", heads=2)
    copied = copy_weights(model, sentence.state_dict())
    assert copied == {name for name, _ in model.named_parameters()}
    documents = random_documents((1, 1, 1))
    assert_close(*(decoder_states(each, make_batch(each.settings, documents)) for each in (sentence, model)))


def test_its_weights_start_another_one_of_its_kind():
    one, other = make_model("lstm_transformer", seed=1), make_model("lstm_transformer", seed=2)
    assert len(copy_weights(other, one.state_dict())) == len(list(other.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_fusion_rows_tell_of_gates():
    assert {name: PATTERNS[name].has_gate for name in FUSIONS} == {name: FUSIONS[name].has_gate for name in FUSIONS}


def test_it_cannot_start_silently():
    with pytest.raises(UserError, match="several attentions in one layer have no gate"):
        zero_init_outputs(make_model("lstm_transformer"))
