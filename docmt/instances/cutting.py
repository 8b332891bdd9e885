"""Splitting of documents into instances.

An instance consists of consecutive sentences in a document. The sum of max(source subwords, target subwords) + 2 over
sentences is at most `max_tokens`. A longer sentence forms its own instance. In the code of G-Transformer, the sum must
be strictly smaller than the limit.
"""

from array import array
from collections.abc import Sequence

import numpy as np

from docmt.instances.settings import InstancesSettings
from docmt.ranges import offsets_of


def split_document(costs: Sequence[int], *, max_tokens: int, max_sentences: int | None = None) -> list[int]:
    """Split a document greedily from the start. Returns the number of sentences per instance."""
    counts: list[int] = []
    total = 0
    for cost in costs:
        is_full = max_sentences is not None and counts and counts[-1] >= max_sentences
        if not counts or is_full or total + cost > max_tokens:
            counts.append(0)
            total = 0
        counts[-1] += 1
        total += cost
    return counts


def split_documents(
    costs: np.ndarray, document_lengths: Sequence[int], settings: InstancesSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Split all documents. The sum of `document_lengths` (in sentences) is the number of costs.

    Returns:
        int64 [instances + 1] sentence offsets, int32 [instances] document per instance.
    """
    counts, documents = array("i"), array("i")
    start = 0
    for number, length in enumerate(document_lengths):
        parts = split_document(
            costs[start : start + length].tolist(),
            max_tokens=settings.max_tokens,
            max_sentences=settings.max_sentences,
        )
        # Typed arrays, since lists would take ten times the memory.
        counts.extend(parts)
        documents.extend([number] * len(parts))
        start += length
    return offsets_of(counts), np.frombuffer(documents, dtype=np.int32)
