"""Contrastive suites on which a model without context scores exactly one half, by construction.

A group is two documents that end with the same focus sentence and require different renderings of it, which are the
candidates of both items. So whichever rendering a sentence model prefers, it is right in half of each group.

With `documents: selection`, documents are made for their focus, at a given distance from what decides it, and differ in
the deciding sentence alone: a rule that does not read this sentence is right in half of each group, too.

With `documents: segments`, they are beginnings of random documents, up to a sentence that the context decides. The
other document of a group exchanges one thing: the topics of two segments, the verb of the deciding sentence, the form
of address, a word's sense or rendering. What is exchanged is drawn evenly in training too, so both documents are
equally likely.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, count, islice
from random import Random
from typing import Any, NamedTuple

from docmt.controlled import lexicon, segments, sentences
from docmt.controlled.building import WORDS, Elided, Placed, draw_length
from docmt.controlled.german import GENDERS, Predicate
from docmt.controlled.segments import DISTRACTOR, PLANS, TARGET, SegmentBuilder, SegmentPlan, draw_plan
from docmt.controlled.selection import SelectionBuilder
from docmt.controlled.settings import ControlledSettings, SegmentsSettings, SelectionSettings
from docmt.errors import UserError

MAX_DISTANCE = {"pronoun": 5, "deixis": 8, "cohesion": 5, "ellipsis": 1}
MAX_ATTEMPTS = 10_000
SENTENCES_PER_MOVE = 2

GeneratedItem = tuple[dict[str, Any], Sequence[Placed]]
"""An item and the sentences of its document, which ends with the focus sentence."""


class MinimalPair(NamedTuple):
    """A group: two documents that end with the focus sentence, and the variant of it that each requires."""

    variants: tuple[str, str]
    documents: tuple[Sequence[Placed], Sequence[Placed]]
    kind: str | None = None


def build_suite(name: str, settings: ControlledSettings) -> list[GeneratedItem]:
    """Build the items of a suite of `SUITES`; it does not depend on the sizes of the splits."""
    if isinstance(settings, SelectionSettings):
        # Suites do not depend on the share of pairs in training documents.
        share = SelectionSettings.model_fields["paired_introductions"].default
        settings = settings.model_copy(update={"paired_introductions": share})
    contrasts = SUITES[settings.documents][name]
    items = chain.from_iterable(
        _items(name, number, contrast) for number in count() for contrast in contrasts(settings, number)
    )
    first = islice(items, settings.n_suite_items)
    return [({"id": f"{name}-{number:05d}", **item}, placed) for number, (item, placed) in enumerate(first)]


def _items(name: str, number: int, contrast: MinimalPair) -> Iterator[GeneratedItem]:
    """The two items of a group; their candidates are in the same order."""
    group = f"{name}-{number}-{''.join(contrast.variants)}" if name == "pronoun" else f"{name}-{number}"
    for correct, placed in enumerate(contrast.documents):
        focus, before = placed[-1], [each.tgt for each in placed[:-1]]
        assert focus.antecedent is not None, "the context decides the focus sentence"
        item = {
            "phenomenon": name,
            "distance": len(placed) - 1 - focus.antecedent,
            "src": [each.sentence.src for each in placed],
            "candidates": [[*before, focus.sentence.variants[variant]] for variant in contrast.variants],
            "correct": correct,
            "sentence": len(placed) - 1,
            "group": group,
        }
        yield item | ({"kind": contrast.kind} if contrast.kind else {}), placed


# Selection: documents made for their focus. Both documents of a group get the same random numbers.


def _draw_lead(rng: Random, settings: SelectionSettings, *, distance: int, fixed: int = 0) -> int:
    """The length of the lead; `fixed` sentences come between it and the deciding sentence."""
    n_sentences = rng.randint(settings.min_sentences, min(settings.max_sentences, settings.min_sentences + 6))
    return max(0, n_sentences - fixed - distance - 1)


def _pronoun(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Lead, antecedent, sentences between, focus, for every pair of genders; all have the same focus.

    A noun of another class, of any gender, the same in all documents, occurs between the last two or, if nothing is
    between, just before the antecedent.
    """
    seed = f"{settings.seed}/suite/pronoun/{number}"
    class_name = list(lexicon.CLASSES)[number % len(lexicon.CLASSES)]
    distance = 1 + number % MAX_DISTANCE["pronoun"]
    focus = sentences.pronoun(Random(seed), class_name)

    def document(gender: str) -> list[Placed]:
        rng = Random(seed)
        other_class = rng.choice([name for name in lexicon.CLASSES if name != class_name])
        builder = SelectionBuilder(rng, settings, reserved=frozenset({class_name, other_class}))
        n_lead = _draw_lead(rng, settings, distance=distance, fixed=int(distance == 1))
        distractor = rng.choice(lexicon.CLASSES[other_class].nouns[rng.choice(GENDERS)])
        builder.add_random(n_lead)
        if distance == 1:
            builder.add_introduction({other_class: distractor})
        builder.add_introduction({class_name: rng.choice(lexicon.CLASSES[class_name].nouns[gender])})
        builder.elided = None  # an elliptical sentence would repeat the gender in German, closer to the focus
        place = rng.randrange(distance - 1) if distance > 1 else None
        for position in range(distance - 1):
            if position == place:
                builder.add_introduction({other_class: distractor})
                builder.reserved = frozenset({class_name})
            else:
                builder.add_random()
        builder.add_pronoun(class_name, focus)
        return builder.placed

    for pair in combinations(GENDERS, 2):
        yield MinimalPair(pair, (document(pair[0]), document(pair[1])))


def _deixis(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Lead, greeting, sentences between, focus, which is the only sentence with `you`."""
    seed = f"{settings.seed}/suite/deixis/{number}"
    distance = 1 + number % MAX_DISTANCE["deixis"]
    focus = sentences.deixis(Random(f"{seed}/focus"))

    def document(address: str) -> list[Placed]:
        rng = Random(seed)
        builder = SelectionBuilder(rng, settings, reserved=frozenset({"deixis"}))
        n_lead = _draw_lead(rng, settings, distance=distance)
        builder.add_random(min(n_lead, max(4, settings.min_sentences - distance - 1)))
        builder.add_greeting(address)
        builder.add_random(distance - 1)
        builder.add_deixis(focus)
        return builder.placed

    familiar, formal = sentences.ADDRESSES
    yield MinimalPair(sentences.ADDRESSES, (document(familiar), document(formal)))


def _cohesion(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Lead, the sentence that decides the word, sentences without it, focus; two kinds of words in turn."""
    kind = list(WORDS)[number % 2]
    words, draw = WORDS[kind]
    seed = f"{settings.seed}/suite/cohesion/{number}"
    word = list(words)[number // 2 % len(words)]
    distance = 1 + number // 2 % MAX_DISTANCE["cohesion"]
    focus = draw(Random(f"{seed}/focus"), word)

    def document(choice: int) -> list[Placed]:
        rng = Random(seed)
        builder = SelectionBuilder(rng, settings, reserved=frozenset({word}))
        builder.add_random(_draw_lead(rng, settings, distance=distance))
        builder.add_word(kind, word, choice)
        builder.add_random(distance - 1)
        builder.add_word(kind, word, sentence=focus)
        return builder.placed

    yield MinimalPair(("0", "1"), (document(0), document(1)), kind)


def _ellipsis(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Lead, a distractor with one of the two verbs, some sentences, the deciding sentence, focus."""
    seed = f"{settings.seed}/suite/ellipsis/{number}"
    rng = Random(f"{seed}/focus")
    is_transitive = number % 2 == 0
    first, second = rng.sample(lexicon.TRANSITIVE if is_transitive else lexicon.INTRANSITIVE, 2)
    who, *others = rng.sample(lexicon.PERSONS, 3)
    gender = rng.choice(GENDERS) if is_transitive else None
    focus = sentences.ellipsis(rng, person=who, verbs=(first, second), gender=gender)

    def document(verb: Predicate) -> list[Placed]:
        rng = Random(seed)
        classes = rng.sample(list(lexicon.CLASSES), 2)
        builder = SelectionBuilder(rng, settings, reserved=frozenset({*classes, "ellipsis"}))
        n_lead = _draw_lead(rng, settings, distance=1, fixed=1)
        n_after = rng.randint(0, min(2, n_lead))
        builder.add_random(n_lead - n_after)
        for name, predicate, person in zip(classes, (second, verb), others, strict=True):
            if gender is None:
                builder.add_activity(predicate, person=person)
            else:
                noun = rng.choice(lexicon.CLASSES[name].nouns[gender])
                builder.add_introduction({name: noun}, person=person, predicate=predicate, plain=True)
            if person == others[0]:
                builder.add_random(n_after)
        builder.add_ellipsis(focus)
        return builder.placed

    yield MinimalPair((first.verb, second.verb), (document(first), document(second)))


# Segments: random documents that happen to have a focus.


class Swap(NamedTuple):
    """The variants of the focus that the two documents of a group require, and what the second replaces."""

    variants: tuple[str, str]
    values: Mapping[Any, Any]
    kind: str | None = None


Accept = Callable[[SegmentBuilder, int, int], Swap | None]
"""Accepts a sentence of a document, for a group with a number, as its focus."""


def _search(
    name: str, plans: tuple[SegmentPlan, ...] | None, accept: Accept, settings: SegmentsSettings, number: int
) -> Iterator[MinimalPair]:
    """The latest acceptable focus of the first document that has one; with plans, documents end with each in turn."""

    def build(seed: str, exchange: Mapping[Any, Any]) -> SegmentBuilder:
        rng = Random(seed)
        if plans is None:
            return segments.build_document(rng, settings, exchange)
        plan = draw_plan(rng, plans[number % len(plans)])
        n_sentences = draw_length(rng, settings)
        builder = SegmentBuilder(rng, settings, n_sentences, exchange)
        builder.add_random(n_sentences - SENTENCES_PER_MOVE * len(plan))
        builder.follow(plan)
        return builder

    for attempt in range(MAX_ATTEMPTS):
        seed = f"{settings.seed}/segments/{name}/{number}/{attempt}"
        document = build(seed, {})
        for place in reversed(range(settings.min_sentences - 1, len(document))):
            found = accept(document, place, number)
            if found is not None:
                other = build(seed, found.values)
                yield MinimalPair(found.variants, (document.placed[: place + 1], other.placed[: place + 1]), found.kind)
                return
    raise UserError(
        f"controlled corpus: no item for suite {name!r} in {MAX_ATTEMPTS} documents: raise max_sentences, or the "
        "weight of the phenomenon"
    )


def find_swap_in_structure(builder: SegmentBuilder, place: int, number: int) -> Swap | None:
    """The sentence that ends the plan."""
    target, distractor = builder.roles[TARGET].noun, builder.roles[DISTRACTOR].noun
    is_last = place == len(builder) - 1
    if not is_last or len(builder) > builder.settings.max_sentences or target.gender == distractor.gender:
        return None
    values = {target: distractor, distractor: target}
    return Swap((target.gender, distractor.gender), values, PLANS[number % len(PLANS)].kind)


def find_swap_in_deixis(builder: SegmentBuilder, place: int, _: int) -> Swap | None:
    """The first sentence with `you`."""
    kinds = [placed.kind for placed in builder.placed[: place + 1]]
    if kinds[-1] != "deixis" or kinds.count("deixis") > 1:
        return None
    address = builder.placed[place].variant
    (other,) = set(sentences.ADDRESSES) - {address}
    return Swap((address, other), {address: other, other: address})


def find_swap_in_cohesion(builder: SegmentBuilder, place: int, number: int) -> Swap | None:
    """The first use of a word after the sentence that decides it, of ambiguous and `consistent` words in turn."""
    focus, kind = builder.placed[place], list(WORDS)[number % 2]
    if focus.kind != kind or focus.antecedent is None:
        return None
    decides = builder.placed[focus.antecedent].decides
    if decides is None or any(placed.antecedent == focus.antecedent for placed in builder.placed[:place]):
        return None
    word, choice = decides
    values = {(word, choice): (word, 1 - choice), (word, 1 - choice): (word, choice)}
    return Swap((str(choice), str(1 - choice)), values, kind)


def find_swap_in_ellipsis(builder: SegmentBuilder, place: int, number: int) -> Swap | None:
    """An elliptical sentence, of which one verb occurs earlier. Verbs with and without an object in turn."""
    if builder.placed[place].kind != "ellipsis":
        return None
    wanted = (lexicon.TRANSITIVE, lexicon.INTRANSITIVE)[number % 2]
    *others, verb = [each.decides.predicate for each in builder.placed[:place] if isinstance(each.decides, Elided)]
    others = [other for other in others if other != verb and other in wanted]
    if verb not in wanted or not others:
        return None
    return Swap((verb.verb, others[-1].verb), {(place - 1, verb): others[-1]})


SUITES: dict[str, dict[str, Callable[[Any, int], Iterator[MinimalPair]]]] = {
    "selection": {"pronoun": _pronoun, "deixis": _deixis, "cohesion": _cohesion, "ellipsis": _ellipsis},
    "segments": {
        "structure": partial(_search, "structure", PLANS, find_swap_in_structure),
        "deixis": partial(_search, "deixis", None, find_swap_in_deixis),
        "cohesion": partial(_search, "cohesion", None, find_swap_in_cohesion),
        "ellipsis": partial(_search, "ellipsis", None, find_swap_in_ellipsis),
    },
}
"""By kind of documents and name: the groups of each number."""
