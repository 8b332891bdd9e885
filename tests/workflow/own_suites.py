"""A study on user-supplied suites in all formats, with context metrics."""

import json

import yaml

from docmt.config.loading import read_config_file

ITEM = {"id": "a", "phenomenon": "own", "src": ["The dog is here.", "It sleeps."], "distance": 1}
WRONG = [["Der Hund ist da.", "Er schläft."], ["Der Hund ist da.", "Sie schläft."]]
VOITA = {"src": "The dog is here. _eos It sleeps.", "dst": [" _eos ".join(text) for text in WRONG]}
FILES = {
    "own items.jsonl": json.dumps(ITEM | {"candidates": WRONG, "correct": 0}) + "\n",
    "deixis.json": json.dumps([VOITA | {"true_ind": 0, "ctx_dist": 1}]),
    "bawden.json": json.dumps({"1": {"src": ITEM["src"], "trg": [{"correct": WRONG[0], "incorrect": WRONG[1]}]}}),
    "lines.en": "The dog is here. <SEP> It sleeps.\n" * 3,
    "lines.de": "".join(f"Der Hund ist da. <SEP> {pronoun} schläft.\n" for pronoun in ("Er", "Sie", "Es")),
    "expected.jsonl": json.dumps(ITEM | {"expected": "er"}) + "\n",
    "items.json": json.dumps(
        [{"src segment": "It sleeps.", "ref segment": "Er schläft.", "expected": "er", "rule": "NOM.MASC"}]
    ),
    "inputs.txt": "The dog is here.<eos> It sleeps.\n",
}
LINES = {"en": "lines.en", "de": "lines.de"}
SPLITS = {
    "own": ("jsonl_suite", {"items": "own items.jsonl"}),
    "voita": ("voita_suite", {"deixis": "deixis.json"}),
    "bawden": ("bawden_suite", {"anaphora": "bawden.json"}),
    "contrapro": ("contrapro_suite", LINES),
    "own_generative": ("jsonl_generative", {"items": "expected.jsonl"}),
    "ctxpro": ("ctxpro_generative", {"items": "items.json", "inputs": "inputs.txt"}),
    "contrapro_generative": ("contrapro_generative", LINES),
}
CONTRASTIVE = ["own", "voita", "bawden", "contrapro"]
GENERATIVE = [name for name in SPLITS if name not in CONTRASTIVE]
METRICS = ["s-BLEU", "d-BLEU (instances)", "CXMI"]


def write_config(folder, smoke):
    """A system that reads documents, decoded in two ways. Contrastive items use different rules from the default."""
    values = read_config_file(smoke)
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    splits = {}
    for name, (reader, files) in SPLITS.items():
        form = {"reader": reader} | ({"phenomenon": "gender"} if reader == "ctxpro_generative" else {})
        splits[name] = {"files": files, "format": form}
    custom = {"languages": ["en", "de"], "format": {"reader": "files"}, "splits": splits}
    values["corpora"]["custom"] = {"mine": custom}
    values["datasets"]["smoke"]["suites"] = [f"mine/{name}" for name in splits]
    model = values["systems"]["document_transformer"] | {"architecture": "g_transformer"}
    greedy = {"instances": "documents", "use_model_of": "g_transformer", "decoding": {"beam_size": 1}}
    values["systems"] = {"g_transformer": model, "greedy": greedy}
    values["evaluation"]["metrics"] = METRICS
    values["evaluation"]["aligner_runs"] = 1
    values["evaluation"]["contrast"] = {"score": "label_smoothed", "context": "own", "ties": "first"}
    values["report"] = {"baseline": "g_transformer"}
    values["instances"] = {"documents": values["instances"]["documents"]}
    del values["discourse"], values["corpora"]["controlled"]["smoke_treebank"]
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return file
