"""Figures in the layout of a paper: positions, colors and bytes."""

import json
import math
import re
import zlib

import pandas as pd
import pytest
from matplotlib.figure import Figure
from score_rows import history, long_table, score, write_scores

from docmt.cli.main import main
from docmt.report.curves import _draw_curves as draw_mean
from docmt.report.curves import loss_limits, training_curves
from docmt.report.figures import axis_positions, draw_plot, study_styles, write_plot
from docmt.report.settings import ReportSettings
from docmt.report.styles import COLORS

FACTS = {
    "a64": {"Instance length": "64"},
    "a512": {"Instance length": "512"},
    "b64": {"Instance length": "64"},
    "b512": {"Instance length": "512"},
}
LINES = {"Transformer": ["a512", "a64"], "G-Transformer": ["b64", "b512"]}


def settings_of(*, published=None, datasets=None, labels=None, **layout):
    figure = {"title": "Figure 2", "series": LINES, "x": "Instance length"} | layout
    values = {"figures": {"figure_2": figure}, "published": published or {}, "datasets": datasets or {}}
    return ReportSettings.load(values | {"labels": labels or {}}, where="report")


def draw(rows, *, facts=FACTS, **settings):
    settings = settings_of(**settings)
    options = {"scores": long_table(rows), "paper_columns": facts, "histories": []}
    return draw_plot("figure_2", settings, study_styles(settings, []), **options)


def points(plot):
    values = plot.values[["line", "system", "x", "mean"]]
    return [tuple(row) for row in values.itertuples(index=False)]


@pytest.mark.slow
def test_systems_are_at_their_places_on_their_lines():
    plot = draw([score("a64", 30), score("a512", 2), score("b512", 33), score("c", 99)])
    assert points(plot) == [
        ("Transformer", "a512", 512, 2),
        ("Transformer", "a64", 64, 30),
        ("G-Transformer", "b512", 512, 33),
    ]


def test_points_are_means_with_deviations():
    rows = [score("a64", 30, seed=1), score("a64", 32, seed=2), score("a512", 2), score("b64", float("nan"))]
    values = draw(rows).values.set_index("system")
    assert values.loc["a64", ["mean", "seeds"]].tolist() == [31, 2]
    assert values.loc["a64", "sd"] == pytest.approx(2**0.5)
    assert pd.isna(values.loc["a512", "sd"])
    assert values.loc["b64", "seeds"] == 0
    assert "dots: single seeds" in draw(rows).picture.caption


def test_a_given_place_replaces_that_of_the_config():
    plot = draw([score("a64", 1), score("b64", 2)], x_values={"a64": 7})
    assert [point[2] for point in points(plot)] == [7, 64]


@pytest.mark.slow
def test_numbers_are_sorted_and_words_spaced():
    assert list(axis_positions([512.0, 64.0, 512.0]).items()) == [(64.0, 64.0), (512.0, 512.0)]
    sizes = {"a64": "large", "a512": "base", "b64": "base", "b512": "large"}
    plot = draw([score(name, 1) for name in FACTS], x=None, x_values=sizes)
    assert [point[2] for point in points(plot)] == ["base", "large", "base", "large"]
    assert axis_positions(["base", "large", "base"]) == {"base": 0, "large": 1}


@pytest.mark.parametrize("odd", ["inf", "nan"])
def test_what_is_no_finite_number_is_a_word(odd):
    plot = draw([score(name, 1) for name in FACTS], x=None, x_values={"a64": 64, "a512": odd, "b64": 64, "b512": odd})
    assert [point[2] for point in points(plot)] == [odd, "64", "64", odd]


@pytest.mark.slow
def test_dollars_are_no_formulas():
    keys = {"test": "s", "metric": "contrastive accuracy"}
    rows = [score("a64", 3, phenomenon=name, **keys) for name in (r"$\foo$", "$")]
    plot = draw(rows, metrics=["contrastive accuracy"], x_label="$_$", series=LINES | {"$^$": ["a64"]})
    assert r"<!-- $\foo$ -->" in plot.picture.svg
    assert "<!-- $^$ -->" in plot.picture.svg


def test_a_system_without_a_place_is_an_error():
    with pytest.raises(Exception, match=r"report\.figures\.figure_2: 'b512' has no value for the horizontal axis"):
        draw([score("a64", 1)], facts={name: FACTS[name] for name in ("a64", "a512", "b64")})


def test_published_points_stand_beside_ours():
    published = {"a512": "g-transformer/transformer_document_length_512"}
    rows = [score("a64", 30, dataset="e", metric="d-BLEU (instances)")]
    plot = draw(rows, published=published, datasets={"e": "europarl"}, metrics=["d-BLEU (instances)"])
    values = plot.values.set_index("system")
    assert values.loc["a512", "published"] == 2.3
    assert pd.isna(values.loc["a512", "mean"])
    assert plot.picture.caption.endswith("Hollow: published in Bao et al. (2021), Section 3.1.")


@pytest.mark.slow
def test_a_panel_for_each_test_metric_and_phenomenon():
    keys = {"test": "s", "metric": "contrastive accuracy"}
    rows = [score("a64", 1), score("a64", 2, metric="chrF")]
    rows += [score("b64", 3, phenomenon=name, **keys) for name in ("deixis", "pronoun")]
    rows += [score("b64", 4, phenomenon="deixis", distance=2, **keys), score("b64", 5, **keys)]
    plot = draw(rows, metrics=["chrF", "s-BLEU", "contrastive accuracy"])
    panels = plot.values[["panel", "mean"]].itertuples(index=False)
    assert [tuple(row) for row in panels] == [("chrF", 2), ("s-BLEU", 1), ("deixis", 3), ("pronoun", 3)]


@pytest.mark.slow
def test_equal_numbers_give_equal_bytes_whatever_their_order(tmp_path):
    rows = [score(name, len(name) + seed, seed=seed) for name in FACTS for seed in (1, 2)]
    for folder, ordered in (("one", rows), ("two", rows[::-1])):
        (tmp_path / folder).mkdir()
        write_plot(tmp_path / folder / "f", draw(ordered))
    for suffix in ("svg", "png", "pdf", "csv"):
        assert (tmp_path / f"one/f.{suffix}").read_bytes() == (tmp_path / f"two/f.{suffix}").read_bytes()


CURVES = {"loss": {"title": "Loss", "systems": ["b", "a"], "panels": {"Loss": ["train_loss", "dev_loss"]}}}


def test_mean_of_seeds_with_other_updates():
    """Validations after each epoch: batches per epoch depend on the seed."""
    axes = Figure().add_subplot()
    seeds = [pd.Series([4.0, 2.0, 1.0], index=[10, 20, 30]), pd.Series([4.0, 2.0], index=[11, 21])]
    draw_mean(axes, lines_in_color=[[(seeds, {"color": "red"})]])
    mean = axes.lines[-1]
    assert mean.get_xdata().tolist() == [11, 20, 21]
    assert mean.get_ydata().tolist() == pytest.approx([(3.8 + 4) / 2, (2 + 2.2) / 2, (1.9 + 2) / 2])


@pytest.mark.slow
def test_captions_describe_bands_where_there_are_some():
    for n_systems, has_bands in ((6, True), (7, False)):
        systems = [f"s{number}" for number in range(n_systems)]
        members = [training(system, seed, train_loss=[3, 2, 1]) for system in systems for seed in (1, 2)]
        plot, _ = draw_curves(members, systems=systems, panels={"Loss": ["train_loss"]})
        assert ("band: lowest to highest seed" in plot.picture.caption) == has_bands
    (plot,) = draw_curves([training("a", 1, train_loss=[3, 2, 1])], systems=["a"], panels={"Loss": ["train_loss"]})
    assert "seed" not in plot.picture.caption


def training(system, seed, **losses):
    return history(system, seed, step=[100, 200, 300], **losses)


def draw_curves(histories, **changes):
    layout = CURVES["loss"] | changes
    settings = ReportSettings.load({"curves": {"loss": layout}, "labels": {"a": "A"}}, where="report")
    styles = study_styles(settings, ["z"])
    return draw_plot("loss", settings, styles, scores=long_table([]), paper_columns={}, histories=histories), styles


@pytest.mark.slow
def test_curves_follow_the_settings():
    nan = float("nan")
    members = [training("a", 1, train_loss=[3, 2, 1], dev_loss=[nan, 4, nan]), training("c", 1, train_loss=[9, 9, 9])]
    members += [training("b", seed, train_loss=[5, 4, 3]) for seed in (1, 2)]
    plot, styles = draw_curves(members)
    assert plot.values[["system", "seed"]].drop_duplicates().to_numpy().tolist() == [["b", 1], ["b", 2], ["a", 1]]
    assert (styles.color("b"), styles.color("a")) == COLORS[:2]
    assert plot.values.columns.tolist() == ["dataset", "system", "seed", "step", "train_loss", "dev_loss"]
    assert len(plot.values) == 9


@pytest.mark.slow
def test_missing_history_columns_are_named():
    members = [training("a", 1, train_loss=[3, 2, 1])]
    plot, _ = draw_curves(members, panels={"Loss": ["train_loss"], "Entropy": ["entropy_cross_group"]})
    assert plot.picture.caption.endswith("Not measured: entropy_cross_group.")
    assert draw_curves(members, panels={"Entropy": ["entropy_cross_group"]})[0] is None
    assert draw_curves(members, datasets=["e"])[0] is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"figures": {"x": {"title": "x", "series": {"A": ["a"]}}}, "curves": {"x": CURVES["loss"]}},
            "both contain 'x'",
        ),
        ({"curves": {"contrastive_x": CURVES["loss"]}}, "must not start like the report's other figures"),
        ({"curves": {"x": CURVES["loss"] | {"panels": {}}}}, "panels"),
        ({"figures": {"x": {"title": "x", "series": {"A": []}}}}, "series"),
        ({"figures": {"x": {"title": "x", "series": {"A": ["a"]}, "x": "Length"}}}, "Instance length"),
    ],
)
def test_impossible_figures_are_refused(values, message):
    with pytest.raises(Exception, match=message):
        ReportSettings.load(values, where="report")


def run_figure(folder, *arguments, name="figure_2"):
    settings = {"figures": {"figure_2": {"title": "Figure 2", "series": LINES, "x": "Instance length"}}}
    options = ["--settings", json.dumps(settings | {"curves": CURVES}), "--study", json.dumps({"paper_columns": FACTS})]
    return main(["report", "figure", *options, "--name", name, *arguments, "--out", str(folder / name)])


@pytest.mark.slow
def test_command_draws_scores_or_histories(tmp_path, capsys):
    scores = write_scores(tmp_path / "scores.json", [score("a64", 30)])
    assert run_figure(tmp_path, "--scores", str(scores), "--fingerprints", "other") == 2
    assert "system a64" in capsys.readouterr().err
    assert run_figure(tmp_path, "--scores", str(scores)) == 0
    assert {path.suffix for path in tmp_path.glob("figure_2.*")} == {".svg", ".png", ".pdf", ".csv"}
    path = tmp_path / "d/runs/a/seed1/history.csv"
    path.parent.mkdir(parents=True)
    path.write_text("step,train_loss\n100,8.5\n")
    assert run_figure(tmp_path, "--scores", "--histories", str(path), name="loss") == 0
    assert pd.read_csv(tmp_path / "loss.csv").to_dict("records") == [
        {"dataset": "d", "system": "a", "seed": 1, "step": 100, "train_loss": 8.5}
    ]
    assert run_figure(tmp_path, name="figure_2") == 2
    assert "contain no data for this figure" in capsys.readouterr().err
    assert run_figure(tmp_path, name="figure_3") == 2
    assert "did you mean 'figure_2'?" in capsys.readouterr().err


@pytest.mark.slow
def test_learning_curves_include_initial_updates():
    first = [history("first", seed, step=[50, 100 * seed], train_loss=[3, 2]) for seed in (1, 3)]
    tuned = history("tuned", step=[10, 20], train_loss=[2, 1])
    styles = study_styles(ReportSettings(), ["first", "tuned"])
    plain, counted = (
        training_curves([*first, tuned], styles, origins)[0].svg for origins in ({}, {"tuned": ["tuned", "first"]})
    )
    assert plain != counted
    shifted = [*first, history("tuned", step=[210, 220], train_loss=[2, 1])]
    assert training_curves(shifted, styles)[0].svg == counted


def font_sizes(pdf):
    """Font sizes in points in a PDF file by matplotlib."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    texts = [zlib.decompress(stream) for stream in streams if stream[:1] == b"\x78"]
    return {float(size) for text in texts for size in re.findall(rb"/F\d+ ([\d.]+) Tf", text)}


@pytest.mark.slow
@pytest.mark.parametrize(("n_panels", "width"), [(1, 3.03), (3, 3.03), (4, 6.3)])
def test_paper_figures_fill_a_column(n_panels, width):
    rows = [score(name, 1, dataset=f"d{n}") for n in range(n_panels) for name in FACTS]
    pdf = draw(
        rows, labels={"Transformer": "A system with a name that is wider than one column of a paper"}
    ).picture.pdf
    (box,) = re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", pdf)
    assert float(box[0]) == pytest.approx(72 * width, abs=0.1)
    assert float(box[1]) < 700, "a page is not higher"
    assert min(font_sizes(pdf)) >= 7
    assert b"/Type3" not in pdf


@pytest.mark.slow
def test_loss_axes_show_the_last_differences():
    steps = [10 * n for n in range(1, 21)]
    losses = {name: [5 / n + final for n in range(1, 21)] for name, final in {"a": 1.0, "b": 1.05}.items()}
    losses["c"] = [9.0] * 3 + [math.nan] * 17
    members = [history(name, step=steps, train_loss=values) for name, values in losses.items()]
    (picture,) = training_curves(members, study_styles(ReportSettings(), list(losses)))
    assert "and with them all losses of c (Training loss)." in picture.caption
    low, high = loss_limits({"a": [([pd.Series(values).dropna() for values in losses.values()], {})]})
    assert low < 1.25 < 1.3 < high < 4, "the lowest losses are on the axis, the first are not"
    flat = [history("a", step=[1, 2, 3], train_loss=[2, 2, 2])]
    assert "cut off" not in training_curves(flat, study_styles(ReportSettings(), ["a"]))[0].caption


@pytest.mark.slow
def test_entropy_axes_keep_all_values():
    members = [training("a", seed, entropy_cross=[9, 1, 1.1]) for seed in range(9)]
    pictures = training_curves(members, study_styles(ReportSettings(), ["a"]))
    assert all("cut off" not in picture.caption for picture in pictures)
