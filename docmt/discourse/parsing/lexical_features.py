"""Named features of the linear parser, after StageDP (Wang et al. 2017, §3.2–3.3), without Brown clusters.

The structural templates are joined by words at the edges of spans, their parts of speech and, inside a sentence, the
dependencies between two spans. Every feature occurs twice: alone, and conjoined with the level of the boundary (in a
state) or the form of the node.
"""

from collections.abc import Sequence

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.structural_features import MERGE_TEMPLATES, STATE_TEMPLATES, state_values
from docmt.discourse.parsing.transitions import Merge, State
from docmt.discourse.parsing.units import NOTHING, SAME_SENTENCE
from docmt.discourse.syntax import DocumentSyntax

NO_WORD = "-"
EDGE_CHARACTERS = (1, 2)
"""Numbers of characters at the edges of a span that are features."""

NamedSpan = tuple[str, int, int, int]
"""Name of a span in features; its first, last and nucleus EDU."""


class LexicalProfile(DocumentProfile):
    """A document with the words of each EDU and, where available, their syntax.

    Attributes:
        reads_nucleus: whether all words of the nucleus EDU of a span, and the characters at its edges, are features.
        words: lower-cased words of each EDU.
        pos: parts of speech of each EDU; empty without syntax.
        outward: features of the words of each EDU whose head is outside the EDU.
        links: for each EDU, the EDUs that contain heads of its words, with the relation of the first such word.
    """

    def __init__(
        self, document: DiscourseDocument, syntax: DocumentSyntax | None, *, reads_nucleus: bool = False
    ) -> None:
        super().__init__(document)
        self.reads_nucleus = reads_nucleus
        self.words = [[word.lower() for word in document.edu_words(edu)] for edu in range(self.units.n_edus)]
        self.pos: list[Sequence[str]] = []
        self.outward: list[list[str]] = [[] for _ in document.edus]
        self.links: list[dict[int, str]] = [{} for _ in document.edus]
        if syntax is None:
            return
        edu_at = {
            (edu.sentence, word): number
            for number, edu in enumerate(document.edus)
            for word in range(edu.start, edu.end)
        }
        for number, edu in enumerate(document.edus):
            sentence = syntax[edu.sentence]
            self.pos.append(sentence.pos[edu.start : edu.end])
            for word in range(edu.start, edu.end):
                head = sentence.heads[word]
                if edu.start <= head < edu.end:
                    continue
                label, tag = sentence.relations[word], sentence.pos[word]
                form = self.words[number][word - edu.start]
                self.outward[number] += [f"word={form}", f"pos={tag}", f"label={label}"]
                if head >= 0:
                    self.links[number].setdefault(edu_at[edu.sentence, head], label)

    def link(self, left: tuple[int, int], right: tuple[int, int]) -> str:
        """Describe how a word of one span depends on a word of the other. Spans are first and last EDU."""
        for name, (first, last), (head_first, head_last) in (("left", left, right), ("right", right, left)):
            for edu in range(first, last + 1):
                for head, label in self.links[edu].items():
                    if head_first <= head <= head_last:
                        return f"{name} {label}"
        return "none"


def state_features(profile: LexicalProfile, state: State) -> list[str]:
    """List the features of a state; one that occurs twice counts twice."""
    values = state_values(profile, state)
    features = [f"{name}={value}" for (name, _), value in zip(STATE_TEMPLATES, values, strict=True)]
    spans: list[NamedSpan | None] = [
        ("s1", state.firsts[-1], state.lasts[-1], state.nuclei[-1]) if state.firsts else None,
        ("s2", state.firsts[-2], state.lasts[-2], state.nuclei[-2]) if len(state.firsts) > 1 else None,
        ("q1", state.next, state.next, state.next) if state.next < state.n_edus else None,
    ]
    for span in spans:
        if span is not None:
            features += _span_features(profile, *span)
    s1, s2, q1 = spans
    features += _pair_features(profile, "s2 s1", s2, s1)
    features += _pair_features(profile, "s1 q1", s1, q1)
    boundary = values[-2] if len(state.firsts) > 1 else NOTHING
    return features + [f"{boundary}|{feature}" for feature in features]


def merge_features(profile: LexicalProfile, values: Sequence[int], merge: Merge) -> list[str]:
    """List the features of an internal node, among them its structural values."""
    features = [f"{name}={value}" for (name, _), value in zip(MERGE_TEMPLATES, values, strict=True)]
    left, right = ("left", *merge.left), ("right", *merge.right)
    features += _span_features(profile, *left)
    features += _span_features(profile, *right)
    features += _pair_features(profile, "pair", left, right)
    return features + [f"{merge.form}|{feature}" for feature in features]


def _span_features(profile: LexicalProfile, name: str, first: int, last: int, nucleus: int) -> list[str]:
    """Words and parts of speech at both ends of a span, and words of its nucleus EDU whose heads are outside it."""
    features = []
    for kind, rows in (("word", profile.words), ("pos", profile.pos)):
        if rows:
            start, end = rows[first], rows[last]
            features += [
                f"{name} first {kind}={start[0] if start else NO_WORD}",
                f"{name} last {kind}={end[-1] if end else NO_WORD}",
                f"{name} first two {kind}={' '.join(start[:2])}",
                f"{name} last two {kind}={' '.join(end[-2:])}",
            ]
    if profile.reads_nucleus:
        start, end = "".join(profile.words[first]), "".join(profile.words[last])
        features += [f"{name} first characters={start[:size]}" for size in EDGE_CHARACTERS]
        features += [f"{name} last characters={end[-size:]}" for size in EDGE_CHARACTERS]
        features += [f"{name} nucleus word={word}" for word in dict.fromkeys(profile.words[nucleus])]
    return features + [f"{name} nucleus {feature}" for feature in profile.outward[nucleus]]


def _pair_features(profile: LexicalProfile, name: str, left: NamedSpan | None, right: NamedSpan | None) -> list[str]:
    """First words of both spans, and the dependency between the spans if they are in the same sentence."""
    if left is None or right is None:
        return []
    features = []
    for kind, rows in (("word", profile.words), ("pos", profile.pos)):
        if rows:
            words = [(rows[part[1]] or [NO_WORD])[0] for part in (left, right)]
            features.append(f"{name} first {kind}={' '.join(words)}")
    if profile.pos and profile.units.level(left[1], right[2]) == SAME_SENTENCE:
        link = profile.link((left[1], left[2]), (right[1], right[2]))
        features += [f"{name} link={link}", f"{name} direction={link.split()[0]}"]
    return features
