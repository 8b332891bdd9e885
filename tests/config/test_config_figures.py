"""Figures of a study: their inputs, and refused values."""

from smoke_study import smoke_config, smoke_study

from docmt.config.paper_columns import paper_columns

RUNS = "results/smoke/runs"


def test_figure_needs_only_its_systems():
    study = smoke_study()
    assert study.figure("figure_2").input_files() == [
        f"{RUNS}/{system}/seed1/scores.json" for system in ("sentence_transformer", "document_transformer", "rst_mix")
    ]
    assert study.figure("figure_4").input_files() == [
        f"{RUNS}/{system}/seed1/history.csv" for system in ("g_transformer_finetuned", "document_transformer")
    ]
    assert study.figure("figure_2").files[0] == "results/figures/figure_2.svg"


def test_the_config_says_what_figures_vary():
    config = smoke_config({"instances": {"documents": {"subset": 20}}})
    facts = paper_columns(config, "g_transformer_finetuned")
    names = ("Instance length", "Training instances", "Size", "Upper layers")
    assert [facts[name] for name in names] == ["256", "20", "tiny", "2"]
    assert "drop_rst" not in facts
    without = paper_columns(config, "rst_mix_without_trees")
    assert (without["drop_rst"], without["Instance length"]) == ("0.5", "256")
    assert "Training instances" not in without
    assert "Upper layers" not in paper_columns(config, "document_transformer")
