"""Instances from a stream have the same files as a plain computation on whole arrays, bit by bit."""

import json
from dataclasses import replace

import numpy as np
import pytest
from core_fixtures import build_and_load
from hypothesis import given, settings
from hypothesis import strategies as st

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.files import read_json
from docmt.instances import building
from docmt.instances.cutting import split_document
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import TREE_ARRAYS, array_writer, load_instances, save_instances
from docmt.instances.trees import SubwordTrees, store_trees
from docmt.text.vocabulary import BOS, EOS, Vocabulary

VOCABULARY = Vocabulary.from_symbols(["a", "b", "c"])
SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "x", "<s>"]), max_size=9)
DOCUMENTS = st.lists(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Blocks that are so small that every text has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "SENTENCES_OF_A_BLOCK", 3)
        yield


def plain(documents, values):
    """Instances as lists of documents and encoded sentence pairs, cut and selected in memory."""
    instances = []
    for number, document in enumerate(documents):
        costs = [max(map(len, pair)) + 2 for pair in document]
        rest = iter([tuple([BOS, *VOCABULARY.encode(side), EOS] for side in pair) for pair in document])
        limits = {name: values.get(name) for name in ("max_tokens", "max_sentences")}
        is_long = sum(costs) >= (values.get("min_document_tokens") or 0)
        for count in split_document(costs, **limits):
            instance = (number, [next(rest) for _ in range(count)])
            instances += [instance] if is_long else []
    if (subset := values.get("subset")) and subset < len(instances):
        generator = np.random.default_rng(values["subset_seed"])
        numbers = np.sort(generator.choice(len(instances), subset, replace=False))
        instances = [instances[i] for i in numbers]
    return instances


@settings(deadline=None)
@given(
    DOCUMENTS,
    st.fixed_dictionaries(
        {
            "max_tokens": st.integers(8, 40),
            "max_sentences": st.none() | st.integers(1, 3),
            "min_document_tokens": st.none() | st.integers(1, 30),
            "subset": st.none() | st.integers(1, 5),
            "subset_seed": st.integers(1, 3),
        }
    ),
)
def test_streamed_instances_are_the_plain_ones(documents, values):
    src, tgt = ([pair[side] for document in documents for pair in document] for side in (0, 1))
    index = DocumentIndex(tuple(f"d{i}" for i in range(len(documents))), tuple(map(len, documents)))
    expected = plain(documents, values)

    def build():
        return build_and_load(iter(src), iter(tgt), iter(index), VOCABULARY, InstancesSettings(**values))

    if not expected:
        with pytest.raises(UserError, match="no instances are left"):
            build()
        return
    built = build()
    assert built.documents.tolist() == [document for document, _ in expected]
    for side, name in enumerate(("src", "tgt")):
        tokens = [[ids.tolist() for ids in built.sentences(i, name)] for i in range(len(built))]
        assert tokens == [[pair[side] for pair in pairs] for _, pairs in expected]
    counts = built.manifest["counts"]
    assert counts["documents"] == len({document for document, _ in expected})
    assert counts["instances_split"] - counts["instances_left_out"] == counts["instances"] == len(expected)
    totals = [sum(max(map(len, pair)) for pair in pairs) for _, pairs in expected]
    assert (counts["tokens"], counts["longest_instance_tokens"]) == (sum(totals), max(totals))
    assert built.n_tokens().max() <= max(totals)
    assert counts["sentences"] == built.n_sentences().sum() == sum(len(pairs) for _, pairs in expected)
    costs = [max(map(len, pair)) + 2 for document in documents for pair in document]
    assert (counts["documents_read"], counts["sentences_read"]) == (len(documents), len(costs))
    assert counts["sentences_over_limit"] == sum(cost > values["max_tokens"] for cost in costs)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("lengths", [[], [0], [1], [3, 0, 5], [10] * 1001])
def test_array_in_parts_equals_numpy(tmp_path, dtype, lengths):
    parts = [np.arange(length, dtype=np.int64) for length in lengths]
    with array_writer(tmp_path / "parts.npy", dtype) as append:
        for part in parts:
            append(part)
    np.save(tmp_path / "whole.npy", np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(dtype))
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def random_trees(generator, n_sentences):
    """Trees of a document. A unit depends on an earlier unit, or is a root."""

    def heads(n):
        return np.array([generator.integers(-1, i) if i else -1 for i in range(n)], dtype=np.int64)

    edu_counts = generator.integers(1, 4, n_sentences)
    n_edus = int(edu_counts.sum())
    n_inexact = int(generator.integers(0, 2))
    return SubwordTrees(generator.integers(1, 6, n_edus), edu_counts, heads(n_edus), heads(n_sentences), n_inexact)


def plain_heads(documents, numbers):
    """Heads of units that are in an instance, counted one by one, and the number of cut arcs.

    A document is a list of heads. `numbers` contains the instances of its units.
    """
    new_heads, n_cut = [], 0
    for heads, instances in zip(documents, numbers, strict=True):
        rows, before = {}, len(new_heads)
        for unit in range(len(heads)):
            if instances[unit] >= 0:
                rows[unit] = before + len(rows)
        for unit in rows:
            head = int(heads[unit])
            is_cut = head >= 0 and instances[head] != instances[unit]
            new_heads.append(-1 if head < 0 or is_cut else rows[head])
            n_cut += is_cut
    return new_heads, n_cut


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_trees_follow_selected_instances(tmp_path, share):
    generator = np.random.default_rng(5)
    lengths = [1, 4, 1, 7, 2, 5, 1]
    placed = [random_trees(generator, length) for length in lengths]
    pieces = [np.arange(length) // 2 for length in lengths]  # instances of two sentences
    starts = np.cumsum([0, *(piece[-1] + 1 for piece in pieces)])
    is_kept = generator.random(starts[-1]) < share
    places = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    numbers = [places[piece + start] for piece, start in zip(pieces, starts, strict=False)]
    edu_numbers = [np.repeat(part, trees.edu_counts) for part, trees in zip(numbers, placed, strict=True)]
    edu_heads, n_cut = plain_heads([trees.edu_heads for trees in placed], edu_numbers)
    sentence_heads, n_sentences_cut = plain_heads([trees.sentence_heads for trees in placed], numbers)

    def ends(sizes, numbers):
        return np.cumsum([0, *np.concatenate(sizes)[np.concatenate(numbers) >= 0]]).tolist()

    expected = {"edu_heads": edu_heads, "sentence_heads": sentence_heads}
    expected["edu_offsets"] = ends([trees.edu_lengths for trees in placed], edu_numbers)
    expected["sentence_edus"] = ends([trees.edu_counts for trees in placed], numbers)
    counts = store_trees(tmp_path, iter(placed), np.concatenate(numbers).astype(np.int32))
    n_inexact = sum(trees.n_inexact for trees in placed)
    assert list(counts.values()) == [len(edu_heads), n_cut, n_sentences_cut, n_inexact]
    for name, dtype in TREE_ARRAYS.items():
        array = np.load(tmp_path / f"{name}.npy")
        assert array.dtype == dtype
        assert array.tolist() == expected[name]


# Document ids


def test_ids_have_their_own_file(tmp_path):
    index = DocumentIndex(("a/1", "ü \u2028 2"), (1, 1))
    built = build_and_load([["a"], []], [["b"], []], index, VOCABULARY, InstancesSettings(), out=tmp_path / "set")
    assert built.document_ids() == list(index.ids)
    assert "document_ids" not in built.manifest
    (tmp_path / "set/document_ids.txt").write_text("a/1\n", encoding="utf-8")
    damaged = load_instances(tmp_path / "set")
    with pytest.raises(UserError, match="was changed after docmt wrote it"):
        damaged.document_ids()
    (tmp_path / "set/.checksums/document_ids.txt.sha256").unlink()
    with pytest.raises(UserError, match="1 ids, not 2: build the instances again"):
        damaged.document_ids()
    (tmp_path / "set/document_ids.txt").unlink()
    with pytest.raises(UserError, match="no such file"):
        damaged.document_ids()


def test_ids_in_the_manifest_are_read(tmp_path):
    index = DocumentIndex(("x", "y"), (1, 2))
    build_and_load([["a"], [], ["b"]], None, index, VOCABULARY, InstancesSettings(), out=tmp_path / "set")
    manifest = read_json(tmp_path / "set/manifest.json") | {"document_ids": ["x", "y"]}
    (tmp_path / "set/.checksums/manifest.json.sha256").unlink()
    (tmp_path / "set/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (tmp_path / "set/document_ids.txt").unlink()
    old = load_instances(tmp_path / "set")
    assert old.document_ids() == ["x", "y"]
    save_instances(tmp_path / "new", replace(old, manifest=old.manifest | {"counts": old.manifest["counts"]}))
    new = load_instances(tmp_path / "new")
    assert new.document_ids() == ["x", "y"]
    assert "document_ids" not in new.manifest
