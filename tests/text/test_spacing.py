import pytest

from docmt.text.spacing import Spacing, escape, split_marks, unescape


@pytest.mark.parametrize(
    ("lang", "tokens", "text"),
    [
        ("en", "“ So ” , he said .", "“So”, he said."),
        ("de", "„ So “ , sagte er .", "„So“, sagte er."),
        ("de", "» So « , sagte er .", "»So«, sagte er."),
        ("ru", "« Да » , сказал он .", "«Да», сказал он."),
        ("fr", "« Oui » , dit-il !", "« Oui », dit-il !"),
        ("en", "&quot; One &quot; and &quot; two &quot; .", '"One" and "two".'),
        ("en", "the dogs &apos; tails", "the dogs' tails"),
        ("en", "( see [ 1 ] ) costs $ 5 ; 10 % ...", "(see [1]) costs $5; 10%..."),
        ("en", "wo n &apos;t", "wo n't"),
        ("fr", "l&apos; homme", "l'homme"),
        ("zh", "我 用 iPhone 4 “ 好 ” ， 3 个 。", "我用iPhone 4“好”，3个。"),
        ("en", "and @/@ or", "and/or"),
        ("en", "10 ▁ %", "10 %"),
        ("en", "▁ a ▁", "a"),
        ("en", "@ a@ @b @@ c", "@ ab@ c"),
        ("en", "", ""),
    ],
)
def test_join_guesses_spaces_and_obeys_marks(lang, tokens, text):
    assert Spacing(lang).join(tokens.split(" ")) == text


@pytest.mark.parametrize("text", ["&amp;", "&", "<s>", "@/@", "▁", "&#64;", "a|b[c]'\"", "&amp;lt;"])
def test_escapes_are_undone_and_hide_marks(text):
    assert unescape(escape(text)) == text
    assert split_marks(escape(text)) == (False, escape(text), False)
