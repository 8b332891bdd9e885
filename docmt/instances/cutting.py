"""Splitting documents into instances.

The rule: an instance takes whole sentences of one document, in order, as long as the sum over its sentences of
max(source subwords, target subwords) + 2 does not exceed `max_tokens`; a longer sentence forms an instance alone,
uncut. (The code of G-Transformer requires a sum strictly below its limit.)
"""

from array import array
from collections.abc import Sequence

import numpy as np

from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import offsets_of


def split_document(costs: Sequence[int], *, max_tokens: int, max_sentences: int | None = None) -> list[int]:
    """Split one document greedily from its start; returns the number of sentences of each instance."""
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
    """Split every document; `document_lengths` are in sentences and add up to the number of costs.

    Returns:
        int64 [instances + 1] sentence offsets, int32 [instances] document of each instance.
    """
    counts, documents = array("i"), array("i")
    start = 0
    for number, length in enumerate(document_lengths):
        parts = split_document(
            costs[start : start + length].tolist(),
            max_tokens=settings.max_tokens,
            max_sentences=settings.max_sentences,
        )
        # Typed arrays, not lists of Python's numbers, which would take ten times the memory.
        counts.extend(parts)
        documents.extend([number] * len(parts))
        start += length
    return offsets_of(counts), np.frombuffer(documents, dtype=np.int32)
