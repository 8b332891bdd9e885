"""Translation of instances and plain documents with a trained model."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch

from docmt.decoding.beam_search import BeamHypothesis, search_instances, search_sentences
from docmt.decoding.decoding_model import DecodingModel, prepare_search
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.target_streams import PLAIN_SYMBOLS, TargetSymbols
from docmt.decoding.two_pass_search import TwoPassSearch
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.storage import InstanceSet
from docmt.instances.trees import SubwordTrees, align_document
from docmt.languages import has_blanks
from docmt.logs import Meter
from docmt.models.attention.layout import AttentionLayout, BatchTrees
from docmt.models.batch import instance_trees
from docmt.models.model_file import TrainedModel
from docmt.text.realignment import align_sentences
from docmt.text.vocabulary import UNK

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

GPU_BATCH_TOKENS = 98_304
"""Source tokens that a GPU searches side by side, padding included. The time per step hardly depends on this number."""


@dataclass(frozen=True)
class Source:
    """The source side of an instance: token ids per sentence with boundary tokens, and its trees if known."""

    sentences: list[np.ndarray]
    trees: BatchTrees | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens with boundary tokens."""
        return sum(map(len, self.sentences))


@dataclass
class TranslationCounts:
    """Counts over the plain documents that a translator has translated so far.

    All are counted on the source side, except `forced_ends`, translations ended by the length limit.
    """

    sentences: int = 0
    subwords: int = 0
    unknown: int = 0
    forced_ends: int = 0


def search_best(
    model: DecodingModel,
    src_tokens: np.ndarray,
    layout: AttentionLayout,
    settings: DecodingSettings,
    symbols: TargetSymbols = PLAIN_SYMBOLS,
) -> list[BeamHypothesis]:
    """Return the best translation per instance, by the search that the model needs. Arguments as `search_instances`."""
    arguments = (model, src_tokens, layout, settings, symbols)
    if model.settings.drafts and layout.reads_context:
        return TwoPassSearch(*arguments).run()
    without_context = model.settings.context is not None and not layout.reads_context
    if (model.settings.decodes_sentences_alone or without_context) and not settings.one_beam_per_instance:
        return search_sentences(*arguments)
    return [hypotheses[0] for hypotheses in search_instances(*arguments)]


def run_in_batches(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Sequence[Result]],
    budget: int,
    *,
    cost: Callable[[Item], int],
) -> Iterator[list[tuple[Item, Result]]]:
    """Run a function on batches of items and yield, per batch, its items with their results.

    When a batch does not fit into GPU memory, it is tried again in halves, and so are all that follow.

    Items come from the most to the least costly. In a batch's cost, they are padded to the largest.
    """
    done = 0
    while done < len(items):
        batch = items[done : done + max(1, budget // max(1, cost(items[done])))]
        try:
            results = run(batch)
        except torch.OutOfMemoryError:
            results = None
        if results is None:
            # Outside of the handler, because the error holds on to the tensors of the search.
            torch.cuda.empty_cache()
            if len(batch) == 1:
                raise UserError(
                    f"an instance of {cost(batch[0])} source tokens does not fit into GPU memory: lower beam_size "
                    "or max_tokens of the instances, or use --device cpu"
                )
            budget = cost(batch[0]) * len(batch) // 2
            logger.warning("out of memory with %d instances: continuing with %d tokens per batch", len(batch), budget)
            continue
        done += len(batch)
        yield list(zip(batch, results, strict=True))


class Translator:
    """A trained model ready to translate.

    Args:
        trained: the model with its text pipeline.
        settings: search settings.
        device: `cpu` or `cuda`.
        batch_tokens: maximum source tokens side by side. None means as in the settings, and at least `GPU_BATCH_TOKENS`
            on a GPU.
        with_trees: whether documents without trees are segmented and parsed, if the model file has a segmenter and a
            parser.
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
        self.trained = trained
        self.settings = settings
        self.counts = TranslationCounts()
        least = GPU_BATCH_TOKENS if device == "cuda" else 0
        self.batch_tokens = batch_tokens or max(settings.max_batch_tokens, least)
        self.model = prepare_search(trained.model, settings, device)
        self.symbols = TargetSymbols.of(trained.marks, trained.vocabulary)
        self.is_aligned = trained.model.settings.target_stream == "aligned"

    def translate_sources(self, sources: Sequence[Source]) -> Iterator[tuple[int, BeamHypothesis]]:
        """Yield the best hypothesis per source with the source number, batch by batch (not in order)."""
        tokens = [source.n_tokens for source in sources]
        # Longest first for `run_in_batches`, ties by number, so that batches are always the same.
        order = sorted(range(len(sources)), key=lambda number: (-tokens[number], number))

        def search(numbers: Sequence[int]) -> list[BeamHypothesis]:
            return self._search([sources[number] for number in numbers])

        with Meter(sum(len(source.sentences) for source in sources), label="translate", unit="sentences") as meter:
            for results in run_in_batches(order, search, self.batch_tokens, cost=tokens.__getitem__):
                meter.add(sum(len(sources[number].sentences) for number, _ in results))
                yield from results

    def _search(self, sources: Sequence[Source]) -> list[BeamHypothesis]:
        """Translate one batch. Returns the best hypothesis per source."""
        sentences: list[np.ndarray] = []
        lengths = []
        for source in sources:
            sentences += source.sentences
            lengths.append(np.array(list(map(len, source.sentences))))
        layout = AttentionLayout.of_source(
            np.concatenate(lengths),
            np.array(list(map(len, lengths))),
            settings=self.model.settings,
            trees=BatchTrees.join_known([source.trees for source in sources], lengths),
            context=self.settings.context,
        )
        return search_best(self.model, np.concatenate(sentences), layout, self.settings, self.symbols)

    def restore(self, hypothesis: BeamHypothesis) -> list[str]:
        """Return the text of every sentence in a hypothesis."""
        vocabulary = self.trained.vocabulary
        pipeline = self.trained.pipeline
        return [pipeline.restore(vocabulary.decode(ids), lang=pipeline.tgt_lang) for ids in hypothesis.sentences]

    def translate_texts(self, sources: Sequence[Source]) -> Iterator[tuple[int, BeamHypothesis, list[str]]]:
        """Yield source numbers, best hypotheses and the text of their sentences, batch by batch (not in order)."""
        if self.settings.context == "joined":
            yield from self._translate_joined(sources)
            return
        for number, hypothesis in self.translate_sources(sources):
            yield number, hypothesis, self.restore(hypothesis)

    def _translate_joined(self, sources: Sequence[Source]) -> Iterator[tuple[int, BeamHypothesis, list[str]]]:
        """Translate every source as one sentence, and divide the translation into the sentences of the source.

        A sentence model keeps no boundaries. They are found by alignment to its translations of the single sentences,
        so that no score depends on a reference.
        """
        single = []
        joined = []
        for source in sources:
            joined.append(Source([self.trained.marks.join(source.sentences, "src")]))
            for sentence in source.sentences:
                single.append(Source([sentence]))
        translations = [""] * len(single)
        for number, hypothesis in self.translate_sources(single):
            (translations[number],) = self.restore(hypothesis)
        rest = iter(translations)
        guides = [list(islice(rest, len(source.sentences))) for source in sources]
        for number, hypothesis in self.translate_sources(joined):
            _, sentences = align_sentences(self.restore(hypothesis), guides[number], self.trained.pipeline.tgt_lang)
            yield number, hypothesis, sentences
        logger.info("%d windows of joined sentences, with translations re-aligned to %d", len(joined), len(single))

    def translate_instances(
        self, instance_set: InstanceSet, numbers: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of a hypotheses file (docs/files.md) for the instances with these numbers. Default: all."""
        if numbers is None:
            numbers = range(len(instance_set))
        if instance_set.trees is None:
            warn_without_trees(self.trained)
        sources = []
        for number in numbers:
            # Instances have `<s>` and `</s>`. The model may expect others, such as language tags.
            tokens = [self.trained.marks.wrap(ids[1:-1], "src") for ids in instance_set.sentences(number, "src")]
            trees = None
            if self.model.settings.needs_trees and instance_set.trees is not None:
                trees = instance_trees(instance_set, number).with_boundaries(self.model.settings.n_src_boundaries)
            sources.append(Source(tokens, trees))
        ids = instance_set.document_ids()
        rows: list[dict[str, Any]] = [{} for _ in sources]
        for index, hypothesis, sentences in self.translate_texts(sources):
            number = numbers[index]
            row = {
                "instance": number,
                "document": ids[int(instance_set.documents[number])],
                "first_sentence": int(instance_set.instances[number]),
                "n_sentences": len(sources[index].sentences),
                "aligned": self.is_aligned,
                "sentences": sentences,
                "score": hypothesis.score,
                "forced_ends": hypothesis.forced_ends,
            }
            if self.settings.context == "joined":
                row["joined"] = True
            rows[index] = row
        return rows

    def translate_documents(
        self, documents: Sequence[Sequence[str]], trees: Sequence[DiscourseDocument] | None = None
    ) -> list[list[str]]:
        """Translate documents given as plain sentences, with their trees for models that read trees.

        Without `trees`, the segmenter and parser in the model file make them, if it has these.

        Returns:
            As many sentences per document as it has. With a free target stream, only whole instances correspond: when
            the numbers of sentences differ, the text of the instance is its first sentence and the others are empty.
        """
        if trees is not None and len(trees) != len(documents):
            raise UserError(
                f"the trees belong to {len(trees)} documents, but the text has {len(documents)}: parse this text again"
            )
        if trees is None and self.with_trees:
            trees = self.trained.annotator.annotate(documents)
        sources: list[Source] = []
        owners = []
        for number, document in enumerate(documents):
            discourse = None if trees is None else trees[number]
            for source in self._split(document, discourse):
                sources.append(source)
                owners.append(number)
        limit = self.trained.instance_settings.get("max_tokens")
        n_long = 0
        if limit:
            for source in sources:
                n_long += sum(len(ids) > limit for ids in source.sentences)
        if n_long:
            logger.warning("%d sentences are longer than %d tokens, the limit in training", n_long, limit)
        texts: list[list[str]] = [[] for _ in sources]
        n_merged = 0
        blank = " " if has_blanks(self.trained.pipeline.tgt_lang) else ""
        for number, hypothesis, text in self.translate_texts(sources):
            count = len(sources[number].sentences)
            if len(text) != count:
                text = [blank.join(filter(None, text)), *[""] * (count - 1)]
                n_merged += 1
            texts[number] = text
            self.counts.forced_ends += hypothesis.forced_ends
        if n_merged:
            logger.warning(
                "%d of %d instances were translated into another number of sentences: their text is in the first "
                "sentence, and the others are empty",
                n_merged,
                len(sources),
            )
        translated: list[list[str]] = [[] for _ in documents]
        for owner, text in zip(owners, texts, strict=True):
            translated[owner] += text
        return translated

    def _split(self, document: Sequence[str], discourse: DiscourseDocument | None) -> Iterator[Source]:
        """Yield the instances in a document, split by its source side."""
        sentences = [self.trained.encode(sentence, "src") for sentence in document]
        costs = list(map(len, sentences))
        self.counts.sentences += len(sentences)
        self.counts.subwords += sum(costs) - sum(self.model.settings.n_src_boundaries) * len(sentences)
        self.counts.unknown += sum(int((sentence == UNK).sum()) for sentence in sentences)
        aligned = None
        if discourse is not None:
            aligned = align_trees(discourse, document, self.trained)
        n_boundaries = self.trained.model.settings.n_src_boundaries
        start = 0
        for count in self.trained.split(costs, context=self.settings.context):
            end = start + count
            trees = None
            if aligned is not None:
                trees = slice_trees(aligned, start, end, n_boundaries)
            yield Source(sentences[start:end], trees)
            start = end


def subword_trees(
    trained: TrainedModel,
    names: Sequence[str],
    sources: Sequence[Sequence[str]],
    trees: Sequence[DiscourseDocument] | None,
) -> list[SubwordTrees | None]:
    """Return trees over subwords for source documents, by default from the model file's segmenter and parser.

    None for a model that reads no trees, or if there are none.
    """
    if trees is not None and [document.id for document in trees] != [*names]:
        raise UserError("the trees must have the ids of the documents or items, in the same order: parse them again")
    if trees is None and trained.discourse is not None and trained.model.settings.needs_trees:
        annotated = trained.annotator.annotate(sources)
        trees = [replace(document, id=name) for name, document in zip(names, annotated, strict=True)]
    if trees is None:
        warn_without_trees(trained)
        return [None] * len(sources)
    return [align_trees(tree, source, trained) for tree, source in zip(trees, sources, strict=True)]


def warn_without_trees(trained: TrainedModel) -> None:
    """Log that a model reads trees, although there are none."""
    if trained.model.settings.needs_trees:
        logger.warning("the model reads discourse trees, but there are none: it runs without trees")


def align_trees(discourse: DiscourseDocument, sentences: Sequence[str], trained: TrainedModel) -> SubwordTrees | None:
    """Return the trees for a source document over its subwords. None for a model that reads no trees."""
    if not trained.model.settings.needs_trees:
        return None
    pipeline = trained.pipeline
    return align_document(discourse, [pipeline.prepare(sentence, lang=pipeline.src_lang) for sentence in sentences])


def slice_trees(aligned: SubwordTrees, first: int, last: int, n_boundaries: tuple[int, int]) -> BatchTrees:
    """Return the trees for an instance, sentences `first` to `last` − 1 in the document.

    `n_boundaries` are the numbers of boundary tokens before and after a sentence.
    """
    cut = aligned.cut(first, last)
    trees = BatchTrees.of_instance(
        edu_lengths=cut.edu_lengths,
        edu_counts=cut.edu_counts,
        edu_heads=cut.edu_heads,
        sentence_heads=cut.sentence_heads,
    )
    return trees.with_boundaries(n_boundaries)
