"""What each artefact depends on, as one short hash: its own settings and everything upstream.

Every rule carries the fingerprint of its outputs among its parameters. So when a setting changes, each artefact that it
shapes is made anew, even when a job in between failed and left an older file that looks up to date.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from docmt.config.references import corpus_kind, readable_corpus
from docmt.config.rows import MONOLINGUAL, SENTENCES
from docmt.config.schema import Config
from docmt.config.systems import (
    dataset_instances,
    decoding_settings,
    model_owner,
    model_settings,
    text_settings,
    training_settings,
)
from docmt.corpora.catalogue import load_catalogue
from docmt.provenance import fingerprint

VERSIONS = {
    "corpora": 1,
    "text": 1,
    "discourse": 1,
    "instances": 1,
    "training": 2,
    "decoding": 1,
    "evaluation": 1,
    "report": 1,
}
"""Raise a stage's number when its code changes what it makes: every study then makes it anew."""


class Wildcards(Protocol):
    """What a rule's wildcards look like; each method below reads only those of its rule."""

    corpus: str
    dataset: str
    split: str
    suite: str
    segmentation: str
    system: str
    seed: str
    treebank: str
    segmenter: str
    parser: str
    trees: str


@dataclass(frozen=True)
class Place:
    """Wildcards made by hand, to ask for an artefact upstream."""

    corpus: str = ""
    dataset: str = ""
    split: str = ""
    suite: str = ""
    segmentation: str = ""
    system: str = ""
    seed: str = ""
    treebank: str = ""
    segmenter: str = ""
    parser: str = ""
    trees: str = ""


TEXT_KEYS_OF_BPE = ("bpe_merges", "bpe_min_frequency")
"""Keys of section `text` that matter to BPE and what follows, not to tokens."""


def token_settings(config: Config, dataset: str) -> dict[str, Any]:
    """The settings of a dataset's text without those of BPE, so that other merges tokenise nothing anew."""
    return text_settings(config, dataset).model_dump(mode="json", exclude=set(TEXT_KEYS_OF_BPE))


def split_instances_settings(config: Config, segmentation: str, split: str) -> dict[str, Any]:
    """The settings of one split's instances: choosing among documents is for training only; pairs stay single."""
    settings = config.instances[segmentation].instances()
    if split == SENTENCES:
        settings = settings.model_copy(update={"max_sentences": 1})
    if split != "train":
        settings = settings.model_copy(update={"min_document_tokens": None, "subset": None, "subset_seed": 1})
    return settings.model_dump(mode="json")


class Fingerprints:
    """The cumulative fingerprints of all artefacts of a study."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def corpus(self, wildcards: Wildcards) -> str:
        """`results/corpora/{corpus}/…/{split}`, or a contrastive set of the corpus."""
        kind = corpus_kind(self.config, wildcards.corpus, where="config.corpora")
        if kind == "controlled":
            what: Any = self.config.corpora.controlled[wildcards.corpus].model_dump(mode="json")
        else:
            corpus = readable_corpus(self.config, wildcards.corpus)
            split = corpus.splits[wildcards.split]
            what = [corpus.languages, corpus.format.model_dump(mode="json"), split.model_dump(mode="json")]
            if kind == "catalogue":
                entry = load_catalogue()[wildcards.corpus]
                what += [entry.corpus.version, [entry.family.files[file].check for file in split.files.values()]]
        return self._join("corpora", wildcards.corpus, what)

    def corpus_suite(self, wildcards: Wildcards) -> str:
        """`results/corpora/{corpus}/suites/{suite}.jsonl`."""
        return self.corpus(self._at(wildcards, split=wildcards.suite))

    def dataset_split(self, wildcards: Wildcards) -> str:
        """`results/{dataset}/corpora/…/{split}`."""
        dataset = self.config.datasets[wildcards.dataset]
        references = dataset.all_parts()[wildcards.split]
        upstream = [self._reference(reference) for reference in references]
        return self._join("corpora", list(dataset.part_languages(wildcards.split)), upstream)

    def suite(self, wildcards: Wildcards) -> str:
        """A contrastive set of a dataset."""
        return self._reference(self.config.datasets[wildcards.dataset].suite_reference(wildcards.suite))

    def overlap(self, wildcards: Wildcards) -> str:
        """Counts of what training and test data share."""
        splits = self.config.datasets[wildcards.dataset].parallel_parts()
        return self._join("corpora", [self.dataset_split(self._at(wildcards, split=split)) for split in splits])

    def tokens(self, wildcards: Wildcards) -> str:
        """Tokenised text of a split."""
        return self._join("text", token_settings(self.config, wildcards.dataset), self.dataset_split(wildcards))

    def truecased(self, wildcards: Wildcards) -> str:
        """Truecased text of a split; the truecaser is learnt on the training split."""
        return self._join("text", self.tokens(wildcards), self.truecaser(wildcards))

    def truecaser(self, wildcards: Wildcards) -> str:
        """The truecasers of a dataset, learnt on all its training text."""
        train = self.tokens(self._at(wildcards, split="train"))
        more = [
            part for part in (SENTENCES, MONOLINGUAL) if part in self.config.datasets[wildcards.dataset].all_parts()
        ]
        if not more:
            return train
        return self._join("text", train, [self.tokens(self._at(wildcards, split=part)) for part in more])

    def bpe(self, wildcards: Wildcards) -> str:
        """BPE codes, vocabulary and pipeline of a dataset."""
        settings = text_settings(self.config, wildcards.dataset).model_dump(mode="json")
        return self._join("text", settings, self.truecaser(wildcards))

    def subwords(self, wildcards: Wildcards) -> str:
        """Text of a split in subwords."""
        return self._join("text", self.bpe(wildcards), self.truecased(wildcards))

    def roundtrip(self, wildcards: Wildcards) -> str:
        """The share of lines that the way back restores."""
        splits = self.config.datasets[wildcards.dataset].parts()
        upstream = [self.dataset_split(self._at(wildcards, split=split)) for split in splits]
        return self._join("text", self.bpe(wildcards), upstream)

    def treebank(self, wildcards: Wildcards) -> str:
        """A treebank as documents with trees."""
        name = wildcards.treebank
        if name in self.config.corpora.controlled:
            return self.corpus(Place(corpus=name, split="train"))
        entry = load_catalogue()[name]
        checks = [file.check for file in entry.family.files.values()]
        return self._join("discourse", name, entry.corpus.version, checks)

    def segmenter(self, wildcards: Wildcards) -> str:
        """A trained segmenter."""
        row = self.config.discourse.segmenters[wildcards.segmenter]
        what = row.model_dump(mode="json")
        return self._join("discourse", what, self.treebank(Place(treebank=row.treebank)))

    def parser(self, wildcards: Wildcards) -> str:
        """A trained parser, with the segmenter that it reads."""
        row = self.config.discourse.parsers[wildcards.parser]
        what = row.model_dump(mode="json", exclude={"segmenter"})
        upstream = self.segmenter(Place(segmenter=row.segmenter)) if row.segmenter else None
        return self._join("discourse", what, self.treebank(Place(treebank=row.treebank)), upstream)

    def trees(self, wildcards: Wildcards) -> str:
        """Trees of a split of a dataset. The number of shards does not matter to them."""
        return self._join("discourse", self._tree_source(wildcards.trees), self.dataset_split(wildcards))

    def suite_trees(self, wildcards: Wildcards) -> str:
        """Trees of a contrastive set."""
        return self._join("discourse", self._tree_source(wildcards.trees), self.suite(wildcards))

    def tree_statistics(self, wildcards: Wildcards) -> str:
        """Counts of the trees of all splits of a dataset."""
        splits = self.config.datasets[wildcards.dataset].parts()
        return self._join("discourse", [self.trees(self._at(wildcards, split=split)) for split in splits])

    def _tree_source(self, trees: str) -> Any:
        row = self.config.discourse.trees[trees]
        segmenter = self.segmenter(Place(segmenter=row.segmenter)) if row.segmenter else None
        parser: str | None = row.parser
        if parser in self.config.discourse.parsers:
            parser = self.parser(Place(parser=parser))
        return [segmenter, parser, row.gold, row.files]

    def instances(self, wildcards: Wildcards) -> str:
        """Instances of a split in one segmentation, with trees where it names some."""
        settings = split_instances_settings(self.config, wildcards.segmentation, wildcards.split)
        parts = [settings, self.subwords(wildcards)]
        if trees := self.config.instances[wildcards.segmentation].trees:
            parts.append(self.trees(self._at(wildcards, trees=trees)))
        return self._join("instances", *parts)

    def monolingual_instances(self, wildcards: Wildcards) -> str:
        """Instances of the monolingual documents of a dataset."""
        settings = split_instances_settings(self.config, wildcards.segmentation, wildcards.split)
        return self._join("instances", settings, self.subwords(wildcards))

    def statistics(self, wildcards: Wildcards) -> str:
        """Counts of all instances of a dataset."""
        makers = {MONOLINGUAL: self.monolingual_instances}
        upstream = [
            makers.get(part, self.instances)(self._at(wildcards, segmentation=segmentation, split=part))
            for segmentation, part in dataset_instances(self.config, wildcards.dataset)
        ]
        return self._join("instances", upstream)

    def model(self, wildcards: Wildcards) -> str:
        """The trained model of a run, with the model that it was initialised from."""
        owner = model_owner(self.config, wildcards.system)
        row = self.config.systems[owner]
        place = self._at(wildcards, segmentation=row.segmentation)
        return self._join(
            "training",
            model_settings(self.config, owner).model_dump(mode="json"),
            training_settings(self.config, owner).model_dump(mode="json"),
            int(wildcards.seed),
            [self.instances(replace(place, split=split)) for split in ("train", "dev")],
            self.model(replace(place, system=row.init)) if row.init else None,
            *self._pretraining_data(owner, place),
        )

    def _pretraining_data(self, system: str, place: Place) -> list[str]:
        """What the tasks of a system read besides parallel documents."""
        tasks = training_settings(self.config, system).tasks
        parts = []
        if "pairs" in tasks:
            parts.append(self.instances(replace(place, split=SENTENCES)))
        if "restoration" in tasks:
            parts.append(self.monolingual_instances(replace(place, split=MONOLINGUAL)))
        return parts

    def hypotheses(self, wildcards: Wildcards) -> str:
        """Translations of a split by a run."""
        segmentation = self.config.systems[wildcards.system].segmentation
        test = self.instances(self._at(wildcards, segmentation=segmentation))
        settings = decoding_settings(self.config, wildcards.system).model_dump(mode="json")
        return self._join("decoding", settings, self.model(wildcards), test)

    def probabilities(self, wildcards: Wildcards) -> str:
        """Log probabilities of a contrastive set by a run. The beam does not matter to them."""
        context = decoding_settings(self.config, wildcards.system).context
        parts = [context, self.model(wildcards), self.suite(wildcards)]
        segmentation = self.config.systems[wildcards.system].segmentation
        if trees := self.config.instances[segmentation].trees:
            parts.append(self.suite_trees(self._at(wildcards, trees=trees)))
        return self._join("decoding", *parts)

    def scores(self, wildcards: Wildcards) -> str:
        """Scores of a run on a split."""
        settings = self.config.evaluation.model_dump(mode="json")
        return self._join("evaluation", settings, self.hypotheses(wildcards), self.dataset_split(wildcards))

    def suite_scores(self, wildcards: Wildcards) -> str:
        """Scores of a run on a contrastive set."""
        return self._join("evaluation", self.probabilities(wildcards))

    def _reference(self, reference: str) -> str:
        corpus, split = reference.split("/")
        return self.corpus(Place(corpus=corpus, split=split))

    @staticmethod
    def _at(wildcards: Wildcards, **changes: str) -> Place:
        keys = {name: getattr(wildcards, name, "") for name in Place.__dataclass_fields__}
        return Place(**{**keys, **changes})

    @staticmethod
    def _join(stage: str, *parts: Any) -> str:
        return fingerprint([stage, VERSIONS[stage], *parts])
