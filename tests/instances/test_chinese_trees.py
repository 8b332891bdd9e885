"""Chinese: EDUs with jieba's words, and with a treebank's words, over subwords from the text stage."""

import pytest

from docmt.discourse.annotation import Annotator, PlainText, tokenize_batches
from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts
from docmt.discourse.other_parsers import baseline
from docmt.discourse.segmentation.segmenter import SegmenterOutput
from docmt.instances.trees import align_document
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.subwords import learn_merges
from docmt.text.tokenizer import sentence_words
from docmt.text.truecaser import Truecaser

LINES = [
    "他说,因为下雨,今天的会议取消了。",
    "我买了iPhone 4手机,花了1,299.50元(约合 USA $180)!",
    "",
    "“我不知道,”她小声地说,“可是R&D部门的a@b.cn知道……”",
    "𠮷野家的拉麵、寿司—都很好吃吗?",
    "  两 个 空格　和全角空格 。",
    "在北京大学读书的中国学生们",
]


class EveryWord:
    """A stand-in for a segmenter. Every word is an EDU."""

    def encode(self, sentences):
        return [SegmenterOutput(list(range(1, len(words))), None, None) for words in sentences]


def make_pipeline(**values):
    settings = TextSettings(**values)
    truecaser = Truecaser(("iPhone",) if settings.truecase else None)
    codes = learn_merges([" ".join(sentence_words(line, "zh")) for line in LINES], merges=20, min_frequency=1)
    return TextPipeline(settings, languages=("zh", "en"), truecasers={"zh": truecaser, "en": truecaser}, codes=codes)


def edus_over_subwords(placed, sentences):
    """Subwords of the EDUs, sentence by sentence."""
    lengths = iter(placed.edu_lengths.tolist())
    for subwords, n_edus in zip(sentences, placed.edu_counts.tolist(), strict=True):
        sizes = [next(lengths) for _ in range(n_edus)]
        sizes[0] -= 1  # the marks of the sentence
        sizes[-1] -= 1
        ends = [sum(sizes[: i + 1]) for i in range(n_edus)]
        yield [subwords[end - size : end] for size, end in zip(sizes, ends, strict=True)]


@pytest.mark.parametrize("values", [{}, {"truecase": False, "lowercase": True}])
def test_each_edu_is_exactly_its_subwords(values):
    pipeline = make_pipeline(**values)
    sentences = [pipeline.prepare(line, lang="zh") for line in LINES]
    assert any(subword.endswith("@@") for subwords in sentences for subword in subwords), "words of several subwords"
    (batch,) = tokenize_batches([PlainText("d", LINES)], lang="zh")
    (document,) = Annotator(lambda: (EveryWord(), baseline("chain"))).annotate(batch)
    assert len(document.edus) > 60
    assert document.sentences[2] == ()
    placed = align_document(document, sentences)
    assert placed.n_inexact == 0
    edu_subwords = [edu for sentence in edus_over_subwords(placed, sentences) for edu in sentence]
    for number, subwords in enumerate(edu_subwords):
        text = pipeline.restore(subwords, lang="zh").replace(" ", "")
        assert text.lower() == "".join(document.edu_words(number)).lower()


def test_boundaries_between_the_words_of_a_treebank():
    """A treebank may cut words where jieba does not. A boundary inside a text word moves to its end."""
    line = "在北京大学读书的中国学生们"
    assert sentence_words(line, "zh") == ("在", "北京大学", "读书", "的", "中国", "学生", "们")
    words = ("在", "北京", "大学", "读书", "的", "中国", "学生们")
    subwords = make_pipeline().prepare(line, lang="zh")
    for start, text in ((2, "在北京大学"), (3, "在北京大学"), (5, "在北京大学读书的"), (6, "在北京大学读书的中国")):
        edus = edus_from_starts([[start]], [len(words)])
        document = baseline("chain").parse(DiscourseDocument("d", (words,), edus))
        placed = align_document(document, [subwords])
        ((first, second),) = edus_over_subwords(placed, [subwords])
        assert placed.n_inexact == 0
        assert [make_pipeline().restore(part, lang="zh") for part in (first, second)] == [text, line[len(text) :]]
