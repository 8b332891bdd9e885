"""Alignment of EDUs and trees with subwords.

Words in a discourse file and tokens from the text stage can differ (tokenizer, escapes, case, marks for spaces), but
both contain the characters of the same sentence. EDU boundaries are therefore transferred by counting characters
without spaces, so that trees do not depend on BPE. If the text stage normalizes, normalized spellings are compared.
"""

import contextlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from docmt.discourse.dependencies import NO_HEAD, cut_heads, merge_to_sentences
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.storage import TREE_ARRAYS, array_writer
from docmt.ranges import offsets_of
from docmt.text.spacing import BLANK, split_marks, unescape
from docmt.text.subwords import SEPARATOR

# Below this similarity, documents are different, not one document before and after normalization.
MIN_SIMILARITY = 0.5
# Typographic marks as in Moses normalization, but quotation marks as two apostrophes.
_PLAIN_MARKS = str.maketrans(
    dict.fromkeys('"„“”‟«»', "''") | dict.fromkeys("‘’‚‛‹›´`", "'") | dict.fromkeys("‐‑‒–—―", "-")
)


@dataclass(frozen=True)
class SubwordTrees:
    """EDUs and trees over the subwords of consecutive sentences in a document, int64."""

    edu_lengths: np.ndarray  # [EDUs], in subwords, including boundary tokens in the first and last EDU of a sentence
    edu_counts: np.ndarray  # [sentences]
    edu_heads: np.ndarray  # [EDUs], head EDU, −1 for a root or a head outside these sentences
    sentence_heads: np.ndarray  # [sentences], heads in the merged tree over sentences
    n_inexact: int = 0  # sentences whose characters differ from the discourse file

    def cut(self, first: int, last: int) -> "SubwordTrees":
        """Keep sentences first to last − 1. A unit with its head outside becomes a root."""
        ends = offsets_of(self.edu_counts)
        start, end = int(ends[first]), int(ends[last])
        return SubwordTrees(
            self.edu_lengths[start:end],
            self.edu_counts[first:last],
            cut_heads(self.edu_heads, start, end),
            cut_heads(self.sentence_heads, first, last),
        )


def align_document(document: DiscourseDocument, sentences: Sequence[Sequence[str]]) -> SubwordTrees:
    """Align the EDUs of a document with the subwords of its sentences (without boundary tokens)."""
    where = f"discourse of {document.id!r}"
    if len(sentences) != len(document.sentences):
        raise UserError(
            f"{where}: has {len(document.sentences)} sentences, but the text has {len(sentences)}: the trees "
            "belong to a different document"
        )
    edus_of: list[list[int]] = [[] for _ in sentences]
    for edu in document.edus:
        edus_of[edu.sentence].append(edu.start)
    lengths: list[int] = []
    similarities: list[float] = []
    for subwords, words, starts in zip(sentences, document.sentences, edus_of, strict=True):
        bounds, similarity = _align_sentence(subwords, words, starts)
        similarities.append(similarity)
        sizes = np.diff([*bounds, len(subwords)])
        # `<s>` and `</s>`; the first and the last EDU can be one.
        sizes[0] += 1
        sizes[-1] += 1
        lengths += sizes.tolist()
    # Over the document, since normalization can remove a whole sentence such as `♪ … ♪`.
    n_characters = [1 + sum(map(len, words)) for words in document.sentences]
    if np.average(similarities, weights=n_characters) < MIN_SIMILARITY:
        number = int(np.argmin(similarities))
        raise UserError(
            f"{where}: sentence {number + 1} is {' '.join(document.sentences[number])[:60]!r}, but the text "
            "differs: the trees belong to a different document"
        )
    heads = document.dependencies.heads
    sentence_of = [edu.sentence for edu in document.edus]
    return SubwordTrees(
        np.array(lengths, dtype=np.int64),
        np.array([len(edus) for edus in edus_of], dtype=np.int64),
        np.array(heads, dtype=np.int64),
        np.array(merge_to_sentences(heads, sentence_of, len(sentences)), dtype=np.int64),
        sum(similarity < 1 for similarity in similarities),
    )


def _align_sentence(subwords: Sequence[str], words: Sequence[str], starts: Sequence[int]) -> tuple[list[int], float]:
    """Return the first subword per EDU, and the similarity between words and subwords (same spelling: 1).

    A boundary inside a token moves to the end of the token, so that words are not split.
    """
    tokens, first_subwords = _tokens(subwords)
    similarity = 1.0
    if "".join(words) != "".join(tokens):
        words = list(map(_plain, words))
        tokens = list(map(_plain, tokens))
    positions = offsets_of(list(map(len, words)))[list(starts)]
    old_text = "".join(words)
    new_text = "".join(tokens)
    if old_text != new_text:
        # By common substrings, without `autojunk`, which ignores frequent characters in long texts.
        matcher = SequenceMatcher(None, old_text, new_text, autojunk=False)
        old_points: list[int] = []
        new_points: list[int] = []
        for block in matcher.get_matching_blocks():
            old_points += [block.a, block.a + block.size]
            new_points += [block.b, block.b + block.size]
        positions = np.rint(np.interp(positions, old_points, new_points)).astype(np.int64)
        similarity = matcher.ratio()
    token_starts = offsets_of(list(map(len, tokens)))[:-1]
    # After the last token, only the end of the sentence is left.
    bounds = np.array([*first_subwords, len(subwords)])
    # The first EDU begins with the sentence, even if the text has characters before its first word.
    return [0, *bounds[np.searchsorted(token_starts, positions[1:], side="left")].tolist()], similarity


def _plain(text: str) -> str:
    """Return the normalized spelling for comparisons: NFKC, lower case, ASCII marks, no spaces."""
    return "".join(unicodedata.normalize("NFKC", text.translate(_PLAIN_MARKS)).lower().split())


def _tokens(subwords: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return characters and first subword per token.

    SentencePiece pieces are tokens, since languages without spaces have no others.
    """
    if any(len(subword) > 1 and subword.startswith(BLANK) for subword in subwords):  # BPE has no such subword
        return [subword.replace(BLANK, "") for subword in subwords], list(range(len(subwords)))
    texts: list[str] = []
    firsts: list[int] = []
    open_token, first = "", 0
    for number, subword in enumerate(subwords):
        if not open_token:
            first = number
        open_token += subword.removesuffix(SEPARATOR)
        if not subword.endswith(SEPARATOR) or number + 1 == len(subwords):
            firsts.append(first)
            texts.append("" if open_token == BLANK else unescape(split_marks(open_token)[1]))
            open_token = ""
    return texts, firsts


def store_trees(folder: Path, trees: Iterable[SubwordTrees], instance_of: np.ndarray) -> dict[str, int]:
    """Cut trees to instances, and write the arrays of `InstanceTrees`.

    `instance_of` contains the instance per sentence, or −1 for omitted sentences. Returns the numbers of EDUs, of arcs
    between instances (`edges_cut`, `sentence_edges_cut`), and `sentences_carried_over_inexactly`.
    """
    counts = {"edus": 0, "edges_cut": 0, "sentence_edges_cut": 0, "sentences_carried_over_inexactly": 0}
    first = n_tokens = n_sentences = 0
    with contextlib.ExitStack() as stack:
        append = {}
        for name, dtype in TREE_ARRAYS.items():
            append[name] = stack.enter_context(array_writer(folder / f"{name}.npy", dtype))
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
            if len(edu_ends):
                n_tokens = int(edu_ends[-1])
            n_sentences += len(sentence_heads)
            counts["edus"] += len(edu_heads)
            counts["edges_cut"] += edges_cut
            counts["sentence_edges_cut"] += sentence_edges_cut
            counts["sentences_carried_over_inexactly"] += document.n_inexact
    return counts


def _keep(heads: np.ndarray, instances: np.ndarray, *, n_before: int) -> tuple[np.ndarray, int]:
    """Return the heads of units in instances, renumbered from `n_before`, and the number of cut arcs.

    A head in another instance becomes −1.
    """
    has_head = heads >= 0
    # A head of −1 indexes the last instance, which `has_head` masks.
    is_cut = has_head & (instances[heads] != instances)
    rows = n_before + np.cumsum(instances >= 0) - 1
    renumbered = np.where(has_head & ~is_cut, rows[heads], NO_HEAD)
    return renumbered[instances >= 0], int((is_cut & (instances >= 0)).sum())
