"""The RST parser: greedy shift-reduce on word states of a trained segmenter, model file and training.

Shapes: D word state width, Q states or nodes, L slots, F features.
"""

import hashlib
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.constituents import SPAN, Node, binarize, from_json
from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits, read_discourse, sentences_of
from docmt.discourse.evaluation import Coarse, coarse_classes, evaluate
from docmt.discourse.other_parsers import (
    BASELINES,
    ISANLP_VERSION,
    FileParser,
    IsanlpParser,
    Parser,
    WordStates,
    baseline,
)
from docmt.discourse.parsing.network import (
    EduInputs,
    Ensemble,
    ParserExample,
    ParserNetwork,
    collate,
    edge_words,
    edu_inputs,
    make_example,
    node_slots,
    number_words,
    state_slots,
)
from docmt.discourse.parsing.transitions import (
    FORMS,
    NN,
    NS,
    SHIFT,
    SN,
    DocumentProfile,
    State,
    node_features,
    possible,
    state_features,
)
from docmt.discourse.segmentation.segmenter import Segmenter, SegmenterOutput, adam, averaged, weights_refused
from docmt.discourse.settings import NeuralSettings, ParserSettings
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.provenance import describe
from docmt.tensor_files import read_tensors

FORMAT = 1
KIND = "discourse parser"
KEYS = ("settings", "relations", "words", "parts", "segmenter", "scores", "provenance")
MAX_BATCH_EDUS = 1000
"""Maximum number of EDUs in documents parsed in lockstep."""
log = logging.getLogger(__name__)


@dataclass
class NeuralParser(Parser):
    """Parser networks on the word states of one segmenter."""

    ensemble: Ensemble
    relations: Sequence[str]  # names of relation classes
    words: Sequence[str]  # vocabulary of words at EDU edges
    segmenter: Segmenter  # source of word states
    settings: ParserSettings

    @property
    @override
    def inventory(self) -> str | None:
        return self.settings.relations

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        return self.parse_batch([document])[0]

    @override
    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        if states is None:
            outputs = self.segmenter.encode(sentences_of(documents))
            states = word_states(outputs, documents, reads_lower=self.settings.neural.reads_lower)
        parsed: list[DiscourseDocument] = []
        full = [pair for pair in zip(documents, states, strict=True) if pair[0].edus]
        for group in fill_batches(full, MAX_BATCH_EDUS, cost=lambda pair: len(pair[0].edus)):
            with torch.no_grad():
                parsed += self._parse_group([pair[0] for pair in group], [pair[1] for pair in group])
        self.counts["documents"] += len(documents) - len(full)
        trees = iter(parsed)
        return [next(trees) if document.edus else replace(document, tree=None, arcs=None) for document in documents]

    def _parse_group(self, documents: list[DiscourseDocument], segmenter_states: WordStates) -> list[DiscourseDocument]:
        """Parse documents with EDUs in lockstep, with one call of the networks per step."""
        word_numbers = number_words(self.words)
        inputs = [edu_inputs(*pair, word_numbers) for pair in zip(documents, segmenter_states, strict=True)]
        profiles = list(map(DocumentProfile, documents))
        lengths = [profile.units.n_edus for profile in profiles]
        offsets = [0, *itertools.accumulate(lengths)]
        encoded = self.ensemble.encode(EduInputs.join(inputs))
        cache = self.ensemble.actions.cache(encoded, lengths)

        def place(slots: list[int], number: int) -> list[int]:
            """Map EDUs in a document to EDUs in the batch. Missing EDUs become the EDU after the last one."""
            return [slot + offsets[number] if slot >= 0 else offsets[-1] for slot in slots]

        def score(states: list[State], numbers: list[int]) -> list[list[float]]:
            pairs = list(zip(states, numbers, strict=True))
            slots = torch.tensor([place(state_slots(profiles[number], state), number) for state, number in pairs])
            values = torch.tensor([state_features(profiles[number], state) for state, number in pairs])
            return self.ensemble.actions.log_probabilities(cache, slots, values, torch.tensor(numbers)).tolist()

        # First structure and nuclearity of all documents, then relations.
        sentences, paragraphs = self.settings.sentence_constraint, self.settings.paragraph_constraint
        constraints = [Constraint(profile.units, sentences=sentences, paragraphs=paragraphs) for profile in profiles]
        final, n_enforced = parse_greedily(constraints, lengths, score)
        self.counts.update(documents=len(documents), edus=sum(lengths), enforced=n_enforced)
        numbers = [number for number, state in enumerate(final) for _ in state.nodes]
        relations: list[str] = []
        if numbers:
            slots = [place(node_slots(node), number) for number, state in enumerate(final) for node in state.nodes]
            pairs = zip(profiles, final, strict=True)
            values = [row for profile, state in pairs for row in node_features(profile, state.nodes)]
            classifier = self.ensemble.relations
            rows = torch.tensor(slots), torch.tensor(values), torch.tensor(numbers)
            best = classifier.log_probabilities(classifier.cache(encoded, lengths), *rows).argmax(-1)
            relations = [self.relations[int(relation)] for relation in best]
        names = iter(relations)
        trees = [build_tree(state.actions, names) for state in final]
        return [replace(document, tree=tree, arcs=None) for document, tree in zip(documents, trees, strict=True)]


def word_states(
    outputs: Iterable[SegmenterOutput], documents: Sequence[DiscourseDocument], *, reads_lower: bool
) -> list[list[Tensor]]:
    """Return word states by document and sentence, from the segmenter output for all sentences in order.

    With `reads_lower`, upper BiLSTM states are concatenated with lower BiLSTM states.
    """
    states = (
        torch.cat([output.states_TD, output.lower_TD], dim=1) if reads_lower else output.states_TD for output in outputs
    )
    return [list(itertools.islice(states, len(document.sentences))) for document in documents]


class Constraint:
    """Allows only actions that keep all sentences (and paragraphs) complete subtrees."""

    def __init__(self, units: DocumentUnits, *, sentences: bool, paragraphs: bool) -> None:
        levels = [units.sentences if sentences else None, units.paragraphs if paragraphs else None]
        self.units = [level for level in levels if level is not None]

    def allows(self, state: State) -> tuple[bool, bool]:
        """Return (can Shift, can Reduce) for a state that is not final. At least one is always true."""
        # If a unit must be completed before a Shift, the upper two spans are inside it and can be joined. If a Reduce
        # would cross the start of an unfinished unit, the rest of the unit is still in the queue.
        can_shift, can_reduce = possible(state)
        if not state.stack:
            return can_shift, can_reduce
        first, last = state.stack[-1].first, state.stack[-1].last
        for units in self.units:
            if can_shift and units.number_of[state.next] != units.number_of[last] and first > units.first[last]:
                can_shift = False
            if can_reduce and units.number_of[first - 1] != units.number_of[first] and last < units.last[last]:
                can_reduce = False
        return can_shift, can_reduce


Scorer = Callable[[list[State], list[int]], Sequence[Sequence[float]]]
"""Maps states and document numbers to one score per action."""


def parse_greedily(constraints: Sequence[Constraint], lengths: Sequence[int], score: Scorer) -> tuple[list[State], int]:
    """Parse documents with `lengths` EDUs in lockstep, so that the classifier scores many states at once.

    Returns the final states, and the number of steps with a decision by a constraint against the classifier.
    """
    states = [State(n_edus) for n_edus in lengths]
    n_enforced = 0
    active = [number for number, state in enumerate(states) if not state.is_final]
    while active:
        open_states = [states[number] for number in active]
        for number, state, scores in zip(active, open_states, score(open_states, active), strict=True):
            action, is_enforced = best_action(state, constraints[number], scores)
            state.apply(action)
            n_enforced += is_enforced
        active = [number for number in active if not states[number].is_final]
    return states, n_enforced


def best_action(state: State, constraint: Constraint, scores: Sequence[float]) -> tuple[int, bool]:
    """Return the best allowed action, and true if the constraint overruled the classifier."""
    reduce_action = max((NN, NS, SN), key=scores.__getitem__)
    can_shift, can_reduce = possible(state)
    prefers_shift = scores[SHIFT] >= scores[reduce_action] if can_shift and can_reduce else can_shift
    can_shift, can_reduce = constraint.allows(state)
    shifts = prefers_shift if can_shift and can_reduce else can_shift
    return (SHIFT if shifts else reduce_action), shifts != prefers_shift


def build_tree(actions: Sequence[int], relations: Iterable[str]) -> Node:
    """Build a tree from actions and the relations of Reduce actions."""
    edus, names = itertools.count(), iter(relations)
    return from_json(
        [
            next(edus) if action == SHIFT else {"children": 2, "nuclearity": FORMS[action], "relation": next(names)}
            for action in actions
        ]
    )


@dataclass(frozen=True)
class TrainedParser:
    """The content of a parser file."""

    parser: NeuralParser
    segmenter: bytes  # content of the segmenter file
    scores: dict[str, Any] = field(default_factory=dict)  # development scores
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, settings, seed and training data


def save_parser(path: Path, trained: TrainedParser) -> None:
    """Write a parser file."""
    parser = trained.parser
    content = {
        "format": FORMAT,
        "kind": KIND,
        "settings": parser.settings.model_dump(),
        "relations": list(parser.relations),
        "words": list(parser.words),
        "parts": [network.state_dict() for network in parser.ensemble.networks],
        "segmenter": torch.frombuffer(bytearray(trained.segmenter), dtype=torch.uint8),
        "scores": trained.scores,
        "provenance": trained.provenance,
    }
    with atomic_path(path) as temporary:
        torch.save(content, temporary)


def parser_from_bytes(data: bytes, *, where: str) -> TrainedParser:
    """Load a parser from the content of its file. No code in it can run."""
    mend = "train it with `docmt discourse train-parser`"
    content = read_tensors(data, where=where, what="a parser", mend=mend, format=FORMAT, kind=KIND, keys=KEYS)
    settings = ParserSettings.load(content["settings"], where=f"{where}: settings")
    try:
        data = content["segmenter"].numpy().tobytes()
        segmenter = Segmenter.from_bytes(data, where=f"{where}: segmenter")
        relations, words = content["relations"], content["words"]
        width = segmenter.width + (segmenter.lower_width if settings.neural.reads_lower else 0)
        networks = []
        for weights in content["parts"]:
            network = ParserNetwork(width, len(words), len(relations), settings.neural)
            network.load_state_dict(weights)
            networks.append(network.eval())
        if not networks:
            raise ValueError("no networks")
    except (RuntimeError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise weights_refused(error, where=where) from None
    parser = NeuralParser(Ensemble(networks), tuple(relations), tuple(words), segmenter, settings)
    return TrainedParser(parser, data, content["scores"], content["provenance"])


def load_parser(name: str) -> Parser:
    """Load a parser by name: a baseline, `isanlp[:VERSION]`, `file:PATH` (trees from files), or a model file."""
    if name in BASELINES:
        return baseline(name)
    if Path(name).exists():
        return parser_from_bytes(read_bytes(Path(name)), where=name).parser
    adapter, _, argument = name.partition(":")
    if adapter == "file":
        return FileParser(Path(argument))
    if adapter == "isanlp":
        return IsanlpParser.load(argument or ISANLP_VERSION)
    choices = f"pass a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
    raise UserError(f"parser {name!r}: no such file; {choices}")


def reads_states_of(parser: NeuralParser, segmenter: Segmenter) -> bool:
    """True if a parser was trained on this segmenter, whose states can then be passed to `parse_batch`."""
    # Compared by content, since the parser file contains a copy of the segmenter.
    copy = parser.segmenter
    weights, others = copy.network.state_dict(), segmenter.network.state_dict()
    return (
        copy.settings == segmenter.settings
        and copy.vocabulary == segmenter.vocabulary
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )


def train_parser(*, train: Path, dev: Path, segmenter: Path, settings: ParserSettings, seed: int) -> TrainedParser:
    """Train on the gold trees in a `.discourse.jsonl` with a segmenter file, and score on another."""
    data = read_bytes(segmenter)
    model = Segmenter.from_bytes(data, where=str(segmenter))
    coarse = coarse_classes(settings.relations)
    documents = [document for document in read_discourse(train) if document.edus]
    trees = [training_tree(document, coarse) for document in documents]
    relations = sorted({node.relation for tree in trees for node in tree.postorder() if not node.is_leaf})
    if not relations:
        raise UserError("parser training: no document has two or more EDUs to learn from")
    gold = read_discourse(dev)
    parser = train_neural(documents, trees, model, settings, relations=relations, seed=seed)
    # On gold EDUs: with paragraphs, if any document has them, and without.
    variants = {"without paragraphs": [replace(document, paragraphs=None) for document in gold]}
    if any(document.paragraphs is not None for document in gold):
        variants = {"with paragraphs": gold} | variants
    scores = {}
    for name, variant in variants.items():
        scores[name] = evaluate(zip(gold, parser.parse_batch(variant), strict=True), coarse=coarse)
        log.info("development set, %s: original Parseval %s", name, scores[name]["parseval"])
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        train_documents=len(documents),
        segmenter=hashlib.sha256(data).hexdigest(),
    )
    return TrainedParser(parser, data, scores, provenance)


def training_tree(document: DiscourseDocument, coarse: Coarse) -> Node:
    """Return the binarized tree of a document with coarse relations."""
    if document.tree is None:
        raise UserError(f"parser training: document {document.id!r} has no tree: train on gold trees")

    def rename(node: Node, children: list[Node]) -> Node:
        names = tuple(name if name == SPAN else coarse(name) for name in node.relations)
        return Node(node.first, node.last, tuple(children), node.nuclearity, names)

    return binarize(document.tree.fold(rename))


def train_neural(
    documents: Sequence[DiscourseDocument],
    trees: Sequence[Node],
    segmenter: Segmenter,
    settings: ParserSettings,
    *,
    relations: Sequence[str],
    seed: int,
) -> NeuralParser:
    """Train all networks on documents with EDUs and their binary trees with coarse `relations`."""
    counts: Counter[str] = Counter()  # words at EDU edges
    for document in documents:
        for edu in range(len(document.edus)):
            counts.update(edge_words(document, edu))
    words = tuple(sorted(word for word, count in counts.items() if word and count >= settings.neural.min_word_count))
    outputs = segmenter.encode(sentences_of(documents))
    states = word_states(outputs, documents, reads_lower=settings.neural.reads_lower)
    examples = [
        make_example(document, tree, word_vectors, relations=relations, numbers=number_words(words))
        for document, tree, word_vectors in zip(documents, trees, states, strict=True)
        if not tree.is_leaf
    ]
    sizes = {"n_words": len(words), "n_relations": len(relations)}
    networks = [
        train_member(examples, **sizes, settings=settings.neural, seed=1000 * seed + member)
        for member in range(settings.neural.members)
    ]
    return NeuralParser(Ensemble(networks), relations, words, segmenter, settings)


def train_member(
    examples: Sequence[ParserExample], *, n_words: int, n_relations: int, settings: NeuralSettings, seed: int
) -> ParserNetwork:
    """Train one network on examples with at least two EDUs, and return it with averaged weights.

    Initial weights, document order, hidden paragraphs and dropout depend on the seed.
    """
    chance = random.Random(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ParserNetwork(examples[0].inputs.words_WD.shape[1], n_words, n_relations, settings).train()
        average = averaged(network, settings.average_decay, head_start=0)
        optimizer = adam(network, settings.learning_rate, settings.weight_decay)
        n_updates = settings.epochs * -(-len(examples) // settings.documents_per_batch)
        n_warmup = max(1, n_updates // 20)
        update = 0
        for epoch in range(1, settings.epochs + 1):
            order = list(range(len(examples)))
            chance.shuffle(order)
            total = 0.0
            for start in range(0, len(order), settings.documents_per_batch):
                batch = [examples[number] for number in order[start : start + settings.documents_per_batch]]
                hidden = [chance.random() < settings.paragraph_dropout for _ in batch]
                # A short warm-up, then linear decay to 0.
                share = min((update + 1) / n_warmup, (n_updates - update) / max(1, n_updates - n_warmup))
                optimizer.param_groups[0]["lr"] = settings.learning_rate * share
                loss = total_loss(network, batch, hidden, settings.label_smoothing)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                update += 1
                average.update_parameters(network)
                total += loss.item()
            log.info("parser, seed %d: epoch %d of %d, loss %.1f", seed, epoch, settings.epochs, total)
    return cast(ParserNetwork, average.module)  # AveragedModel is not generic


def total_loss(
    network: ParserNetwork, batch: Sequence[ParserExample], hidden: Sequence[bool], smoothing: float
) -> Tensor:
    """Return the mean cross-entropy of actions plus the mean cross-entropy of relations (scalar)."""
    inputs = EduInputs.join([example.inputs for example in batch])
    edus_ER = network.encoder(inputs)
    loss = torch.zeros(())
    for classifier, parts in (
        (network.actions, [example.steps for example in batch]),
        (network.relations, [example.nodes for example in batch]),
    ):
        *arguments, labels_Q = collate(parts, inputs.n_edus, hidden)
        scores_QC = classifier(classifier.cache(edus_ER, inputs.n_edus), *arguments)
        loss = loss + functional.cross_entropy(scores_QC, labels_Q, label_smoothing=smoothing)
    return loss
