"""Contrastive suites on which a model without context scores exactly 50 %, by construction.

A group consists of two documents that end with the same focus sentence but require different renderings. These are the
candidates in both items. Whichever rendering a sentence model prefers, it is right in one item per group.

With `generator: flat`, documents are built for their focus at a fixed distance from the deciding sentence, and
differ only in this sentence. A rule that does not read it is also right in one item per group.

With `generator: nested`, they are beginnings of random documents that end with a context-dependent sentence. The
second document swaps one thing: the topics of two segments, the verb in the deciding sentence, the form of address, or
a sense or rendering. In training, the swapped values are equally frequent, so both documents are equally likely.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
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
"""An item, and the sentences of its document, with the focus sentence at the end."""


class MinimalPair(NamedTuple):
    """A group: two documents that end with the focus sentence, and their required variants."""

    variants: tuple[str, str]
    documents: tuple[Sequence[Placed], Sequence[Placed]]
    kind: str | None = None


CHOICES = {
    "pronoun": "which noun “it” means, as in er, sie or es",
    "structure": "which noun “it” means after a digression, as in er, sie or es",
    "deixis": "the same form of address throughout, not first du, then Sie",
    "cohesion": "the sense of a word such as “bank”, or one rendering of a word throughout",
    "ellipsis": "the verb left out in “Tom does too”",
}
"""Suite → the choice that depends on context, with an example."""


def build_suite(name: str, settings: ControlledSettings) -> list[GeneratedItem]:
    """Build the items of a suite in `SUITES`. They do not depend on the split sizes."""
    if isinstance(settings, SelectionSettings):
        # Suites do not depend on the share in training documents.
        share = SelectionSettings.model_fields["paired_introductions"].default
        settings = settings.model_copy(update={"paired_introductions": share})
    find_pairs = SUITES[settings.generator][name]
    items: list[GeneratedItem] = []
    number = 0
    while len(items) < settings.n_suite_items:
        for pair in find_pairs(settings, number):
            for item, placed in _items(name, number, pair):
                items.append(({"id": f"{name}-{len(items):05d}", **item}, placed))
        number += 1
    return items[: settings.n_suite_items]


def _items(name: str, number: int, pair: MinimalPair) -> Iterator[GeneratedItem]:
    """Yield both items of a group, with candidates in the same order."""
    group = f"{name}-{number}"
    if name == "pronoun":
        group += f"-{''.join(pair.variants)}"
    for correct, placed in enumerate(pair.documents):
        *context, focus = placed
        assert focus.antecedent is not None, "the context decides the focus sentence"
        before = [sentence.tgt for sentence in context]
        candidates = []
        for variant in pair.variants:
            candidates.append([*before, focus.sentence.variants[variant]])
        item = {
            "phenomenon": name,
            "distance": len(context) - focus.antecedent,
            "src": [sentence.sentence.src for sentence in placed],
            "candidates": candidates,
            "correct": correct,
            "sentence": len(context),
            "group": group,
        }
        if pair.kind:
            item["kind"] = pair.kind
        yield item, placed


# Selection: documents built for their focus. Both documents in a group use the same random numbers.


def _draw_lead(rng: Random, settings: SelectionSettings, *, distance: int, fixed: int = 0) -> int:
    """Draw the length of the lead, for a document with `fixed` sentences before the deciding sentence."""
    n_sentences = rng.randint(settings.min_sentences, min(settings.max_sentences, settings.min_sentences + 6))
    return max(0, n_sentences - fixed - distance - 1)


def _pronoun(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Yield documents with lead, antecedent, random sentences and focus, for all pairs of genders.

    All documents share the focus and a distractor: a noun in another class, between antecedent and focus or, if they
    are adjacent, directly before the antecedent.
    """
    seed = f"{settings.seed}/suite/pronoun/{number}"
    class_name = list(lexicon.CLASSES)[number % len(lexicon.CLASSES)]
    distance = 1 + number % MAX_DISTANCE["pronoun"]
    focus = sentences.pronoun(Random(seed), class_name)

    def document(gender: str) -> list[Placed]:
        rng = Random(seed)
        other_classes = [name for name in lexicon.CLASSES if name != class_name]
        other_class = rng.choice(other_classes)
        builder = SelectionBuilder(rng, settings, reserved=frozenset({class_name, other_class}))
        n_lead = _draw_lead(rng, settings, distance=distance, fixed=int(distance == 1))
        distractor = rng.choice(lexicon.CLASSES[other_class].nouns[rng.choice(GENDERS)])
        builder.add_random(n_lead)
        if distance == 1:
            builder.add_introduction({other_class: distractor})
        builder.add_introduction({class_name: rng.choice(lexicon.CLASSES[class_name].nouns[gender])})
        builder.elided = None  # an elliptical sentence would repeat the gender in German, closer to the focus
        pronoun_position = rng.randrange(distance - 1) if distance > 1 else None
        for position in range(distance - 1):
            if position == pronoun_position:
                builder.add_introduction({other_class: distractor})
                builder.reserved = frozenset({class_name})
            else:
                builder.add_random()
        builder.add_pronoun(class_name, focus)
        return builder.placed

    for pair in combinations(GENDERS, 2):
        yield MinimalPair(pair, (document(pair[0]), document(pair[1])))


def _deixis(settings: SelectionSettings, number: int) -> Iterator[MinimalPair]:
    """Yield documents with lead, greeting, random sentences and focus, the only sentence with `you`."""
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
    """Yield documents with lead, deciding sentence, random sentences and focus. Word kinds alternate."""
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
    """Yield documents with lead, distractor verb, random sentences, deciding sentence and focus."""
    seed = f"{settings.seed}/suite/ellipsis/{number}"
    rng = Random(f"{seed}/focus")
    is_transitive = number % 2 == 0
    verbs = lexicon.TRANSITIVE if is_transitive else lexicon.INTRANSITIVE
    first, second = rng.sample(verbs, 2)
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


# Segments: random documents that contain a suitable focus.


class Swap(NamedTuple):
    """Required variants of the focus by document, and replacements (`DocumentBuilder.exchange`) in the second."""

    variants: tuple[str, str]
    values: Mapping[Any, Any]
    kind: str | None = None


Accept = Callable[[SegmentBuilder, int, int], Swap | None]
"""Maps document, sentence index and group number to the swap for this focus, or None."""


def _search(
    name: str, plans: tuple[SegmentPlan, ...] | None, accept: Accept, settings: SegmentsSettings, number: int
) -> Iterator[MinimalPair]:
    """Find the last acceptable focus in the first document that has one. Documents end with a plan, if any."""

    def build(seed: str, exchange: Mapping[Any, Any]) -> SegmentBuilder:
        rng = Random(seed)
        if plans is None:
            return segments.build_document(rng, settings, exchange)
        plan = draw_plan(rng, plans[number % len(plans)])
        n_sentences = draw_length(rng, settings)
        builder = SegmentBuilder(rng, settings, n_sentences, exchange)
        builder.add_random(n_sentences - SENTENCES_PER_MOVE * len(plan))
        builder.plan = plan
        while builder.plan:
            builder.add_random()
        return builder

    for attempt in range(MAX_ATTEMPTS):
        seed = f"{settings.seed}/segments/{name}/{number}/{attempt}"
        document = build(seed, {})
        for position in reversed(range(settings.min_sentences - 1, len(document))):
            swap = accept(document, position, number)
            if swap is not None:
                other = build(seed, swap.values)
                documents = document.placed[: position + 1], other.placed[: position + 1]
                yield MinimalPair(swap.variants, documents, swap.kind)
                return
    advice = "raise max_sentences, or the weight of the phenomenon"
    if name == "deixis":  # its focus is the first `you`
        advice = "change n_deictic or lower min_sentences"
    raise UserError(f"controlled corpus: no item for suite {name!r} in {MAX_ATTEMPTS} documents: {advice}")


def find_swap_in_structure(builder: SegmentBuilder, position: int, number: int) -> Swap | None:
    """Accept the last sentence of the plan."""
    target = builder.roles[TARGET].noun
    distractor = builder.roles[DISTRACTOR].noun
    is_last = position == len(builder) - 1
    if not is_last or len(builder) > builder.settings.max_sentences or target.gender == distractor.gender:
        return None
    values = {target: distractor, distractor: target}
    return Swap((target.gender, distractor.gender), values, PLANS[number % len(PLANS)].kind)


def find_swap_in_deixis(builder: SegmentBuilder, position: int, _: int) -> Swap | None:
    """Accept the first sentence with `you`."""
    kinds = [placed.kind for placed in builder.placed[: position + 1]]
    if kinds[-1] != "deixis" or kinds.count("deixis") > 1:
        return None
    address = builder.placed[position].variant
    (other,) = set(sentences.ADDRESSES) - {address}
    return Swap((address, other), {address: other, other: address})


def find_swap_in_cohesion(builder: SegmentBuilder, position: int, number: int) -> Swap | None:
    """Accept the first use of a decided word. Ambiguous and `consistent` words alternate."""
    focus = builder.placed[position]
    kind = list(WORDS)[number % 2]
    if focus.kind != kind or focus.antecedent is None:
        return None
    decides = builder.placed[focus.antecedent].decides
    earlier_antecedents = [placed.antecedent for placed in builder.placed[:position]]
    if decides is None or focus.antecedent in earlier_antecedents:
        return None
    word, choice = decides
    values = {(word, choice): (word, 1 - choice), (word, 1 - choice): (word, choice)}
    return Swap((str(choice), str(1 - choice)), values, kind)


def find_swap_in_ellipsis(builder: SegmentBuilder, position: int, number: int) -> Swap | None:
    """Accept an elliptical sentence after another possible verb. Transitive and intransitive verbs alternate."""
    if builder.placed[position].kind != "ellipsis":
        return None
    verbs = (lexicon.TRANSITIVE, lexicon.INTRANSITIVE)[number % 2]
    predicates = []
    for placed in builder.placed[:position]:
        if isinstance(placed.decides, Elided):
            predicates.append(placed.decides.predicate)
    verb = predicates[-1]
    others = [other for other in predicates if other != verb and other in verbs]
    if verb not in verbs or not others:
        return None
    return Swap((verb.verb, others[-1].verb), {(position - 1, verb): others[-1]})


SUITES: dict[str, dict[str, Callable[[Any, int], Iterator[MinimalPair]]]] = {
    "flat": {"pronoun": _pronoun, "deixis": _deixis, "cohesion": _cohesion, "ellipsis": _ellipsis},
    "nested": {
        "structure": partial(_search, "structure", PLANS, find_swap_in_structure),
        "deixis": partial(_search, "deixis", None, find_swap_in_deixis),
        "cohesion": partial(_search, "cohesion", None, find_swap_in_cohesion),
        "ellipsis": partial(_search, "ellipsis", None, find_swap_in_ellipsis),
    },
}
"""Document kind → suite name → function that yields the groups with a number."""
