"""RST attention and its fusions, compared with the formulas in the paper, and influence of tokens."""

import numpy as np
import pytest
import torch
from core_fixtures import (
    assert_close,
    document_trees,
    make_batch,
    make_model,
    model_settings,
    random_documents,
    random_trees,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_attention import (
    assert_equal_with_gradients,
    dense_attention,
    groupings_of,
    influence,
    random_inputs,
    randomize,
)
from plain_layers import join, read

from docmt.instances.storage import load_instances
from docmt.models.attention import multi_head
from docmt.models.attention.layout import AttentionLayout, BatchTrees
from docmt.models.attention.multi_head import build_attention
from docmt.models.batch import collate
from docmt.training.loss import LossModule

SLOTS = ("encoder", "decoder", "cross")
FUSIONS = ("rst_serial", "rst_parallel", "rst_mix")
WIDTH, HEADS = 8, 2

LENGTHS = st.integers(1, 9) | st.just(1) | st.integers(25, 40)
"""Lengths of a sentence with its marks. A length of two is an empty sentence."""
INSTANCES = st.lists(
    st.tuples(st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=6), st.booleans()), min_size=1, max_size=4
)
UGLY = {
    "one token": [([(1, 1)], False)],
    "one sentence": [([(9, 7)], False)],
    "only one-token sentences": [([(1, 1)] * 5, False), ([(1, 1)], True)],
    "empty sentences": [([(2, 1)] * 4, False), ([(2, 1), (5, 3), (2, 1)], False)],
    "open and closed": [([(3, 4), (1, 1), (6, 2)], True), ([(2, 5), (7, 1)] * 4, False), ([(4, 4)], True)],
    "all open": [([(3, 4), (1, 1)], True), ([(6, 2)], True)],
}


def make_layout(instances, seed=0):
    """Random trees over instances. An instance is a list of (source, target) lengths and a flag for open trees."""
    pairs = [pair for sentences, _ in instances for pair in sentences]
    trees = [
        random_trees([src for src, _ in sentences], seed=seed + i).without_tree_mask(np.array([is_open]))
        for i, (sentences, is_open) in enumerate(instances)
    ]
    return AttentionLayout(
        np.array([pair[0] for pair in pairs]),
        np.array([pair[1] for pair in pairs]),
        np.array([len(sentences) for sentences, _ in instances]),
        settings=model_settings("rst_mix"),
        trees=BatchTrees.join(trees),
    )


def literal_mask(layout, slot, pattern):
    """Eq. 5 and Eq. 7 token by token, as visibility of tokens."""
    trees = layout.trees
    instance_of_sentence = np.repeat(np.arange(len(layout.sentences_B)), layout.sentences_B)
    sentence_of_edu = np.repeat(np.arange(len(layout.src_lengths_G)), trees.edu_counts_G)
    sides = {
        "src": np.repeat(np.arange(len(layout.src_lengths_G)), layout.src_lengths_G),
        "tgt": np.repeat(np.arange(len(layout.tgt_lengths_G)), layout.tgt_lengths_G),
    }
    query_sentences = sides["src" if slot == "encoder" else "tgt"]
    key_sentences = sides["tgt" if slot == "decoder" else "src"]
    if slot == "encoder":
        units = np.repeat(np.arange(len(trees.edu_lengths_E)), trees.edu_lengths_E)
        assert np.array_equal(sentence_of_edu[units], sides["src"])
        query_units, key_units, heads = units, units, trees.edu_heads_E
    else:
        query_units, key_units, heads = query_sentences, key_sentences, trees.sentence_heads_G
    mask = np.zeros((len(query_units), len(key_units)), dtype=bool)
    for i, (a, sentence) in enumerate(zip(query_units, query_sentences, strict=True)):
        for j, (b, other) in enumerate(zip(key_units, key_sentences, strict=True)):
            instance = instance_of_sentence[sentence]
            if pattern == "group":
                mask[i, j] = sentence == other
            else:
                mask[i, j] = a == b or heads[a] == b or heads[b] == a
                mask[i, j] |= trees.open_B[instance] and instance == instance_of_sentence[other]
    if slot == "decoder":
        mask &= np.tri(len(mask), dtype=bool)
    return torch.from_numpy(mask)


def literal_fusion(attention, pattern, query_ND, memory_SD, masks):
    """Eq. 8–13. Without a memory (self-attention), keys and values come from the same states as queries."""

    def attend(name, input_ND):
        memory = input_ND if memory_SD is None else memory_SD
        return read(getattr(attention, name), input_ND, memory, masks[name])

    group_ND = attend("group", query_ND)
    rst_ND = attend("rst", query_ND if pattern == "rst_parallel" else group_ND)
    if pattern == "rst_serial":
        return rst_ND
    return join(attention.gate, group_ND, rst_ND)


def check_fusion(layout, slot, pattern):
    attention = randomize(build_attention(WIDTH, HEADS, pattern))
    query, memory = random_inputs(layout, slot, WIDTH)
    masks = {"group": literal_mask(layout, slot, "group"), "rst": literal_mask(layout, slot, "rst")}
    output = attention(query, memory, groupings_of(layout, slot))
    expected = literal_fusion(attention, pattern, query, memory, masks)
    inputs = [query, *attention.parameters(), *([] if memory is None else [memory])]
    assert_equal_with_gradients(output, expected, inputs)


@pytest.mark.parametrize("slot", SLOTS)
@settings(max_examples=40, deadline=None)
@given(instances=INSTANCES, seed=st.integers(0, 99))
def test_groupings_say_equation_7(slot, instances, seed):
    layout = make_layout(instances, seed)
    grouping = layout.grouping(slot, "rst")
    expected = literal_mask(layout, slot, "rst")
    assert np.array_equal(grouping.dense_mask(expected.shape[1]), expected)
    if slot != "encoder":
        counts_G = layout.sentence_grouping("cross", "rst").query_lengths_G
        lengths_G = np.add.reduceat(layout.tgt_lengths_G, np.cumsum(counts_G) - counts_G)
        assert lengths_G.tolist() == grouping.query_lengths_G.tolist()


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("pattern", FUSIONS)
@settings(max_examples=10, deadline=None)
@given(instances=INSTANCES, seed=st.integers(0, 99))
def test_fusions_equal_the_formulas_in_outputs_and_gradients(slot, pattern, instances, seed):
    check_fusion(make_layout(instances, seed), slot, pattern)


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("pattern", FUSIONS)
@pytest.mark.parametrize("name", UGLY)
def test_fusions_equal_the_formulas_on_ugly_layouts(slot, pattern, name):
    check_fusion(make_layout(UGLY[name]), slot, pattern)


# Whole models

COUNTS = (1, 4, 7, 2, 1)
OPEN = (False, False, True, False, True)


def loss_and_gradients(model, batch):
    loss = LossModule(model, 0.1)(batch.prepare("padded"))
    return loss, torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("architecture", FUSIONS)
def test_whole_models_equal_the_dense_mask(monkeypatch, architecture):
    """In double precision, so that differences come from the formula and not from rounding."""
    model = make_model(architecture).double()
    documents = random_documents(COUNTS)
    batch = make_batch(model.settings, documents, document_trees(documents, open_B=OPEN))
    results = loss_and_gradients(model, batch)

    def attend(query, key, value, grouping, adjust):
        assert adjust is None
        return dense_attention(query, key, value, grouping)

    monkeypatch.setattr(multi_head, "ragged_attention", attend)
    monkeypatch.setattr("docmt.models.attention.layout.indexes_for", lambda grouping, _: grouping)
    expected = loss_and_gradients(model, batch)
    assert_close(results[0], expected[0], 1e-12)
    for gradient, wanted in zip(results[1], expected[1], strict=True):
        assert_close(gradient, wanted, 1e-10)


@pytest.mark.parametrize("trees", ["none", "all open", "of instances that have none"])
def test_with_everything_open_parallel_is_g_transformer_exactly(trees):
    """ "G-Transformer is a special case of RST-Transformer-Parallel when all EDUs connect to each other" (§4.3)."""
    documents = random_documents(COUNTS)
    batch_trees = {
        "none": None,
        "all open": document_trees(documents, open_B=[True] * len(COUNTS)),
        "of instances that have none": BatchTrees.join(
            [BatchTrees.of_open_instance([len(sentence) for sentence in src]) for src, _ in documents]
        ),
    }[trees]
    g_transformer, rst = make_model("g_transformer"), make_model("rst_parallel", seed=1)
    weights = {name.replace(".global_.", ".rst."): value for name, value in g_transformer.state_dict().items()}
    rst.load_state_dict(weights)
    expected = loss_and_gradients(g_transformer, make_batch(g_transformer.settings, documents))
    results = loss_and_gradients(rst, make_batch(rst.settings, documents, batch_trees))
    assert torch.equal(results[0], expected[0])
    assert all(torch.equal(*pair) for pair in zip(results[1], expected[1], strict=True))
    closed = loss_and_gradients(rst, make_batch(rst.settings, documents, document_trees(documents)))
    assert not torch.equal(closed[0], expected[0])


# Who influences whom


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("pattern", ["rst", *FUSIONS])
def test_output_depends_on_related_units(slot, pattern):
    layout = make_layout([([(4, 3), (2, 2), (5, 4), (3, 2), (6, 3)], False), ([(3, 2), (2, 3)], False)], seed=3)
    query, memory = random_inputs(layout, slot, WIDTH)
    output = randomize(build_attention(WIDTH, HEADS, pattern))(query, memory, groupings_of(layout, slot))
    group, rst = literal_mask(layout, slot, "group"), literal_mask(layout, slot, "rst")
    if pattern == "rst":
        expected = rst
    elif pattern == "rst_parallel" or slot == "cross":
        expected = group | rst
    else:
        expected = rst.float() @ group.float() > 0
    assert not expected.all()
    assert np.array_equal(influence(output, query if memory is None else memory), expected)


# Trees of batches


def test_collated_trees_are_those_of_the_instances(study_files):
    instance_set = load_instances(study_files.instances("trees"))
    lengths = [[len(s) for s in instance_set.sentences(i, "src")] for i in range(len(instance_set))]
    numbers = [3, 0, 5]
    tree_batch = collate(instance_set, numbers, model_settings("rst_mix")).layout.trees
    expected = BatchTrees.join([random_trees(lengths[i], seed=i) for i in numbers])
    for name, array in vars(expected).items():
        assert np.array_equal(getattr(tree_batch, name), array), name
    assert collate(instance_set, numbers, model_settings("g_transformer")).layout.trees is None
    without = load_instances(study_files.instances("documents"))
    assert collate(without, numbers, model_settings("rst_mix")).layout.trees is None
