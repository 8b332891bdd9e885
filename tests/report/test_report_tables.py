"""Tables: means, deviations, gaps, published numbers, escapes."""

import pandas as pd
import pytest
from score_rows import accuracy, best_cells, cell_links, history, long_table, score

from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import wilson_interval
from docmt.evaluation.metrics import METRICS, Metric
from docmt.report.input_files import read_tables
from docmt.report.markup import to_latex, to_markdown
from docmt.report.score_tables import contrastive_table, further_table, main_table, paper_table, split_table
from docmt.report.settings import PaperTable, ReportSettings
from docmt.report.study_tables import INSTANCE_KEYS, counts_table, overlap_table, passes_table, statistics_table
from docmt.report.summary import pool_distances, summarize
from docmt.report.tables import Cell, Column, Table, count, format_count, label, to_text

SETTINGS = ReportSettings()


def test_mean_and_sample_deviation_over_seeds():
    table = main_table(summarize(long_table([score("a", 10), score("a", 12, seed=2), score("b", 11.5)])), SETTINGS)
    assert table.heading == "Translation scores (dataset d, test t)"
    assert table.header == ["System", "Seeds", "s-BLEU"]
    assert table.rows == [["a", "2", "11.00 ± 1.41"], ["b", "1", "11.50"]]
    assert best_cells(table) == {(1, 2)}
    assert table.full["s-BLEU sd"].tolist()[0] == pytest.approx(2**0.5)


def test_missing_and_undefined_values_are_dashes():
    rows = [score("a", float("nan")), score("a", 12.0, seed=2), score("b", 7, metric="chrF"), score("c", float("nan"))]
    table = main_table(summarize(long_table(rows)), SETTINGS)
    assert table.rows == [["a", "12.00", "–"], ["b", "–", "7.00"], ["c", "–", "–"]]
    assert best_cells(table) == set()


def test_generative_accuracy_has_a_table_without_guessing():
    rows = [accuracy("a", 40, test="ctxpro", metric="generative accuracy", chance=None), accuracy("a", 60)]
    rows += [accuracy("a", 50, test="ctxpro", metric="generative accuracy", chance=None, kind="DO.ELL")]
    summary = summarize(long_table(rows))
    table = contrastive_table(summary, SETTINGS, metric="generative accuracy")
    assert (table.key, table.title, table.rows) == ("generative", "Generative accuracy", [["a", "40.0"]])
    assert [row[0] for row in contrastive_table(summary, SETTINGS).rows] == ["a", "(chance)"]
    split = split_table(summary, SETTINGS, by="kind", metric="generative accuracy")
    assert (split.key, split.header[-1], split.rows[0][-1]) == ("generative_by_kind", "DO.ELL", "50.0")
    assert main_table(summary, SETTINGS) is None
    assert further_table(summary, SETTINGS) is None
    assert contrastive_table(summarize(long_table([score("a", 3)])), SETTINGS) is None


def test_published_numbers_follow_the_settings():
    settings = ReportSettings(
        published={"a": "g-transformer/transformer_sentence"}, datasets={"d/ted": "ted"}, labels={"a": "Sentence"}
    )
    rows = [score("a", 20, test="ted"), score("b", 21, test="ted"), score("a", 22, test="other")]
    table = main_table(summarize(long_table(rows)), settings)
    assert table.header == ["Test", "System", "s-BLEU", "published"]
    assert table.rows == [
        ["ted", "Sentence", "20.00", "24.82"],
        ["", "b", "21.00", "–"],
        ["other", "Sentence", "22.00", "–"],
    ]
    assert "Published: Sentence: Bao et al. (2021), Table 2, “Transformer on sent”" in table.note
    assert table.full["s-BLEU published"].tolist()[0] == 24.82


def test_metrics_stand_beside_published_ones():
    settings = ReportSettings(
        metrics=["s-BLEU", "METEOR", "APT"], published={"a": "cross-task/document"}, datasets={"d": "zh-en"}
    )
    rows = [score("a", 30, metric="METEOR"), score("a", 60, metric="APT"), score("a", 20)]
    rows += [score("a", 50, metric="APT") | {"kind": "它"}, score("a", 9, metric="APT cases") | {"kind": "neither"}]
    summary = summarize(long_table(rows))
    table = main_table(summary, settings)
    assert table.header[1:] == ["s-BLEU", "published", "METEOR", "published", "APT", "published"]
    assert table.rows == [["a", "20.00", "41.27", "30.00", "28.46", "60.00", "69.73"]]
    assert further_table(summary, settings) is None


def test_metric_knows_digits_and_direction(monkeypatch):
    monkeypatch.setitem(METRICS, "edits", Metric("edits", digits=1, lower_is_better=True))
    rows = [score("a", 40.26, metric="edits"), score("b", 39, metric="edits"), score("a", 20), score("b", 21)]
    table = main_table(summarize(long_table(rows)), ReportSettings(metrics=["s-BLEU", "edits"]))
    assert [row[-2:] for row in table.rows] == [["20.00", "40.3"], ["21.00", "39.0"]]
    assert best_cells(table) == {(1, 1), (1, 2)}


def test_external_metric_keeps_its_scale():
    """BLEURT is no BLEU score below 1 %, and an arrow means that lower is better."""
    rows = [score("a", 0.26, metric="MetricX ↓"), score("b", 3.5, metric="MetricX ↓")]
    rows += [score("a", 0.5, metric="BLEURT"), score("b", 0.6, metric="BLEURT")]
    table = main_table(summarize(long_table(rows)), ReportSettings(metrics=["MetricX ↓", "BLEURT"]))
    assert table.caption.startswith("In percent, MetricX ↓, BLEURT as in the files")
    assert [row[-2:] for row in table.rows] == [["0.26", "0.50"], ["3.50", "0.60"]]
    assert best_cells(table) == {(0, 1), (1, 2)}
    assert r"MetricX $\downarrow$" in to_latex(table)


def test_further_scores_complete_the_main_table():
    rows = [score("a", 3), score("a", 98.5, metric="length ratio")]
    table = further_table(summarize(long_table(rows)), SETTINGS)
    assert table.header == ["System", "length ratio"]
    assert best_cells(table) == set()


def test_contrastive_table_ends_with_guessing():
    rows = [accuracy("a", 50.25), accuracy("b", 90), accuracy("a", 51, phenomenon="deixis", test="deixis")]
    table = contrastive_table(summarize(long_table(rows)), SETTINGS)
    assert table.heading == "Contrastive accuracy (dataset d, 1 seed)"
    assert table.header == ["System", "pronoun", "deixis"]
    assert table.rows == [["a", "50.2 °", "51.0 °"], ["b", "90.0", "–"], ["(chance)", "50.0", "50.0"]]
    assert table.muted == {2}
    assert best_cells(table) == {(1, 1)}


def test_scores_at_chance_are_gray_and_explained_below():
    values = {"above": (56, 51, 61), "at": (55, 50, 60), "below": (44, 39, 49), "unknown": (50, None, None)}
    rows = [accuracy(name, value, low=low, high=high) for name, (value, low, high) in values.items()]
    table = contrastive_table(summarize(long_table(rows)), SETTINGS)
    assert [row[1].is_at_chance for row in table.cells] == [False, True, False, False, False]
    assert "°: at chance, as the interval or deviation includes it." in table.note
    assert r"at & \textcolor{gray}{55.0}$^{\circ}$ \\" in to_latex(table)
    assert "at chance" not in contrastive_table(summarize(long_table(rows[:1])), SETTINGS).note


def test_published_accuracy_by_phenomenon():
    settings = ReportSettings(published={"a": "g-transformer/discourse_g_transformer"}, datasets={"d": "opensubtitles"})
    table = contrastive_table(summarize(long_table([accuracy("a", 60, phenomenon="deixis", test="x")])), settings)
    assert table.rows[0] == ["a", "60.0", "89.9"]


def test_equal_phenomena_of_two_suites_keep_apart():
    rows = [
        accuracy("a", 60, test="one"),
        accuracy("a", 70, test="two"),
        accuracy("a", 65, phenomenon=None, test="two"),
    ]
    table = contrastive_table(summarize(long_table(rows)), SETTINGS)
    assert table.header[1:] == ["one: pronoun", "two: pronoun", "all"]
    named_all = [accuracy("a", 80, phenomenon="all", test="two"), *rows]
    table = contrastive_table(summarize(long_table(named_all)), SETTINGS)
    assert table.header[1:] == ["all", "one: pronoun", "two: pronoun", "whole suite"]


INSTANCES = "d-BLEU (instances)"


@pytest.mark.parametrize(("sizes", "in_main"), [((9, 9, 9), True), ((9, 60, 9), False)])
def test_other_segments_are_never_best(sizes, in_main):
    """If a system translates sentences, d-BLEU of instances is sentence BLEU, three points higher for no reason."""
    rows = [score(name, 20) for name in "abc"]
    rows += [score(name, 16 + n, metric=INSTANCES) | {"n": n} for name, n in zip("abc", sizes, strict=True)]
    rows[3]["value"] = 99.0
    summary = summarize(long_table(rows))
    table, further = main_table(summary, SETTINGS), further_table(summary, SETTINGS)
    assert (INSTANCES in table.header) == in_main
    assert (f"as systems cut documents differently: {INSTANCES}." in table.note) != in_main
    assert best_cells(table) == ({(0, 2)} if in_main else set())
    assert further is None if in_main else further.header == ["System", INSTANCES] and not best_cells(further)
    settings = ReportSettings(tables={"x": PaperTable(title="x", systems=list("abc"), metrics=[INSTANCES])})
    assert bool(best_cells(paper_table(long_table(rows), "x", settings, {}))) == in_main
    settings.tables["x"] = settings.tables["x"].model_copy(update={"average": True})
    rows += [row | {"test": "u"} for row in rows]
    assert len(best_cells(paper_table(long_table(rows), "x", settings, {}))) == (3 if in_main else 0)


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("s-BLEU", (0.99, 0.1), []),
        ("s-BLEU", (1.014, 1.011), []),
        ("s-BLEU", (1.016, 1.011), [0]),
        ("s-BLEU", (20, 20), []),
        ("s-BLEU", (20, 21), [1]),
        ("s-BLEU", (20, 21, 21.001), [1, 2]),
        ("s-BLEU", (20,), []),
        ("contrastive accuracy", (52.5, 50), []),
        ("contrastive accuracy", (55, 50), []),
        ("contrastive accuracy", (45, 40), []),
        ("contrastive accuracy", (55.1, 50), [0]),
        ("contrastive accuracy", (80.04, 80.01), []),
        ("contrastive accuracy", (80.04, 70, 80.01), [0, 2]),
        ("generative accuracy", (55, 50), [0]),
    ],
)
def test_bold_needs_a_visible_lead(metric, values, best):
    pairs = list(zip("abc", values, strict=False))
    if metric == "s-BLEU":
        table = main_table(summarize(long_table([score(name, value) for name, value in pairs])), SETTINGS)
    else:
        keys = {"metric": metric} | ({"chance": None} if metric.startswith("generative") else {})
        rows = [accuracy(name, value, **keys) for name, value in pairs]
        table = contrastive_table(summarize(long_table(rows)), SETTINGS, metric=metric)
    assert sorted(row for row, _ in best_cells(table)) == best
    assert ("Bold: best." in table.note) == bool(best)


@pytest.mark.parametrize(("seeds", "is_named"), [((1,), False), ((1, 2), True)])
def test_deviations_are_named_only_where_there_are_some(seeds, is_named):
    rows = [row for seed in seeds for row in (score("a", 20, seed=seed), accuracy("a", 60, seed=seed))]
    rows += [accuracy("a", 60, seed=seed, distance=1, n=10) for seed in seeds]
    summary = summarize(pool_distances(long_table(rows)))
    settings = ReportSettings(tables={"x": PaperTable(title="x", systems=["a"])})
    tables = [main_table(summary, settings), contrastive_table(summary, settings)]
    tables += [split_table(summary, settings, by="distance"), paper_table(long_table(rows), "x", settings, {})]
    assert [("mean ± sample deviation over seeds" in table.caption) for table in tables] == [is_named] * 4


def test_distances_are_pooled_into_ranges():
    rows = [
        accuracy("a", value, distance=distance, seed=seed) | {"n": n}
        for seed, shift in ((1, 0), (2, 10))
        for distance, value, n in (
            *((11, 50, 20), (4, 100 - 10 * shift, 30), (6, 0, 10), (1, 50 + shift, 10), (10, 50, 9), (0, 50, 9)),
            (7, 50, 1),
        )
    ]
    rows += [accuracy("a", 55, seed=seed) for seed in (1, 2)]
    pooled = pool_distances(long_table(rows))
    summary = summarize(pooled)
    table = split_table(summary, SETTINGS, by="distance")
    assert table.header == ["System", "1", "4–6", "7–10", "> 10"], "9 items are too few"
    assert table.rows == [
        ["a", "55.0 ± 7.1 °", "37.5 ± 53.0 °", "50.0 ± 0.0 °", "50.0 ± 0.0 °"],
        ["(items)", "10", "40", "10", "20"],
    ]
    assert table.muted == {1}
    low, high, chance = pooled[pooled["distance"] == "4–6"].iloc[0][["low", "high", "chance"]]
    assert (low, high) == pytest.approx([100 * bound for bound in wilson_interval(30, 40)])
    assert chance == 50
    assert contrastive_table(summary, SETTINGS).rows[0][1] == "55.0 ± 0.0", "whole sets stay as they were"
    assert pool_distances(long_table([score("a", 20)]))["value"].tolist() == [20]


def test_numbers_of_suites_lead_to_their_items():
    whole = [accuracy("a", 60), accuracy("b", 50), accuracy("a", 70, phenomenon=None, test="other")]
    table = contrastive_table(summarize(long_table(whole)), SETTINGS)
    assert cell_links(table) == {
        (0, 1): "view=items&a=a&set=d%2Fpronoun&phenomenon=pronoun",
        (0, 2): "view=items&a=a&set=d%2Fother",
        (1, 1): "view=items&a=b&set=d%2Fpronoun&phenomenon=pronoun",
    }, "not where there is no number, nor at guessing"
    split = [accuracy("a", 60, distance=5, n=10), accuracy("a", 50, distance=20, n=10), accuracy("a", 50, kind="x & y")]
    summary = summarize(pool_distances(long_table(split)))
    start = "view=items&a=a&set=d%2Fpronoun&phenomenon=pronoun"
    by_distance = split_table(summary, SETTINGS, by="distance")
    assert by_distance.header[1:] == ["4–6", "> 10"]
    assert cell_links(by_distance) == {(0, 1): f"{start}&distance=4%E2%80%936", (0, 2): f"{start}&distance=%3E+10"}
    assert cell_links(split_table(summary, SETTINGS, by="kind")) == {(0, 1): f"{start}&kind=x+%26+y"}


def test_format_count():
    assert [format_count(value) for value in (1234567, 18.25, 12.0, float("nan"), None)] == [
        "1,234,567", "18.2", "12", "–", "–",
    ]  # fmt: skip


def test_names_are_escaped_in_every_form():
    name = r"a_b & 50% {x} $y$ ^~\ <i> |#"
    frame = pd.DataFrame({"system": [name], "n": [1.0]})
    best = Column("n", lambda row: Cell(f"{row['n']:.0f} ± 2", ("**",), is_best=True))
    table = Table("k", "T_1", frame, [label("system", "System"), best], caption="C & D")
    latex = to_latex(table)
    assert (
        r"a\_b \& 50\% \{x\} \$y\$ \textasciicircum{}\textasciitilde{}\textbackslash{} \textless{}i\textgreater{} "
        r"\textbar\allowbreak{}\#"
    ) in latex
    assert r"\textbf{1 $\pm$ 2}$^{**}$" in latex
    assert r"\caption{T\_1. C \& D}" in latex
    assert r"\begin{tabular}{lr}" in latex
    row = to_markdown(table).splitlines()[2]
    assert r"\|#" in row
    assert r"\<i\>" in row
    assert "a_b" in row
    assert r"**1 ± 2 \*\***" in row
    assert name in to_text(table)


@pytest.mark.parametrize(
    ("name", "latex", "markdown"),
    [
        ("[ours] a", r"{}[ours] a", r"\[ours\] a"),  # `\\` before it would take it for a length
        ("*b", r"{}*b", r"\*b"),
        ("a\nb\r\n\nc", "a b  c", "a b  c"),
        ("R&amp;D & &#9;", r"R\&amp;D \& \&\#9;", r"R\&amp;D & \&#9;"),
        (" [ours] a", "{} [ours] a", r"\[ours\] a"),
        ("~~a~~ $b$", r"\textasciitilde{}" * 2 + "a" + r"\textasciitilde{}" * 2 + r" \$b\$", r"\~\~a\~\~ \$b\$"),
        ("# a", r"\# a", r"\# a"),
        ("- a", "- a", r"\- a"),
        ("1. a", "1. a", r"1\. a"),
        ("-1.5 a", "-1.5 a", "-1.5 a"),
    ],
)
def test_special_characters_are_text(name, latex, markdown):
    table = Table("k", "T", pd.DataFrame({"system": [name], "n": [1]}), [label("system", "System"), count("n")])
    assert f"\n{latex} & 1 \\\\\n" in to_latex(table)
    assert to_markdown(table).splitlines()[2].split(" | ")[0].strip("| ") == markdown


def test_statistics_with_the_published_rows_beneath():
    ours = {"dataset": "d", "cutting": "doc", "split": "test_ted", "sentences": 2271, "tokens_per_instance": 428.0}
    statistics = pd.DataFrame([ours, ours | {"split": "train", "tokens_per_instance": float("nan")}])
    settings = ReportSettings(datasets={"d/ted": "ted"}, published={"a": "g-transformer/transformer_sentence"})
    table = statistics_table(statistics, settings)
    assert table.heading == "Instances (dataset d, cutting doc)"
    assert table.rows[0] == ["test_ted", "2,271", "428"]
    assert table.rows[1] == ["test, Bao et al. (2021), Table 1", "2,300", "429"]
    assert table.rows[2] == ["train", "2,271", "–"]
    assert table.muted == {1}
    of_all_papers = statistics_table(statistics, ReportSettings(datasets={"d/ted": "ted"}))
    assert [row[0] for row in of_all_papers.rows[1:3]] == [
        "test, Chen et al. (2021), Table 8",
        "test, Bao et al. (2021), Table 1",
    ]


def test_statistics_name_the_cutting(tmp_path):
    for dataset in ("d", "e"):
        (tmp_path / dataset).write_text(f"dataset,cutting,split,sentences\n{dataset},001,train,5\n")
    paths = [tmp_path / "d", tmp_path / "e"]
    table = statistics_table(read_tables(paths, needed=INSTANCE_KEYS, words=INSTANCE_KEYS), SETTINGS)
    assert table.scope == "Cutting 001."
    assert table.header == ["Dataset", "Split", "sentences"]
    assert table.rows == [["d", "train", "5"], ["e", "train", "5"]]


def test_statistics_without_the_cutting_are_refused(tmp_path):
    (tmp_path / "statistics.csv").write_text("dataset,split,sentences\nd,train,5\n")
    with pytest.raises(UserError, match="column 'cutting' is missing"):
        read_tables([tmp_path / "statistics.csv"], needed=INSTANCE_KEYS, words=INSTANCE_KEYS)


def test_overlap_and_counts():
    counts = {"documents": 23, "seen_pairs": 3, "seen_pairs_percent": 0.13, "seen_document_ids": ["x"]}
    assert overlap_table([("d", "test_t", counts)]).rows == [["test_t", "23", "3 (0.1 %)"]]
    table = counts_table([("a", {"sentences": 9, "dropped": {"both empty": 2}, "inputs": {}}), ("b", {"sentences": 1})])
    assert table.header == ["Data", "sentences", "dropped: both empty"]
    assert table.rows == [["a", "9", "2"], ["b", "1", "–"]]
    assert overlap_table([]) is None
    assert counts_table([]) is None


def test_passes_over_the_data_of_each_task():
    """Table 10 of the cross-task paper. Trainings with one task have no such columns."""
    time = {"step": [1, 2], "seconds": [5, 1800]}
    pretraining = history("a", **time, passes_pairs=[0.5, 2.25], passes_restoration=[0.1, float("nan")])
    tuning, other = history("b", **time, passes_documents=[1, 3]), history("c", **time)
    table = passes_table([pretraining, tuning, other], SETTINGS)
    assert table.heading == "Tasks in training (dataset d, seed 1)"
    assert table.header == ["System", "pairs", "restoration", "documents", "hours"]
    assert table.rows == [["a", "2.2", "0.1", "–", "0.50"], ["b", "–", "–", "3.0", "0.50"]]
    assert passes_table([other], SETTINGS) is None
    settings = ReportSettings(published={"a": "cross-task/pretraining"}, datasets={"d": "news"})
    table = passes_table([pretraining, tuning], settings)
    assert table.header[1:6] == ["pairs", "pairs, published", "restoration", "restoration, published", "documents"]
    assert table.rows[0][1:] == ["2.2", "20.0", "0.1", "1.2", "–", "0.50", "130.00"]
    assert table.rows[1][1:] == ["–", "–", "–", "–", "3.0", "0.50", "–"]
