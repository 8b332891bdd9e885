"""Data and costs: of a whole study in `docmt config check`, of the planned jobs in a dry run."""

from pathlib import Path

import pytest
from smoke_study import smoke_values

from docmt.cli.main import main
from docmt.config.artifacts.base import Study
from docmt.config.costs import describe_costs
from docmt.config.loading import load_config, merge, read_config_file

EXAMPLES = Path(__file__).parents[2] / "config/examples"
PAPERS = sorted((EXAMPLES / "papers").glob("*.yaml"))


def costs(path, **changes):
    return describe_costs(Study(load_config(merge(read_config_file(path), changes))))


@pytest.mark.parametrize("path", PAPERS, ids=[path.stem for path in PAPERS])
def test_papers_name_data_and_costs(path):
    data, line = costs(path)
    assert data.startswith("data: ")
    assert "(by hand, " in data
    assert line.startswith("costs: ")
    assert ("unknown" in line) == ("crosstask" not in path.stem), "only this paper prints numbers of updates"
    assert line.endswith(" GB for models and checkpoints")
    assert ("on an H100" in line) == ("mbart" not in path.stem), "no speed of mBART is measured"


def test_data_have_source_and_terms():
    data, _ = costs(EXAMPLES / "papers/paper_gtransformer_mbart.yaml")
    assert "maruf2019-ted (download, research)" in data
    assert "maruf2019-news (by hand, research)" in data
    assert "mbart-large-cc25 (download, open)" in data
    assert costs(EXAMPLES / "smoke.yaml")[0].startswith("costs: "), "a generated corpus has no source"


SYSTEM = {"architecture": "sentence_transformer", "size": "base", "recipe": "r", "instances": "sentences"}


@pytest.mark.parametrize(
    ("limits", "updates", "hours"),
    [
        ([100000], "1 training, at most 100,000 updates", "(at most 1 for the known updates)"),
        ([200000, 200000], "2 trainings, at most 400,000 updates", "(at most 5 for the known updates)"),
        ([None], "1 training, number of updates unknown", ""),
        ([None, 40000], "2 trainings, at most 40,000 updates in 1, unknown in the other", "(at most 0 "),
    ],
)
def test_updates_are_summed_over_trainings(limits, updates, hours):
    values = smoke_values()
    values["systems"] = {f"s{n}": SYSTEM | {"training": {"max_steps": limit}} for n, limit in enumerate(limits)}
    values["training"] = {"r": {}}
    values["seeds"] = [1]
    values["report"] = {}
    line = describe_costs(Study(load_config(values)))[-1]
    assert line.startswith(f"costs: {updates}")
    assert "1.25 GPU-hours per 100,000 updates of size base" in line
    assert hours in line
    assert "for the known updates" in line or not hours


def gigabytes(line):
    return float(line.split("; about ")[1].split()[0].replace(",", ""))


def test_disk_space_follows_the_checkpoints():
    path = EXAMPLES / "papers/paper_crosstask_enru.yaml"
    recipes = load_config(read_config_file(path)).training
    sizes = [
        gigabytes(costs(path, training={name: {"keep_checkpoints": n} for name in recipes})[-1]) for n in (0, 1, 2)
    ]
    assert sizes[1] == pytest.approx(5 * sizes[0], rel=0.05)
    assert sizes[2] == pytest.approx(9 * sizes[0], rel=0.05)


def test_disk_space_is_that_of_the_weights():
    """Size base with 30,000 symbols has 59.5 million weights (docs/models.md)."""
    values = smoke_values()
    changes = {"text": {"bpe_merges": 30000}, "training": {"r": {"keep_checkpoints": 0}}, "report": {}, "seeds": [1]}
    values |= changes | {"systems": {"s": SYSTEM}}
    assert gigabytes(describe_costs(Study(load_config(values)))[-1]) == pytest.approx(4 * 59.5e6 / 1e9, abs=0.05)
    values["text"] = {"tokenization": "sentencepiece", "truecase": False, "sentencepiece_size": 250_000}
    more = 220_000 * 512
    assert gigabytes(describe_costs(Study(load_config(values)))[-1]) == pytest.approx(
        4 * (59.5e6 + more) / 1e9, abs=0.06
    )


def test_check_ends_with_whole_costs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["config", "check", str(EXAMPLES / "papers/paper_crosstask_enru.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")]
    assert words == ["whole configuration", "data", "costs", "by hand"]
    assert main(["config", "check", str(EXAMPLES / "smoke.yaml")]) == 0
    _, head, line = capsys.readouterr().out.splitlines()
    assert head == "whole configuration:"
    assert line.startswith("costs: 4 trainings, at most 24 updates; ")


NEWS = "resources/corpora/maruf2019-news/b30c31c8b101"
RUNS = "results/news/runs"


@pytest.mark.parametrize(
    ("planned", "data", "trainings"),
    [
        (set(), None, None),
        ({"results/tables/table_3.txt", f"{RUNS}/g_transformer/seed1/scores.json"}, None, None),
        ({f"{NEWS}/train.fetched"}, "maruf2019-news (by hand, research)", None),
        ({f"{NEWS}/dev.fetched", f"{NEWS}/test.fetched"}, "maruf2019-news (download, research)", None),
        ({f"{RUNS}/g_transformer/seed1/model.pt"}, None, "1 training,"),
        ({f"{RUNS}/g_transformer/seed{seed}/model.pt" for seed in (1, 2)}, None, "2 trainings,"),
    ],
)
def test_only_planned_jobs_cost(planned, data, trainings):
    study = Study(load_config(read_config_file(EXAMPLES / "papers/paper_gtransformer.yaml")))
    lines = describe_costs(study, planned)
    heads = [*([f"data: {data}"] if data else []), *([f"costs: {trainings}"] if trainings else [])]
    assert len(lines) == len(heads)
    assert all(line.startswith(head) for line, head in zip(lines, heads, strict=True))


@pytest.mark.parametrize(("model", "heads"), [("", []), (f"{RUNS}/g_transformer/seed3/model.pt", ["", "costs"])])
def test_dry_run_ends_with_planned_costs(model, heads, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("docmt.cli.run._print_plan", lambda call, study: {model} if model else set())
    path = str(EXAMPLES / "papers/paper_gtransformer.yaml")
    assert main(["run", path, "--dry-run", "--directory", str(tmp_path)]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == heads
