"""Every mistake in a configuration gives one line that names the key and what to do."""

import copy
from pathlib import Path

import pytest
import yaml

from docmt.cli.main import main
from docmt.config.loading import load_config, load_config_files, read_config_file
from docmt.errors import UserError

CONFIGS = Path(__file__).parents[2] / "config"


@pytest.fixture
def values():
    return read_config_file(CONFIGS / "config.yaml")


def put(values, path, value):
    """Set the value at a dotted path; mappings on the way are made."""
    *parents, last = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[last] = value


TABLE = {
    "unknown section": ("sytems", {}, ["config.sytems: unknown key", "'systems'"]),
    "unknown key": ("decoding.beam_sise", 4, ["config.decoding.beam_sise: unknown key", "'beam_size'"]),
    "unknown key of a recipe": (
        "training.scratch.learning_rat",
        1.0,
        ["config.training.scratch.learning_rat: unknown key", "'learning_rate'"],
    ),
    "unknown key of a system": (
        "systems.g_transformer.recipee",
        "x",
        ["config.systems.g_transformer.recipee", "'recipe'"],
    ),
    "unknown key of a model": (
        "systems.g_transformer.model",
        {"widht": 64},
        ["config.systems.g_transformer.model.widht: unknown key", "'width'"],
    ),
    "unknown key of a training": (
        "systems.g_transformer.training",
        {"max_step": 64},
        ["config.systems.g_transformer.training.max_step: unknown key", "'max_steps'"],
    ),
    "unknown key of a dataset's text": (
        "datasets.controlled.text",
        {"bpe_merge": 64},
        ["text.bpe_merge", "'bpe_merges'"],
    ),
    "wrong type": ("decoding.beam_size", "five", ["config.decoding.beam_size", "a number is needed", "'five' is text"]),
    "exponent without a point": ("training.scratch.learning_rate", "1e-4", ["learning_rate", "as in 1.0e-4"]),
    "text made by --config": (
        "decoding.beam_size",
        "4",
        ["config.decoding.beam_size", "quotation marks", "--config makes text"],
    ),
    "truth for a number": ("decoding.beam_size", True, ["config.decoding.beam_size"]),
    "fraction for a whole number": ("decoding.beam_size", 4.5, ["config.decoding.beam_size"]),
    "out of bounds": ("decoding.beam_size", 0, ["config.decoding.beam_size", "greater than or equal to 1"]),
    "section that is no mapping": ("decoding", 5, ["config.decoding: must be a mapping (`key: value`)"]),
    "empty section": ("decoding", None, ["config.decoding"]),
    "one seed instead of a list": ("seeds", 1, ["config.seeds: must be a list, such as [a, b], not 1"]),
    "no seed": ("seeds", [], ["config.seeds: must not be empty"]),
    "a name that no path can have": ("datasets.my data", {}, ["config.datasets.my data: a name may contain only"]),
    "a long value": ("seeds", "x" * 1000, ["config.seeds: must be a list", "x …"]),
    "seed twice": ("seeds", [1, 2, 1], ["config.seeds", "duplicate"]),
    "negative seed": ("seeds", [-1], ["config.seeds.0", "greater than or equal to 0"]),
    "system's negative seed": ("systems.g_transformer.seeds", [-1], ["config.systems.g_transformer.seeds.0"]),
    "endless seed": ("seeds", [10**30], ["config.seeds.0", "less than 1000000000"]),
    "system's seed twice": ("systems.g_transformer.seeds", [3, 3], ["config.systems.g_transformer.seeds", "duplicate"]),
    "no system": ("systems", {}, ["config.systems"]),
    "name with a slash": ("systems.a/b", {}, ["config.systems.a/b", "becomes part of paths"]),
    "dataset named as a folder of results": ("datasets.report", {}, ["config.datasets.report", "is reserved"]),
    "language in words": ("datasets.controlled.src_lang", "English", ["config.datasets.controlled.src_lang", "code"]),
    "language without a tokenizer": (
        "datasets.controlled.tgt_lang",
        "xx",
        ["config.datasets.controlled.tgt_lang", "unknown language 'xx'"],
    ),
    "language without blanks": (
        "datasets.controlled.src_lang",
        "ja",
        ["config.datasets.controlled.src_lang", "separates no words by blanks"],
    ),
    "misspelt metric of the report": ("report.metrics", ["s-BLUE"], ["config.report.metrics", "mean 's-BLEU'"]),
    "misspelt metric of a table": (
        "report.tables.one",
        {"title": "t", "systems": ["g_transformer"], "metrics": ["chrf"]},
        ["config.report.tables.one.metrics", "did you mean 'chrF'"],
    ),
    "metric of a table that is not computed": (
        "report.tables.one",
        {"title": "t", "systems": ["g_transformer"], "metrics": ["METEOR"]},
        ["config.report.tables.one.metrics", "'METEOR' is not computed", "evaluation.metrics"],
    ),
    "same languages": ("datasets.controlled.tgt_lang", "en", ["src_lang and tgt_lang are both 'en'"]),
    "reference without a split": ("datasets.controlled.train", ["controlled"], ["train.0", "CORPUS/SPLIT"]),
    "unknown corpus": ("datasets.controlled.train", ["controled/train"], ["datasets.controlled.train", "'controlled'"]),
    "unknown corpus of the catalogue": (
        "datasets.controlled.test.ted",
        ["maruf2019-tet/test"],
        ["config.datasets.controlled.test.ted", "'maruf2019-ted'"],
    ),
    "unknown split": (
        "datasets.controlled.dev",
        ["controlled/deff"],
        ["datasets.controlled.dev", "did you mean 'dev'?"],
    ),
    "corpus of other languages": (
        "datasets.controlled.test.news",
        ["wmt19-newstest-enzh/test"],
        ["config.datasets.controlled.test.news", "en and zh", "src_lang and tgt_lang are en and de"],
    ),
    "contrastive set as text": (
        "datasets.controlled.test.pronouns",
        ["contrapro-ende/test"],
        ["config.datasets.controlled.test.pronouns", "has no split 'test'"],
    ),
    "unknown suite": (
        "datasets.controlled.suites",
        ["controlled/structures"],
        ["config.datasets.controlled.suites", "no contrastive test set 'structures'", "'structure'"],
    ),
    "suite of the other kind of generated documents": (
        "datasets.controlled.suites",
        ["controlled/pronoun"],
        ["config.datasets.controlled.suites", "no contrastive test set 'pronoun'", "cohesion, deixis, ellipsis"],
    ),
    "unknown kind of generated documents": (
        "corpora.controlled.controlled.documents",
        "segment",
        ["config.corpora.controlled.controlled", "documents must be one of selection, segments"],
    ),
    "unknown key of one kind of generated documents": (
        "corpora.controlled.controlled.min_sentence",
        12,
        ["config.corpora.controlled.controlled.min_sentence: unknown key; did you mean 'min_sentences'?"],
    ),
    "suites of one name": (
        "datasets.controlled.suites",
        ["controlled/deixis", "controlled/deixis"],
        ["would share the name 'deixis'"],
    ),
    "split twice": (
        "datasets.controlled.train",
        ["controlled/train"] * 2,
        ["datasets.controlled.train", "duplicate"],
    ),
    "trained on a test set": (
        "datasets.controlled.test.easy",
        ["controlled/train"],
        ["config.datasets.controlled.train and config.datasets.controlled.test.easy both contain 'controlled/train'"],
    ),
    "unknown dataset of a system": ("systems.g_transformer.datasets", ["controled"], ["datasets", "'controlled'"]),
    "no dataset of any system": ("systems", {"a": None}, ["config.systems.a"]),
    "former key": (
        "systems.g_transformer.segmentation",
        "documents",
        ["g_transformer.segmentation: this key is now called 'cutting'"],
    ),
    "unknown cutting": ("systems.g_transformer.cutting", "document", ["cutting", "'documents'"]),
    "unknown size": ("systems.g_transformer.size", "tinny", ["config.systems.g_transformer.size", "'tiny'"]),
    "unknown architecture": ("systems.g_transformer.architecture", "g_transfomer", ["architecture", "'g_transformer'"]),
    "unknown recipe": ("systems.g_transformer.recipe", "scrach", ["config.systems.g_transformer.recipe", "'scratch'"]),
    "unknown init": ("systems.g_transformer.init", "sentence_transformr", ["init", "'sentence_transformer'"]),
    "init by itself": ("systems.g_transformer.init", "g_transformer", ["config.systems.g_transformer.init", "circle"]),
    "circle of inits": (
        "systems.sentence_transformer.init",
        "g_transformer_finetuned",
        ["circle", "sentence_transformer ← g_transformer_finetuned ← sentence_transformer"],
    ),
    "init without that seed": (
        "systems.g_transformer_finetuned.seeds",
        [7],
        ["config.systems.g_transformer_finetuned.init", "'sentence_transformer' has no run", "seed 7"],
    ),
    "init of another width": (
        "systems.g_transformer_finetuned.size",
        "small",
        [
            "config.systems.g_transformer_finetuned.model.width is 256",
            "config.systems.sentence_transformer.model.width",
        ],
    ),
    "frozen without an init": (
        "systems.g_transformer.training",
        {"frozen": "pretrained"},
        ["config.systems.g_transformer: training.frozen 'pretrained'", "name an init"],
    ),
    "batch smaller than an instance": (
        "training.scratch.max_batch_tokens",
        100,
        ["max_batch_tokens 100", "instances.documents.max_tokens 512"],
    ),
    "merged recipe never ends": (
        "systems.g_transformer.training",
        {"max_steps": None, "patience": None},
        ["config.systems.g_transformer.training", "max_steps, max_epochs and patience are all null"],
    ),
    "merged model contradicts itself": (
        "systems.document_transformer.model",
        {"encoder_attention": {"lower": "group"}},
        ["config.systems.document_transformer.model", "target_stream 'free'", "encoder_attention"],
    ),
    "more upper layers than layers": (
        "systems.g_transformer.model",
        {"encoder_layers": 1},
        ["config.systems.g_transformer.model", "encoder_attention.upper_layers 2", "encoder_layers 1"],
    ),
    "label of an unknown system": ("report.labels", {"g_transfomer": "x"}, ["config.report.labels", "'g_transformer'"]),
    "published row of an unknown system": (
        "report.published",
        {"x": "g-transformer/none"},
        ["config.report.published"],
    ),
    "published dataset of an unknown test": ("report.datasets", {"controlled/tst": "ted"}, ["config.report.datasets"]),
    "unknown treebank": (
        "discourse.segmenters.controlled.treebank",
        "gumm",
        ["segmenters.controlled.treebank", "'gum'"],
    ),
    "unknown segmenter": (
        "discourse.parsers.controlled.segmenter",
        "x",
        ["config.discourse.parsers.controlled.segmenter"],
    ),
    "unknown parser": ("discourse.trees.parsed.parser", "chian", ["config.discourse.trees.parsed.parser", "'chain'"]),
    "parser of a taken name": ("discourse.parsers.chain", {"treebank": "gum"}, ["parsers.chain", "needs no training"]),
    "trees of two sources": (
        "discourse.trees.parsed.gold",
        True,
        ["config.discourse.trees.parsed", "give one of them"],
    ),
    "chained sentences of gold trees": (
        "discourse.trees.gold",
        {"gold": True, "sentences": "chain"},
        ["config.discourse.trees.gold", "sentences: chain goes with segmenter and parser"],
    ),
    "trees of no source": ("discourse.trees.none", {}, ["config.discourse.trees.none", "give one of them"]),
    "unknown trees": ("instances.documents_with_trees.trees", "parsd", ["documents_with_trees.trees", "'parsed'"]),
    "files that lack a split": (
        "discourse.trees.parsed",
        {"files": {"controlled/train": "t", "controlled/dev": "d", "controlled/test_controled": "x"}},
        ["config.discourse.trees.parsed.files", "'controlled/test_controlled' is missing"],
    ),
    "architecture without its trees": ("systems.rst_mix.cutting", "documents", ["rst_mix", "reads trees"]),
    "no architecture": ("systems.new", {"cutting": "documents", "recipe": "scratch"}, ["architecture is missing"]),
    "models of an unknown system": (
        "systems.new",
        {"cutting": "documents", "model_of": "rst_mx"},
        ["config.systems.new.model_of", "'rst_mix'"],
    ),
    "models of another system with an own recipe": (
        "systems.new",
        {"cutting": "documents", "model_of": "rst_mix", "recipe": "scratch"},
        ["config.systems.new", "leave out recipe"],
    ),
    "models of a seed that is not trained": (
        "systems.new",
        {"cutting": "documents", "model_of": "rst_mix", "seeds": [9]},
        ["config.systems.new.model_of", "seed 9"],
    ),
    "no context for a model that reads none": (
        "systems.rst_mix.decoding",
        {"context": "none"},
        ["config.systems.rst_mix: decoding.context 'none'", "global_context"],
    ),
    "unknown key of a system's decoding": (
        "systems.rst_mix.decoding",
        {"beam": 2},
        ["config.systems.rst_mix.decoding.beam: unknown key", "'beam_size'"],
    ),
    "two datasets and systems with one name of a log": (
        "systems",
        {
            "ended": {"cutting": "documents", "architecture": "concatenation", "recipe": "scratch"},
            "x_ended": {"cutting": "documents", "architecture": "concatenation", "recipe": "scratch"},
        },
        ["controlled + x_ended and controlled_x + ended would share the log controlled_x_ended"],
    ),
    "braces in the path of a corpus": (
        "corpora.custom.own",
        {
            "languages": ["en", "de"],
            "format": {"reader": "blank_lines"},
            "splits": {"all": {"files": {"en": "{a}", "de": "b"}}},
        },
        ["config.corpora.custom.own.splits.all.files.en: '{a}' contains braces"],
    ),
    "braces in the path of trees": (
        "discourse.trees.own",
        {"files": {"controlled/train": "{{a"}},
        ["config.discourse.trees.own.files.controlled/train: '{{a' contains braces"],
    ),
    "control character in a label": (
        "report.labels",
        {"rst_mix": "red \x1b[31m"},
        ["config.report.labels.rst_mix: contains the control character U+001B"],
    ),
    "half a character in a title": ("report.title", "a\ud800", ["config.report.title", "U+D800"]),
    "corpus under two kinds": (
        "corpora.custom.controlled",
        {"languages": ["en", "de"], "format": {"reader": "blank_lines"}, "splits": {}},
        ["corpora.controlled and corpora.custom both contain 'controlled'"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_config_mistake_is_one_line_that_names_the_key(name, values, tmp_path, capsys):
    path, value, words = TABLE[name]
    put(values, path, value)
    if "one name of a log" in name:
        values["datasets"]["controlled_x"] = values["datasets"]["controlled"]
        values["report"] = {}
    with pytest.raises(UserError) as caught:
        load_config(values)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message

    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert main(["config", "check", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(file) in error


BAD_FILES = {
    "key twice": ("seeds: [1]\nseeds: [2]\n", "line 2: duplicate key 'seeds' (lines 1 and 2)"),
    "nested key twice": ("decoding:\n  beam_size: 4\n  beam_size: 5\n", "line 3: duplicate key 'beam_size'"),
    "not YAML": ("seeds: [1\n", "line 2"),
    "tab": ("decoding:\n\tbeam_size: 4\n", "line 2"),
    "a list": ("- seeds\n", "expected a mapping of sections"),
    "an object tag": ("seeds: !!python/object:os.system {}\n", "line 1"),
    "endless number": (f"seeds: [{'9' * 5000}]\n", "cannot be read as YAML"),
    "deep nesting": ("[" * 100_000, "cannot be read as YAML"),
    "keys without end": (
        "a0: &a0 {"
        + ", ".join(f"k{number}: 1" for number in range(9))
        + "}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)),
        "more than 10,000 keys in one mapping",
    ),
    "empty": ("", "this key is missing"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_config_file_that_is_no_config_is_refused(name, tmp_path):
    text, words = BAD_FILES[name]
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_config_files([file])
    assert words in str(caught.value)


def test_config_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_config_files([tmp_path / "none.yaml"])


def test_later_files_lie_on_top_of_earlier_ones(values, tmp_path):
    changes = tmp_path / "changes.yaml"
    changes.write_text("decoding: {beam_size: 3}\nseeds: [4, 5]\n", encoding="utf-8")
    before = load_config(copy.deepcopy(values))
    after = load_config_files([CONFIGS / "config.yaml", changes])
    assert after.decoding == before.decoding.model_copy(update={"beam_size": 3})
    assert after.seeds == [4, 5]
    assert after.systems == before.systems
