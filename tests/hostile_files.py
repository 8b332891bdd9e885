"""A sample file per corpus reader, and hostile changes to it."""

import contextlib
import gc
import io
import json
import random
import signal
import tarfile
import time
import zipfile
from pathlib import Path

from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.splits import convert_suite, read_split
from docmt.errors import UserError

LANGUAGES = ["en", "de"]

SEGMENTS = (
    '<srcset setid="x"><doc docid="a" sysid=\'r\'>\n<hl><seg id="1">One &amp; &#228;</seg></hl>\n</doc></srcset>\n'
)
WMT_XML = (
    '<?xml version="1.0"?>\n<dataset><doc id="a"><src lang="en"><p><seg id="1">A &amp; b</seg></p></src>'
    '<ref lang="de" translator="X"><p><seg id="1">C</seg></p></ref></doc></dataset>\n'
)
TALK = '<doc docid="7" genre="lectures">\n<url>u</url>\n<talkid>7</talkid>\n<title>T</title>\nOne\nTwo\n</doc>\n'
PO = (
    'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#. [message]: speaker=Bob\n#: C/a.page:20 b\n'
    'msgid "~One <emph>two</emph>. And three `more`."\nmsgstr "Eins <emph>zwei</emph>.\\n"\n" Und drei."\n\n'
    '#, fuzzy\n#: a:1\nmsgid "x"\nmsgid_plural "y"\nmsgstr[0] "z"\n'
)
TMX = (
    '<tmx version="1"><header/><body><tu><prop type="d">one</prop><tuv xml:lang="en-GB"><seg>a <bpt i="1">&lt;b></bpt>'
    'b<ept i="1"/> %s</seg></tuv><tuv xml:lang="de"><seg>c &amp; d</seg></tuv></tu></body></tmx>'
)
CUES = (
    "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i> {\\an8}there\n- %s\n\n2\n00:01:03,5 --> 00:01:04,000 X1:1\nYou.\n\n"
)
CONLLU = "# newdoc id = a\n# text = One.\n1\tOne\tone\n\n"
CONTRAPRO = "".join(f"Before . <SEP> Da ist {word} .\n" for word in ("es", "er", "sie"))
SUITE = {"id": "a", "phenomenon": "p", "src": ["A", "B"], "kind": None}


def tar_of(members: dict[str, str], mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return stream.getvalue()


def parquet() -> bytes:
    import pandas as pd

    stream = io.BytesIO()
    with contextlib.suppress(ImportError):  # the optional package pyarrow
        pd.DataFrame({"id": ["a", "a"], "source": ["A", "B"], "target": ["C", None]}).to_parquet(stream)
    return stream.getvalue()


def lines(values) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def both(content):
    return dict.fromkeys(LANGUAGES, content)


# The places of a line on its pages are n.
PARADOCS = "A\tB\t0.9\t0.9\tc\t1\t1\t1\t1\t{0}\t{0}\t{0}\t{0}\t1.0\t0.9\t3\tx\ty\n"


# Reader → its settings and, by role, the content of a file that it reads. A name with a dot is the name of the file.
CLOZE = dict(documents={"reader": "blank_lines"}, languages=["en", "de"], phenomenon="p", source_words=["you"])
CLOZE |= dict(forms={"one": ["du"], "many": ["ihr"]})
SAMPLES = {
    "marked_lines": ({}, both("<d>\nA\nB \t b\n")),
    "blank_lines": ({}, both("A\nB\n\n\nC\n")),
    "document_files": ({}, both("A\n\nB\n")),
    "single_lines": ({}, both("A\n\nB\n")),
    "indexed_lines": ({}, both("A\nB\n") | {"index": "[1]\n[0]\n"}),
    "segments": ({}, both(SEGMENTS)),
    "wmt_xml": ({"translator": "X"}, {"both": WMT_XML}),
    "iwslt_train": ({}, both(TALK)),
    "dialogue_json": ({}, {"both": json.dumps({"x": [{"speaker": "c", "source": "A", "target": "B"}]})}),
    "dialogue_csv": ({}, {"both": 'id,source,target\n1,"A, ""b""",C\n'}),
    "jsonl": ({}, {"both": lines([{"id": "a", "src": ["A", "B"], "tgt": ["C", "D"]}])}),
    "po_pages": ({}, {"both": PO}),
    "po_files": (
        {"tags": "remove", "accelerator": "~", "hint_mark": "^", "except_tags": ["a"], "speakers": True}
        | {"identical": "drop", "listings": "drop", "units": "sentences"},
        {"both": PO},
    ),
    "verses": ({}, both("### Genesis\n[1:1] One\n[2:1] Two\n")),
    "tmx": ({"document_prop": "d"}, {"both": TMX}),
    "tsv": ({"id_column": 3}, {"both": "A\tB\t1\nC\tD\t2\n"}),
    "named_lines": ({"id_cells": 2}, both("A\nB\n") | {"ids": "x\ny\n"}),
    "paradocs": ({}, {"both": "".join(PARADOCS.format(n) for n in (1, 2, 3))}),
    "parquet": ({}, {"both": parquet()}),
    "srt_pairs": ({}, both(CUES)),
    "conllu": ({}, {"en": tar_of({"a.conllu": CONLLU})}),
    "voita_suite": (
        {},
        {"deixis": json.dumps([{"src": "a _eos b", "dst": ["c _eos d", "c _eos e"], "true_ind": 0, "ctx_dist": 1}])},
    ),
    "contrapro_suite": ({}, {"en": "A . <SEP> It is .\n" * 3, "de": CONTRAPRO}),
    "cloze_suite": (CLOZE, {"en": "A\nYou see\n", "de": "B\nDu siehst\n"}),
    "bawden_suite": ({}, {"p": json.dumps({"b": {"src": ["A"], "trg": [{"correct": ["C"], "incorrect": ["D"]}]}})}),
    "jsonl_suite": ({}, {"items": lines([SUITE | {"candidates": [["C", "D"], ["C", "E"]], "correct": 1}])}),
    "ctxpro_generative": (
        {"phenomenon": "f"},
        {"inputs": "A <eos> B\n"}
        | {"items": json.dumps([{"src segment": "B", "ref segment": "C", "expected": "C", "rule": "r"}])},
    ),
    "contrapro_generative": ({}, {"en": "A . <SEP> It is .\n" * 3, "de": CONTRAPRO}),
    "jsonl_generative": ({}, {"items": lines([SUITE | {"expected": "D", "match": "words", "sentence": 1}])}),
}  # fmt: skip


def read_sample(reader: str, files: dict[str, bytes], folder: Path) -> int:
    """Read a reader's files completely. Returns the number of documents or items."""
    paths = {role: folder / (f"a.{role}.tar" if reader == "conllu" else f"a.{role}") for role in files}
    for role, path in paths.items():
        path.write_bytes(files[role])
    languages = LANGUAGES[: 1 if reader == "conllu" else 2]
    form = {"reader": reader} | SAMPLES[reader][0]
    splits = {"all": {"files": {role: path.name for role, path in paths.items()}}}
    described = {"languages": languages, "format": form, "splits": splits}
    corpus = ReadableCorpus.load(described, where="sample")
    if corpus.holds("all") in ("suite", "generative"):
        return len(convert_suite(corpus, "all", folder=folder, where="sample")[0])
    documents, _ = read_split(corpus, "all", folder=folder, languages=languages, where="sample")
    return sum(1 for _ in documents)


def files_of(reader: str) -> dict[str, bytes]:
    """Sample of a reader as bytes."""
    return {role: text.encode() if isinstance(text, str) else text for role, text in SAMPLES[reader][1].items()}


# What patterns and counters stumble over. `\ud800` is written as UTF-8 would write it, if it could.
HOSTILE = [
    *(b" ", b"\t", b"\n", b"\r\n", b"\x00", b"\xff", b"\xed\xa0\x80", "\u2028".encode(), b"\xef\xbb\xbf", b"\\"),
    *(b"\\ud800", b"<", b"<a ", b"<a", b"</a>", b"<!--", b"<![CDATA[", b"&", b"&#", b"&#9999999999;", b"&#xD800;"),
    *(b"<doc>", b"<seg>", b"{", b"}", b"{}", b"[", b"]", b"[](", b"(", b"%(", b"%s", b"0", b"9" * 20, b'"', b"'"),
    *(b"`", b"a", b"a\n", b"a b\n", b"-->", b"00:00:01,000 --> 00:00:02,000\n", b"### ", b"[1:1] ", b"#: a:1\n"),
    *(b"msgid ", b"null", b"-1", b"1e999", b"@", b"<seg", b"<g id='1'>", b"</g>", b"<tu>", b"<b>", b"<script "),
    *(b"<pre>", b"![", b"**", b"_", b"# ", b"> ", b"| ", b"|\n"),
]  # fmt: skip


def mutated(data: bytes, chance: random.Random, *, most_repeats: int) -> bytes:
    """The data with one to four changes: flipped, cut, doubled or moved bytes, and hostile text."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + int(2 ** chance.uniform(0, 8)))
        piece = data[start:end]
        match chance.randrange(6):
            case 0 if piece:
                data = data[:start] + bytes([piece[0] ^ 1 << chance.randrange(8)]) + data[start + 1 :]
            case 1:
                data = data[:start] + data[end:]
            case 2:
                data = data[:start] + piece * chance.choice([2, 3, most_repeats]) + data[end:]
            case 3:
                position = chance.randint(0, len(data))
                data = data[:position] + piece + data[position:]
            case _:
                data = data[:start] + chance.choice(HOSTILE) * chance.choice([1, 1, 2, most_repeats]) + data[start:]
    return data[:MAX_BYTES]


MAX_BYTES = 1 << 16


def changed(data: bytes, chance: random.Random, *, most_repeats: int = 1000) -> bytes:
    """A changed file. In an archive, one of its members or the archive changes."""
    if data.startswith(b"PK") and chance.random() < 0.8:
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
            member = chance.choice(old.namelist())
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, mutated(content, chance, most_repeats=most_repeats) if name == member else content)
        return stream.getvalue()
    if data[257:262] == b"ustar" and chance.random() < 0.8:
        return tar_of(
            {"a.conllu": mutated(CONLLU.encode(), chance, most_repeats=most_repeats).decode(errors="replace")}
        )
    if data[:1] in (b"{", b"[") and chance.random() < 0.6:
        first, end, rest = data.partition(b"\n")
        return with_strange_value(json.loads(first), chance) + end + rest
    return mutated(data, chance, most_repeats=most_repeats)


STRANGE = [None, True, -1, 1e999, 10**30, "", "a", "\ud800", "_eos", [], ["a"], [[]], [["a"]] * 3000, {}, {"a": 1}]


def with_strange_value(value, chance: random.Random) -> bytes:
    """JSON with another type or size for one value at any depth."""
    places = [(None, None)]  # the whole
    waiting = [value]
    while waiting:
        node = waiting.pop()
        items = list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ())
        places += [(node, key) for key, _ in items]
        waiting += [child for _, child in items]
    node, key = chance.choice(places)
    if node is None:
        value = chance.choice(STRANGE)
    elif isinstance(node, dict) and chance.random() < 0.2:
        del node[key]
    else:
        node[key] = chance.choice(STRANGE)
    return json.dumps(value).encode()


class TooSlowError(Exception):
    """An input took more time than its size explains."""


@contextlib.contextmanager
def cpu_limit(seconds: float):
    """Raise TooSlowError when the block uses more CPU time."""

    def stop(number, frame):
        raise TooSlowError(f"more than {seconds} CPU-seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Half-way, as a ratio, between linear (4) and quadratic (16) time: the noise of a busy machine stays below it.
MOST_GROWTH = 8
UNNOTICED = 0.01
"""CPU seconds that are too few for comparisons."""


def is_linear(work, size: int = 4000) -> bool:
    """True if `work`, a function of a size, takes less than eight times as long for four times the size."""
    # Again when it fails: other jobs of the machine change the speed from one moment to the next.
    return any(
        (large := _cpu_seconds(lambda: work(4 * size), enough=MOST_GROWTH * UNNOTICED)) <= MOST_GROWTH * UNNOTICED
        or large <= MOST_GROWTH * max(UNNOTICED, _cpu_seconds(lambda: work(size), enough=UNNOTICED))
        for _ in range(3)
    )


def _cpu_seconds(work, enough: float) -> float:
    """The smallest of three times. A short or long time ends the measurement."""
    times = []
    gc.disable()  # its searches take longer with what other tests have left
    for _ in range(3):
        start = time.process_time()
        with contextlib.suppress(UserError):
            work()
        times.append(time.process_time() - start)
        if times[-1] > 1 or times[-1] <= enough:
            break
    gc.enable()
    return min(times)


def survey(name: str, files: dict[str, bytes], use, *, n_inputs: int, seconds: float) -> list[str]:
    """Use changed files, and describe files that neither work nor lead to a UserError in time."""
    bad = []
    for seed in range(n_inputs):
        chance = random.Random(f"{name} {seed}")
        role = chance.choice(list(files))
        changed_files = files | {role: changed(files[role], chance)}
        try:
            with cpu_limit(seconds), contextlib.suppress(UserError):
                use(changed_files)
        except Exception as error:  # what the fuzzer is for
            bad.append(f"{name}, seed {seed}: {type(error).__name__}: {str(error)[:200]}")
    return bad
