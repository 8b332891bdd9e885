"""Place annotated trees over the words and sentences of a document, or over those that are made from their EDUs."""

import re
from collections.abc import Sequence

from docmt.discourse.documents import DiscourseDocument, Edu
from docmt.discourse.treebanks.rsd import RsdFile
from docmt.discourse.treebanks.treebank import RstFile
from docmt.errors import UserError
from docmt.text.tokenizer import sentence_words

SENTENCE_END = re.compile(r"""[.?!…。？！]['"’”“«»)\]」』》]*$""")
SENTENCE, PARAGRAPH_LEVEL = 1, 2
"""What can end after an EDU."""


def ends_sentence(text: str) -> int:
    """Guess whether a sentence ends with an EDU: `SENTENCE` or 0."""
    return SENTENCE if SENTENCE_END.search(text.strip()) else 0


def assemble(name: str, parts: Sequence[str], ends: Sequence[int], rst: RstFile, *, lang: str) -> DiscourseDocument:
    """Build a document from the texts of its EDUs, each tokenized by itself.

    `ends` says for each EDU whether a sentence (1) or a paragraph (2) ends with it, or nothing (0).
    """
    sentences: list[list[str]] = [[]]
    edus, paragraphs = [], [0]
    for number, (part, end) in enumerate(zip(parts, ends, strict=True), start=1):
        words = sentence_words(part, lang)
        edus.append(Edu(len(sentences) - 1, len(sentences[-1]), len(sentences[-1]) + len(words)))
        sentences[-1] += words
        if end and number < len(parts):
            if end == PARAGRAPH_LEVEL:
                paragraphs.append(len(sentences))
            sentences.append([])
    words_of = tuple(map(tuple, sentences))
    return DiscourseDocument(name, words_of, tuple(edus), rst.tree, tuple(paragraphs), rst.arcs)


def align_edus(texts: Sequence[str], sentences: Sequence[Sequence[str]], *, where: str) -> tuple[Edu, ...]:
    """Find the words of each EDU by its characters; spaces do not count."""
    words = [(sentence, place, word) for sentence, found in enumerate(sentences) for place, word in enumerate(found)]
    position = 0
    edus = []
    for number, text in enumerate(texts, start=1):
        # Files space punctuation, and Chinese, differently from the words: only the other characters are compared.
        rest, start = "".join(text.split()), position
        while rest:
            word = words[position][2] if position < len(words) else ""
            if not word or not rest.startswith(word):
                is_inside = word and position > start and word.startswith(rest)
                problem = f"ends inside the word {word!r}" if is_inside else f"does not continue with {word!r}"
                raise UserError(f"{where}: EDU {number} ({text!r}) is not the document's text: it {problem}")
            rest, position = rest[len(word) :], position + 1
        if position == start:
            raise UserError(f"{where}: EDU {number} is empty")
        first, last = words[start], words[position - 1]
        if first[0] != last[0]:
            raise UserError(f"{where}: EDU {number} ({text!r}) crosses the end of sentence {first[0] + 1}")
        edus.append(Edu(first[0], first[1], last[1] + 1))
    if position < len(words):
        sentence, _, word = words[position]
        raise UserError(f"{where}: its EDUs end before {word!r} in sentence {sentence + 1}: they do not cover the text")
    return tuple(edus)


def align_tree(
    name: str,
    sentences: Sequence[Sequence[str]],
    annotated: RstFile | RsdFile,
    *,
    where: str,
    paragraphs: tuple[int, ...] | None = None,
) -> DiscourseDocument:
    """Build a document whose trees and EDU texts come from an annotated file.

    Trees of n-ary formats and dependency trees keep their arcs.
    """
    edus = align_edus(annotated.texts, sentences, where=where)
    tree = None if isinstance(annotated, RsdFile) else annotated.tree
    return DiscourseDocument(name, tuple(map(tuple, sentences)), edus, tree, paragraphs, annotated.arcs)
