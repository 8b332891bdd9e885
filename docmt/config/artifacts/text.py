"""Artifacts of the text stage: from sentences to subwords."""

from collections.abc import Callable
from typing import Any

from docmt import paths
from docmt.config.artifacts.base import Artifact, Study, artifact
from docmt.config.artifacts.corpora import dataset_split, language_pair, published_files
from docmt.config.systems import text_settings
from docmt.models.published.catalog import published_folder
from docmt.text.published_text import TEXT_FILES
from docmt.text.settings import TextSettings

KEYS_OF_BPE = ("bpe_merges", "bpe_min_frequency", "sentencepiece_size", "pretrained", "keep_pieces")
"""Section `text` keys that affect BPE and later steps, but not tokens."""


@artifact("tokenize", stage="text")
def tokens(study: Study, dataset: str, split: str, lang: str) -> Artifact:
    """Tokens of one side of a split. Deleted after truecasing."""
    return Artifact(
        [f"results/{dataset}/text/{split}.tok.{lang}"],
        {"input": dataset_split(study, dataset, split).select(f".{lang}")},
        {"settings": _token_settings(study, dataset), "lang": lang},
        is_kept=False,
    )


@artifact("learn_truecaser", stage="text")
def truecaser(study: Study, dataset: str, lang: str) -> Artifact:
    """Truecaser of a language."""
    return Artifact(
        [f"results/{dataset}/text/truecaser.{lang}.json"],
        {"inputs": [tokens(study, dataset, part, lang) for part in study.config.datasets[dataset].learned_on(lang)]},
        {"settings": _token_settings(study, dataset)},
    )


@artifact("truecase", stage="text")
def truecased(study: Study, dataset: str, split: str, lang: str) -> Artifact:
    """Truecased text of one side of a split. It is kept because BPE with other settings starts from it."""
    inputs = {"model": truecaser(study, dataset, lang), "text": tokens(study, dataset, split, lang)}
    return Artifact([f"results/{dataset}/text/{split}.true.{lang}"], inputs)


@artifact("learn_bpe", stage="text")
def codes(study: Study, dataset: str) -> Artifact:
    """BPE merges of a dataset, learned on both sides of the training text."""
    return Artifact(
        [f"results/{dataset}/text/bpe.codes"],
        {
            "inputs": _training_text(study, dataset, truecased),
            "pretrained": _published_text(study, dataset),
        },
        {"settings": _bpe_settings(study, dataset), **language_pair(study, dataset)},
    )


@artifact("learn_vocabulary", stage="text")
def vocabulary(study: Study, dataset: str) -> Artifact:
    """Vocabulary of the training text, with masks and language tags for pre-training."""
    row = study.config.datasets[dataset]
    settings = text_settings(study.config, dataset)
    params: dict[str, Any] = {"tags": []}
    if row.sentences or row.monolingual:
        params["tags"] = list(row.languages)
    if settings.pretrained is not None:
        params |= {"pretrained": published_folder(settings.pretrained), "keep": settings.keep_pieces}
        params |= language_pair(study, dataset)
    inputs = {
        "inputs": _training_text(study, dataset, subwords),
        "pretrained": _published_text(study, dataset),
    }
    return Artifact([f"results/{dataset}/text/vocabulary.txt"], inputs, params)


@artifact("save_pipeline", stage="text")
def pipeline(study: Study, dataset: str) -> Artifact:
    """Text pipeline, which contains settings, truecasers and BPE codes."""
    languages = study.config.datasets[dataset].languages
    return Artifact(
        [f"results/{dataset}/text/pipeline.json"],
        {"truecasers": [truecaser(study, dataset, lang) for lang in languages], "codes": codes(study, dataset)},
        {"settings": _bpe_settings(study, dataset), **language_pair(study, dataset)},
    )


@artifact("apply_bpe", stage="text")
def subwords(study: Study, dataset: str, split: str, lang: str) -> Artifact:
    """Subwords of one side of a split."""
    inputs = {"codes": codes(study, dataset), "text": truecased(study, dataset, split, lang)}
    return Artifact([f"results/{dataset}/text/{split}.bpe.{lang}"], inputs, {"lang": lang})


@artifact("count_roundtrip", stage="text")
def roundtrip(study: Study, dataset: str) -> Artifact:
    """Share of lines that are restored from subwords without changes."""
    row = study.config.datasets[dataset]
    suffixes = [f".{lang}" for lang in row.languages]
    tests = []
    for split in row.parts():
        if split != "train":
            tests.append(dataset_split(study, dataset, split).select(*suffixes))
    inputs = {"texts": tests, "pipeline": pipeline(study, dataset)}
    return Artifact([paths.ROUNDTRIP.format(dataset=dataset)], inputs)


def _bpe_settings(study: Study, dataset: str) -> dict[str, Any]:
    settings = text_settings(study.config, dataset).model_dump(mode="json")
    if settings["tokenization"] != "sentencepiece":
        settings["sentencepiece_size"] = TextSettings().sentencepiece_size
    if settings["pretrained"] is not None:
        settings["pretrained"] = published_folder(settings["pretrained"])
    return settings


def _published_text(study: Study, dataset: str) -> list[Artifact]:
    folder = text_settings(study.config, dataset).pretrained
    if folder is None:
        return []
    return published_files(study, folder, TEXT_FILES, where=f"config.datasets.{dataset}.text.pretrained")


def _token_settings(study: Study, dataset: str) -> dict[str, Any]:
    # Without the BPE keys, so that other merges do not tokenize again.
    return text_settings(study.config, dataset).model_dump(mode="json", exclude=set(KEYS_OF_BPE))


def _training_text(study: Study, dataset: str, declare: Callable[[Study, str, str, str], Artifact]) -> list[Artifact]:
    row = study.config.datasets[dataset]
    texts = []
    for lang in row.languages:
        for part in row.learned_on(lang):
            texts.append(declare(study, dataset, part, lang))
    return texts
