"""The RST parser: networks on word states of a trained segmenter, and its model file."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits, sentences_of
from docmt.discourse.other_parsers import (
    BASELINES,
    ISANLP_VERSION,
    FileParser,
    IsanlpParser,
    Parser,
    WordStates,
    baseline,
)
from docmt.discourse.parsing.greedy_search import Constraint, build_tree, parse_greedily
from docmt.discourse.parsing.network import (
    NO_EDU,
    EduInputs,
    Ensemble,
    ParserNetwork,
    edu_inputs,
    node_slots,
    number_words,
    state_slots,
)
from docmt.discourse.parsing.transitions import State, node_structure, state_structure
from docmt.discourse.segmentation.segmenter import Segmenter, SegmenterOutput, weights_refused
from docmt.discourse.settings import ParserSettings
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.tensor_files import read_tensors

FORMAT = 1
KIND = "discourse parser"
KEYS = ("settings", "relations", "words", "parts", "segmenter", "scores", "provenance")
MAX_BATCH_EDUS = 1000
"""Maximum number of EDUs in documents parsed in lockstep."""


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
        pairs = [pair for pair in zip(documents, states, strict=True) if pair[0].edus]
        for group in fill_batches(pairs, MAX_BATCH_EDUS, cost=lambda pair: len(pair[0].edus)):
            with torch.no_grad():
                parsed += self._parse_group(*zip(*group, strict=True))
        self.counts["documents"] += len(documents)
        for number, document in enumerate(documents):
            if not document.edus:
                parsed.insert(number, replace(document, tree=None, arcs=None))
        return parsed

    def _parse_group(
        self, documents: Sequence[DiscourseDocument], segmenter_states: WordStates
    ) -> list[DiscourseDocument]:
        """Parse documents with EDUs in lockstep, with one call of the networks per step."""
        word_numbers = number_words(self.words)
        inputs = []
        for document, document_states in zip(documents, segmenter_states, strict=True):
            inputs.append(edu_inputs(document, document_states, word_numbers))
        units = list(map(DocumentUnits, documents))
        lengths = [part.n_edus for part in units]
        offsets = [0, *itertools.accumulate(lengths)]
        encoded = self.ensemble.encode(EduInputs.join(inputs))
        cache = self.ensemble.actions.cache(encoded, lengths)

        def in_batch(slots: list[int], number: int) -> list[int]:
            """Map EDUs in a document to EDUs in the batch, as `collate`. Missing EDUs become the one after the last."""
            return [offsets[-1] if slot == NO_EDU else slot + offsets[number] for slot in slots]

        def score(states: list[State], numbers: list[int]) -> list[list[float]]:
            slots = []
            structures = []
            for state, number in zip(states, numbers, strict=True):
                slots.append(in_batch(state_slots(units[number], state), number))
                structures.append(state_structure(units[number], state))
            rows = torch.tensor(slots), torch.tensor(structures), torch.tensor(numbers)
            return self.ensemble.actions.log_probabilities(cache, *rows).tolist()

        # First structure and nuclearity of all documents, then relations.
        sentences = self.settings.sentence_constraint
        paragraphs = self.settings.paragraph_constraint
        constraints = [Constraint(part, sentences=sentences, paragraphs=paragraphs) for part in units]
        final, n_enforced = parse_greedily(constraints, lengths, score)
        self.counts.update(edus=sum(lengths), enforced=n_enforced)
        slots = []
        structures = []
        numbers = []
        for number, state in enumerate(final):
            for node in state.nodes:
                slots.append(in_batch(node_slots(node), number))
                structures.append(node_structure(units[number], node))
                numbers.append(number)
        relations: list[str] = []
        if slots:
            classifier = self.ensemble.relations
            rows = torch.tensor(slots), torch.tensor(structures), torch.tensor(numbers)
            best = classifier.log_probabilities(classifier.cache(encoded, lengths), *rows).argmax(-1)
            relations = [self.relations[int(number)] for number in best.tolist()]
        names = iter(relations)
        parsed = []
        for document, state in zip(documents, final, strict=True):
            parsed.append(replace(document, tree=build_tree(state.actions, names), arcs=None))
        return parsed


def word_states(
    outputs: Iterable[SegmenterOutput], documents: Sequence[DiscourseDocument], *, reads_lower: bool
) -> list[list[Tensor]]:
    """Return word states by document and sentence, from the segmenter output for all sentences in order.

    With `reads_lower`, upper BiLSTM states are concatenated with lower BiLSTM states.
    """
    remaining = iter(outputs)
    states = []
    for document in documents:
        document_states = []
        for output in itertools.islice(remaining, len(document.sentences)):
            states_TD = output.states_TD
            if reads_lower:
                states_TD = torch.cat([states_TD, output.lower_TD], dim=1)
            document_states.append(states_TD)
        states.append(document_states)
    return states


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
        relations = content["relations"]
        words = content["words"]
        width = segmenter.width
        if settings.neural.reads_lower:
            width += segmenter.lower_width
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
    weights = copy.network.state_dict()
    others = segmenter.network.state_dict()
    return (
        copy.settings == segmenter.settings
        and copy.vocabulary == segmenter.vocabulary
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )
