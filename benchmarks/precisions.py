"""Measure the effect of decoding precision on a CPU: BLEU, changed sentences and contrastive accuracy.

Usage, after `make demo`:

    python benchmarks/precisions.py

docmt scores existing translations in float32, even if it translates in int8. Here, contrastive accuracy is also
measured with int8 products, as a second measure of their effect.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU

from docmt.corpora.suite_items import read_suite
from docmt.decoding.contrastive_scoring import TargetScorer, score_suite
from docmt.decoding.decoding_model import prepare_search
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.evaluation.contrastive_accuracy import is_right
from docmt.files import read_lines
from docmt.instances.storage import InstanceSet, load_instances
from docmt.models.model_file import TrainedModel, load_model

STUDY = Path("results/controlled")
PRECISIONS = ("float32", "bfloat16", "int8")


def find_instances(root: Path, text: str, trained: TrainedModel) -> InstanceSet:
    """Instances of a text, cut like the model's training instances, with trees for models that read trees."""
    if trained.model.settings.needs_trees:
        return load_instances(root / "documents_with_trees" / text)
    kind = "sentences" if trained.model.settings.decodes_sentences_alone else "documents"
    return load_instances(root / kind / text)


def translate(translator: Translator, instances: InstanceSet) -> tuple[list[str], float]:
    """One text per instance, and CPU seconds."""
    started = time.process_time()
    rows = translator.translate_instances(instances)
    return [" ".join(filter(None, row["sentences"])) for row in rows], time.process_time() - started


def measure(trained: TrainedModel, instances: InstanceSet, references: list[str], suites: Path) -> list[dict]:
    """A row per precision."""
    joined = [" ".join(references[first:last]) for first, last in itertools.pairwise(instances.instances.tolist())]
    rows, plain = [], []
    for precision in PRECISIONS:
        settings = DecodingSettings.load({"precision": precision}, where="decoding")
        texts, seconds = translate(Translator(trained, settings), instances)
        plain = plain or texts
        bleu = BLEU().corpus_score(texts, [joined])
        row = {"precision": precision, "bleu": round(bleu.score, 2), "seconds": round(seconds, 1)}
        row["changed"] = f"{sum(a != b for a, b in zip(plain, texts, strict=True))} of {len(texts)}"
        if not trained.model.settings.needs_trees and trained.model.settings.target_stream == "aligned":
            scorer = TargetScorer(trained, settings)
            scorer.model = prepare_search(trained.model, settings, "cpu").transformer
            for suite in sorted(suites.glob("*.jsonl")):
                items = read_suite(suite)
                scores = {row["id"]: row["scores"] for row in score_suite(items, scorer)}
                row[suite.stem] = round(100 * float(np.mean([is_right(item, scores) for item in items])), 2)
        rows.append(row)
    return rows


def main() -> None:
    """Print a JSON object per model and precision."""
    parser = argparse.ArgumentParser(description="What the precision of decoding costs, for trained models.")
    parser.add_argument("--models", nargs="+", type=Path, default=sorted(STUDY.glob("runs/*/seed1/model.pt")))
    parser.add_argument("--instances", type=Path, default=STUDY / "instances", help="instances by kind and text")
    parser.add_argument("--text", default="test_controlled", help="name of the test set's instances")
    corpus = Path("results/corpora/controlled/en-de")
    parser.add_argument("--corpus", type=Path, default=corpus, help="folder with test.LANG and suites")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if not options.models:
        print(f"skipped: no models in {STUDY}; run the demo first, or give --models")
    for path in options.models:
        trained = load_model(path)
        references = read_lines(options.corpus / f"test.{trained.pipeline.tgt_lang}")
        instances = find_instances(options.instances, options.text, trained)
        for row in measure(trained, instances, references, options.corpus / "suites"):
            print(json.dumps({"model": path.parent.parent.name} | row), flush=True)


if __name__ == "__main__":
    main()
