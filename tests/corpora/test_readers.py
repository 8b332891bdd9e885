"""Readers on difficult files, for every format and every pitfall."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from reading import parse, refusal, texts

from docmt.corpora.documents import read_documents, write_documents
from docmt.errors import UserError

LANGUAGES = ("en", "de")


class TestMarkedLines:
    def test_unusual_line_ends_move_no_sentence(self, tmp_path):
        en = "\ufeff<d>\r\nA\u2028a\r\nB\x85b\r\n<d>\r\nC\u00a0c\r\n"
        documents, counts = parse(tmp_path, {"en": en, "de": "<d>\nÄ\nÖ\u2029\n<d>\nÜ\n"}, reader="marked_lines")
        assert texts(documents) == [
            ("00001", ["A\u2028a", "B\x85b"], ["Ä", "Ö\u2029"]),
            ("00002", ["C\u00a0c"], ["Ü"]),
        ]
        assert (counts.documents, counts.sentences, counts.one_sentence_documents) == (2, 3, 1)

    def test_empty_sides_are_kept_and_counted(self, tmp_path):
        documents, counts = parse(tmp_path, {"en": "<d>\nA\n\n\nD\n", "de": "<d>\n\nB\n \n D\n"}, reader="marked_lines")
        assert texts(documents) == [("00001", ["A", "", "", "D"], ["", "B", "", "D"])]
        assert (counts.empty_target, counts.empty_source, counts.empty_both) == (1, 1, 1)

    def test_marker_without_sentences_is_counted_not_kept(self, tmp_path):
        files = {"en": "<d>\n<d>\nA\n<d>\n", "de": "<d>\n<d>\nB\n<d>\n"}
        documents, counts = parse(tmp_path, files, reader="marked_lines")
        assert texts(documents) == [("00002", ["A"], ["B"])]
        assert (counts.documents, counts.empty_documents) == (1, 2)

    def test_tabs_and_carriage_returns_inside_become_one_space(self, tmp_path):
        documents, counts = parse(tmp_path, {"en": "<d>\na \t\r b\tc\n", "de": "<d>\nd\n"}, reader="marked_lines")
        assert documents[0].src == ("a b c",)
        assert counts.joined_sentences == 1

    def test_inner_byte_order_marks_are_removed(self, tmp_path):
        files = {"en": "\ufeff<d>\nA\n\ufeffB\n", "de": "<d>\nC\n\ufeff\n"}
        documents, counts = parse(tmp_path, files, reader="marked_lines")
        assert texts(documents) == [("00001", ["A", "B"], ["C", ""])]
        assert (counts.changed["byte order mark removed"], counts.empty_target) == (2, 1)

    @pytest.mark.parametrize(
        ("en", "de", "parts"),
        [
            ("<d>\nA\nB\n<d>\nC\n", "<d>\nA\n<d>\nC\n", ["document 00001", "file.en", "file.de", "line 3"]),
            (
                "<d>\nA\n<d>\nC\n",
                "<d>\nA\n<d>\nC\nD\n",
                ["document 00002", "line 5 of the second", "line 4 of the first"],
            ),
            ("<d>\nA\n<d>\nC\n", "<d>\nA\n", ["2 documents", "1 in", "document 2", "line 3"]),
            ("A\n<d>\nB\n", "<d>\nB\n", ["file.en", "line 1", "before the first"]),
            ("", "<d>\nB\n", ["file.en", "contains no sentences"]),
            ("<d>\n", "<d>\n", ["file.en", "contains no sentences"]),
            ("<d>\nA\nB\n".encode("utf-16"), "<d>\nB\n", ["file.en", "line 1", "not UTF-8"]),
            ("<d>\nA\nStraße\n".encode("latin-1"), "<d>\nA\nB\n", ["file.en", "line 3", "not UTF-8", "iconv"]),
        ],
    )
    def test_bad_files_get_one_line(self, tmp_path, en, de, parts):
        text = refusal(tmp_path, {"en": en, "de": de}, reader="marked_lines")
        for part in parts:
            assert part in text

    def test_missing_role_names_those_there(self, tmp_path):
        assert "needs a file for 'de'" in refusal(tmp_path, {"en": "<d>\nA\n"}, reader="marked_lines")


class TestOtherLines:
    def test_blank_lines_are_boundaries_even_several(self, tmp_path):
        files = {"en": "\nA\nB\n\n \t\nC\n\n", "de": "D\r\nE\r\n\r\nF\r\n"}
        documents, _ = parse(tmp_path, files, reader="blank_lines")
        assert texts(documents) == [("00001", ["A", "B"], ["D", "E"]), ("00002", ["C"], ["F"])]

    def test_blank_lines_at_different_places_are_refused(self, tmp_path):
        text = refusal(tmp_path, {"en": "A\n\nB\nC\n", "de": "A\nB\n\nC\n"}, reader="blank_lines")
        assert "document 00001" in text
        assert "after line 1 of the first" in text
        assert "line 2 of the second" in text

    def test_single_lines_make_one_sentence_documents(self, tmp_path):
        documents, counts = parse(tmp_path, {"en": "A\n\n", "de": "B\nC\n"}, reader="single_lines")
        assert [len(document) for document in documents] == [1, 1]
        assert counts.empty_source == 1

    def test_unequal_lines_name_the_first_bad_one(self, tmp_path):
        text = refusal(tmp_path, {"en": "A\nB\nC\n", "de": "A\n"}, reader="single_lines")
        assert "3 lines" in text
        assert "1 in" in text
        assert "line 2" in text

    def test_indexed_lines_follow_the_index(self, tmp_path):
        files = {"en": "A\r\nB\r\nC\r\nX\r\n", "de": "D\r\nE\r\nF\r\nY\r\n", "index": "[2]\r\n[0, 1]\r\n[]\r\n"}
        documents, counts = parse(tmp_path, files, reader="indexed_lines")
        assert texts(documents) == [("00001", ["C"], ["F"]), ("00002", ["A", "B"], ["D", "E"])]
        assert counts.dropped == {"line in no document": 1}
        assert counts.empty_documents == 1

    @pytest.mark.parametrize(
        ("index", "part"),
        [
            ("[0, 9]\n", "line 9"),
            ("[0]\n[0]\n", "line 2 names line 0"),
            ("0 1\n", "line 1 must be a list"),
            ("[-1]", "line 1"),
        ],
    )
    def test_indexed_lines_refuse_bad_indices(self, tmp_path, index, part):
        assert part in refusal(tmp_path, {"en": "A\n", "de": "B\n", "index": index}, reader="indexed_lines")


class TestVerses:
    EN = "### Genesis\n\n[1:1]  In the beginning \n[1:2] And\n[1:3] \n[2:1] Two\n### Psalms\n[1:1] P\n"
    DE = "### Genesis\n\n[1:1] Am Anfang\n[1:3] Drei\n[2:1] Zwei\n[2:2] Mehr\n### Psalms\n[1:1] Q\n"

    def test_pairs_by_key_count_the_unpaired(self, tmp_path):
        documents, counts = parse(tmp_path, {"en": self.EN, "de": self.DE}, reader="verses")
        assert texts(documents) == [
            ("Genesis 1", ["In the beginning"], ["Am Anfang"]),
            ("Genesis 2", ["Two"], ["Zwei"]),
            ("Psalms 1", ["P"], ["Q"]),
        ]
        assert counts.dropped == {"verse without de": 1, "verse without en": 2}

    def test_parts_are_apart_and_make_up_the_whole(self, tmp_path):
        text = "".join(
            f"### {book}\n" + "".join(f"[{n}:1] {book} {n}\n" for n in range(1, 31)) for book in ("A", "John", "B")
        )
        files = {"en": text, "de": text}
        whole = texts(parse(tmp_path, files, reader="verses")[0])
        parts = {
            part: texts(parse(tmp_path, files, reader="verses", part=part)[0])
            for part in ("train", "dev", "test", "books")
        }
        assert sorted(document for part in parts.values() for document in part) == sorted(whole)
        assert [name for name, _, _ in parts["books"]] == [f"John {n}" for n in range(1, 31)]
        assert [name for name, _, _ in parts["test"]] == ["A 1", "A 11", "A 21", "B 1", "B 11", "B 21"]
        assert [name for name, _, _ in parts["dev"]] == ["A 6", "A 26", "B 6", "B 26"]

    def test_other_chapters_can_be_skipped(self, tmp_path):
        options = {"has_equal_chapters_only": True, "skipped_books": ["Psalms"]}
        with pytest.raises(UserError, match="share no verses"):
            parse(tmp_path, {"en": self.EN, "de": self.DE}, reader="verses", **options)

    @pytest.mark.parametrize(
        ("en", "part"),
        [
            ("### A\n[1:1] x\n[1:1] y\n", "line 3: duplicate verse A 1:1"),
            ("[1:1] x\n", "line 1"),
            ("### A\nfree\n", "line 2"),
        ],
    )
    def test_bad_lines_are_named(self, tmp_path, en, part):
        assert part in refusal(tmp_path, {"en": en, "de": self.DE}, reader="verses")


class TestPoPages:
    PO = """
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#: C/b.page:3 C/a.page:20
msgid "Both\u2028pages"
msgstr "Beide Seiten"

#: C/a.page:7
msgid ""
"Two "
"lines\\n"
"here"
msgstr "Zwei\\nZeilen"

#: C/a.page:9
msgid "Untranslated"
msgstr ""

#, fuzzy
#: C/a.page:10
msgid "Fuzzy"
msgstr "Unscharf"

msgid "Nowhere"
msgstr "Nirgends"

#: C/a.page:11
msgid "One"
msgid_plural "Many"
msgstr[0] "Eins"
msgstr[1] "Viele"

#~ msgid "Old"
#~ msgstr "Alt"
"""

    def test_pages_are_documents_in_line_order(self, tmp_path):
        documents, counts = parse(tmp_path, {"both": self.PO}, reader="po_pages")
        assert texts(documents) == [
            ("C/a.page", ["Two lines here", "Both\u2028pages"], ["Zwei Zeilen", "Beide Seiten"]),
            ("C/b.page", ["Both\u2028pages"], ["Beide Seiten"]),
        ]
        assert counts.dropped == {
            "untranslated message": 1,
            "fuzzy message": 1,
            "message without a page": 1,
            "plural message": 1,
            "obsolete message": 1,
        }

    @pytest.mark.parametrize("content", ["", 'msgid "a" b"\nmsgstr "c"\n', "no po at all\n"])
    def test_bad_files_are_named(self, tmp_path, content):
        text = refusal(tmp_path, {"both": content}, reader="po_pages")
        assert text.startswith(str(tmp_path / "file.both"))


class TestDialogues:
    def test_json_swaps_the_sides_of_some_speakers(self, tmp_path):
        dialogue = [
            {"speaker": "customer", "source": "Hallo", "target": "Hello"},
            {"speaker": "agent", "source": "Hi", "target": "Hallo\nda"},
        ]
        files = {"both": json.dumps({"x": dialogue, "empty": []})}
        documents, counts = parse(tmp_path, files, reader="dialogue_json", reversed_speakers=["customer"])
        assert texts(documents) == [("x", ["Hello", "Hi"], ["Hallo", "Hallo da"])]
        assert (counts.empty_documents, counts.joined_sentences) == (1, 1)

    def test_csv_keeps_quoted_line_ends_inside_the_sentence(self, tmp_path):
        content = '\ufeffid,source,target\r\n1,"A, ""b""",C\r\n1,"two\nlines\u2028x",D\r\n2,,E\r\n'
        documents, counts = parse(tmp_path, {"both": content}, reader="dialogue_csv")
        assert texts(documents) == [("1", ['A, "b"', "two lines\u2028x"], ["C", "D"]), ("2", [""], ["E"])]
        assert counts.empty_source == 1
        documents, _ = parse(
            tmp_path, {"both": "id, en ,de\n1,a,b\n"}, reader="dialogue_csv", source=" en ", target="de"
        )
        assert texts(documents) == [("1", ["a"], ["b"])]

    def test_headed_tsv_needs_no_id(self, tmp_path):
        content = 'source\ttarget\n"A" b\t"C\nD\t"E\n'
        settings = {"id": None, "delimiter": "\t", "quotes": False}
        documents, _ = parse(tmp_path, {"both": content}, reader="dialogue_csv", **settings)
        assert texts(documents) == [("00000001", ['"A" b'], ['"C']), ("00000002", ["D"], ['"E'])]

    @pytest.mark.parametrize("delimiter", [";;;", "", "\n", '"'])
    def test_a_delimiter_of_csv_is_one_character(self, tmp_path, delimiter):
        with pytest.raises(ValidationError, match="should match pattern"):
            parse(tmp_path, {"both": "id;source;target\n"}, reader="dialogue_csv", delimiter=delimiter)

    @pytest.mark.parametrize("columns", [[0, 1], [1, -1]])
    def test_columns_count_from_1(self, tmp_path, columns):
        with pytest.raises(ValidationError, match="greater than 0"):
            parse(tmp_path, {"both": "a\tb\n"}, reader="tsv", columns=columns)

    def test_jsonl_reads_documents_and_makes_ids_unique(self, tmp_path):
        content = '{"id": "a\\tb", "src": ["A"], "tgt": ["B"]}\n{"id": "a b", "src": ["C"], "tgt": ["D"]}\n'
        documents, _ = parse(tmp_path, {"both": content}, reader="jsonl")
        assert [document.id for document in documents] == ["a b", "a b#2"]

    @pytest.mark.parametrize(
        ("reader", "content", "part"),
        [
            ("dialogue_json", "[]", "an object of dialogues"),
            ("dialogue_json", '{"x": [{"source": "a"}]}', "dialogue x, utterance 0"),
            ("dialogue_json", '{"x": 3}', "dialogue x"),
            ("dialogue_json", '{"x": [', "line 1 is not JSON"),
            ("dialogue_json", '{"x": [{"source": "\\ud83d", "target": "a"}]}', "lone surrogate"),
            ("dialogue_csv", "id,source\n1,a\n", "no column 'target'"),
            ("dialogue_csv", "", "no column 'id'"),
            ("dialogue_csv", "id,source,target\n1,a\n", "line 2 has 2 cells"),
            ("dialogue_csv", "id,source,target\n1,a,b\n2,a,b\n1,c,d\n", "line 4: document 1"),
            ("dialogue_csv", 'id,source,target\n1,"a,b\n', "is not CSV"),
            ("dialogue_csv", "id,source,target\n", "contains no sentences"),
            (
                "jsonl",
                '{"id": "a", "src": ["A"], "tgt": ["B"]}\n{"id": "b", "src": ["A"], "tgt": []}\n',
                "line 2: document b: 1 source",
            ),
            ("jsonl", '{"id": 3, "src": [], "tgt": []}\n', "line 1"),
            ("jsonl", '{"id": "\\ud83d", "src": ["A"], "tgt": ["B"]}\n', "lone surrogate"),
            ("jsonl", '{"id": "a", "src": "A", "tgt": ["B"]}\n', "`src` must be a list of sentences"),
            ("jsonl", "{}\n", "line 1"),
            ("jsonl", "nonsense\n", "line 1 is not JSON"),
            ("jsonl", "", "contains no sentences"),
        ],
    )
    def test_bad_content_is_named(self, tmp_path, reader, content, part):
        assert part in refusal(tmp_path, {"both": content}, reader=reader)


SENTENCES = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\r\n\t\u2028\u0085\u00a0\ufeff <&"), max_size=6
)
DOCUMENTS = st.lists(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=4), min_size=1, max_size=4)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(DOCUMENTS)
def test_whatever_a_reader_keeps_survives_the_files(tmp_path, values):
    values.append([("end", "Ende")])
    lines = (
        json.dumps({"id": str(i), "src": [src for src, _ in pairs], "tgt": [tgt for _, tgt in pairs]})
        for i, pairs in enumerate(values)
    )
    documents, counts = parse(tmp_path, {"both": "\n".join(lines)}, reader="jsonl")
    write_documents(tmp_path / "out", documents, languages=["en", "de"])
    assert read_documents(tmp_path / "out", languages=["en", "de"]) == documents
    assert [len(document) for document in documents] == [len(pairs) for pairs in values if pairs]
    assert counts.documents + counts.empty_documents == len(values)
