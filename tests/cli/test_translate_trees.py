"""`docmt translate` in a study uses the same trees as the system's training, or none, and reports it."""

import shutil

import pytest
import yaml
from smoke_study import smoke_values

from docmt.cli.main import main
from docmt.cli.translate import _discourse_of_study

SYSTEM = smoke_values()["systems"]["rst_mix"]
TREES = {
    "parsed": {"segmenter": "tiny", "parser": "tiny"},
    "chained": {"segmenter": "tiny", "parser": "tiny", "sentences": "chain"},
    "chain": {"segmenter": "tiny", "parser": "chain"},
    "random": {"segmenter": "other", "parser": "random"},
    "gold": {"gold": True},
    "files": {"files": {f"smoke/{part}": "x" for part in ("train", "dev", "test_smoke", "suite_pronoun")}},
}
PARSER, TINY, OTHER = (
    f"results/discourse/{path}"
    for path in ("parsers/tiny/parser.pt", *(f"segmenters/{name}/segmenter.pt" for name in ("tiny", "other")))
)


@pytest.fixture
def study(tmp_path):
    """A study folder with a system per kind of trees. It was moved after its last run."""
    values = smoke_values({"discourse": {"trees": TREES, "segmenters": {"other": {"treebank": "smoke_treebank"}}}})
    for name in TREES:
        values["instances"][name] = {"max_tokens": 256, "trees": name}
        values["systems"][f"rst_{name}"] = SYSTEM | {"instances": name}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    log = tmp_path / ".snakemake/log/2026.snakemake.log"
    log.parent.mkdir(parents=True)
    log.write_text("  Working directory: /old\n  Config file(s): [PosixPath('/old/my.yaml')]\n")
    return tmp_path


def model_of(study, system, dataset="smoke"):
    return study / f"results/{dataset}/runs/{system}/seed1/model.pt"


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        ("parsed", (TINY, PARSER, "parser")),
        ("chained", (TINY, PARSER, "chain")),
        ("chain", (TINY, "chain", "parser")),
        ("random", (OTHER, "random", "parser")),
    ],
)
def test_trees_are_those_of_the_system(study, monkeypatch, tmp_path_factory, trees, expected):
    monkeypatch.setattr(
        "docmt.discourse.annotation.read_bundle",
        lambda segmenter, parser, sentences: (str(segmenter), parser, sentences),
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert _discourse_of_study(model_of(study, f"rst_{trees}")) == (expected, "")


@pytest.mark.parametrize(
    ("system", "dataset", "reason"),
    [
        ("rst_gold", "smoke", "other trees than a parser's (`discourse.trees.gold`)"),
        ("rst_files", "smoke", "other trees than a parser's (`discourse.trees.files`)"),
        ("rst_old", "smoke", "has no such system"),
        ("rst_parsed", "other", "has no such system"),
    ],
)
def test_other_trees_are_not_guessed(study, system, dataset, reason):
    bundle, said = _discourse_of_study(model_of(study, system, dataset))
    assert bundle is None
    assert reason in said


def test_a_model_without_its_study_has_no_trees(study, tmp_path):
    assert "not in the folder of its study" in _discourse_of_study(tmp_path / "model.pt")[1]
    shutil.rmtree(study / ".snakemake")
    assert "no previous run" in _discourse_of_study(model_of(study, "rst_parsed"))[1]


def test_what_is_not_parsed_is_said_or_refused(study, overfitted, tmp_path, capsys):
    model = model_of(study, "rst_gold")
    model.parent.mkdir(parents=True)
    shutil.copy(overfitted("rst_mix"), model)
    (tmp_path / "a").write_text("the dog\n")
    arguments = ["translate", "--model", str(model), "--device", "cpu", str(tmp_path / "a")]
    assert main(arguments) == 0
    assert "discourse.trees.gold`): translating without trees" in capsys.readouterr().err
    assert main([*arguments, "--discourse", "auto"]) == 2
    assert "docmt: error: --discourse auto: " in capsys.readouterr().err
