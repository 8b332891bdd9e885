"""Artifacts of the text stage: from sentences to subwords."""

import shlex
from typing import Any

from docmt.config.artifacts.base import Artifact, as_argument, made_by
from docmt.config.artifacts.corpora import CorporaArtifacts
from docmt.config.systems import text_settings
from docmt.models.catalogue import published_folder
from docmt.text.published import TEXT_FILES

KEYS_OF_BPE = ("bpe_merges", "bpe_min_frequency", "sentencepiece_size", "pretrained", "keep_pieces")
"""Keys of section `text` that matter to BPE and what follows, not to tokens."""


class TextArtifacts(CorporaArtifacts):
    """Tokens, truecased text, BPE, subwords."""

    @made_by("tokenize", stage="text")
    def tokens(self, dataset: str, split: str, lang: str) -> Artifact:
        """Tokens of one side of a split; deleted when they are truecased."""
        text = self.dataset_split(dataset, split)
        settings = self._token_settings(dataset)
        return Artifact(
            [f"results/{dataset}/text/{split}.tok.{lang}"],
            [settings, text],
            {"text": text.only(f".{lang}")},
            {"settings": as_argument(settings)},
            is_kept=False,
        )

    @made_by("learn_truecaser", stage="text")
    def truecaser(self, dataset: str, lang: str) -> Artifact:
        """The truecaser of a language. A change of any training text rebuilds those of both languages."""
        train, *more = self._training_parts(dataset)
        parts: list[Any] = [self._token_settings(dataset), self.dataset_split(dataset, train)]
        if more:
            parts = [self.tokens(dataset, train, lang), [self.tokens(dataset, part, lang) for part in more]]
        tokens = [self.tokens(dataset, part, lang) for part in self.config.datasets[dataset].learned_on(lang)]
        return Artifact(
            [f"results/{dataset}/text/truecaser.{lang}.json"],
            parts,
            {"tokens": tokens},
            {"settings": as_argument(self._token_settings(dataset))},
        )

    @made_by("truecase", stage="text")
    def truecased(self, dataset: str, split: str, lang: str) -> Artifact:
        """Truecased text of one side of a split; kept, so that other BPE merges start here."""
        tokens, truecaser = self.tokens(dataset, split, lang), self.truecaser(dataset, lang)
        files = [f"results/{dataset}/text/{split}.true.{lang}"]
        return Artifact(files, [tokens, truecaser], {"model": truecaser, "tokens": tokens})

    @made_by("learn_bpe", stage="text")
    def codes(self, dataset: str) -> Artifact:
        """The BPE merges of a dataset, learned on both sides of its training text."""
        inputs = {"text": self._training_text(dataset, self.truecased), "published": self._published_text(dataset)}
        return self._of_bpe(dataset, "bpe.codes", inputs, languages=self.language_options(dataset))

    @made_by("learn_vocabulary", stage="text")
    def vocabulary(self, dataset: str) -> Artifact:
        """The subwords of the training text; with masks and language tags in a dataset for pre-training."""
        row = self.config.datasets[dataset]
        tags = f"--tags {' '.join(row.languages)}" if row.is_for_pretraining else ""
        inputs = {"text": self._training_text(dataset, self.subwords), "published": self._published_text(dataset)}
        return self._of_bpe(dataset, "vocabulary.txt", inputs, tags=tags, published=self._published_options(dataset))

    @made_by("pack_pipeline", stage="text")
    def pipeline(self, dataset: str) -> Artifact:
        """Settings, truecasers and codes in one file."""
        truecasers = [self.truecaser(dataset, lang) for lang in self.config.datasets[dataset].languages]
        inputs = {"truecasers": truecasers, "codes": self.codes(dataset)}
        return self._of_bpe(dataset, "pipeline.json", inputs, languages=self.language_options(dataset))

    @made_by("apply_bpe", stage="text")
    def subwords(self, dataset: str, split: str, lang: str) -> Artifact:
        """One side of a split in subwords."""
        codes, text = self.codes(dataset), self.truecased(dataset, split, lang)
        files = [f"results/{dataset}/text/{split}.bpe.{lang}"]
        return Artifact(files, [codes, text], {"codes": codes, "text": text})

    @made_by("count_roundtrip", stage="text")
    def roundtrip(self, dataset: str) -> Artifact:
        """The share of lines that are restored from subwords unchanged."""
        row = self.config.datasets[dataset]
        texts = [
            f"{lang}={self.prefix(dataset, split)}.{lang}"
            for split in row.parts()
            if split != "train"
            for lang in row.languages
        ]
        return Artifact(
            [f"results/{dataset}/text/roundtrip.json"],
            [self.codes(dataset), [self.dataset_split(dataset, split) for split in row.parts()]],
            {
                "files": [self.dataset_split(dataset, split) for split in row.parallel_parts()],
                "pipeline": self.pipeline(dataset),
            },
            {"texts": texts},
        )

    def _of_bpe(self, dataset: str, name: str, inputs: dict[str, Any], **params: str) -> Artifact:
        """Codes, vocabulary and pipeline depend on the same."""
        settings = text_settings(self.config, dataset).model_dump(mode="json")
        lang = self.config.datasets[dataset].src_lang
        parts = [settings, self.truecaser(dataset, lang), *self._published_text(dataset)]
        read = {"pretrained": published_folder(settings["pretrained"])} if "pretrained" in settings else {}
        params |= {"settings": as_argument(settings | read)}
        return Artifact([f"results/{dataset}/text/{name}"], parts, inputs, params)

    def _published_text(self, dataset: str) -> list[Artifact]:
        """The files of the published model whose pieces a dataset takes; none without."""
        folder = text_settings(self.config, dataset).pretrained
        where = f"config.datasets.{dataset}.text.pretrained"
        return [] if folder is None else self.published_files(folder, TEXT_FILES, where=where)

    def _published_options(self, dataset: str) -> str:
        """How the vocabulary of such a dataset is made, or nothing."""
        settings = text_settings(self.config, dataset)
        if settings.pretrained is None:
            return ""
        folder, languages = shlex.quote(published_folder(settings.pretrained)), self.language_options(dataset)
        return f"--pretrained {folder} --keep {settings.keep_pieces} {languages}"

    def _token_settings(self, dataset: str) -> dict[str, Any]:
        """The settings of a dataset's text without those of BPE, so that other merges tokenize nothing again."""
        return text_settings(self.config, dataset).model_dump(mode="json", exclude=set(KEYS_OF_BPE))

    def _training_parts(self, dataset: str) -> list[str]:
        """The parts of a dataset that truecasers and BPE are learned on, in either language."""
        row = self.config.datasets[dataset]
        return [part for part in row.all_parts() if any(part in row.learned_on(lang) for lang in row.languages)]

    def _training_text(self, dataset: str, form: Any) -> list[Artifact]:
        """The training text of both languages in one form, source first."""
        row = self.config.datasets[dataset]
        return [form(dataset, part, lang) for lang in row.languages for part in row.learned_on(lang)]
