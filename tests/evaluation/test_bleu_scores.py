"""Translation scores compared with an independent oracle and with fixed numbers, and scores of ugly input."""

import math
import random
from collections import Counter

import pytest
from evaluation_fixtures import REFERENCE, by_metric, make_hypotheses, make_test
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from docmt.evaluation.hypotheses import join_segments
from docmt.evaluation.metrics import EvaluationSettings, find_metric, score_bleu, score_translations
from docmt.evaluation.scoring import bleu
from docmt.evaluation.words import tokenized_texts, word_splitter

SETTINGS = EvaluationSettings()


def scores_by_metric(hypotheses, *references, settings=SETTINGS, tgt_lang="de"):
    return by_metric(score_bleu(make_test(hypotheses, *references, settings=settings, tgt_lang=tgt_lang)))


def multi_bleu(hypotheses, references):
    """BLEU of words between blanks, as Papineni et al. define it: corpus level, four orders, no smoothing."""
    right, total, n_hypothesis, n_reference = Counter(), Counter(), 0, 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = hypothesis.split(" ") if hypothesis else [], reference.split(" ") if reference else []
        n_hypothesis, n_reference = n_hypothesis + len(ours), n_reference + len(theirs)
        for order in range(1, 5):
            grams = Counter(tuple(ours[i : i + order]) for i in range(len(ours) - order + 1))
            reference_grams = Counter(tuple(theirs[i : i + order]) for i in range(len(theirs) - order + 1))
            total[order] += sum(grams.values())
            right[order] += sum((grams & reference_grams).values())
    if not all(right[order] for order in range(1, 5)):
        return 0.0
    precision = math.exp(sum(math.log(right[order] / total[order]) for order in range(1, 5)) / 4)
    return 100 * precision * (1.0 if n_hypothesis >= n_reference else math.exp(1 - n_reference / n_hypothesis))


def test_perfect_translation_scores_hundred_in_every_metric():
    rows = scores_by_metric(make_hypotheses(REFERENCE))
    defaults = EvaluationSettings().metrics
    assert list(rows) == [*defaults, "length ratio"]
    assert all(row["value"] == pytest.approx(100) for row in rows.values())
    assert {name: rows[name]["n"] for name in defaults} == {
        "s-BLEU": 6,
        "d-BLEU (instances)": 3,
        "d-BLEU (documents)": 2,
        "tokenized s-BLEU": 6,
        "tokenized d-BLEU (instances)": 3,
        "chrF": 6,
        "d-chrF (documents)": 2,
    }


def test_fixed_numbers():
    translation = ["Der Hund ist müde und er schläft.", "Sie sagte: „Komm!“", ""]
    translation += ["Das Haus steht seit 1999 am Fluss.", "Wir kaufen es.", "Ende"]
    rows = scores_by_metric(make_hypotheses(translation))
    values = {name: rows[name]["value"] for name in EvaluationSettings().metrics}
    assert values == pytest.approx(FIXED, abs=1e-6)


# Printed by the `sacrebleu` command and, for the tokenized ones, by a Perl transcription of multi-bleu.perl.
FIXED = {
    "s-BLEU": 42.628701,
    "d-BLEU (instances)": 48.809603,
    "d-BLEU (documents)": 51.803550,
    "tokenized s-BLEU": 46.237261,
    "tokenized d-BLEU (instances)": 51.165759,
    "chrF": 72.353873,
    "d-chrF (documents)": 72.063482,
}


@pytest.mark.parametrize("seed", range(8))
def test_tokenized_scores_equal_multi_bleu(seed):
    rng = random.Random(seed)
    words = ["Der", "Hund", "(das", "Haus)", "schläft,", "„gut“", "3.5", "U.S.", "don't", "&", "a-b", "x|y"]
    words.append("ist\u00a0es.")
    reference = [" ".join(rng.choices(words, k=rng.randint(0, 14))) for _ in range(24)]
    translation = [" ".join(w for w in line.split(" ") if rng.random() > 0.1 * (seed % 3)) for line in reference]
    translation[seed] = ""
    hypotheses = make_hypotheses(translation, (8, 4, 12))
    rows = scores_by_metric(hypotheses, reference)
    texts = tokenized_texts(make_test(hypotheses, reference))
    for name, unit in (("tokenized s-BLEU", "sentences"), ("tokenized d-BLEU (instances)", "instances")):
        ours, (theirs,) = join_segments(hypotheses, *texts, unit)
        pairs = [[" ".join(segment.split()) for segment in side] for side in (ours, theirs)]
        assert rows[name]["value"] == pytest.approx(multi_bleu(*pairs), abs=1e-9)


def test_no_common_four_gram_is_zero():
    rows = scores_by_metric(make_hypotheses(["eins", "zwei", "", "Das Haus ja nein so", "", ""]))
    assert rows["tokenized s-BLEU"]["value"] == 0
    assert rows["s-BLEU"]["value"] > 0  # sacreBLEU smooths


def test_empty_hypotheses_score_zero():
    empty = make_hypotheses([""] * 6)
    assert all(row["value"] == 0 for row in scores_by_metric(empty).values())
    ratio = scores_by_metric(empty, [""] * 6)["length ratio"]
    assert (ratio["value"], ratio["signature"]) == (None, "not computed: the reference has no words")


def test_unaligned_hypotheses_get_document_scores_only():
    mixed = make_hypotheses(REFERENCE)
    mixed[1] = mixed[1].model_copy(update={"aligned": False})
    assert "s-BLEU" not in scores_by_metric(mixed)
    translations = [["Der Hund ist müde, und er schläft. Sie sagte: „Komm her!“"], REFERENCE[2:4], ["Ende"]]
    rows = scores_by_metric(make_hypotheses(translations, aligned=False))
    documents = ["d-BLEU (instances)", "d-BLEU (documents)", "tokenized d-BLEU (instances)", "d-chrF (documents)"]
    assert list(rows) == [*documents, "length ratio", "sentence count preserved"]
    preserved = rows["sentence count preserved"]
    assert (preserved["value"], preserved["n"]) == (pytest.approx(100 / 3), 3)
    rows = scores_by_metric(make_hypotheses(translations, aligned=False, one_line=True))
    assert list(rows) == [*documents, "length ratio"], "a document in one line has no known number of sentences"


def test_forced_ends_are_a_share_of_sentences():
    rows = scores_by_metric(make_hypotheses(REFERENCE, forced_ends=1))
    assert (rows["length-limited sentences"]["value"], rows["length-limited sentences"]["n"]) == (50.0, 6)
    rows = scores_by_metric(make_hypotheses(REFERENCE, forced_ends=1, joined=True))
    assert (rows["length-limited sentences"]["value"], rows["length-limited sentences"]["n"]) == (100.0, 3)


@pytest.mark.parametrize(
    ("settings", "lang", "metric", "part"),
    [
        ({}, "de", "s-BLEU", "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"),
        ({}, "de", "s-BLEU", "|segments:sentences"),
        ({}, "de", "tokenized d-BLEU (instances)", "segments:instances|words:moses-de (sacremoses "),
        ({}, "zh", "s-BLEU", "tok:zh"),
        ({"lowercase": True}, "en", "s-BLEU", "case:lc"),
        ({"bleu_tokenizer": "intl"}, "de", "s-BLEU", "tok:intl"),
    ],
)
def test_signatures_name_tokenizer_case_and_segments(settings, lang, metric, part):
    rows = scores_by_metric(make_hypotheses(REFERENCE), settings=EvaluationSettings(**settings), tgt_lang=lang)
    assert part in rows[metric]["signature"]


def test_chinese_words_are_found_by_jieba():
    assert word_splitter("zh")("我 来到北京清华大学") == ["我", "来到", "北京", "清华大学"]


def test_lowercase_ignores_case():
    upper = [line.upper().replace("SS", "ss") for line in REFERENCE]
    lowered = scores_by_metric(make_hypotheses(upper), settings=EvaluationSettings(lowercase=True))
    assert lowered["s-BLEU"]["value"] == pytest.approx(100)
    assert scores_by_metric(make_hypotheses(upper))["s-BLEU"]["value"] < 60


def test_several_references_equal_sacrebleu():
    translation = ["Der Hund ist müde, er schläft.", "Sie sagte: „Komm!“", "", "Das Haus am Fluss.", "Nein.", "Ende"]
    more = [["Der Hund ist müde, er schläft."] + [""] * 5, translation]
    settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (documents)", "tokenized s-BLEU", "chrF"])

    def rows(*references):
        return scores_by_metric(make_hypotheses(translation), *references, settings=settings)

    scores = rows(REFERENCE, *more)
    assert all(scores[name]["value"] == pytest.approx(100) for name in settings.metrics), "one is the translation"
    assert scores["s-BLEU"]["signature"].startswith("nrefs:3|")
    two = rows(REFERENCE, more[0])
    direct = bleu(settings, "de").corpus_score(translation, [REFERENCE, more[0]])
    assert two["s-BLEU"]["value"] == direct.score > rows(REFERENCE)["s-BLEU"]["value"]
    assert rows(more[0], REFERENCE)["chrF"]["value"] == two["chrF"]["value"]


def test_d_bleu_of_doc2doc_is_multi_bleu():
    settings = EvaluationSettings(metrics=["Doc2Doc d-BLEU", "d-BLEU (documents)"])
    translation = [REFERENCE[0].upper(), *REFERENCE[1:4], "Wir kaufen", "Ende"]
    rows = scores_by_metric(make_hypotheses(translation), settings=settings)
    sides = [
        [" ".join(word.lower() for line in part for word in word_splitter("de")(line)) for part in (side[:4], side[4:])]
        for side in (translation, REFERENCE)
    ]
    assert rows["Doc2Doc d-BLEU"]["value"] == pytest.approx(multi_bleu(*sides), abs=1e-9)
    assert "case:lc" in rows["Doc2Doc d-BLEU"]["signature"]
    assert "case:mixed" in rows["d-BLEU (documents)"]["signature"]
    assert "Doc2Doc d-BLEU" not in EvaluationSettings().metrics


@pytest.mark.parametrize(("name", "scorer"), [("chrF++", CHRF(word_order=2)), ("TER", TER(case_sensitive=True))])
def test_scores_on_request_are_those_of_sacrebleu(name, scorer):
    """For the whole test, and for sums that resampling draws."""
    sentences = ["Der Hund bellt laut .", "", *REFERENCE[2:]]
    test = make_test(make_hypotheses(sentences), settings=EvaluationSettings(metrics=[name]))
    (row,) = (row for row in score_translations(test) if row["metric"] == name)
    expected = scorer.corpus_score(sentences, [REFERENCE])
    assert row["value"] == expected.score
    assert row["signature"].startswith(scorer.get_signature().format())
    counts = find_metric(name).counts(test)
    assert counts.score(counts.rows.sum(0)) == pytest.approx(expected.score)
    assert counts.score(counts.rows[[0, 0, 1]].sum(0)) == pytest.approx(
        scorer.corpus_score([sentences[i] for i in (0, 0, 1)], [[REFERENCE[i] for i in (0, 0, 1)]]).score
    )
