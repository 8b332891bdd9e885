"""Types for names and references in a config."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from docmt.languages import language_of
from docmt.settings import NAME, check_name

RESERVED = ("benchmarks", "claims", "corpora", "discourse", "figures", "report", "tables", "treebanks")


def _dataset_name(name: str) -> str:
    if name.lower() in RESERVED:
        raise ValueError(f"this name is reserved for a folder of the results ({', '.join(RESERVED)})")
    return check_name(name)


def _split_reference(reference: str) -> str:
    if not re.fullmatch(rf"{NAME}/{NAME}", reference):
        raise ValueError("must be CORPUS/SPLIT")
    return reference


def _language(code: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}", code):
        example = language_of(code)
        if not re.fullmatch(r"[a-z]{2,3}", example):
            example = "en"
        raise ValueError(f"a language is a code of two or three lowercase letters, such as {example}")
    return code


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) != len(seeds):
        raise ValueError("duplicate seed")
    return seeds


Name = Annotated[str, AfterValidator(check_name)]
DatasetName = Annotated[str, AfterValidator(_dataset_name)]
SplitReference = Annotated[str, AfterValidator(_split_reference)]
Language = Annotated[str, AfterValidator(_language)]
Seed = Annotated[int, Field(ge=0, lt=10**9)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_distinct)]
