"""Measure how long `docmt` commands take to start: minimum CPU seconds over a few runs, on little data.

The commands read results of the smoke test, which the script runs first (one or two minutes). You can also pass a
folder with these results.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = "results/controlled/runs/sentence_transformer/seed1"
CORPORA, TEXT = "results/controlled/corpora/en-de", "results/controlled/text"
SUITE = "results/corpora/controlled/en-de/suites/pronoun.jsonl"
TEST = " ".join(f"{CORPORA}/test_controlled.{suffix}" for suffix in ("en", "de", "documents.tsv"))
KEYS = "--dataset controlled --system sentence_transformer --seed 1"

IMPORTS = (
    "import torch",
    "import torch, torch._dynamo",  # any optimizer of torch brings its compiler, and so does Fabric
    "import lightning_fabric",
    "import docmt.training.run",
)
COMMANDS = f"""
--version
corpora combine --inputs results/corpora/controlled/en-de/dev --languages en de --out OUT/dev
text tokenize --lang en --input {CORPORA}/dev.en --out OUT/tok
text truecase --model {TEXT}/truecaser.en.json --input {TEXT}/dev.true.en --out OUT/true
text apply-bpe --codes {TEXT}/bpe.codes --input {TEXT}/dev.true.en --out OUT/bpe
instances build --texts {TEXT}/dev.bpe.en {TEXT}/dev.bpe.de --documents {CORPORA}/dev.documents.tsv \
 --vocabulary {TEXT}/vocabulary.txt --settings {{}} --out OUT/instances
instances count --folders a/b/c=results/controlled/instances/sentences/dev --out OUT/statistics.csv
discourse count-trees --files dev=results/corpora/controlled/en-de/dev.discourse.jsonl --out OUT/trees.csv
decode translate --model {RUN}/model.pt --instances results/controlled/instances/sentences/dev --out OUT/dev.jsonl
decode score-candidates --model {RUN}/model.pt --suite {SUITE} --out OUT/suite.json
evaluate run --settings {{"metrics":["s-BLEU"]}} --outputs {RUN}/decoding/test_controlled.jsonl --texts {TEST} \
 --src-lang en --tgt-lang de {KEYS} --out OUT/scores.json
evaluate run --outputs {RUN}/decoding/suite_pronoun.json --suites {SUITE} --src-lang en --tgt-lang de {KEYS} \
 --out OUT/accuracy.json
report collect --scores {RUN}/scores.json --out OUT/scores.csv
"""


def cpu_seconds(words: list[str], folder: Path) -> float:
    """CPU seconds for a run of a Python program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="folder in which the smoke test has been run")
    parser.add_argument("--runs", type=int, default=5, help="runs of each command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.study or Path(temporary)
        if options.study is None:
            smoke = ["--configfile", str(ROOT / "config/examples/smoke.yaml"), "--directory", str(folder)]
            words = [sys.executable, "-m", "snakemake", "--cores", "all", "--snakefile", str(ROOT / "Snakefile")]
            subprocess.run([*words, *smoke], check=True, capture_output=True)
        lines = COMMANDS.strip().replace("OUT", temporary).splitlines()
        programs = [*(["-c", program] for program in IMPORTS), *(["-m", "docmt", *line.split()] for line in lines)]
        for words in programs:
            name = " ".join(words[1:] if words[0] == "-c" else words[2:4])
            print(f"{name:60}{min(cpu_seconds(words, folder) for _ in range(options.runs)):6.2f} s")


if __name__ == "__main__":
    main()
