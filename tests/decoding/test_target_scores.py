"""Log probabilities of existing translations."""

import pytest
from core_fixtures import DOCUMENTS, translate
from plain_scores import directly, scorer, untrained

from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate, score_suite
from docmt.models.model_file import load_model

TARGETS = [[translate(sentence) for sentence in document] for document in DOCUMENTS]
CANDIDATES = [*zip(DOCUMENTS, TARGETS, strict=True), *zip(DOCUMENTS, DOCUMENTS, strict=True)]
CANDIDATES.append((["", "the dog", ""], ["", "das Tier", ""]))


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer", "sentence_transformer"])
@pytest.mark.parametrize("max_batch_tokens", [1, 40, 4096])
def test_scores_are_sums_of_teacher_forced_log_probabilities(study_files, architecture, max_batch_tokens):
    trained = untrained(study_files, architecture)
    scores = scorer(trained, max_batch_tokens=max_batch_tokens).score([Candidate(*pair) for pair in CANDIDATES])
    assert scores == pytest.approx([directly(trained, src, tgt) for src, tgt in CANDIDATES], rel=1e-4)


@pytest.mark.parametrize("limits", [{"max_sentences": 1}, {"max_sentences": 2}, {"max_tokens": 14}])
def test_long_candidates_are_split_as_in_training(study_files, limits):
    """Other cutting settings (subsets, omitted short documents) have no effect."""
    trained = untrained(study_files, "g_transformer", subset=5, min_document_tokens=10_000, **limits)
    scores = scorer(trained).score([Candidate(*pair) for pair in CANDIDATES])

    def pieces(src, tgt):
        if "max_sentences" in limits:
            size = limits["max_sentences"]
            return [(src[i : i + size], tgt[i : i + size]) for i in range(0, len(src), size)]
        parts, total = [], 0
        for pair in zip(src, tgt, strict=True):
            cost = max(len(trained.pipeline.prepare(s, lang=lang)) for s, lang in zip(pair, ("en", "de"), strict=True))
            if not parts or total + cost + 2 > limits["max_tokens"]:
                parts.append(([], []))
                total = 0
            parts[-1][0].append(pair[0])
            parts[-1][1].append(pair[1])
            total += cost + 2
        return parts

    expected = [sum(directly(trained, *part) for part in pieces(src, tgt)) for src, tgt in CANDIDATES]
    assert any(len(pieces(src, tgt)) > 1 for src, tgt in CANDIDATES)
    assert scores == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer", "sentence_transformer"])
def test_a_trained_model_prefers_the_right_translation(overfitted, architecture):
    trained = load_model(overfitted(architecture))
    items = [
        ContrastiveItem(f"i{i}", "order", tuple(src), (tuple(reversed(tgt)), tuple(tgt), tuple(src)), 1)
        for i, (src, tgt) in enumerate(zip(DOCUMENTS, TARGETS, strict=True))
        if len(src) > 1
    ]
    results = score_suite(items, scorer(trained))
    assert [row["id"] for row in results] == [item.id for item in items]
    for row in results:
        assert len(row["scores"]) == 3
        assert max(row["scores"]) == row["scores"][1]
