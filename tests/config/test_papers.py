"""A shipped config has a target for every table and figure of the papers, or docs/papers.md contains a reason."""

import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from smoke_study import StudyView

from docmt.config.loading import load_config, read_config_file
from docmt.config.plan import Plan
from docmt.config.systems import model_settings, training_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))
ITEMS = {"G-Transformer": (7, 8), "RST-Transformer": (5, 5), "Cross-task pre-training": (10, 3)}
"""Number of tables and figures per paper."""
CONFIGS = sorted(path.stem for path in (ROOT / "config/examples/papers").glob("*.yaml"))


def rows(paper):
    """Item, configs, targets and remark in all rows of a paper's table."""
    lines = [line for line in SECTIONS[paper].splitlines() if line.startswith("|")][2:]
    for line in lines:
        item, configs, targets, remark = (cell.strip() for cell in line[1:-1].split("|"))
        yield item, re.findall(r"`(\w+)`", configs), re.findall(r"`(\w+)`", targets) or [targets], remark


ROWS = [(paper, *row) for paper in ITEMS for row in rows(paper)]


@cache
def plan(config):
    """The plan for a paper's config. Do not use it inside an assertion, because its representation has no end."""
    return Plan(load_config(read_config_file(ROOT / f"config/examples/papers/{config}.yaml")))


def layouts(config, target):
    """Artifacts, files and systems of the table, case study and picture with that name. At least one must exist."""
    report, artifacts = plan(config).config.report, StudyView(plan(config).config)
    if target in report.tables:
        yield artifacts.table(target), f"results/tables/{target}.txt", set(report.tables[target].systems)
    if target in report.cases:
        row = report.cases[target]
        yield artifacts.case_study(target), f"results/tables/{target}.txt", {row.system, row.baseline}
    if target in report.drawn:
        picture = {**report.figures, **report.curves}[target]
        yield artifacts.figure(target), f"results/figures/{target}.svg", set(picture.systems)


def tables(config):
    return plan(config).config.report.tables


@pytest.mark.parametrize("paper", ITEMS)
def test_every_table_and_figure_is_listed_once(paper):
    n_tables, n_figures = ITEMS[paper]
    expected = [f"Table {n}" for n in range(1, n_tables + 1)] + [f"Figure {n}" for n in range(1, n_figures + 1)]
    listed = [item for item, *_ in rows(paper) if not item.startswith("Section")]
    assert listed == expected


@pytest.mark.parametrize(("paper", "item", "configs", "targets", "remark"), ROWS)
def test_an_item_has_targets_or_a_reason(paper, item, configs, targets, remark):
    if targets == ["–"]:
        assert not configs
        assert remark
    for config in configs:
        for target in targets:
            if target == "report":
                assert remark, "which part of the report"
                continue
            outputs = list(layouts(config, target))
            assert outputs, target
            for artifact, file, systems in outputs:
                files, needed = artifact.files, [name for name in artifact.input_files() if "/runs/" in name]
                assert file in files
                assert {Path(name).parts[3] for name in needed} == systems
            assert item.lower().replace(" ", "_").replace(".", "_") in target


def test_every_table_of_the_configs_is_listed():
    listed = {(config, target) for _, _, configs, targets, _ in ROWS for config in configs for target in targets}
    assert {(config, table) for config in CONFIGS for table in tables(config)} <= listed
    reports = {config: plan(config).config.report for config in CONFIGS}
    assert {(config, name) for config, report in reports.items() for name in (*report.drawn, *report.cases)} <= listed
    assert {config for config, _ in listed} == set(CONFIGS)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_paper_system_is_in_a_table(config):
    systems = plan(config).config.systems
    table_systems = set(chain.from_iterable(table.systems for table in tables(config).values()))
    needed = set(table_systems)
    for name in table_systems:
        origin = systems[name].use_model_of or systems[name].init_system
        while origin:
            needed.add(origin)
            origin = systems[origin].use_model_of or systems[origin].init_system
    assert needed == set(systems)


@pytest.mark.parametrize("config", CONFIGS)
def test_systems_that_train_differ(config, tmp_path, monkeypatch):
    """Equal models are trained once. Their second name has `use_model_of`."""
    monkeypatch.chdir(tmp_path)
    artifacts = StudyView(plan(config).config)
    fingerprints = {
        run: artifacts.model(run.dataset, run.system, str(run.seed)).fingerprint for run in artifacts.trained
    }
    assert len(set(fingerprints.values())) == len(fingerprints)


def test_an_update_has_the_tokens_of_the_papers():
    """The papers use four GPUs. Cross-task pre-training has 8,192 tokens in total, according to its Table 10."""
    for config, tokens in (
        ("paper_gtransformer", {16_384}),
        ("paper_gtransformer_enru", {16_384}),
        ("paper_gtransformer_figures", {16_384}),
        ("paper_rst_transformer", {16_384, 32_768}),
        ("paper_rst_transformer_enru", {32_768}),
        ("paper_gtransformer_mbart", {16_384}),
        ("paper_rst_transformer_mbart", {16_384, 32_768}),
        ("paper_crosstask_ende", {8_192}),
        ("paper_crosstask_zhen", {8_192}),
        ("paper_crosstask_enru", {8_192}),
    ):
        recipes = plan(config).config.training.values()
        assert {recipe.max_batch_tokens * recipe.accumulation_steps for recipe in recipes} == tokens


@pytest.mark.parametrize("config", ["paper_gtransformer_mbart", "paper_rst_transformer_mbart"])
def test_mbart_systems_follow_the_authors(config):
    """Appendix C.1 of G-Transformer and its script. All systems start directly from mBART, without word dropout."""
    study = plan(config).config
    for name, system in study.systems.items():
        recipe, model = training_settings(study, name), model_settings(study, name)
        assert system.init.pretrained == "mbart-large-cc25"
        assert (recipe.word_dropout, recipe.label_smoothing, recipe.adam_epsilon) == (0.0, 0.2, 1e-6)
        assert (recipe.warmup_steps, recipe.decay_steps, recipe.patience) == (2_500, 1_000_000, 5)
        assert model.dropout == 0.3
        assert recipe.pretrained_learning_rate == (3e-5 if "gtransformer" in config else 3e-4)


def test_words_are_dropped_only_where_the_authors_do():
    for config in CONFIGS:
        study = plan(config).config
        for name, system in study.systems.items():
            if system.use_model_of is None and training_settings(study, name).word_dropout > 0:
                assert system.architecture.startswith(("g_transformer", "rst_")), (config, name)


def test_english_russian_models_use_six_million_pairs():
    for config in ("paper_gtransformer_enru", "paper_rst_transformer_enru"):
        study = plan(config).config
        assert study.datasets["opensubtitles"].sentences == ["voita2019-pairs-enru/train"]
        assert training_settings(study, "sentence_transformer").tasks == ["pairs"]
