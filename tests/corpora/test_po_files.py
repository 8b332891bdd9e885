"""Large sets of PO files: how messages are selected, cleaned and split."""

import gzip
import lzma
from random import Random

import pytest
from hostile_files import tar_of

from docmt.corpora.catalog import Address, Family, FileTable, find_corpus
from docmt.corpora.file_patterns import existing_files, matching_files, matching_names
from docmt.corpora.readers.gettext import PoFiles
from docmt.corpora.readers.registry import read
from docmt.errors import UserError

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'


def po(*messages):
    """A PO file with (reference, source, target[, comment])."""
    parts = []
    for reference, src, tgt, *comment in messages:
        escaped = [text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for text in (src, tgt)]
        parts.append("".join(f"#. {line}\n" for line in comment))
        parts[-1] += f'#: {reference}\nmsgid "{escaped[0]}"\nmsgstr "{escaped[1]}"\n'
    return HEADER + "\n".join(parts)


@pytest.fixture
def read_po(tmp_path):
    """Read files (name → content) with settings. Returns documents by id and counts."""

    def run(files, *, pattern="*.po", languages=("en", "de"), **settings):
        for name, content in files.items():
            path = tmp_path / "po" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        form = PoFiles(reader="po_files", **settings)
        documents, counts = read({"both": tmp_path / "po" / pattern}, form=form, languages=languages)
        return {document.id: list(zip(document.src, document.tgt, strict=True)) for document in documents}, counts

    return run


def test_equal_pages_in_two_files_are_separate(read_po):
    pages, counts = read_po(
        {
            "b/x.po": po(("p.xhp", "One", "Eins"), ("q.xhp", "Two", "Zwei")),
            "a.po": po(("p.xhp:9", "Last", "Letztes"), ("p.xhp:2", "First", "Erstes")),
        }
    )
    assert list(pages) == ["a/p.xhp", "b/x/p.xhp", "b/x/q.xhp"]
    assert pages["a/p.xhp"] == [("First", "Erstes"), ("Last", "Letztes")]
    assert (counts.documents, counts.sentences) == (3, 4)


@pytest.mark.parametrize("line", ["", ":²", f":{'9' * 5000}"])
def test_file_order_without_line_numbers(read_po, line):
    pages, _ = read_po({"a.po": po((f"p{line}", "Z", "z"), ("p", "A", "a"))})
    assert pages["a/p"] == [("Z", "z"), ("A", "a")]


def test_omissions_are_counted_by_reference(read_po):
    content = po(("p:1 q:2", "Same", "Same"), ("p:2", "Text", "Wort"), ("p:3", "<idx>a; b</idx>", "<idx>c</idx>"))
    content += '\n#: p:4\nmsgid "Untranslated"\nmsgstr ""\n\n#: p:5 p:6\n#, fuzzy\nmsgid "Unsure"\nmsgstr "Unsicher"\n'
    content += '\n#: p:7\nmsgid ">>> 1\\n1\\n"\nmsgstr "<<< 1\\n1\\n"\n\n#: p:8\nmsgid "<br/>"\nmsgstr "<br/>"\n'
    pages, counts = read_po({"a.po": content}, identical="drop", listings="drop", except_tags=["idx"], tags="remove")
    assert pages == {"a/p": [("Text", "Wort")]}
    assert counts.dropped == {
        "identical sides": 2,
        "<idx>": 1,
        "untranslated message": 1,
        "fuzzy message": 2,
        "program listing": 1,
        "tags without text": 1,
    }
    assert counts.empty_documents == 1, "page q"


def test_all_translations_are_kept_by_default(read_po):
    pairs = [("<b>Same</b>", "<b>Same</b>"), ("~File. Two.", "~Datei. Zwei."), ("<idx>a</idx>", "<idx>b</idx>")]
    pages, counts = read_po({"a.po": po(*(("p", *pair) for pair in pairs))})
    assert pages["a/p"] == pairs
    assert not counts.dropped
    assert "changed" not in counts.as_dict(n_sides=2)


def test_tags_accelerators_and_hints_are_removed(read_po):
    content = po(
        ("p", 'Choose <item type="menuitem">~File - a < b</item>.', "Wählen Sie <emph>~Datei - a < b</emph>."),
        ("p", "about ~ 5 and 2~3", "etwa ~ 5 und 2~3"),
        ("p", "female^cured", "geheilt"),
    )
    pages, counts = read_po({"a.po": content}, tags="remove", accelerator="~", hint_mark="^")
    assert pages["a/p"] == [
        ("Choose File - a < b.", "Wählen Sie Datei - a < b."),
        ("about ~ 5 and 23", "etwa ~ 5 und 23"),
        ("cured", "geheilt"),
    ]
    assert counts.changed == {"inline tags removed": 1, "accelerator removed": 2, "hint removed": 1}


def test_a_message_is_split_where_both_sides_agree(read_po):
    long = "A much longer sentence than the other one, with many words in it that say nothing at all."
    content = po(
        ("p", "He came. Did Mr. Smith see him?", "Er kam. Sah ihn Herr Smith?"),
        ("p", "One. Two. Three.", "Eins, zwei, drei."),
        ("p", f"{long} Yes.", f"Ja. {long}"),
        ("p", "First line\nSecond line", "Erste Zeile\nZweite Zeile"),
        ("p", "Single", "Einzeln"),
    )
    pages, counts = read_po({"a.po": content}, units="sentences")
    assert pages["a/p"] == [
        ("He came.", "Er kam."),
        ("Did Mr. Smith see him?", "Sah ihn Herr Smith?"),
        ("One. Two. Three.", "Eins, zwei, drei."),
        (f"{long} Yes.", f"Ja. {long}"),
        ("First line", "Erste Zeile"),
        ("Second line", "Zweite Zeile"),
        ("Single", "Einzeln"),
    ]
    assert counts.changed == {"message split into sentences": 2, "message of several sentences not split": 2}


def test_chinese_is_split_at_its_own_marks(read_po):
    pages, _ = read_po(
        {"a.po": po(("p", "It works. Does it?", "它有效。是吗？"))}, languages=("en", "zh"), units="sentences"
    )
    assert pages["a/p"] == [("It works.", "它有效。"), ("Does it?", "是吗？")]


def test_speakers_come_before_the_first_sentence(read_po):
    content = po(
        ("p:1", "Hail. Who are you?", "Heil. Wer seid Ihr?", "[message]: speaker=Konrad"),
        ("p:2 p:3", "Hm.", "Hm!", "[message]: speaker=Konrad"),
        ("p:4", "Night falls.", "Es wird Nacht.", "[part]"),
    )
    pages, _ = read_po({"a.po": content}, speakers=True, units="sentences")
    assert [src for src, _ in pages["a/p"]] == [
        "Konrad: Hail.",
        "Who are you?",
        "Hm.",
        "Hm.",
        "Night falls.",
    ], "a comment that does not fit the places names nobody"


def test_splits_share_pages_out(read_po):
    files = {"one.po": po(("p", "A", "a"), ("q", "B", "b")), "two.po": po(("p", "C", "c"))}
    test, counts = read_po(files, pages=["one/p"])
    train, _ = read_po(files, except_pages=["one/p"])
    assert (list(test), list(train)) == (["one/p"], ["one/q", "two/p"])
    assert counts.dropped == {"in pages of other splits": 2}


def test_an_archive_is_read_like_a_folder(tmp_path):
    path = tmp_path / "docs.tar.gz"
    files = {"b/x.po": po(("../../b/x.rst:1", "B", "b")), "a.po": po(("p", "A", "a")), "c.txt": "no"}
    path.write_bytes(tar_of({f"top/{name}": content for name, content in files.items()}, "w:gz"))
    documents, _ = read({"both": path}, form=PoFiles(reader="po_files"), languages=["en", "de"])
    assert [document.id for document in documents] == ["a/p", "b/x.rst"], "a page relative to its file"


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({"a.po": po(("p", "A", "a"))}, "*.pot", "matches no file"),
        ({"a.po": "no message"}, "*.po", "is not a PO file"),
        ({"a.po": HEADER}, "*.po", "contains no translated messages"),
    ],
)
def test_bad_po_files_are_refused(read_po, files, pattern, message):
    with pytest.raises(UserError, match=message):
        read_po(files, pattern=pattern)


CHANCE = Random(1)
LARGE = tar_of({"a.po": "".join(f"{CHANCE.random()}\n" for _ in range(8000))})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("docs.tar.gz", b"\x1f\x8b nothing", "cannot be read"),
        ("docs.tar.gz", gzip.compress(b"nothing", mtime=0), "not a tar archive of PO files"),
        *(
            ("docs.tar", content[:40_000] + b"\xff" * 70_000 + content[110_000:], "not a tar archive of PO files")
            for content in (gzip.compress(LARGE, compresslevel=0, mtime=0), lzma.compress(LARGE))
        ),
        ("docs.tar", tar_of({"a.po": " " * 100_000}, "w:xz"), "expands to more than 200 times"),
    ],
)
def test_a_broken_archive_is_refused(tmp_path, monkeypatch, name, content, message):
    monkeypatch.setattr("docmt.decompression.MAX_UNCHECKED_BYTES", 0)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read({"both": path}, form=PoFiles(reader="po_files"), languages=["en", "de"])


def test_patterns_stand_for_files_in_folders(tmp_path):
    names = ["a/de.po", "a/ru.po", "b/c/de.po", "de.po"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert matching_names("*/de.po", names) == ["a/de.po", "b/c/de.po"]
    assert matching_names("de.po", names) == ["de.po"]
    assert [name for name, _ in matching_files(tmp_path / "*/de.po")] == ["a/de.po", "b/c/de.po"]
    assert matching_files(tmp_path / "none") == [("none", tmp_path / "none")]


def test_patterns_enter_linked_folders_once(tmp_path):
    for name in ("memory/own/a", "memory/b", "store/deep/c"):
        path = tmp_path / f"{name}.po"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "memory/linked").symlink_to(tmp_path / "store")
    (tmp_path / "memory/again").symlink_to(tmp_path / "memory/own")
    (tmp_path / "memory/up").symlink_to(tmp_path)
    (tmp_path / "store/back").symlink_to(tmp_path / "store")
    names = [name for name, _ in matching_files(tmp_path / "memory/*.po")]
    assert names == ["b.po", "linked/deep/c.po", "own/a.po"]


def test_files_added_during_a_run_are_refused(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / f"{name}.po").write_text("")
    assert len(existing_files(tmp_path / "*.po")) == 2
    monkeypatch.setattr("docmt.corpora.file_patterns.planned_digest", lambda path: {"a.po": "x"}.get(path.name))
    with pytest.raises(UserError, match=r"b\.po: was added after this run was planned: start the run again"):
        existing_files(tmp_path / "*.po")


@pytest.mark.parametrize("name", ["libreoffice-help", "wesnoth"])
def test_a_table_describes_every_file(name):
    rows = FileTable(table=f"{name}.tsv", addresses=[Address(url="https://example.org/{path}")]).rows()
    entry = find_corpus(f"{name}-ende")
    assert rows.keys() == entry.family.files.keys()
    assert all(file.sha256 and file.sha256_gz and file.bytes_gz for file in entry.family.files.values())
    assert all(file.addresses[0].url.endswith(".po") for file in entry.family.files.values())
    (role,) = set(entry.corpus.splits["train"].files.values())
    assert len(entry.file_names(["train"])) == len(matching_names(role, rows)) > 20


def test_a_pattern_without_files_is_refused():
    family = find_corpus("wesnoth-ende").family.model_dump(mode="json")
    family["corpora"]["wesnoth-ende"]["splits"]["dev"]["files"] = {"both": "*/fr.po"}
    with pytest.raises(UserError, match=r"\*/fr\.po"):
        Family.load(family, where="catalog")
