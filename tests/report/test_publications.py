"""Published scores: complete, consistent, and refused when misspelt."""

from itertools import groupby

import pytest

from docmt.errors import UserError
from docmt.report.publications import find_published, load_published, load_published_statistics
from docmt.report.settings import ReportSettings


@pytest.mark.parametrize(
    ("row", "dataset", "metric", "phenomenon", "value", "table"),
    [
        ("g-transformer/g_transformer_finetuned", "news", "d-BLEU (instances)", None, 27.11, "Table 2"),
        ("g-transformer/discourse_g_transformer", "opensubtitles", "contrastive accuracy", "deixis", 89.9, "Table 4"),
        ("rst-transformer/mix", "europarl", "d-BLEU (instances)", None, 34.64, "Table 2"),
        ("cross-task/document_documents_only", "zh-en", "METEOR", None, 30.19, "Table 2"),
        ("cross-task/document", "zh-en", "APT", None, 69.73, "Table 5"),
        ("cross-task/gap_10", "zh-en-dev", "s-BLEU", None, 50.64, "Table 6"),
        ("cross-task/pretraining", "ted", "passes_restoration", None, 1.2, "Table 10"),
        (
            "g-transformer/transformer_document_length_256",
            "europarl",
            "d-BLEU (instances)",
            None,
            30.5,
            "Section 3.1",
        ),
    ],
)
def test_numbers_of_the_papers(row, dataset, metric, phenomenon, value, table):
    number = find_published(row, dataset, metric=metric, phenomenon=phenomenon)
    assert (number.value, number.table) == (value, table)


def test_what_a_paper_does_not_give_is_none():
    row = "g-transformer/transformer_document"
    assert find_published(row, "ted", metric="s-BLEU") is None
    assert find_published(None, "ted", metric="s-BLEU") is None
    assert find_published(row, None, metric="d-BLEU (instances)") is None


def test_repeated_row_has_equal_numbers():
    def key(number):
        return number.row, number.dataset, number.metric, number.phenomenon or ""

    for _, group in groupby(sorted(load_published(), key=key), key=key):
        assert len({number.value for number in group}) == 1


def test_statistics_agree_with_their_own_means():
    for statistics in load_published_statistics():
        counts = statistics.counts
        if "instances" not in counts:
            assert counts.keys() in ({"sentences"}, {"sentences", "documents"})
            continue
        mean = counts["sentences"] / counts["instances"]
        assert mean == pytest.approx(counts["sentences_per_instance"], rel=0.08)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"published": {"a": "g-transformer/g_transformer_scrach"}},
            "did you mean 'g-transformer/g_transformer_scratch'",
        ),
        ({"datasets": {"a": "Ted"}}, "must name a published data set"),
        ({"titel": "x"}, "did you mean 'title'"),
        ({"metrics": []}, "report.metrics"),
    ],
)
def test_misspelt_settings_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        ReportSettings.load(values, where="report")
