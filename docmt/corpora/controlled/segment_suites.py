"""Contrastive suites of documents of nested segments.

An item is the beginning of a document, up to a sentence that the context decides. A group is two items that differ in
one exchange only: of the topics of two segments, of two verbs, of the form of address, of a word's sense or rendering.
What is exchanged is drawn evenly in training too, so both documents are as likely as each other. A score that looks at
one sentence pair at a time is therefore right for exactly half of all items.

Items of `structure` end where a plan of `segment_plans` does, with every plan equally often.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from random import Random
from typing import Any, NamedTuple

from docmt.corpora.controlled import lexicon, sentences
from docmt.corpora.controlled.planning import draw_length
from docmt.corpora.controlled.segment_plans import DISTRACTOR, PLANS, TARGET, draw_plan
from docmt.corpora.controlled.segments import SegmentBuilder
from docmt.corpora.controlled.settings import SegmentsSettings
from docmt.corpora.controlled.suites import GeneratedItem, make_item, take_items
from docmt.errors import UserError

MAX_ATTEMPTS = 10_000
SENTENCES_PER_MOVE = 2


class Contrast(NamedTuple):
    """What two items exchange: the variant of the focus that each requires, and the values that trade places."""

    rights: tuple[str, str]
    values: tuple[Any, Any]
    kind: str | None = None

    @property
    def exchange(self) -> Mapping[Any, Any]:
        """The exchange that turns one of the two documents into the other."""
        return dict(zip(self.values, reversed(self.values), strict=True))


Build = Callable[[Random, SegmentsSettings, int, Mapping[Any, Any]], SegmentBuilder]
Find = Callable[[SegmentBuilder, int], tuple[int, Contrast] | None]


def _groups(name: str, settings: SegmentsSettings, build: Build, find: Find) -> Iterator[list[GeneratedItem]]:
    """Groups of two items from the documents that `build` draws, if `find` accepts a sentence as their focus.

    Both get the number of the group. Raises UserError when `find` accepts none.
    """
    for number in count():
        for attempt in range(MAX_ATTEMPTS):
            seed = f"{settings.seed}/segments/{name}/{number}/{attempt}"
            document = build(Random(seed), settings, number, {})
            found = find(document, number)
            if found is None:
                continue
            focus, contrast = found
            other = build(Random(seed), settings, number, contrast.exchange)
            yield [
                make_item(
                    each.placed[: focus + 1],
                    phenomenon=name,
                    pair=contrast.rights,
                    right=right,
                    group=f"{name}-{number}",
                    kind=contrast.kind,
                )
                for each, right in zip((document, other), contrast.rights, strict=True)
            ]
            break
        else:
            raise UserError(
                f"controlled corpus: no item for suite {name!r} in {MAX_ATTEMPTS} documents: raise max_sentences, or "
                "the weight of the phenomenon"
            )


# Structure


def _build_structure(
    rng: Random, settings: SegmentsSettings, number: int, exchange: Mapping[Any, Any]
) -> SegmentBuilder:
    plan = draw_plan(rng, PLANS[number % len(PLANS)])
    n_sentences = draw_length(rng, settings)
    builder = SegmentBuilder(rng, settings, n_sentences, exchange)
    builder.extend(n_sentences - SENTENCES_PER_MOVE * len(plan))
    builder.follow(plan)
    return builder


def _find_structure(builder: SegmentBuilder, number: int) -> tuple[int, Contrast] | None:
    nouns = builder.roles[TARGET].noun, builder.roles[DISTRACTOR].noun
    settings = builder.settings
    if not settings.min_sentences <= len(builder) <= settings.max_sentences or nouns[0].gender == nouns[1].gender:
        return None
    return len(builder) - 1, Contrast((nouns[0].gender, nouns[1].gender), nouns, PLANS[number % len(PLANS)].kind)


# The other phenomena: documents that happen to have them


def _build_document(
    rng: Random, settings: SegmentsSettings, number: int, exchange: Mapping[Any, Any]
) -> SegmentBuilder:
    n_sentences = draw_length(rng, settings)
    builder = SegmentBuilder(rng, settings, n_sentences, exchange)
    builder.extend(n_sentences)
    return builder


def _latest(accept: Callable[[SegmentBuilder, int, int], Contrast | None]) -> Find:
    """Find the latest sentence that `accept(document, sentence, number of the group)` turns into a contrast."""

    def find(builder: SegmentBuilder, number: int) -> tuple[int, Contrast] | None:
        for place in reversed(range(builder.settings.min_sentences - 1, len(builder))):
            contrast = accept(builder, place, number)
            if contrast is not None:
                return place, contrast
        return None

    return find


def _deixis(builder: SegmentBuilder, place: int, _: int) -> Contrast | None:
    """The first sentence with `you`."""
    kinds = [placed.kind for placed in builder.placed[: place + 1]]
    if kinds[-1] != "deixis" or kinds.count("deixis") > 1:
        return None
    right = next(key for key, text in builder.placed[place].sentence.variants.items() if text == builder.tgt[place])
    other = next(each for each in sentences.ADDRESSES if each != right)
    return Contrast((right, other), (right, other))


def _cohesion(builder: SegmentBuilder, place: int, number: int) -> Contrast | None:
    """The first use of a word after the sentence that decides it, of ambiguous and `consistent` words in turn."""
    focus, kind = builder.placed[place], ("ambiguous", "consistent")[number % 2]
    if focus.kind != kind or focus.antecedent not in builder.choices:
        return None
    if any(placed.antecedent == focus.antecedent for placed in builder.placed[:place]):
        return None
    word, choice = builder.choices[focus.antecedent]
    return Contrast((str(choice), str(1 - choice)), ((word, choice), (word, 1 - choice)), kind)


def _ellipsis(builder: SegmentBuilder, place: int, number: int) -> Contrast | None:
    """An elliptical sentence; the wrong verb occurs earlier. Verbs with and without an object in turn."""
    focus = builder.placed[place]
    wanted = (lexicon.TRANSITIVE, lexicon.INTRANSITIVE)[number % 2]
    if focus.kind != "ellipsis" or focus.antecedent is None:
        return None
    verb = builder.verbs[focus.antecedent]
    others = [other for index, other in builder.verbs.items() if index < place and other != verb and other in wanted]
    if verb not in wanted or not others:
        return None
    return Contrast((verb.verb, others[-1].verb), (verb, others[-1]))


SEGMENT_BUILDERS: dict[str, tuple[Build, Find]] = {
    "structure": (_build_structure, _find_structure),
    "deixis": (_build_document, _latest(_deixis)),
    "cohesion": (_build_document, _latest(_cohesion)),
    "ellipsis": (_build_document, _latest(_ellipsis)),
}


def build_segment_suite(name: str, settings: SegmentsSettings) -> list[GeneratedItem]:
    """Build the items of a suite of `SEGMENT_BUILDERS`; it does not depend on the sizes of the splits.

    Raises UserError when the settings make a phenomenon too rare.
    """
    build, find = SEGMENT_BUILDERS[name]
    return take_items(name, _groups(name, settings, build, find), settings.n_suite_items)
