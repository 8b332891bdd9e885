"""Former names of settings and commands are accepted, with one line that names the new one."""

import re

import pytest
from smoke_study import SMOKE, smoke_config

from docmt.cli.main import app, main
from docmt.commands import leaves
from docmt.config.loading import load_config, parse_yaml
from docmt.config.schema import Config
from docmt.controlled.settings import load_settings
from docmt.errors import UserError
from docmt.evaluation.metrics import METRICS
from docmt.renamed import COMMANDS, KEYS, VALUES, rename_command, rename_settings
from docmt.settings import sections
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.subwords import learn_merges
from docmt.text.truecaser import Truecaser
from docmt.training.settings import TrainingSettings

FORMER_SMOKE = {
    "    instances: ": "    cutting: ",
    "    use_model_of: ": "    model_of: ",
    "      columns: ": "      facts: ",
    "      series:": "      lines:",
    "      x_values: ": "      values: ",
}


def test_each_new_name_exists_and_no_former_one_does():
    fields = {path: cls.model_fields for path, cls in sections(Config)}
    fields["set-resources.train"] = {"micro_batch_tokens": None}
    for former, (pattern, new) in KEYS.items():
        places = [names for path, names in fields.items() if re.fullmatch(pattern, path)]
        assert any(new in names for names in places), former
        assert not any(former in names for names in places), former
    commands = {" ".join(words) for words, _ in leaves(app)}
    assert set(COMMANDS.values()) <= commands
    assert not set(COMMANDS) & commands


def test_a_former_config_is_the_same_study_with_a_line_for_each_name(caplog):
    text = SMOKE.read_text(encoding="utf-8")
    for new, former in FORMER_SMOKE.items():
        assert new in text
        text = text.replace(new, former)
    assert load_config(parse_yaml(text, where="former")) == smoke_config()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == len(FORMER_SMOKE)
    assert "setting `cutting` is now called `instances`: rename it in your configuration" in lines


@pytest.mark.parametrize(
    ("former", "new", "line"),
    [
        (
            {"systems": {"a": {"scored": False, "training": {"new_parts": "silent", "frozen": "none"}}}},
            {"systems": {"a": {"evaluate": False, "training": {"init_new_parameters": "zero", "freeze": "none"}}}},
            "`new_parts: silent` is now called `init_new_parameters: zero`",
        ),
        (
            {"corpora": {"controlled": {"documents": {"documents": "segments"}}}},
            {"corpora": {"controlled": {"documents": {"generator": "nested"}}}},
            "`documents: segments` is now called `generator: nested`",
        ),
        (
            {"report": {"claims": {"at": {"relations": ["a > b"], "metric": "forced ends", "at": 3}}}},
            {"report": {"claims": {"at": {"comparisons": ["a > b"], "metric": "length-limited sentences", "step": 3}}}},
            "`metric: forced ends` is now called `metric: length-limited sentences`",
        ),
        (
            {"evaluation": {"metrics": ["chrF", "tokenised s-BLEU"]}, "datasets": {"x": {"text": {"normalise": True}}}},
            {"evaluation": {"metrics": ["chrF", "tokenized s-BLEU"]}, "datasets": {"x": {"text": {"normalize": True}}}},
            "`tokenised s-BLEU` is now called `tokenized s-BLEU`",
        ),
        ({"training": {"frozen": {"max_steps": 1}}}, {"training": {"frozen": {"max_steps": 1}}}, ""),
    ],
)
def test_keys_and_values_are_renamed_in_their_sections(former, new, line, caplog):
    assert rename_settings(former) == new
    assert line in caplog.text


def test_values_have_new_names_that_exist():
    known = {*METRICS, "flat", "nested", "zero"}
    assert {new for _, new in VALUES.values()} <= known
    assert not set(VALUES) & known
    assert TrainingSettings(init_new_parameters="zero").init_new_parameters == "zero"


def test_a_key_with_both_names_is_refused():
    with pytest.raises(UserError, match=r"config.systems.a: 'cutting' is the former name of 'instances': remove 'cut"):
        rename_settings({"systems": {"a": {"cutting": "x", "instances": "y"}}})


def test_settings_of_commands_may_have_former_names(caplog):
    assert load_settings('{"documents": "segments"}').generator == "nested"
    assert TextSettings.from_argument('{"normalise": true}', where="text").normalize
    assert caplog.text.count("is now called") == 2


def test_saved_pipelines_load_without_a_line(caplog):
    codes = learn_merges(["ab ab"], merges=1, min_frequency=1)
    truecasers = {"en": Truecaser([]), "de": Truecaser([])}
    pipeline = TextPipeline(TextSettings(normalize=True), languages=("en", "de"), truecasers=truecasers, codes=codes)
    values = pipeline.to_dict()
    values["settings"]["normalise"] = values["settings"].pop("normalize")
    assert TextPipeline.from_dict(values).settings == pipeline.settings
    assert not caplog.records


def test_former_commands_and_options_run(capsys, caplog):
    assert main(["decode", "contrast", "--help"]) == 0
    assert "docmt decode score-candidates" in capsys.readouterr().out
    words = ["train", "--device-tokens=9", "--device-tokens", "8"]
    assert rename_command(words) == ["train", "--micro-batch-tokens=9", "--micro-batch-tokens", "8"]
    assert rename_command(["--verbose", "tidy"]) == ["--verbose", "clean"]
    assert rename_command(["run", "tidy"]) == ["run", "tidy"], "a word of another command"
