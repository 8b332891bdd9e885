"""Figures of a study: what they are made from, and what is refused."""

from pathlib import Path

from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.paper_columns import paper_columns
from docmt.config.plan import Plan

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
