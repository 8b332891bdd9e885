"""Text files of published models in transformers format: SentencePiece models, pieces and their ids."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from docmt.errors import UserError
from docmt.files import read_bytes, read_json
from docmt.languages import language_of
from docmt.text.subwords import EVERY, SentencePieceModel, sentencepiece_codes
from docmt.text.vocabulary import EXTRA, SPECIALS, Vocabulary, extra_specials, language_tag

# Special symbols with the same name in transformers and docmt.
SHARED_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
JOINT_MODEL, MODELS = "sentencepiece.bpe.model", {"src": "source.spm", "tgt": "target.spm"}
# Files for text processing. All model folders contain config.json.
TEXT_FILES = ("config.json", "vocab.json", "*.spm", "*.model", "*token*.json")
# Files with weights.
MODEL_FILES = ("config.json", "*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True)
class PublishedText:
    """Vocabulary and languages of a published model.

    Attributes:
        ids: symbol → embedding row, for specials, pieces and languages in the spelling of the model.
        language_symbols: symbols such as `de_DE`. Bilingual models have none.
        languages: source and target, if the folder names them.
    """

    folder: Path
    ids: dict[str, int]
    language_symbols: tuple[str, ...]
    languages: tuple[str, str] | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the folder of a published model."""
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder: pass a model folder that contains config.json")
        try:
            return cls._read(folder)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder}: vocab.json or a file of its tokenizer is malformed ({error!r})") from None

    @classmethod
    def _read(cls, folder: Path) -> Self:
        tokenizer = read_optional(folder / "tokenizer_config.json")
        if tokenizer.get("separate_vocabs"):
            raise UserError(f"{folder}: has two vocabularies; docmt supports models with a joint vocabulary")
        # Marian models list all symbols in vocab.json. fairseq models only have the SentencePiece model.
        if (folder / "vocab.json").exists():
            ids = dict(read_json(folder / "vocab.json"))
        else:
            # Models of fairseq (mBART, NLLB) have four specials before the pieces, SentencePiece three: ids shift by 1.
            pieces = SentencePieceModel(_read_model(folder / JOINT_MODEL)).symbols()
            ids = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
            for row, piece in enumerate(pieces[3:], start=4):
                ids[piece] = row
        src, tgt = tokenizer.get("source_lang") or None, tokenizer.get("target_lang") or None
        languages = (src, tgt) if isinstance(src, str) and isinstance(tgt, str) else None
        added = _added_ids(folder, tokenizer, n_symbols=max(ids.values()) + 1)
        symbols: tuple[str, ...] = ()
        # Marian models have no such symbols. A fine-tuned one can have others, such as a separator of sentences.
        if read_optional(folder / "config.json").get("model_type") != "marian":
            symbols = tuple(symbol for symbol in added if symbol not in SHARED_SPECIALS)
        ids = added | ids
        for symbol, row in ids.items():
            symbol.encode()  # raises ValueError for lone surrogates
            if type(row) is not int or row < 0:
                raise ValueError(f"the id of {symbol!r} is {row!r}")
        missing = {"</s>", "<unk>"} - ids.keys()
        if missing:
            raise ValueError(f"no symbol {min(missing)}")
        return cls(folder, ids, symbols, languages)

    def subword_codes(self, languages: tuple[str, str]) -> str:
        """Return the content of a codes file (`docmt.text.subwords`) for source and target language."""
        if (self.folder / JOINT_MODEL).exists():
            return sentencepiece_codes({EVERY: _read_model(self.folder / JOINT_MODEL)})
        sides = zip(languages, MODELS.values(), strict=True)
        return sentencepiece_codes({lang: _read_model(self.folder / name) for lang, name in sides})

    def pieces(self) -> list[str]:
        """Return all symbols except specials and languages, in row order."""
        others = {*SPECIALS, *self.language_symbols}
        in_order = sorted(self.ids, key=self.ids.__getitem__)
        # Text has no pieces with white space, since docmt converts all white space to spaces.
        return [symbol for symbol in in_order if symbol not in others and symbol.split() == [symbol]]

    def vocabulary(self, languages: Iterable[str], *, selection: set[str] | None = None) -> Vocabulary:
        """Return the docmt vocabulary: specials, language tags if the model has languages, and pieces in order.

        `selection` are the pieces to keep (None: all).
        """
        extras = extra_specials(tuple(languages)) if self.language_symbols else ()
        pieces = [piece for piece in self.pieces() if selection is None or piece in selection]
        # Files distinguish tags from pieces by position, so a piece such as `<br>` must not come first.
        pieces.sort(key=lambda piece: EXTRA.fullmatch(piece) is not None)
        return Vocabulary([(piece, 0) for piece in pieces], extras=extras)

    def symbols_by_language(self) -> dict[str, str]:
        """Return language code → symbol for unambiguous codes, for example `de` → `de_DE`.

        Languages whose docmt tag is a piece in the model (`<br>`) are left out.
        """
        counts = Counter(map(_short_code, self.language_symbols))
        reserved = {*SPECIALS, *self.ids}
        symbols = {}
        for symbol in self.language_symbols:
            lang = _short_code(symbol)
            if counts[lang] == 1 and re.fullmatch("[a-z]{2,3}", lang) and language_tag(lang) not in reserved:
                symbols[lang] = symbol
        return symbols

    def language_symbol(self, lang: str) -> str:
        """Return the symbol for a language, spelled as in docmt (`de`) or in the model (`de_DE`)."""
        exact: list[str] = []
        others: list[str] = []
        for symbol in self.language_symbols:
            code = _short_code(symbol)
            if lang in (symbol, code):
                exact.append(symbol)
            elif language_of(code) == language_of(lang):
                others.append(symbol)
        symbols = exact or others
        if len(symbols) > 1:
            raise UserError(f"{self.folder}: language {lang!r} is ambiguous: use one of {' '.join(symbols)}")
        if not symbols:
            raise UserError(f"{self.folder}: language {lang!r} is not one of {' '.join(self.language_symbols)}")
        return symbols[0]


def _read_model(path: Path) -> bytes:
    """Read and check a SentencePiece model."""
    model = read_bytes(path)
    try:
        SentencePieceModel(model).split([])
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return model


def _short_code(symbol: str) -> str:
    return symbol.strip("_").split("_")[0]


def read_optional(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Empty if there is no such file."""
    if not path.exists():
        return {}
    values = read_json(path)
    if not isinstance(values, dict):
        raise UserError(f"{path}: is malformed: must be an object")
    return values


def _added_ids(folder: Path, tokenizer: dict[str, Any], *, n_symbols: int) -> dict[str, int]:
    """Return the rows of languages and other added symbols, from the tokenizer file that lists them."""
    ids = {token["content"]: token["id"] for token in read_optional(folder / "tokenizer.json").get("added_tokens", [])}
    for number, token in tokenizer.get("added_tokens_decoder", {}).items():
        ids[token["content"]] = token.get("id", int(number))
    ids |= read_optional(folder / "added_tokens.json")
    if not ids.keys() <= set(SHARED_SPECIALS):
        return ids
    # If only the order of languages is published, their rows follow the pieces.
    listed = read_optional(folder / "special_tokens_map.json").get("additional_special_tokens", [])
    for row, token in enumerate(listed, start=n_symbols):
        name = token if isinstance(token, str) else token["content"]
        ids[name] = row
    return ids
