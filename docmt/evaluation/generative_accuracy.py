"""Accuracy on generative test sets: percentage of payload sentences whose translation contains the expected words.

Post and Junczys-Dowmunt (2023) find that it reveals more about context use than preferences among candidates.
"""

import string
from collections.abc import Sequence
from pathlib import Path

from docmt.corpora.suite_items import GenerativeItem, check_matches
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import accuracy_rows
from docmt.evaluation.metrics import GENERATIVE
from docmt.evaluation.references import read_sentences
from docmt.evaluation.score_rows import ScoreRow
from docmt.files import read_jsonl
from docmt.text.tokenizer import moses_splitter

RULES = {
    "words": "expected words in the payload, lower case, without ASCII punctuation",
    "tokens": "expected token among the lower-case Moses tokens of the payload",
    "text": "expected text anywhere in the payload, lower case",
}


def read_payloads(path: Path, items: Sequence[GenerativeItem]) -> list[str]:
    """Read one translation per payload sentence.

    The file is output from `docmt decode translate-suite` (`.jsonl`), or text with one line per payload or one line per
    source sentence, in item order.
    """
    if path.suffix == ".jsonl":
        return _generated(path, items)
    lines = read_sentences(path)
    if len(lines) == len(items):
        return lines
    n_sentences = sum(len(item.src) for item in items)
    if len(lines) != n_sentences:
        raise UserError(
            f"{path}: {len(lines)} lines, but the suite has {len(items)} items of {n_sentences} sentences: write "
            "one line per item (the sentence with the expected words) or per sentence"
        )
    payloads = []
    start = 0
    for item in items:
        payloads.append(lines[start + item.sentence])
        start += len(item.src)
    return payloads


def _generated(path: Path, items: Sequence[GenerativeItem]) -> list[str]:
    translations: dict[str, list[str]] = {}
    for line, value in enumerate(read_jsonl(path), start=1):
        match value:
            case {"id": str(name), "sentences": list(sentences)} if all(isinstance(text, str) for text in sentences):
                if name in translations:
                    raise UserError(f"{path}: line {line}: duplicate item id {name!r}")
                translations[name] = sentences
            case _:
                raise UserError(f'{path}: line {line} is not {{"id", "sentences"}} of `docmt decode translate-suite`')
    if translations.keys() != {item.id for item in items}:
        raise UserError(f"{path}: its {len(translations)} items differ from the suite: use the same suite")
    payloads = []
    for item in items:
        sentences = translations[item.id] + [""] * len(item.src)
        payloads.append(sentences[item.sentence])
    return payloads


def find_expected(item: GenerativeItem, payload: str, *, lang: str) -> tuple[int, int] | None:
    """Return start and end (in characters) of the expected words' first match in a payload, or None."""
    expected = item.expected.lower()
    if item.match == "tokens":
        end = 0
        for token in moses_splitter(lang)(payload):
            start = payload.find(token, end)
            if start >= 0:
                end = start + len(token)
            if token.lower() == expected:
                # A token is not found if the tokenizer changed characters. Then the match is the whole payload.
                return (start, end) if start >= 0 else (0, len(payload))
        return None
    positions = []
    for position, character in enumerate(payload):
        positions += [position] * len(character.lower())  # some letters become two
    if item.match == "text":
        start = payload.lower().find(expected)
        if start < 0:
            return None
        return positions[start], positions[start + len(expected) - 1] + 1
    letters = ""
    letter_positions = []
    for letter, position in zip(payload.lower(), positions, strict=True):
        if letter not in string.punctuation:
            letters += letter
            letter_positions.append(position)
    # As in ctxpro, `expected` keeps its punctuation, so that words with punctuation are never found.
    start = f" {letters} ".find(f" {expected} ")
    if start < 0:
        return None
    return letter_positions[start], letter_positions[start + len(expected) - 1] + 1


def match_expected(items: Sequence[GenerativeItem], payloads: Sequence[str], *, lang: str) -> list[bool]:
    """Return True per correct item. Missing or empty translations are wrong.

    Raises UserError if an item's rule does not work for the language.
    """
    check_matches(((item.id, item.expected, item.match) for item in items), lang, where="suite")
    verdicts = []
    for item, payload in zip(items, payloads, strict=True):
        verdicts.append(find_expected(item, payload, lang=lang) is not None)
    return verdicts


def score_generation(items: Sequence[GenerativeItem], payloads: Sequence[str], *, lang: str) -> list[ScoreRow]:
    """Return accuracy in percent, as rows like `score_contrast`, without chance."""
    rules = "; ".join(dict.fromkeys(RULES[item.match] for item in items))
    verdicts = match_expected(items, payloads, lang=lang)
    return accuracy_rows(items, verdicts, metric=GENERATIVE, signature=f"{rules}|interval:Wilson 95 %")
