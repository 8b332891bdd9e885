"""Artifacts of the text stage: from sentences to subwords."""

from collections.abc import Mapping
from typing import Any

from docmt.config.artifacts.base import Artifact, artifact
from docmt.config.artifacts.corpora import CorporaArtifacts
from docmt.config.systems import text_settings
from docmt.models.published.catalog import published_folder
from docmt.text.published_text import TEXT_FILES

KEYS_OF_BPE = ("bpe_merges", "bpe_min_frequency", "sentencepiece_size", "pretrained", "keep_pieces")
"""Section `text` keys that affect BPE and later steps, but not tokens."""


class TextArtifacts(CorporaArtifacts):
    """Tokens, truecased text, BPE, subwords."""

    @artifact("tokenize", stage="text")
    def tokens(self, dataset: str, split: str, lang: str) -> Artifact:
        """Tokens of one side of a split. Deleted after truecasing."""
        text = self.dataset_split(dataset, split)
        settings = self._token_settings(dataset)
        return Artifact(
            [f"results/{dataset}/text/{split}.tok.{lang}"],
            [settings, text],
            {"input": text.select_suffix(f".{lang}")},
            {"settings": settings},
            is_kept=False,
        )

    @artifact("learn_truecaser", stage="text")
    def truecaser(self, dataset: str, lang: str) -> Artifact:
        """Truecaser of a language. If any training text changes, the truecasers of both languages are rebuilt."""
        row = self.config.datasets[dataset]
        train, *more = (part for part in row.all_parts() if any(part in row.learned_on(lang) for lang in row.languages))
        parts: list[Any] = [self._token_settings(dataset), self.dataset_split(dataset, train)]
        if more:
            # Only pre-training text changes the form of the hash, so that other studies keep their fingerprints.
            parts = [self.tokens(dataset, train, lang), [self.tokens(dataset, part, lang) for part in more]]
        tokens = [self.tokens(dataset, part, lang) for part in row.learned_on(lang)]
        return Artifact(
            [f"results/{dataset}/text/truecaser.{lang}.json"],
            parts,
            {"inputs": tokens},
            {"settings": self._token_settings(dataset)},
        )

    @artifact("truecase", stage="text")
    def truecased(self, dataset: str, split: str, lang: str) -> Artifact:
        """Truecased text of one side of a split. It is kept because BPE with other settings starts from it."""
        tokens, truecaser = self.tokens(dataset, split, lang), self.truecaser(dataset, lang)
        files = [f"results/{dataset}/text/{split}.true.{lang}"]
        inputs = {"model": truecaser, "input": tokens}
        return Artifact(files, [tokens, truecaser], inputs)

    @artifact("learn_bpe", stage="text")
    def codes(self, dataset: str) -> Artifact:
        """BPE merges of a dataset, learned on both sides of the training text."""
        inputs = {"inputs": self._training_text(dataset, self.truecased), "pretrained": self._published_text(dataset)}
        return self._of_bpe(dataset, "bpe.codes", inputs, self.language_pair(dataset))

    @artifact("learn_vocabulary", stage="text")
    def vocabulary(self, dataset: str) -> Artifact:
        """Vocabulary of the training text, with masks and language tags for pre-training."""
        row, settings = self.config.datasets[dataset], text_settings(self.config, dataset)
        is_for_pretraining = row.sentences or row.monolingual
        params: dict[str, Any] = {"tags": list(row.languages) if is_for_pretraining else []}
        if settings.pretrained is not None:
            params |= {"pretrained": published_folder(settings.pretrained), "keep": settings.keep_pieces}
            params |= self.language_pair(dataset)
        inputs = {"inputs": self._training_text(dataset, self.subwords), "pretrained": self._published_text(dataset)}
        return self._of_bpe(dataset, "vocabulary.txt", inputs, params)

    @artifact("save_pipeline", stage="text")
    def pipeline(self, dataset: str) -> Artifact:
        """Text pipeline, which contains settings, truecasers and BPE codes."""
        truecasers = [self.truecaser(dataset, lang) for lang in self.config.datasets[dataset].languages]
        inputs = {"truecasers": truecasers, "codes": self.codes(dataset)}
        return self._of_bpe(dataset, "pipeline.json", inputs, self.language_pair(dataset))

    @artifact("apply_bpe", stage="text")
    def subwords(self, dataset: str, split: str, lang: str) -> Artifact:
        """Subwords of one side of a split."""
        codes, text = self.codes(dataset), self.truecased(dataset, split, lang)
        files = [f"results/{dataset}/text/{split}.bpe.{lang}"]
        return Artifact(files, [codes, text], {"codes": codes, "input": text})

    @artifact("count_roundtrip", stage="text")
    def roundtrip(self, dataset: str) -> Artifact:
        """Share of lines that are restored from subwords without changes."""
        row = self.config.datasets[dataset]
        tests = [split for split in row.parts() if split != "train"]
        texts = [f"{lang}={self.prefix(dataset, split)}.{lang}" for split in tests for lang in row.languages]
        return Artifact(
            [f"results/{dataset}/text/roundtrip.json"],
            [self.codes(dataset), [self.dataset_split(dataset, split) for split in row.parts()]],
            {"files": [self.dataset_split(dataset, split) for split in tests], "pipeline": self.pipeline(dataset)},
            {"inputs": texts},
        )

    def _of_bpe(self, dataset: str, name: str, inputs: dict[str, Any], params: Mapping[str, Any]) -> Artifact:
        """Declare codes, vocabulary or pipeline. All depend on the same settings and text."""
        settings = text_settings(self.config, dataset).model_dump(mode="json")
        lang = self.config.datasets[dataset].src_lang
        # Both truecasers cover the text in both languages (see `truecaser`), so the source truecaser is enough.
        parts = [settings, self.truecaser(dataset, lang), *self._published_text(dataset)]
        read = {"pretrained": published_folder(settings["pretrained"])} if "pretrained" in settings else {}
        params = {"settings": settings | read, **params}
        return Artifact([f"results/{dataset}/text/{name}"], parts, inputs, params)

    def _published_text(self, dataset: str) -> list[Artifact]:
        folder = text_settings(self.config, dataset).pretrained
        where = f"config.datasets.{dataset}.text.pretrained"
        return [] if folder is None else self.published_files(folder, TEXT_FILES, where=where)

    def _token_settings(self, dataset: str) -> dict[str, Any]:
        # Without the BPE keys, so that other merges do not tokenize again.
        return text_settings(self.config, dataset).model_dump(mode="json", exclude=set(KEYS_OF_BPE))

    def _training_text(self, dataset: str, form: Any) -> list[Artifact]:
        row = self.config.datasets[dataset]
        return [form(dataset, part, lang) for lang in row.languages for part in row.learned_on(lang)]
