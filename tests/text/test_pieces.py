"""SentencePiece, as an alternative to words and BPE."""

import json
import pickle
import random

import pytest

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.text.pipeline import TextPipeline
from docmt.text.roundtrip import measure_roundtrip
from docmt.text.settings import TextSettings
from docmt.text.subwords import learn_sentencepiece
from docmt.text.truecaser import Truecaser

pytest.importorskip("sentencepiece")

SETTINGS = TextSettings(tokenization="sentencepiece", truecase=False, sentencepiece_size=400)
SYLLABLES = {
    "ja": "わたし は 毎日 東京 で コーヒー を 飲み ます 。 「 はい 」 と 言った 、 2024 年 ABC ？",
    "th": "ฉัน ดื่ม กาแฟ ทุกวัน ที่ กรุงเทพฯ และ เขา พูด ว่า ไม่ ได้ ๑๒๓ น้ำ ผู้ เล็ก ๆ",
    "ar": "أنا أشربُ القهوةَ كلَّ يوم ، في القاهرة ؟ قال « نعم » لا 2024 المدرسة",
    "en": "the dog doesn't see a house , it's 10 % of @-@ &amp; \"yes\" |",
}
JOINER = {"ja": "", "th": "", "ar": " ", "en": " "}


def lines(lang, n=1000, seed=0):
    """Generated lines. Thai has some spaces, as between its phrases."""
    draw = random.Random(f"{lang}{seed}")
    texts = [JOINER[lang].join(draw.choices(SYLLABLES[lang].split(), k=draw.randint(1, 12))) for _ in range(n)]
    return [f"{line} {line[::-1]}" if lang == "th" and draw.random() < 0.3 else line for line in texts]


@pytest.fixture(scope="module", params=["ja", "th", "ar"])
def pair(request):
    lang = request.param
    codes = learn_sentencepiece(lines(lang) + lines("en"), size=SETTINGS.sentencepiece_size)
    return lang, make(lang, codes)


def make(lang, codes, **values):
    settings = SETTINGS.model_copy(update=values)
    truecasers = {lang: Truecaser(None), "en": Truecaser(None)}
    return TextPipeline(settings, languages=(lang, "en"), truecasers=truecasers, codes=codes)


def test_unseen_text_is_restored(pair):
    lang, pipeline = pair
    for each in (lang, "en"):
        statistics = measure_roundtrip(pipeline, lines(each, seed=1), lang=each)
        assert statistics["lines"] == 1000
        assert statistics["share"] >= 99.9, statistics["examples"]


def test_pieces_are_words_of_a_line_of_subwords(pair):
    lang, pipeline = pair
    for line in lines(lang, 200, seed=2):
        pieces = pipeline.prepare(line, lang=lang)
        assert all(piece.split() == [piece] for piece in pieces)
    assert max(len(pipeline.prepare(line, lang=lang)) for line in lines(lang, 50)) < 60


def test_characters_that_were_never_seen_come_back(pair):
    lang, pipeline = pair
    assert pipeline.restore(pipeline.prepare("한국어 ☃ x", lang=lang), lang=lang) == "한국어 ☃ x"


def test_an_empty_line_has_no_pieces(pair):
    lang, pipeline = pair
    assert pipeline.prepare(" \t", lang=lang) == []
    assert pipeline.restore([], lang=lang) == ""


def test_a_pipeline_survives_its_file_and_other_processes(pair, tmp_path):
    lang, pipeline = pair
    pipeline.save(tmp_path / "pipeline.json")
    line = lines(lang, 1, seed=3)[0]
    for copy in (TextPipeline.load(tmp_path / "pipeline.json"), pickle.loads(pickle.dumps(pipeline))):
        assert copy.prepare(line, lang=lang) == pipeline.prepare(line, lang=lang)


def test_learning_twice_gives_the_same_codes():
    text = lines("ja", 200)
    assert learn_sentencepiece(text, size=100) == learn_sentencepiece(text, size=100)


def test_lines_that_cannot_be_learned_are_counted(caplog):
    text = lines("en", 200)
    codes = learn_sentencepiece([*text, "a \u2585 b", "x" * 70_000], size=100)
    assert codes == learn_sentencepiece(text, size=100)
    assert "learning pieces without 2 lines" in caplog.text


def run(command):
    assert main(["text", *command.split()]) == 0


def test_workflow_commands_learn_and_apply(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS.model_dump()))
    for lang in ("th", "en"):
        (tmp_path / f"train.{lang}").write_text("\n".join(lines(lang, 300)) + "\n", encoding="utf-8")
        run(f"tokenize --settings @settings.json --lang {lang} --input train.{lang} --out tok.{lang}")
        run(f"learn-truecaser --settings @settings.json --input tok.{lang} --out true.{lang}.json")
    run("learn-bpe --settings @settings.json --inputs tok.th tok.en --out codes")
    run("apply-bpe --codes codes --lang th --input tok.th --out bpe.th")
    packed = "--truecasers true.th.json true.en.json --codes codes --out pipeline.json"
    run(f"save-pipeline --settings @settings.json --src-lang th --tgt-lang en {packed}")
    pipeline = TextPipeline.load(tmp_path / "pipeline.json")
    split = (tmp_path / "bpe.th").read_text(encoding="utf-8").splitlines()
    assert split == [" ".join(pipeline.prepare(line, lang="th")) for line in lines("th", 300)]
    run("count-roundtrip --pipeline pipeline.json --inputs train.th --out count.json")
    assert json.loads((tmp_path / "count.json").read_text())["languages"]["th"]["share"] == 100


@pytest.mark.parametrize("codes", ['{"sentencepiece": {"en": "!"}}', '{"other": 1}', "{"])
def test_damaged_codes_are_named(codes):
    with pytest.raises(UserError, match="SentencePiece"):
        make("ja", codes).prepare("x", lang="en")


def test_truecasing_is_refused():
    with pytest.raises(UserError, match="set truecase to false"):
        TextSettings.load({"tokenization": "sentencepiece"}, where="text")


def test_edus_are_placed_by_pieces(pair):
    """Every piece is a token, so that a boundary in text without spaces does not move to its end."""
    from docmt.instances.trees import _tokens

    lang, pipeline = pair
    for line in lines(lang, 100, seed=4):
        pieces = pipeline.prepare(line, lang=lang)
        texts, firsts = _tokens(pieces)
        assert "".join(texts) == line.replace(" ", "")
        if len(pieces) > 1 and pieces[0] != "▁":
            assert firsts == list(range(len(pieces)))
