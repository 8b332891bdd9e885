"""Windows of sentences that a sentence model translates as one sentence (`decoding.context: joined`)."""

import dataclasses

import numpy as np
import pytest
from core_fixtures import DOCUMENTS
from plain_scores import untrained

from docmt.cli.main import main
from docmt.corpora.documents import DocumentIndex
from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer, score_suite, with_own_context
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.errors import UserError
from docmt.evaluation.hypotheses import describe_realignment, read_hypotheses
from docmt.files import read_jsonl, write_jsonl
from docmt.instances.packing import BoundaryTokens
from docmt.instances.storage import load_instances
from docmt.models.model_file import save_model
from docmt.text.realignment import align_sentences

JOINED = DecodingSettings(context="joined", beam_size=3, max_length_offset=3)


@pytest.fixture
def trained(study_files):
    model = untrained(study_files, "sentence_transformer")
    return dataclasses.replace(model, instance_settings={"max_sentences": 3})


def translate(trained, documents, **values):
    return Translator(trained, JOINED.model_copy(update=values)).translate_documents(documents)


@pytest.mark.parametrize("before", [(), (1,), (5, 6)])
@pytest.mark.parametrize("after", [(2,), (7, 2)])
def test_words_are_joined_without_marks(before, after):
    marks = BoundaryTokens(src_before=before, src_after=after, tgt_before=(9,))
    words = [[11, 12], [], [13]]
    for side in ("src", "tgt"):
        joined = marks.join([marks.wrap(sentence, side) for sentence in words], side)
        assert joined.dtype == np.int32
        assert joined.tolist() == marks.wrap([11, 12, 13], side).tolist()
        assert marks.join([marks.wrap([], side)], side).tolist() == marks.wrap([], side).tolist()


def windows_of(document, size=3):
    """Windows counted from the end."""
    first = len(document) % size
    starts = range(first, len(document), size)
    return [document[:first]] * bool(first) + [document[start : start + size] for start in starts]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_window_has_the_beam_of_its_text(trained, beam_size):
    translated = translate(trained, DOCUMENTS, beam_size=beam_size)
    windows = [" ".join(window) for document in DOCUMENTS for window in windows_of(document)]
    plain = translate(trained, [[window] for window in windows], beam_size=beam_size, context="document")
    assert [len(document) for document in translated] == [len(document) for document in DOCUMENTS]
    ours = [" ".join(filter(None, window)) for document in translated for window in windows_of(document)]
    assert ours == [text for (text,) in plain]


def test_sentences_are_divided_by_single_translations(trained):
    (document,) = translate(trained, [DOCUMENTS[0]])
    single = [text for (text,) in translate(trained, [[line] for line in DOCUMENTS[0]], context="document")]
    assert align_sentences([" ".join(filter(None, document))], single, "de")[1] == document


UGLY = [[""], ["", "", ""], ["", "the dog", ""], ["☃ <s> </s>", "x" * 200, "", "the"], ["the " * 90] * 7]


def test_ugly_documents_keep_their_sentences(trained):
    translated = translate(trained, UGLY, beam_size=1, max_length_ratio=0.01)
    assert [len(document) for document in translated] == [len(document) for document in UGLY]
    assert translated[:2] == [[""], ["", "", ""]]
    assert translate(trained, [], beam_size=1) == []


def test_command_writes_and_counts_windows(trained, study_files, tmp_path, capsys):
    model, out, folder = tmp_path / "model.pt", tmp_path / "h.jsonl", study_files.instances()
    save_model(model, trained)
    options = ["--settings", JOINED.model_dump_json(), "--model", str(model), "--instances", str(folder)]
    assert main(["decode", "translate", *options, "--out", str(out)]) == 0
    instances = load_instances(folder)
    n_sentences = int(instances.n_sentences().sum())
    counts = f"{len(instances)} windows of joined sentences, with translations re-aligned to {n_sentences}"
    assert counts in capsys.readouterr().err
    lengths = tuple(int(n) for n in instances.n_sentences())
    hypotheses = read_hypotheses(out, DocumentIndex(tuple(instances.document_ids()), lengths))
    assert all(hypothesis.joined and hypothesis.aligned for hypothesis in hypotheses)
    assert describe_realignment(hypotheses) == f"{counts} sentences"


def test_generative_suite_has_all_sentences(trained, tmp_path):
    model, suite, out = (tmp_path / name for name in ("model.pt", "suite.jsonl", "out.jsonl"))
    save_model(model, trained)
    write_jsonl(suite, [{"id": "a", "phenomenon": "p", "src": DOCUMENTS[2], "expected": "Tier"}])
    options = ["--settings", JOINED.model_dump_json(), "--model", str(model), "--suite", str(suite)]
    assert main(["decode", "translate-suite", *options, "--out", str(out)]) == 0
    (row,) = read_jsonl(out)
    assert row["sentences"] == translate(trained, [DOCUMENTS[2]])[0]


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_candidates_share_their_window(trained, batch_tokens):
    """The score is the sum over windows that end with the tested sentence."""
    src, words = DOCUMENTS[2], ["das Tier"] * len(DOCUMENTS[2])
    candidates = (words, [*words[:-1], "ein Haus"])
    settings = JOINED.model_copy(update={"max_batch_tokens": batch_tokens})
    item = ContrastiveItem("a", "p", tuple(src), tuple(map(tuple, candidates)), 0)
    (row,) = score_suite([item], TargetScorer(trained, settings))
    plain = TargetScorer(trained, DecodingSettings())
    for candidate, score in zip(candidates, row["scores"], strict=True):
        pairs = zip(windows_of(src), windows_of(candidate), strict=True)
        parts = plain.score([Candidate([" ".join(one)], [" ".join(other)]) for one, other in pairs])
        assert score == pytest.approx(sum(parts), rel=1e-5)


def test_own_context_has_sentences_of_windows(trained):
    src = tuple(DOCUMENTS[2])
    candidates = tuple((*["Haus"] * (len(src) - 1), last) for last in ("Tier", "Haus"))
    (item,) = with_own_context([ContrastiveItem("a", "p", src, candidates, 0)], Translator(trained, JOINED))
    context = translate(trained, [src])[0][:-1]
    assert item.candidates == ((*context, "Tier"), (*context, "Haus"))


def test_translate_command_joins_instances(trained, tmp_path):
    model, text, out = tmp_path / "model.pt", tmp_path / "text.en", tmp_path / "text.de"
    save_model(model, trained)
    text.write_text("\n".join(DOCUMENTS[2]) + "\n", encoding="utf-8")
    settings = JOINED.model_dump_json(exclude={"context", "precision"})
    options = ["--model", str(model), "--context", "joined", "--settings", settings, "--out", str(out)]
    assert main(["translate", str(text), *options]) == 0
    assert out.read_text(encoding="utf-8").splitlines() == translate(trained, [DOCUMENTS[2]])[0]


@pytest.mark.parametrize("architecture", ["g_transformer", "document_transformer", "global_context"])
def test_document_models_join_nothing(study_files, architecture):
    model = untrained(study_files, architecture)
    for use in (Translator, TargetScorer):
        with pytest.raises(UserError, match="joined translates an instance as one sentence, but this model reads doc"):
            use(model, JOINED)


def test_cxmi_of_windows_is_refused(trained):
    with pytest.raises(UserError, match=r"joined sentences have no `</s>`, so CXMI is not defined"):
        TargetScorer(trained, JOINED).score_sentences([Candidate(["the dog"], ["das Tier"])])
