"""The linear parser: two stages of linear classifiers over named features, after StageDP (Wang et al. 2017).

Features (§3.2–3.3, without Brown clusters): the structural templates are joined by words at the edges of spans, their
parts of speech and, inside a sentence, the dependencies between two spans. Every feature occurs twice: alone, and
conjoined with the level of the boundary (in a state) or the form of the node.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from docmt.discourse.constituents import Node
from docmt.discourse.documents import (
    ABOVE,
    NOTHING,
    SAME_PARAGRAPH,
    SAME_SENTENCE,
    UNKNOWN,
    DiscourseDocument,
    sentences_of,
)
from docmt.discourse.parsing.baselines import WordStates
from docmt.discourse.parsing.document_profile import DocumentProfile
from docmt.discourse.parsing.linear_classifier import Instances, LinearClassifier, fit
from docmt.discourse.parsing.settings import LinearSettings
from docmt.discourse.parsing.structural_features import MERGE_TEMPLATES, STATE_TEMPLATES, merge_values, state_values
from docmt.discourse.parsing.transitions import (
    FORMS,
    Constituent,
    ShiftReduceParser,
    State,
    gold_actions,
)
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.discourse.syntax import DocumentSyntax, check_syntax
from docmt.errors import UserError

LEVELS = {SAME_SENTENCE: "sentence", SAME_PARAGRAPH: "paragraph", ABOVE: "document", UNKNOWN: "text"}
"""Names of the relation classifiers; `text` is for nodes above sentences in documents without paragraphs."""
ACTION_NAMES = ("shift", *FORMS[1:])

NO_WORD = "-"
EDGE_CHARACTERS = (1, 2)
"""Numbers of characters at the edges of a span that are features."""

SyntaxSource = Callable[[Sequence[DiscourseDocument]], Sequence[DocumentSyntax | None]]


class LexicalProfile(DocumentProfile):
    """A document with the words of each EDU and, where available, their syntax.

    Attributes:
        reads_nucleus: whether all words of the nucleus EDU of a span, and the characters at its edges, are features.
        words: lower-cased words of each EDU.
        pos: parts of speech of each EDU; empty without syntax.
        outward: features of the words of each EDU whose head is outside the EDU.
        links: for each EDU, the EDUs that contain heads of its words, with the relation of the first such word.
    """

    def __init__(self, document: DiscourseDocument, syntax: DocumentSyntax | None, reads_nucleus: bool = False) -> None:
        super().__init__(document)
        self.reads_nucleus = reads_nucleus
        self.words = [[word.lower() for word in document.edu_words(edu)] for edu in range(self.units.n_edus)]
        self.pos: list[Sequence[str]] = []
        self.outward: list[list[str]] = [[] for _ in document.edus]
        self.links: list[dict[int, str]] = [{} for _ in document.edus]
        if syntax is None:
            return
        edus = list(enumerate(document.edus))
        edu_at = {(edu.sentence, word): number for number, edu in edus for word in range(edu.start, edu.end)}
        for number, edu in edus:
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

    def link(self, left: Constituent, right: Constituent) -> str:
        """Describe how a word of one span depends on a word of the other."""
        for name, span, other in (("left", left, right), ("right", right, left)):
            for edu in range(span.first, span.last + 1):
                for head, label in self.links[edu].items():
                    if other.first <= head <= other.last:
                        return f"{name} {label}"
        return "none"


def state_features(profile: LexicalProfile, state: State) -> list[str]:
    """List the features of a state; one that occurs twice counts twice."""
    values = state_values(profile, state)
    features = [f"{name}={value}" for (name, _), value in zip(STATE_TEMPLATES, values, strict=True)]
    s1, s2 = (state.stack[-i] if len(state.stack) >= i else None for i in (1, 2))
    q1 = Constituent(state.next, state.next, state.next) if state.next < state.n_edus else None
    for name, span in (("s1", s1), ("s2", s2), ("q1", q1)):
        if span is not None:
            features += _span_features(profile, name, span)
    features += _pair_features(profile, "s2 s1", s2, s1)
    features += _pair_features(profile, "s1 q1", s1, q1)
    boundary = values[-2] if s2 is not None else NOTHING
    return features + [f"{boundary}|{feature}" for feature in features]


def merge_features(profile: LexicalProfile, values: Sequence[int], node: Constituent) -> list[str]:
    """List the features of an internal node, among them its structural values."""
    features = [f"{name}={value}" for (name, _), value in zip(MERGE_TEMPLATES, values, strict=True)]
    left, right = node.children
    features += _span_features(profile, "left", left)
    features += _span_features(profile, "right", right)
    features += _pair_features(profile, "pair", left, right)
    return features + [f"{node.form}|{feature}" for feature in features]


def _span_features(profile: LexicalProfile, name: str, span: Constituent) -> list[str]:
    """Words and parts of speech at both ends of a span, and words of its nucleus EDU whose heads are outside it."""
    features = []
    for kind, rows in (("word", profile.words), ("pos", profile.pos)):
        if rows:
            start, end = rows[span.first], rows[span.last]
            features += [
                f"{name} first {kind}={start[0] if start else NO_WORD}",
                f"{name} last {kind}={end[-1] if end else NO_WORD}",
                f"{name} first two {kind}={' '.join(start[:2])}",
                f"{name} last two {kind}={' '.join(end[-2:])}",
            ]
    if profile.reads_nucleus:
        start, end = "".join(profile.words[span.first]), "".join(profile.words[span.last])
        features += [f"{name} first characters={start[:size]}" for size in EDGE_CHARACTERS]
        features += [f"{name} last characters={end[-size:]}" for size in EDGE_CHARACTERS]
        features += [f"{name} nucleus word={word}" for word in dict.fromkeys(profile.words[span.nucleus])]
    return features + [f"{name} nucleus {feature}" for feature in profile.outward[span.nucleus]]


def _pair_features(
    profile: LexicalProfile, name: str, left: Constituent | None, right: Constituent | None
) -> list[str]:
    """First words of both spans, and the dependency between the spans if they are in the same sentence."""
    if left is None or right is None:
        return []
    features = []
    for kind, rows in (("word", profile.words), ("pos", profile.pos)):
        if rows:
            words = [(rows[span.first] or [NO_WORD])[0] for span in (left, right)]
            features.append(f"{name} first {kind}={' '.join(words)}")
    if profile.pos and profile.units.level(left.first, right.last) == SAME_SENTENCE:
        link = profile.link(left, right)
        features += [f"{name} link={link}", f"{name} direction={link.split()[0]}"]
    return features


def no_syntax(documents: Sequence[DiscourseDocument]) -> list[None]:
    """Return None for every document."""
    return [None] * len(documents)


def missing_syntax(documents: Sequence[DiscourseDocument]) -> list[None]:
    """Refuse documents that come without the syntax on which a parser was trained."""
    raise UserError(
        "the parser was trained on *.syntax.jsonl, which this text lacks: train one with `syntax: segmenter` or `none`"
    )


@dataclass(frozen=True)
class SegmenterSyntax:
    """Syntax predicted by a segmenter."""

    segmenter: Segmenter

    def __call__(self, documents: Sequence[DiscourseDocument]) -> list[DocumentSyntax]:
        """Predict the syntax of documents."""
        found = iter(self.segmenter.predict_syntax(sentences_of(documents)))
        return [tuple(itertools.islice(found, len(document.sentences))) for document in documents]


@dataclass
class LinearParser(ShiftReduceParser):
    """One classifier for structure and nuclearity, and one for relations at each level."""

    actions: LinearClassifier  # classifier of the classes `ACTION_NAMES`
    relations: dict[str, LinearClassifier]  # classifiers by the names of `LEVELS`
    syntax: SyntaxSource = no_syntax  # gives the syntax of documents, from the same source as in training
    reads_nucleus: bool = False  # whether it was trained on all words of nucleus EDUs (see `LexicalProfile`)

    @override
    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        profiles: list[LexicalProfile] = []
        # The syntax of all documents at once: a segmenter is faster on many sentences.
        for document, syntax in zip(documents, self.syntax(documents), strict=True):
            if syntax is not None:
                check_syntax(document, syntax)
            profiles.append(LexicalProfile(document, syntax, reads_nucleus=self.reads_nucleus))
        # An action that training never needed has no class: it gets a score below all others.
        columns = [self.actions.classes.index(name) if name in self.actions.classes else None for name in ACTION_NAMES]

        def score(states: list[State], numbers: list[int]) -> list[list[float]]:
            pairs = zip(states, numbers, strict=True)
            rows = [self.actions.scores(state_features(profiles[number], state)).tolist() for state, number in pairs]
            return [[-1e9 if column is None else row[column] for column in columns] for row in rows]

        def relate(nodes: list[list[Constituent]]) -> Iterator[str]:
            for profile, own in zip(profiles, nodes, strict=True):
                for node, values in zip(own, merge_values(profile, own), strict=True):
                    classifier = self.relations[LEVELS[profile.units.level(node.first, node.last)]]
                    yield classifier.classes[classifier.scores(merge_features(profile, values, node)).argmax()]

        return self.parse_together(documents, [profile.units for profile in profiles], score, relate)


def train_linear(
    documents: Sequence[DiscourseDocument],
    trees: Sequence[Node],
    syntax: Sequence[DocumentSyntax | None],
    settings: LinearSettings,
    *,
    seed: int,
) -> LinearParser:
    """Train both stages on documents with at least one EDU each and their binary trees of coarse relations.

    A level without training nodes shares the classifier of the nearest level that has some. The seed chooses the
    documents whose paragraphs are hidden.
    """
    chance = random.Random(seed)
    reads_nucleus = settings.words == "nucleus"
    steps = Instances()
    nodes_of = {name: Instances() for name in LEVELS.values()}
    for document, tree, words in zip(documents, trees, syntax, strict=True):
        without_paragraphs = replace(document, paragraphs=None)
        is_hidden = chance.random() < settings.paragraph_dropout
        seen = without_paragraphs if is_hidden else document
        profile = LexicalProfile(seen, words, reads_nucleus=reads_nucleus)
        state = State(len(document.edus))
        for action in gold_actions(tree):
            steps.add(state_features(profile, state), ACTION_NAMES[action])
            state.apply(action)
        relations = [node.relation for node in tree.postorder() if not node.is_leaf]
        # Relations are learned twice, without and with paragraphs, so that every level of `LEVELS` has examples.
        for variant in (without_paragraphs, document) if document.paragraphs is not None else (document,):
            profile = LexicalProfile(variant, words, reads_nucleus=reads_nucleus)
            for node, values, relation in zip(state.nodes, merge_values(profile, state.nodes), relations, strict=True):
                level = profile.units.level(node.first, node.last)
                if level != SAME_SENTENCE or variant.paragraphs is None:  # nodes inside sentences count once
                    nodes_of[LEVELS[level]].add(merge_features(profile, values, node), relation)
    fitted = {name: fit(nodes, settings) for name, nodes in nodes_of.items() if nodes.labels}
    names = list(LEVELS.values())
    for place, name in enumerate(names):
        if name not in fitted:
            nearest = min(fitted, key=lambda other: abs(names.index(other) - place))
            fitted[name] = fitted[nearest]
    return LinearParser(fit(steps, settings), fitted, reads_nucleus=reads_nucleus)
