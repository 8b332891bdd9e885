"""METEOR: the real program on segments with scores that follow from its definition, ugly text, and missing parts."""

import shutil

import pytest
from evaluation_fixtures import REFERENCE, by_metric, make_hypotheses, make_test

from docmt.errors import UserError
from docmt.evaluation import meteor
from docmt.evaluation.external_programs import NotComputableError
from docmt.evaluation.meteor import find_meteor, language_options, run_meteor
from docmt.evaluation.metrics import EvaluationSettings, find_metric, score_meteor

SETTINGS = EvaluationSettings(metrics=["METEOR", "d-METEOR (instances)"])
TRANSLATION = ["Der Hund ist müde und schläft.", "Sie sagte: „Komm!“", "", "Das Haus steht am Fluss.", "Nein.", "Ende"]


def has_meteor():
    try:
        find_meteor()
    except NotComputableError:
        return False
    return True


needs_meteor = pytest.mark.skipif(not has_meteor(), reason="METEOR needs Java and the package pycocoevalcap")


def score(hypotheses, *references, settings=SETTINGS, tgt_lang="de"):
    return score_meteor(make_test(hypotheses, *references, settings=settings, tgt_lang=tgt_lang))


def scores_by_metric(*arguments, **options):
    return by_metric(score(*arguments, **options))


def run(hypotheses, references, *options):
    jar, java = find_meteor()
    return run_meteor(hypotheses, references, command=[java, "-Xmx1G", "-jar", str(jar)], options=options)


@needs_meteor
def test_equals_the_formula_where_only_exact_matches_count():
    # Denkowski and Lavie 2014, language-independent parameters: α 0.75, β 1.4, γ 0.7, and no function words.
    score, segments, identity = run(["a b c x d"], ["a b c d e f"], "-l", "other", "-m", "exact", "-w", "1.0")
    assert "0.75_1.4_0.7_0.5-ex-1.0" in identity
    precision, recall = 4 / 5, 4 / 6
    mean = precision * recall / (0.75 * precision + 0.25 * recall)
    assert segments == pytest.approx([score])
    assert score == pytest.approx(mean * (1 - 0.7 * (2 / 4) ** 1.4))


@pytest.mark.slow
@needs_meteor
def test_english_uses_stems_synonyms_and_the_paraphrase_table():
    reference = ["he walks to the car ", *[""] * 5]
    hypotheses = make_hypotheses(["he walked to the automobile", *[""] * 5])
    settings = EvaluationSettings(metrics=["METEOR"])
    rows = scores_by_metric(hypotheses, reference, settings=settings, tgt_lang="en")
    assert rows["METEOR"]["value"] == pytest.approx(80.0)  # printed by the program from a terminal
    assert "-ex_st_sy_pa-1.0_0.6_0.8_0.6|paraphrase table:yes" in rows["METEOR"]["signature"]


@needs_meteor
@pytest.mark.parametrize(
    ("lang", "mode", "part"),
    [
        (
            "de",
            "auto",
            "meteor-1.5-wo-de-norm-0.95_1.0_0.55_0.55-ex_st-1.0_0.8|paraphrase table:no|words:METEOR's own|",
        ),
        ("sv", "auto", "meteor-1.5-wo-se-lc_only-0.75_1.4_0.7_0.5-ex_st-1.0_0.5|paraphrase table:no|words:moses-sv"),
        ("zh", "auto", "meteor-1.5-wo-other-lc_only-0.75_1.4_0.7_0.5-ex-1.0|paraphrase table:no|words:jieba-zh"),
        ("en", "independent", "meteor-1.5-wo-other-lc_only-0.75_1.4_0.7_0.5-ex-1.0|paraphrase table:no|words:moses-en"),
    ],
)
def test_signature_says_which_setting_was_used(lang, mode, part):
    settings = EvaluationSettings(metrics=["METEOR"], meteor_language=mode)
    row = scores_by_metric(make_hypotheses(TRANSLATION), settings=settings, tgt_lang=lang)["METEOR"]
    assert row["signature"].startswith(part)
    assert row["signature"].endswith("segments:sentences|package:pycocoevalcap 1.2")
    assert 0 < row["value"] < 100


@pytest.mark.slow
@needs_meteor
def test_ugly_lines_keep_their_positions(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")  # Java would read ASCII
    ugly = [
        "Café 🙂 ||| x ||| y",
        "",
        "eine\rZeile\nund noch eine",
        "a\u2028b\u0085c",
        "SCORE ||| EVAL ||| 1",
        "eins zwei drei vier fünf sechs sieben acht neun zehn " * 60,
        " ",
        "Ende",
    ]
    hypotheses = make_hypotheses(ugly, (4, 4), documents=("a", "b"))
    rows = scores_by_metric(hypotheses, ugly)
    assert {name: (row["value"], row["n"]) for name, row in rows.items()} == {
        "METEOR": (pytest.approx(100), 8),
        "d-METEOR (instances)": (pytest.approx(100), 2),
    }
    shifted = scores_by_metric(make_hypotheses(ugly[1:] + ugly[:1], (4, 4), documents=("a", "b")), ugly)
    assert shifted["METEOR"]["value"] < 5


@needs_meteor
def test_empty_hypotheses_score_zero():
    assert {row["value"] for row in scores_by_metric(make_hypotheses([""] * 6)).values()} == {0}
    assert {row["value"] for row in scores_by_metric(make_hypotheses([""] * 6), [""] * 6).values()} == {0}


@needs_meteor
def test_unaligned_hypotheses_are_scored_by_instances_only():
    hypotheses = make_hypotheses([[" ".join(REFERENCE[:2])], REFERENCE[2:4], [" ".join(REFERENCE[4:])]], aligned=False)
    rows = scores_by_metric(hypotheses)
    assert list(rows) == ["d-METEOR (instances)"]
    assert rows["d-METEOR (instances)"]["value"] == pytest.approx(100)


def test_metrics_of_the_default_settings_need_no_java(monkeypatch):
    monkeypatch.setattr(meteor, "find_meteor", lambda: pytest.fail("looked for"))
    assert not any(find_metric(name).needs for name in EvaluationSettings().metrics)
    assert score(make_hypotheses(REFERENCE), settings=EvaluationSettings()) == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("find_program", None, "needs `java`"), ("PACKAGE", "no_such_package", "no_such_package")],
)
def test_missing_program_is_one_line(monkeypatch, caplog, name, value, reason):
    if name == "find_program":
        value = lambda program: None  # noqa: E731
        if not shutil.which("java") and not has_meteor():
            pytest.skip("the package pycocoevalcap is missing too")
    monkeypatch.setattr(meteor, name, value)
    rows = score(make_hypotheses(REFERENCE))
    assert [(row["metric"], row["value"], row["n"]) for row in rows] == [
        ("METEOR", None, 0),
        ("d-METEOR (instances)", None, 0),
    ]
    assert all(row["signature"].startswith("not computed: ") and reason in row["signature"] for row in rows)
    assert len(caplog.records) == 2
    assert "\n" not in caplog.text.strip().split("WARNING")[1].strip()


@needs_meteor
def test_failures_of_the_program_are_one_line(caplog):
    with pytest.raises(UserError, match=r"^METEOR failed \(exit code \d+\): .*Unknown language \(xyz\)"):
        run(["a"], ["a"], "-l", "xyz", "-p", "x")
    assert "METEOR printed" in caplog.text


@needs_meteor
@pytest.mark.parametrize("references", [["a"], ["a", "b", "c"]])
def test_a_wrong_number_of_lines_is_refused(references):
    with pytest.raises(UserError, match="not same length"):
        run(["a", "b"], references, "-l", "other", "-m", "exact", "-w", "1.0")


@pytest.mark.parametrize("score", ["", "Final score:  NaN\n", "Final score:            1.2E-4\n"])
def test_only_whole_output_is_read_with_small_scores(monkeypatch, score):
    output = f"Eval ID:  x\nSegment 1 score:\t1.0E-4\n{score}" if score else ""
    monkeypatch.setattr(meteor, "run_program", lambda command, name: (output, ""))
    if "E-4" in score:
        assert run_meteor(["a"], ["a"], command=["java"], options=[]) == (1.2e-4, [1e-4], "x")
    else:
        with pytest.raises(UserError, match="METEOR failed"):
            run_meteor(["a"], ["a"], command=["java"], options=[])


def test_a_paraphrase_table_beside_the_program_is_used(tmp_path):
    language = meteor.LANGUAGES["de"]
    assert language_options(language, tmp_path / "m.jar") == (
        ["-l", "de", "-norm", "-m", "exact stem", "-w", "1.0 0.8"],
        False,
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "paraphrase-de.gz").touch()
    options, has_table = language_options(language, tmp_path / "m.jar")
    assert has_table
    assert options[-3:] == ["exact stem paraphrase", "-w", "1.0 0.8 0.2"]


@pytest.mark.slow
@needs_meteor
def test_nearest_reference_counts():
    def score_with(translation, *references):
        return scores_by_metric(make_hypotheses(translation), *references)["METEOR"]

    other = ["Der Kater wacht, er frisst.", *REFERENCE[1:]]
    mixed = [*REFERENCE[:3], *TRANSLATION[3:]]
    # An empty line on one side costs recall only.
    assert 0 < score_with(["", *mixed[1:]], REFERENCE)["value"] < score_with(mixed, REFERENCE)["value"]
    assert score_with(mixed, REFERENCE, mixed)["value"] == 100
    assert score_with(mixed, other, REFERENCE)["value"] == pytest.approx(score_with(mixed, REFERENCE)["value"])
    assert score_with(mixed, other)["value"] < score_with(mixed, REFERENCE)["value"]
    assert "|refs:2" in score_with(mixed, other, REFERENCE)["signature"]


@needs_meteor
@pytest.mark.parametrize("machine", ["az", "en"])
def test_case_is_that_of_the_target_language(monkeypatch, machine):
    """On a Turkish machine, Java lower-cases I to the dotless letter. METEOR ignores case."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Duser.language={machine} -Duser.country={machine.upper()}")
    settings = EvaluationSettings(metrics=["METEOR"])
    german = make_hypotheses(["IM INNERN IST INFORMATION", *[""] * 5])
    rows = scores_by_metric(german, ["Im Innern ist Information", *[""] * 5], settings=settings, tgt_lang="de")
    assert rows["METEOR"]["value"] == pytest.approx(100)
    assert "|case:" not in rows["METEOR"]["signature"]
    turkish = make_hypotheses(["IŞIK VE İYİ BİR GÜN", *[""] * 5])
    rows = scores_by_metric(turkish, ["ışık ve iyi bir gün", *[""] * 5], settings=settings, tgt_lang="tr")
    assert rows["METEOR"]["value"] == pytest.approx(100)
    assert rows["METEOR"]["signature"].endswith("|case:tr")
