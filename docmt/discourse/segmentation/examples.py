"""Training examples of the segmenter: sentences with EDU starts and, where known, syntax.

Shapes: B sentences, T words of the longest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from docmt.batching import fill_batches
from docmt.discourse.dependencies import NO_HEAD, check_dependencies
from docmt.discourse.documents import inner_starts, read_discourse
from docmt.discourse.segmentation.network import INSIDE, START, SentenceBatch
from docmt.discourse.segmentation.vocabulary import LABELS, WordTypes, WordVocabulary, number_types
from docmt.discourse.syntax import SentenceSyntax, read_syntax
from docmt.errors import UserError

IGNORED = -100
"""A target that losses ignore: padding, or a label that is not in the vocabulary."""


@dataclass(frozen=True)
class SentenceExample:
    """A sentence of at least one word, the inner starts of its EDUs and, where known, its syntax."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    syntax: SentenceSyntax | None = None


def read_examples(prefix: Path) -> list[SentenceExample]:
    """Read the sentences with words of `PREFIX.discourse.jsonl` and, where it exists, of `PREFIX.syntax.jsonl`."""
    path, syntax_path = Path(f"{prefix}.discourse.jsonl"), Path(f"{prefix}.syntax.jsonl")
    documents = read_discourse(path)
    syntax: Sequence[Sequence[SentenceSyntax | None]] = [[None] * len(document.sentences) for document in documents]
    if syntax_path.exists():
        syntax = read_syntax(syntax_path, documents)
        for line, parts in enumerate(syntax, start=1):
            for number, part in enumerate(parts, start=1):
                # `openings` needs trees; syntax that a segmenter has predicted may have cycles.
                check_dependencies(part.heads, where=f"{syntax_path}: line {line}: sentence {number}")
    examples = []
    for document, trees in zip(documents, syntax, strict=True):
        triples = zip(document.sentences, inner_starts(document), trees, strict=True)
        examples += [SentenceExample(words, tuple(starts), tree) for words, starts, tree in triples if words]
    if not examples:
        raise UserError(f"{path}: no sentence with words")
    return examples


@dataclass(frozen=True)
class Targets:
    """Gold output for a batch; int64 [B, T]."""

    labels_BT: Tensor  # `INSIDE` or `START`
    pos_BT: Tensor  # numbers in the vocabulary, or `IGNORED`
    relations_BT: Tensor
    openings_BT: Tensor
    heads_BT: Tensor  # the head, T for the root, or `IGNORED`


class ExampleSet:
    """Examples whose words and labels are numbered once."""

    def __init__(self, examples: Sequence[SentenceExample], vocabulary: WordVocabulary) -> None:
        names, self._words = number_types(example.words for example in examples)
        self._types = WordTypes.encode(names, vocabulary)
        self._starts = [example.starts for example in examples]
        numbers = {name: {label: i for i, label in enumerate(getattr(vocabulary, name))} for name in LABELS}
        # Per sentence with syntax: the labels of each kind, and the heads.
        self._syntax: list[list[list[int]] | None] = []
        for tree in (example.syntax for example in examples):
            if tree is None:
                self._syntax.append(None)
                continue
            labels = [[numbers[name].get(label, IGNORED) for label in getattr(tree, name)] for name in LABELS]
            self._syntax.append([*labels, list(tree.heads)])

    def __len__(self) -> int:
        return len(self._words)

    def batch(self, chosen: Sequence[int]) -> tuple[WordTypes, SentenceBatch, Targets]:
        """Batch the chosen examples, in the order given, with the word types that they use."""
        lengths = [len(self._words[i]) for i in chosen]
        longest = max(lengths)
        batch = SentenceBatch.pad([self._words[i] for i in chosen])
        labels_BT = torch.full_like(batch.index_BT, INSIDE)
        pos_BT, relations_BT, openings_BT, heads_BT = (torch.full_like(labels_BT, IGNORED) for _ in range(4))
        for row, i in enumerate(chosen):
            labels_BT[row, list(self._starts[i])] = START
            if (syntax := self._syntax[i]) is not None:
                for targets_BT, numbers in zip((pos_BT, relations_BT, openings_BT, heads_BT), syntax, strict=True):
                    targets_BT[row, : lengths[row]] = torch.tensor(numbers)
        # The root is one column behind the longest sentence, as in `HeadAttention`. IGNORED is another number.
        heads_BT[heads_BT == NO_HEAD] = longest
        used_U, index_BT = torch.unique(batch.index_BT, return_inverse=True)
        targets = Targets(labels_BT, pos_BT, relations_BT, openings_BT, heads_BT)
        return self._types.select(used_U), SentenceBatch(index_BT, batch.lengths_B), targets

    def shuffled_batches(self, max_words: int, generator: np.random.Generator) -> Iterator[list[int]]:
        """Yield batches of similar length in random order, each of at most `max_words` words with padding."""
        # Sorted by noisy length: little padding, yet other batches in each epoch.
        noise = generator.uniform(-0.5, 0.5, len(self))
        order = sorted(range(len(self)), key=lambda i: (len(self._words[i]) * (1 + 0.3 * noise[i]), i))
        batches = list(fill_batches(order, max_words, cost=lambda i: len(self._words[i]), padded=True))
        for place in generator.permutation(len(batches)):
            yield batches[place]
