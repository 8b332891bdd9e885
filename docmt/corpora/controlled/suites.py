"""Contrastive suites on which a model without context scores exactly one half, by construction.

The items of a group share the focus sentence and the two renderings that the candidates offer, and their contexts
require each rendering equally often. The candidates of an item differ only in the focus sentence, which is the last.
So whichever rendering a sentence model prefers, it is right in half of each group.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, count, islice
from random import Random
from typing import Any

from docmt.corpora.controlled import lexicon, sentences
from docmt.corpora.controlled.building import DocumentBuilder
from docmt.corpora.controlled.drafts import Placed
from docmt.corpora.controlled.german import GENDERS
from docmt.corpora.controlled.sentences import Sentence
from docmt.corpora.controlled.settings import ControlledSettings

MAX_DISTANCE = {"pronoun": 5, "deixis": 8, "cohesion": 5, "ellipsis": 1}

GeneratedItem = tuple[dict[str, Any], Sequence[Placed]]
"""An item and the sentences of its document, which ends with the focus sentence."""


def build_suite(name: str, settings: ControlledSettings) -> list[GeneratedItem]:
    """Build the items of a suite of `BUILDERS`.

    It depends only on the seed, the number of items, the lengths of documents and the weights.
    """
    return take_items(name, BUILDERS[name](settings), settings.n_suite_items)


def take_items(name: str, groups: Iterable[list[GeneratedItem]], n_items: int) -> list[GeneratedItem]:
    """The first items of all groups of a suite, with their ids."""
    items = islice(chain.from_iterable(groups), n_items)
    return [({"id": f"{name}-{number:05d}", **item}, placed) for number, (item, placed) in enumerate(items)]


def make_item(
    placed: Sequence[Placed],
    *,
    phenomenon: str,
    pair: tuple[str, str],
    right: str,
    group: str,
    kind: str | None = None,
) -> GeneratedItem:
    """The contrastive item of a document that ends with the focus sentence.

    The candidates are in the order of the pair.
    """
    focus = placed[-1]
    assert focus.antecedent is not None, "the context decides the focus sentence"
    before = [each.tgt for each in placed[:-1]]
    item = {
        "phenomenon": phenomenon,
        "distance": len(placed) - 1 - focus.antecedent,
        "src": [each.sentence.src for each in placed],
        "candidates": [[*before, focus.sentence.variants[key]] for key in pair],
        "correct": pair.index(right),
        "sentence": len(placed) - 1,
        "group": group,
    }
    if kind:
        item["kind"] = kind
    return item, placed


def _draw_lead(rng: Random, settings: ControlledSettings, *, distance: int, fixed: int = 0) -> int:
    """The length of the lead; `fixed` sentences come between it and the deciding sentence."""
    n_sentences = rng.randint(settings.min_sentences, min(settings.max_sentences, settings.min_sentences + 6))
    return max(0, n_sentences - fixed - distance - 1)


def _add_random(builder: DocumentBuilder, count: int) -> None:
    for _ in range(count):
        builder.add_random()


def _pronoun_groups(settings: ControlledSettings) -> Iterator[list[GeneratedItem]]:
    classes = list(lexicon.CLASSES)
    for number in count():
        seed = f"{settings.seed}/suite/pronoun/{number}"
        rng = Random(seed)
        class_name = classes[number % len(classes)]
        distance = 1 + number % MAX_DISTANCE["pronoun"]
        focus = sentences.pronoun(rng, class_name)
        for pair in combinations(GENDERS, 2):
            yield [
                make_item(
                    _pronoun_document(
                        Random(seed), settings, class_name, focus, gender=right, distance=distance
                    ).placed,
                    phenomenon="pronoun",
                    pair=pair,
                    right=right,
                    group=f"pronoun-{number}-{''.join(pair)}",
                )
                for right in pair
            ]


def _pronoun_document(
    rng: Random, settings: ControlledSettings, class_name: str, focus: Sentence, *, gender: str, distance: int
) -> DocumentBuilder:
    """Lead, antecedent, sentences between, focus.

    A noun of another class and gender occurs between the last two or, if nothing is between, just before the
    antecedent.
    """
    other_class = rng.choice([name for name in lexicon.CLASSES if name != class_name])
    builder = DocumentBuilder(rng, settings.weights, reserved=frozenset({class_name, other_class}))
    n_lead = _draw_lead(rng, settings, distance=distance, fixed=int(distance == 1))
    other_gender = rng.choice([name for name in GENDERS if name != gender])
    nouns = lexicon.CLASSES[class_name].nouns
    distractor = rng.choice(lexicon.CLASSES[other_class].nouns[other_gender])
    _add_random(builder, n_lead)
    if distance == 1:
        builder.add_introduction({other_class: distractor})
    builder.add_introduction({class_name: rng.choice(nouns[gender])})
    builder.elided = None  # an elliptical sentence would repeat the gender in German, closer to the focus
    place = rng.randrange(distance - 1) if distance > 1 else None
    for position in range(distance - 1):
        if position == place:
            builder.add_introduction({other_class: distractor})
            builder.reserved = frozenset({class_name})
        else:
            builder.add_random()
    builder.add_pronoun(class_name, focus)
    return builder


def _deixis_groups(settings: ControlledSettings) -> Iterator[list[GeneratedItem]]:
    for number in count():
        seed = f"{settings.seed}/suite/deixis/{number}"
        distance = 1 + number % MAX_DISTANCE["deixis"]
        focus = sentences.deixis(Random(f"{seed}/focus"))
        yield [
            make_item(
                _deixis_document(Random(seed), settings, focus, address=address, distance=distance).placed,
                phenomenon="deixis",
                pair=sentences.ADDRESSES,
                right=address,
                group=f"deixis-{number}",
            )
            for address in sentences.ADDRESSES
        ]


def _deixis_document(
    rng: Random, settings: ControlledSettings, focus: Sentence, *, address: str, distance: int
) -> DocumentBuilder:
    """Lead, greeting, sentences between, focus, which is the only sentence with `you`."""
    builder = DocumentBuilder(rng, settings.weights, has_deixis=False)
    n_lead = _draw_lead(rng, settings, distance=distance)
    _add_random(builder, min(n_lead, max(4, settings.min_sentences - distance - 1)))
    builder.add_greeting(address)
    _add_random(builder, distance - 1)
    builder.add_deixis(focus)
    return builder


def _cohesion_groups(settings: ControlledSettings) -> Iterator[list[GeneratedItem]]:
    kinds = (("ambiguous", list(lexicon.AMBIGUOUS)), ("consistent", list(lexicon.SYNONYMS)))
    for number in count():
        kind, words = kinds[number % 2]
        seed = f"{settings.seed}/suite/cohesion/{number}"
        word = words[number // 2 % len(words)]
        distance = 1 + number // 2 % MAX_DISTANCE["cohesion"]
        draw = sentences.ambiguous if kind == "ambiguous" else sentences.consistent
        focus = draw(Random(f"{seed}/focus"), word)
        yield [
            make_item(
                _cohesion_document(Random(seed), settings, word, focus, choice=choice, distance=distance).placed,
                phenomenon="cohesion",
                pair=("0", "1"),
                right=str(choice),
                group=f"cohesion-{number}",
                kind=kind,
            )
            for choice in (0, 1)
        ]


def _cohesion_document(
    rng: Random, settings: ControlledSettings, word: str, focus: Sentence, *, choice: int, distance: int
) -> DocumentBuilder:
    """Lead, the sentence that decides the word, sentences without it, focus."""
    builder = DocumentBuilder(rng, settings.weights, reserved=frozenset({word}))
    _add_random(builder, _draw_lead(rng, settings, distance=distance))
    if word in lexicon.AMBIGUOUS:
        builder.add_topic(word, choice)
        _add_random(builder, distance - 1)
        builder.add_ambiguous(word, focus)
    else:
        builder.add_consistent(word, rendering=choice)
        _add_random(builder, distance - 1)
        builder.add_consistent(word, sentence=focus)
    return builder


def _ellipsis_groups(settings: ControlledSettings) -> Iterator[list[GeneratedItem]]:
    for number in count():
        seed = f"{settings.seed}/suite/ellipsis/{number}"
        rng = Random(f"{seed}/focus")
        is_transitive = number % 2 == 0
        verbs = tuple(rng.sample(lexicon.TRANSITIVE if is_transitive else lexicon.INTRANSITIVE, 2))
        who, *others = rng.sample(lexicon.PERSONS, 3)
        gender = rng.choice(GENDERS) if is_transitive else None
        focus = sentences.ellipsis(rng, person=who, verbs=verbs, gender=gender)
        yield [
            make_item(
                _ellipsis_document(
                    Random(seed), settings, focus, verbs=order, others=tuple(others), gender=gender
                ).placed,
                phenomenon="ellipsis",
                pair=(verbs[0].verb, verbs[1].verb),
                right=order[0].verb,
                group=f"ellipsis-{number}",
            )
            for order in (verbs, verbs[::-1])
        ]


def _ellipsis_document(
    rng: Random, settings: ControlledSettings, focus: Sentence, *, verbs: tuple, others: tuple, gender: str | None
) -> DocumentBuilder:
    """Lead, a distractor with the other verb, some sentences, the deciding sentence, focus."""
    classes = rng.sample(list(lexicon.CLASSES), 2)
    builder = DocumentBuilder(rng, settings.weights, reserved=frozenset(classes), has_ellipsis=False)
    n_lead = _draw_lead(rng, settings, distance=1, fixed=1)
    n_after = rng.randint(0, min(2, n_lead))
    _add_random(builder, n_lead - n_after)
    for step, verb in enumerate((verbs[1], verbs[0])):
        if gender is None:
            builder.add_activity(verb, person=others[step])
        else:
            nouns = lexicon.CLASSES[classes[step]].nouns[gender]
            noun = {classes[step]: rng.choice(nouns)}
            builder.add_introduction(noun, person=others[step], predicate=verb, plain=True)
        if step == 0:
            _add_random(builder, n_after)
    builder.add_ellipsis(focus)
    return builder


BUILDERS: dict[str, Callable[[ControlledSettings], Iterator[list[GeneratedItem]]]] = {
    "pronoun": _pronoun_groups,
    "deixis": _deixis_groups,
    "cohesion": _cohesion_groups,
    "ellipsis": _ellipsis_groups,
}
