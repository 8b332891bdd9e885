"""A tiny segmenter and hand-made sentences."""

import torch

from docmt.discourse.segmentation.network import SegmenterNetwork
from docmt.discourse.segmentation.segmenter import Segmenter, SentenceExample, learn_vocabulary
from docmt.discourse.settings import SegmenterSettings
from docmt.discourse.syntax import SentenceSyntax

WIDTHS = {"word_width": 12, "character_width": 5, "character_filters": 7, "shape_width": 3, "head_width": 12}
WIDTHS |= {"lower_width": 9, "upper_width": 8, "attention_window": 2}
RECIPE = {"epochs": 50, "max_batch_words": 24, "learning_rate": 2e-2, "warmup_steps": 5, "average_decay": 0.8}
RECIPE |= {"dropout": 0.0, "word_dropout": 0.0, "min_word_count": 1}
RECIPE |= {"auxiliary": {"pos": 0.3, "relation": 0.3, "head": 0.6, "opening": 0.3}}
TINY = {"network": WIDTHS, "training": RECIPE}


def tiny_settings(**training):
    return SegmenterSettings.load(TINY | {"training": TINY["training"] | training}, where="segmenter")


def example(text, syntax=None):
    """Words separated by spaces, with `|` before inner EDUs. Syntax is `pos/head/relation`, with 0 for root."""
    words, starts = [], []
    for token in text.split():
        if token == "|":
            starts.append(len(words))
        else:
            words.append(token)
    tree = None
    if syntax is not None:
        rows = [item.split("/") for item in syntax.split()]
        tree = SentenceSyntax(tuple(r[0] for r in rows), tuple(int(r[1]) - 1 for r in rows), tuple(r[2] for r in rows))
    return SentenceExample(tuple(words), tuple(starts), tree)


EXAMPLES = [
    example("He said | that Mary left .", "PRP/2/nsubj VBD/0/root IN/5/mark NNP/5/nsubj VBD/2/ccomp ./2/punct"),
    example(
        "Because it rained , | we stayed home .",
        "IN/3/mark PRP/3/nsubj VBD/6/advcl ,/3/punct PRP/6/nsubj VBD/0/root RB/6/advmod ./6/punct",
    ),
    example("Yes .", "UH/0/root ./1/punct"),
    example(
        "She sang | and he played | while we slept .",
        "PRP/2/nsubj VBD/0/root CC/5/cc PRP/5/nsubj VBD/2/conj IN/8/mark PRP/8/nsubj VBD/5/advcl ./2/punct",
    ),
    example("Mary left home .", "NNP/2/nsubj VBD/0/root RB/2/advmod ./2/punct"),
]


def untrained(*, seed=0, examples=EXAMPLES):
    """A segmenter with random weights that are large enough for some EDU starts."""
    settings = tiny_settings()
    vocabulary = learn_vocabulary(examples, settings.training)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SegmenterNetwork(settings.network, vocabulary).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
            network.output.weight *= 10
    return Segmenter(network, settings, vocabulary)
