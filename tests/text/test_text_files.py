import json
import subprocess

import pytest

from docmt.cli.main import main
from docmt.text.pipeline import TextPipeline
from docmt.text.text_files import CHUNK_LINES

UGLY = [
    'The cat sat; it\'s "fine".',
    "",
    "   ",
    "a\xa0b\u2028c\x85d\re",
    "\u2028",
    "\x00\x07",
    "tab\tand 👩‍👩‍👧 emoji \u200b",
    "<s> @@ @-@ ▁ &amp; |",
    "the lower-case line",
    "Смешанный mixed 文字 text/Text",
    "word " * 10_000,
    "“Quoted,” he said — 10 % of $5.",
]
LANGUAGES = ("en", "zh")


def run(*arguments):
    assert main(["text", *map(str, arguments)]) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All stages on a small, difficult corpus with two languages."""
    folder = tmp_path_factory.mktemp("stages")
    for lang in LANGUAGES:
        (folder / f"train.{lang}").write_text("".join(line + "\n" for line in UGLY * 3), "utf-8", newline="")
        run("tokenize", "--lang", lang, "--input", folder / f"train.{lang}", "--out", folder / f"tok.{lang}")
        run("learn-truecaser", "--input", folder / f"tok.{lang}", "--out", folder / f"truecaser.{lang}.json")
        model = folder / f"truecaser.{lang}.json"
        run("truecase", "--model", model, "--input", folder / f"tok.{lang}", "--out", folder / f"true.{lang}")
    codes = folder / "bpe.codes"
    truecased = [folder / f"true.{lang}" for lang in LANGUAGES]
    run("learn-bpe", "--settings", '{"bpe_merges": 50}', "--inputs", *truecased, "--out", codes)
    for lang in LANGUAGES:
        run("apply-bpe", "--codes", codes, "--input", folder / f"true.{lang}", "--out", folder / f"bpe.{lang}")
    subwords = [folder / f"bpe.{lang}" for lang in LANGUAGES]
    run("learn-vocabulary", "--inputs", *subwords, "--out", folder / "vocabulary.txt")
    truecasers = [folder / f"truecaser.{lang}.json" for lang in LANGUAGES]
    languages = ("--src-lang", "en", "--tgt-lang", "zh")
    run("save-pipeline", *languages, "--truecasers", *truecasers, "--codes", codes, "--out", folder / "pipeline.json")
    return folder


def lines_of(path):
    text = path.read_bytes().decode("utf-8")
    assert text == "" or text.endswith("\n")
    return text.split("\n")[:-1]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("stage", ["tok", "true", "bpe"])
def test_one_line_in_is_one_line_out(folder, lang, stage):
    lines = lines_of(folder / f"{stage}.{lang}")
    assert len(lines) == 3 * len(UGLY)
    for line, source in zip(lines, UGLY * 3, strict=True):
        assert line.split() == [token for token in line.split(" ") if token]
        assert bool(line) == bool(source.replace("\x00", "").replace("\x07", "").strip())


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_pipeline_equals_the_stages(folder, lang):
    pipeline = TextPipeline.load(folder / "pipeline.json")
    prepared = [" ".join(pipeline.prepare(line, lang=lang)) for line in UGLY * 3]
    assert prepared == lines_of(folder / f"bpe.{lang}")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_restore_recovers_the_lines(folder, tmp_path, lang):
    out = tmp_path / "restored"
    files = ("--pipeline", folder / "pipeline.json", "--input", folder / f"bpe.{lang}", "--out", out)
    run("restore", "--lang", lang, *files)
    pipeline = TextPipeline.load(folder / "pipeline.json")
    assert lines_of(out) == [pipeline.normalize(line, lang=lang) for line in UGLY * 3]


@pytest.mark.slow
def test_the_roundtrip_report(folder, tmp_path, capsys):
    inputs = [f"{folder}/train.{lang}" for lang in LANGUAGES]
    run("count-roundtrip", "--pipeline", folder / "pipeline.json", "--inputs", *inputs, "--out", tmp_path / "out.json")
    result = json.loads((tmp_path / "out.json").read_text("utf-8"))["languages"]["en"]
    assert result["lines"] == 3 * len(UGLY)
    assert result["restored"] + sum(result["causes"].values()) == result["lines"]
    assert set(result["causes"]) == {"white space", "control characters"}
    assert result["restored_but_white_space"] == result["restored"] + result["causes"]["white space"]
    assert "en: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "stage",
    [("tokenize", "--lang", "en"), ("truecase", "--model", "truecaser.en.json"), ("apply-bpe", "--codes", "bpe.codes")],
)
def test_parallel_equals_serial(folder, tmp_path, monkeypatch, stage):
    monkeypatch.chdir(folder)
    source = tmp_path / "source"
    source.write_text("".join(f"The line {i}: {line}\n" for i in range(250) for line in UGLY[:9]), "utf-8", newline="")
    assert len(lines_of(source)) > 2 * CHUNK_LINES
    for jobs in (1, 2):
        run(*stage, "--input", source, "--out", tmp_path / f"jobs{jobs}", "--jobs", jobs)
    assert (tmp_path / "jobs1").read_bytes() == (tmp_path / "jobs2").read_bytes()
    assert len(lines_of(tmp_path / "jobs1")) == len(lines_of(source))


def test_an_empty_file_stays_empty(folder, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    run("tokenize", "--lang", "en", "--input", tmp_path / "empty", "--out", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b""
    out = ("--out", tmp_path / "out.json")
    (tmp_path / "empty.en").touch()
    run("count-roundtrip", "--pipeline", folder / "pipeline.json", "--inputs", tmp_path / "empty.en", *out)
    assert json.loads((tmp_path / "out.json").read_text())["languages"]["en"]["share"] is None


def test_pipes_are_read_whole(tmp_path):
    lines = "a line\n" * 20_000
    (tmp_path / "in").write_text(lines)
    with subprocess.Popen(["cat", tmp_path / "in"], stdout=subprocess.PIPE) as process:
        pipe = f"/proc/self/fd/{process.stdout.fileno()}"
        run("tokenize", "--lang", "en", "--input", pipe, "--out", tmp_path / "out")
    assert (tmp_path / "out").read_text() == lines


def test_truecasing_can_be_switched_off(tmp_path):
    (tmp_path / "text").write_text("the dog\nThe dog saw the cat\n")
    off = ("--settings", '{"truecase": false}')
    run("learn-truecaser", *off, "--input", tmp_path / "text", "--out", tmp_path / "model.json")
    run("truecase", "--model", tmp_path / "model.json", "--input", tmp_path / "text", "--out", tmp_path / "out")
    assert (tmp_path / "out").read_text() == (tmp_path / "text").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokenize", "--lang", "xx", "--input", "good"], "unknown language 'xx'"),
        (["tokenize", "--lang", "en", "--input", "latin"], "line 2 is not UTF-8"),
        (["tokenize", "--lang", "en", "--input", "absent"], "no such file"),
        (["tokenize", "--lang", "en", "--input", "good", "--jobs", "0"], '"0" for --jobs. Must be >= 1'),
        (
            ["tokenize", "--lang", "en", "--input", "good", "--settings", '{"lowercase": true}'],
            "truecase and lowercase",
        ),
        (["tokenize", "--lang", "en", "--input", "good", "--settings", '{"normalise_": true}'], "'normalize'"),
        (["tokenize", "--lang", "en", "--input", "good", "--out", "out.gz"], "remove .gz from the name"),
        (["learn-bpe", "--inputs", "empty"], "no text"),
        (["learn-vocabulary", "--inputs", "empty"], "no text"),
        (["learn-vocabulary", "--inputs", "good", "--keep", "seen"], "--keep seen: a vocabulary from files"),
        (["apply-bpe", "--codes", "good", "--input", "good"], "learn-bpe"),
        (["truecase", "--model", "good", "--input", "good"], "not JSON"),
        (["restore", "--pipeline", "pipeline.json", "--lang", "de", "--input", "good"], "this pipeline is for"),
        (["count-roundtrip", "--pipeline", "pipeline.json", "--inputs", "good"], "the name must end in the language"),
        (["count-roundtrip", "--pipeline", "pipeline.json", "--inputs", "good.de"], "this pipeline is for"),
    ],
)
def test_bad_input_gives_one_line_and_no_file(folder, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name in ("good", "good.de"):
        (tmp_path / name).write_text("a good line\n")
    (tmp_path / "latin").write_bytes(b"fine\nM\xfcller\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "pipeline.json").write_bytes((folder / "pipeline.json").read_bytes())
    before = set(tmp_path.iterdir())
    assert main(["text", *arguments, *([] if "--out" in arguments else ["--out", "out"])]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("docmt: error:")]
    assert len(error) == 1
    assert message in error[0]
    assert set(tmp_path.iterdir()) == before
