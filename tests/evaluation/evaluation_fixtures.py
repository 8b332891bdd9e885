"""Hypotheses, files of a split, and calls of `docmt evaluate` for tests of evaluation."""

import json
from pathlib import Path

from docmt.cli.main import main
from docmt.evaluation.hypotheses import Hypothesis
from docmt.evaluation.metrics import EvaluationSettings
from docmt.evaluation.scoring import TranslatedTest

REFERENCE = [
    "Der Hund ist müde, und er schläft.",
    "Sie sagte: „Komm her!“",
    "",
    "Das Haus steht am Fluss – seit 1999.",
    "Wir kaufen es vielleicht.",
    "Ende 🙂",
]
RUN = {"dataset": "d", "system": "s", "seed": 3}
LANGUAGES = {"src_lang": "en", "tgt_lang": "de"}


def make_hypotheses(sentences, lengths=(2, 2, 2), *, documents=("a", "a", "b"), aligned=True, **extra):
    """Hypotheses for instances: sentences if they are aligned, otherwise a list of sentences per instance."""
    hypotheses, start = [], 0
    for i, (length, document) in enumerate(zip(lengths, documents, strict=True)):
        part = sentences[start : start + length] if aligned else sentences[i]
        hypotheses.append(
            Hypothesis(
                instance=i,
                document=document,
                first_sentence=start,
                n_sentences=length,
                aligned=aligned,
                sentences=part,
                **extra,
            )
        )
        start += length
    return hypotheses


def make_test(hypotheses, reference=REFERENCE, *more, settings=None, prefix=Path("t"), **options):
    """A translated test, from English to German unless the options specify other languages."""
    values = {"src_lang": "en", "tgt_lang": "de", "more_references": more} | options
    return TranslatedTest(hypotheses, reference, settings or EvaluationSettings(), prefix, **values)


def by_metric(rows):
    return {row["metric"]: row for row in rows}


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_hypotheses(path, hypotheses):
    return write_lines(path, (one.model_dump_json() for one in hypotheses))


def write_split(folder, documents, **sides):
    """Write the split `test_t`: document lengths by name, and text by language. Returns its options."""
    index = ["document\tn_sentences", *(f"{name}\t{length}" for name, length in documents.items())]
    contents = {**sides, "documents.tsv": index}
    texts = [write_lines(folder / f"test_t.{suffix}", lines) for suffix, lines in contents.items()]
    return {"texts": texts, **LANGUAGES}


def evaluate(command, **options):
    """Exit code of a command. Lists are several values, mappings are JSON."""
    words = []
    for name, value in options.items():
        if isinstance(value, dict):
            value = json.dumps(value)
        values = value if isinstance(value, list) else [value]
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return main(["evaluate", command, *words])
