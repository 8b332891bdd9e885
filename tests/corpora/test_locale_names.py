"""Languages in file names. A region is never a language."""

from pathlib import Path

import pytest

from docmt.corpora.file_patterns import paired_files
from docmt.corpora.guessing import find_split, is_code, language_in
from docmt.errors import UserError
from docmt.languages import script_in, usual_script

LOCALES = (
    "ar-EG bn-IN ca-ES cs-CZ cy-GB de-AT de-CH el-CY el-GR en-CA en-IN en-MT en-US es-419 es-AR es-CL es-CO et-EE "
    "fa-IR fi-FI fr-BE fr-CA fr-CH ga-IE gu-IN he-IL hi-IN hr-BA hu-HU hy-AM id-ID ja-JP ka-GE kn-IN ko-KR lt-LT lv-LV "
    "mk-MK ml-IN mr-IN ms-MY mt-MT nb-NO nl-BE nn-NO pa-IN pl-PL pt-BR ro-MD ru-UA sk-SK sl-SI sq-MK sr-ME sv-FI ta-LK "
    "ta-MY te-IN th-TH tr-CY uk-UA uz-UZ vi-VN zh-CN zh-HK zh-MO zh-MY zh-TW sr-Latn-RS sr-Cyrl-BA zh-Hant-TW uz-Latn"
)


@pytest.mark.parametrize("name", ["train.{}.txt", "{}/part.txt", "film_{}.srt", "{}.po", "news-2024.{}.gz"])
def test_regions_are_no_languages(name):
    for locale in [*LOCALES.split(), *LOCALES.replace("-", "_").split()]:
        assert language_in(Path("data") / name.format(locale)) == locale[:2], locale


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("europarl.de-en.en", "en"),
        ("europarl.de-en.de", "de"),
        ("wmt.en-de.src.de", "de"),
        ("my_de.txt", "de"),
        ("my-fr.txt", "fr"),
        ("no_de.txt", "de"),
        ("hi-in.txt", "hi"),
        ("es-ar/a.txt", "es"),
        ("pt_br.txt", "pt"),
        ("de_at.txt", "de"),
        ("talk-en-001.txt", "en"),
        ("sr@latin.po", "sr"),
        ("sr_RS@latin.po", "sr"),
        ("what_in_the.txt", None),
        ("übung.txt", None),
        ("read.me", None),
        ("ENG-US.txt", "en"),
        ("Folge 3 (de).srt", "de"),
    ],
)
def test_language_is_the_last_code(name, language):
    assert language_in(Path(name)) == language


def test_codes_of_columns_can_have_regions():
    codes = ["en", "deu", "pt-BR", "zh_Hans", "sr-Latn-RS"]
    assert list(map(is_code, codes)) == [True] * len(codes)
    words = ["in", "", "text", "en-de", "fr-ca-x", "en us", "target"]
    assert list(map(is_code, words)) == [False] * len(words)


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n00:00:01,000 --> 00:00:02,000\nA\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "patterns", "languages"),
    [
        (["a.en-US.srt", "a.pt-BR.srt", "b.en-US.srt", "b.pt-BR.srt"], ["*.en-US.srt", "*.pt-BR.srt"], "en pt"),
        (["a.en.srt", "a.zh-Hant-TW.srt"], ["*.en.srt", "*.zh-Hant-TW.srt"], "en zh"),
        (["x/en_GB/a.txt", "x/hi_IN/a.txt"], ["x/en_GB/*", "x/hi_IN/*"], "en hi"),
        (["a_es-AR.txt", "a_fr-CA.txt"], ["*_es-AR.txt", "*_fr-CA.txt"], "es fr"),
        (["1.eng.txt", "01.nob.txt"], ["*.eng.txt", "*.nob.txt"], "en nb"),
    ],
)
def test_files_of_locales_are_paired(tmp_path, names, patterns, languages):
    write(tmp_path, *names)
    paths = [tmp_path / pattern for pattern in patterns]
    pairs = paired_files(paths, languages.split())
    assert len(pairs) == len(names) // 2
    assert {path for _, *sides in pairs for path in sides} == {tmp_path / name for name in names}
    guess = find_split(paths, form={}, languages=[], where="train")
    assert guess.languages == tuple(languages.split())


def test_numbers_of_files_are_no_regions(tmp_path):
    names = [f"talk-{lang}-00{number}.srt" for lang in ("en", "de") for number in (1, 2)]
    write(tmp_path, *names)
    pairs = paired_files([tmp_path / "*-en-*", tmp_path / "*-de-*"], ["en", "de"])
    assert [(src.name, tgt.name) for _, src, tgt in pairs] == [
        ("talk-en-001.srt", "talk-de-001.srt"),
        ("talk-en-002.srt", "talk-de-002.srt"),
    ]


def test_one_file_of_a_locale_has_no_pair(tmp_path):
    path = tmp_path / "memory.fr-CA.tsv"
    path.write_text("a\tb\nc\td\n", encoding="utf-8")
    with pytest.raises(UserError, match="two languages are needed"):
        find_split([path], form={"reader": "tsv"}, languages=[], where="train")
    pair = path.rename(tmp_path / "memory.fr-ca.tsv")
    assert find_split([pair], form={}, languages=[], where="train").languages == ("fr", "ca")


def test_scripts_in_codes():
    codes = ("sr", "sr_Latn", "sr@latin", "uz_UZ@cyrillic", "zh-TW", "zho_Hant", "??")
    assert [script_in(code) for code in codes] == [None, "Latn", "Latn", "Cyrl", None, "Hant", None]
    assert [usual_script(code) for code in ("sr", "bg", "ja", "no", "??")] == ["Cyrl", "Cyrl", "Jpan", "Latn", None]
