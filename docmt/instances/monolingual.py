"""Instances of documents of one language: what document restoration is made of."""

import logging
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from docmt.corpora.documents import DocumentIndex, read_index
from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.instances.segmentation import N_MARKS, split_documents
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import MONOLINGUAL, InstanceSet
from docmt.provenance import describe
from docmt.text.vocabulary import BOS, EOS, UNK, Vocabulary

log = logging.getLogger(__name__)

SENTENCES_OF_A_GAP = 3
"""A gap sentence has a neighbour on each side."""


def build_monolingual(
    sentences: Iterable[Sequence[str]], index: DocumentIndex, vocabulary: Vocabulary, settings: InstancesSettings
) -> InstanceSet:
    """Encode and split documents of one language, a sentence at a time: the corpora are large.

    `max_sentences` and `max_tokens` cut documents into consecutive pieces; nothing is left out.

    Args:
        sentences: subwords of each sentence, index.n_sentences of them.

    Returns:
        Instances whose target side is the source side, the same arrays.

    Raises:
        UserError: there is no sentence, or their number differs from the index.
    """
    tokens, lengths = array("i"), array("q")
    for sentence in sentences:
        tokens.append(BOS)
        tokens.extend(vocabulary.encode(sentence))
        tokens.append(EOS)
        lengths.append(len(sentence) + N_MARKS)
    if not lengths:
        raise UserError("there is no sentence to make instances of: the text is empty")
    if len(lengths) != index.n_sentences:
        raise UserError(f"{len(lengths)} lines, but the document index counts {index.n_sentences} sentences")
    packed, costs = np.frombuffer(tokens, dtype=np.int32), np.frombuffer(lengths, dtype=np.int64)
    offsets, documents = split_documents(costs, index.lengths, settings)
    n_unknown = int((packed == UNK).sum())
    counts = {
        "documents_read": len(index.ids),
        "documents_split": int((np.bincount(documents) > 1).sum()),
        "sentences_read": index.n_sentences,
        "instances_split": len(documents),
        "instances_left_out": 0,
        "instances_without_gap": int((np.diff(offsets) < SENTENCES_OF_A_GAP).sum()),
        "sentences_over_limit": int((costs > settings.max_tokens).sum()),
        "src_unknown_tokens": n_unknown,
        "tgt_unknown_tokens": n_unknown,
        "documents": len(index.ids),
        "sentences": len(costs),
        "instances": len(documents),
        "tokens": int(costs.sum()),
        "longest_instance_tokens": int(np.add.reduceat(costs, offsets[:-1]).max()),
    }
    manifest = {"counts": counts, "document_ids": list(index.ids), MONOLINGUAL: True}
    token_offsets = np.concatenate(([0], np.cumsum(costs)))
    return InstanceSet(packed, token_offsets, packed, token_offsets, offsets, documents, manifest)


def build_monolingual_from_files(
    *, text: Path, documents: Path, vocabulary: Path, settings: InstancesSettings
) -> InstanceSet:
    """As `build_monolingual`, from a `monolingual.bpe.{lang}` file, the document index and the vocabulary.

    Raises:
        UserError: a file is missing, the numbers of lines differ, or the vocabulary has no masks.
    """
    words = Vocabulary.load(vocabulary)
    try:
        words.masks()
    except UserError as error:
        raise UserError(f"{vocabulary}: {error}") from None
    sentences = (line.split() for line in iterate_lines(text))
    try:
        built = build_monolingual(sentences, read_index(documents), words, settings)
    except UserError as error:
        message = str(error)
        raise UserError(message if message.startswith(str(text)) else f"{text}: {message}") from None
    built.manifest["provenance"] = describe(settings=settings.model_dump())
    counts = built.manifest["counts"]
    log.info(
        "%d sentences of %d documents make %d instances, %d of them too short for a gap sentence",
        *(counts[key] for key in ("sentences", "documents", "instances", "instances_without_gap")),
    )
    return built
