"""Oracle: log probabilities of existing translations, label by label."""

import numpy as np
import torch
from core_fixtures import make_model

from docmt.decoding.contrastive_scoring import TargetScorer
from docmt.decoding.settings import DecodingSettings
from docmt.instances.packing import PackedSentences
from docmt.models.batch import pack
from docmt.models.model_file import TrainedModel
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS, Vocabulary


def untrained(study, architecture, *, form=None, extras=(), seed=0, **cutting):
    """A model with random weights, and a study vocabulary with additional special symbols."""
    vocabulary = Vocabulary([(symbol, 1) for symbol in study.vocabulary.symbols[N_SPECIALS:]], extras=extras)
    model = make_model(architecture, n_symbols=len(vocabulary), form=form or {}, seed=seed)
    return TrainedModel(model, vocabulary, study.pipeline, cutting, {})


def scorer(trained, **values):
    return TargetScorer(trained, DecodingSettings(**values))


@torch.no_grad()
def directly(trained, src, tgt, n_ends=0):
    """Sum of log p(label) over an instance's labels except so many at its end, label by label."""
    pipeline, vocabulary = trained.pipeline, trained.vocabulary

    def encode(sentences, lang):
        return [[BOS, *vocabulary.encode(pipeline.prepare(s, lang=lang)), EOS] for s in sentences]

    src_ids, tgt_ids = encode(src, "en"), encode(tgt, "de")
    lengths = [np.array([len(ids) for ids in side]) for side in (src_ids, tgt_ids)]
    sentences = PackedSentences(
        np.concatenate(src_ids), lengths[0], np.concatenate(tgt_ids), lengths[1], np.array([len(src)])
    )
    batch = pack(sentences, settings=trained.model.settings)
    states = trained.model(batch.src_tokens_S, batch.tgt_inputs_N, trained.model.place(batch.layout))
    scores = trained.model.logits(states).double().log_softmax(-1)
    labels = batch.tgt_labels_N.tolist()[: len(batch.tgt_labels_N) - n_ends]
    return sum(float(scores[row, label]) for row, label in enumerate(labels))
