# ruff: noqa: E501 (rows of tables)
"""Languages that files declare: others than the model's are an error, and the target language is written."""

import re
import subprocess
from pathlib import Path
from shutil import which

import polib
import pytest
from formats_standin import EN_DE, PARTS, members, packed, translated

from docmt.errors import UserError
from docmt.formats.po import PLURALS
from docmt.formats.registry import open_file
from docmt.formats.translatable_file import Languages, language_of

UNIT = "<trans-unit id='1'><source>a</source></trans-unit>"
XLIFF1 = f"<xliff version='1.2'><file original='a'{{}}><body>{UNIT}</body></file></xliff>"
XLIFF2 = "<xliff version='2.0'{}><file id='1'><unit id='1'><segment><source>a</source></segment></unit></file></xliff>"
TMX = "<tmx version='1.4'><header/><body>{}</body></tmx>"
TUV = "<tuv xml:lang='{}'><seg>a</seg></tuv>"
PO = 'msgid ""\nmsgstr ""\n"{}\\n"\n\nmsgid "a"\nmsgstr ""\n'

# name, content, languages of the declaration that differ
OTHERS = [
    ("a.po", PO.format("Language: fr"), "target language is fr"),
    ("b.po", PO.format("X-Source-Language: fr_FR"), "source language is fr_FR"),
    ("a.xlf", XLIFF1.format(" source-language='ru' target-language='de'"), "source language is ru"),
    ("b.xlf", XLIFF1.format(" source-language='en-GB' target-language='fr-FR'"), "target language is fr-FR"),
    ("c.xlf", XLIFF2.format(" srcLang='en' trgLang='fr'"), "target language is fr"),
    ("d.xlf", XLIFF2.format(" srcLang='fr'"), "source language is fr"),
    ("a.tmx", TMX.format(f"<tu>{TUV.format('fr')}</tu>"), "source language is fr"),
    ("a.html", "<html lang=fr><p>a</p></html>", "source language is fr"),
    ("b.html", "<HTML class='a' LANG='fr-CA'><p>a</p></HTML>", "source language is fr-CA"),
]
SAME = [
    ("a.po", PO.format("Language: de_AT")),
    ("b.po", PO.format("Language: German")),
    ("a.xlf", XLIFF1.format(" source-language='EN-us' target-language='deu'")),
    ("c.xlf", XLIFF2.format(" srcLang='en' trgLang='de-CH'")),
    ("a.html", "<html lang=en-GB><p>a</p></html>"),
]


@pytest.mark.parametrize(("name", "content", "message"), OTHERS)
def test_other_languages_are_an_error_that_can_be_overridden(name, content, message):
    with pytest.raises(UserError, match=f"{name}: its {message}, but the model translates from en to de.*--force"):
        open_file(Path(name), content.encode(), languages=EN_DE)
    out, counts = translated(Path(name), content.encode(), languages=Languages("en", "de", are_checked=False))
    assert counts.segments == (0 if name == "a.tmx" else 1)
    assert out.decode() != content or name == "a.tmx"


@pytest.mark.parametrize(("name", "content"), SAME)
@pytest.mark.parametrize("languages", [EN_DE, Languages("eng_Latn", "deu_Latn")])
def test_the_same_language_in_another_region_is_none(name, content, languages):
    assert translated(Path(name), content.encode(), languages=languages)[1].segments == 1


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.xlf", XLIFF2.format(" srcLang='en'"), "<xliff trgLang=\"de\" version='2.0' srcLang='en'>"),
        ("b.xlf", XLIFF1.format(" source-language='en'"), "<file target-language=\"de\" original='a' source"),
        ("a.tmx", TMX.format(f"<tu>{TUV.format('en')}</tu><tu>{TUV.format('de-AT')}</tu>"), '<tuv xml:lang="de-AT"><prop'),
        ("b.tmx", TMX.format(f"<tu>{TUV.format('en')}</tu>"), '<tuv xml:lang="de"><prop'),
        ("a.html", "<html lang='en-US' class=x><p>a</p></html>", "<html lang='de' class=x><p>A</p></html>"),
        ("b.html", '<html xmlns="x" xml:lang="en" lang="en"><p>a</p></html>', '<html xmlns="x" xml:lang="de" lang="de">'),
        ("c.html", "<html lang=en><p>a</p></html>", "<html lang=de><p>A</p></html>"),
    ],
)  # fmt: skip
def test_the_target_language_is_written(name, content, expected):
    out, _ = translated(Path(name), content.encode(), languages=Languages("en", "deu_Latn"))
    assert expected in out.decode()
    nothing, _ = translated(Path(name), content.encode(), lambda documents: [["" for _ in d] for d in documents])
    assert nothing.decode() == content


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh_Hant", "zh-Hant"), ("pt_BR", "pt-BR"), ("zho_Hans", "zh-Hans"), ("srp_Latn", "sr-Latn"), ("deu_Latn", "de")],
)
def test_script_and_region_of_the_target_language_stay(code, tag):
    languages = Languages("en", code)
    for name, content in (
        ("a.html", "<html lang=en><p>a b</p></html>"),
        ("a.xlf", XLIFF1.format(" source-language='en'")),
        ("a.tmx", TMX.format(f"<tu>{TUV.format('en')}</tu>")),
    ):
        assert tag in re.split("[\"'=> ]", translated(Path(name), content.encode(), languages=languages)[0].decode())
    run = '<w:r><w:rPr><w:lang w:val="en"/></w:rPr><w:t>a b</w:t></w:r>'
    word = packed(f'<w:document xmlns:w="w"><w:p>{run}</w:p></w:document>'.encode(), "docx")
    out, _ = translated(Path("a.docx"), word, languages=languages)
    assert f'w:val="{tag}"'.encode() in members(out)[PARTS["docx"]]
    assert f"Language: {code}\\n" in translated(Path("a.pot"), TEMPLATE.encode(), languages=languages)[0].decode()


def test_word_checks_the_spelling_of_the_target_language():
    run = '<w:r><w:rPr><w:lang w:eastAsia="zh-CN" w:val="{}"/></w:rPr><w:t>a b</w:t></w:r>'
    body = f'<w:document xmlns:w="w"><w:p>{run.format("en-US")}</w:p><w:p>{run.format("fr-FR")}</w:p></w:document>'
    out, _ = translated(Path("a.docx"), packed(body.encode(), "docx"))
    text = members(out)[PARTS["docx"]].decode()
    assert 'w:eastAsia="zh-CN" w:val="de"/>' in text
    assert 'w:val="fr-FR"' in text


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("de", 'fo:country="none" x="1" fo:language="de"'),
        ("pt_BR", 'fo:country="BR" x="1" fo:language="pt"'),
        ("zho_Hant", 'fo:country="none" x="1" fo:language="zh"'),
    ],
)
def test_opendocument_declares_the_target_language(lang, expected):
    style = '<style:text-properties fo:country="{1}" x="1" fo:language="{0}"/>'
    styles = style.format("en", "US") + style.format("fr", "FR") + "<s fo:language='en'/>"
    body = f'<a xmlns:fo="f" xmlns:style="s" xmlns:text="t">{styles}<text:p>a b</text:p></a>'
    languages = Languages("en", lang)
    out, _ = translated(Path("a.odt"), packed(body.encode(), "odt"), languages=languages)
    text = members(out)[PARTS["odt"]].decode()
    assert text == body.replace("a b", "A B").replace('fo:country="US" x="1" fo:language="en"', expected)
    nothing = packed(body.replace("a b", "1").encode(), "odt")
    assert translated(Path("a.odt"), nothing, languages=languages)[0] == nothing


SYNONYMS = [("pes", "fa"), ("ekk", "et"), ("msa", "ms"), ("iw", "he"), ("nn", "no"), ("nb", "no")]


def test_the_header_of_a_catalog_with_translations_stays():
    content = PO.format("Plural-Forms: nplurals=1; plural=0;") + '\nmsgid "b"\nmsgstr "c"\n'
    assert translated(Path("a.po"), content.encode())[0].decode().startswith(content[:50])


@pytest.mark.parametrize(
    ("code", "language"),
    [("de", "de"), ("DE-at", "de"), ("deu_Latn", "de"), ("pt_BR", "pt"), ("sr@latin", "sr"), *SYNONYMS],
)
def test_languages_of_codes(code, language):
    assert language_of(code) == language


# Templates of programs other than `xgettext`, which lacks an encoding.
UTF8 = {"charset=CHARSET": "charset=UTF-8"}
PROGRAMS = {
    "xgettext": {},
    "django": UTF8,
    "babel": UTF8 | {'"Language: \\n"\n': "", '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n': ""},
    "without flag": UTF8 | {"#, fuzzy\n": "", '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n': ""},
}
TEMPLATE = r"""# SOME DESCRIPTIVE TITLE.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: PACKAGE VERSION\n"
"POT-Creation-Date: 2024-01-01 00:00+0000\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\n"
"Language-Team: LANGUAGE <LL@li.org>\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#: a.c:1
#, c-format
msgid "one file %s"
msgid_plural "more files %s"
msgstr[0] ""
msgstr[1] ""

msgid "a ä"
msgstr ""
"""


@pytest.mark.parametrize(
    ("program", "lang"), [*(("xgettext", lang) for lang in PLURALS), *((program, "de") for program in PROGRAMS)]
)
def test_a_template_becomes_a_valid_catalog(program, lang, tmp_path):
    template = TEMPLATE
    for before, after in PROGRAMS[program].items():
        assert before in template
        template = template.replace(before, after)
    out, counts = translated(Path("app.pot"), template.encode(), languages=Languages("en", lang))
    assert counts.segments == 3
    (tmp_path / "app.po").write_bytes(out)
    catalog = polib.pofile(str(tmp_path / "app.po"))
    assert catalog.metadata["Language"] == lang
    assert catalog.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert f"nplurals={len(catalog[0].msgstr_plural)};" in catalog.metadata["Plural-Forms"]
    assert not catalog.metadata_is_fuzzy
    if which("msgfmt"):
        found = subprocess.run(
            ["msgfmt", "-c", "--use-fuzzy", "-o", "/dev/null", tmp_path / "app.po"], capture_output=True
        )
        assert found.returncode == 0, found.stderr.decode()
    else:
        pytest.skip("no msgfmt")
