"""Packed instances, language tags before sentences, and documents as single sentences."""

from types import SimpleNamespace

import numpy as np
import pytest

from docmt.errors import UserError
from docmt.instances.packing import BoundaryTokens, as_sentences, gather
from docmt.instances.storage import load_instances
from docmt.models.model_file import boundary_tokens
from docmt.text.vocabulary import Vocabulary, extra_specials


@pytest.fixture(scope="module")
def instance_set(study_files):
    return load_instances(study_files.instances("documents"))


def sentences(tokens, lengths):
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def test_gathering_keeps_sentences_and_their_order(instance_set):
    numbers = [2, 0, len(instance_set) - 1]
    packed = gather(instance_set, numbers)
    for side, tokens, lengths in (
        ("src", packed.src_tokens_S, packed.src_lengths_G),
        ("tgt", packed.tgt_tokens_N, packed.tgt_lengths_G),
    ):
        expected = [sentence.tolist() for number in numbers for sentence in instance_set.sentences(number, side)]
        assert sentences(tokens, lengths) == expected
    assert packed.counts_B.tolist() == [instance_set.n_sentences()[number] for number in numbers]


def test_unknown_language_tags():
    vocabulary = Vocabulary.from_sentences([["a"]], extras=extra_specials(["zh", "en"]))
    pipeline = SimpleNamespace(src_lang="zh", tgt_lang="en")
    assert boundary_tokens(None, vocabulary, pipeline) == BoundaryTokens(src_before=(8,), tgt_before=(9,))
    with pytest.raises(UserError, match="no tag <de>"):
        boundary_tokens(None, vocabulary, pipeline, both="de")


@pytest.mark.parametrize("cutting", ["documents", "trees"])
def test_documents_as_sentences_hold_the_same_text(study_files, cutting):
    instance_set = load_instances(study_files.instances(cutting))
    single = as_sentences(instance_set)
    assert len(single) == instance_set.n_sentences().sum()
    assert set(single.n_sentences().tolist()) == {1}
    assert single.trees is None
    assert single.src_tokens is instance_set.src_tokens
    documents = [instance_set.documents[i] for i in range(len(instance_set)) for _ in instance_set.sentences(i, "src")]
    assert single.documents.tolist() == documents
    whole, parts = (gather(each, range(len(each))) for each in (instance_set, single))
    assert np.array_equal(whole.src_tokens_S, parts.src_tokens_S)
    assert np.array_equal(whole.tgt_lengths_G, parts.tgt_lengths_G)
