"""Planning a document of the corpus: its greeting, and the pronouns and deixis that it must have."""

import math
from random import Random

from docmt.corpora.controlled import sentences
from docmt.corpora.controlled.building import DocumentBuilder
from docmt.corpora.controlled.settings import MAX_PRONOUN_DISTANCE, ControlledSettings, SegmentsSettings


def draw_length(rng: Random, settings: ControlledSettings | SegmentsSettings) -> int:
    """The length of a document in sentences: the shorter of two draws, so that short documents are more frequent."""
    return min(rng.randint(settings.min_sentences, settings.max_sentences) for _ in range(2))


def build_document(rng: Random, settings: ControlledSettings, n_sentences: int) -> DocumentBuilder:
    """Build a document with a greeting near its start and the required numbers of pronouns and deictic sentences."""
    builder = DocumentBuilder(rng, settings.weights, paired_introductions=settings.paired_introductions)
    greeting_at = rng.randint(0, min(4, n_sentences - settings.least_sentences()))
    missing = {"pronoun": settings.min_pronouns, "deixis": settings.min_deictic}
    while len(builder) < n_sentences:
        if len(builder) == greeting_at:
            builder.add_greeting(rng.choice(sentences.ADDRESSES))
            continue
        n_free = n_sentences - len(builder) - (len(builder) < greeting_at)
        builder.add_random(allowed=_still_needed(builder, missing, n_free))
        kind = builder.placed[-1].kind
        if missing.get(kind, 0) > 0:
            missing[kind] -= 1
    return builder


def _still_needed(builder: DocumentBuilder, missing: dict[str, int], n_free: int) -> frozenset[str] | None:
    """The kinds to which the next sentence is limited when `n_free` are left; None when all are allowed."""
    n_pronouns, n_deictic = missing["pronoun"], missing["deixis"]
    reach = max(
        (mention.index + MAX_PRONOUN_DISTANCE + 1 - len(builder) for mention in builder.nouns.values()), default=0
    )
    n_introductions = max(0, math.ceil((n_pronouns - max(0, reach)) / MAX_PRONOUN_DISTANCE))
    # Keep one sentence in reserve, because every other sentence also moves nouns out of reach.
    if n_pronouns + n_deictic == 0 or n_free > n_pronouns + n_deictic + n_introductions + 1:
        return None
    if n_pronouns > 0 and reach < 1:
        return frozenset({"introduction"})
    needed = {kind for kind, number in missing.items() if number > 0}
    if 0 < reach <= n_pronouns:
        needed.discard("deixis")  # all sentences within reach are needed for pronouns
    return frozenset(needed)
