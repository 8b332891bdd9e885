"""CXMI: the effect of context on a reference's log probability."""

import json

import numpy as np
import pytest
import torch
from core_fixtures import DOCUMENTS, make_study, translate
from evaluation_fixtures import RUN, evaluate, write_lines, write_split
from plain_scores import directly, scorer, untrained

from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate
from docmt.errors import UserError
from docmt.evaluation.cxmi import CXMI, LOG_PROBABILITY, mean_row, score_references, suite_rows
from docmt.models.model_file import load_model
from docmt.text.vocabulary import EOD

TARGETS = [[translate(sentence) for sentence in document] for document in DOCUMENTS]
NAMED = [(f"d{i}", src, tgt) for i, (src, tgt) in enumerate(zip(DOCUMENTS, TARGETS, strict=True))]


def scored(scorer, **options):
    return score_references([name for name, _, _ in NAMED], [Candidate(*rest) for _, *rest in NAMED], scorer, **options)


@pytest.mark.parametrize("max_batch_tokens", [1, 4096])
@pytest.mark.parametrize("alone", [False, True])
def test_sentences_of_aligned_models_sum_to_their_documents(study_files, max_batch_tokens, alone):
    trained = untrained(study_files, "g_transformer")
    candidates = [Candidate(src, tgt) for _, src, tgt in NAMED]
    scores = scorer(trained, max_batch_tokens=max_batch_tokens).score_sentences(candidates, alone=alone)
    assert [len(sums) for sums in scores] == [len(src) for src in DOCUMENTS]
    for sums, src, tgt in zip(scores, DOCUMENTS, TARGETS, strict=True):
        if alone:
            singles = [directly(trained, [one], [other]) for one, other in zip(src, tgt, strict=True)]
            assert sums == pytest.approx(singles, rel=1e-4)
        else:
            assert sums.sum() == pytest.approx(directly(trained, src, tgt), rel=1e-4)


def test_a_free_stream_counts_words_and_ends_only(study_files):
    """A single sentence has `<eod>` as an additional label. In a document, `<s>` comes between sentences."""
    trained = untrained(study_files, "document_transformer")
    src, tgt = DOCUMENTS[0], TARGETS[0]
    (sums,) = scorer(trained).score_sentences([Candidate(src, tgt)])
    assert len(sums) == len(src) > 1
    assert sums.sum() > directly(trained, src, tgt)
    (single,) = scorer(trained).score_sentences([Candidate(src[:1], tgt[:1])])
    assert EOD != 0
    assert single.sum() > directly(trained, src[:1], tgt[:1])


@pytest.mark.parametrize("tags", [(), ("en", "de")])
def test_lone_sentence_has_the_same_labels(tags, tmp_path):
    """The model predicts all symbols with equal probability, so that only the number of labels counts."""
    trained = untrained(make_study(tmp_path, tags=tags), "document_transformer")
    torch.nn.init.zeros_(trained.model.embedding.weight)
    candidates = [Candidate(DOCUMENTS[0], TARGETS[0])]
    within, alone = (scorer(trained).score_sentences(candidates, alone=alone)[0] for alone in (False, True))
    assert within == pytest.approx(alone)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer", "sentence_transformer"])
def test_broken_off_translation_has_no_end(study_files, architecture):
    trained = untrained(study_files, architecture)
    src, tgt = DOCUMENTS[0], TARGETS[0]
    prefix = Candidate(src, tgt, is_prefix=True)
    n_ends = 2 if architecture == "document_transformer" else 1  # `</s>`, and `<eod>` of a free stream
    (log_probability,) = scorer(trained).score([prefix])
    assert log_probability == pytest.approx(directly(trained, src, tgt, n_ends=n_ends), rel=1e-4)
    assert log_probability > directly(trained, src, tgt)
    whole, sums = scorer(trained).score_sentences([Candidate(src, tgt), prefix])
    assert sums[:-1] == pytest.approx(whole[:-1])
    assert sums[-1] > whole[-1]
    if n_ends == 1:
        assert sums.sum() == pytest.approx(log_probability, rel=1e-4)


def test_only_document_models_gain(study_files, overfitted):
    nothing, something = (
        np.concatenate(scored(scorer(trained))[CXMI])
        for trained in (untrained(study_files, "sentence_transformer"), load_model(overfitted("g_transformer")))
    )
    assert nothing == pytest.approx(np.zeros(len(nothing)), abs=1e-4)
    assert np.abs(something).max() > 1e-3


def test_rows_of_tests_and_suites():
    gains = [np.array([5.0, 1.0]), np.array([3.0])]
    row = mean_row(CXMI, np.concatenate(gains))
    assert (row["metric"], row["value"], row["n"]) == ("CXMI", 3, 3)
    assert row["low"] < 3 < row["high"]
    items = [ContrastiveItem(str(i), "pq"[i], ("s",), (("x",), ("y",)), 0) for i in range(2)]
    rows = suite_rows(items, {CXMI: gains})
    assert [(row["value"], row["n"], row.get("phenomenon")) for row in rows] == [(2, 2, None), (1, 1, "p"), (3, 1, "q")]
    assert all(row.get("kind") == row.get("phenomenon") for row in rows), "tables show the first only"


def test_the_command_scores_texts_and_suites(overfitted, tmp_path, capsys):
    model = overfitted("g_transformer")
    sides = {"en": DOCUMENTS, "de": TARGETS}
    lines = {lang: [line for text in side for line in text] for lang, side in sides.items()}
    text = write_split(tmp_path, {name: len(src) for name, src, _ in NAMED}, **lines)
    items = [
        {"id": name, "phenomenon": "p", "src": src, "candidates": [src, tgt], "correct": 1} for name, src, tgt in NAMED
    ]
    suite = write_lines(tmp_path / "s.jsonl", map(json.dumps, items))
    options = {"model": model, "device": "cpu", "out": tmp_path / "o.json", **RUN, "test": "t"}
    assert evaluate("cxmi", **text, suite=[], **options) == 0
    mean, row = json.loads((tmp_path / "o.json").read_text())["scores"]
    scores = scored(scorer(load_model(model)))
    gains = scores[CXMI]
    assert mean["value"] == pytest.approx(float(np.concatenate(scores[LOG_PROBABILITY]).mean()), rel=1e-4)
    assert row["value"] == pytest.approx(float(np.concatenate(gains).mean()), rel=1e-4)
    # As `auto` on a GPU: scores are in float32 all the same.
    assert evaluate("cxmi", texts=[], suite=suite, **options, settings={"precision": "bfloat16"}) == 0
    rows = json.loads((tmp_path / "o.json").read_text())["scores"]
    (row, _) = (each for each in rows if each["metric"] == CXMI)
    assert row["value"] == pytest.approx(float(np.mean([gain[-1] for gain in gains])), rel=1e-4)
    for words, message in (
        ({"texts": text["texts"]}, "--texts: also pass --src-lang and --tgt-lang"),
        ({"texts": [], "suite": []}, "docmt evaluate cxmi: pass either --texts or --suite"),
        ({**text, "suite": suite}, "docmt evaluate cxmi: pass either --texts or --suite"),
        ({"suite": [suite, suite]}, "--suite: 2 files: pass at most one"),
        ({"texts": text["texts"][:1]}, "test_t.en: also pass"),
    ):
        assert evaluate("cxmi", **words, **options) == 2
        assert message in capsys.readouterr().err


def test_trees_of_other_documents_are_refused(overfitted):
    with pytest.raises(UserError, match="trees must have the ids"):
        scored(scorer(load_model(overfitted("g_transformer"))), trees=[])
