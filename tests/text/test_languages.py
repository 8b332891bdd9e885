"""Language codes in all spellings lead to the same tokenizer, spacing and metrics."""

import gzip

import pytest
from architectures import slow_but

from docmt.cli.main import main
from docmt.evaluation.metrics import EvaluationSettings
from docmt.evaluation.references import read_user_references
from docmt.evaluation.scoring import bleu, ter
from docmt.languages import WITHOUT_BLANKS, has_blanks, language_of
from docmt.text.tokenizer import LANGUAGES, get_tokenizer

SPELLINGS = {
    "ar": "ar ara ar-EG arb_Arab", "bg": "bg bul bg-BG bul_Cyrl", "bn": "bn ben bn-BD ben_Beng",
    "ca": "ca cat ca-ES cat_Latn", "cs": "cs ces cs_CZ cze", "da": "da dan da-DK dan_Latn", "de": "de deu de-AT ger",
    "el": "el ell el-GR gre", "en": "en eng en_US eng_Latn", "es": "es spa es-419 ES", "et": "et est et-EE ekk_Latn",
    "fa": "fa fas fa_IR pes_Arab", "fi": "fi fin fi-FI fin_Latn", "fr": "fr fra fr-CA fre", "he": "he heb he-IL iw",
    "hi": "hi hin hi-IN hin_Deva", "hr": "hr hrv hr-HR hrv_Latn", "hu": "hu hun hu-HU hun_Latn",
    "id": "id ind id-ID ind_Latn", "it": "it ita it-IT ita_Latn", "ja": "ja jpn ja-JP jpn_Jpan",
    "km": "km khm km-KH khm_Khmr", "ko": "ko kor ko-KR kor_Hang", "lo": "lo lao lo-LA lao_Laoo",
    "lt": "lt lit lt-LT lit_Latn", "lv": "lv lav lv-LV lvs_Latn", "ms": "ms msa ms-MY zsm", "my": "my mya my-MM bur",
    "nl": "nl nld nl-BE dut", "no": "no nor nb nno", "pl": "pl pol pl-PL pol_Latn", "pt": "pt por pt_BR por_Latn",
    "ro": "ro ron ro-RO rum", "ru": "ru rus ru-RU rus_Cyrl", "sk": "sk slk sk-SK slo", "sl": "sl slv sl-SI slv_Latn",
    "sr": "sr srp sr-Latn sr@latin srp_Cyrl", "sv": "sv swe sv-SE swe_Latn", "th": "th tha th-TH tha_Thai",
    "tr": "tr tur tr-TR tur_Latn", "uk": "uk ukr uk-UA ukr_Cyrl", "vi": "vi vie vi-VN vie_Latn",
    "zh": "zh zho zh-CN zh_Hans zh-TW zho_Hant cmn yue chi",
}  # fmt: skip
TEXT = {
    "zh": "我们在图书馆里看书。\n他昨天没有来上课。\n",
    "ja": "私たちは図書館で本を読みます。\n彼は昨日来ませんでした。\n",
    "ko": "우리는 도서관에서 책을 읽습니다.\n그는 어제 수업에 오지 않았습니다.\n",
    "th": "เราอ่านหนังสือในห้องสมุด\nเมื่อวานเขาไม่มาเรียน\n",
    "km": "យើងអានសៀវភៅនៅក្នុងបណ្ណាល័យ។\n",
    "lo": "ພວກເຮົາອ່ານປຶ້ມຢູ່ໃນຫ້ອງສະໝຸດ\n",
    "my": "ငါတို့စာကြည့်တိုက်မှာစာဖတ်တယ်။\n",
}
WORDS = "We read a few books in the library .\nHe did not come to the lesson yesterday .\n"


@pytest.mark.parametrize("language", slow_but(("de", "en", "zh", "ja", "pt"), SPELLINGS))
def test_all_spellings_are_one_language(language, tmp_path, capsys):
    """Identical text scores 100, or is refused with a solution."""
    (tmp_path / "text").write_text(TEXT.get(language, WORDS), encoding="utf-8")
    outcomes = set()
    for code in SPELLINGS[language].split():
        assert language_of(code) == language
        assert has_blanks(code) == (language not in WITHOUT_BLANKS)
        call = ["evaluate", "compare", "--references", f"{tmp_path}/text", "--hypotheses", f"a={tmp_path}/text"]
        is_done = main([*call, "--tgt-lang", code, "--settings", '{"metrics": ["s-BLEU"]}']) == 0
        output = capsys.readouterr()
        assert "100.00" in output.out if is_done else "set evaluation.bleu_tokenizer to char" in output.err
        assert main([*call, "--tgt-lang", code, "--settings", '{"metrics": ["s-BLEU"], "bleu_tokenizer": "char"}']) == 0
        assert "100.00" in capsys.readouterr().out
        outcomes.add(is_done)
        if language in LANGUAGES:
            tokenizer, plain = get_tokenizer(code), get_tokenizer(language)
            for line in TEXT.get(language, WORDS).splitlines():
                assert tokenizer.tokenize(line) == plain.tokenize(line)
                assert tokenizer.detokenize(tokenizer.tokenize(line)) == line
    assert len(outcomes) == 1


def test_markup_is_not_scored(tmp_path, capsys):
    (tmp_path / "text").write_text(WORDS)
    (tmp_path / "text.sgm").write_text('<refset><doc docid="a"><seg id="1">A .</seg></doc></refset>')
    for reference, hypothesis in (("text.sgm", "text"), ("text", "text.sgm")):
        call = ["evaluate", "compare", "--references", f"{tmp_path}/{reference}", "--tgt-lang", "en"]
        assert main([*call, "--hypotheses", f"a={tmp_path}/{hypothesis}"]) == 2
        assert "text.sgm: is SGML or XML: write its segments as text, one per line" in capsys.readouterr().err


def test_index_next_to_a_compressed_reference(tmp_path):
    (tmp_path / "r.de.gz").write_bytes(gzip.compress(b"a b\nc d\n"))
    (tmp_path / "r.documents.tsv").write_text("document\tn_sentences\nx\t1\ny\t1\n")
    assert read_user_references([tmp_path / "r.de.gz"])[0].ids == ("x", "y")


def test_metrics_of_words_say_what_they_cannot_count(tmp_path, capsys):
    (tmp_path / "text").write_text(TEXT["th"], encoding="utf-8")
    call = ["evaluate", "compare", "--references", f"{tmp_path}/text", "--hypotheses", f"a={tmp_path}/text"]
    for metric in ("chrF++", "TER"):
        settings = f'{{"metrics": ["{metric}"], "bleu_tokenizer": "char"}}'
        assert main([*call, "--tgt-lang", "tha", "--settings", settings]) == 2
        assert f"{metric}: tha does not separate words by blanks" in capsys.readouterr().err
    settings = '{"metrics": ["tokenized s-BLEU", "chrF"], "bleu_tokenizer": "char"}'
    assert main([*call, "--tgt-lang", "th", "--settings", settings]) == 0
    assert "tokenized s-BLEU is not computed: th does not separate words by blanks" in capsys.readouterr().err


def test_sacrebleu_gets_the_language():
    settings = EvaluationSettings()
    assert bleu(settings, "cmn_Hans").tokenizer_signature == "zh"
    assert ter(settings, "zh-TW").tokenizer._asian_support
