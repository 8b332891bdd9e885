"""The text pipeline for two languages, from sentences to subwords and back."""

from pathlib import Path
from typing import Any, Self

from docmt.errors import UserError
from docmt.files import read_json, write_json
from docmt.text.settings import TextSettings
from docmt.text.subwords import subword_model
from docmt.text.tokenizer import Tokenizer, check_language, get_tokenizer
from docmt.text.truecaser import Truecaser, restore_case

FORMAT = 1
KIND = "text pipeline"


class TextPipeline:
    """The settings, truecasers and codes (BPE merges, or SentencePiece models) for two languages."""

    def __init__(
        self, settings: TextSettings, *, languages: tuple[str, str], truecasers: dict[str, Truecaser], codes: str
    ) -> None:
        """Assemble a pipeline from a truecaser per language and the content of a codes file."""
        self.settings = settings
        self.src_lang, self.tgt_lang = (check_language(lang, settings.tokenization) for lang in languages)
        if self.src_lang == self.tgt_lang:
            raise UserError(f"source and target language are both {self.src_lang!r}: pass two different languages")
        self._truecasers = {lang: truecasers[lang] for lang in languages}
        for truecaser in self._truecasers.values():
            if settings.truecase != (truecaser.words is not None):
                raise UserError(
                    f"truecase is {str(settings.truecase).lower()}, but the truecasers were learned with a different "
                    "setting: pass the same --settings to `docmt text learn-truecaser`"
                )
        self._codes = codes
        self._subwords = {lang: subword_model(codes, lang) for lang in languages}

    def for_languages(self, languages: tuple[str, str]) -> Self:
        """Return the pipeline for other languages. Requires a pipeline without truecasers."""
        truecasers = dict.fromkeys(languages, Truecaser(None))
        return type(self)(self.settings, languages=languages, truecasers=truecasers, codes=self._codes)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build a pipeline from the values of `to_dict`."""
        if not isinstance(values, dict) or (values.get("kind"), values.get("format")) != (KIND, FORMAT):
            raise UserError(f"not a text pipeline of format {FORMAT}: create it with `docmt text save-pipeline`")
        try:
            languages = (values["src_lang"], values["tgt_lang"])
            return cls(
                TextSettings.load(values["settings"], where="pipeline.settings"),
                languages=languages,
                truecasers={lang: Truecaser(values["truecasers"].get(lang)) for lang in languages},
                codes=values["codes"],
            )
        except (KeyError, AttributeError, TypeError) as error:
            raise UserError(
                f"the text pipeline is damaged ({error}): create it with `docmt text save-pipeline`"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the pipeline as plain values (str, int, bool, list, dict)."""
        truecasers = {}
        for lang, truecaser in self._truecasers.items():
            if truecaser.words is not None:
                truecasers[lang] = sorted(truecaser.words)
        return {
            "format": FORMAT,
            "kind": KIND,
            "src_lang": self.src_lang,
            "tgt_lang": self.tgt_lang,
            "settings": self.settings.model_dump(mode="json"),
            "truecasers": truecasers,
            "codes": self._codes,
        }

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read `pipeline.json`."""
        values = read_json(path)
        try:
            return cls.from_dict(values)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write `pipeline.json`."""
        write_json(path, self.to_dict())

    def normalize(self, sentence: str, *, lang: str) -> str:
        """Return the sentence as `restore` recovers it, since cleaning and lowercasing are irreversible."""
        return self._tokenizer(lang).normalize(sentence)

    def prepare(self, sentence: str, *, lang: str) -> list[str]:
        """Split a sentence into subwords. An empty sentence has none."""
        # The truecaser needs complete words, so it comes before the subwords.
        tokens = self._tokenizer(lang).tokenize(sentence)
        return self._subwords[lang].split(self._truecasers[lang].truecase(tokens))

    def restore(self, subwords: list[str], *, lang: str) -> str:
        """Restore a sentence from subwords. Accepts arbitrary strings, for example model output."""
        tokenizer = self._tokenizer(lang)
        tokens = self._subwords[lang].join(subwords)
        if self.settings.truecase:
            tokens = restore_case(tokens)
        return tokenizer.detokenize(tokens)

    def _tokenizer(self, lang: str) -> Tokenizer:
        if lang not in self._truecasers:
            raise UserError(f"language {lang!r}: this pipeline is for {self.src_lang} and {self.tgt_lang}")
        return get_tokenizer(lang, **self.settings.tokenizer_options())
