"""The counting rule and its boundaries."""

import pytest

from docmt.errors import UserError
from docmt.instances.cutting import split_document
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
