"""The schema and the manual are generated from classes, and the shipped copies are in step."""

import re
from pathlib import Path

import jsonschema
import pytest

from docmt.cli.main import main
from docmt.config.loading import read_config_file
from docmt.config.manual import json_schema, manual, replace_manual
from docmt.config.schema import Config
from docmt.errors import UserError

ROOT = Path(__file__).parents[2]


def test_configuration_page_is_in_step_with_the_classes():
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert page == replace_manual(page, where="docs/configuration.md"), "run `make docs`"


def test_schema_file_is_in_step_with_the_classes():
    assert (ROOT / "config/schema.json").read_text(encoding="utf-8") == json_schema(), "run `make docs`"


def test_shipped_configs_fit_the_schema():
    schema = jsonschema.Draft202012Validator(Config.model_json_schema())
    schema.check_schema(schema.schema)
    for file in [ROOT / "config/config.yaml", *sorted((ROOT / "config/examples").rglob("*.yaml"))]:
        schema.validate(read_config_file(file))


def test_every_key_of_the_manual_has_a_meaning():
    keys = re.findall(r"^ *- (`\w+` \(.+?\)|`\w+: \w+`): ?(.*)$", manual(), flags=re.M)
    assert len(keys) > 250
    assert [key for key, meaning in keys if not meaning] == []


def test_keys_that_alternatives_share_are_listed_once():
    text = manual()
    assert text.count("- `n_suite_items` (") == 1
    assert text.count("- `min_sentences` (") == 3  # with other bounds and defaults in two kinds of documents, ParaDocs
    assert text.count("- `reader: ") == text.count("`reader: ")


def test_manual_without_marks_is_refused():
    with pytest.raises(UserError, match="markers"):
        replace_manual("# A page\n", where="page.md")


def test_shipped_configs_pass_the_check(capsys):
    files = [ROOT / "config/config.yaml", *sorted((ROOT / "config/examples").rglob("*.yaml"))]
    assert len(files) >= 3
    assert [main(["config", "check", str(file)]) for file in files] == [0] * len(files)
    assert capsys.readouterr().out.count(": valid (") == len(files)
