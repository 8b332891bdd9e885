"""The counting rule and its boundaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmt.errors import UserError
from docmt.instances.cutting import split_document, split_documents
from docmt.instances.settings import InstancesSettings


@pytest.mark.parametrize(
    ("costs", "max_tokens", "max_sentences", "expected"),
    [
        ([10, 10, 10], 30, None, [3]),  # exactly full
        ([10, 10, 11], 30, None, [2, 1]),  # one token more
        ([10, 10, 10, 2], 30, None, [3, 1]),  # full, then the smallest sentence there is
        ([31], 30, None, [1]),  # above the limit, alone
        ([30], 30, None, [1]),
        ([5, 31, 5], 30, None, [1, 1, 1]),  # nothing joins a sentence above the limit
        ([31, 31], 30, None, [1, 1]),
        ([31, 5, 5], 30, None, [1, 2]),
        ([5, 5, 31], 30, None, [2, 1]),
        ([2], 30, None, [1]),  # an empty sentence still has its marks
        ([2] * 16, 30, None, [15, 1]),
        ([5] * 5, 30, 2, [2, 2, 1]),
        ([5] * 5, 30, 1, [1] * 5),
        ([20, 20, 5], 30, 2, [1, 2]),
        ([5] * 4, 30, 4, [4]),
        ([2] * 5000, 10_000, None, [5000]),  # a document of 10,000 tokens is one instance if it may be
        ([2] * 5000, 512, None, [256] * 19 + [136]),
        ([2] * 5001, 10_000, 1000, [1000] * 5 + [1]),
        ([], 30, None, []),
    ],
)
def test_sentences_of_each_instance(costs, max_tokens, max_sentences, expected):
    assert split_document(costs, max_tokens=max_tokens, max_sentences=max_sentences) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_tokens": 7}, "max_tokens"),
        ({"max_sentences": 0}, "max_sentences"),
        ({"max_token": 512}, "did you mean 'max_tokens'"),
        ({"subset": "5"}, "number"),
    ],
)
def test_bad_settings_are_named(values, message):
    with pytest.raises(UserError, match=message):
        InstancesSettings.load(values, where="instances")


DOCUMENTS = st.lists(st.lists(st.integers(2, 40), min_size=1, max_size=12), min_size=1, max_size=6)


@given(DOCUMENTS, st.integers(8, 60), st.none() | st.integers(1, 5))
def test_every_sentence_once_in_order_inside_its_document(documents, max_tokens, max_sentences):
    settings = InstancesSettings(max_tokens=max_tokens, max_sentences=max_sentences)
    costs = np.array([cost for document in documents for cost in document])
    lengths = [len(document) for document in documents]
    offsets, owners = split_documents(costs, lengths, settings)
    assert offsets[0] == 0
    assert offsets[-1] == len(costs)
    assert (np.diff(offsets) > 0).all()
    owner_of_sentence = np.repeat(np.arange(len(documents)), lengths)
    for first, last, owner in zip(offsets[:-1], offsets[1:], owners, strict=True):
        assert (owner_of_sentence[first:last] == owner).all()
        total = costs[first:last].sum()
        assert total <= max_tokens or last - first == 1
        assert max_sentences is None or last - first <= max_sentences
        # Greedy: the next sentence of the document would not have fitted.
        if last < len(costs) and owner_of_sentence[last] == owner:
            assert total + costs[last] > max_tokens or last - first == max_sentences
