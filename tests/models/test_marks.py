"""Marks around sentences as a model setting, in batches, trees and searches."""

import numpy as np
import pytest
import torch
from core_fixtures import (
    assert_close,
    decoder_states,
    document_trees,
    make_batch,
    make_model,
    model_settings,
    pack_documents,
    random_documents,
)

from docmt.decoding.beam_search import TargetSymbols, search_instances
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.instances.packing import BoundaryTokens
from docmt.models.attention.layout import AttentionLayout
from docmt.text.vocabulary import BOS, EOS, Vocabulary
from docmt.training.updates import n_inputs

SUFFIX = {"src_before": [], "src_after": ["</s>", "{src}"], "tgt_before": ["{tgt}"]}
PREFIX = {"src_before": ["{src}"], "src_after": ["</s>"], "tgt_before": ["</s>", "{tgt}"]}
WORD = 9


def test_marks_surround_the_same_words():
    src = [np.array([BOS, 9, 10, EOS]), np.array([BOS, EOS])]
    plain = pack_documents([(src, src)])
    assert (
        plain.with_boundaries(BoundaryTokens()).src_tokens_S.tolist() == plain.src_tokens_S.tolist()
    )  # the marks of instances
    batch = plain.with_boundaries(BoundaryTokens(src_before=(), src_after=(EOS, 7), tgt_before=(EOS, 8)))
    assert batch.src_tokens_S.tolist() == [9, 10, EOS, 7, EOS, 7]
    assert batch.src_lengths_G.tolist() == [4, 2]
    assert batch.tgt_tokens_N.tolist() == [EOS, 8, 9, 10, EOS, EOS, 8, EOS]
    assert batch.tgt_lengths_G.tolist() == [5, 3]


def test_a_source_sentence_needs_a_mark():
    """An empty sentence would have no token."""
    with pytest.raises(UserError, match="src_before and src_after are both empty"):
        model_settings(marks={"src_before": [], "src_after": []})


def test_symbols_are_looked_up_and_missing_ones_named():
    vocabulary = Vocabulary([("a", 1)], extras=("[MASK1]", "[MASK2]", "<de>", "<en>"))
    marks = BoundaryTokens.of_symbols(vocabulary, src_lang="en", tgt_lang="de", **PREFIX)
    assert vocabulary.decode([*marks.src_before, *marks.tgt_before]) == ["<en>", "</s>", "<de>"]
    with pytest.raises(UserError, match="no symbol '>>de<<'"):
        BoundaryTokens.of_symbols(vocabulary, src_lang="en", tgt_lang="de", src_before=[">>de<<"])
    with pytest.raises(UserError, match="no tag <fr>"):
        BoundaryTokens.of_symbols(vocabulary, src_lang="en", tgt_lang="fr", **SUFFIX)


def test_trees_grow_and_shrink_with_the_marks():
    documents = random_documents((3, 1), longest=4)
    trees = document_trees(documents)
    lengths = np.concatenate([[len(sentence) for sentence in src] for src, _ in documents])
    owners = np.repeat(np.arange(len(lengths)), trees.edu_counts_G)
    for marks in ((0, 1), (1, 1), (1, 2), (0, 2)):
        changed = trees.with_boundaries(marks)
        totals = np.bincount(owners, weights=changed.edu_lengths_E)
        assert totals.tolist() == (lengths + sum(marks) - 2).tolist()


def test_random_numbers_follow_the_tokens_read(study_files):
    from docmt.instances.storage import load_instances
    from docmt.models.batch import collate

    instances = load_instances(study_files.instances())
    numbers = np.arange(len(instances))
    for symbols, marks in (
        (SUFFIX, BoundaryTokens((), (EOS, WORD), (WORD,))),
        (PREFIX, BoundaryTokens((WORD,), (EOS,), (EOS, WORD))),
        (None, BoundaryTokens()),
    ):
        settings = model_settings("g_transformer", marks=symbols)
        batch = collate(instances, numbers.tolist(), settings, boundaries=marks)
        src, tgt = n_inputs(instances, numbers, settings)
        assert (src.sum(), tgt.sum()) == (len(batch.src_tokens_S), len(batch.tgt_inputs_N))


@pytest.mark.parametrize("architecture", ["sentence_transformer", "g_transformer"])
def test_forced_first_label_is_no_word(architecture):
    """Search with a start and a forced label equals teacher forcing with both, word by word."""
    model = make_model(architecture, marks={**PREFIX, "tgt_before": ["</s>", "<s>"]}, seed=3)
    src = [np.array([BOS, 9, 10, 11, EOS]), np.array([BOS, 12, EOS])]
    layout = AttentionLayout.of_source(np.array([5, 3]), np.array([2]), settings=model.settings)
    symbols = TargetSymbols(start=EOS, forced=BOS)
    settings = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=5)
    (hypothesis, *_) = search_instances(DecodingModel(model), np.concatenate(src), layout, settings, symbols)[0]
    assert len(hypothesis.sentences) == 2
    assert all(1 <= len(words) <= 5 for words in hypothesis.sentences)
    assert not {BOS, EOS} & {word for words in hypothesis.sentences for word in words}
    tgt = [np.array([EOS, BOS, *words, EOS]) for words in hypothesis.sentences]
    batch = make_batch(model.settings, [(src, tgt)])
    with torch.no_grad():
        states = decoder_states(model, batch)
        scores = model.logits(states).log_softmax(-1)
    expected = scores.gather(1, batch.tgt_labels_N[:, None]).sum()
    assert_close(torch.tensor(hypothesis.log_probability), expected, 1e-4)
