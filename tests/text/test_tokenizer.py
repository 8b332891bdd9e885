import marshal
import re
import subprocess
import sys
import time

import pytest
from sacremoses import MosesTokenizer, MosesTruecaser
from sacremoses.corpus import NonbreakingPrefixes, Perluniprops

from docmt.errors import UserError
from docmt.text import spacing, truecaser
from docmt.text.tokenizer import LANGUAGES, Tokenizer, clean, get_tokenizer, plain_tokens

GENERAL = {
    "ar": "قال: «مرحبا بالعالم»، كيف حالك؟ أنا بخير (٢٠٢٤).",
    "bg": "Здравей, свят! „Как си?“ 10 лв.",
    "da": "Hej verden, »hvordan« går det?",
    "ko": "안녕하세요, 세계! “어떻게” 지내세요? 3.5%",
    "no": "Hei verden, «hvordan» går det?",
    "tr": "Merhaba dünya, nasılsın? Ali'nin evi 3,5 km.",
    "uk": "Привіт, світе! „Як справи?“ Об'єкт №5.",
    "vi": "Xin chào thế giới, bạn khỏe không? “Tôi khỏe.”",
}
"""Text in languages for which Moses only has general rules."""

GOLDEN = [
    ("en", "Don't, we'll see: it's John's.", "Don &apos;t , we &apos;ll see : it &apos;s John &apos;s ."),
    ("en", "The dogs' tails.", "The dogs &apos; tails ."),
    ("en", "Mr. Smith paid $1,234.56 (U.S.) in 1990.", "Mr. Smith paid $ 1,234.56 ( U.S. ) in 1990 ."),
    ("en", 'He said: "A well-known one..."', "He said : &quot; A well-known one ... &quot;"),
    ("en", "See https://example.org/a_b?c=1&d", "See https : / / example.org / a _ b ? c = 1 &amp; d"),
    ("en", "Both <b> and | [x] & more", "Both &lt; b &gt; and &#124; &#91; x &#93; &amp; more"),
    ("de", "Das ist z. B. Dr. Müllers „Haus“.", "Das ist z. B. Dr. Müllers „ Haus “ ."),
    ("de", "Am 3. Oktober 1990 kostete es 2,50 €.", "Am 3. Oktober 1990 kostete es 2,50 € ."),
    ("de", "Wie geht's, 10%?", "Wie geht &apos; s , 10 % ?"),
    ("de", "Nord-Süd-Konflikt und/oder Über-Ich", "Nord-Süd-Konflikt und / oder Über-Ich"),
    ("ru", "«Да», — сказал он, т. е. 5 руб.", "« Да » , — сказал он , т. е. 5 руб."),
    ("ru", "В 2019 г. было так…", "В 2019 г. было так …"),
]
"""Language, text, and Moses tokens."""


def test_constants_of_moses_are_copied_right():
    """Importing them would take 0.4 seconds in commands that split no text."""
    assert set(NonbreakingPrefixes().available_langs.values()) == (LANGUAGES - set(GENERAL)) | {"yue"}
    assert re.escape("".join(Perluniprops().chars("IsSc")).strip()) == spacing._CURRENCY
    assert truecaser._BEFORE_FIRST_WORD >= MosesTruecaser().DELAYED_SENT_START


@pytest.mark.parametrize(("lang", "text", "expected"), GOLDEN)
def test_tokens_without_marks_are_those_of_moses(lang, text, expected):
    assert " ".join(MosesTokenizer(lang).tokenize(text)) == expected
    tokenizer = get_tokenizer(lang)
    assert " ".join(plain_tokens(tokenizer.tokenize(text))) == expected
    assert tokenizer.detokenize(tokenizer.tokenize(text)) == text


@pytest.mark.parametrize(
    ("lang", "text", "marked"),
    [
        ("en", "and/or", "and @/@ or"),
        ("en", "A 10 % share", "A 10 ▁ % share"),
        ("en", "it’s", "it @’@ s"),
        ("de", "geht's", "geht @&apos;@ s"),
        ("en", '"No," he said.', "&quot; No , &quot; he said ."),
        ("en", 'a 5" pipe', "a 5 @&quot; pipe"),
        ("en", "#1 or a@b.org", "#@ 1 or a @&#64;@ b.org"),
        ("en", "a ▁ b @-@ c", "a &#9601; b &#64; @- @&#64; c"),
        ("zh", "我买了iPhone 4手机。", "我 买 了 iPhone 4 手机 。"),
        ("zh", "哦， 好！", "哦 ， ▁ 好 ！"),
    ],
)
def test_marks_only_where_a_detokenizer_would_guess_wrong(lang, text, marked):
    tokenizer = get_tokenizer(lang)
    assert " ".join(tokenizer.tokenize(text)) == marked
    assert tokenizer.detokenize(marked.split(" ")) == text


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        ("", ""),
        (" \t\u3000\u2028\x85 ", ""),
        ("a\xa0b\u2028c\x85d\re\x0bf\x1cg\tk", "a b c d e f g k"),
        ("a\x00\x07b \x01 c", "ab c"),
        ("\ufeffa\u200bb", "\ufeffa\u200bb"),
    ],
)
def test_white_space_of_any_kind_becomes_one_space(line, cleaned):
    assert clean(line) == cleaned
    for lang in ("en", "zh"):
        tokens = get_tokenizer(lang).tokenize(line)
        assert all(token.split() == [token] for token in tokens)
        assert get_tokenizer(lang).detokenize(tokens) == cleaned


@pytest.mark.parametrize("text", ["DOTMULTI", "x DOTDOTMULTI, y", "THISISPROTECTED000", "_ELLIPSIS_", "&lt;s&gt; <s>"])
def test_text_may_contain_internal_markers_of_the_library(text):
    tokenizer = get_tokenizer("en")
    assert tokenizer.detokenize(tokenizer.tokenize(text)) == text


def test_normalize_gives_what_detokenization_restores():
    tokenizer = Tokenizer("de", normalize=True, lowercase=True)
    text = "„Ja“ – SAGTE  er…"
    assert tokenizer.normalize(text) == '"ja" - sagte er...'
    assert tokenizer.detokenize(tokenizer.tokenize(text)) == '"ja" - sagte er...'


@pytest.mark.parametrize("lang", GENERAL)
def test_general_rules_follow_moses(lang):
    tokenizer = Tokenizer(lang)
    tokens = tokenizer.tokenize(GENERAL[lang])
    assert tokenizer.detokenize(tokens) == GENERAL[lang]
    assert " ".join(plain_tokens(tokens)) == MosesTokenizer(lang).tokenize(GENERAL[lang], return_str=True)
    assert len(tokens) > len(GENERAL[lang].split())


@pytest.mark.parametrize(
    ("lang", "message"),
    [
        *((lang, f"language '{lang}' does not separate words by blanks") for lang in ("ja", "th")),
        *((lang, f"unknown language '{lang}'") for lang in ("xx", "", "german")),
    ],
)
def test_unsupported_language_is_refused(lang, message):
    with pytest.raises(UserError, match=message):
        Tokenizer(lang)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("unit", ["word ", "a.b. ", '" ', "/", ". ", "é-é", "中"])
def test_very_long_lines_take_little_time(lang, unit):
    text = (unit * 10_000).strip()
    tokenizer = get_tokenizer(lang)
    start = time.perf_counter()
    assert tokenizer.detokenize(tokenizer.tokenize(text)) == text
    assert time.perf_counter() - start < 20


@pytest.mark.slow
def test_a_cache_of_others_changes_no_word(tmp_path):
    """`jieba.cut` would read this file in the folder for temporary files, and cut every character off."""
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({}, 1)))
    code = "from docmt.text.tokenizer import chinese_words; print(*chinese_words('我来到北京清华大学'))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["我", "来到", "北京", "清华大学"]
    assert [file.name for file in tmp_path.iterdir()] == ["jieba.cache"]
    assert (tmp_path / "jieba.cache").stat().st_size < 100
