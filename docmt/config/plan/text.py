"""The plan of the text stage."""

from docmt.config.fingerprints import Wildcards, token_settings
from docmt.config.plan.paths import as_argument, dataset_prefix, one_of
from docmt.config.rows import MONOLINGUAL
from docmt.config.schema import Config
from docmt.config.systems import text_settings


class TextPlan:
    """Tokens, truecasing, BPE, and the way back."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def source(self, wildcards: Wildcards) -> str:
        """The text of a dataset's split in one language."""
        return f"{dataset_prefix(self.config, wildcards.dataset, wildcards.split)}.{wildcards.lang}"

    def token_settings(self, wildcards: Wildcards) -> str:
        """The settings of tokenisation."""
        return as_argument(token_settings(self.config, wildcards.dataset))

    def settings(self, wildcards: Wildcards) -> str:
        """All settings of a dataset's text."""
        return as_argument(text_settings(self.config, wildcards.dataset).model_dump(mode="json"))

    def plain_datasets(self) -> str:
        """Datasets with an ordinary vocabulary."""
        return one_of(name for name, dataset in self.config.datasets.items() if not dataset.is_for_pretraining)

    def tagged_datasets(self) -> str:
        """Datasets for pre-training, whose vocabulary has masks and language tags."""
        return one_of(name for name, dataset in self.config.datasets.items() if dataset.is_for_pretraining)

    def tags(self, wildcards: Wildcards) -> str:
        """The languages of a dataset."""
        return " ".join(self.config.datasets[wildcards.dataset].languages)

    def tokens_train(self, wildcards: Wildcards) -> list[str]:
        """The tokenised training text of one language: parallel documents, sentence pairs, monolingual documents."""
        parts = self.config.datasets[wildcards.dataset].learnt_on(wildcards.lang)
        return [f"results/{wildcards.dataset}/text/{part}.tok.{wildcards.lang}" for part in parts]

    def truecased_train(self, wildcards: Wildcards) -> list[str]:
        """The truecased training text, source first."""
        return self._train(wildcards, "true")

    def subwords_train(self, wildcards: Wildcards) -> list[str]:
        """The training text in subwords, source first."""
        return self._train(wildcards, "bpe")

    def subwords_monolingual(self, wildcards: Wildcards) -> str:
        """The monolingual documents in subwords."""
        (lang,) = self.config.datasets[wildcards.dataset].part_languages(MONOLINGUAL)
        return f"results/{wildcards.dataset}/text/{MONOLINGUAL}.bpe.{lang}"

    def truecasers(self, wildcards: Wildcards) -> list[str]:
        """The truecasers, source first."""
        return self._both(wildcards, "truecaser.{lang}.json")

    def subwords_src(self, wildcards: Wildcards) -> str:
        """The source text of a split in subwords."""
        return self._both(wildcards, f"{wildcards.split}.bpe.{{lang}}")[0]

    def subwords_tgt(self, wildcards: Wildcards) -> str:
        """The target text of a split in subwords."""
        return self._both(wildcards, f"{wildcards.split}.bpe.{{lang}}")[1]

    def roundtrip_texts(self, wildcards: Wildcards) -> list[str]:
        """`LANG=FILE` for the development and test splits."""
        dataset = self.config.datasets[wildcards.dataset]
        return [
            f"{lang}={dataset_prefix(self.config, wildcards.dataset, split)}.{lang}"
            for split in dataset.parts()
            if split != "train"
            for lang in dataset.languages
        ]

    def targets(self) -> list[str]:
        """All that the stage makes."""
        files = []
        for name, dataset in self.config.datasets.items():
            folder = f"results/{name}/text"
            files += [
                f"{folder}/{split}.bpe.{lang}"
                for split in dataset.all_parts()
                for lang in dataset.part_languages(split)
            ]
            files += [f"{folder}/{file}" for file in ("vocabulary.txt", "pipeline.json", "roundtrip.json")]
        return files

    def _train(self, wildcards: Wildcards, form: str) -> list[str]:
        """The training text of both languages, source first, each with all its parts."""
        dataset = self.config.datasets[wildcards.dataset]
        folder = f"results/{wildcards.dataset}/text"
        return [f"{folder}/{part}.{form}.{lang}" for lang in dataset.languages for part in dataset.learnt_on(lang)]

    def _both(self, wildcards: Wildcards, pattern: str) -> list[str]:
        languages = self.config.datasets[wildcards.dataset].languages
        return [f"results/{wildcards.dataset}/text/{pattern.format(lang=lang)}" for lang in languages]
