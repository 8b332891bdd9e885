"""Every mistake in a configuration leads to one line with the key and a solution."""

import copy
from pathlib import Path

import pytest
import yaml

from docmt.cli.main import main
from docmt.config.loading import load_config, read_config_file, read_config_files
from docmt.errors import UserError

CONFIGS = Path(__file__).parents[2] / "config"


@pytest.fixture
def values():
    return read_config_file(CONFIGS / "config.yaml")


def put(values, path, value):
    """Set the value at a dotted path. Missing mappings are created."""
    *parents, last = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[last] = value


TABLE = yaml.safe_load((Path(__file__).parent / "bad_configs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TABLE)
def test_mistake_is_one_line_with_the_key(name, values, tmp_path, capsys):
    path, value, words = TABLE[name]
    if (example := CONFIGS / f"examples/{path}.yaml").exists():
        values = read_config_file(example)
    for key, changed in value.items() if example.exists() else [(path, value)]:
        put(values, key, copy.deepcopy(changed))
    if "one name of a log" in name:
        values["datasets"]["controlled_x"] = values["datasets"]["controlled"]
        values["report"] = {}
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    assert main(["config", "check", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(file) in error
    for word in words:
        assert word in error, error


BAD_FILES = {
    "key twice": ("seeds: [1]\nseeds: [2]\n", "line 2: duplicate key 'seeds' (lines 1 and 2)"),
    "nested key twice": ("decoding:\n  beam_size: 4\n  beam_size: 5\n", "line 3: duplicate key 'beam_size'"),
    "not YAML": ("seeds: [1\n", "line 2"),
    "tab": ("decoding:\n\tbeam_size: 4\n", "line 2"),
    "a list": ("- seeds\n", "expected a mapping of sections"),
    "an object tag": ("seeds: !!python/object:os.system {}\n", "line 1"),
    "a tag that does not fit": ("seeds: !!bool perhaps\n", "cannot be read as YAML"),
    "a date that does not exist": ("seeds: 2024-13-01\n", "cannot be read as YAML (month must be in 1..12)"),
    "a list as a key": ("? [a, b]\n: 1\n", "cannot be read as YAML"),
    "endless number": (f"seeds: [{'9' * 5000}]\n", "cannot be read as YAML"),
    "deep nesting": ("[" * 100_000, "cannot be read as YAML"),
    "keys without end": (
        "a0: &a0 {"
        + ", ".join(f"k{number}: 1" for number in range(9))
        + "}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)),
        "more than 10,000 keys in one mapping",
    ),
    "values without end": (
        "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
        "aliases (`*name`) expand to more than 1,000,000 values",
    ),
    "a list in itself": ("a: &a [*a]\n", "line 1"),
    "empty": ("", "this key is missing"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_config_file_that_is_no_config_is_refused(name, tmp_path):
    text, words = BAD_FILES[name]
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_config(read_config_file(file))
    assert words in str(caught.value)


def test_missing_data_file_is_reported(values, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    format = {"languages": ["en", "de"], "format": {"reader": "blank_lines"}}
    values["corpora"]["custom"] = {"own": {**format, "splits": {"all": {"files": {"en": "a.en", "de": "a.de"}}}}}
    values["datasets"]["controlled"]["train"] = ["own/all"]
    Path("my.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    Path("a.en").write_text("A\n")
    assert main(["config", "check", "my.yaml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("docmt: error: my.yaml: config.corpora.custom.own.splits.all.files.de: a.de: no such file")
    assert error.count("\n") == 1
    Path("a.de").write_text("A\n")
    assert main(["config", "check", "my.yaml"]) == 0
    assert "my.yaml: valid (1 dataset, 8 systems, " in capsys.readouterr().out


def test_later_files_lie_on_top_of_earlier_ones(values, tmp_path):
    changes = tmp_path / "changes.yaml"
    changes.write_text("decoding: {beam_size: 3}\nseeds: [4, 5]\n", encoding="utf-8")
    before = load_config(copy.deepcopy(values))
    after = load_config(read_config_files([CONFIGS / "config.yaml", changes]))
    assert after.decoding == before.decoding.model_copy(update={"beam_size": 3})
    assert after.seeds == [4, 5]
    assert after.systems == before.systems
