"""Text for cross-task pre-training in the workflow, from corpora to instances."""

import pytest
import yaml
from studies import SMOKE, read_jobs, snakemake

from docmt.files import read_json
from docmt.instances.storage import load_instances

CHANGES = {
    "corpora": {
        "custom": {
            "novels": {
                "languages": ["en"],
                "format": {"reader": "blank_lines"},
                "splits": {"all": {"files": {"en": "novels.txt"}}},
            }
        }
    },
    "datasets": {"smoke": {"sentences": ["smoke/train"], "monolingual": ["novels/all", "smoke/train"]}},
    "instances": {"documents": {"max_sentences": 3}},
}
FOLDER = "results/smoke/instances/documents"
TARGETS = [f"{FOLDER}/monolingual/manifest.json", f"{FOLDER}/sentences/manifest.json"]


@pytest.fixture
def configs(tmp_path):
    (tmp_path / "novels.txt").write_text("The dog sees the cat.\nIt barks.\n\nOne more.\n", encoding="utf-8")
    changes = tmp_path / "changes.yaml"
    changes.write_text(yaml.safe_dump(CHANGES), encoding="utf-8")
    return [SMOKE, changes]


@pytest.mark.slow
def test_only_what_is_needed_is_planned(configs, tmp_path):
    done = snakemake(tmp_path, "--dry-run", *TARGETS, config=configs)
    assert done.returncode == 0, done.stderr
    jobs = {frozenset(job.split()) for job in read_jobs(done.stdout + done.stderr)}
    expected = [
        "controlled_generate smoke",
        "read_monolingual novels en all",
        "corpora_combine en de train",
        "corpora_combine en de sentences",
        "combine_monolingual en monolingual",
        *(f"learn_truecaser {lang}" for lang in ("en", "de")),
        *(
            f"{rule} {text}"
            for rule in ("tokenize", "truecase", "apply_bpe")
            for text in ("train en", "train de", "sentences en", "sentences de", "monolingual en")
        ),
        "learn_bpe",
        "learn_vocabulary",
        "instances_build documents sentences",
        "instances_build documents monolingual",
    ]
    assert jobs == {frozenset(job.split()) for job in expected}


@pytest.mark.slow
def test_text_for_pretraining_is_made(configs, tmp_path):
    done = snakemake(tmp_path, "--cores", "2", "--show-failed-logs", *TARGETS, config=configs)
    assert done.returncode == 0, done.stderr[-5000:]
    vocabulary = (tmp_path / "results/smoke/text/vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert vocabulary[6:10] == ["[MASK1]\t0", "[MASK2]\t0", "<en>\t0", "<de>\t0"]
    monolingual, sentences = (load_instances(tmp_path / target) for target in TARGETS)
    assert monolingual.n_sentences().max() == 3
    assert monolingual.manifest["counts"]["documents"] == 42
    assert len(sentences) == len(sentences.src_offsets) - 1
    counts = read_json(tmp_path / "results/smoke/corpora/en/monolingual.counts.json")
    assert list(counts["inputs"]) == ["smoke.train", "novels.all"]
