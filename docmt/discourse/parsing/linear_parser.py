"""The linear parser: two stages of linear classifiers, after StageDP (Wang et al. 2017)."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from docmt.discourse.constituents import Node
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import Parser, WordStates
from docmt.discourse.parsing.lexical_features import LexicalProfile, merge_features, state_features
from docmt.discourse.parsing.linear_classifier import Instances, LinearClassifier, fit
from docmt.discourse.parsing.settings import LinearSettings
from docmt.discourse.parsing.structural_features import merge_values
from docmt.discourse.parsing.transitions import (
    FORMS,
    Constraint,
    State,
    build_tree,
    gold_actions,
    merges,
    parse_greedily,
)
from docmt.discourse.parsing.units import ABOVE, SAME_PARAGRAPH, SAME_SENTENCE, UNKNOWN
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.discourse.syntax import DocumentSyntax, check_syntax

LEVELS = {SAME_SENTENCE: "sentence", SAME_PARAGRAPH: "paragraph", ABOVE: "document", UNKNOWN: "text"}
"""Names of the relation classifiers; `text` is for nodes above sentences in documents without paragraphs."""
ACTION_NAMES = ("shift", *FORMS[1:])

SyntaxSource = Callable[[Sequence[DiscourseDocument]], Sequence[DocumentSyntax | None]]


def no_syntax(documents: Sequence[DiscourseDocument]) -> list[None]:
    """Return None for every document."""
    return [None] * len(documents)


@dataclass(frozen=True)
class SegmenterSyntax:
    """Syntax predicted by a segmenter."""

    segmenter: Segmenter

    def __call__(self, documents: Sequence[DiscourseDocument]) -> list[DocumentSyntax]:
        """Predict the syntax of documents."""
        sentences = [words for document in documents for words in document.sentences]
        found = iter(self.segmenter.predict_syntax(sentences))
        return [tuple(itertools.islice(found, len(document.sentences))) for document in documents]


@dataclass
class LinearParser(Parser):
    """One classifier for structure and nuclearity, and one for relations at each level.

    Attributes:
        actions: classifier of the classes `ACTION_NAMES`.
        relations: classifiers by the names of `LEVELS`.
        syntax: gives the syntax of documents, from the same source as in training.
        sentence_constraint: whether every sentence becomes one complete subtree.
        paragraph_constraint: whether every paragraph becomes one complete subtree.
        reads_nucleus: whether it was trained on all words of nucleus EDUs (see `LexicalProfile`).
    """

    actions: LinearClassifier
    relations: dict[str, LinearClassifier]
    syntax: SyntaxSource = no_syntax
    sentence_constraint: bool = True
    paragraph_constraint: bool = False
    reads_nucleus: bool = False

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        return self.parse_batch([document])[0]

    @override
    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        syntax = self.syntax(documents)  # of all at once: a segmenter is faster on many sentences
        return [self._parse(document, found) for document, found in zip(documents, syntax, strict=True)]

    def _parse(self, document: DiscourseDocument, syntax: DocumentSyntax | None) -> DiscourseDocument:
        if syntax is not None:
            check_syntax(document, syntax)
        profile = LexicalProfile(document, syntax, reads_nucleus=self.reads_nucleus)
        constraint = Constraint(profile.units, sentences=self.sentence_constraint, paragraphs=self.paragraph_constraint)
        # An action that training never needed has no class: it gets a score below all others.
        columns = [self.actions.classes.index(name) if name in self.actions.classes else None for name in ACTION_NAMES]

        def score(states: list[State], _: list[int]) -> list[list[float]]:
            scores = self.actions.scores(state_features(profile, states[0])).tolist()
            return [[-1e9 if column is None else scores[column] for column in columns]]

        states, n_enforced = parse_greedily([constraint], [len(document.edus)], score)
        nodes = merges(states[0].actions)
        names = []
        for node, values in zip(nodes, merge_values(profile, nodes), strict=True):
            classifier = self.relations[LEVELS[profile.units.level(node.left[0], node.right[1])]]
            names.append(classifier.classes[classifier.scores(merge_features(profile, values, node)).argmax()])
        self.counts.update(documents=1, edus=len(document.edus), enforced=n_enforced)
        tree = build_tree(states[0].actions, names) if document.edus else None
        return replace(document, tree=tree, arcs=None)


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
        actions = gold_actions(tree)
        is_hidden = chance.random() < settings.paragraph_dropout
        seen = without_paragraphs if is_hidden else document
        profile = LexicalProfile(seen, words, reads_nucleus=reads_nucleus)
        state = State(len(document.edus))
        for action in actions:
            steps.add(state_features(profile, state), ACTION_NAMES[action])
            state.apply(action)
        relations = [node.relation for node in tree.postorder() if not node.is_leaf]
        nodes = merges(actions)
        # Relations are learned twice, without and with paragraphs, so that every level of `LEVELS` has examples.
        for variant in (without_paragraphs, document) if document.paragraphs is not None else (document,):
            profile = LexicalProfile(variant, words, reads_nucleus=reads_nucleus)
            for node, values, relation in zip(nodes, merge_values(profile, nodes), relations, strict=True):
                level = profile.units.level(node.left[0], node.right[1])
                if level != SAME_SENTENCE or variant.paragraphs is None:  # nodes inside sentences count once
                    nodes_of[LEVELS[level]].add(merge_features(profile, values, node), relation)
    fitted = {name: fit(nodes, settings) for name, nodes in nodes_of.items() if nodes.labels}
    names = list(LEVELS.values())
    for place, name in enumerate(names):
        if name not in fitted:
            nearest = min(fitted, key=lambda other: abs(names.index(other) - place))
            fitted[name] = fitted[nearest]
    return LinearParser(fit(steps, settings), fitted, reads_nucleus=reads_nucleus)
