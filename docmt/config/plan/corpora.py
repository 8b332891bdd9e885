"""The plan of the corpora stage."""

import re
from itertools import chain
from typing import Any

from docmt.config.fingerprints import Wildcards
from docmt.config.plan.paths import as_argument, dataset_files, dataset_prefix, one_of
from docmt.config.references import CONTROLLED_LANGUAGES, corpus_languages, source_files
from docmt.config.rows import MONOLINGUAL, SENTENCES
from docmt.config.schema import Config
from docmt.corpora.catalogue import load_catalogue


class CorporaPlan:
    """Fetching, reading and generating corpora, and joining them to datasets."""

    def __init__(self, config: Config) -> None:
        self.config = config

    # Constraints of wildcards: each way to a corpus has its own rules.

    def controlled_names(self) -> str:
        """Corpora that docmt generates."""
        return one_of(self.config.corpora.controlled)

    def custom_names(self) -> str:
        """Corpora of the user's own files."""
        return one_of(self.config.corpora.custom)

    def catalogue_names(self) -> str:
        """Corpora of the catalogue, except those that a row of the config hides by its name."""
        hidden = {*self.config.corpora.controlled, *self.config.corpora.custom}
        return one_of(name for name in load_catalogue() if name not in hidden)

    # One corpus.

    def folder(self, wildcards: Wildcards) -> str:
        """The folder with the files of a split, or of a contrastive test set, as fetched."""
        version = load_catalogue()[wildcards.corpus].corpus.version
        split = getattr(wildcards, "split", None) or wildcards.suite
        return f"resources/corpora/{wildcards.corpus}/{re.sub(r'[^A-Za-z0-9_.-]+', '-', version)}/{split}"

    def fetched(self, wildcards: Wildcards) -> str:
        """The mark that all files are in `folder`."""
        return f"{self.folder(wildcards)}.fetched"

    def mirror(self, wildcards: Wildcards, output: Any) -> str:
        """`--mirror DIR`, or nothing. As it asks for `output`, Snakemake does not fetch anew for another mirror."""
        return f"--mirror '{self.config.corpora.mirror}'" if self.config.corpora.mirror else ""

    def controlled_settings(self, wildcards: Wildcards) -> str:
        """The settings of a generated corpus."""
        return as_argument(self.config.corpora.controlled[wildcards.corpus].model_dump(mode="json"))

    def custom_settings(self, wildcards: Wildcards) -> str:
        """The description of a corpus of the user's own files."""
        return as_argument(self.config.corpora.custom[wildcards.corpus].model_dump(mode="json"))

    def custom_files(self, wildcards: Wildcards) -> list[str]:
        """The user's own files of a split."""
        return [str(path) for path in source_files(self.config, wildcards.corpus, wildcards.split)]

    # The splits of a dataset.

    def members(self, wildcards: Wildcards) -> list[str]:
        """The prefixes of the corpora that make up a split of a dataset."""
        references = self.config.datasets[wildcards.dataset].parallel_parts()[wildcards.split]
        return [self._corpus_prefix(wildcards.dataset, reference) for reference in references]

    def member_files(self, wildcards: Wildcards) -> list[str]:
        """The files behind `members`."""
        ends = (*self.config.datasets[wildcards.dataset].languages, "documents.tsv")
        return [f"{prefix}.{end}" for prefix in self.members(wildcards) for end in ends]

    def monolingual_members(self, wildcards: Wildcards) -> list[str]:
        """The prefixes of the corpora that make up the monolingual documents of a dataset."""
        references = self.config.datasets[wildcards.dataset].monolingual
        return [self._monolingual_prefix(wildcards.dataset, reference) for reference in references]

    def monolingual_member_files(self, wildcards: Wildcards) -> list[str]:
        """The files behind `monolingual_members`."""
        ends = (*self.config.datasets[wildcards.dataset].part_languages(MONOLINGUAL), "documents.tsv")
        return [f"{prefix}.{end}" for prefix in self.monolingual_members(wildcards) for end in ends]

    def language_options(self, wildcards: Wildcards) -> str:
        """`--src-lang … --tgt-lang …` of a dataset."""
        src, tgt = self.config.datasets[wildcards.dataset].languages
        return f"--src-lang {src} --tgt-lang {tgt}"

    def prefix(self, wildcards: Wildcards) -> str:
        """The prefix of a dataset's split."""
        return dataset_prefix(self.config, wildcards.dataset, wildcards.split)

    def files(self, wildcards: Wildcards) -> list[str]:
        """The text of a dataset's split in both languages, and its document index."""
        return dataset_files(self.config, wildcards.dataset, wildcards.split)

    def documents(self, wildcards: Wildcards) -> str:
        """The document index of a dataset's split."""
        return f"{dataset_prefix(self.config, wildcards.dataset, wildcards.split)}.documents.tsv"

    def train_prefixes(self, wildcards: Wildcards) -> str:
        """The prefixes of a dataset's parallel training text."""
        has_sentences = bool(self.config.datasets[wildcards.dataset].sentences)
        parts = ("train", SENTENCES) if has_sentences else ("train",)
        return " ".join(dataset_prefix(self.config, wildcards.dataset, part) for part in parts)

    def other_prefixes(self, wildcards: Wildcards) -> list[str]:
        """The prefixes of a dataset's development and test splits."""
        splits = self.config.datasets[wildcards.dataset].parts()
        return [dataset_prefix(self.config, wildcards.dataset, split) for split in splits if split != "train"]

    def all_files(self, wildcards: Wildcards) -> list[str]:
        """The files of all parallel splits of a dataset."""
        splits = self.config.datasets[wildcards.dataset].parallel_parts()
        return [file for split in splits for file in dataset_files(self.config, wildcards.dataset, split)]

    def suite(self, wildcards: Wildcards) -> str:
        """A contrastive test set of a dataset."""
        return self._suite_path(wildcards.dataset, wildcards.suite)

    def _suite_path(self, dataset: str, suite: str) -> str:
        corpus, name = self.config.datasets[dataset].suite_reference(suite).split("/")
        return f"results/corpora/{corpus}/{'-'.join(self.config.datasets[dataset].languages)}/suites/{name}.jsonl"

    def _corpus_prefix(self, dataset: str, reference: str) -> str:
        """A split of a corpus, read in the direction of the dataset; generated corpora have one direction."""
        corpus, split = reference.split("/")
        is_generated = corpus in self.config.corpora.controlled
        languages = CONTROLLED_LANGUAGES if is_generated else self.config.datasets[dataset].languages
        return f"results/corpora/{corpus}/{'-'.join(languages)}/{split}"

    def _monolingual_prefix(self, dataset: str, reference: str) -> str:
        """A split of a corpus of one language, or of a parallel one, read in the direction of the dataset if it can."""
        corpus, split = reference.split("/")
        languages = corpus_languages(self.config, corpus)
        if set(languages) == set(self.config.datasets[dataset].languages):
            return self._corpus_prefix(dataset, reference)
        return f"results/corpora/{corpus}/{'-'.join(languages)}/{split}"

    def named_counts(self) -> dict[str, str]:
        """The counts of all splits that are read from files, by dataset, corpus and split."""
        counts = {}
        for name, dataset in self.config.datasets.items():
            prefixes = {reference: self._monolingual_prefix(name, reference) for reference in dataset.monolingual} | {
                reference: self._corpus_prefix(name, reference)
                for reference in chain.from_iterable(dataset.parallel_parts().values())
            }
            for reference, prefix in prefixes.items():
                if reference.split("/")[0] not in self.config.corpora.controlled:
                    counts[f"{name}/{reference}"] = f"{prefix}.counts.json"
        return counts

    # Targets.

    def targets(self) -> list[str]:
        """All that the stage makes: every split, contrastive test set and count of overlap."""
        files: dict[str, None] = {}
        for name, dataset in self.config.datasets.items():
            files |= dict.fromkeys(
                file for split in dataset.all_parts() for file in dataset_files(self.config, name, split)
            )
            files |= dict.fromkeys(self._suite_path(name, suite) for suite in dataset.suite_names())
            files[f"results/{name}/corpora/overlap.json"] = None
        return list(files)
