"""Results are the same in every locale: Turkish letters, decimal commas and Latin-1."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docmt.utf8 import print_utf8

ROOT = Path(__file__).parents[1]
LOCALES = ("tr_TR.UTF-8", "de_DE.ISO-8859-1")
CHOSEN = [
    "tests/cli/test_init_command.py::test_a_new_folder_has_the_whole_workflow",
    "tests/cli/test_new_study.py::test_a_study_on_plain_files",
    "tests/corpora/test_cleaning_rules.py::test_rules_reject_one_property_at_a_time",
    "tests/evaluation/test_bleu_scores.py::test_fixed_numbers",
    "tests/evaluation/test_bleu_scores.py::test_lowercase_ignores_case",
    "tests/evaluation/test_meteor_scores.py::test_case_is_that_of_the_target_language[en]",
    "tests/report/test_gathering.py::test_reads_back_what_was_written",
    "tests/report/test_gathering.py::test_rows_of_all_files_with_provenance",
    "tests/report/test_gathering.py::test_impossible_values_are_refused",
    "tests/text/test_tokenizer.py::test_tokens_without_marks_are_those_of_moses",
    "tests/text/test_truecaser.py::test_truecasing_is_undone_by_restore_case",
]
"""Quick tests of files, numbers, letters and external programs, about 60 with all parameters."""
PACKAGES = [f"tests/{name}" for name in ("evaluation", "text", "cli", "report")]


def environment(locale, **variables):
    """Environment variables for a process in a locale. Skips the test if the machine lacks the locale."""
    copy = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "LANGUAGE"))}
    copy |= {"LC_ALL": locale, "PYTHONPATH": str(ROOT)} | variables
    check = [sys.executable, "-c", "import locale; locale.setlocale(locale.LC_ALL, '')"]
    if subprocess.run(check, env=copy, capture_output=True, check=False).returncode:
        message = f"the locale {locale} is missing: localedef, as in .ci/run, makes it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return copy


def run_tests(locale, names, *options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *names]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(locale), capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("locale", LOCALES)
def test_chosen_tests_pass_in_other_locales(locale):
    run_tests(locale, CHOSEN)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("locale", LOCALES)
def test_whole_packages_pass_in_other_locales(locale):
    run_tests(locale, PACKAGES, "-m", "not slow and not gpu and not slurm", "--timeout=1200")


def test_commands_print_utf8_in_latin1(tmp_path):
    """The name of the configuration is in UTF-8 on disk, and has letters that Latin-1 lacks."""
    name = "日本 → ü.yaml"
    text = (ROOT / "config/examples/smoke.yaml").read_text(encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    variables = environment(LOCALES[1], PYTHONIOENCODING="latin-1")
    command = [sys.executable, "-m", "docmt", "config", "check", name]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("utf-8").startswith(f"{name}: valid")


def test_printing_never_fails(tmp_path, monkeypatch):
    """File names can contain bytes that are not UTF-8."""
    with open(tmp_path / "out", "w", encoding="latin-1") as file:
        monkeypatch.setattr(sys, "stdout", file)
        print_utf8()
        print("→ \udcfc", json.dumps("✗", ensure_ascii=False))
    assert (tmp_path / "out").read_text(encoding="utf-8") == '→ \\udcfc "✗"\n'


def test_programs_and_files_have_an_encoding():
    """Otherwise, the locale of the machine determines the encoding."""
    for file in sorted((ROOT / "docmt").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"text=True|universal_newlines|getpreferredencoding|setlocale", text), file
        for call in re.findall(r"(?<![\w.])open\([^()]*(?:\([^()]*\)[^()]*)*\)", text):
            assert re.search(r"encoding=|\"[rwax]\+?b\"", call), f"{file}: {call}"
        for call in re.findall(r"\.(?:read|write)_text\([^()]*(?:\([^()]*\)[^()]*)*\)", text):
            assert "utf-8" in call or "ascii" in call or "gpus.py" in file.name, f"{file}: {call}"
