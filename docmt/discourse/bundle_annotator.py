"""Trees of plain documents by the segmenter and the parser that a model file carries."""

from collections.abc import Sequence
from pathlib import Path

from docmt.discourse.annotation import PlainText, annotate, chain_sentences
from docmt.discourse.bundle import DiscourseBundle, SentenceTrees
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.discourse.parsing.model_file import parser_from_bytes
from docmt.discourse.segmentation.segmenter import Segmenter, segmenter_from_bytes
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.logs import progress

WHERE = "the model file"


def read_bundle(segmenter: Path, parser: str, *, sentences: SentenceTrees) -> DiscourseBundle:
    """Read both from their files; `parser` can be the name of a baseline."""
    data = read_bytes(segmenter)
    segmenter_from_bytes(data, where=str(segmenter))
    if parser in BASELINES:
        return DiscourseBundle(parser, data, sentences)
    content = read_bytes(Path(parser))
    own = parser_from_bytes(content, where=parser).segmenter
    return DiscourseBundle(content, None if own == data else data, sentences)


class BundleAnnotator:
    """Segments and parses documents of one language."""

    def __init__(self, bundle: DiscourseBundle, *, lang: str) -> None:
        self.lang, self.sentences = lang, bundle.sentences
        data = bundle.segmenter
        if isinstance(bundle.parser, str):
            if bundle.parser not in BASELINES:
                raise UserError(f"{WHERE}: parser {bundle.parser!r}: no baseline of docmt: bundle it again")
            self.parser: Parser = baseline(bundle.parser)
        else:
            trained = parser_from_bytes(bundle.parser, where=f"{WHERE}: parser")
            self.parser, data = trained.parser, data or trained.segmenter
        if data is None:
            raise UserError(f"{WHERE}: has a parser without a segmenter: bundle them again")
        self.segmenter = Segmenter(segmenter_from_bytes(data, where=f"{WHERE}: segmenter"))

    def annotate(self, documents: Sequence[Sequence[str]]) -> list[DiscourseDocument]:
        """EDUs and trees of documents, given as plain sentences."""
        texts = (PlainText(str(number), list(sentences)) for number, sentences in enumerate(documents, start=1))
        made = annotate(texts, lang=self.lang, segmenter=self.segmenter, parser=self.parser)
        shown = progress(made, label="segment and parse", unit="documents", total=len(documents))
        return list(map(chain_sentences, shown) if self.sentences == "chain" else shown)
