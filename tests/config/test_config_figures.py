"""Figures of a study: what they are made from, and what is refused."""

from pathlib import Path

import pytest

from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.paper_columns import paper_columns
from docmt.config.plan import Plan
from docmt.errors import UserError

SMOKE = read_config_file(Path(__file__).parents[2] / "config/examples/smoke.yaml")
FIGURE = {"title": "x", "lines": {"A": ["rst_mix"]}, "x": "Instance length"}
CURVE = {"title": "x", "systems": ["rst_mix"], "panels": {"Loss": ["dev_loss"]}}
RUNS = "results/controlled/runs"


def plan_with(**report):
    return Plan(load_config(merge(SMOKE, {"report": report})))


def test_a_figure_needs_the_scores_or_the_histories_of_its_systems_alone():
    made = plan_with().artifacts
    assert made.figure("figure_2").input_files() == [
        f"{RUNS}/{system}/seed1/scores/test_controlled.json"
        for system in ("sentence_transformer", "document_transformer", "rst_mix")
    ]
    assert made.figure("figure_4").input_files() == [
        f"{RUNS}/{system}/seed1/history.csv" for system in ("g_transformer_finetuned", "document_transformer")
    ]
    assert made.figure("figure_2").files[0] == "results/figures/figure_2.svg"


def test_the_config_says_what_figures_vary():
    config = load_config(merge(SMOKE, {"instances": {"documents": {"subset": 20}}}))
    facts = paper_columns(config, "g_transformer_finetuned")
    names = ("Instance length", "Training instances", "Size", "Upper layers")
    assert [facts[name] for name in names] == ["256", "20", "tiny", "2"]
    assert "drop_rst" not in facts
    without = paper_columns(config, "rst_mix_without_trees")
    assert (without["drop_rst"], without["Instance length"]) == ("0.5", "256")
    assert "Training instances" not in without
    assert "Upper layers" not in paper_columns(config, "document_transformer")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            {"figures": {"f": FIGURE | {"lines": {"A": ["rst_mx"]}}}},
            "config.report.figures.f.lines: no system 'rst_mx'",
        ),
        ({"figures": {"f": FIGURE | {"values": {"rst_mx": 1}}}}, "config.report.figures.f.lines: no system 'rst_mx'"),
        (
            {"figures": {"f": FIGURE | {"x": "Training instances"}}},
            "'rst_mix' has no place on the horizontal axis: the config gives no 'Training instances' of it",
        ),
        ({"figures": {"f": FIGURE | {"x": None}}}, "no place on the horizontal axis: `x` is null; add it to `values`"),
        ({"figures": {"f": FIGURE | {"tests": ["controled"]}}}, "config.report.figures.f.tests: no dataset or test"),
        ({"curves": {"f": CURVE | {"systems": ["rst_mx"]}}}, "config.report.curves.f.systems: no system 'rst_mx'"),
        (
            {"curves": {"f": CURVE | {"systems": ["rst_mix_without_trees"]}}},
            "config.report.curves.f.systems: 'rst_mix_without_trees' trains no model; take 'rst_mix'",
        ),
        ({"curves": {"f": CURVE | {"datasets": ["controled"]}}}, "config.report.curves.f.datasets: no dataset"),
    ],
)
def test_a_figure_of_what_is_not_there_is_refused(report, message):
    with pytest.raises(UserError) as caught:
        plan_with(**report)
    assert message in str(caught.value)
