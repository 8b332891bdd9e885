"""Contrastive suites from parallel documents: which word form is next?"""

import re
from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from docmt.corpora.readers.document_formats import Documents
from docmt.corpora.readers.reader import Files, FormatName, SuiteFormat
from docmt.errors import UserError

WORD = re.compile(r"\w+")


class ClozeSuite(SuiteFormat):
    """A contrastive test set from parallel documents, to choose the form that comes next in the reference.

    An item is a sentence whose reference has forms of only one kind, for example *du* and *dich*, but not *ihr* and
    *euch*. The correct candidate is the reference up to the first form, and a wrong one ends in its counterpart.
    """

    reader: FormatName[Literal["cloze_suite"]]
    documents: Documents
    """Format of the parallel documents."""
    languages: list[str] = Field(min_length=2, max_length=2)
    """Source and target language."""
    phenomenon: str
    """Tested phenomenon."""
    forms: dict[str, list[str]]
    """Forms of both kinds in lower case, paired by order. Repeat a form that has two counterparts."""
    source_words: list[str]
    """Lower-case words, at least one of which the source must contain."""
    other_source_words: list[str] = []
    """Lower-case words that the source must not contain, because a form could translate them."""
    has_polite_capitals: bool = False
    """Make each counterpart a candidate with and without a capital, because capitals can be polite (*Ihr*)."""
    context_sentences: int = Field(default=10, ge=1)
    """Maximum number of sentences before the tested one."""
    context: Literal["own", "foreign"] = "own"
    """Preceding sentences: from the `own` document, or a control from `foreign` documents."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.forms) != 2 or len({*map(len, self.forms.values())}) != 1:
            raise ValueError("forms must have two kinds with the same number of forms")
        one, other = map(set, self.forms.values())
        shared = sorted(one & other)
        if shared:
            raise ValueError(f"forms: {shared[0]!r} is in both kinds")
        for word in (*one, *other, *self.source_words, *self.other_source_words):
            if word != word.lower():
                raise ValueError(f"{word!r} must be in lower case")
        return self

    @override
    def convert(self, files: Files) -> Iterator[dict[str, Any]]:
        documents = list(self.documents.read(files, self.languages)[0])
        pairs = [list(zip(*document.sides, strict=True)) for document in documents]
        if self.context == "foreign" and len(documents) < 2:
            raise UserError("format cloze_suite: `context: foreign` needs other documents, but there is only one")
        kinds = {}
        for kind, forms in self.forms.items():
            kinds |= dict.fromkeys(forms, kind)
        chance = Random(1)
        all_pairs = list(chain.from_iterable(pairs))
        first = 0  # index of the document's first pair in all_pairs
        for document, document_pairs in zip(documents, pairs, strict=True):
            form_matches = []
            for _, tgt in document_pairs:
                form_matches.append([match for match in WORD.finditer(tgt) if match[0].lower() in kinds])
            for number, (src, tgt) in enumerate(document_pairs):
                matches = form_matches[number]
                words = set(map(str.lower, WORD.findall(src)))
                if words.isdisjoint(self.source_words) or not words.isdisjoint(self.other_source_words):
                    continue
                if not number or len({kinds[match[0].lower()] for match in matches}) != 1:
                    continue
                start = max(0, number - self.context_sentences)
                context = document_pairs[start:number]
                if self.context == "foreign":
                    n_others = len(all_pairs) - len(document_pairs)
                    numbers = chance.sample(range(n_others), min(n_others, number - start))
                    context = []
                    for n in numbers:
                        if n >= first:  # indices skip this document's pairs
                            n += len(document_pairs)
                        context.append(all_pairs[n])
                form = matches[0][0]
                start_of_form = matches[0].start()
                src_context = [pair[0] for pair in context]
                tgt_context = [pair[1] for pair in context]
                candidates = []
                for ending in (form, *self._counterparts(form)):
                    candidates.append([*tgt_context, tgt[:start_of_form] + ending])
                distance = None
                for k in range(start, number):
                    if form_matches[k]:
                        distance = number - k
                yield {
                    "id": f"{document.id}/{number + 1}",
                    "phenomenon": self.phenomenon,
                    "distance": distance,
                    "kind": kinds[form.lower()],
                    "src": [*src_context, src],
                    "candidates": candidates,
                    "correct": 0,
                    "is_prefix": True,
                    "sentence": len(context),
                }
            first += len(document_pairs)

    def _counterparts(self, form: str) -> list[str]:
        """Return the counterparts of a form, with a capital if the form has one, or both with and without."""
        one, other = self.forms.values()
        pairs = zip([*one, *other], [*other, *one], strict=True)
        spellings = []
        for counterpart in dict.fromkeys(counterpart for word, counterpart in pairs if word == form.lower()):
            if self.has_polite_capitals or not form[0].isupper():
                spellings.append(counterpart)
            if self.has_polite_capitals or form[0].isupper():
                spellings.append(counterpart.capitalize())
        return spellings
