"""Reading time is linear in the size of the files, for every reader and any content."""

import json

import pytest
from hostile_files import files_of, is_linear, read_sample

SEGMENT = '<doc docid="a"><seg id="1">A{}b</seg></doc>'
PLACES = '#: {}\nmsgid "{}"\nmsgstr "b"\n'


def cues(n, text="A"):
    """Cues that all appear at the same time."""
    return f"1\n00:00:01,000 --> 00:00:59,000\n{text}\n\n" * n


# Reader, and the content of all its files by their size.
TABLE = {
    "open segments": ("segments", lambda n: "<seg " * n),
    "open documents": ("segments", lambda n: "<doc " * n),
    "long value": ("segments", lambda n: f'<doc docid="a"><seg id="{"x" * n}">A</seg></doc>'),
    "long name": ("segments", lambda n: f'<doc docid="a"><seg {"x" * n}>A</seg></doc>'),
    "blanks": ("segments", lambda n: SEGMENT.format(" " * n)),
    "breaks": ("segments", lambda n: SEGMENT.format(" \t" * n)),
    "half references": ("segments", lambda n: SEGMENT.format("&#" * n)),
    "nested documents": ("wmt_xml", lambda n: '<doc><src lang="en"><ref/>' * (n // 8) + "</src></doc>" * (n // 8)),
    "nested segments": ("wmt_xml", lambda n: f"<doc><src>{'<seg>a' * (n // 8)}{'</seg>' * (n // 8)}</src><ref/></doc>"),
    "blanks in a heading": ("verses", lambda n: f"### A{' ' * n}b\n[1:1] A\n"),
    "long number": ("verses", lambda n: f"### A\n[{'1' * n}:1] A\n"),
    "places of a long message": ("po_files", lambda n: PLACES.format("a:1 " * n, "x" * n)),
    "backquotes": ("po_files", lambda n: PLACES.format("a:1", "`a. " * n)),
    "brackets": ("indexed_lines", lambda n: "[" * n),
    "same names": ("jsonl", lambda n: '{"id": "a", "src": ["A"], "tgt": ["C"]}\n' * (n // 20)),
    "candidates": (
        "voita_suite",
        lambda n: json.dumps([{"src": "a", "true_ind": 0, "ctx_dist": 1, "dst": [f"a{i}" for i in range(n // 4)]}]),
    ),
    "documents of a cloze suite": ("cloze_suite", lambda n: "you du\nyou du\n\n" * (n // 20)),
    "blanks in a line": ("marked_lines", lambda n: f"<d>\nA{' ' * n}b\n"),
    "cues at one time": ("srt_pairs", lambda n: cues(n // 20)),
    "blanks in a cue": ("srt_pairs", lambda n: cues(1, f"a{' ' * n}b")),
    "blanks before a cue": ("srt_pairs", lambda n: " " * n + cues(1)),
    "letters of a cue": ("srt_pairs", lambda n: cues(1, "a\n" * n)),
    "tags of a cue": ("srt_pairs", lambda n: cues(1, "<b>" * n)),
    "inline code": (
        "tmx",
        lambda n: f'<tmx><tu><tuv xml:lang="en"><seg>{"<hi>" * (n // 8)}{"</hi>" * (n // 8)}</seg></tuv></tu></tmx>',
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_readers_take_linear_time(case, tmp_path):
    reader, content = TABLE[case]

    def work(size):
        read_sample(reader, dict.fromkeys(files_of(reader), content(size).encode()), tmp_path)

    assert is_linear(work, size=10_000)
