"""Single rules of docs/cleaning.md, with pairs that they must reject and pairs that they must accept."""

import random
import re
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.corpora.combining import combine
from docmt.corpora.documents import Document, read_documents, write_documents
from docmt.corpora.filtering import DocumentFilter, PairRules
from docmt.corpora.settings import FilterSettings
from docmt.errors import UserError
from docmt.files import write_lines

PAGE = (Path(__file__).parents[2] / "docs/cleaning.md").read_text(encoding="utf-8")
EN, DE = "The bridge was closed for a week.", "Die Brücke war eine Woche lang gesperrt."
EN_RU = ("Choose a folder for the new archive", "Выберите папку для нового архива")


def judge(src, tgt, codes="en de", **settings):
    return PairRules(FilterSettings(**settings), codes.split()).judge([(src, tgt)])[0]


FAILING = {
    "empty": [("", DE), (EN, " \t"), (EN, "\u3000")],
    "short": [(EN, "."), ("a", DE)],
    "long": [(EN * 62, DE * 62)],
    "identical": [(EN, EN), (EN, EN[:-1]), (EN, EN.upper()), (EN, f"„{EN}“"), (EN, "for a week the bridge was closed")],
    "length ratio": [(EN * 2, "Sie war zu."), ("It was closed.", DE * 3)],
    "control characters": [(EN, DE + mark) for mark in "\x00\x07\x1b\x7f\x80\x93\ufffd\ue000\uf8ff\U000f0001"]
    + [(EN.replace(" ", mark, 1), DE) for mark in "\x0b\x1f\ufffd"],
    "script": [(EN, "Мост был закрыт на неделю."), ("Мост был закрыт.", DE), (EN, "橋は一週間閉鎖されました")],
}
PASSING = {
    "empty": [("a b", "c d")],
    "short": [("a", "a"), ("No", "Ne")],
    "long": [(EN * 60, DE * 50)],
    "identical": [("Anna Blum", "Anna Blum"), ("OpenOffice", "OpenOffice."), ("7 × 9 = 63; 8 × 9 = 72",) * 2],
    "length ratio": [("Yes.", "Ja, das stimmt natürlich."), (EN, DE * 2)],
    "control characters": [(EN + mark, DE) for mark in "\t\u00a0\u2028\u200d\u202b\x85\ufeff😀\U000e0067\ufffc"],
    "script": [("The rune ᚠ", "Die Rune ᚠ"), ("π is a number", "π ist eine Zahl"), ("Ж", "Ж"), ("5 €", "5 €")],
}


@pytest.mark.parametrize("rule", FAILING)
def test_rules_reject_one_property_at_a_time(rule):
    assert {judge(*pair) for pair in FAILING[rule]} == {rule}


@pytest.mark.parametrize("rule", PASSING)
def test_rules_accept_what_is_near(rule):
    assert {judge(*pair) for pair in PASSING[rule]} == {""}


def test_every_documented_rule_is_tested():
    section = PAGE.partition("## Rules")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([a-z ]+)`", row)}
    # These need a package, or the neighbors of a pair. Their tests are below and in test_filters.py.
    assert FAILING.keys() == PASSING.keys() == names - {"language", "duplicate", "external"}


@pytest.mark.parametrize("lang", ["ru", "zh", "ja", "el", "th", "ko", "hi", "ar", "he", "ka"])
@pytest.mark.parametrize("languages", [False, True])
def test_untranslated_targets_fail_in_every_script(lang, languages, monkeypatch):
    monkeypatch.setattr("docmt.corpora.filtering._detector", lambda: lambda text: [("en", 1.0)])
    for copy in (EN, EN[:-1], EN.upper(), f"«{EN}»", "was closed for a week", f"{EN} ({EN})"):
        assert judge(EN, copy, f"en {lang}", languages=languages) in ("identical", "script"), copy
        assert judge(copy, EN, f"{lang} en", languages=languages) in ("identical", "script"), copy


@pytest.mark.parametrize(
    ("src", "tgt", "languages"),
    [
        ("Start LibreOffice Calc", "启动 LibreOffice Calc", "en zh"),
        ("Install GIMP", "GIMP をインストールする", "en ja"),
        ("IPv4", "IPv4", "en ru"),
        ("Use Ctrl+Alt+Delete", "Ctrl+Alt+Delete пайдаланыңыз", "en kk"),
    ],
)
def test_names_in_another_script_pass(src, tgt, languages):
    assert judge(src, tgt, languages) == ""


SHORT = {  # translations of about the length of the English sentence
    "th": ("Please select your language from the list", "กรุณาเลือกภาษาของคุณจากรายการนี้"),
    "km": ("You must enter the name of a file", "អ្នកត្រូវតែបញ្ចូលឈ្មោះឯកសារមួយ"),
    "my": ("You must enter the name of a file", "ဖိုင်အမည်တစ်ခုကို သင် ရိုက်ထည့်ရမည်"),
    "lo": ("Please select your language", "ກະລຸນາເລືອກພາສາຂອງທ່ານ"),
    "bo": ("Select a file from the list", "ཐོ་གཞུང་ནས་ཡིག་ཆ་ཞིག་འདེམས་རོགས།"),
    "ko": ("The committee will discuss the proposal next week", "위원회는 다음 주에 그 제안을 논의합니다"),
    "zh": ("The committee will discuss the proposal next week", "委员会下周讨论这项提案"),
    "ja": ("The committee will discuss the proposal next week", "委員会は来週その提案を審議する"),
}


@pytest.mark.parametrize("lang", SHORT)
def test_translations_pass_without_blanks(lang):
    src, tgt = SHORT[lang]
    for count in (1, 2, 20):
        assert judge(src * count, tgt * count, f"en {lang}") == "", count
        assert judge(tgt * count, src * count, f"{lang} en") == "", count


@pytest.mark.parametrize(("lang", "n_letters"), [("th", 2000), ("km", 2000), ("zh", 666), ("ja", 666), ("ko", 1000)])
def test_long_sides_are_measured_by_script(lang, n_letters):
    letter = {"th": "ก", "km": "ក", "zh": "委", "ja": "案", "ko": "한"}[lang]
    assert judge(letter * n_letters, "x " * 900, f"{lang} en", max_length_ratio=None) == ""
    assert judge(letter * (n_letters + 1), "x " * 900, f"{lang} en", max_length_ratio=None) == "long"


LATIN, CYRILLIC = "Most je bio zatvoren nedelju dana", "Мост је био затворен недељу дана"


@pytest.mark.parametrize(
    ("lang", "scripts", "rules"),
    [
        ("sr", {}, ["", ""]),
        ("sr", {"sr": "Latn"}, ["", "script"]),
        ("sr", {"sr": "Cyrl"}, ["script", ""]),
        ("sr_Latn", {}, ["", "script"]),
        ("sr@latin", {}, ["", "script"]),
        ("srp_Cyrl", {}, ["script", ""]),
        ("uz", {}, ["", ""]),
        ("hr", {}, ["", "script"]),
        ("bg", {}, ["script", ""]),
        ("bg", {"bg": "Latn"}, ["", "script"]),
    ],
)
def test_languages_with_several_scripts(lang, scripts, rules):
    assert [judge(EN, text, f"en {lang}", scripts=scripts) for text in (LATIN, CYRILLIC)] == rules


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scripts": {"sr": "Latin"}}, "no script 'Latin'; did you mean 'Latn'"),
        ({"scripts": {"sv": "Latn"}}, "no language 'sv'"),
        ({"scripts": {"sr": "Latn"}, "min_script_share": None}, "scripts applies only with min_script_share"),
        ({"max_failed_share": 0.1}, "max_failed_share applies only with on_failure drop_document, not split"),
        ({"min_length_difference": 10, "max_length_ratio": None}, "applies only with max_length_ratio"),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises((UserError, ValueError), match=message):
        PairRules(FilterSettings(**settings), ["en", "sr"])


def documents_of(*rows):
    return [Document(name, tuple(zip(*pairs, strict=True))) for name, pairs in rows]


def pair(number):
    return f"The station in town number {number} has two platforms.", f"Der Bahnhof der Stadt {number} hat zwei Gleise."


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "web.2024" / "train"


def filtered(prefix, documents, *, tests=(), **settings):
    write_documents(prefix, documents, languages=("en", "de"))
    used = DocumentFilter(FilterSettings(**settings), ("en", "de"), tests)
    return [(document.id, len(document)) for document in used.read(prefix, "web.2024/train")], used


def test_parts_get_ids_that_are_free(prefix):
    bad = (EN, "")
    documents = documents_of(
        ("a", [pair(1), bad, pair(2), bad, pair(3)]),
        ("a:3", [pair(4), bad, pair(5)]),
        ("a:3#2", [pair(6)]),
        ("a:3:1", [pair(7)]),
        ("b", [bad, pair(8)]),
    )
    parts, used = filtered(prefix, documents)
    names = [name for name, _ in parts]
    assert names == ["a:1", "a:3#3", "a:5", "a:3:1#2", "a:3:3", "a:3#2", "a:3:1", "b:2"]
    combine([prefix], prefix.parent / "out", languages=("en", "de"), filter=used)
    assert [d.id for d in read_documents(prefix.parent / "out", languages=("en", "de"))] == [
        f"web.2024.train/{name}" for name in names
    ]


def test_equal_ids_are_refused_where_written(tmp_path):
    documents = documents_of(("same", [pair(1)]), ("other", [pair(2)]), ("same", [pair(3)]))
    with pytest.raises(UserError, match=r"out\.documents\.tsv: duplicate document id 'same'"):
        write_documents(tmp_path / "out", iter(documents), languages=("en", "de"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cause", ["tests", "drop_document", "external"])
def test_pairs_left_out_are_no_first_copy(prefix, tmp_path, cause):
    shared = pair(0)
    first = [shared, *([("x", ""), ("y", "")] if cause == "drop_document" else [pair(1), pair(2)])]
    documents = documents_of(("first", first), ("second", [pair(3), shared, pair(4), shared]))
    settings = {"duplicates": False, "on_failure": "drop_pair"}
    if cause == "drop_document":
        settings["on_failure"] = cause
        settings["max_failed_share"] = 0.3
    if cause == "external":
        write_lines(tmp_path / "keep", ["0", *["1"] * 6], checksum=False)
        settings["external"] = {"web.2024/train": str(tmp_path / "keep")}
    tests = {src for src, _ in first[1:]} if cause == "tests" else ()
    settings |= {"max_test_overlap": 0.5} if tests else {}
    parts, used = filtered(prefix, documents, tests=tests, **settings)
    assert used.dropped["duplicate"] == 1
    assert sum(length for name, length in parts if name.startswith("second")) == 3


def test_repeated_text_stays_exactly_once(prefix):
    generator = random.Random(3)
    rows = []
    for number in range(60):
        pairs = [pair(generator.randrange(80)) for _ in range(generator.randrange(1, 8))]
        rows.append((f"d{number}", [(EN, "") if generator.random() < 0.1 else row for row in pairs]))
    parts, used = filtered(prefix, documents_of(*rows), duplicates=False, on_failure="drop_document")
    texts, expected = set(), {}
    for name, pairs in rows:
        new = {row for row in pairs if row[1]} - texts
        if len(pairs) - len(new) <= 0.2 * len(pairs):
            texts |= new
            expected[name] = len(new)
    assert len(expected) > 10
    lengths = dict.fromkeys(expected, 0)
    for name, length in parts:
        lengths[name.partition(":")[0]] += length
    assert lengths == expected
    assert used.dropped["duplicate"] > 20


def test_repeated_chinese_counts_as_other_text():
    sides = ("委员会下周将再次讨论这项重要提案", "委員会は来週また提案を審議する")
    rules = PairRules(FilterSettings(), ("zh", "ja"))
    assert rules.lengths(*sides) == [48, 45]


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ('{"external": {"web/train": "keep"}}', [], "corpora.filters: external: no split among the inputs 'web/train'"),
        ('{"external": {"web.2024/trian": "keep"}}', [], "did you mean 'web.2024/train'"),
        ('{"max_test_overlap": 0.5}', [], "max_test_overlap and --tests need each other"),
        ("{}", ["--tests", "PREFIX"], "max_test_overlap and --tests need each other"),
    ],
)
def test_filter_command_refuses_options_without_effect(prefix, capsys, settings, options, message):
    write_documents(prefix, documents_of(("a", [pair(1)])), languages=("en", "de"))
    arguments = ["--inputs", str(prefix), "--languages", "en", "de", "--settings", settings]
    options = [str(prefix) if option == "PREFIX" else option for option in options]
    assert main(["corpora", "filter", *arguments, *options]) == 2
    assert message in capsys.readouterr().err


def test_filter_command_reads_folders_with_full_stops(prefix, tmp_path):
    write_documents(prefix, documents_of(("a", [pair(1), pair(2)])), languages=("en", "de"))
    write_lines(tmp_path / "keep", ["0", "1"], checksum=False)
    settings = f'{{"external": {{"web.2024/train": "{tmp_path / "keep"}"}}}}'
    arguments = ["--inputs", str(prefix), "--languages", "en", "de", "--settings", settings]
    assert main(["corpora", "filter", *arguments, "--out", str(tmp_path / "out")]) == 0
    assert [d.id for d in read_documents(tmp_path / "out", languages=("en", "de"))] == ["web.2024.train/a:2"]
