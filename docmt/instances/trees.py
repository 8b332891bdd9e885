"""Aligning the EDUs and trees of a document with its subwords.

The words of a discourse file and the tokens of the text stage may differ (tokenizer, escapes, case, marks for blanks),
but both spell the characters of the same sentence: EDU boundaries are transferred by counting non-blank characters.
Trees therefore do not depend on BPE.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from docmt.discourse.dependencies import NO_HEAD, cut_heads, merge_to_sentences
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.storage import TREE_ARRAYS, array_writer, offsets_of
from docmt.text.spacing import BLANK, split_marks, unescape
from docmt.text.subwords import SEPARATOR

# Sentences that are less similar are different sentences, not one sentence before and after normalization.
MIN_LIKENESS = 0.5


@dataclass(frozen=True)
class PlacedTrees:
    """The EDUs and trees of consecutive sentences of a document, over their subwords; int64."""

    edu_lengths: np.ndarray  # [EDUs], in subwords; the marks belong to the first and last EDU of a sentence
    edu_counts: np.ndarray  # [sentences]
    edu_heads: np.ndarray  # [EDUs], the head of each EDU among these, −1 for a root or a head outside
    sentence_heads: np.ndarray  # [sentences], the same for the merged tree of sentences
    n_inexact: int = 0  # sentences whose characters differ from the discourse file

    def cut(self, first: int, last: int) -> "PlacedTrees":
        """Keep sentences first to last − 1; a unit whose head is not among them becomes a root."""
        ends = offsets_of(self.edu_counts)
        start, end = int(ends[first]), int(ends[last])
        return PlacedTrees(
            self.edu_lengths[start:end],
            self.edu_counts[first:last],
            cut_heads(self.edu_heads, start, end),
            cut_heads(self.sentence_heads, first, last),
        )


def place_trees(document: DiscourseDocument, sentences: Sequence[Sequence[str]]) -> PlacedTrees:
    """Align the EDUs of a document with the subwords of its sentences (without marks)."""
    where = f"discourse of {document.id!r}"
    if len(sentences) != len(document.sentences):
        raise UserError(
            f"{where}: it has {len(document.sentences)} sentences, but the text has {len(sentences)}: "
            "these are the trees of another document"
        )
    edus_of: list[list[int]] = [[] for _ in sentences]
    for edu in document.edus:
        edus_of[edu.sentence].append(edu.start)
    lengths: list[int] = []
    n_inexact = 0
    for number, (subwords, words, starts) in enumerate(zip(sentences, document.sentences, edus_of, strict=True)):
        try:
            bounds, is_exact = _place_sentence(subwords, words, starts)
        except ValueError:
            raise UserError(
                f"{where}: sentence {number + 1} is {' '.join(words)[:60]!r} there, but not in the text: "
                "these are the trees of another document"
            ) from None
        n_inexact += not is_exact
        sizes = np.diff([*bounds, len(subwords)])
        # `<s>` and `</s>`; the first and the last EDU can be one.
        sizes[0] += 1
        sizes[-1] += 1
        lengths += sizes.tolist()
    heads = document.dependencies.heads
    sentence_of = [edu.sentence for edu in document.edus]
    return PlacedTrees(
        np.array(lengths, dtype=np.int64),
        np.array([len(edus) for edus in edus_of], dtype=np.int64),
        np.array(heads, dtype=np.int64),
        np.array(merge_to_sentences(heads, sentence_of, len(sentences)), dtype=np.int64),
        n_inexact,
    )


def _place_sentence(subwords: Sequence[str], words: Sequence[str], starts: Sequence[int]) -> tuple[list[int], bool]:
    """Return the subword at which each EDU begins, and whether all characters were equal.

    A boundary inside a token moves to the end of the token, so that it never splits a word. Raises ValueError when the
    words do not match the subwords.
    """
    token_starts, first_subwords, text = _tokens(subwords)
    word_text = "".join(words)
    word_offsets = np.cumsum([0, *map(len, words)])
    positions = word_offsets[list(starts)]
    is_exact = word_text == text or (len(word_text) == len(text) and word_text.lower() == text.lower())
    if not is_exact:
        positions = _carry_over(word_text.lower(), text.lower(), positions)
    # Behind the last token, only the end of the sentence is left.
    bounds = [*first_subwords, len(subwords)]
    # The first EDU begins with the sentence, even if the text has characters before its first word.
    return [0, *(bounds[number] for number in np.searchsorted(token_starts, positions[1:], side="left"))], is_exact


def _tokens(subwords: Sequence[str]) -> tuple[list[int], list[int], str]:
    """Return the first character and the first subword of each token, and all characters without blanks.

    Each piece of SentencePiece counts as a token: languages without spaces have no others.
    """
    if any(len(subword) > 1 and subword.startswith(BLANK) for subword in subwords):  # BPE has no such subword
        firsts, texts = list(range(len(subwords))), [subword.replace(BLANK, "") for subword in subwords]
    else:
        firsts, texts, open_token, first = [], [], "", 0
        for number, subword in enumerate(subwords):
            if not open_token:
                first = number
            open_token += subword.removesuffix(SEPARATOR)
            if not subword.endswith(SEPARATOR) or number + 1 == len(subwords):
                firsts.append(first)
                texts.append("" if open_token == BLANK else unescape(split_marks(open_token)[1]))
                open_token = ""
    return offsets_of(list(map(len, texts))).tolist()[:-1], firsts, "".join(texts)


def _carry_over(old: str, new: str, positions: np.ndarray) -> np.ndarray:
    """Map positions in one text to positions in another by their common parts.

    Normalization changes single characters (quotes, dots). Raises ValueError when the texts have too little in common.
    """
    # Without `autojunk`, which ignores frequent characters in texts of 200 and more.
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < MIN_LIKENESS:
        raise ValueError("other text")
    blocks = matcher.get_matching_blocks()
    old_points = [point for block in blocks for point in (block.a, block.a + block.size)]
    new_points = [point for block in blocks for point in (block.b, block.b + block.size)]
    return np.rint(np.interp(positions, old_points, new_points)).astype(np.int64)


def store_trees(folder: Path, trees: Iterable[PlacedTrees], instance_of: np.ndarray) -> dict[str, int]:
    """Cut the trees of all documents to instances, and write them, one file for each array of `InstanceTrees`.

    `instance_of` has the instance of each sentence, or −1 if it is left out. Returns the numbers of EDUs and of arcs
    between two instances (`edges_cut`, `sentence_edges_cut`), and `sentences_carried_over_inexactly`.
    """
    counts: dict[str, int] = dict.fromkeys(
        ("edus", "edges_cut", "sentence_edges_cut", "sentences_carried_over_inexactly"), 0
    )
    first = n_tokens = n_sentences = 0
    with contextlib.ExitStack() as stack:
        append = {
            name: stack.enter_context(array_writer(folder / f"{name}.npy", dtype))
            for name, dtype in TREE_ARRAYS.items()
        }
        for name in ("edu_offsets", "sentence_edus"):
            append[name](np.zeros(1, dtype=np.int64))
        for document in trees:
            instances = instance_of[first : first + len(document.edu_counts)]
            first += len(instances)
            # An EDU is in the instance of its sentence.
            edu_instances = np.repeat(instances, document.edu_counts)
            edu_ends = n_tokens + np.cumsum(document.edu_lengths[edu_instances >= 0])
            edu_heads, edges_cut = _keep(document.edu_heads, edu_instances, n_before=counts["edus"])
            sentence_heads, sentence_edges_cut = _keep(document.sentence_heads, instances, n_before=n_sentences)
            append["edu_offsets"](edu_ends)
            append["sentence_edus"](counts["edus"] + np.cumsum(document.edu_counts[instances >= 0]))
            append["edu_heads"](edu_heads)
            append["sentence_heads"](sentence_heads)
            n_tokens = int(edu_ends[-1]) if len(edu_ends) else n_tokens
            n_sentences += len(sentence_heads)
            counts["edus"] += len(edu_heads)
            counts["edges_cut"] += edges_cut
            counts["sentence_edges_cut"] += sentence_edges_cut
            counts["sentences_carried_over_inexactly"] += document.n_inexact
    return counts


def _keep(heads: np.ndarray, instances: np.ndarray, *, n_before: int) -> tuple[np.ndarray, int]:
    """Heads of the units of a document that are in an instance, numbered on from `n_before`; and how many are cut.

    A head in another instance becomes −1.
    """
    has_head = heads >= 0
    # A head of −1 reads the last instance here, which `has_head` hides again.
    is_cut = has_head & (instances[heads] != instances)
    rows = n_before + np.cumsum(instances >= 0) - 1
    renumbered = np.where(has_head & ~is_cut, rows[heads], NO_HEAD)
    return renumbered[instances >= 0], int((is_cut & (instances >= 0)).sum())
