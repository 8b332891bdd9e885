"""Word alignments of sentences and their translations, from the cross-attention of the model that translates."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from docmt.batching import fill_batches
from docmt.decoding.cross_attention import AttentionRecorder, words_of
from docmt.formats.tag_placement import Place, WordAlignment
from docmt.instances.packing import PackedSentences
from docmt.models.batch import pack
from docmt.models.model_file import TrainedModel
from docmt.models.systems.transformer import Transformer
from docmt.text.spacing import BLANK, split_marks, unescape

# The recorded weights of a batch have a row for each of its target tokens, and a column for each source token.
BATCH_TOKENS = 1024
# A word is looked for behind the last one; what normalization has changed is skipped.
FARTHEST = 16


@torch.inference_mode()
def align_words(
    trained: TrainedModel,
    model: Transformer,
    pairs: Sequence[tuple[str, str]],
    *,
    layer: int = -1,
    is_read: bool = False,
) -> list[WordAlignment]:
    """Alignments of pairs of a sentence and its translation, each read by itself, in one pass for many pairs.

    A pair longer than `BATCH_TOKENS` or than the model's positions has no alignment: its words are none. `model` is the
    trained one as it translates, on its device. Attention counts where the model predicts a word or, with `is_read`,
    where it reads it.
    """
    settings, device = trained.model.settings, model.embedding.weight.device
    found = [WordAlignment((), (), np.zeros((0, 0))) for _ in pairs]
    pipeline, marks = trained.pipeline, trained.marks
    subwords = [
        (pipeline.prepare(src, lang=pipeline.src_lang), pipeline.prepare(tgt, lang=pipeline.tgt_lang))
        for src, tgt in pairs
    ]
    skipped = 1 if settings.target_stream == "aligned" else 0
    context = "document" if settings.context is None else "none"
    lengths = [max(map(len, both)) for both in subwords]
    n_marks = max(sum(settings.src_marks), settings.n_starts + 1)
    longest = min(BATCH_TOKENS, (settings.form.learned_positions or math.inf) - n_marks)
    short = [number for number, length in enumerate(lengths) if length <= longest]
    for numbers in fill_batches(short, BATCH_TOKENS, cost=lengths.__getitem__):
        src, tgt = ([subwords[number][side] for number in numbers] for side in (0, 1))
        packed = PackedSentences.of(
            [marks.wrap(trained.vocabulary.encode(each), "src") for each in src],
            [marks.wrap(trained.vocabulary.encode(each), "tgt") for each in tgt],
            np.ones(len(src), dtype=np.int64),
        )
        batch = pack(packed, settings=settings, context=context).to(device)
        with AttentionRecorder(model, layer) as recorder:
            model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)
        weights_NS = next(iter(recorder.weights.values())).cpu().numpy()
        src_words, src_rows = words_of(trained, src, "src")
        tgt_words, tgt_rows = words_of(trained, tgt, "tgt", skipped=skipped)
        # A word has two rows: where the model predicts it, and one later, where it reads it. The last layer aligns best
        # where it predicts (benchmarks/markup.py).
        tgt_rows = [rows + skipped - (not is_read) for rows in tgt_rows]
        src_rows, tgt_rows = iter(src_rows), iter(tgt_rows)
        for number, words_M, words_N in zip(numbers, src_words, tgt_words, strict=True):
            columns = [next(src_rows) for _ in words_M]
            rows = [next(tgt_rows) for _ in words_N]
            places_M, places_N = places_of(pairs[number][0], words_M), places_of(pairs[number][1], words_N)
            weights_NM = np.array([[weights_NS[np.ix_(r, c)].sum(1).mean() for c in columns] for r in rows])
            found[number] = WordAlignment(places_M, places_N, weights_NM.reshape(len(rows), len(columns)))
    return found


def places_of(text: str, words: Sequence[str]) -> list[Place]:
    """The place of each word of a tokenizer in the text; an empty one for a word that is not found."""
    places, position = [], 0
    lower = text.lower() if len(text.lower()) == len(text) else text
    for word in words:
        core = unescape(split_marks(word)[1]).strip(BLANK).lower()
        start = lower.find(core, position, position + len(core) + FARTHEST) if core else -1
        if start >= 0:
            position = start + len(core)
        places.append((max(start, 0), position if start >= 0 else 0))
    return places
