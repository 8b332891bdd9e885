"""Writer of the controlled corpus: three splits, their gold discourse, contrastive suites and a manifest."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from docmt.controlled import segments, selection
from docmt.controlled.building import Placed
from docmt.controlled.settings import ControlledSettings, SegmentsSettings
from docmt.controlled.suites import SUITES, GeneratedItem, build_suite
from docmt.corpora.documents import Document, write_documents
from docmt.discourse.constituents import from_json
from docmt.discourse.dependencies import nary_to_dependencies
from docmt.errors import UserError
from docmt.files import write_json, write_jsonl
from docmt.logs import progress
from docmt.provenance import describe

LOG = logging.getLogger(__name__)

SRC_LANG, TGT_LANG = "en", "de"
HELD_OUT = ("test", "dev")
MAX_ATTEMPTS = 1000
WORD = re.compile(r"Mrs?\.|\w+|[^\w\s]")


class Generated(NamedTuple):
    """A document in a split: text, sentences with antecedents, and gold discourse."""

    document: Document
    placed: tuple[Placed, ...]
    discourse: dict[str, Any]


def generate_corpus(settings: ControlledSettings, out: Path) -> None:
    """Write the corpus to the folder `out`, the manifest last.

    Files: `{train,dev,test}.{en,de}`, `{split}.documents.tsv`, `{split}.discourse.jsonl`, `suites/{suite}.jsonl`,
    `suites/discourse/{suite}.jsonl`, `manifest.json`. All sources of documents and
    suite items differ. The same settings give the same bytes, except for the provenance in the manifest.
    """
    out = Path(out)
    seen: set[tuple[str, ...]] = set()
    suites = {}
    for name in SUITES[settings.generator]:
        suites[name] = build_suite(name, settings)
        seen.update(tuple(item["src"]) for item, _ in suites[name])
    # Held-out documents first, so that they do not depend on the size of the training split.
    splits = {}
    for split in (*HELD_OUT, "train"):
        splits[split] = generate_split(settings, split, seen=seen)
    for split, documents in splits.items():
        prefix = out / split
        write_documents(prefix, (item.document for item in documents), languages=(SRC_LANG, TGT_LANG))
        write_jsonl(Path(f"{prefix}.discourse.jsonl"), (item.discourse for item in documents))
    for name, items in suites.items():
        write_jsonl(out / "suites" / f"{name}.jsonl", (item for item, _ in items))
        discourse = (describe_discourse(item["id"], placed) for item, placed in items)
        write_jsonl(out / "suites" / "discourse" / f"{name}.jsonl", discourse)
    write_json(out / "manifest.json", describe_corpus(settings, splits, suites))
    LOG.info("controlled corpus: %s", ", ".join(f"{len(splits[name])} {name} documents" for name in splits))


def generate_split(settings: ControlledSettings, split: str, *, seen: set[tuple[str, ...]]) -> list[Generated]:
    """Generate the documents of a split. Their sources are not in `seen`, and are added to it.

    Every document has a separate random seed, so document i does not depend on the number of documents.
    """
    count = getattr(settings, f"n_{split}_documents")
    documents = []
    for number in progress(range(count), label=f"generate {split}", unit="documents"):
        rng = Random(f"{settings.seed}/{split}/{number}")
        for _ in range(MAX_ATTEMPTS):
            if isinstance(settings, SegmentsSettings):
                builder = segments.build_document(rng, settings)
            else:
                builder = selection.build_document(rng, settings)
            if builder.src not in seen:
                break
        else:
            advice = "reduce the number of documents, or raise max_sentences"
            raise UserError(f"controlled corpus: no new document in {MAX_ATTEMPTS} attempts: {advice}")
        seen.add(builder.src)
        name = f"{split}-{number:06d}"
        gold = describe_discourse(name, builder.placed)
        documents.append(Generated(Document(name, (builder.src, builder.tgt)), tuple(builder.placed), gold))
    return documents


def describe_corpus(
    settings: ControlledSettings, splits: dict[str, list[Generated]], suites: dict[str, list[GeneratedItem]]
) -> dict[str, Any]:
    """Return the manifest: settings, counts, distances, vocabulary size, provenance."""
    values = settings.model_dump()
    return {
        "provenance": describe(settings=values, source="docmt's generator of controlled documents"),
        "settings": values,
        "splits": {name: _describe_split(documents) for name, documents in splits.items()},
        "suites": {name: _describe_suite(items) for name, items in suites.items()},
    }


def _describe_suite(items: list[GeneratedItem]) -> dict[str, Any]:
    groups: set[str] = set()
    distances: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    for item, _ in items:
        groups.add(item["group"])
        distances[item["distance"]] += 1
        if "kind" in item:
            kinds[item["kind"]] += 1
    return {
        "n_items": len(items),
        "n_groups": len(groups),
        "distances": dict(sorted(distances.items())),
        "kinds": dict(kinds),
    }


def _describe_split(documents: list[Generated]) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    phenomena: Counter[str] = Counter()
    distances: dict[str, Counter[int]] = {}
    words: dict[str, set[str]] = {SRC_LANG: set(), TGT_LANG: set()}
    n_edus = 0
    for document in documents:
        n_edus += len(document.discourse["edus"])
        for index, item in enumerate(document.placed):
            kinds[item.kind] += 1
            words[SRC_LANG].update(split_words(item.sentence.src))
            words[TGT_LANG].update(split_words(item.tgt))
            if item.phenomenon:
                phenomena[item.phenomenon] += 1
                if item.antecedent is not None:
                    distances.setdefault(item.phenomenon, Counter())[index - item.antecedent] += 1
    sorted_distances = {}
    for name, counts in distances.items():
        sorted_distances[name] = dict(sorted(counts.items()))
    return {
        "n_documents": len(documents),
        "n_sentences": kinds.total(),
        "n_edus": n_edus,
        "sentences_by_kind": dict(kinds),
        "sentences_by_phenomenon": dict(phenomena),
        "distances": sorted_distances,
        "n_word_types": {lang: len(types) for lang, types in words.items()},
        "pronouns": measure_neighborhood((item.placed, item.discourse) for item in documents),
    }


def split_words(text: str) -> list[str]:
    """Split English text into words and punctuation. `Mr.` and `Mrs.` keep their full stop."""
    return WORD.findall(text)


def describe_discourse(document: str, placed: Sequence[Placed]) -> dict[str, Any]:
    """Return the gold discourse of a document, as one value of `*.discourse.jsonl`.

    Every sentence is a complete subtree. A new sentence joins the tree on the right frontier, with the largest
    constituent that its parent sentence heads.
    """
    words: list[list[str]] = []
    edus: list[dict[str, int]] = []
    # Per sentence, the node whose right child is the largest constituent that the sentence heads. The right child of
    # `top` is the whole document.
    top: dict[str, Any] = {"children": [None, None]}
    above: list[dict[str, Any]] = []
    for index, item in enumerate(placed):
        sentence_words: list[str] = []
        leaves: list[dict[str, Any]] = []
        for edu in item.sentence.edus:
            start = len(sentence_words)
            sentence_words += split_words(edu)
            leaves.append({"edu": len(edus)})
            edus.append({"sentence": index, "start": start, "end": len(sentence_words)})
        words.append(sentence_words)
        names = {"relation": item.sentence.relation, "nuclearity": item.sentence.nuclearity}
        tree = leaves[0]
        if len(leaves) > 1:
            tree = names | {"children": leaves}
        if index == 0:
            top["children"][1] = tree
            above.append(top)
            continue
        outer = above[item.parent]
        names = {"relation": item.relation, "nuclearity": item.nuclearity}
        outer["children"][1] = joined = names | {"children": [outer["children"][1], tree]}
        # If the parent is the satellite, the new sentence heads the joined constituent.
        above.append(outer if item.nuclearity == "SN" else joined)
    root = top["children"][1]
    # Not to_dependencies, which would flatten lists within lists.
    arcs = nary_to_dependencies(from_json(root), len(edus))
    dependency = []
    for head, relation in zip(arcs.heads, arcs.relations, strict=True):
        dependency.append({"head": head, "relation": relation})
    return {"document": document, "sentences": words, "edus": edus, "tree": root, "dependency": dependency}


def measure_neighborhood(documents: Iterable[tuple[Sequence[Placed], dict[str, Any]]]) -> dict[str, float]:
    """Count pronouns in documents with their discourse from `describe_discourse`.

    Returns the number of pronouns, the share with the antecedent in the parent or a child EDU in the dependency tree,
    and the share with the antecedent in an adjacent EDU in the text.
    """
    n_pronouns = n_tree = n_text = 0
    for placed, discourse in documents:
        heads = [arc["head"] for arc in discourse["dependency"]]
        main = main_edus(discourse, placed)
        for index, item in enumerate(placed):
            if item.phenomenon != "pronoun" or item.antecedent is None:
                continue
            edu = main[index]
            antecedent = main[item.antecedent]
            n_pronouns += 1
            n_tree += heads[edu] == antecedent or heads[antecedent] == edu
            n_text += abs(edu - antecedent) == 1
    return {
        "n": n_pronouns,
        "antecedent_is_tree_neighbor": round(n_tree / max(1, n_pronouns), 4),
        "antecedent_is_text_neighbor": round(n_text / max(1, n_pronouns), 4),
    }


def main_edus(discourse: dict[str, Any], placed: Sequence[Placed]) -> list[int]:
    """Return the main-clause EDU per sentence, with nouns and pronouns."""
    first: dict[int, int] = {}
    for number, edu in enumerate(discourse["edus"]):
        first.setdefault(edu["sentence"], number)
    main = []
    for index, item in enumerate(placed):
        main.append(first[index] + (item.sentence.nuclearity == "SN"))
    return main
