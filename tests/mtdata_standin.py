"""A stand-in for the Python of an environment with mtdata, with the interface that docmt uses."""

import os
import sys
import textwrap

PACKAGE = {
    "__init__": "__version__, cache_dir = '0.5.1', 'cache'",
    "cache": """
        class Cache:
            def __init__(self, folder):
                self.folder = folder
            def get_entry(self, entry):
                if entry.did == "offline":
                    raise OSError("no route\\nto host")
                return entry.did
        """,
    "entry": """
        class DatasetId(str):
            @classmethod
            def parse(cls, name):
                assert name.split("-")[1].islower(), "name must be in lower case"
                return cls(name)
        """,
    "index": """
        from types import SimpleNamespace
        def entry(name, **values):
            return SimpleNamespace(did=name, in_ext=None, url="http://statmt.org/" + name, **values)
        class Index(dict):
            ref_db = SimpleNamespace(get_bibtex="@misc{{{}}}".format)
        INDEX = Index({
            "Statmt-europarl-10-deu-eng": entry("europarl", cite=("europarl",)),
            "Statmt-news_commentary-18-deu-eng": entry("news", cite=None),
            "OPUS-broken-1-deu-eng": entry("broken", cite=None),
            "OPUS-blank-1-deu-eng": entry("blank", cite=None),
            "OPUS-killed-1-deu-eng": entry("killed", cite=None),
            "OPUS-offline-1-deu-eng": entry("offline", cite=None),
        })
        """,
    "parser": """
        import os
        class Parser:
            def __init__(self, path, ext, ent):
                self.path = path
            def read_segs(self, show_pbar):
                for number in range(6):
                    if self.path == "broken" and number == 3:
                        raise SystemExit("the connection broke")
                    if self.path == "blank" and number == 3:
                        [""][1]
                    if self.path == "killed" and number == 3:
                        print('["S', end="", flush=True)
                        os.kill(os.getpid(), 9)
                    if self.path == "news" and number == 4:
                        yield ["", ""]
                    pair = [f"Satz\\t{number}.", f"Sentence {number}."]
                    if self.path == "news" and number == 5:
                        pair = ["error", "error"]
                    yield pair + ([{"doc_id": f"ep-{number // 3}"}] if self.path == "europarl" else [])
        """,
}


def make_python(folder):
    """A program that is Python with the stand-in for mtdata."""
    (folder / "mtdata").mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / f"mtdata/{name}.py").write_text(textwrap.dedent(text))
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    os.chmod(program, 0o755)
    return str(program)
