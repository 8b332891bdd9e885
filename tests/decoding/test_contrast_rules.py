"""Rules for comparing the candidates in contrastive test sets."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from architectures import slow_but
from core_fixtures import DOCUMENTS, make_batch, translate
from plain_scores import untrained

from docmt.cli.main import main
from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer, score_suite, with_own_context
from docmt.decoding.settings import ContrastScore, DecodingSettings
from docmt.decoding.translation import Translator
from docmt.files import read_json, write_jsonl
from docmt.instances.storage import load_instances
from docmt.models.model_file import load_model, save_model
from docmt.training.loss import LossModule

ARCHITECTURES = ["g_transformer", "document_transformer", "sentence_transformer"]
TARGETS = [[translate(sentence) for sentence in document] for document in DOCUMENTS]
PAIRS = [*zip(DOCUMENTS, TARGETS, strict=True), *zip(DOCUMENTS, DOCUMENTS, strict=True)]


def batch_of(trained, src, tgt):
    """A batch with a single pair."""
    sides = [[trained.encode(sentence, side) for sentence in text] for side, text in (("src", src), ("tgt", tgt))]
    return make_batch(trained.model.settings, [tuple(sides)])


def scores(trained, candidates, rule="log_probability"):
    return TargetScorer(trained, DecodingSettings(), rule=rule).score(candidates)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_per_token_divides_by_the_labels(study_files, architecture):
    trained = untrained(study_files, architecture)
    candidates = [Candidate(*pair) for pair in PAIRS]
    n_labels = [len(batch_of(trained, *pair).tgt_labels_N) for pair in PAIRS]
    expected = [score / n for score, n in zip(scores(trained, candidates), n_labels, strict=True)]
    assert scores(trained, candidates, "per_token") == pytest.approx(expected, rel=1e-6)


def test_candidates_with_equal_subwords_are_counted(study_files, caplog):
    trained = untrained(study_files, "g_transformer")
    items = [
        ContrastiveItem("a", "p", ("the dog",), (("Ωμ",), ("Жц",)), 0),
        ContrastiveItem("b", "p", ("the dog",), (("das Tier",), ("Ωμ",), ("Жц",)), 0),
    ]
    score_suite(items, TargetScorer(trained, DecodingSettings()))
    assert "1 of 2 items: another candidate has the same subwords as the correct one" in caplog.text


def test_missing_trees_are_a_warning(study_files, caplog, tmp_path, capsys):
    items = [ContrastiveItem("a", "p", ("the dog",), (("das Tier",), ("das Haus",)), 0)]
    for architecture in ("g_transformer", "rst_mix"):
        assert "reads discourse trees" not in caplog.text
        trained = untrained(study_files, architecture)
        score_suite(items, TargetScorer(trained, DecodingSettings()))
    assert "the model reads discourse trees, but there are none" in caplog.text
    caplog.clear()
    instances = load_instances(study_files.instances("documents"))
    Translator(trained, DecodingSettings(beam_size=1)).translate_instances(instances, [0])
    assert "the model reads discourse trees, but there are none" in caplog.text
    model, suite, out = (str(tmp_path / name) for name in ("model.pt", "suite.jsonl", "out.jsonl"))
    save_model(Path(model), trained)
    write_jsonl(Path(suite), [{"id": "a", "phenomenon": "p", "src": ["the dog"], "expected": "Tier"}])
    assert main(["decode", "translate-suite", "--model", model, "--suite", suite, "--out", out]) == 0
    assert "the model reads discourse trees, but there are none" in capsys.readouterr().err


@pytest.mark.parametrize("rule", get_args(ContrastScore))
def test_empty_continuation_is_certain(study_files, rule):
    trained = untrained(study_files, "g_transformer")
    assert scores(trained, [Candidate(["the dog"], [""], is_prefix=True)], rule) == [0.0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_label_smoothed_is_the_loss_of_training(study_files, architecture):
    trained = untrained(study_files, architecture)
    loss = LossModule(trained.model.eval(), 0.1)
    with torch.no_grad():
        expected = [-float(loss(batch_of(trained, *pair).prepare("padded"))) for pair in PAIRS]
    log_probabilities = scores(trained, [Candidate(*pair) for pair in PAIRS], "label_smoothed")
    assert log_probabilities == pytest.approx(expected, rel=1e-4)
    assert log_probabilities != pytest.approx(scores(trained, [Candidate(*pair) for pair in PAIRS]), rel=1e-4)


def test_candidates_of_an_item_are_cut_alike(study_files):
    """The longest candidate determines the cut. On its own, the short candidate would be one instance."""
    trained = untrained(study_files, "g_transformer", max_tokens=14)
    src = ("the dog", "a dog")
    short, long = ("das Tier", "ein Tier"), ("das Tier", "ein Tier " * 5)
    assert [
        len(list(TargetScorer(trained, DecodingSettings())._split(0, Candidate(src, tgt)))) for tgt in (short, long)
    ] == [1, 2]
    (row,) = score_suite([ContrastiveItem("a", "p", src, (short, long), 0)], TargetScorer(trained, DecodingSettings()))
    alone = [sum(scores(trained, [Candidate(src[i : i + 1], tgt[i : i + 1]) for i in (0, 1)])) for tgt in (short, long)]
    assert row["scores"] == pytest.approx(alone, rel=1e-5)
    assert row["scores"][0] != pytest.approx(scores(trained, [Candidate(src, short)])[0], rel=1e-3)


@pytest.mark.parametrize("architecture", slow_but(("g_transformer",), ARCHITECTURES))
def test_own_context_is_what_the_model_translates(overfitted, architecture):
    trained = load_model(overfitted(architecture))
    src, tgt = DOCUMENTS[0], TARGETS[0]
    wrong = ("Haus", "Haus")
    item = ContrastiveItem("a", "p", tuple(src), ((*wrong, tgt[2]), (*wrong, "Haus")), 0)
    assert item.sentence == 2
    translator = Translator(trained, DecodingSettings())
    (new_item,) = with_own_context([item], translator)
    assert [candidate[2] for candidate in new_item.candidates] == [tgt[2], "Haus"]
    # A free model translates the context by itself, which it has not learned by heart.
    translations = tgt[:2] if translator.is_aligned else translator.translate_documents([src[:2]])[0]
    assert all(candidate[:2] == tuple(translations) for candidate in new_item.candidates)
    assert tuple(translations) != wrong


def test_an_item_without_context_stays_as_it_is(overfitted):
    item = ContrastiveItem("a", "p", ("a dog",), (("ein Tier",), ("ein Haus",)), 0)
    for architecture in ("g_transformer", "document_transformer"):
        assert with_own_context([item], Translator(load_model(overfitted(architecture)), DecodingSettings())) == [item]


def test_commands_name_the_rules_and_score_in_float32(overfitted, tmp_path):
    suite, out, rows = (tmp_path / name for name in ("t.jsonl", "suite_t.json", "rows.json"))
    items = [
        {"id": f"i{n}", "phenomenon": "p", "src": src, "candidates": [tgt, src], "correct": 0}
        for n, (src, tgt) in enumerate(zip(DOCUMENTS, TARGETS, strict=True))
    ]
    write_jsonl(suite, items)
    outputs = {}
    for precision in ("float32", "bfloat16"):
        options = ["--model", str(overfitted("g_transformer")), "--suite", str(suite), "--out", str(out)]
        options += ["--settings", f'{{"precision": "{precision}"}}', "--score", "per_token", "--target-context", "own"]
        assert main(["decode", "score-candidates", *options]) == 0
        outputs[precision] = read_json(out)["items"]
    assert outputs["float32"] == outputs["bfloat16"]
    run = ["--src-lang", "en", "--tgt-lang", "de", "--dataset", "d", "--system", "s", "--seed", "1", "--out", str(rows)]
    options = ["--outputs", str(out), "--suites", str(suite), "--settings", '{"contrast": {"ties": "first"}}', *run]
    assert main(["evaluate", "run", *options]) == 0
    (row,) = read_json(rows)["scores"]
    assert row["value"] == 100.0
    assert row["signature"] == (
        "the right candidate is the first of those that score highest|score:log probability of the whole target per "
        "token|target context:the system's own|interval:Wilson 95 %"
    )
