"""Scores from other programs: read from files, averaged, and tested against a baseline."""

import json

import numpy as np
import pytest
from evaluation_fixtures import RUN, by_metric, evaluate, make_hypotheses, write_hypotheses, write_lines, write_split

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.segment_scores import read_segment_scores
from docmt.evaluation.significance import N_SAMPLES, SEED

INDEX = DocumentIndex(("a", "b"), (3, 2))
LINES = [f"Satz {number} ist kurz." for number in range(12)]
SETTINGS = {"metrics": ["s-BLEU"]}


@pytest.mark.parametrize(
    ("lines", "unit", "values"),
    [
        (["1", "2.5", " -3e-1 ", "0", "+7"], "sentences", [1, 2.5, -0.3, 0, 7]),
        (["0.5", "0.25"], "documents", [0.5, 0.25]),
    ],
)
def test_number_of_lines_determines_segments(tmp_path, lines, unit, values):
    scores = read_segment_scores(write_lines(tmp_path / "x.txt", lines), INDEX)
    assert (scores.unit, scores.values.tolist()) == (unit, values)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1"] * 4, "x.txt: 4 lines, but the test set has 5 sentences in 2 documents: write one score for each sent"),
        ([], "x.txt: 0 lines"),
        (["1", "2", "gut", "4", "5"], "x.txt: line 3: 'gut' is not a finite number"),
        (["1", "", "3", "4", "5"], "x.txt: line 2: '' is not a finite number"),
        (["1", "1_0"], "x.txt: line 2: '1_0' is not a finite number"),
        (["nan", "2"], "x.txt: line 1: 'nan' is not a finite number"),
        (["1", "-Infinity"], "x.txt: line 2: '-Infinity' is not a finite number"),
        (["1", "1e999"], "x.txt: line 2: '1e999' is not a finite number"),
        (["1 2", "3"], "x.txt: line 1: '1 2' is not a finite number"),
    ],
)
def test_other_files_are_refused(tmp_path, lines, message):
    with pytest.raises(UserError) as caught:
        read_segment_scores(write_lines(tmp_path / "x.txt", lines), INDEX)
    assert message in str(caught.value)


@pytest.fixture
def text(tmp_path):
    return write_split(tmp_path, {"a": 5, "b": 7}, en=LINES, de=LINES)


def write_output(folder, scores, *, metric="MetricX ↓"):
    """Write translations and their scores, and return the options for both."""
    folder.mkdir(exist_ok=True)
    output = write_hypotheses(folder / "test_t.jsonl", make_hypotheses(LINES, (5, 7), documents="ab"))
    return output, f"t/{metric}={write_lines(folder / 'scores=1.txt', scores)}"


@pytest.mark.parametrize(("scores", "segments"), [(range(12), "sentences"), ([3, 8], "documents")])
def test_external_scores_become_rows(tmp_path, text, scores, segments):
    output, external = write_output(tmp_path, scores)
    out = tmp_path / "s.json"
    assert evaluate("run", outputs=output, **text, **RUN, external=external, settings=SETTINGS, out=out) == 0
    content = json.loads(out.read_text(encoding="utf-8"))
    row = by_metric(content["scores"])["MetricX ↓"]
    assert (row["value"], row["n"]) == (np.mean([*scores]), len(scores))
    assert row["signature"] == f"from a file|segments:{segments}|mean of segments"
    (inputs,) = content["provenance"]["inputs"]
    assert inputs["scores of MetricX ↓"]["name"] == "scores=1.txt"


def test_difference_is_tested_by_bootstrap(tmp_path, text):
    """Over two seeds of the system and one of the baseline."""
    generator = np.random.default_rng(5)
    runs = [generator.normal(center, 1, 12) for center in (5, 5.5, 4)]
    written = [write_output(tmp_path / str(number), scores) for number, scores in enumerate(runs)]
    outputs, external = zip(*written, strict=True)
    options = {"dataset": "d", "names": ["ours", "base"], "settings": SETTINGS, "out": tmp_path / "o.json"}
    baseline = {"outputs": [*outputs[:2]], "baseline": outputs[2]}
    assert evaluate("difference", **baseline, **text, **options, external=[*external]) == 0
    row = by_metric(json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))["differences"])["MetricX ↓"]
    changes = (runs[0] + runs[1]) / 2 - runs[2]
    assert row["difference"] == pytest.approx(changes.mean())
    drawn = np.random.default_rng(SEED).multinomial(12, [1 / 12] * 12, size=N_SAMPLES) @ changes / 12
    assert row["half_width"] == pytest.approx(1.96 * drawn.std(), rel=0.25)
    assert row["p"] < 0.05
    assert row["n"] == 12


@pytest.mark.parametrize(
    ("external", "message"),
    [
        (["t/X=a.txt", "t/X=b.txt"], "--external t/X: 2 files for 1 outputs: pass one for each output"),
        (["u/X=a.txt"], "--external: u/X: --outputs has no output on this test"),
        (["X=a.txt"], "--external X=a.txt: expected TEST/METRIC=FILE"),
        (["t/X=a.txt"], "a.txt: no such file"),
    ],
)
def test_scores_of_other_outputs_are_refused(tmp_path, text, capsys, external, message):
    output, _ = write_output(tmp_path, [1, 2])
    assert evaluate("run", outputs=output, **text, **RUN, external=external, out=tmp_path / "s.json") == 2
    assert message in capsys.readouterr().err


def test_segments_of_both_systems_must_be_equal(tmp_path, text, capsys):
    outputs, external = zip(*(write_output(tmp_path / str(n), range(n)) for n in (12, 2)), strict=True)
    options = {"dataset": "d", "names": ["a", "b"], "settings": SETTINGS, "out": tmp_path / "o.json"}
    assert evaluate("difference", outputs=outputs[0], baseline=outputs[1], **text, **options, external=[*external]) == 2
    first, second = (tmp_path / n / "test_t.jsonl" for n in ("12", "2"))
    message = (
        f"{tmp_path}/2/scores=1.txt: scores of {second} by 'MetricX ↓' are for 2 documents, but scores of {first} in "
        f"{tmp_path}/12/scores=1.txt are for 12 sentences: write one score for each sentence in both files, or one for"
    )
    assert message in capsys.readouterr().err
