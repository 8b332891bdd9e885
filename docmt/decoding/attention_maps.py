"""Cross-attention of a model that is given its own translations, by word, for a sample of documents."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from docmt.decoding.cross_attention import AttentionRecorder, words_of
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import prepare_model
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.storage import InstanceSet
from docmt.logs import progress
from docmt.models.attention.batch_trees import BatchTrees
from docmt.models.batch import Batch, instance_trees, pack
from docmt.models.model_file import TrainedModel
from docmt.models.systems.transformer import Transformer

logger = logging.getLogger(__name__)

# Number of source words kept for a target word, by weight.
MOST_WORDS = 6


def attend(
    trained: TrainedModel,
    instances: InstanceSet,
    hypotheses: Sequence[dict[str, Any]],
    settings: DecodingSettings,
    *,
    n_documents: int,
    device: str = "cpu",
) -> dict[str, Any]:
    """The attention of a model that is given its own translations, in a sample of documents, evenly spaced.

    `hypotheses` are the rows of the translations of all instances (docs/files.md).

    Returns:
        By document, a list with an object for each instance that has as many sentences as its source: `first` (number
        of its first sentence in the document), `src` and `tgt` (sentences as lists of words), `parts` of the attention,
        and, for each target word, `weights` (by part, pairs of a source word's number in the instance and its
        percentage, highest first) and `gate` (percentage of the first part; absent without a gate).
    """
    if len(hypotheses) != len(instances):
        raise UserError(f"{len(hypotheses)} translations for {len(instances)} instances: translate them again")
    ids = instances.document_ids()
    owners = [ids[document] for document in instances.documents.tolist()]
    foreign = [n for n, pair in enumerate(zip(hypotheses, owners, strict=True), start=1) if not _is_of(*pair)]
    if foreign:
        raise UserError(f"line {foreign[0]} of the translations is not of instance {foreign[0]}: translate them again")
    model = prepare_model(trained.model, settings, device)
    if model.settings.drafts:
        # Only the first of the two passes attends to the own source sentence.
        settings = settings.model_copy(update={"context": "none"})
        logger.info("the attention of the second decoder is not recorded, only that of the sentence model")
    elif model.context is not None and settings.context == "document":
        logger.info("the attention of the context module is not recorded, only the attention to the own sentence")
    names = list(dict.fromkeys(owners))
    # Evenly spaced instead of random: the same documents for every model of a study.
    n = min(n_documents, len(names))
    chosen = {names[i * len(names) // n] for i in range(n)}
    found: dict[str, Any] = {}
    numbers = [number for number, owner in enumerate(owners) if owner in chosen]
    starts: dict[str, int] = {}
    for number in progress(numbers, label="attention", unit="instances"):
        start = int(instances.instances[number])
        first = starts.setdefault(owners[number], start)
        src = [trained.marks.wrap(ids[1:-1], "src") for ids in instances.sentences(number, "src")]
        tgt = [trained.encode(sentence, "tgt") for sentence in hypotheses[number]["sentences"]]
        members = found.setdefault(owners[number], [])
        if len(src) == len(tgt):
            batch = _pack(trained, instances, number, src, tgt, settings).to(device)
            members.append({"first": start - first, **_read(trained, model, batch, src, tgt)})
    return found


def _is_of(row: Any, document: str) -> bool:
    """Whether a row has the translation of an instance of a document."""
    if not isinstance(row, dict) or row.get("document") != document or not isinstance(row.get("sentences"), list):
        return False
    return all(isinstance(sentence, str) for sentence in row["sentences"])


def _pack(
    trained: TrainedModel,
    instances: InstanceSet,
    number: int,
    src: list[np.ndarray],
    tgt: list[np.ndarray],
    settings: DecodingSettings,
) -> Batch:
    has_trees = trained.model.settings.needs_trees and instances.trees is not None
    sentences = PackedSentences.of(src, tgt, np.array([len(src)]))
    own = instance_trees(instances, number).marked(trained.model.settings.src_marks) if has_trees else None
    trees = BatchTrees.join_known([own], [sentences.src_lengths_G])
    return pack(sentences, settings=trained.model.settings, trees=trees, context=settings.context)


@torch.inference_mode()
def _read(
    trained: TrainedModel, model: Transformer, batch: Batch, src: list[np.ndarray], tgt: list[np.ndarray]
) -> dict[str, Any]:
    with AttentionRecorder(model) as recorder:
        model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)
    src_words, src_rows = words_of(trained, src, "src")
    # A word is written where it is the label, which is one place before it is an input.
    skipped = 1 if model.settings.target_stream == "aligned" else 0
    tgt_words, tgt_rows = words_of(trained, tgt, "tgt", skipped=skipped)
    tgt_rows = [rows - (1 - skipped) for rows in tgt_rows]
    found: dict[str, Any] = {"src": src_words, "tgt": tgt_words, "parts": list(recorder.weights), "weights": {}}
    for name, weights in recorder.weights.items():
        weights_NS = weights.cpu().numpy()
        # From subwords to words: a source word gets the sum of its columns, a target word the mean of its rows: the
        # weights of a target word still are shares of one.
        by_source = np.empty((len(weights_NS), len(src_rows)), dtype=weights_NS.dtype)
        for word, rows in enumerate(src_rows):
            by_source[:, word] = weights_NS[:, rows].sum(1)
        found["weights"][name] = []
        for weights in (by_source[rows].mean(0) for rows in tgt_rows):
            best = [(int(word), round(100 * float(weights[word]))) for word in np.argsort(-weights, kind="stable")]
            found["weights"][name].append([[word, percent] for word, percent in best[:MOST_WORDS] if percent])
    if recorder.gate_N is not None:
        gate = recorder.gate_N.cpu().numpy()
        found["gate"] = [round(100 * float(gate[rows].mean())) for rows in tgt_rows]
    return found
