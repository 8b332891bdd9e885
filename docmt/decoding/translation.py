"""Translating instances and plain documents with a trained model."""

import copy
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docmt.decoding.batches import batch_budget, run_in_batches
from docmt.decoding.drafting import search_best
from docmt.decoding.prepared import PreparedTransformer
from docmt.decoding.products import int8_product
from docmt.decoding.search import BeamHypothesis, TargetSymbols
from docmt.decoding.settings import DecodingSettings
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.storage import InstanceSet
from docmt.instances.trees import PlacedTrees, place_trees
from docmt.logs import Meter
from docmt.models.batch import instance_trees
from docmt.models.layout import Layout
from docmt.models.model_file import TrainedModel
from docmt.models.transformer import Transformer
from docmt.models.trees import BatchTrees
from docmt.text.vocabulary import UNK

if TYPE_CHECKING:
    from docmt.decoding.bundled import Annotator

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """The source side of an instance: token ids of each sentence, marks included, and its trees if known."""

    sentences: list[np.ndarray]
    trees: BatchTrees | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens with marks."""
        return sum(len(sentence) for sentence in self.sentences)


@dataclass
class TranslationCounts:
    """What a translator has met in plain documents so far.

    Attributes:
        sentences: translated.
        subwords: of their sources.
        unknown: of these, subwords that the vocabulary does not have.
        forced_ends: translations that were ended by the length limit.
    """

    sentences: int = 0
    subwords: int = 0
    unknown: int = 0
    forced_ends: int = 0


class Translator:
    """A trained model ready to translate.

    Args:
        trained: the model with its text pipeline.
        settings: of the search; by default, those of `DecodingSettings`.
        device: `cpu` or `cuda`.
        batch_tokens: most source tokens side by side; None lets the device decide, see `batch_budget`.
        with_trees: whether documents without trees are segmented and parsed, if the model file has what that takes.
    """

    def __init__(
        self,
        trained: TrainedModel,
        settings: DecodingSettings | None = None,
        *,
        device: str = "cpu",
        batch_tokens: int | None = None,
        with_trees: bool = True,
    ) -> None:
        settings = settings or DecodingSettings()
        self.with_trees = with_trees and trained.discourse is not None and trained.model.settings.needs_trees
        self.trained, self.settings = trained, settings
        self.counts = TranslationCounts()
        self.batch_tokens = batch_tokens or batch_budget(settings.max_batch_tokens, device)
        self.model = prepare_search(trained.model, settings, device)
        self.symbols = TargetSymbols.of(trained.marks, trained.vocabulary)
        self.is_aligned = trained.model.settings.target_stream == "aligned"

    def translate_sources(self, sources: Sequence[Source]) -> Iterator[tuple[int, BeamHypothesis]]:
        """The best hypothesis of each source with its number, batch by batch (not in order).

        Raises UserError when a source alone does not fit into the memory of a GPU.
        """
        tokens = [source.n_tokens for source in sources]
        order = sorted(range(len(sources)), key=lambda number: (-tokens[number], number))

        def search(numbers: list[int]) -> list[BeamHypothesis]:
            return self._search([sources[number] for number in numbers])

        with Meter(sum(len(source.sentences) for source in sources), label="translate", unit="sentences") as meter:
            for found in run_in_batches(order, search, self.batch_tokens, cost=tokens.__getitem__):
                meter.add(sum(len(sources[number].sentences) for number, _ in found))
                yield from found

    def _search(self, sources: Sequence[Source]) -> list[BeamHypothesis]:
        """The best hypothesis of each source of a batch."""
        lengths = [np.array([len(sentence) for sentence in source.sentences]) for source in sources]
        layout = Layout.of_source(
            np.concatenate(lengths),
            np.array([len(source.sentences) for source in sources]),
            settings=self.model.settings,
            trees=BatchTrees.join_known([source.trees for source in sources], lengths),
            context=self.settings.context,
        )
        tokens = np.concatenate([sentence for source in sources for sentence in source.sentences])
        return search_best(self.model, tokens, layout, self.settings, self.symbols)

    def _mark(self, sentence: np.ndarray) -> np.ndarray:
        """A source sentence of an instance with the marks that the model expects."""
        return self.trained.marks.wrap(sentence[1:-1], "src")

    def restore(self, hypothesis: BeamHypothesis) -> list[str]:
        """The text of each sentence of a hypothesis."""
        vocabulary, pipeline = self.trained.vocabulary, self.trained.pipeline
        return [pipeline.restore(vocabulary.decode(ids), lang=pipeline.tgt_lang) for ids in hypothesis.sentences]

    def translate_instances(self, instance_set: InstanceSet) -> list[dict[str, Any]]:
        """Rows of a hypotheses file, in the order of the instances (docs/files.md)."""
        reads_trees = self.model.settings.needs_trees and instance_set.trees is not None
        sources = [
            Source(
                [self._mark(sentence) for sentence in instance_set.sentences(number, "src")],
                instance_trees(instance_set, number).marked(self.model.settings.src_marks) if reads_trees else None,
            )
            for number in range(len(instance_set))
        ]
        ids = instance_set.document_ids()
        rows: list[dict[str, Any]] = [{} for _ in sources]
        for number, hypothesis in self.translate_sources(sources):
            rows[number] = {
                "instance": number,
                "document": ids[int(instance_set.documents[number])],
                "first_sentence": int(instance_set.instances[number]),
                "n_sentences": len(sources[number].sentences),
                "aligned": self.is_aligned,
                "sentences": self.restore(hypothesis),
                "score": hypothesis.score,
                "forced_ends": hypothesis.forced_ends,
            }
        return rows

    def translate_documents(
        self, documents: Sequence[Sequence[str]], trees: Sequence[DiscourseDocument] | None = None
    ) -> list[list[str]]:
        """Translate documents given as plain sentences, with the trees of each for models that read them.

        Where no trees are given, those that the model file's segmenter and parser make, if it has them; else none.

        Returns:
            As many sentences per document as it has. With a free target stream, only whole instances correspond: when
            the numbers of sentences differ, the text of the instance is its first sentence and the others are empty.

        Raises:
            UserError: the trees belong to other documents.
        """
        if trees is not None and len(trees) != len(documents):
            raise UserError(
                f"there are trees for {len(trees)} documents, but the text has {len(documents)}: parse the same text"
            )
        if trees is None and self.with_trees:
            trees = self._annotator.annotate(documents)
        sources, owners = [], []
        for number, document in enumerate(documents):
            for source in self._split(document, trees[number] if trees is not None else None):
                sources.append(source)
                owners.append(number)
        self._warn(sources)
        texts: list[list[str]] = [[] for _ in sources]
        for number, hypothesis in self.translate_sources(sources):
            texts[number] = _fit(self.restore(hypothesis), len(sources[number].sentences))
            self.counts.forced_ends += hypothesis.forced_ends
        translated: list[list[str]] = [[] for _ in documents]
        for owner, text in zip(owners, texts, strict=True):
            translated[owner] += text
        return translated

    @cached_property
    def _annotator(self) -> "Annotator":
        from docmt.decoding.bundled import Annotator  # parsers take time to import

        assert self.trained.discourse is not None
        return Annotator(self.trained.discourse, lang=self.trained.pipeline.src_lang)

    def _warn(self, sources: Sequence[Source]) -> None:
        """Say how many sentences are beyond the longest instances of the training."""
        sentences = [sentence for source in sources for sentence in source.sentences]
        limit = self.trained.cutting.get("max_tokens")
        if limit and (n_long := sum(len(sentence) > limit for sentence in sentences)):
            logger.warning("%d sentences are longer than the %d tokens that the model was trained on", n_long, limit)

    def _split(self, document: Sequence[str], discourse: DiscourseDocument | None) -> Iterator[Source]:
        """The instances of a document, split by its source side alone."""
        sentences = [self.trained.encode(sentence, "src") for sentence in document]
        costs = [len(sentence) for sentence in sentences]
        self.counts.sentences += len(sentences)
        self.counts.subwords += sum(costs) - sum(self.model.settings.src_marks) * len(sentences)
        self.counts.unknown += sum(int((sentence == UNK).sum()) for sentence in sentences)
        placed = None if discourse is None else place_source(discourse, document, self.trained)
        marks, start = self.trained.model.settings.src_marks, 0
        for count in self.trained.split(costs):
            end = start + count
            yield Source(sentences[start:end], None if placed is None else cut_trees(placed, start, end, marks))
            start = end


def place_source(discourse: DiscourseDocument, sentences: Sequence[str], trained: TrainedModel) -> PlacedTrees | None:
    """The trees of a source document over its subwords; None for a model that reads no trees.

    Raises UserError when they belong to another document.
    """
    if not trained.model.settings.needs_trees:
        return None
    pipeline = trained.pipeline
    return place_trees(discourse, [pipeline.prepare(sentence, lang=pipeline.src_lang) for sentence in sentences])


def cut_trees(placed: PlacedTrees, first: int, last: int, marks: tuple[int, int]) -> BatchTrees:
    """The trees of an instance, sentences first to last − 1 of the document, for a model with so many marks."""
    cut = placed.cut(first, last)
    return BatchTrees.of_instance(
        edu_lengths=cut.edu_lengths,
        edu_heads=cut.edu_heads,
        edu_counts=cut.edu_counts,
        sentence_heads=cut.sentence_heads,
    ).marked(marks)


def prepare_model(model: Transformer, settings: DecodingSettings, device: str) -> Transformer:
    """A copy of the model for inference on a device, in half precision if the settings say so (by default on a GPU).

    Raises UserError when the settings leave out a context module that the model does not have, or ask for 8 bits
    elsewhere than on a CPU.
    """
    if settings.precision == "int8" and device != "cpu":
        raise UserError("decoding.precision: int8 works on a CPU only: use auto on a GPU, or --device cpu")
    if settings.context == "none" and model.context is None:
        raise UserError(
            "decoding.context: none skips the context module, but this model has none: remove the key, or use a "
            "model that has one, such as global_context"
        )
    model = copy.deepcopy(model).to(device).eval()
    if settings.precision == "bfloat16" or (settings.precision == "auto" and device == "cuda"):
        model = model.to(torch.bfloat16)
    return model


def prepare_search(model: Transformer, settings: DecodingSettings, device: str) -> PreparedTransformer:
    """As `prepare_model`, with the products of the settings' precision."""
    prepared = prepare_model(model, settings, device)
    if settings.precision == "int8":
        return PreparedTransformer(prepared, int8_product, int8_product)
    return PreparedTransformer(prepared)


def _fit(sentences: list[str], count: int) -> list[str]:
    """Exactly `count` lines, see `Translator.translate_documents`."""
    if len(sentences) == count:
        return sentences
    return [" ".join(filter(None, sentences)), *[""] * (count - 1)]
