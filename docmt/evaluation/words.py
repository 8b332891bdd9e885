"""Words for metrics, and tokenizer names in signatures."""

from collections.abc import Callable
from importlib import metadata

from docmt.evaluation.external_programs import NotComputableError
from docmt.evaluation.scoring import TranslatedTest
from docmt.languages import has_blanks, language_of
from docmt.logs import progress
from docmt.text.tokenizer import chinese_words, moses_splitter


def word_splitter(lang: str, tokenizer: str = "auto") -> Callable[[str], list[str]]:
    """Return a function from a sentence to its words. `tokenizer` is a value for `evaluation.word_tokenizer`.

    Raises NotComputableError for languages without spaces that docmt cannot split.
    """
    if _tokenizer_of(lang, tokenizer) == "jieba":
        return chinese_words
    return moses_splitter(lang)


def lower_case_splitter(lang: str) -> Callable[[str], list[str]]:
    """Return a function from a sentence to its words in lower case."""
    split = word_splitter(lang)
    return lambda sentence: [word.lower() for word in split(sentence)]


def describe_words(lang: str, tokenizer: str = "auto") -> str:
    """Return the name and version of `word_splitter`'s tokenizer for signatures."""
    tokenizer = _tokenizer_of(lang, tokenizer)
    package = {"moses": "sacremoses", "jieba": "jieba"}[tokenizer]
    return f"{tokenizer}-{language_of(lang)} ({package} {metadata.version(package)})"


def _tokenizer_of(lang: str, tokenizer: str) -> str:
    if tokenizer == "auto":
        tokenizer = "jieba" if language_of(lang) == "zh" else "moses"
        if tokenizer == "moses" and not has_blanks(lang):
            raise NotComputableError(f"{lang} does not separate words by blanks, and docmt has no tokenizer for it")
    return tokenizer


def tokenized_texts(test: TranslatedTest) -> tuple[list[list[str]], list[list[str]]]:
    """Return a test's texts with spaces between all words."""
    split = word_splitter(test.tgt_lang, test.settings.word_tokenizer)
    hypotheses, references = test.texts
    texts = progress([*hypotheses, *references], label="tokenize", unit="instances")
    tokenized = []
    for sentences in texts:
        tokenized.append([" ".join(split(sentence)) for sentence in sentences])
    return tokenized[: len(hypotheses)], tokenized[len(hypotheses) :]
