"""Published numbers: whole, consistent, and refused when misspelt."""

from itertools import groupby

import pytest
import yaml

from docmt.errors import UserError
from docmt.report.publications import FOLDER, find_published, load_published, load_published_statistics
from docmt.report.settings import ReportSettings


@pytest.mark.parametrize(
    ("row", "dataset", "metric", "phenomenon", "value", "table"),
    [
        ("g-transformer/g_transformer_finetuned", "news", "d-BLEU (instances)", None, 27.11, "Table 2"),
        ("g-transformer/transformer_document", "ted", "d-BLEU (instances)", None, 0.76, "Table 2"),
        ("g-transformer/no_context", "europarl", "s-BLEU", None, 31.39, "Table 3"),
        ("g-transformer/discourse_g_transformer", "opensubtitles", "contrastive accuracy", "deixis", 89.9, "Table 4"),
        ("g-transformer/no_language_locality", "ted", "d-BLEU (instances)", None, 22.47, "Table 5"),
        ("g-transformer/only_global", "news", "d-BLEU (instances)", None, 24.54, "Table 6"),
        ("g-transformer/g_transformer_scratch_large", "ted", "s-BLEU", None, 6.23, "Table 7"),
        ("rst-transformer/mix", "europarl", "d-BLEU (instances)", None, 34.64, "Table 2"),
        ("cross-task/document_pretrained", "zh-en", "s-BLEU", None, 50.03, "Table 1"),
        ("cross-task/transformer", "europarl", "METEOR", None, 45.83, "Table 1"),
        ("cross-task/document_documents_only", "zh-en", "METEOR", None, 30.19, "Table 2"),
        ("cross-task/sentence_without_joint", "zh-en", "s-BLEU", None, 48.33, "Table 3"),
        ("cross-task/document", "zh-en", "APT", None, 69.73, "Table 5"),
        ("cross-task/gap_10", "zh-en-dev", "s-BLEU", None, 50.64, "Table 6"),
        ("cross-task/only_msr", "zh-en", "s-BLEU", None, 49.73, "Table 7"),
        ("cross-task/pretraining", "zh-en", "passes_pairs", None, 35, "Table 10"),
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


def test_a_row_in_several_tables_has_the_same_numbers():
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


def test_the_keys_of_a_papers_file_are_its_rows():
    """As the manual says (docs/report.md)."""
    papers = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.yaml")}
    rows = {
        (paper, key)
        for paper, content in papers.items()
        for table in content["tables"].values()
        for key in table["rows"]
    }
    assert {number.row for number in load_published()} == {f"{paper}/{key}" for paper, key in rows}
