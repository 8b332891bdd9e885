import pytest

from docmt.errors import UserError
from docmt.text.commands import learn_vocabulary
from docmt.text.vocabulary import BOS, EOD, EOS, MASK, N_SPECIALS, PAD, SPECIALS, UNK, Vocabulary, extra_specials


def test_specials_have_fixed_ids():
    assert (PAD, BOS, EOS, UNK, MASK, EOD) == (0, 1, 2, 3, 4, 5)
    assert Vocabulary.from_symbols([]).symbols == ("<pad>", "<s>", "</s>", "<unk>", "<mask>", "<eod>")


def test_symbols_are_sorted_by_decreasing_frequency_then_spelling():
    vocabulary = Vocabulary.from_sentences([["b", "a", "c@@"], ["c@@", "b", "a"], ["c@@", "z"], []])
    assert vocabulary.symbols[N_SPECIALS:] == ("c@@", "a", "b", "z")
    assert vocabulary.counts[N_SPECIALS:] == (3, 2, 2, 1)
    assert len(vocabulary) == N_SPECIALS + 4


@pytest.mark.parametrize("special", SPECIALS)
def test_text_cannot_name_a_special(special):
    vocabulary = Vocabulary.from_sentences([[special, "a"]])
    assert vocabulary.encode([special]) == [UNK]
    assert vocabulary.symbols.count(special) == 1


def test_save_and_load_keep_symbols_ids_and_counts(tmp_path):
    vocabulary = Vocabulary.from_sentences([["\u200b", "é", "@@@", "a\xadb", "é"]])
    vocabulary.save(tmp_path / "vocabulary.txt")
    loaded = Vocabulary.load(tmp_path / "vocabulary.txt")
    assert (loaded.symbols, loaded.counts) == (vocabulary.symbols, vocabulary.counts)
    assert (tmp_path / "vocabulary.txt").read_text("utf-8").splitlines()[N_SPECIALS] == "é\t2"


@pytest.mark.parametrize("symbols", [["a", "a"], ["a", "<s>"], ["a b"], ["a\u2028b"], [""]])
def test_impossible_symbols_are_refused(symbols):
    with pytest.raises(UserError, match="vocabulary"):
        Vocabulary.from_symbols(symbols)


HEAD = "".join(f"{special}\t0\n" for special in SPECIALS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "first lines"),
        ("a\t1\n", "first lines"),
        (HEAD + "a\n", "line 7"),
        (HEAD + "a\tmany\n", "line 7"),
        (HEAD + "a\t1\nb\t-1\n", "line 8"),
        (HEAD + "a\t2\na\t1\n", "duplicate"),
        (HEAD + "<s>\t2\n", "special"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, content, message):
    path = tmp_path / "vocabulary.txt"
    path.write_text(content, "utf-8")
    with pytest.raises(UserError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)


EXTRAS = ("[MASK1]", "[MASK2]", "<en>", "<de>")


def tagged(extras=EXTRAS):
    return Vocabulary.from_sentences([["b", "a", "b", "<en>", "[MASK1]"]], extras=extras)


def test_extra_specials_follow_the_fixed_ones():
    vocabulary = tagged(extra_specials(["en", "de"]))
    assert vocabulary.symbols == (*SPECIALS, *EXTRAS, "b", "a")
    assert (vocabulary.masks(), vocabulary.tag("en"), vocabulary.tag("de"), vocabulary.n_specials) == ((6, 7), 8, 9, 10)
    assert vocabulary.encode(["b", "<en>", "[MASK1]", "<de>"]) == [10, UNK, UNK, UNK]


@pytest.mark.parametrize("extras", [EXTRAS, ()])
def test_extra_specials_are_restored(tmp_path, extras):
    vocabulary = tagged(extras)
    vocabulary.save(tmp_path / "vocabulary.txt")
    for again in (Vocabulary.load(tmp_path / "vocabulary.txt"), Vocabulary.from_symbols(vocabulary.symbols)):
        assert again.symbols == vocabulary.symbols
        assert again.extras == extras
        assert again.encode(["a"]) == vocabulary.encode(["a"])


def test_a_vocabulary_without_tags_is_unchanged(tmp_path):
    (tmp_path / "text").write_text("a b a\n", "utf-8")
    learn_vocabulary(inputs=[tmp_path / "text"], out=tmp_path / "plain")
    learn_vocabulary(inputs=[tmp_path / "text"], out=tmp_path / "tagged", tags=["en", "de"])
    plain, tagged = ((tmp_path / name).read_text("utf-8").splitlines() for name in ("plain", "tagged"))
    assert plain[N_SPECIALS:] == ["a\t2", "b\t1"]
    assert tagged == [*plain[:N_SPECIALS], *(f"{extra}\t0" for extra in EXTRAS), *plain[N_SPECIALS:]]
    assert Vocabulary.load(tmp_path / "plain").n_specials == N_SPECIALS


@pytest.mark.parametrize("languages", [["EN"], ["english"], ["pad"], [""], ["en", "en"]])
def test_impossible_tags_are_refused(languages):
    with pytest.raises(UserError, match="tag"):
        extra_specials(languages)


def test_a_missing_tag_or_mask_is_named():
    with pytest.raises(UserError, match="language 'fr': the vocabulary has no tag <fr> \\(it has <en> <de>\\)"):
        tagged().tag("fr")
    plain = Vocabulary.from_symbols(["a"])
    with pytest.raises(UserError, match="it has none"):
        plain.tag("en")
    with pytest.raises(UserError, match=r"no \[MASK1\] and \[MASK2\]"):
        plain.masks()


def test_an_extra_special_among_the_subwords_is_refused():
    with pytest.raises(UserError, match="special"):
        Vocabulary.from_symbols([*EXTRAS, "a", "<en>"])
