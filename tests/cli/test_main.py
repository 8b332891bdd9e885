"""The `docmt` command."""

import json
import subprocess
import sys

import pytest

from docmt import __version__
from docmt.cli.main import main
from docmt.commands import as_argument, option_words


@pytest.mark.parametrize("module", ["docmt", "docmt.cli.main"])
def test_the_package_runs_as_a_module(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"docmt {__version__}\n"


def test_an_error_is_one_line_and_code_2(tmp_path):
    command = [sys.executable, "-m", "docmt", "status", "--configfile", "missing.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "docmt: error: missing.yaml: no such file\n"


def test_system_errors_are_one_line(tmp_path):
    """Full disks, read-only folders, and files in the path of a folder, for different commands and paths."""
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "docmt", "config", "schema", "--out", "file/schema.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("docmt: error: ")
    assert "file" in done.stderr
    assert done.stderr.count("\n") == 1
    with open("/dev/full", "w") as full:
        command = [*command[:3], "--verbose", "config", "presets"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert b"Traceback" in done.stderr


def test_output_errors_are_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "docmt", "config", "presets"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("docmt: error: output: No space left on device")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", [["text", "tokenize", "--lang", "en", "--input", "a.en"], ["controlled", "generate"]]
)
def test_read_only_folder_is_one_line(command, small_disk, tmp_path):
    (tmp_path / "a.en").write_text("One .\n")
    folder = small_disk(100)
    settings = (
        ["--settings", '{"generator": "flat", "n_train_documents": 2, "n_dev_documents": 2, "n_test_documents": 2}']
        if command[0] == "controlled"
        else []
    )
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    words = [sys.executable, "-m", "docmt", *command, *settings, "--out", str(folder / "new/a")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"docmt: error: {folder}" in done.stderr
    assert "read-only" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_help_does_not_import_what_takes_seconds():
    code = (
        "import sys; from docmt.cli.main import main; main(['train', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'pandas', 'snakemake')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("names", [["-a"], ["-a", "b c"], ["b", "--out"], ["-1", "-1"], ["a", "b"]])
def test_a_path_may_begin_with_a_dash(tmp_path, monkeypatch, names):
    """Options from rules reach the command as values, even if they begin with a dash."""
    monkeypatch.chdir(tmp_path)
    for name in {*names}:
        (tmp_path / name).write_text("word\n", encoding="utf-8")
    words = [*option_words("inputs", names), *option_words("out", "-out"), *option_words("tags", None)]
    assert main(["text", "learn-vocabulary", *words]) == 0
    assert f"word\t{len(names)}\n" in (tmp_path / "-out").read_text(encoding="utf-8")


def test_settings_cannot_end_a_script():
    title = "</script><script>alert(1)</script> <!-- 'quoted' & \u2028"
    argument = as_argument({"title": title})
    assert "<" not in argument
    assert json.loads(argument) == {"title": title}


@pytest.mark.parametrize(
    "words",
    [
        ["translate", "--model", "m.pt", "--threads", "0"],
        ["translate", "--model", "m.pt", "--threads", "100000"],
        ["corpora", "filter", "--inputs", "x", "--languages", "en", "de", "--jobs", "0"],
        ["corpora", "filter", "--inputs", "x", "--languages", "en", "de", "--show", "-3"],
    ],
)
def test_numbers_out_of_range_are_named(words, capsys):
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{words[-2]}" in line
    assert "Must be" in line
