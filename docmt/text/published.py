"""The text side of a published model in the format of transformers: SentencePiece models, pieces and their ids."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.files import read_bytes, read_json
from docmt.text.pieces import EVERY, Pieces, write_pieces
from docmt.text.vocabulary import SPECIALS, Vocabulary, extra_specials, language_tag

OWN_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""Symbols that both sides call alike."""
JOINT_MODEL, MODELS = "sentencepiece.bpe.model", {"src": "source.spm", "tgt": "target.spm"}
TEXT_FILES = ("config.json", "vocab.json", "*.spm", "*.model", "*token*.json")
"""Names of the files that text depends on; config.json is in every folder."""
MODEL_FILES = ("config.json", "*.safetensors", "pytorch_model*.bin")
"""Names of the files that weights depend on."""
LANGUAGE = re.compile("[a-z]{2,3}")
"""A language code of docmt."""
FAIRSEQ_SHIFT = 1
"""fairseq has four specials, SentencePiece three, so that further pieces are shifted (mBART, NLLB)."""


@dataclass(frozen=True)
class PublishedText:
    """What a folder says about text.

    Attributes:
        folder: it.
        ids: the row of the embeddings of each symbol: specials, pieces and languages, as they are spelled there.
        codes: the languages that the model has symbols for, as they are spelled there; none in models of one pair.
        languages: source and target, where the folder says them.
    """

    folder: Path
    ids: dict[str, int]
    codes: tuple[str, ...]
    languages: tuple[str, str] | None = None

    @classmethod
    def read(cls, folder: Path) -> "PublishedText":
        """Raises UserError when a file is missing or the model has a vocabulary for each side."""
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder: give the folder of a model with its config.json")
        tokenizer = _read_optional(folder / "tokenizer_config.json")
        if tokenizer.get("separate_vocabs"):
            raise UserError(f"{folder}: has a vocabulary for each side; docmt reads models with one")
        if (folder / "vocab.json").exists():
            ids = dict(read_json(folder / "vocab.json"))
        else:
            ids = _fairseq_ids(Pieces(read_bytes(folder / JOINT_MODEL)).symbols())
        src, tgt = tokenizer.get("source_lang"), tokenizer.get("target_lang")
        added = _added_ids(folder, tokenizer, n_symbols=max(ids.values()) + 1)
        codes = tuple(symbol for symbol in added if symbol not in OWN_SPECIALS)
        return cls(folder, added | ids, codes, (src, tgt) if src and tgt else None)

    def models(self, languages: tuple[str, str]) -> str:
        """The content of a codes file (`docmt.text.pieces`) for source and target language."""
        if (self.folder / JOINT_MODEL).exists():
            return write_pieces({EVERY: read_bytes(self.folder / JOINT_MODEL)})
        sides = zip(languages, MODELS.values(), strict=True)
        return write_pieces({lang: read_bytes(self.folder / name) for lang, name in sides})

    def pieces(self) -> list[str]:
        """All symbols but specials and languages, in the order of their rows.

        Those with white space are left out: lines of text never have them, as docmt makes all white space blanks.
        """
        others = {*SPECIALS, *self.codes}
        in_order = sorted(self.ids, key=self.ids.__getitem__)
        return [symbol for symbol in in_order if symbol not in others and symbol.split() == [symbol]]

    def vocabulary(self, languages: Iterable[str], *, kept: set[str] | None = None) -> Vocabulary:
        """The symbols in docmt: specials, tags of languages where the model has any, and pieces in their order.

        `kept` are the pieces to keep; None keeps all.
        """
        extras = extra_specials(tuple(languages)) if self.codes else ()
        pieces = [(piece, 0) for piece in self.pieces() if kept is None or piece in kept]
        return Vocabulary(pieces, extras=extras)

    def languages_by_code(self) -> dict[str, str]:
        """The symbol of each language that its short code tells, such as `de` of `de_DE`.

        Languages that share a short code are left out, and those whose tag in docmt is a piece of text there (`<br>`).
        """
        short = {code: code.strip("_").split("_")[0] for code in self.codes}
        counts = Counter(short.values())
        return {
            lang: code
            for code, lang in short.items()
            if counts[lang] == 1
            and LANGUAGE.fullmatch(lang)
            and language_tag(lang) not in SPECIALS
            and language_tag(lang) not in self.ids
        }

    def code(self, lang: str) -> str:
        """The symbol of a language, given as in docmt (`de`) or as there (`de_DE`). Raises UserError without one."""
        found = [code for code in self.codes if lang in (code, code.strip("_").split("_")[0])]
        if len(found) != 1:
            known = " ".join(found or self.codes)
            raise UserError(f"{self.folder}: language {lang!r} is {'several' if found else 'none'} of {known}")
        return found[0]


def _read_optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _fairseq_ids(pieces: list[str]) -> dict[str, int]:
    """Rows of a model that fairseq trained: four specials, then the pieces after the three of SentencePiece."""
    ids = {symbol: number for number, symbol in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
    return ids | {piece: number + FAIRSEQ_SHIFT for number, piece in enumerate(pieces) if number >= 3}


def _added_ids(folder: Path, tokenizer: dict[str, Any], *, n_symbols: int) -> dict[str, int]:
    """Rows of languages and other symbols beside the pieces. Where only their order is published, they follow these."""
    added = [
        *_read_optional(folder / "tokenizer.json").get("added_tokens", []),
        *({"id": int(number), **token} for number, token in tokenizer.get("added_tokens_decoder", {}).items()),
        *({"id": number, "content": name} for name, number in _read_optional(folder / "added_tokens.json").items()),
    ]
    found = {token["content"]: token["id"] for token in added}
    if not found.keys() <= set(OWN_SPECIALS):
        return found
    listed = _read_optional(folder / "special_tokens_map.json").get("additional_special_tokens", [])
    names = [token if isinstance(token, str) else token["content"] for token in listed]
    return found | {name: n_symbols + number for number, name in enumerate(names)}
