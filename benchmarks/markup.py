"""Markup in translations of help pages: share of translated messages, and F1 of the words inside tags.

Usage: `python benchmarks/markup.py --model MODEL --corpus resources/corpora/libreoffice-help-ende/7.4.7/dev`, in the
folder of a study of `config/examples/real_ende_short.yaml`, with one of its models.

Takes messages of the test and development pages whose source and reference have the same tags inside, and prints one
JSON object. Tags are compared by the words inside them (F1 over all words in tags). `placement` puts the tags into the
references, whose words are right, by the attention of each layer, where the model predicts a word or where it reads it.
`translation` compares ways to treat markup: a message that stays in English has no words in its tags.
"""

import argparse
import itertools
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polib
import torch

from docmt.corpora.catalog import find_corpus
from docmt.corpora.readers.gettext import TAG, PoFiles
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.decoding.word_alignment import align_words
from docmt.formats.file_segments import KINDS, MARK, FileSegment, plain_segment
from docmt.formats.file_translation import fill_file
from docmt.formats.po import PoFile
from docmt.formats.sentence_splitting import trim
from docmt.formats.tag_placement import Align, BareSentence, TagPlacer
from docmt.formats.translatable_file import Languages
from docmt.models.model_file import load_model

LANGUAGES = Languages("en", "de")
WORD = re.compile(r"\w+")


def read_messages(folder: Path, n_messages: int) -> list[tuple[str, str, str]]:
    """Page, source and reference of messages with the same tags inside of both, drawn at random, in their order."""
    corpus = find_corpus("libreoffice-help-ende").corpus
    found: list[tuple[str, str, str]] = []
    for split in ("test", "dev"):
        form = corpus.format_of(split)
        assert isinstance(form, PoFiles)
        reader = form.model_copy(update={"tags": "keep", "units": "messages"})
        documents, _ = reader.read({"both": folder / "de/source/*.po"}, ("en", "de"))
        for document in documents:
            for src, ref in zip(document.src, document.tgt, strict=True):
                inside = trim(segment := plain_segment(src), segment.text)[1]
                if MARK.search(inside) and Counter(TAG.findall(src)) == Counter(TAG.findall(ref)):
                    found.append((document.id, src, ref))
    chosen = random.Random(1).sample(range(len(found)), min(n_messages, len(found)))
    return [found[number] for number in sorted(chosen)]


class TagScore:
    """Counts of words in tags in outputs and references."""

    def __init__(self) -> None:
        self.common = self.output = self.reference = 0

    def add(self, segment: FileSegment, output: str, reference: FileSegment) -> None:
        """Count an output with the marks of `segment`, empty if there is none."""
        words, expected = _inside(segment, output), _inside(reference, reference.text)
        self.common += (words & expected).total()
        self.output += words.total()
        self.reference += expected.total()

    def f1(self) -> float:
        """F1 in percent."""
        return round(200 * self.common / max(self.output + self.reference, 1), 1)


def _inside(segment: FileSegment, text: str) -> Counter[tuple[str, str]]:
    """Words in pairs of tags, by tag."""
    words: Counter[tuple[str, str]] = Counter()
    open_tags: list[str] = []
    for piece in re.split(f"({MARK.pattern})", text):
        if not MARK.fullmatch(piece):
            words.update(itertools.product(open_tags, WORD.findall(piece.lower())))
        elif (mark := segment.mark(piece)).kind == "open":
            open_tags.append(mark.raw)
        elif mark.kind == "close":
            open_tags.pop()
    return words


def placed(messages: Iterable[tuple[str, str, str]], align: Align) -> float:
    """The tags of the sources, put into the references."""
    score, pairs = TagScore(), []
    jobs: list[tuple[FileSegment, BareSentence, FileSegment, str]] = []
    for _, src, ref in messages:
        segment, reference = plain_segment(src), plain_segment(ref)
        bare = BareSentence.of(segment, segment.text, KINDS)
        jobs.append((segment, bare, reference, MARK.sub("", reference.text)))
        pairs.append((bare.text, jobs[-1][-1]))
    for (segment, bare, reference, text), alignment in zip(jobs, align(pairs), strict=True):
        score.add(segment, TagPlacer(segment, bare, text, alignment, LANGUAGES).run(), reference)
    return score.f1()


def translated(translator: Translator, messages: Sequence[tuple[str, str, str]], **options: Any) -> dict[str, float]:
    """Messages translated as a PO file."""
    catalog = polib.POFile()
    for number, (page, src, _) in enumerate(messages):
        catalog.append(polib.POEntry(msgid=src, msgctxt=str(number), occurrences=[(page, str(number))]))
    file = PoFile(str(catalog).encode(), where="messages", languages=LANGUAGES)
    start = time.perf_counter()
    counts = fill_file(file, translator.translate_documents, **options)
    seconds = time.perf_counter() - start
    score = TagScore()
    # The pages of a PO file are its documents, in the order of their first messages, as in the list.
    for segment, (_, _, ref) in zip(itertools.chain(*file.documents), messages, strict=True):
        score.add(segment, segment.filled or "", plain_segment(ref))
    share = round(100 * (counts.segments - len(counts.left)) / counts.segments, 1)
    return {"translated": share, "F1": score.f1(), "seconds": round(seconds, 1)}


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="folder with de/source/")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--only-placement", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    messages = read_messages(options.corpus, options.messages)
    trained = load_model(options.model)
    translator = Translator(trained, DecodingSettings(beam_size=2))
    results: dict[str, Any] = {"messages": len(messages), "placement": {}}
    for layer, is_read in itertools.product(range(trained.model.settings.decoder_layers), (False, True)):
        align = partial(align_words, trained, translator.model, layer=layer, is_read=is_read)
        results["placement"][f"layer {layer + 1}, {'read' if is_read else 'predicted'}"] = placed(messages, align)
        print(results["placement"], file=sys.stderr, flush=True)
    if not options.only_placement:
        ways: dict[str, dict[str, Any]] = {
            "numbers": {},
            "alignment": {"align": translator.align, "reads_tags": False},
            "numbers, then alignment": {"align": translator.align},
        }
        results["translation"] = {}
        for name, way in ways.items():
            results["translation"][name] = translated(translator, messages, **way)
            print(results["translation"], file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
