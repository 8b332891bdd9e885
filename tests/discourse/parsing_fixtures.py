"""Random documents with trees, and a stand-in for a segmenter."""

import itertools
import random
import zlib
from dataclasses import replace
from types import SimpleNamespace

import torch
from segmenter_fixtures import untrained

from docmt.discourse.constituents import join, join_names, leaf
from docmt.discourse.discourse_documents import DiscourseDocument, DocumentUnits, edus_from_starts
from docmt.discourse.evaluation import evaluate
from docmt.discourse.parsing.network import Ensemble, ParserNetwork
from docmt.discourse.parsing.parser import NeuralParser, TrainedParser, save_parser
from docmt.discourse.segmentation.segmenter import Segmenter, SentenceExample
from docmt.discourse.settings import ParserSettings
from docmt.discourse.syntax import SentenceSyntax

WORDS = ("but", "We", "went", "home", "because", "rain", "fell", ",", ".", "?", "Then", "42", "(", ")", "和")
WIDTH = 4
RELATIONS = ("joint-list", "elaboration-additional", "causal-cause")
COARSE = ("causal", "elaboration", "joint")


def coarse(relation):
    return relation.partition("-")[0]


def random_document(seed, *, n_sentences=None, with_tree=True, paragraphs=None):
    """A document with empty sentences, one-word EDUs and, for some seeds, paragraphs."""
    chance = random.Random(seed)
    n_sentences = n_sentences if n_sentences is not None else chance.randint(1, 7)
    sentences = [tuple(chance.choices(WORDS, k=chance.choice((0, 1, 2, 5, 9)))) for _ in range(n_sentences)]
    starts = [[i for i in range(1, len(words)) if chance.random() < 0.35] for words in sentences]
    edus = edus_from_starts(starts, map(len, sentences))
    if paragraphs is None:
        paragraphs = chance.random() < 0.6
    first = tuple(i for i in range(n_sentences) if i == 0 or chance.random() < 0.4) if paragraphs else None
    tree = random_tree(chance, len(edus)) if with_tree else None
    return DiscourseDocument(f"document-{seed}", tuple(sentences), edus, tree, first)


def random_tree(chance, n_edus, *, most_children=3):
    """Any n-ary tree over EDUs. It may cross sentences."""
    nodes = [leaf(edu) for edu in range(n_edus)]
    while len(nodes) > 1:
        n = chance.randint(2, min(most_children, len(nodes)))
        at = chance.randint(0, len(nodes) - n)
        letters = "".join(chance.choice("NS") for _ in range(n))
        letters = letters if "N" in letters else "N" + letters[1:]
        relation = chance.choice(RELATIONS)
        nodes[at : at + n] = [join(nodes[at : at + n], letters, join_names(letters, relation))]
    return nodes[0]


def complete_units(tree, unit_of):
    """True if for every unit, a node covers exactly its EDUs."""
    spans = {(node.first, node.last) for node in tree.postorder()}
    groups = [list(group) for _, group in itertools.groupby(range(len(unit_of)), key=unit_of.__getitem__)]
    return all((group[0], group[-1]) in spans for group in groups)


def free_scores(parser, documents):
    """Parseval scores of a parser that need not complete sentences."""
    free = replace(parser, settings=parser.settings.model_copy(update={"sentence_constraint": False}))
    return evaluate(zip(documents, free.parse_batch(documents), strict=True), coarse=coarse)["parseval"]


def check_constrained_trees(parser, documents):
    """Every sentence is one complete subtree, and no unknown relations occur."""
    for document in parser.parse_batch(documents):
        assert complete_units(document.tree, DocumentUnits(document).sentences.number_of)
        assert {node.relation for node in document.tree.postorder() if not node.is_leaf} <= set(COARSE)


def check_ugly_documents(parser, *, n_long):
    """Documents without EDUs or words, empty sentences, and a sentence with `n_long` EDUs."""
    documents = [
        DiscourseDocument("none", (), ()),
        DiscourseDocument("empty", ((),), edus_from_starts([[]], [0])),
        DiscourseDocument("empty sentences", ((), ("a",), ()), edus_from_starts([[], [], []], [0, 1, 0])),
        DiscourseDocument("long", (("a",) * n_long,), edus_from_starts([range(1, n_long)], [n_long])),
    ]
    none, empty, hollow, long = parser.parse_batch(documents)
    assert none.tree is None
    assert empty.tree.is_leaf
    assert (hollow.tree.first, hollow.tree.last, long.tree.last) == (0, 2, n_long - 1)
    assert parser.parse_batch([]) == []


class StandInSegmenter:
    """Word states that only depend on the word."""

    def encode(self, sentences):
        outputs = map(_states, sentences)
        return [SimpleNamespace(states_TD=states[:, :WIDTH], lower_TD=states[:, WIDTH:]) for states in outputs]


def save_tiny_segmenter(path):
    """An untrained segmenter with the words in these documents."""
    n = len(WORDS)
    syntax = SentenceSyntax(("A", "B", "C") * (n // 3), (-1, *range(n - 1)), ("root", *["dep"] * (n - 1)))
    untrained(examples=[SentenceExample(WORDS, (3,), syntax)]).save(path)
    return path


def save_tiny_parser(path, segmenter):
    """An untrained neural parser that uses a segmenter file."""
    tiny = {"members": 1, "edu_width": 8, "document_width": 4, "hidden_width": 16, "structure_width": 8}
    settings = ParserSettings.load({"neural": tiny}, where="parser")
    reads, relations = Segmenter.load(segmenter), ("elaboration", "joint")
    torch.manual_seed(1)
    network = ParserNetwork(reads.width + reads.lower_width, len(WORDS), len(relations), settings.neural).eval()
    parser = NeuralParser(Ensemble([network]), relations, WORDS, reads, settings)
    save_parser(path, TrainedParser(parser, segmenter.read_bytes()))
    return path


def _states(words):
    rows = [torch.zeros(0, 2 * WIDTH)]
    for word in words:
        generator = torch.Generator().manual_seed(zlib.crc32(word.encode()))
        rows.append(torch.randn(1, 2 * WIDTH, generator=generator))
    return torch.cat(rows)
