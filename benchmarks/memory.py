"""Measure the peak memory of text stages on generated text, for different numbers of sentence pairs.

    python benchmarks/memory.py --pairs 200000 500000 2000000

Every stage is a separate `docmt` command. The text has sentences with 4 to 12 words (a Zipf distribution over 20,000)
in documents with 20 sentences. Words only contain letters, so every stage can read them. The table shows the peak
resident memory of the largest process for the different numbers of pairs, and the slope between the smallest and the
largest number.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

LANGUAGES = ("en", "de")
N_WORDS = 20_000
SENTENCES_PER_DOCUMENT = 20
BLOCK = 10_000
TEST_PAIRS = 2_000


def generate(folder: Path, n_pairs: int) -> None:
    """Write `en-de/train` with `n_pairs` pairs, `en-de/test` with 2,000, training trees and a vocabulary."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    generator = np.random.default_rng(1)
    words = np.unique(["".join(generator.choice(letters, generator.integers(2, 9))) for _ in range(N_WORDS)])
    generator.shuffle(words)
    for split, n in (("train", n_pairs), ("test", TEST_PAIRS)):
        prefix = folder / "corpus" / "-".join(LANGUAGES) / split
        prefix.parent.mkdir(parents=True, exist_ok=True)
        for lang in LANGUAGES:
            with open(f"{prefix}.{lang}", "w", encoding="utf-8") as file:
                file.writelines(_sentences(generator, words, n))
        with open(f"{prefix}.documents.tsv", "w", encoding="utf-8") as file:
            file.write("document\tn_sentences\n")
            for first in range(0, n, SENTENCES_PER_DOCUMENT):
                file.write(f"{_name(first)}\t{min(SENTENCES_PER_DOCUMENT, n - first)}\n")
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def _name(first: int) -> str:
    return f"document-{first // SENTENCES_PER_DOCUMENT:08d}"


def _sentences(generator: np.random.Generator, words: np.ndarray, n: int) -> Iterator[str]:
    """Sentences with a capitalized first word."""
    shares = 1 / np.arange(1, len(words) + 1)
    limits = np.cumsum(shares / shares.sum())
    for first in range(0, n, BLOCK):
        lengths = generator.integers(4, 13, min(BLOCK, n - first))
        sample = words[np.searchsorted(limits, generator.random(lengths.sum()) * limits[-1])].tolist()
        start = 0
        for length in lengths.tolist():
            yield " ".join(sample[start : start + length]).capitalize() + "\n"
            start += length


def write_trees(folder: Path) -> None:
    """Write a tree per training document, with an EDU per sentence that depends on the previous EDU."""
    prefix = folder / "corpus" / "-".join(LANGUAGES) / "train"
    with (
        open(f"{prefix}.en", encoding="utf-8") as text,
        open(f"{prefix}.documents.tsv", encoding="utf-8") as index,
        open(folder / "train.discourse.jsonl", "w", encoding="utf-8") as file,
    ):
        next(index)
        for row in index:
            name, length = row.rstrip("\n").split("\t")
            sentences = [next(text).split() for _ in range(int(length))]
            edus = [{"sentence": i, "start": 0, "end": len(words)} for i, words in enumerate(sentences)]
            arcs = [{"head": i - 1, "relation": "elaboration"} for i in range(len(sentences))]
            value = {"document": name, "sentences": sentences, "edus": edus, "tree": None, "dependency": arcs}
            file.write(json.dumps(value) + "\n")


def stages(folder: Path, *, jobs: int) -> dict[str, list[str]]:
    """Commands of the stages, without `docmt`."""
    train, test = (folder / "corpus" / "-".join(LANGUAGES) / split for split in ("train", "test"))
    out, vocabulary = folder / "out" / "made", folder / "vocabulary.txt"
    texts = f"{train}.en {train}.de"
    pair = "--src-lang en --tgt-lang de"
    in_processes = f"--jobs {jobs}" if jobs > 1 else ""
    build = f"instances build --documents {train}.documents.tsv --vocabulary {vocabulary} --out {out}"
    one_each = '{"max_sentences":1}'
    commands = {
        "combine": f"corpora combine --inputs {train} {test} --languages en de --out {out}",
        "overlap": f"corpora count-overlap --train {train} --tests {test} {pair} --out {out}",
        "tokenize": f"text tokenize --lang en --input {train}.en {in_processes} --out {out}",
        "learn truecaser": f"text learn-truecaser --input {train}.en {in_processes} --out {out}",
        "truecase": f"text truecase --model {folder}/truecaser.json --input {train}.en {in_processes} --out {out}",
        "learn BPE": f'text learn-bpe --settings {{"bpe_merges":200}} --inputs {texts} --out {out}',
        "apply BPE": f"text apply-bpe --codes {folder}/bpe.codes --input {train}.en {in_processes} --out {out}",
        "learn vocabulary": f"text learn-vocabulary --inputs {texts} --tags en de --out {out}",
        "instances": f"{build} --texts {texts}",
        "instances of a sentence": f"{build} --texts {texts} --settings {one_each}",
        "instances, part left out": f'{build} --texts {texts} --settings {{"min_document_tokens":200,"subset":5000}}',
        "instances of one language": f"{build} --texts {train}.en",
        "instances with trees": f"{build} --texts {texts} --discourse {folder}/train.discourse.jsonl",
    }
    return {name: command.split() for name, command in commands.items()}


def docmt(arguments: list[str]) -> tuple[float, float]:
    """Run a command. Returns its peak memory in MiB and its time in seconds."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen([sys.executable, "-m", "docmt", *arguments], stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            messages.seek(0)
            raise SystemExit(f"docmt {' '.join(arguments)}: failed\n{messages.read().decode()}")
    return usage.ru_maxrss / 1024, time.monotonic() - started


def measure(n_pairs: int, names: list[str], *, jobs: int, folder: Path) -> dict[str, float]:
    """Peak memory of some stages, in MiB."""
    generate(folder, n_pairs)
    test = folder / "corpus" / "-".join(LANGUAGES) / "test"
    docmt(f"text learn-truecaser --input {test}.en --out {folder}/truecaser.json".split())
    docmt(f'text learn-bpe --settings {{"bpe_merges":200}} --inputs {test}.en --out {folder}/bpe.codes'.split())
    docmt(f"text learn-vocabulary --inputs {folder}/words.txt --tags en de --out {folder}/vocabulary.txt".split())
    if "instances with trees" in names:
        write_trees(folder)
    peaks = {}
    for name in names:
        peaks[name], seconds = docmt(stages(folder, jobs=jobs)[name])
        print(f"{n_pairs:,} pairs: {name}: {peaks[name]:.0f} MiB, {seconds:.0f} s", file=sys.stderr, flush=True)
        shutil.rmtree(folder / "out")
    return peaks


def main() -> None:
    """Print a Markdown table."""
    names = list(stages(Path(), jobs=1))
    parser = argparse.ArgumentParser(description="peak memory of the stages of text", allow_abbrev=False)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200_000, 500_000, 2_000_000], help="sizes of the text")
    parser.add_argument("--stages", nargs="+", choices=names, default=names, metavar="STAGE", help=", ".join(names))
    parser.add_argument("--jobs", type=int, default=2, help="processes of the stages that work line by line")
    options = parser.parse_args()
    sizes = sorted(options.pairs)
    peaks = {}
    for n_pairs in sizes:
        with tempfile.TemporaryDirectory() as folder:
            peaks[n_pairs] = measure(n_pairs, options.stages, jobs=options.jobs, folder=Path(folder))
    print("| stage |", " | ".join(f"{n:,} pairs" for n in sizes), "| bytes per pair |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for name in options.stages:
        row = [peaks[n][name] for n in sizes]
        slope = (row[-1] - row[0]) * 2**20 / max(1, sizes[-1] - sizes[0])
        print(f"| {name} |", " | ".join(f"{peak:.0f}" for peak in row), f"| {slope:.0f} |")


if __name__ == "__main__":
    main()
