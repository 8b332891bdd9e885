import pytest
from sacremoses import MosesTokenizer, MosesTruecaser

from docmt.errors import UserError
from docmt.text.tokenizer import get_tokenizer
from docmt.text.truecaser import Truecaser, count_forms, restore_case

TEXT = [
    "The man saw the dog. Then he left.",
    "She saw The Times and the TIMES in Berlin.",
    'He said: "The end", then (maybe) Then.',
    "I saw iPhones; we like berlin and Berlin.",
    "the end/Beginning was then 10% Better, I'd say.",
    "",
]


@pytest.fixture
def truecaser():
    return Truecaser(["the", "a", "und", "не"])


def test_learning_equals_moses():
    moses = MosesTruecaser().train([MosesTokenizer("en").tokenize(line) for line in TEXT])
    learned = Truecaser.learn(count_forms(" ".join(get_tokenizer("en").tokenize(line)) for line in TEXT))
    assert learned.words == {lower for lower, form in moses["best"].items() if form == lower}
    assert {"the", "saw", "end"} <= learned.words
    assert learned.words.isdisjoint({"berlin", "i", "iphones"})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The dog", "the dog"),
        ("Berlin is", "Berlin is"),
        ("THE DOG", "THE DOG"),
        ("tHe dog", "tHe dog"),
        ("iPhone is", "iPhone is"),
        ("the dog", "▁ the dog"),
        ("dog The", "▁ dog The"),
        ("A", "a"),
        ("&quot; ( The dog", "&quot; ( the dog"),
        ("„ Und dann", "„ und dann"),
        ("Не так", "не так"),
        ("&quot;@ The@ dog", "&quot;@ the@ dog"),
        ("- The", "- The"),
        ("So . The dog", "So . The dog"),
        ("İstanbul", "İstanbul"),
        ("ŉ", "▁ ŉ"),
        ("中文", "中文"),
        ("...", "..."),
        ("( )", "( )"),
        ("", ""),
    ],
)
def test_truecasing_is_undone_by_restore_case(truecaser, line, expected):
    tokens = line.split(" ")
    truecased = truecaser.truecase(tokens)
    assert " ".join(truecased) == expected
    assert restore_case(truecased) == tokens


@pytest.mark.parametrize("words", [None, [], ["a", "é"]])
def test_save_and_load(tmp_path, words):
    Truecaser(words).save(tmp_path / "truecaser.json")
    assert Truecaser.load(tmp_path / "truecaser.json").words == Truecaser(words).words


@pytest.mark.parametrize("content", ["[]", "{}", '{"lower_case_words": 3}', '{"lower_case_words": [1]}'])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "truecaser.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match="not a truecaser"):
        Truecaser.load(tmp_path / "truecaser.json")
