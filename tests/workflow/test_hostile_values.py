"""Config values are never code. Neither the shell nor Snakemake evaluates user text."""

import copy
import json
import os
import re
import subprocess

import pytest
import yaml
from studies import SMOKE, snakemake

from docmt.config.loading import load_config, merge, read_config_file
from docmt.errors import UserError

HOSTILE = """ O'Brien "$(touch PWNED)" `touch PWNED`; touch PWNED & * \\ ü """
BRACES = "{output} {{x}} {"
ROW = {
    "languages": ["en", "de"],
    "format": {"reader": "blank_lines"},
    "splits": {"all": {"files": {"en": f"en{HOSTILE}", "de": f"de{HOSTILE}"}}},
}
TREES = {f"smoke/{name}": f"{name}{HOSTILE}" for name in ("train", "dev", "test_smoke", "suite_pronoun")}
ADDED = {
    "corpora": {"custom": {"own": ROW}, "mirror": "mirror"},
    "datasets": {"smoke": {"sentences": ["own/all", "maruf2019-news/train"]}},
    "discourse": {"trees": {"elsewhere": {"files": TREES}}},
    "instances": {"with_files": {"max_tokens": 64, "trees": "elsewhere"}},
    "systems": {
        "reader": {"instances": "with_files", "architecture": "rst_mix", "size": "tiny", "recipe": "scratch"},
        "document_transformer": {"training": {"tasks": ["documents", "pairs"]}},
    },
}
END = "<end of a call>"
DOCMT = f"""#!/bin/bash
printf '%s\\0' "$@" "{END}" >> "$CALLS"
"""
"""Replaces docmt, and records the arguments of a call within milliseconds."""


def leaves(values, path=()):
    """Paths to all texts in nested lists and mappings."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield from [(*path, key)] if isinstance(value, str) else leaves(value, (*path, key))


def replaced(values, path, text):
    values = copy.deepcopy(values)
    section = values
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = text
    return values


@pytest.fixture(scope="module")
def hostile():
    """The smoke study with hostile text in every leaf that accepts it. Other leaves refuse it in one line."""
    values = merge(read_config_file(SMOKE), ADDED)
    values["report"] |= {"title": "title", "labels": {"document_transformer": "label"}}
    load_config(values)
    refused = {}
    for path in list(leaves(values)):
        for text in (HOSTILE + BRACES, HOSTILE):
            attempt = replaced(values, path, text)
            try:
                load_config(attempt)
            except UserError as error:
                refused[path] = str(error)
            else:
                values = attempt
                break
    assert values["report"]["title"] == HOSTILE + BRACES
    assert not [message for message in refused.values() if "\n" in message]
    return values


@pytest.mark.slow
def test_every_command_gets_hostile_text_as_text(hostile, tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(hostile, allow_unicode=True), encoding="utf-8")
    corpus_files = hostile["corpora"]["custom"]["own"]["splits"]["all"]["files"]
    files = [*corpus_files.values(), *hostile["discourse"]["trees"]["elsewhere"]["files"].values()]
    assert all("PWNED" in file for file in files)
    for file in files:
        (tmp_path / file).touch()
    planned = snakemake(tmp_path, "--dry-run", "--printshellcmds", config=config)
    assert planned.returncode == 0, planned.stderr[-3000:]
    commands = re.findall(r"^Shell command: (?:exec )?(docmt .*)", planned.stdout, re.MULTILINE)
    assert len(commands) > 50

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docmt").write_text(DOCMT)
    (tmp_path / "bin/docmt").chmod(0o755)
    calls = tmp_path / "calls"
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls)}
    for command in commands:
        written = re.sub(r" 2?> \S+( 2>&1| 2> \S+)?$", "", command)
        done = subprocess.run(
            ["bash", "-euc", written], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (written, done.stderr)
    assert not (tmp_path / "PWNED").exists()
    arguments = [part.split("\0") for part in calls.read_text(encoding="utf-8").split(f"\0{END}\0")[:-1]]
    assert len(arguments) == len(commands)
    for file in hostile["discourse"]["trees"]["elsewhere"]["files"].values():
        assert any(file in words for words in arguments), file
    specs = [json.loads(words[words.index("--spec") + 1]) for words in arguments if "--spec" in words]
    assert [spec["splits"]["all"]["files"] for spec in specs] == [corpus_files]
    mirrors = {words[words.index("--mirror") + 1] for words in arguments if "--mirror" in words}
    assert mirrors == {HOSTILE + BRACES}
