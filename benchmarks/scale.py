"""Measure time and peak memory for large studies and documents.

    python benchmarks/scale.py --study FOLDER

FOLDER is the finished demo, with the scores, parser and model for the measurements. The rows are a plan with thousands
of jobs, a report with 1,000 runs, segmentation and parsing of a document with 40,000 sentences, and translation of a
sentence with 20,000 words.
"""

import argparse
import csv
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
RUN = "results/controlled/runs/rst_mix/seed1"


def plan(study: Path, folder: Path, size: int) -> list[str]:
    """A dry run of the smoke study with many seeds."""
    settings = yaml.safe_load((ROOT / "config/examples/smoke.yaml").read_text(encoding="utf-8"))
    settings["seeds"] = list(range(size))
    (folder / "many.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return ["snakemake", "--snakefile", str(ROOT / "Snakefile"), "--configfile", "many.yaml", "--dry-run", "--quiet"]


def report(study: Path, folder: Path, size: int) -> list[str]:
    """A report with many seeds that have the same scores and training history."""
    with open(study / "results/report/scores.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == "rst_mix"]
    with open(folder / "scores.csv", "w", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(row | {"seed": seed} for seed, row in itertools.product(range(size), rows))
    histories = [f"controlled/runs/rst_mix/seed{seed}/history.csv" for seed in range(size)]
    for history in histories:
        (folder / history).parent.mkdir(parents=True)
        shutil.copy(study / RUN / "history.csv", folder / history)
    return ["docmt", "report", "render", "--scores", "scores.csv", "--histories", *histories, "--out", "report"]


def parse(study: Path, folder: Path, size: int) -> list[str]:
    """A document with the requested number of sentences from the demo's training text."""
    text = (study / "results/corpora/controlled/en-de/train.en").read_text(encoding="utf-8").split("\n")
    (folder / "document.txt").write_text("\n".join(text[:size]) + "\n", encoding="utf-8")
    models = (study / f"results/discourse/{kind}s/controlled/{kind}.pt" for kind in ("segmenter", "parser"))
    segmenter, parser = map(str, models)
    command = ["docmt", "discourse", "annotate", "--segmenter", segmenter, "--parser", parser, "--lang", "en"]
    return [*command, "--text", "document.txt", "--out", "document.jsonl"]


def translate(study: Path, folder: Path, size: int) -> list[str]:
    """A sentence with the requested number of words from the demo's training text."""
    words = (study / "results/corpora/controlled/en-de/train.en").read_text(encoding="utf-8").split()
    (folder / "sentence.txt").write_text(" ".join(words[:size]) + "\n", encoding="utf-8")
    model = str(study / "results/controlled/runs/sentence_transformer/seed1/model.pt")
    return ["docmt", "translate", "--model", model, "sentence.txt", "--out", "sentence.de"]


ROWS = {
    "plan a study with N seeds": (plan, 200),
    "report of N runs": (report, 1000),
    "parse a document of N sentences": (parse, 40_000),
    "translate a sentence of N words": (translate, 20_000),
}


def measure(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Wall-clock time and CPU time in seconds, and peak memory in MiB, of a command."""
    started = time.monotonic()
    with open(folder / "messages", "wb") as messages:
        process = subprocess.Popen(command, cwd=folder, stdout=messages, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: failed\n{(folder / 'messages').read_text(encoding='utf-8')}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description="time and memory of large studies and documents", allow_abbrev=False)
    parser.add_argument("--study", type=Path, required=True, help="folder of the finished demo")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    options = parser.parse_args()
    print("| what | N | wall clock, s | CPU, s | peak memory, MiB |\n|---|---:|---:|---:|---:|")
    for name in options.rows:
        prepare, size = ROWS[name]
        with tempfile.TemporaryDirectory() as folder:
            numbers = measure(prepare(options.study.resolve(), Path(folder), size), Path(folder))
        print(f"| {name} | {size:,} |", " | ".join(f"{number:.0f}" for number in numbers), "|", flush=True)


if __name__ == "__main__":
    main()
