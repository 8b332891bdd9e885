"""A small study with ugly text for tests of the reader: its files and page."""

import base64
import gzip
import json
import re
from pathlib import Path
from urllib.parse import urlencode

from docmt.cli.main import main
from docmt.files import write_json, write_jsonl, write_lines

HOSTILE = "</script><script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'> \"&amp;'"
ARABIC = "الكلب ينبح في الحديقة."
LINE_BREAKS = "eins\u2028zwei\u0085drei\r"
DOCUMENTS = {
    "d/one": [
        ("The dog barks.", "Der Hund bellt."),
        ("It is <b>loud</b>.", "Er ist <b>laut</b>."),
        ("", ""),
        ("We sleep.", "Wir schlafen."),
    ],
    HOSTILE: [(HOSTILE, HOSTILE), (ARABIC, LINE_BREAKS)],
    "d/three": [("The cat sees it.", "Die Katze sieht ihn."), ("She sleeps.", "Sie schläft.")],
}
ALIGNED = {
    "d/one": ["Der Hund bellt.", "Es ist <b>laut</b>.", "", "Wir schlafen heute."],
    HOSTILE: [HOSTILE, ARABIC],
    "d/three": ["Die Kuh kauft es.", "Sie schläft."],
}
FREE = {
    "d/one": ["Der Hund bellt laut.", "Wir schlafen."],
    HOSTILE: [HOSTILE, ARABIC],
    "d/three": ["Die Katze sieht ihn.", "Er isst."],
}
ITEMS = [
    {"phenomenon": "pronoun", "distance": 1, "kind": None, "scores": {"aligned": [-1.0, -2.5], "free": [-3.0, -2.0]}},
    {"phenomenon": "pronoun", "distance": 2, "kind": "far", "scores": {"aligned": [-2.0, -1.5], "free": [-4.0, -2.0]}},
    {"phenomenon": "deixis", "distance": None, "kind": "du", "scores": {"aligned": [-2.0, -2.0], "free": [-1, "-inf"]}},
]  # fmt: skip
GENERATIVE = [
    {"id": "g-0", "phenomenon": "gender", "expected": "sie", "match": "tokens", "distance": 1}
    | {"reference": "Ich sehe sie."},
    {"id": "g-1", "phenomenon": "auxiliary", "expected": "tut es", "sentence": 0, "kind": "<b>"},
    {"id": "g-2", "phenomenon": "gender", "expected": "sie", "distance": 7, "reference": HOSTILE},
]
WRITTEN = {
    "aligned": ["𝄞 <b>Da</b>, Sie!", "Er tut, was er will.", "Sie" + HOSTILE],
    "free": ["Ich sehe es.", "Das TUT es!", ""],
}
"""Translations for the payloads in `GENERATIVE`."""


def make_study(folder, *, seeds=(1,)):
    """Write study files with two systems. Returns the command's options."""
    prefix = folder / "d/corpora/en-de/test_t"
    pairs = [pair for document in DOCUMENTS.values() for pair in document]
    for lang, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        write_lines(Path(f"{prefix}.{lang}"), [line.replace("\r", "") for line in lines])
    index = [f"{name}\t{len(document)}" for name, document in DOCUMENTS.items()]
    write_lines(Path(f"{prefix}.documents.tsv"), ["document\tn_sentences", *index])
    items = [
        {key: item[key] for key in ("phenomenon", "distance", "kind")}
        | {"id": f"item-{n}", "correct": 0, "sentence": 1, "src": ["The dog barks.", "It sleeps."]}
        | {"candidates": [["Der Hund bellt.", "Er schläft."], ["Der Hund bellt.", "Es schläft."]]}
        for n, item in enumerate(ITEMS)
    ]
    write_jsonl(folder / "suite.jsonl", items)
    write_jsonl(folder / "generative.jsonl", [{"src": ["The cat is here.", "I see it."]} | item for item in GENERATIVE])
    for system, texts in (("aligned", ALIGNED), ("free", FREE)):
        for seed in seeds:
            decoding = decoding_folder(folder, system, seed)
            write_hypotheses(decoding / "test_t.jsonl", texts, aligned=system == "aligned")
            scores = [{"id": f"item-{n}", "scores": item["scores"][system]} for n, item in enumerate(ITEMS)]
            write_json(decoding / "suite_s.json", {"items": scores})
            written = [
                {"id": item["id"], "sentences": [text] if "sentence" in item else ["Kontext.", text]}
                for item, text in zip(GENERATIVE, WRITTEN[system], strict=True)
            ]
            write_jsonl(decoding / "generated_g.jsonl", written)
    write_jsonl(folder / "trees.jsonl", [tree_of("d/one"), tree_of("elsewhere")])
    runs = [(system, seed) for system in ("aligned", "free") for seed in seeds]
    return {
        "study": {"languages": {"d": ["en", "de"]}},
        "outputs": [path for run in runs for path in outputs(folder, *run)],
        "texts": [f"{prefix}.{suffix}" for suffix in ("en", "de", "documents.tsv")],
        "suites": [f"d/s={folder}/suite.jsonl"],
        "generative": [f"d/g={folder}/generative.jsonl"],
        "trees": [f"d/t/parsed={folder}/trees.jsonl"],
    }


def decoding_folder(folder, system, seed=1, *, dataset="d"):
    """Folder with the outputs of a run."""
    return folder / f"{dataset}/runs/{system}/seed{seed}/decoding"


def outputs(folder, system, seed=1, *, names=("test_t.jsonl", "suite_s.json", "generated_g.jsonl"), dataset="d"):
    """Outputs of a run."""
    return [decoding_folder(folder, system, seed, dataset=dataset) / name for name in names]


def write_hypotheses(path, texts, *, aligned):
    """One instance per document."""
    rows, first = [], 0
    for instance, (name, document) in enumerate(DOCUMENTS.items()):
        numbers = {"instance": instance, "first_sentence": first, "n_sentences": len(document)}
        rows.append(numbers | {"document": name, "aligned": aligned, "sentences": texts[name]})
        first += len(document)
    write_jsonl(path, rows)


def tree_of(name):
    """Four sentences in five EDUs: the second sentence has two."""
    words = [["The", "dog", "barks", "."], ["It", "is", "<b>loud</b>", "."], [], ["We", "sleep", "."]]
    edus = [(0, 0, 4), (1, 0, 2), (1, 2, 4), (2, 0, 0), (3, 0, 3)]
    arcs = [(-1, "root"), (0, "Elaboration"), (1, "Same-Unit"), (0, "Joint"), (0, "</script>")]
    return {
        "document": name,
        "sentences": words,
        "edus": [dict(zip(("sentence", "start", "end"), edu, strict=True)) for edu in edus],
        "tree": None,
        "dependency": [{"head": head, "relation": relation} for head, relation in arcs],
    }


def reader_words(options):
    """Reader options as words."""
    files = {name: paths for name, paths in options.items() if name != "study"}
    words = [word for name, paths in files.items() for word in (f"--{name}", *map(str, paths))]
    return ["--study", json.dumps(options["study"]), *words]


def render(folder, options, **settings):
    """Run the command. Returns the path of the page."""
    path = folder / "reader.html"
    arguments = ["--settings", json.dumps(settings), *reader_words(options), "--out", str(path)]
    assert main(["report", "reader", *arguments]) == 0
    return path


def unpack(path):
    """Embedded data of a page."""
    (packed,) = re.findall(
        r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', path.read_text()
    )
    return json.loads(gzip.decompress(base64.b64decode(packed)))


ROWS = ".sentences tbody tr"
LIST = "#list .id"
"""Selectors of the page."""


def address(**state: str) -> str:
    """Anchor that opens a view."""
    return "#" + urlencode(state)
