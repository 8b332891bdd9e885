# ruff: noqa: E501 (rows of tables)
"""`docmt init` with files. It writes a study for them, or one line that describes their fault."""

import gzip
import shutil
from pathlib import Path

import pytest
import yaml

from docmt.cli import init
from docmt.cli.main import main
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.study import check_user_files
from docmt.config.loading import load_config
from docmt.corpora.guessing import find_split
from docmt.corpora.inspection import other_language

TEXTS = {
    "en": "the dog {0} sleeps in that house\nit was the first of the {0} days and that is it",
    "de": "der Hund {0} schläft in dem Haus\nes war der erste und das ist nicht der {0}",
    "no": "hunden {0} sover i huset\ndet var den første av de {0} dagene",
}
SPLITS = {"train": 12, "dev": 11, "test": 10}


def documents(split, lang, n=None):
    """Documents with two sentences that differ from other splits."""
    return [TEXTS[lang].format(f"{split}{number}").split("\n") for number in range(n or SPLITS[split])]


def blank_lines(split, lang):
    return "\n\n".join("\n".join(document) for document in documents(split, lang)) + "\n"


def write(name, content):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The copy of the workflow is tested elsewhere.
    monkeypatch.setattr(init, "PARTS", ("environment.yml",))
    return tmp_path


@pytest.fixture
def words():
    """Arguments for text files with blank lines between documents."""
    arguments = []
    for split in SPLITS:
        arguments += [f"--{split}", *(write(f"data/{split}.{lang}", blank_lines(split, lang)) for lang in ("en", "de"))]
    return arguments


def read_study(folder="study"):
    return yaml.safe_load(Path(folder, "my.yaml").read_text(encoding="utf-8"))


def test_a_study_on_plain_files(words, capsys, monkeypatch):
    assert main(["init", "study", *words]) == 0
    output, log = capsys.readouterr()
    assert "languages: en → de (guessed" in output
    assert "format of train, dev, test: blank_lines (guessed; --format overrides)" in output
    assert [line.split() for line in output.splitlines() if line.startswith("train ")] == [
        ["train", "12", "24", "0", "0"]
    ]
    assert "docmt run my.yaml" in output
    assert not log
    assert "docmt run my.yaml" in Path("study/README.md").read_text(encoding="utf-8")
    text = Path("study/my.yaml").read_text(encoding="utf-8")
    assert 30 <= text.count("\n") <= 45
    assert max(map(len, text.splitlines())) <= 120
    monkeypatch.chdir("study")
    config = load_config(yaml.safe_load(text))
    check_user_files(Study(config))
    assert list(config.systems) == ["sentence", "longer", "g_transformer"]
    assert config.text.bpe_merges == 4000


def tmx(split):
    pairs = zip(*(plain(split, lang).splitlines() for lang in ("en", "de")), strict=True)
    units = "".join(
        f'<tu><tuv xml:lang="en-GB"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>' for a, b in pairs
    )
    return f"<tmx version='1.4'><header/><body>{units}</body></tmx>"


def table(split, delimiter, header="", order="{id}{d}{en}{d}{de}"):
    rows = [header] if header else []
    for number, sides in enumerate(zip(documents(split, "en"), documents(split, "de"), strict=True)):
        rows += [order.format(id=number, d=delimiter, en=en, de=de) for en, de in zip(*sides, strict=True)]
    return "\n".join(rows) + "\n"


def paradocs(split):
    rows = []
    for number, sides in enumerate(zip(documents(split, "en"), documents(split, "de"), strict=True)):
        for position, (en, de) in enumerate(zip(*sides, strict=True)):
            rows.append(
                [en, de, ".9", ".9", "c", *"1111", *[str(position)] * 4, "1.0", "1.0", "1", f"a{number}", f"b{number}"]
            )
    return "".join("\t".join(row) + "\n" for row in rows)


def plain(split, lang):
    return "".join(f"{line}\n" for document in documents(split, lang) for line in document)


def subtitles(split, lang):
    lines = plain(split, lang).splitlines()
    return "WEBVTT\n\n" + "\n".join(f"00:{n:02}.0 --> 00:{n:02}.9\n{line}\n" for n, line in enumerate(lines))


FORMATS = {
    "patterns in three letters": (
        lambda split: {f"{split}/{n}.{code}": "\n".join(document) + "\n" for lang, code in (("en", "eng"), ("de", "deu")) for n, document in enumerate(documents(split, lang))},
        ["{0}/*.eng", "{0}/*.deu"],
        {"reader": "document_files"},
    ),
    "TMX": (lambda split: {f"{split}.tmx": tmx(split)}, ["{0}.tmx"], {"reader": "tmx"}),
    "folders of TMX": (lambda split: {f"{split}/a.tmx": tmx(split)}, ["{0}"], {"reader": "tmx"}),
    "WebVTT": (
        lambda split: {f"{split}.{lang}.vtt": subtitles(split, lang) for lang in ("en", "de")},
        ["{0}.en.vtt", "{0}.de.vtt"],
        {"reader": "srt_pairs"},
    ),
    "TSV": (lambda split: {f"en-de/{split}.tsv": table(split, "\t")}, ["en-de/{0}.tsv"], {"reader": "tsv", "id_column": 1, "columns": [2, 3]}),
    "TSV, id last": (
        lambda split: {f"{split}.en-de.tsv": table(split, "\t", order="{en}{d}{de}{d}{id}")},
        ["{0}.en-de.tsv"],
        {"reader": "tsv", "id_column": 3},
    ),
    "TSV with a header": (
        lambda split: {f"{split}.tsv": table(split, "\t", "doc_id\ten\tde")},
        ["{0}.tsv"],
        {"reader": "dialogue_csv", "id": "doc_id", "source": "en", "target": "de", "delimiter": "\t", "quotes": False},
    ),
    "CSV with the column id": (
        lambda split: {f"{split}.csv": table(split, ",", "id, en, de")},
        ["{0}.csv"],
        {"reader": "dialogue_csv", "source": "en", "target": "de"},
    ),
    "CSV in Indonesian": (
        lambda split: {f"{split}.csv": table(split, ",", "doc,id,de")},
        ["{0}.csv"],
        {"reader": "dialogue_csv", "id": "doc", "source": "id", "target": "de"},
    ),
    "TSV with a quoted header": (
        lambda split: {f"{split}.tsv": table(split, "\t", '"id"\t"en"\t"de"\t"a,b,c,d,e"', order="{id}{d}{en}{d}{de}{d}x")},
        ["{0}.tsv"],
        {"reader": "dialogue_csv", "source": "en", "target": "de", "delimiter": "\t"},
    ),
    "a blank line at the end": (
        lambda split: {f"{split}.{lang}": "\n" + plain(split, lang) + "\n" for lang in ("en", "de")},
        ["{0}.en", "{0}.de"],
        {"reader": "single_lines"},
    ),
    "folders with hidden files": (
        lambda split: {f"{split}/{lang}/{n}.txt": "\n".join(document) for lang in ("en", "de") for n, document in enumerate(documents(split, lang))}
        | {f"{split}/en/.DS_Store": b"\xff", f"{split}/de/.old/1.txt": "x"},
        ["{0}/en", "{0}/de"],
        {"reader": "document_files"},
    ),
    "CSV": (
        lambda split: {f"{split}.csv": table(split, ";", "Document;deu;eng", order="{id}{d}{de}{d}{en}")},
        ["{0}.csv", "--languages", "en", "de"],
        {"reader": "dialogue_csv", "id": "Document", "source": "eng", "target": "deu", "delimiter": ";"},
    ),
    "ParaDocs": (lambda split: {f"en-de/strict/{split}.gz": gzip.compress(paradocs(split).encode())}, ["en-de/strict/{0}.gz"], {"reader": "paradocs"}),
    "mtdata": (
        lambda split: {f"{split}.eng": plain(split, "en"), f"{split}.deu": plain(split, "de")},
        ["{0}.eng", "{0}.deu"],
        {"reader": "single_lines"},
    ),
    "OPUS with ids": (
        lambda split: {f"Books.{split}.de-en.{lang}": plain(split, lang) for lang in ("de", "en")}
        | {f"Books.{split}.de-en.ids": "".join(f"en/{n}.gz\tde/{n}.gz\t{m}\t{m}\n" for n in range(SPLITS[split]) for m in (1, 2))},
        ["Books.{0}.de-en.en", "Books.{0}.de-en.de", "Books.{0}.de-en.ids"],
        {"reader": "named_lines", "id_cells": 2},
    ),
    "markers": (
        lambda split: {f"{split}.{lang}": "<d>\n" + "\n<d>\n".join(map("\n".join, documents(split, lang))) for lang in ("en", "de")},
        ["{0}.en", "{0}.de"],
        {"reader": "marked_lines"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_guessed(name, capsys, monkeypatch):
    files, arguments, form = FORMATS[name]
    words, options = [], []
    for split in SPLITS:
        for path, content in files(split).items():
            write(path, content)
        split_arguments = [argument.format(split) for argument in arguments]
        n_files = split_arguments.index("--languages") if "--languages" in split_arguments else len(split_arguments)
        words += [f"--{split}", *split_arguments[:n_files]]
        options = split_arguments[n_files:]
    assert main(["init", "study", *words, *options]) == 0
    (corpus,) = read_study()["corpora"]["custom"].values()
    assert (corpus["languages"], corpus["format"]) == (["id" if "Indonesian" in name else "en", "de"], form)
    counts = {line.split()[0]: line.split()[1:3] for line in capsys.readouterr().out.splitlines() if line}
    for split, n_documents in SPLITS.items():
        n_lines = 2 * n_documents + 2 * name.startswith("a blank line")
        n_found = {"single_lines": n_lines, "tmx": 1, "srt_pairs": 1}.get(form["reader"], n_documents)
        assert counts[split] == [str(n_found), str(n_lines)]
    monkeypatch.chdir("study")
    check_user_files(Study(load_config(read_study("."))))


def test_options_override_guesses_and_splits_may_differ(words, capsys):
    write("test.csv", table("test", ",", "scene,english,german"))
    words[words.index("--test") + 1 :] = ["test.csv"]
    form = "{reader: dialogue_csv, id: scene, source: english, target: german}"
    assert main(["init", "study", *words, "--format", form]) == 2  # for all splits
    write("test.csv", table("test", ",", "doc,source,target"))
    assert main(["init", "study", *words]) == 0
    splits = read_study()["corpora"]["custom"]["mine"]["splits"]
    assert splits["test"]["format"] == {"reader": "dialogue_csv", "id": "doc"}
    assert "format" not in splits["dev"]
    assert main(["init", "other", *words[:6], "--test", *words[1:3], "--format", "single_lines"]) == 0
    assert read_study("other")["corpora"]["custom"]["mine"]["format"] == {"reader": "single_lines"}


@pytest.mark.parametrize("codes", ["eng deu", "EN DE", "en de"])
def test_names_decide_the_sides_however_languages_are_written(words, codes, capsys):
    for start in range(0, len(words), 3):
        words[start + 1 : start + 3] = words[start + 2 : start : -1]  # German first
    assert main(["init", "study", *words, "--languages", *codes.split()]) == 0
    src, tgt = codes.lower().split()
    files = {src: "../data/dev.en", tgt: "../data/dev.de"}
    assert read_study()["corpora"]["custom"]["mine"]["splits"]["dev"] == {"files": files}
    assert not capsys.readouterr().err


@pytest.mark.parametrize("codes", ["nb nn", "nob nno"])
def test_bokmal_and_nynorsk_are_two_languages(codes, words):
    src, tgt = codes.split()
    for split in SPLITS:
        write(f"{split}.csv", table(split, ",", f"id,{src},{tgt}"))
    files = [word for split in SPLITS for word in (f"--{split}", f"{split}.csv")]
    assert main(["init", "study", *files]) == 0
    corpus = read_study()["corpora"]["custom"]["mine"]
    assert corpus["languages"] == ["nb", "nn"]
    assert corpus["format"] == {"reader": "dialogue_csv", "source": src, "target": tgt}
    moved = [
        shutil.copy(word, Path(word).with_suffix(f".{tgt if word.endswith('en') else src}")) if "." in word else word
        for word in words
    ]
    assert main(["init", "other", *map(str, moved)]) == 0  # the second language comes first
    assert read_study("other")["corpora"]["custom"]["mine"]["languages"] == ["nn", "nb"]


@pytest.mark.parametrize(
    "text",
    [
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD">\n<cesAlign version="1.0">\n',
        '<?xml version="1.0" encoding="utf-8"?>\n<document id="1">\n  <s id="1">A dog.</s>\n',
        "<text>\n<s id='1'>A dog.</s>\n",
    ],
)
def test_xml_of_opus_is_refused(text, words, capsys):
    write("train.en-de.xml.gz", gzip.compress(text.encode()))
    assert main(["init", "study", "--train", "train.en-de.xml.gz", *words[3:]]) == 2
    assert "train.en-de.xml.gz: cannot read OPUS XML" in capsys.readouterr().err


def test_xml_in_another_encoding_is_not_of_opus(tmp_path):
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<dataset><doc id="d" origlang="de">'
        '<src lang="de"><p><seg id="1">Schön.</seg></p></src>'
        '<ref lang="en" translator="A"><p><seg id="1">Nice.</seg></p></ref></doc></dataset>'
    )
    (tmp_path / "test.de-en.xml").write_text(text, encoding="latin-1")
    guess = find_split([tmp_path / "test.de-en.xml"], form={}, languages=[], where="--test")
    assert (guess.form.reader, guess.languages) == ("wmt_xml", ("de", "en"))


def test_id_columns_come_from_the_training_split(capsys):
    score = "{en}{d}{de}{d}{id}"
    write("train.en-de.tsv", table("train", "\t", order=score))
    for split in ("dev", "test"):  # a sentence per document: all columns are unique
        rows = table(split, "\t", order=score).splitlines()[::2]
        write(f"{split}.en-de.tsv", "\n".join(rows) + "\n")
    files = [word for split in SPLITS for word in (f"--{split}", f"{split}.en-de.tsv")]
    assert main(["init", "study", *files]) == 0
    assert "format of train, dev, test: {reader: tsv, id_column: 3} (guessed" in capsys.readouterr().out
    shutil.copy("dev.en-de.tsv", "train.en-de.tsv")
    assert main(["init", "other", *files]) == 2
    assert "train.en-de.tsv: cannot guess which of the three columns is the document id" in capsys.readouterr().err
    for split in SPLITS:
        write(f"{split}.en-de.tsv", table(split, "\t", order="{en}{d}{de}{d}0.9"))
    assert main(["init", "other", *files]) == 0
    assert "train: are boundaries between documents missing? Documents: 1, sentences: 24" in capsys.readouterr().err


def test_tables_without_ids_can_be_read(capsys):
    for split in SPLITS:
        write(f"{split}.csv", table(split, ",", "en,de", order="{en}{d}{de}"))
    files = [word for split in SPLITS for word in (f"--{split}", f"{split}.csv")]
    assert main(["init", "study", *files]) == 2
    assert "cannot guess the column for id among en, de" in capsys.readouterr().err
    assert main(["init", "study", *files, "--format", "{reader: dialogue_csv, id: null}"]) == 0
    form = {"reader": "dialogue_csv", "id": None, "source": "en", "target": "de"}
    assert read_study()["corpora"]["custom"]["mine"]["format"] == form


def test_paths_and_cd_of_unusual_folders(words, tmp_path, monkeypatch, capsys):
    Path("far/away").mkdir(parents=True)
    Path("near").symlink_to("far/away")
    assert main(["init", "near/my study", *words]) == 0
    assert "cd 'near/my study'" in capsys.readouterr().out
    Path("data/sub").mkdir()
    monkeypatch.chdir("data/sub")
    assert main(["init", "--", "-x"]) == 0
    assert "cd -- -x" in capsys.readouterr().out
    (tmp_path / "link").symlink_to(tmp_path / "data/sub")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "other", *(word.replace("data/", "link/../") for word in words)]) == 0
    for study in ("near/my study", "other"):
        monkeypatch.chdir(tmp_path / study)
        check_user_files(Study(load_config(read_study("."))))


def test_names_that_yaml_would_misread_stay(monkeypatch):
    words = []
    for split in SPLITS:
        names = [write(f"a: [b] #{split}/{split}.{lang}", blank_lines(split, lang)) for lang in ("en", "no")]
        words += [f"--{split}", *names]
    assert main(["init", "deep/study", *words]) == 0
    monkeypatch.chdir("deep/study")
    config = load_config(read_study("."))
    assert config.datasets["mine"].languages == ("en", "no")
    check_user_files(Study(config))


def test_languages_without_a_tokenizer_get_sentencepiece(words):
    for split in SPLITS:
        shutil.copy(f"data/{split}.de", f"data/{split}.ja")
    assert main(["init", "study", *(word.replace(".de", ".ja") for word in words)]) == 0
    assert read_study()["text"] == {"tokenization": "sentencepiece", "truecase": False, "sentencepiece_size": 4000}


def both_sides(split, text):
    return {f"data/{split}.{lang}": text(lang) for lang in ("en", "de")}


def one_sided(n):
    """A development split with 20 single lines. The target of n lines is empty."""
    return {"data/dev.en": "".join(f"{x} in\n" for x in range(20)), "data/dev.de": "".join(f"{x} aus\n" if x >= n else "\n" for x in range(20))}  # fmt: skip


HALF_TRANSLATED = "\n\n".join(
    f"{en}\n{de}" for (en, _), (_, de) in zip(*(documents("dev", lang) for lang in ("en", "de")), strict=True)
)


@pytest.mark.parametrize(
    ("files", "warning"),
    [
        (both_sides("test", lambda lang: blank_lines("train", lang)), "test: 100 % of the source sentences are in the training text, too (documents with more than half: 12)"),
        (both_sides("dev", lambda lang: 2 * (blank_lines("dev", lang) + "\n")), "dev: 11 documents are copies of earlier documents"),
        ({"data/dev.en": blank_lines("dev", "de"), "data/dev.de": blank_lines("dev", "en")}, "dev: the en text looks like de"),
        ({"data/dev.de": HALF_TRANSLATED}, "dev: 50 % of the target sentences equal"),
        (both_sides("train", lambda lang: plain("train", lang)), "train: no document has a second sentence"),
        (both_sides("dev", lambda lang: blank_lines("test", lang)), "test: 100 % of the source sentences are in the dev text, too (documents with more than half: 10)"),
        (both_sides("dev", lambda lang: f"<d>\n{plain('dev', lang)}"), "dev: are boundaries between documents missing? Documents: 1, sentences: 22"),
        (both_sides("dev", lambda lang: "".join(f"<d>\n{n} {lang}\n" + "x\n" * 1000 for n in (1, 2))), "Documents: 2, sentences: 2,002"),
        (both_sides("dev", lambda lang: f"<d>\n<d>\n{plain('dev', lang)}"), "dev: empty documents, which are left out: 1"),
        ({"data/dev.en": blank_lines("dev", "en").replace("house", "house " * 2000, 1)}, "dev: 1 pairs have a line of 10,000 characters or more"),
        (one_sided(3), "dev: 15 % of the pairs have an empty side: are the files aligned?"),
    ],
)  # fmt: skip
def test_doubtful_files_are_named(words, files, warning, capsys):
    for name, content in files.items():
        write(name, content)
    assert main(["init", "study", *words]) == 0
    assert warning in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: Path("data/dev.de").unlink(), "--dev: data/dev.de: no such file"),
        (lambda: write("data/dev.de", b"\xff\xfea\x00"), "data/dev.de: line 1 is not UTF-8"),
        (lambda: write("data/dev.de", b"caf\xe9\n\nb\n"), "data/dev.de: line 1 is not UTF-8 (byte 0xe9): convert the file"),
        (lambda: write("data/dev.de", blank_lines("dev", "de") + "\nmore\n"), "11 documents in data/dev.en, 12 in data/dev.de"),
        (lambda: write("data/dev.de", blank_lines("dev", "de").replace("\n", "\nx\n", 1)), "document 00001: 2 sentences in data/dev.en, 3 in data/dev.de"),
        (lambda: [write(f"data/dev.{lang}", "\n") for lang in ("en", "de")], "dev: no pair has text on both sides"),
        (lambda: shutil.copy("data/dev.en", "data/dev.de"), "dev: every target sentence equals its source"),
        (lambda: [write(*file) for file in one_sided(20).items()], "dev: no pair has text on both sides"),
    ],
)  # fmt: skip
def test_bad_files_leave_nothing(words, change, message, capsys, folder):
    change()
    assert main(["init", "study", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert [path.name for path in folder.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--train a.en a.de", "--dev is missing"),
        ("--languages en de", "also pass --train, --dev and --test"),
        ("--train a.en a.en --dev a.en a.de --test a.en a.de", "a.en occurs twice"),
        ("--train a.en a.de b.en b.de --dev a.en a.de --test a.en a.de", "4 files: pass one, one per language, or a quoted"),
        ("--train a b --dev a.en a.de --test a.en a.de", "a: two languages are needed, but the file names contain no language codes: pass --languages"),
        ("--train a b --dev a.en a.de --test a.en a.de --languages en xx1", "'xx1': a language is a code of two or three lowercase letters"),
        ("--train a.en a.de --dev a.en a.de --test a.en a.de --format csvv", "expected a reader, or a reader with its settings"),
        ("--train a.en a.de --dev a.en a.de --test a.en a.de --format {reader: tsv, column: [1]}", "--train.format.column: unknown key"),
        ("--train t.csv --dev t.csv --test t.csv", "t.csv: cannot guess the column for id among en, de"),
        ("--train b --dev b --test b --languages en de", "b: cannot guess the format"),
        ("--train a.en a.de --dev a.en a.de --test a.en a.de --format tmx", "needs a file for 'both'"),
        ("--train empty --dev a.en a.de --test a.en a.de", "--train: empty/*: no such file"),
    ],
)  # fmt: skip
def test_bad_options_get_one_line(arguments, message, capsys, folder):
    for name in ("a", "b", "a.en", "a.de", "b.en", "b.de"):
        write(name, f"{name}\n\n{name}\n")
    write("t.csv", "en,de\na,b\n")
    Path("empty").mkdir()
    words = arguments.split(" --format ")
    assert main(["init", "study", *words[0].split(), *(["--format", words[1]] if len(words) > 1 else [])]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not Path("study").exists()


def test_a_copy_that_fails_leaves_nothing(words, monkeypatch, capsys):
    Path("empty").mkdir()
    monkeypatch.setattr(init, "README", "\ud800")
    for study in ("study", "empty"):
        with pytest.raises(UnicodeEncodeError):
            main(["init", study, *words])
    assert not Path("study").exists()
    assert not list(Path("empty").iterdir())


@pytest.mark.parametrize(
    ("text", "lang", "other"),
    [
        ("Der Hund und die Katze sind nicht im Haus, sagt der Mann.", "en", "de"),
        ("Der Hund und die Katze sind nicht im Haus, sagt der Mann.", "de", None),
        ("我的房子不在这里，他有了一个新的。", "ja", "zh"),
        ("Это не то, что он сказал, и не так, как на самом деле.", "ru", None),
        ("Der Hund und die Katze sind nicht im Haus.", "lb", None),  # no list
        ("OK", "en", None),
    ],
)
def test_languages_are_told_by_frequent_words(text, lang, other):
    assert other_language([text] * (1 if text == "OK" else 9), lang) == other
