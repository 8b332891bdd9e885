import gzip
import os
from pathlib import Path

import pytest

from docmt.text.pipeline import TextPipeline
from docmt.text.roundtrip import find_cause, measure_roundtrip
from docmt.text.settings import TextSettings
from docmt.text.subwords import learn_merges
from docmt.text.tokenizer import get_tokenizer
from docmt.text.truecaser import Truecaser, count_forms


@pytest.mark.parametrize(
    ("line", "restored", "cause"),
    [
        ("a  b ", "a b", "white space"),
        ("a\xa0b", "a b", "white space"),
        ("the end", "The end", "first letter in lower case"),
        ('"the end', '"The end', "first letter in lower case"),
        ("see The End", "see the End", "case elsewhere"),
        ("THE", "the", "case elsewhere"),
        ("10 %", "10%", "blanks between tokens"),
        ("10\xa0%", "10%", "blanks between tokens"),
        ("„a“ ‘b’", "\"a\" 'b'", "quotes"),
        ("a–b — c", "a-b - c", "dashes"),
        ("well…", "well...", "ellipses"),
        ("„a“ – b", '"a" - b', "punctuation of several kinds"),
        ('"a", b', '"a," b', "punctuation of several kinds"),
        ("a\x07b", "ab", "control characters"),
        ("ab", "ac", "other"),
        ("ab", "", "other"),
    ],
)
def test_causes(line, restored, cause):
    assert find_cause(line, restored) == cause


def test_normalization_is_counted_by_cause():
    truecasers = {"en": Truecaser([]), "de": Truecaser([])}
    codes = learn_merges(["ab ab"], merges=1, min_frequency=1)
    settings = TextSettings(normalize=True)
    pipeline = TextPipeline(settings, languages=("en", "de"), truecasers=truecasers, codes=codes)
    lines = ["Plain.", "“So.”", "A – b", "  x", "Well…"] + ["„Q“"] * 9
    result = measure_roundtrip(pipeline, lines, lang="de")
    assert (result["lines"], result["restored"], result["share"]) == (14, 1, 7.143)
    assert result["causes"] == {"quotes": 10, "dashes": 1, "white space": 1, "ellipses": 1}
    assert len(result["examples"]["quotes"]) == 5
    assert result["examples"]["dashes"] == [{"line": "A – b", "restored": "A - b"}]


REAL = [
    ("msctd/enzh/chinese_dev.txt.gz", "zh"),
    *(
        pytest.param(*file, marks=pytest.mark.slow)
        for file in (
            ("maruf2019-ende/NC-2016/concatenated_en2de_test_{}.txt.gz", "en"),
            ("maruf2019-ende/NC-2016/concatenated_en2de_test_{}.txt.gz", "de"),
            ("maruf2019-ende/IWSLT2017/concatenated_en2de_test_{}.txt.gz", "de"),
            ("bible/RusSynodal.txt.gz", "ru"),
        )
    ),
]


@pytest.mark.mirror
@pytest.mark.parametrize(("name", "lang"), REAL)
def test_real_lines_are_restored_except_for_white_space(name, lang):
    if "DOCMT_MIRROR" not in os.environ:
        pytest.skip("DOCMT_MIRROR is not set")
    path = Path(os.environ["DOCMT_MIRROR"]) / name.format(lang)
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:3000]
    other = "de" if lang == "en" else "en"
    tokenized = [" ".join(get_tokenizer(lang).tokenize(line)) for line in lines]
    pipeline = TextPipeline(
        TextSettings(),
        languages=(lang, other),
        truecasers={lang: Truecaser.learn(count_forms(tokenized)), other: Truecaser([])},
        codes=learn_merges(tokenized[:500], merges=200, min_frequency=2),
    )
    result = measure_roundtrip(pipeline, lines, lang=lang)
    assert set(result["causes"]) <= {"white space"}
    assert result["share_but_white_space"] == 100
