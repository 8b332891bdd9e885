# ruff: noqa: E501 (rows of a table)
"""Readers for common formats: TMX, TSV, subtitles, Parquet, and lines with document ids."""

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter
from reading import parse, refusal, texts

from docmt.cli.main import main
from docmt.corpora.readers.registry import Format, read
from docmt.errors import UserError


def tmx(*units):
    return f"<tmx version='1.4'><header/><body>{''.join(units)}</body></tmx>"


def unit(en, de, props=""):
    return f'<tu>{props}<tuv xml:lang="en-GB"><seg>{en}</seg></tuv><tuv xml:lang="DE"><seg>{de}</seg></tuv></tu>'


@pytest.mark.parametrize("languages", [("en", "de"), ("en-GB", "DE")])
def test_tmx_is_read_without_inline_code(tmp_path, languages):
    content = tmx(
        unit("a <bpt i='1'>&lt;b&gt;</bpt>b<ept i='1'/> &amp; {x}", "c"),
        '<tu><tuv xml:lang="fr"><seg>q</seg></tuv></tu>',
    )
    documents, counts = parse(tmp_path, {"both": content}, languages, reader="tmx", suffix=".tmx")
    assert texts(documents) == [("file.both", ["a b & {x}"], ["c"])]
    assert counts.dropped == {"unit without both languages": 1}


def test_a_prop_names_documents(tmp_path):
    units = [unit("a", "b", "<prop type='d'>one</prop>"), unit("c", "d", "<prop type='d'>two</prop>"), unit("e", "f")]
    documents, _ = parse(tmp_path, {"both": tmx(*units)}, reader="tmx", document_prop="d", suffix=".tmx")
    assert texts(documents) == [("one", ["a"], ["b"]), ("two", ["c"], ["d"]), ("file.both", ["e"], ["f"])]


def test_tsv_keeps_quotes_and_needs_no_quoting(tmp_path):
    documents, _ = parse(tmp_path, {"both": '\ufeff"a" b\t"c\r\n\r\nd\te\r\n'}, reader="tsv")
    assert texts(documents) == [("00001", ['"a" b'], ['"c']), ("00002", ["d"], ["e"])]


def test_tsv_with_ids_in_a_column(tmp_path):
    files = {"both": "x\ta\tb\nx\tc\td\ny\te\tf\n"}
    documents, _ = parse(tmp_path, files, reader="tsv", columns=[3, 2], id_column=1)
    assert texts(documents) == [("x", ["b", "d"], ["a", "c"]), ("y", ["f"], ["e"])]


@pytest.mark.parametrize("blank", ["", " ", "\t", "\t\t", "\r"])
def test_blank_lines_of_tsv_files(blank, tmp_path):
    files = {"both": f"x\ta\tb\n{blank}\nx\tc\td\n{blank}\n"}
    documents, counts = parse(tmp_path, files, reader="tsv", columns=[2, 3])
    assert texts(documents) == [("00001", ["a"], ["b"]), ("00002", ["c"], ["d"])]
    assert not counts.dropped
    documents, counts = parse(tmp_path, files, reader="tsv", columns=[2, 3], id_column=1)
    assert texts(documents) == [("x", ["a", "c"], ["b", "d"])]
    assert counts.dropped == {"blank line": 2}


def test_lines_with_the_document_of_each(tmp_path):
    files = {"ids": "x\nx\ny\n", "en": "a\nb\nc\n", "de": "d\ne\nf\n"}
    assert texts(parse(tmp_path, files, reader="named_lines")[0]) == [
        ("x", ["a", "b"], ["d", "e"]),
        ("y", ["c"], ["f"]),
    ]


def test_ids_of_opus_name_documents_by_two_cells(tmp_path):
    ids = "en/a.gz\tde/a.gz\t1\t1\nen/a.gz\tde/a.gz\t2 3\t2\nen/b.gz\tde/b.gz\t1\t1\n"
    files = {"ids": ids, "en": "a\nb\nc\n", "de": "d\ne\nf\n"}
    documents, _ = parse(tmp_path, files, reader="named_lines", id_cells=2)
    assert texts(documents) == [("en/a.gz de/a.gz", ["a", "b"], ["d", "e"]), ("en/b.gz de/b.gz", ["c"], ["f"])]


@pytest.mark.parametrize("names", ["en/{}.txt de/{}.txt", "{}.en {}.de", "{}_en.txt {}_de.txt"])
def test_a_file_is_a_document(tmp_path, names):
    paths = dict(zip(("en", "de"), (tmp_path / name.format("*") for name in names.split()), strict=True))
    for name, lang in zip(names.split(), ("en", "de"), strict=True):
        for document, text in {"b": f"{lang} 1\n\n{lang} 3\n", "a": f"{lang} 4"}.items():
            path = tmp_path / name.format(document)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    form = TypeAdapter(Format).validate_python({"reader": "document_files"})
    documents, counts = read(paths, form=form, languages=("en", "de"))
    assert [(document.id, *document.sides) for document in documents] == [
        ("a", ("en 4",), ("de 4",)),
        ("b", ("en 1", "", "en 3"), ("de 1", "", "de 3")),
    ]
    assert counts.empty_both == 1
    path.write_text("one\ntwo", encoding="utf-8")
    with pytest.raises(UserError, match=r"1 lines in .*, 2 in .*: line 2 is the first without"):
        read(paths, form=form, languages=("en", "de"))
    path.rename(path.with_name("c.de.txt"))
    with pytest.raises(UserError, match="has no counterpart among"):
        read(paths, form=form, languages=("en", "de"))


def page(*rows):
    """ParaDocs lines with text, first and last line on both pages, and columns that differ from correct ones."""
    lines = []
    for text, start, others in rows:
        cells = [text, text.upper(), ".9", ".9", "c", "1", "1", "1", "1", *[str(start)] * 4, "1.0", ".9", "3", "x", "y"]
        lines.append("\t".join(others.get(n, cell) for n, cell in enumerate(cells)))
    return "\n".join(lines) + "\n"


def test_paradocs_are_cut_where_the_published_filter_cuts(tmp_path):
    content = page(
        *[("a", 1, {}), ("b", 3, {}), ("far", 6, {}), ("c", 7, {})],  # gap of more than 2 lines
        *[("often", 8, {15: "101"}), ("d", 8, {}), ("French", 9, {14: "0.4"}), ("none", 10, {9: "None"}), ("", 11, {})],
        *[("e", 12, {17: "z"}), ("f", 13, {17: "z"})],
    )
    documents, counts = parse(tmp_path, {"both": content}, reader="paradocs")
    assert texts(documents) == [
        ("x-y/1", ["a", "b"], ["A", "B"]),
        ("x-y/2", ["far", "c"], ["FAR", "C"]),
        ("x-z/4", ["e", "f"], ["E", "F"]),
    ]
    assert counts.dropped == {"document too short": 1, "frequent, empty, misplaced or in another language": 4}


def cues(*rows):
    return "\n".join(f"{n}\n00:00:{a:06.3f} --> 00:00:{b:06.3f}\n{text}\n" for n, (a, b, text) in enumerate(rows, 1))


def test_cues_are_paired_by_time(tmp_path):
    files = {
        "en": cues((1, 3, "<i>One</i>\ntwo"), (3, 5, "three"), (6, 8, "four"), (20, 21, "alone")),
        "de": cues((1.1, 4.9, "eins zwei drei"), (6.5, 7, "vier A"), (7, 8.2, "vier B"), (30, 31, "x")),
    }
    documents, counts = parse(tmp_path, files, reader="srt_pairs", suffix=".srt")
    assert texts(documents) == [("file", ["One two three", "four"], ["eins zwei drei", "vier A vier B"])]
    assert counts.dropped == {"cue without counterpart": 2}


def test_parquet_is_read_by_pandas(tmp_path, monkeypatch):
    import pandas as pd

    table = pd.DataFrame({"id": [1, 1, 2], "source": ["a", None, "c"], "target": ["d", "e", "f"], "n": [1, 2, 3]})
    monkeypatch.setattr(pd, "read_parquet", lambda path: table)
    files = {"both": None}
    assert texts(parse(tmp_path, files, reader="parquet")[0]) == [("1", ["a", ""], ["d", "e"]), ("2", ["c"], ["f"])]
    assert len(parse(tmp_path, files, reader="parquet", id=None)[0]) == 3
    table.loc[1, "id"] = None
    with pytest.raises(UserError, match="1 rows have no 'id': `id: null` makes each row a document"):
        parse(tmp_path, files, reader="parquet")
    table["id"] = 1
    with pytest.raises(UserError, match="has no column 'text'; it has id, source"):
        parse(tmp_path, files, reader="parquet", source="text")


def test_without_pyarrow_one_line_says_so(tmp_path, monkeypatch):
    import pandas as pd

    def fail(path):
        raise ImportError("Unable to find a usable engine\ntried pyarrow")

    monkeypatch.setattr(pd, "read_parquet", fail)
    with pytest.raises(UserError, match=r"needs the package pyarrow: pip install pyarrow$"):
        parse(tmp_path, {"both": None}, reader="parquet")


@pytest.mark.parametrize(
    ("files", "form", "message"),
    [
        ({"both": "a\tb\nc\n"}, {"reader": "tsv"}, "line 2 has 1 cells, but 2 are needed"),
        ({"both": "x\ta\tb\ny\ta\tb\nx\tc\td\n"}, {"reader": "tsv", "columns": [2, 3], "id_column": 1}, "document x continues after"),
        ({"both": "\n"}, {"reader": "tsv"}, "contains no sentences"),
        ({"both": page(("a", 1, {})) + "b\tc\n"}, {"reader": "paradocs"}, "line 2 is not a ParaDocs line"),
        ({"both": page(("a", 1, {13: "x"}))}, {"reader": "paradocs"}, "line 1 is not a ParaDocs line"),
        ({"both": page(("a", 1, {}))}, {"reader": "paradocs"}, "contains no documents with at least 2 sentences"),
        ({"both": "<a/>"}, {"reader": "tmx"}, "not TMX"),
        ({"both": tmx()}, {"reader": "tmx"}, "contains no units in en and de"),
        ({"ids": "x\n", "en": "a\nb\n", "de": "a\n"}, {"reader": "named_lines"}, "line 2 is the first without a counterpart"),
        ({"en": cues((1, 2, "a")), "de": cues((5, 6, "b"))}, {"reader": "srt_pairs"}, "no cue has a counterpart"),
        ({"both": '{"a": [{"speaker": "x", "source": "b", "target": "c"}], "a": []}'}, {"reader": "dialogue_json"}, "'a' occurs twice in an object: rename"),
    ],
)  # fmt: skip
def test_bad_files_get_one_line(tmp_path, files, form, message):
    assert message in refusal(tmp_path, files, **form)


def test_the_study_of_the_manual_reads_its_corpora(tmp_path, monkeypatch, capsys):
    """docs/corpora.md, "A translation memory, a table and a film"."""
    page = (Path(__file__).parents[2] / "docs/corpora.md").read_text(encoding="utf-8")
    (study,) = re.findall(r"<!-- file: my.yaml -->\n```yaml\n(.*?)```", page, flags=re.S)
    (tmp_path / "my.yaml").write_text(study, encoding="utf-8")
    contents = {
        "memory.tmx": tmx(unit("the dog", "das Tier"), unit("a house", "ein Haus")),
        "dev.tsv": "x\ta dog\tein Tier\n",
        "film.en.srt": cues((1, 2, "a child")),
        "film.de.srt": cues((1, 2, "ein Kind")),
    }
    (tmp_path / "data").mkdir()
    for name, content in contents.items():
        (tmp_path / "data" / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["config", "check", "my.yaml"]) == 0
    for corpus, values in yaml.safe_load(study)["corpora"]["custom"].items():
        (split,) = values["splits"]
        options = ["--spec", json.dumps(values), "--split", split, "--languages", "en", "de", "--out", f"out/{corpus}"]
        assert main(["corpora", "read", *options]) == 0
    assert Path("out/memory.de").read_text() == "das Tier\nein Haus\n"
    assert Path("out/table.en").read_text() == "a dog\n"
    assert Path("out/film.de").read_text() == "ein Kind\n"
