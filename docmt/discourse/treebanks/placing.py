"""Place annotated trees over the words and sentences of a document."""

from collections.abc import Sequence

from docmt.discourse.dependencies import nary_to_dependencies
from docmt.discourse.documents import DiscourseDocument, Edu
from docmt.discourse.treebanks.rsd import RsdFile
from docmt.discourse.treebanks.rstfile import RstFile
from docmt.errors import UserError


def place_edus(texts: Sequence[str], sentences: Sequence[Sequence[str]], *, where: str) -> tuple[Edu, ...]:
    """Find the words of each EDU by its characters; spaces do not count.

    Raises UserError when the texts are not those of the sentences, or an EDU begins inside a word or crosses the end of
    a sentence; the message names the EDU.
    """
    words = [(sentence, place, word) for sentence, found in enumerate(sentences) for place, word in enumerate(found)]
    position = 0
    edus = []
    for number, text in enumerate(texts, start=1):
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


def place_tree(
    name: str,
    sentences: Sequence[Sequence[str]],
    annotated: RstFile | RsdFile,
    *,
    where: str,
    paragraphs: tuple[int, ...] | None = None,
) -> DiscourseDocument:
    """Build a document whose trees and EDU texts come from an annotated file.

    Trees of n-ary formats and dependency trees keep their arcs. Raises UserError as `place_edus` does.
    """
    edus = place_edus(annotated.texts, sentences, where=where)
    tree, arcs = None, None
    if isinstance(annotated, RsdFile):
        arcs = annotated.arcs
    else:
        tree = annotated.tree
        arcs = nary_to_dependencies(tree, len(edus)) if annotated.is_nary else None
    return DiscourseDocument(name, tuple(map(tuple, sentences)), edus, tree, paragraphs, arcs)
