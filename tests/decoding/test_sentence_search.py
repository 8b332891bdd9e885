"""Parallel search for a document's sentences, and both uses of a model with a context encoder."""

import dataclasses
import itertools

import numpy as np
import pytest
from core_fixtures import DOCUMENTS, make_batch, make_model
from plain_scores import untrained
from plain_search import pack_sources, sources, teacher_forced

from docmt.cli.main import main
from docmt.decoding.beam_search import BeamHypothesis, join_sentences, search_instances, search_sentences
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer, instance_log_probabilities
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.target_streams import TargetSymbols
from docmt.decoding.translation import Translator, search_best
from docmt.errors import UserError
from docmt.instances.storage import load_instances
from docmt.models.model_file import save_model
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS

USES = [
    ("global_context", "document"),
    ("global_context", "none"),
    ("sentence_transformer", "document"),
    ("doct", "document"),
    ("han_encoder", "document"),
    ("san", "document"),
]
"""Architecture and context."""
PLAIN = TargetSymbols()


def run(model, documents, context="document", *, way=search_sentences, symbols=PLAIN, **values):
    return way(
        DecodingModel(model), *pack_sources(model, documents, context=context), DecodingSettings(**values), symbols
    )


@pytest.mark.parametrize(("architecture", "context"), USES)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_cached_scores_equal_teacher_forcing(architecture, context, beam_size):
    model = make_model(architecture)
    documents = sources((1, 4, 12, 2))
    for source, hypothesis in zip(documents, run(model, documents, context, beam_size=beam_size), strict=True):
        assert [bool(sentence) for sentence in hypothesis.sentences] == [len(sentence) > 2 for sentence in source]
        expected = teacher_forced(model, source, hypothesis.sentences, context=context)
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)
        n_labels = sum(len(sentence) + 1 for sentence in hypothesis.sentences)
        assert hypothesis.score == pytest.approx(hypothesis.log_probability / n_labels)


@pytest.mark.parametrize(("architecture", "context"), USES)
def test_batched_equals_one_by_one(architecture, context):
    model = make_model(architecture)
    documents = sources((3, 1, 9, 1, 30, 2), seed=1)
    batched = [hypothesis.sentences for hypothesis in run(model, documents, context)]
    assert batched == [run(model, [document], context)[0].sentences for document in documents]


@pytest.mark.parametrize(("architecture", "context"), USES)
def test_greedy_search_equals_the_document_search(architecture, context):
    model = make_model(architecture)
    documents = sources((3, 1, 6), seed=2)
    whole = run(model, documents, context, way=search_instances, beam_size=1)
    apart = run(model, documents, context, beam_size=1)
    assert [hypotheses[0].sentences for hypotheses in whole] == [hypothesis.sentences for hypothesis in apart]


@pytest.mark.parametrize("architecture", ["global_context", "han", "cadec"])
def test_without_context_sentences_are_documents(architecture):
    model = make_model(architecture)
    documents = sources((5, 2), seed=4)
    sentences = [[sentence] for document in documents for sentence in document]

    def found(documents, context):
        return [s for each in run(model, documents, context, way=search_best, beam_size=3) for s in each.sentences]

    together = found(documents, "none")
    assert together == found(sentences, "none")
    assert together != found(documents, "document")


def test_joined_hypothesis_counts_all_labels():
    parts = [
        BeamHypothesis([[7, 8]], -3.0, -1.0, 0),
        BeamHypothesis([[]], -0.5, -0.5, 0),
        BeamHypothesis([[9]], -2.5, -1.25, 1),
    ]
    # Words, `</s>`, and the forced first label of each sentence.
    for symbols, n_labels in ((TargetSymbols(), 6), (TargetSymbols(forced=3), 9)):
        (joined,) = join_sentences(parts, [3], symbols, length_penalty=0.5)
        assert joined == BeamHypothesis([[7, 8], [], [9]], -6.0, -6.0 / n_labels**0.5, 1)


def test_sentence_model_searches_documents():
    model, documents = make_model("sentence_transformer"), sources((3,), seed=2)

    def found(**values):
        return run(model, documents, way=search_best, beam_size=2, **values)

    (narrow,) = found(one_beam_per_instance=True)
    assert narrow == run(model, documents, way=search_instances, beam_size=2)[0][0]
    (wide,) = found()
    assert wide == run(model, documents, beam_size=2)[0] != narrow


# Language tags


@pytest.mark.parametrize("architecture", ["global_context", "g_transformer", "document_transformer"])
def test_target_starts_with_its_tag(architecture):
    model = make_model(architecture)
    source = sources((4,), seed=5)
    way = search_sentences if architecture == "global_context" else search_instances
    (result,) = run(model, source, way=way, symbols=TargetSymbols(start=9, n_specials=12))
    hypothesis = result if architecture == "global_context" else result[0]
    assert all(token >= 12 for sentence in hypothesis.sentences for token in sentence)
    if architecture != "document_transformer":
        expected = teacher_forced(model, source[0], hypothesis.sentences, start=9)
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5)


def test_tags_begin_every_sentence(study_files):
    trained = untrained(study_files, "global_context", extras=("[MASK1]", "[MASK2]", "<de>", "<en>"))
    assert trained.encode("the dog", "src")[0] == 9
    assert trained.encode("das Tier", "tgt")[0] == 8
    translator = Translator(trained, DecodingSettings(beam_size=2))
    assert translator.symbols == TargetSymbols(8, 10)
    rows = translator.translate_instances(_shifted(load_instances(study_files.instances()), 4))
    assert [row["sentences"] for row in rows] == translator.translate_documents(DOCUMENTS)


def _shifted(instance_set, n):
    """The same instances in a vocabulary with `n` additional special symbols."""
    tokens = {side: getattr(instance_set, f"{side}_tokens") for side in ("src", "tgt")}
    moved = {f"{side}_tokens": np.where(ids < N_SPECIALS, ids, ids + n) for side, ids in tokens.items()}
    return dataclasses.replace(instance_set, **moved)


def test_a_language_without_a_tag_is_refused(study_files):
    with pytest.raises(UserError, match="language 'de': the vocabulary has no tag <de>"):
        Translator(
            untrained(study_files, "global_context", extras=("[MASK1]", "[MASK2]", "<zh>", "<en>")), DecodingSettings()
        )


# One model, two uses


def test_the_same_file_translates_documents_and_sentences(study_files, tmp_path):
    save_model(tmp_path / "model.pt", untrained(study_files, "global_context"))
    text = tmp_path / "text.en"
    sentences = [sentence for document in DOCUMENTS[:3] for sentence in document]
    translations = {}
    for name, documents, context in (
        ("document", DOCUMENTS[:3], "document"),
        ("sentences", DOCUMENTS[:3], "none"),
        ("list", [[sentence] for sentence in sentences], "none"),
        ("--context", DOCUMENTS[:3], "document"),
    ):
        text.write_text("\n\n".join("\n".join(document) for document in documents) + "\n")
        settings = f'{{"context": "{context}", "beam_size": 2}}'
        options = [text, "--out", tmp_path / "out", "--model", tmp_path / "model.pt"]
        use = ["--context", "none"] if name == "--context" else []
        assert main(["translate", *map(str, options), "--settings", settings, *use]) == 0
        translations[name] = [line for line in (tmp_path / "out").read_text().splitlines() if line]
    assert translations["sentences"] == translations["list"] == translations["--context"] != translations["document"]
    assert len(translations["document"]) == len(sentences)


@pytest.mark.parametrize("context", ["document", "none"])
def test_given_translations_are_scored_with_and_without_context(study_files, context):
    trained = untrained(study_files, "global_context")
    candidates = [Candidate(document, document[::-1]) for document in DOCUMENTS]
    scores = TargetScorer(trained, DecodingSettings(context=context, max_batch_tokens=60)).score(candidates)
    for candidate, score in zip(candidates, scores, strict=True):
        src = [trained.encode(sentence, "src") for sentence in candidate.src]
        tgt = [trained.encode(sentence, "tgt") for sentence in candidate.tgt]
        batch = make_batch(trained.model.settings, [(src, tgt)], context=context)
        assert score == pytest.approx(float(instance_log_probabilities(trained.model, batch)[0]), rel=1e-4)


@pytest.mark.parametrize("architecture", ["g_transformer", "sentence_transformer"])
@pytest.mark.parametrize("use", [Translator, TargetScorer])
def test_context_encoder_is_needed_to_skip(study_files, architecture, use):
    with pytest.raises(UserError, match=r"decoding\.context: none skips the context module"):
        use(untrained(study_files, architecture), DecodingSettings(context="none"))


def sentence_log_probabilities(model, source, sentences):
    batch = make_batch(model.settings, [(source, [np.array([BOS, *sentence, EOS]) for sentence in sentences])])
    states = model(batch.src_tokens_S, batch.tgt_inputs_N, model.place(batch.layout))
    labels = model.logits(states).log_softmax(-1).gather(1, batch.tgt_labels_N[:, None])[:, 0]
    return [float(part.sum()) for part in labels.detach().split(batch.layout.tgt_lengths_G.tolist())]


def test_huge_beam_finds_the_best():
    words = range(N_SPECIALS, N_SPECIALS + 5)
    model = make_model("global_context", n_symbols=N_SPECIALS + len(words))
    source = [np.array([BOS, words[i], EOS]) for i in range(3)]
    (hypothesis,) = run(model, [source], beam_size=1000, max_length_ratio=0.1, max_length_offset=2)
    choices = [list(sequence) for n in (1, 2) for sequence in itertools.product(words, repeat=n)]
    # Any choice in all sentences at once: they do not see one another.
    values = np.array([sentence_log_probabilities(model, source, [choice] * 3) for choice in choices])
    scores = values / np.array([[len(choice) + 1] for choice in choices])
    assert hypothesis.sentences == [choices[best] for best in scores.argmax(0)]
    assert hypothesis.log_probability == pytest.approx(values[scores.argmax(0), range(3)].sum(), rel=1e-4)
