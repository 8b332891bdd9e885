"""Several references: plain lines and refsets of NIST and WMT, from files to scores and paired tests."""

import json
import random

import pytest
from evaluation_fixtures import RUN, by_metric, evaluate, make_hypotheses, write_hypotheses, write_split

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.references import read_more_references

INDEX = DocumentIndex(("nist.mt06/AFP_1", "nist.mt06/x/y", "nist.mt08/b"), (2, 1, 3))
NAMES = [name.partition("/")[2] for name in INDEX.ids]


def draw_text(seed):
    draw = random.Random(seed)
    return [" ".join(draw.choices(["der", "Hund", "&", "<die>", "Katze", "läuft", ",", "."], k=8)) for _ in range(6)]


def marked(text, *, name="", names=NAMES, lengths=INDEX.lengths):
    """SGML with one document after the other."""
    lines, rest = [], iter(text)
    for document, length in zip(names, lengths, strict=True):
        lines.append(f'<DOC docid="{document}"{name}><p>')
        for number in range(1, length + 1):
            escaped = next(rest).replace("&", "&amp;").replace("<", "&lt;")
            lines.append(f"<seg id={number}> {escaped}\t</seg>")
        lines.append("</p></DOC>")
    return "\n".join(lines)


def refset(*texts):
    sets = [marked(text, name=f' sysid="E{number:02d}"') for number, text in enumerate(texts)]
    return f"<refset setid='mt' trglang='German'>\n{chr(10).join(sets)}\n</refset>\n"


FIRST, *MORE = (draw_text(seed) for seed in range(4))


def part_of(sentences, documents, letter):
    """All further references for some documents."""
    layout = {"names": NAMES[documents], "lengths": INDEX.lengths[documents]}
    return "".join(marked(text[sentences], name=f" sysid={letter}{i}", **layout) for i, text in enumerate(MORE))


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in files]


@pytest.mark.parametrize(
    "files",
    [
        {"one.sgm": refset(*MORE)},
        {"all.SGM": refset(FIRST, *MORE)},
        {f"{number}.sgml": refset(text) for number, text in enumerate(MORE)},
        {"ref.xml": "".join(f'<refset refid="r{i}">{marked(text)}</refset>' for i, text in enumerate(MORE))},
        {"06.sgm": part_of(slice(3), slice(2), "a"), "08.sgm": part_of(slice(3, None), slice(2, None), "b")},
        {"lines.de": "".join(f"{line}\r\n" for line in MORE[0]), "rest.sgm": refset(*MORE[1:])},
    ],
    ids=["one file", "with that of the corpus", "a file each", "refid", "a file a year", "lines and refsets"],
)
def test_all_forms_have_the_same_references(tmp_path, files):
    assert read_more_references(write(tmp_path, files), INDEX, FIRST) == MORE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (marked(MORE[0][:3], names=NAMES[:2], lengths=(2, 1)), "no reference for document nist.mt08/b"),
        (
            refset(*MORE) + marked(MORE[0][:2], names=NAMES[:1], lengths=(2,)),
            "4 references for document .*/AFP_1, but 3",
        ),
        (marked(MORE[0][:5], lengths=(2, 1, 2)), "2 segments in document nist.mt08/b, but 3 sentences in the test set"),
        ("<refset></refset>", "contains no <doc>"),
        ("eine\n", "1 lines, but the test set has 6 sentences"),
    ],
)
def test_references_that_do_not_fit_are_refused(tmp_path, content, message):
    name = "ref.sgm" if "<" in content else "ref.de"
    with pytest.raises(UserError, match=message):
        read_more_references(write(tmp_path, {name: content}), INDEX, FIRST)


def test_sgml_references_are_used_everywhere(tmp_path):
    text = write_split(tmp_path, dict(INDEX), en=FIRST, de=FIRST)
    lines = {f"{number}.de": "".join(f"{line}\n" for line in one) for number, one in enumerate(MORE)}
    sgml, *plain = write(tmp_path, {"all.sgm": refset(FIRST, *MORE)} | lines)
    ours, theirs, out = (tmp_path / name for name in ("test_t.jsonl", "base/test_t.jsonl", "out.json"))
    theirs.parent.mkdir()
    for path, seed in ((ours, 2), (theirs, 9)):
        output = make_hypotheses(draw_text(seed)[:5] + FIRST[5:], INDEX.lengths, documents=INDEX.ids)
        write_hypotheses(path, output)
    settings = {"metrics": ["s-BLEU", "d-BLEU (documents)", "chrF", "METEOR"]}
    pair = {"names": ["s", "b"], "dataset": "d"}
    for command, key, value, options in (
        ("run", "scores", "value", RUN),
        ("difference", "differences", "difference", {"baseline": theirs, **pair}),
    ):
        scores = []
        for references in ([sgml], plain, plain[:1]):
            added = {"references": [f"t={path}" for path in references], "settings": settings}
            assert evaluate(command, outputs=ours, **text, **added, **options, out=out) == 0
            rows = by_metric(json.loads(out.read_text(encoding="utf-8"))[key])
            scores.append({metric: row[value] for metric, row in rows.items()})
        assert scores[0] == scores[1]
        for metric in ("s-BLEU", "d-BLEU (documents)", "chrF"):
            assert scores[0][metric] != scores[2][metric]
