"""Every configuration key has an effect. Another valid value changes files, inputs or parameters of a rule.

For `report` keys, the effect is a change in a report on artificial scores and histories. `EXCEPTIONS` lists keys
without a variant that changes something.
"""

import json
from typing import Any, Literal, get_args, get_origin

import pandas as pd
import pytest
from pydantic import BaseModel
from smoke_study import StudyView, smoke_values

from docmt.commands import as_argument
from docmt.config.loading import load_config, merge
from docmt.config.paper_columns import paper_columns
from docmt.config.schema import Config
from docmt.config.systems import model_settings
from docmt.corpora.readers.reader import CorpusFormat
from docmt.errors import UserError
from docmt.report.case_studies import choose_cases
from docmt.report.claims.judging import claims_table
from docmt.report.input_files import read_histories
from docmt.report.markup import to_latex
from docmt.report.page import build_report
from docmt.report.report_files import ReportFiles
from docmt.report.score_files import COLUMNS, TYPES
from docmt.report.study_facts import StudyFacts
from docmt.report.study_tables import case_table
from docmt.report.tables import to_csv, to_text
from docmt.settings import sections

TSV = {"reader": "tsv", "columns": [1, 2]}
SPLIT = {"files": {"both": "a.tsv"}, "documents": 1, "sentences": 2, "format": TSV}
MODEL = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 2, "feed_forward_width": 32}
TINY = {"size": "tiny", "model": MODEL}
MARKS = {"src_before": ["<s>"], "src_after": ["</s>"], "tgt_before": ["<s>"]}
TREE_PARTS = ("train", "dev", "test_t", "suite_deixis")
CLAIM = {"statement": "Longer input helps", "metric": "s-BLEU", "test": "smoke", "dataset": "smoke"}
OF_HISTORY = {"statement": "It learns", "metric": "dev_loss", "dataset": "smoke", "comparisons": ["rst_mix > 1"]}
OF_SUITE = CLAIM | {"metric": "contrastive accuracy", "test": "pronoun", "comparisons": ["rst_mix > 5"], "min_seeds": 2}
BASE = merge(
    smoke_values(),
    {
        "corpora": {
            "mirror": "mirror",
            "controlled": {"nested": {"generator": "nested"}},
            "custom": {"mine": {"languages": ["en", "de"], "format": TSV, "splits": {"all": SPLIT}}},
            "mtdata": {"web": {"id": "Statmt-europarl-10-deu-eng"}},
            "filters": {"strict": {"external": {"mine/all": "keep.txt"}}},
        },
        "discourse": {"trees": {"own": {"files": {f"own/{part}": "x" for part in TREE_PARTS}}}},
        "instances": {"own": {"trees": "own", "max_tokens": 256}},
        "training": {
            "finetune": {"max_batch_tokens": 1024},
            "scratch": {"tasks": ["documents", "sentences", "pairs", "restoration"]},
        },
        "evaluation": {
            "metrics": ["s-BLEU", "d-BLEU (instances)", "chrF", "TER", "APT"],
            "comet": {"checkpoint": "model.ckpt"},
        },
        "report": {
            "baseline": "sentence_transformer",
            "claims": {
                "c": CLAIM | {"comparisons": ["rst_mix > sentence_transformer"], "min_seeds": 2},
                "history": OF_HISTORY | {"min_seeds": 2},
                "suite": OF_SUITE,
            },
        },
        "datasets": {
            "smoke": {
                "train": ["smoke/train", "mine/all"],
                "references": {"smoke": ["second.de"]},
                "suites": ["smoke/pronoun", "contrapro-ende/test"],
                "sentences": ["web/all"],
                "monolingual": ["nested/dev"],
                "filters": {"train": "strict"},
            },
            "own": {
                "src_lang": "en",
                "tgt_lang": "de",
                "train": ["nested/train"],
                "dev": ["nested/dev"],
                "test": {"t": ["nested/test"]},
                "suites": ["nested/deixis"],
            },
        },
        "systems": {
            **{name: {"datasets": ["smoke"]} for name in smoke_values()["systems"]},
            "rst_own": {
                "datasets": ["own"],
                "instances": "own",
                "architecture": "rst_mix",
                "recipe": "finetune",
                **TINY,
            },
            "context": {
                "datasets": ["smoke"],
                "instances": "documents",
                "architecture": "global_context",
                "recipe": "finetune",
                "size": "tiny",
                "model": MODEL | {"marks": MARKS},
            },
            "theirs": {
                "hypotheses": {"smoke/smoke": "t.de"},
                "log_probabilities": {"smoke/pronoun": "t.txt"},
            },
        },
    },
)

HAN = {"systems.context.architecture": "han_encoder"}
# Key → dotted keys with a valid value, where the generic variants are invalid.
CHANGES: dict[str, dict[str, Any]] = {
    "text.tokenization": {"text": {"tokenization": "sentencepiece", "truecase": False}},
    "text.lowercase": {"text": {"truecase": False, "lowercase": True}},
    "decoding.context": {"systems.context.decoding": {"context": "none"}},
    "instances.sentences.trees": {"instances.own.trees": "parsed"},
    "training.scratch.freeze": {"systems.g_transformer_finetuned.training": {"freeze": "pretrained"}},
    "systems.context.model.positions": {"systems.rst_mix.model.positions": "sentence"},
    "systems.context.model.target_stream": {"systems.document_transformer.model.target_stream": "aligned"},
    "systems.context.model.encoder_attention.lower": {"systems.rst_mix.model.encoder_attention": {"lower": "global"}},
    "systems.context.model.encoder_attention.upper": {"systems.rst_mix.model.encoder_attention": {"upper": "group"}},
    "systems.context.model.context.kind": {"systems.context.architecture": "han"},
    "systems.context.model.context.sentences": HAN | {"systems.context.model.context": {"sentences": 5}},
    "systems.context.model.context.future": HAN | {"systems.context.model.context": {"future": True}},
    "systems.context.model.form.norm": {"systems.rst_own.model.form": {"norm": "pre", "final_norm": True}},
    "systems.sentence_transformer.model": {"systems.sentence_transformer.model.dropout": 0.25},
    "datasets.smoke.dev": {"datasets.own.dev": ["nested/test"]},
    "datasets.smoke.test": {
        "datasets.smoke.test": {"other": ["smoke/test"]},
        "datasets.smoke.references": {},
        "report.cases": {},
        "report.claims": {},
        "systems.theirs": None,
    },
    "datasets.smoke.suites": {"datasets.smoke.suites": ["smoke/pronoun"]},
    "datasets.smoke.sentences": {
        "datasets.smoke.sentences": ["mine/all"],
        "datasets.smoke.train": ["smoke/train"],
        "datasets.smoke.filters": {},
    },
    "datasets.smoke.monolingual": {"datasets.smoke.monolingual": ["nested/test"]},
    "datasets.smoke.monolingual_lang": {"datasets.smoke.monolingual_lang": "de"},
    "datasets.smoke.references": {"datasets.smoke.references": {"smoke": ["third.de"]}},
    "datasets.smoke.filters": {"datasets.smoke.filters": {}},
    "datasets.smoke.text": {"datasets.smoke.text": {"bpe_merges": 99}},
    "systems.sentence_transformer.datasets": {
        "systems.rst_own.datasets": ["smoke"],
        "systems.rst_own.instances": "documents_with_trees",
    },
    "evaluation.external": {"evaluation.external": {"MetricX": {"smoke/smoke": {"theirs": "x.txt"}}}},
    "systems.sentence_transformer.hypotheses": {"systems.theirs.hypotheses": {"smoke/smoke": "u.de"}},
    "systems.sentence_transformer.log_probabilities": {"systems.theirs.log_probabilities": {}},
    "systems.sentence_transformer.instances": {"systems.sentence_transformer.instances": "documents"},
    "systems.sentence_transformer.use_model_of": {"systems.rst_mix_without_trees.use_model_of": "document_transformer"},
    "systems.sentence_transformer.architecture": {"systems.sentence_transformer.architecture": "concatenation"},
    "systems.sentence_transformer.size": {"systems.sentence_transformer.size": "base"},
    "systems.sentence_transformer.recipe": {"systems.document_transformer.recipe": "finetune"},
    "systems.sentence_transformer.training": {"systems.sentence_transformer.training": {"max_steps": 7}},
    "systems.sentence_transformer.init": {"systems.document_transformer.init": "sentence_transformer"},
    "systems.sentence_transformer.seeds": {"systems.document_transformer.seeds": [4]},
    "systems.sentence_transformer.decoding": {"systems.sentence_transformer.decoding": {"beam_size": 7}},
    "systems.sentence_transformer.evaluate": {"systems.rst_own.evaluate": False},
    "corpora.controlled.smoke.generator": {"corpora.controlled.smoke_treebank.generator": "nested"},
    "corpora.controlled.nested.generator": {"corpora.controlled.smoke_treebank.generator": "nested"},
    "corpora.mtdata.web.id": {"corpora.mtdata.web.id": "Statmt-europarl-9-deu-eng"},
    "corpora.filters.strict.external": {"corpora.filters.strict.external": {"mine/all": "other.txt"}},
    "corpora.filters.strict.scripts": {"corpora.filters.strict.scripts": {"en": "Cyrl"}},
    "corpora.filters.strict.max_failed_share": {
        "corpora.filters.strict": {"on_failure": "drop_document", "max_failed_share": 0.3},
    },
    "corpora.custom.mine.format.reader": {"corpora.custom.mine.format": {"reader": "jsonl"}},
    "corpora.custom.mine.splits.all.files": {"corpora.custom.mine.splits.all.files": {"both": "b.tsv"}},
    "discourse.segmenters.tiny.treebank": {"discourse.segmenters.tiny.treebank": "smoke"},
    "discourse.parsers.tiny.treebank": {"discourse.parsers.tiny.treebank": "smoke"},
    "discourse.parsers.tiny.segmenter": {
        "discourse.segmenters.two": {"treebank": "gum"},
        "discourse.parsers.tiny.segmenter": "two",
    },
    "discourse.trees.parsed.segmenter": {
        "discourse.segmenters.two": {"treebank": "gum"},
        "discourse.trees.parsed.segmenter": "two",
    },
    "discourse.trees.parsed.parser": {"discourse.trees.parsed.parser": "chain"},
    "discourse.trees.parsed.gold": {"discourse.trees.own": {"gold": True}},
    "discourse.trees.parsed.files": {"discourse.trees.own.files": {f"own/{part}": "y" for part in TREE_PARTS}},
    "report.metrics": {"report.metrics": ["chrF"]},
    "report.labels": {"report.labels": {"sentence_transformer": "Sentences"}},
    "report.short_labels": {"report.short_labels": {"sentence_transformer": "Sent."}},
    "report.published": {
        "report.published": {"rst_mix": "cross-task/doct"},
        "report.datasets": {"smoke": "zh-en"},
    },
    "report.datasets": {"report.published": {"rst_mix": "cross-task/doct"}, "report.datasets": {"smoke": "zh-en"}},
    "report.tables.table_1.tests": {"report.tables.table_1.tests": ["smoke/pronoun"]},
    "report.tables.table_1.average": {"report.tables.table_1.average": True, "report.tables.table_1.metrics": ["chrF"]},
    "report.tables.table_1.baseline": {"report.tables.table_1.baseline": "rst_mix"},
    "report.cases.table_4.system": {"report.cases.table_4.system": "rst_mix"},
    "report.cases.table_4.baseline": {"report.cases.table_4.baseline": "rst_mix"},
    "report.cases.table_4.test": {
        "datasets.smoke.test.second": ["mine/all"],
        "datasets.smoke.train": ["smoke/train"],
        "datasets.smoke.filters": {},
        "report.cases.table_4.test": "smoke/second",
    },
    "report.figures.figure_2.series": {"report.figures.figure_2.series.Transformer": ["sentence_transformer"]},
    "report.figures.figure_2.x": {"report.figures.figure_2.x": "Size"},
    "report.figures.figure_2.x_values": {"report.figures.figure_2.x_values": {"sentence_transformer": 64}},
    "report.figures.figure_2.metrics": {"report.figures.figure_2.metrics": ["chrF"]},
    "report.figures.figure_2.tests": {
        "report.figures.figure_2.metrics": ["contrastive accuracy"],
        "report.figures.figure_2.tests": ["smoke/pronoun"],
    },
    "report.curves.figure_4.datasets": {
        "report.curves.figure_4.systems": ["rst_own"],
        "report.curves.figure_4.datasets": ["own"],
    },
    "report.curves.figure_4.panels": {"report.curves.figure_4.panels": {"Loss": ["dev_loss"]}},
    "report.claims.c.metric": {"report.claims.c.metric": "chrF"},
    "report.claims.c.test": {
        "report.claims.suite.test": "smoke",
        "report.claims.suite.metric": "s-BLEU",
    },
    "report.claims.c.dataset": {
        "report.claims.c.dataset": "own",
        "report.claims.c.test": "t",
        "report.claims.c.comparisons": ["rst_own > 5"],
    },
    "report.claims.c.phenomenon": {"report.claims.suite.phenomenon": "pronoun"},
    "report.claims.c.distances": {"report.claims.suite.distances": [1]},
    "report.claims.c.kind": {"report.claims.suite.kind": "return"},
    "report.claims.c.step": {"report.claims.history.step": "last"},
    "report.claims.c.first_step_below": {"report.claims.history.first_step_below": 2.5},
    "report.claims.c.comparisons": {"report.claims.c.comparisons": ["rst_mix >= sentence_transformer"]},
    "report.claims.c.control": {"report.claims.c.control": "history"},
}
EXCEPTIONS = {
    "text.pretrained": "requires the files of a published model (test_config_pretrained.py)",
    "decoding.n_shards": "divides a job, and changes no artifact (test_workflow_reruns.py)",
    "datasets.smoke.src_lang": "is refused, since the corpora are in other languages",
    "datasets.smoke.tgt_lang": "is refused, since the corpora are in other languages",
}
"""Keys without a variant here, and the reasons."""
UNSEEN = ("PretrainedInit",)
"""Sections that no system here has. This section requires a published model."""


def located(config):
    """The first section per class in a configuration, with its dotted keys. Models have their presets."""
    systems = [(f"systems.{name}.model", model_settings(config, name)) for name in ("context", "rst_mix")]
    waiting: list[tuple[str, Any]] = [("", config), *systems]
    classes = set()
    for path, value in waiting:  # which grows
        if isinstance(value, BaseModel):
            if type(value) not in classes:
                classes.add(type(value))
                yield path, value
            waiting += [(f"{path}.{name}".lstrip("."), getattr(value, name)) for name in type(value).model_fields]
        elif isinstance(value, dict):
            waiting += [(f"{path}.{name}", row) for name, row in value.items()]


def options(annotation) -> list[Any]:
    """All literals in an annotation, and some values of its other types."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    plain: dict[Any, list[Any]] = {bool: [True, False], int: [1, 2, 30], float: [0.25, 0.5], str: ["other"]}
    return plain.get(annotation, []) + [value for inner in get_args(annotation) for value in options(inner)]


def variants(value, annotation) -> list[Any]:
    """Other values of a key. They can be invalid."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            near = (value + 1, value - 1, value * 2, value / 2)
            return [*(type(value)(number) for number in near), *options(annotation), None]
        case str():
            return [*options(annotation), f"{value}x", None]
        case list():
            return [value[1:], value[::-1], [*value, *value[:1]], *([option] for option in options(annotation)), None]
        case None:
            return options(annotation)
    return []


def put(values, path, value):
    """Nested mappings with another value at some dotted keys."""
    name, _, rest = path.partition(".")
    return {**values, name: put(values.get(name) or {}, rest, value) if rest else value}


def list_keys():
    """All keys with their values and types, except mappings of sections."""
    for path, section in located(load_config(BASE)):
        for name, field in type(section).model_fields.items():
            value = getattr(section, name)
            rows = list(value.values()) if isinstance(value, dict) else [value]
            if not rows or not all(isinstance(row, BaseModel) for row in rows):
                yield f"{path}.{name}".lstrip("."), value, field.annotation


def changed_values(key, value, annotation):
    """Configurations with another value of the key."""
    if key in CHANGES:
        values = BASE
        for path, other in CHANGES[key].items():
            values = put(values, path, other)
        return [values]
    return [put(BASE, key, other) for other in variants(value, annotation) if other != value]


def shown_plan(config):
    """Files, inputs and parameters of all rules."""
    return sorted(
        repr((artifact.files, artifact.input_files(), as_argument(artifact.params), as_argument(artifact.options)))
        for artifact in StudyView(config).artifacts
    )


# A finished study, made up


def score_row(system, seed, value, **keys):
    row = {"dataset": "smoke", "system": system, "seed": seed, "test": "smoke", "n": 40, "signature": "x"}
    return row | {"value": value} | keys


def study_scores(config):
    """The long table with scores for every system, and accuracies over all items, by distance and by kind."""
    rows = []
    for number, system in enumerate(name for name, row in config.systems.items() if row.runs_on("smoke")):
        for seed in (1, 2, 3):
            for index, metric in enumerate(("s-BLEU", "d-BLEU (instances)", "chrF", "TER")):
                rows.append(score_row(system, seed, 20 + 2 * number + index + 0.3 * seed, metric=metric))
            keys = {"test": "pronoun", "metric": "contrastive accuracy", "phenomenon": "pronoun", "chance": 50.0}
            for of_class in ({}, {"distance": 1}, {"distance": 2}, {"kind": "return"}, {"phenomenon": None}):
                value = 60 + number + seed + 5 * len(of_class) + of_class.get("distance", 0)
                rows.append(score_row(system, seed, value, **keys, low=value - 5, high=value + 5) | of_class)
    return pd.DataFrame(rows).reindex(columns=COLUMNS).astype(TYPES)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with texts, translations and training histories."""
    folder = tmp_path_factory.mktemp("study")
    lines = [f"sentence {number} of ten" for number in range(10)]
    for name, texts in (("t.en", lines), ("t.de", [f"Satz {number} von zehn" for number in range(10)])):
        (folder / name).write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    (folder / "t.documents.tsv").write_text("document\tn_sentences\na\t6\nb\t4\n")
    test = {"dataset": "smoke", "test": "smoke", "metric": "s-BLEU", "phenomenon": None, "difference": 1.0}
    test |= {
        "system": "g_transformer_finetuned",
        "sign_p": 0.5,
        "randomization_p": 0.001,
        "n": 99,
        "method": "bootstrap",
    }
    tests = [test | {"baseline": name, "p": p} for name, p in (("sentence_transformer", 0.001), ("rst_mix", 0.02))]
    (folder / "differences.json").write_text(json.dumps({"differences": tests}))
    for shift, system in enumerate(load_config(BASE).systems):
        first = {"instance": 0, "document": "a", "first_sentence": 0, "n_sentences": 6, "aligned": True}
        second = {"instance": 1, "document": "b", "first_sentence": 6, "n_sentences": 4, "aligned": True}
        end = "zehn" if system == "g_transformer_finetuned" else shift
        words = [f"Satz {number} von {end}" for number in range(10)]
        parts = (first | {"sentences": words[:6]}, second | {"sentences": words[6:]})
        (folder / f"{system}.jsonl").write_text("".join(f"{json.dumps(part)}\n" for part in parts), encoding="utf-8")
        for dataset, seed in (("smoke", 1), ("smoke", 2), ("smoke", 3), ("own", 1)):
            run = folder / f"{dataset}/runs/{system}/seed{seed}"
            run.mkdir(parents=True)
            values = "".join(
                f"{step},{4 - step / 10 - shift / 9},{step / 7},{step / 5 + shift}\n" for step in (2, 4, 6)
            )
            header = "step,dev_loss,entropy_cross_group,entropy_cross_global\n"
            (run / "history.csv").write_text(header + values + f"8,{3.6 - shift / 9},1,1\n")
    return folder


def write_contents(figure, file, *, format, **_):
    """Figure contents instead of a picture."""
    if format == "svg":
        for axes in figure.axes:
            ticks = [tick.get_text() for tick in axes.get_xticklabels()]
            file.write(f"{axes.get_title()} {axes.get_xlabel()} {axes.get_ylabel()} {axes.get_xscale()} {ticks}")
            file.writelines(
                f"{line.get_label()} {line.get_color()} {line.get_xydata().tolist()}" for line in axes.lines
            )


def shown_report(config, folder):
    """The report on the artificial scores, as text and pictures."""
    report = config.report
    systems = [name for name, row in config.systems.items() if row.datasets == ["smoke"]]
    runs = [f"smoke/runs/{name}/seed{seed}" for name in systems for seed in (1, 2, 3)] + ["own/runs/rst_own/seed1"]
    histories = [folder / run / "history.csv" for run in runs]
    files = ReportFiles(histories=histories, differences=[folder / "differences.json"])
    facts = StudyFacts(paper_columns={name: paper_columns(config, name) for name in config.systems})
    scores = study_scores(config)
    page = build_report(scores, report, files=files, study=facts)
    tables = [*page.tables, claims_table(scores, read_histories(histories), report)]
    for name, layout in report.cases.items():
        systems = {key: folder / f"{getattr(layout, key)}.jsonl" for key in ("system", "baseline")}
        values = choose_cases(layout, report, prefix=folder / "t", src_lang="en", tgt_lang="de", **systems)
        tables.append(case_table(name, values, report))
    texts = [page.title, *page.findings, *(picture.title + picture.caption + picture.svg for picture in page.pictures)]
    for table in filter(None, tables):
        texts += [table.key, to_text(table), to_latex(table), to_csv(table)]
    return texts


def shown(config, folder, *, is_report):
    # The two settings of the reader only change its own page. tests/report/test_reader.py reads it.
    return shown_report(config, folder) if is_report else shown_plan(config)


def without_effect(key, value, annotation, folder, base):
    """True if all other values of a key are refused or change nothing, and the last refusal."""
    refusal = "no other value"
    for values in changed_values(key, value, annotation):
        try:
            config = load_config(values)
        except UserError as error:
            refusal = str(error)
            continue
        is_report = key.startswith("report.") and not key.startswith("report.reader.")
        if shown(config, folder, is_report=is_report) != base[is_report]:
            return None
        refusal = "nothing changed"
    return refusal


@pytest.mark.slow
def test_another_value_of_each_key_changes_something(study, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", write_contents)
    config = load_config(BASE)
    base = {is_report: shown(config, study, is_report=is_report) for is_report in (True, False)}
    idle = {key: problem for key, *kind in list_keys() if (problem := without_effect(key, *kind, study, base))}
    assert set(idle) == set(EXCEPTIONS), idle
    assert "nothing changed" not in idle.values()


@pytest.mark.slow
def test_all_sections_have_a_row_here():
    """File formats are passed to their commands as a whole, and tests/corpora reads all of them."""
    seen = {type(section) for _, section in located(load_config(BASE))}
    unseen = {cls for _, cls in sections(Config) if cls not in seen and not issubclass(cls, CorpusFormat)}
    assert {cls.__name__ for cls in unseen} == set(UNSEEN)
