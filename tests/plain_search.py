"""Source documents, searches, and teacher forcing as oracle for tests of search."""

import numpy as np
from core_fixtures import make_batch, random_sentence

from docmt.decoding.beam_search import search_instances
from docmt.decoding.contrastive_scoring import instance_log_probabilities
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.models.attention.layout import AttentionLayout
from docmt.text.vocabulary import BOS, EOS


def sources(counts, *, seed=0, longest=9):
    """Source documents with empty and one-word sentences."""
    generator = np.random.default_rng(seed)
    return [[random_sentence(generator, int(generator.integers(0, longest))) for _ in range(n)] for n in counts]


def pack_sources(model, documents, **options):
    """Packed tokens of documents, and their layout for a search."""
    sentences = [sentence for document in documents for sentence in document]
    lengths, counts = (np.array([len(each) for each in items]) for items in (sentences, documents))
    return np.concatenate(sentences), AttentionLayout.of_source(lengths, counts, settings=model.settings, **options)


def search(model, documents, trees=None, **values):
    return search_instances(
        DecodingModel(model), *pack_sources(model, documents, trees=trees), DecodingSettings(**values)
    )


def teacher_forced(model, source, sentences, trees=None, *, start=BOS, **options):
    """Log probability of target sentences. A free stream may have a different number of sentences than the source."""
    target = [np.array([start, *sentence, EOS]) for sentence in sentences]
    if model.settings.target_stream == "free":
        # One group per instance on the target side: its tokens are one "sentence" to the packing.
        target = [np.concatenate(target), *[np.array([], int)] * (len(source) - 1)]
    return float(instance_log_probabilities(model, make_batch(model.settings, [(source, target)], trees, **options))[0])


def texts(beams):
    """Sentences in the hypotheses, by document."""
    return [[hypothesis.sentences for hypothesis in hypotheses] for hypotheses in beams]
