"""Search in two passes, and scores of existing translations with drafts (CADec)."""

import numpy as np
import pytest
import torch
from core_fixtures import DOCUMENTS, make_batch, make_model, pack_documents, random_sentence
from plain_scores import untrained
from plain_search import pack_sources, sources

from docmt.decoding.beam_search import search_sentences
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer, instance_log_probabilities
from docmt.decoding.decoding_model import DecodingModel, prepare_search
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.target_streams import PLAIN_SYMBOLS, TargetSymbols
from docmt.decoding.translation import Translator
from docmt.decoding.two_pass_search import TwoPassSearch
from docmt.evaluation.cxmi import CXMI, score_references
from docmt.models.batch import pack
from docmt.models.model_file import load_model, save_model
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS

LIMITS = {"max_length_ratio": 1.0, "max_length_offset": 2}
COUNTS = (1, 4, 9, 2)


def two_passes(model, documents, *, symbols=PLAIN_SYMBOLS, **values):
    prepared = DecodingModel(model)
    return TwoPassSearch(prepared, *pack_sources(model, documents), DecodingSettings(**LIMITS | values), symbols)


def batch_of(model, src, sentences, drafts, *start):
    """A document with translations and drafts, without marks."""
    tgt, drafted = ([np.array([*(start or [BOS]), *words, EOS]) for words in side] for side in (sentences, drafts))
    return pack(pack_documents([(src, tgt)]), drafts=pack_documents([(src, drafted)]), settings=model.settings)


def drafts_of(search, documents):
    drafts = iter(search.draft())
    return [[next(drafts).sentences[0] for _ in document] for document in documents]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_cached_scores_equal_teacher_forcing(beam_size):
    model, documents = make_model("cadec"), sources(COUNTS)
    search = two_passes(model, documents, beam_size=beam_size)
    hypotheses, drafts = search.run(), drafts_of(search, documents)
    for src, hypothesis, drafted in zip(documents, hypotheses, drafts, strict=True):
        assert [bool(sentence) for sentence in hypothesis.sentences] == [len(sentence) > 2 for sentence in src]
        expected = float(instance_log_probabilities(model, batch_of(model, src, hypothesis.sentences, drafted))[0])
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)
        n_labels = sum(len(sentence) + 1 for sentence in hypothesis.sentences)
        assert hypothesis.score == pytest.approx(hypothesis.log_probability / n_labels)
    texts = [hypothesis.sentences for hypothesis in hypotheses]
    assert texts != drafts
    assert [text[0] for text in texts] == [draft[0] for draft in drafts]


def test_drafts_are_what_the_sentence_model_finds():
    model, documents = make_model("cadec"), sources(COUNTS)
    packed = pack_sources(model, documents, context="none")
    plain = search_sentences(DecodingModel(model), *packed, DecodingSettings(**LIMITS))
    assert drafts_of(two_passes(model, documents), documents) == [hypothesis.sentences for hypothesis in plain]


def greedy(model, src, prefix, drafts, limit):
    """The next sentence after the known ones, word by word with the teacher-forced model."""
    words, number = [], len(prefix)
    if limit == 0:
        return []
    while len(words) < limit:
        sentences = [*prefix, words, *[[]] * (len(src) - number - 1)]
        batch = batch_of(model, src, sentences, drafts)
        position = sum(len(sentence) + 1 for sentence in prefix) + len(words)
        scores = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, model.place(batch.layout))[position])
        allowed = [*range(N_SPECIALS, len(scores)), *([EOS] if words else [])]
        word = max(allowed, key=lambda symbol, scores=scores: float(scores[symbol]))
        if word == EOS:
            break
        words.append(word)
    return words


@torch.no_grad()
def test_greedy_search_equals_a_plain_one():
    """Every sentence follows the final translations of the previous sentences."""
    model, documents = make_model("cadec", seed=2), sources((5, 1, 2), longest=5)
    search = two_passes(model, documents, beam_size=1)
    drafts = drafts_of(search, documents)
    for src, hypothesis, drafted in zip(documents, search.run(), drafts, strict=True):
        expected = [drafted[0]]
        for source in src[1:]:
            expected.append(greedy(model, src, expected, drafted, len(source) if len(source) > 2 else 0))
        assert hypothesis.sentences == expected


@pytest.mark.slow
def test_batched_equals_one_by_one():
    model, documents = make_model("cadec"), sources((3, 1, 9, 1, 12, 2), seed=1)
    batched = [hypothesis.sentences for hypothesis in two_passes(model, documents).run()]
    assert batched == [two_passes(model, [document]).run()[0].sentences for document in documents]


UGLY = {
    "only empty sentences": (0, 0, 0),
    "one empty sentence": (0,),
    "an empty first sentence": (0, 3),
    "one word": (1,),
    "very long among short": (1, 60, 1),
    "twenty sentences": (2,) * 20,
}


@pytest.mark.parametrize("name", UGLY)
def test_as_many_sentences_come_out_as_go_in(name):
    model, generator = make_model("cadec"), np.random.default_rng(4)
    document = [random_sentence(generator, n) for n in UGLY[name]]
    (hypothesis,) = two_passes(model, [document], beam_size=2).run()
    assert [bool(sentence) for sentence in hypothesis.sentences] == [n > 0 for n in UGLY[name]]


def test_a_target_starts_with_its_tag():
    model, (src,) = make_model("cadec"), sources((4,), seed=5)
    search = two_passes(model, [src], symbols=TargetSymbols(start=9, n_specials=12))
    (hypothesis,), (drafts,) = search.run(), drafts_of(search, [src])
    assert all(token >= 12 for sentence in hypothesis.sentences for token in sentence)
    expected = instance_log_probabilities(model, batch_of(model, src, hypothesis.sentences, drafts, 9))[0]
    assert hypothesis.log_probability == pytest.approx(float(expected), rel=1e-5)


def test_both_passes_get_the_second_symbol():
    marks = {"src_before": [], "src_after": ["</s>"], "tgt_before": ["</s>", "{tgt}"]}
    model, src = make_model("cadec", marks=marks), [np.array([10, 11, EOS]), np.array([12, EOS]), np.array([EOS])]
    search = two_passes(model, [src], symbols=TargetSymbols(start=EOS, n_specials=9, forced=8))
    (hypothesis,), (drafts,) = search.run(), drafts_of(search, [src])
    assert [bool(sentence) for sentence in hypothesis.sentences] == [True, True, False]
    expected = instance_log_probabilities(model, batch_of(model, src, hypothesis.sentences, drafts, EOS, 8))[0]
    assert hypothesis.log_probability == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.3), ("int8", 0.3)])
def test_both_passes_in_low_precision(precision, tolerance):
    """Both precisions score the same translations and drafts."""
    model, documents = make_model("cadec"), sources((4, 2), seed=6)
    settings = DecodingSettings(precision=precision, **LIMITS)
    search = TwoPassSearch(prepare_search(model, settings, "cpu"), *pack_sources(model, documents), settings)
    hypotheses, drafts = search.run(), drafts_of(search, documents)
    for src, hypothesis, drafted in zip(documents, hypotheses, drafts, strict=True):
        n_labels = hypothesis.log_probability / hypothesis.score
        batch = batch_of(model, src, hypothesis.sentences, drafted)
        expected = float(instance_log_probabilities(model, batch)[0])
        assert hypothesis.score == pytest.approx(expected / n_labels, abs=tolerance)
        assert hypothesis.log_probability != expected


# A model file


@pytest.fixture
def trained(study_files):
    return untrained(study_files, "cadec", seed=3)


def test_a_file_translates_documents_and_single_sentences(trained, tmp_path):
    save_model(tmp_path / "model.pt", trained)
    loaded = load_model(tmp_path / "model.pt")
    documents = [[*document, ""] for document in DOCUMENTS]
    translations = Translator(loaded, DecodingSettings()).translate_documents(documents)
    assert [[bool(text) for text in document] for document in translations] == [
        [bool(text) for text in document] for document in documents
    ]
    plain = Translator(loaded, DecodingSettings(context="none")).translate_documents(documents)
    assert translations != plain
    singles = [[sentence] for document in documents for sentence in document]
    alone = Translator(loaded, DecodingSettings()).translate_documents(singles)
    assert [document[0] for document in translations] == [
        alone[n][0] for n in np.cumsum([0, *map(len, documents)])[:-1]
    ]  # fmt: skip


@pytest.mark.slow
def test_forced_translations_have_source_drafts(trained):
    settings = DecodingSettings(beam_size=2)
    candidates = [Candidate(document, target) for document in DOCUMENTS for target in (document, document[::-1])]
    scores = TargetScorer(trained, settings).score(candidates)
    small = TargetScorer(trained, settings.model_copy(update={"max_batch_tokens": 12})).score(candidates)
    alone = [TargetScorer(trained, settings).score([candidate])[0] for candidate in candidates]
    assert scores == pytest.approx(alone, rel=1e-4)
    assert small == pytest.approx(alone, rel=1e-4)
    for candidate, score in zip(candidates, scores, strict=True):
        src = [trained.encode(sentence, "src") for sentence in candidate.src]
        tgt = [trained.encode(sentence, "tgt")[1:-1] for sentence in candidate.tgt]
        search = TwoPassSearch(DecodingModel(trained.model), *pack_sources(trained.model, [src]), settings)
        batch = batch_of(trained.model, src, tgt, drafts_of(search, [src])[0])
        assert score == pytest.approx(float(instance_log_probabilities(trained.model, batch)[0]), rel=1e-4)


def test_a_source_is_drafted_once(trained, monkeypatch):
    drafted, plain = [], TwoPassSearch.draft
    monkeypatch.setattr(TwoPassSearch, "draft", lambda self: drafted.append(self.layout.n_sentences) or plain(self))
    scorer = TargetScorer(trained, DecodingSettings())
    for _ in range(2):
        scorer.score([Candidate(DOCUMENTS[0], DOCUMENTS[0]), Candidate(DOCUMENTS[0], DOCUMENTS[0][::-1])])
    assert drafted == [len(DOCUMENTS[0])]
    TargetScorer(trained, DecodingSettings(context="none")).score([Candidate(DOCUMENTS[0], DOCUMENTS[0])])
    assert len(drafted) == 1


def test_first_sentence_gains_nothing_from_context(trained):
    references = [Candidate(document, document) for document in DOCUMENTS]
    for gains in score_references([], references, TargetScorer(trained, DecodingSettings()))[CXMI]:
        assert gains[0] == pytest.approx(0, abs=1e-4)
        assert (np.abs(gains[1:]) > 1e-3).all()


def test_layouts_with_drafts_are_moved_as_one(trained):
    src = [np.array([BOS, 7, EOS]), np.array([BOS, EOS])]
    batch = batch_of(trained.model, src, [[8], []], [[9, 9], [7]])
    moved = batch.prepare("padded").to("meta")
    assert moved.layout.drafts.inputs_N.device.type == "meta"
    assert batch.layout.drafts.labels_N.tolist() == [9, 9, EOS, 7, EOS]
    assert make_batch(trained.model.settings, [(src, src)]).layout.drafts is None
