import io

import pytest
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from docmt.errors import UserError
from docmt.text.subwords import HEADER, BpeModel, learn_merges, read_codes

LINES = ["low lower lowest", "new newer newest", "wide wider widest @/@ &#64;", ""]


def test_learning_and_applying_equal_the_library():
    codes = learn_merges(LINES, merges=20, min_frequency=2)
    expected = io.StringIO()
    learn_bpe(LINES, expected, 20)
    assert codes == expected.getvalue()
    bpe = BPE(io.StringIO(codes))
    for line in LINES:
        assert " ".join(BpeModel(codes).split(line.split(" "))) == bpe.segment(line)


def test_rare_words_are_counted(monkeypatch, caplog):
    """Their number is limited to save memory. Words before the limit are counted as usual."""
    rare = [" ".join(f"rare{n}x{i}" for i in range(7)) for n in range(9)]
    frequent = LINES * 3
    expected = learn_merges(frequent, merges=20, min_frequency=2)
    n_types = len({word for line in frequent for word in line.split()})
    assert learn_merges([*frequent, *rare], merges=20, min_frequency=2) != expected
    monkeypatch.setattr("docmt.text.subwords.MAX_TYPES", n_types)
    assert learn_merges(frequent, merges=20, min_frequency=2) == expected
    assert not caplog.records
    assert learn_merges([*frequent, *rare], merges=20, min_frequency=2) == expected
    assert f"on the {n_types} most frequent words; 63 rarer words are omitted" in caplog.text


def test_learning_is_silent_in_logs(capfd):
    learn_merges(LINES, merges=2000, min_frequency=2)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("lines", [["a b", "c"], ["ab cd"]])
def test_text_without_a_frequent_pair_gives_no_merges(lines):
    codes = learn_merges(lines, merges=10, min_frequency=2)
    assert codes == HEADER + "\n"
    assert BpeModel(codes).split(["abc", "d"]) == ["a@@", "b@@", "c", "d"]


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_no_text_is_refused(lines):
    with pytest.raises(UserError, match="no text"):
        learn_merges(lines, merges=10, min_frequency=2)


@pytest.mark.parametrize(
    ("subwords", "tokens"),
    [
        ([], []),
        (["a@@", "b", "c"], ["ab", "c"]),
        (["@@@", "/@@", "@"], ["@/@"]),
        (["a", "b@@"], ["a", "b"]),
        (["@@"], []),
        (["a@@", "b@@"], ["ab"]),
    ],
)
def test_joining(subwords, tokens):
    assert BpeModel(HEADER).join(subwords) == tokens


@pytest.mark.parametrize("token", ["@/@", "▁", "&#64;", "@&#64;@", "a", "ab", "x\u0301", "👩"])
@pytest.mark.parametrize("merges", [1, 50])
def test_every_token_is_restored(token, merges):
    subwords = BpeModel(learn_merges(LINES, merges=merges, min_frequency=1))
    assert subwords.join(subwords.split([token, "x", token])) == [token, "x", token]


@pytest.mark.parametrize("content", ["", "a b\n", f"{HEADER}\na\n", f"{HEADER}\na b c\n", f"{HEADER}\na b\n\nc d\n"])
def test_malformed_codes_are_refused(tmp_path, content):
    (tmp_path / "bpe.codes").write_text(content, "utf-8")
    with pytest.raises(UserError, match="line"):
        read_codes(tmp_path / "bpe.codes")
