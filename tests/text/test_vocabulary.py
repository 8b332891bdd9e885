import pytest

from docmt.errors import UserError
from docmt.text.vocabulary import BOS, EOD, EOS, MASK, N_SPECIALS, PAD, SPECIALS, UNK, Vocabulary


def test_specials_have_fixed_ids():
    assert (PAD, BOS, EOS, UNK, MASK, EOD) == (0, 1, 2, 3, 4, 5)
    assert Vocabulary.from_symbols([]).symbols == ("<pad>", "<s>", "</s>", "<unk>", "<mask>", "<eod>")


def test_symbols_are_sorted_by_falling_frequency_then_spelling():
    vocabulary = Vocabulary.from_sentences([["b", "a", "c@@"], ["c@@", "b", "a"], ["c@@", "z"], []])
    assert vocabulary.symbols[N_SPECIALS:] == ("c@@", "a", "b", "z")
    assert vocabulary.counts[N_SPECIALS:] == (3, 2, 2, 1)
    assert len(vocabulary) == N_SPECIALS + 4


def test_encode_and_decode_are_inverse_on_known_symbols():
    vocabulary = Vocabulary.from_symbols(["the", "c@@", "at"])
    assert vocabulary.encode(["c@@", "at", "the"]) == [7, 8, 6]
    assert vocabulary.decode([BOS, 7, 8, EOS]) == ["<s>", "c@@", "at", "</s>"]
    assert vocabulary.encode(["dog"]) == [UNK]


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


def test_from_symbols_takes_all_symbols_or_those_without_specials():
    vocabulary = Vocabulary.from_symbols(["a", "b"])
    assert Vocabulary.from_symbols(vocabulary.symbols).symbols == vocabulary.symbols


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
        (HEAD + "a\t2\na\t1\n", "stands twice"),
        (HEAD + "<s>\t2\n", "special"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, content, message):
    path = tmp_path / "vocabulary.txt"
    path.write_text(content, "utf-8")
    with pytest.raises(UserError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)
