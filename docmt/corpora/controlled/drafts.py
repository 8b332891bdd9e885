"""What all builders of generated documents share: sentences in their place, and what later ones depend on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

from docmt.corpora.controlled.german import Predicate
from docmt.corpora.controlled.sentences import Sentence


@dataclass(frozen=True)
class Placed:
    """A sentence in its document.

    Attributes:
        sentence: the sentence with all its renderings.
        tgt: the German rendering that the context requires.
        phenomenon: `pronoun`, `deixis`, `cohesion` or `ellipsis` if the context decides the rendering, else None.
        kind: what the sentence does, for counting.
        antecedent: index of the sentence that decides the rendering, None if there is none.
        parent: index of the sentence to which it is attached in the discourse tree, -1 for the first.
        relation, nuclearity: of that attachment; "NS": the parent is the nucleus, "SN": the parent is the satellite.
    """

    sentence: Sentence
    tgt: str
    phenomenon: str | None
    kind: str
    antecedent: int | None
    parent: int
    relation: str
    nuclearity: str


Decision = TypeVar("Decision")


@dataclass(frozen=True)
class Mention(Generic[Decision]):
    """The sentence that last decided something, and the noun, sense, rendering or address that it chose."""

    index: int
    value: Decision


@dataclass(frozen=True)
class Elided:
    """The verb phrase that an elliptical sentence can repeat; `gender` is that of its object, None without one."""

    predicate: Predicate
    person: str
    gender: str | None


@dataclass
class Draft:
    """A document under construction.

    Attributes:
        rng: the only source of randomness.
        placed: the sentences.
        address: the form of address, once it is decided.
        senses, renderings: what has been decided, by word.
        elided: what the next sentence can repeat.
    """

    rng: Random
    placed: list[Placed] = field(default_factory=list, kw_only=True)
    address: Mention[str] | None = field(default=None, kw_only=True)
    senses: dict[str, Mention[int]] = field(default_factory=dict, kw_only=True)
    renderings: dict[str, Mention[int]] = field(default_factory=dict, kw_only=True)
    elided: Elided | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.placed)

    @property
    def src(self) -> tuple[str, ...]:
        """The source sentences."""
        return tuple(placed.sentence.src for placed in self.placed)

    @property
    def tgt(self) -> tuple[str, ...]:
        """The target sentences that the context requires."""
        return tuple(placed.tgt for placed in self.placed)

    def _place(
        self,
        sentence: Sentence,
        kind: str,
        relation: str,
        *,
        variant: str,
        phenomenon: str | None,
        antecedent: int | None,
        parent: int,
        nuclearity: str,
    ) -> None:
        """Append a sentence; the next one cannot repeat the verb phrase of an earlier one."""
        self.elided = None
        self.placed.append(
            Placed(
                sentence=sentence,
                tgt=sentence.variants[variant],
                phenomenon=phenomenon,
                kind=kind,
                antecedent=antecedent,
                parent=parent,
                relation=relation,
                nuclearity=nuclearity,
            )
        )

    def _fresh(self, draw: Callable[..., Sentence], *arguments: Any) -> Sentence:
        """The first of at most ten draws that the document does not have yet, else the last."""
        sentence = draw(self.rng, *arguments)
        for _ in range(9):
            if sentence.src not in self.src:
                break
            sentence = draw(self.rng, *arguments)
        return sentence
