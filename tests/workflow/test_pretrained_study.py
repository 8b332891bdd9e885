"""A study with the text and model of a published model, from the catalog to the report."""

import csv
import json

import pytest
import yaml
from core_fixtures import DOCUMENTS
from core_fixtures import translate as translate_words
from published_models import HEADS, INNER, LAYERS, WIDTH, write_text, write_weights
from studies import read_jobs, snakemake

from docmt.models.model_file import load_model
from docmt.models.published.catalog import study_folder
from docmt.text.published_text import PublishedText

pytest.importorskip("sentencepiece")

NAME = "opus-mt-en-de"
SIZE = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "width": WIDTH, "heads": HEADS, "feed_forward_width": INNER}
MODEL = {"size": "opus_mt", "model": {**SIZE, "dropout": 0.0}, "instances": "documents", "recipe": "finetune"}
STUDY = {
    "corpora": {
        "mirror": "mirror",
        "custom": {
            "mine": {
                "languages": ["en", "de"],
                "format": {"reader": "blank_lines"},
                "splits": {
                    name: {"files": {"en": f"{name}.en", "de": f"{name}.de"}} for name in ("train", "dev", "test")
                },
            }
        },
    },
    "text": {"tokenization": "sentencepiece", "truecase": False, "normalize": True, "pretrained": NAME},
    "instances": {"documents": {"max_tokens": 64}, "windows": {"max_sentences": 3}},
    "training": {
        "finetune": {
            "init_new_parameters": "zero",
            "learning_rate": 5.0e-3,
            "pretrained_learning_rate": 5.0e-3,
            "warmup_steps": 20,
            "max_batch_tokens": 256,
            "max_steps": 120,
            "validate_every_steps": 60,
            "label_smoothing": 0.0,
            "word_dropout": 0.0,
        }
    },
    "decoding": {"beam_size": 1},
    "evaluation": {"metrics": ["s-BLEU", "chrF"]},
    "datasets": {
        "own": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": ["mine/train"],
            "dev": ["mine/dev"],
            "test": {"seen": ["mine/test"]},
        }
    },
    "systems": {
        "g_transformer": {**MODEL, "architecture": "g_transformer", "init": {"pretrained": NAME}},
        "windows": {"instances": "windows", "init": {"pretrained": NAME}, "decoding": {"context": "joined"}},
    },
}


@pytest.fixture
def folder(tmp_path):
    """A study folder, with a mirror that contains a published model, and user text."""
    published = tmp_path / "mirror/models" / NAME
    published.mkdir(parents=True)
    symbols, _ = write_text(published, "marian")
    write_weights(published, "marian", len(symbols))
    for lang, side in (("en", str), ("de", translate_words)):
        text = "\n\n".join("\n".join(map(side, document)) for document in DOCUMENTS)
        for split in ("train", "dev", "test"):
            (tmp_path / f"{split}.{lang}").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_published_model_is_fine_tuned(folder):
    config = folder / "study.yaml"
    done = snakemake(folder, "--cores", "2", "--show-failed-logs", config=config)
    assert done.returncode == 0, done.stderr[-5000:]
    run = folder / "results/own/runs/g_transformer/seed1"
    trained = load_model(run / "model.pt")
    published = PublishedText.read(folder / study_folder(NAME))
    assert trained.vocabulary.symbols == published.vocabulary(("en", "de")).symbols
    assert trained.model.settings.form.zero_start
    with (folder / "results/report/scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    scores = {(row["system"], row["metric"]): row for row in rows}
    assert float(scores["g_transformer", "s-BLEU"]["value"]) > 50, "it has learned the text by heart"
    counts = "9 windows of joined sentences, with translations re-aligned to 20 sentences"
    assert scores["windows", "s-BLEU"]["signature"].endswith(f"warning:{counts}")
    assert counts in (folder / "results/report/report.html").read_text(encoding="utf-8")
    assert load_model(folder / "results/own/runs/windows/seed1/model.pt").limits.max_sentences == 3
    record = json.loads((folder / study_folder(NAME) / "fetched.json").read_text(encoding="utf-8"))
    assert set(record.values()) == {"mirror"}
    noted = (folder / study_folder(NAME) / ".checksums").iterdir()
    assert {file.name.removesuffix(".sha256") for file in noted} >= set(record)
    planned = set(read_jobs(snakemake(folder, "--dry-run", config=config).stdout))
    assert not planned
