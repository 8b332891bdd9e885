"""Files and commands in the tutorial and on the page about user-supplied systems behave as the pages describe."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from smoke_study import StudyView

from docmt.cli.main import main
from docmt.config.loading import load_config, read_config_file

ROOT = Path(__file__).parents[1]
SENTENCES = {
    "en": ["First Paul paints the steak.", "By the way Emma praises a tart.", "Anyway it looks good."],
    "de": ["Zuerst malt Paul das Steak.", "Übrigens lobt Emma eine Torte.", "Jedenfalls sieht es gut aus."],
}


def read_page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def write_files(page, folder):
    """Write the files on a page. Returns their names."""
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", page, flags=re.S))
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return files


def write_documents(prefix, n_documents, lang):
    document = "\n".join(SENTENCES[lang])
    Path(f"{prefix}.{lang}").write_text("\n\n".join([document] * n_documents) + "\n", encoding="utf-8")


@pytest.fixture
def tutorial(tmp_path, monkeypatch, capsys):
    """Commands on the page with their output, in the study that the first command creates from a corpus."""
    monkeypatch.chdir(tmp_path)
    page = read_page("tutorial.md")
    (tmp_path / "data").mkdir()
    for split, n_documents in {"train": 60, "dev": 6, "test": 6}.items():
        for lang in SENTENCES:
            write_documents(f"data/{split}", n_documents, lang)
    calls = re.findall(r"^\$ (.*)\n((?:(?!```|\$ ).*\n)*)", page, flags=re.M)
    (init, example), (change, _), *others = [(shlex.split(call), example) for call, example in calls]
    assert init[:3] == ["docmt", "init", change[1]]
    assert main(init[1:]) == 0
    check_printed(example, capsys.readouterr().out, init)
    monkeypatch.chdir(change[1])
    text = Path("my.yaml").read_text(encoding="utf-8")
    assert write_files(page, Path())["my.yaml"] == text
    return others


@pytest.mark.slow
def test_tutorial_study_is_planned(tutorial, capsys):
    (check, example), (plan, _) = tutorial[:2]
    assert main(check[1:]) == 0
    check_printed(example, capsys.readouterr().out, check)
    done = subprocess.run([sys.executable, "-m", *plan], capture_output=True, text=True, check=False)
    assert re.search(r"^train +3 ", done.stdout, flags=re.M), done.stderr
    config = load_config(read_config_file(Path("my.yaml")))
    chains = {name: [config.systems.get(row.init), row] for name, row in config.systems.items()}
    updates = {
        name: sum(config.training[one.recipe].max_steps for one in chain if one) for name, chain in chains.items()
    }
    assert updates == {"sentence": 900, "longer": 1050, "g_transformer": 1050}  # the control has as many


def test_tutorial_test_set_is_added():
    page = read_page("tutorial.md")
    (study,) = re.findall(r"<!-- file: my.yaml -->\n```yaml\n(.*?)```", page, flags=re.S)
    (lines,) = re.findall(r"To add a test set,.*?```yaml\n(.*?)```", page, flags=re.S)
    split, tests = lines.splitlines(keepends=True)
    study = re.sub(r"^        test: .*\n", rf"\g<0>{split}", study, flags=re.M)
    study = re.sub(r"^    test: .*\n", tests, study, flags=re.M)
    config = load_config(yaml.safe_load(study))
    assert config.datasets["mine"].test == {"test": ["mine/test"], "news": ["mine/news"]}
    assert set(config.corpora.custom["mine"].splits) == {"train", "dev", "test", "news"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_runs_and_prints_what_it_says(tutorial):
    assert len(tutorial) == 9
    for call, example in tutorial:
        command = [sys.executable, "-m", *call] if call[0] == "docmt" else call
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{call}\n{done.stderr[-3000:]}"
        check_printed(example, done.stdout + done.stderr, call)
    assert re.search(r"^translate +\d", done.stdout, flags=re.M)
    assert not re.search(r"^train +\d", done.stdout, flags=re.M)
    assert Path("results/report/report.html").exists()
    assert len(Path("letter.de.txt").read_text(encoding="utf-8").splitlines()) == 2


def check_printed(example, output, call):
    """Check that the lines on a page occur in the output, in order."""
    printed = iter([normal(line) for line in output.splitlines()])
    for line in filter(None, map(normal, example.splitlines())):
        assert any(line in other for other in printed), f"{call} does not print {line!r}"


def normal(line):
    """A line without parts that differ between corpora and machines: numbers, stars, column widths."""
    line = re.sub(r"[\d.,]*\d", "N", re.sub(r" *\*+|…", "", line))
    return re.sub(r"-+", "-", re.sub(r" +", " ", line)).strip()


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """The page on user-supplied systems, in a folder with its files, a test set and two translations."""
    monkeypatch.chdir(tmp_path)
    page = read_page("hypotheses.md")
    write_files(page, tmp_path)
    for lang in SENTENCES:
        for split in ("train", "dev", "test"):
            write_documents(split, 4, lang)
    Path("service.de").write_text("\n".join(SENTENCES["de"] * 4) + "\n", encoding="utf-8")
    Path("llm.de").write_text("\n".join([*SENTENCES["de"] * 3, "Paul", "Emma", "gut"]) + "\n", encoding="utf-8")
    return page


def test_the_study_of_given_rows_trains_nothing(judged):
    artifacts = StudyView(load_config(read_config_file(Path("judge.yaml"))))
    assert not artifacts.targets["training"]
    assert "results/report/report.html" in artifacts.targets["report"]
    assert {file.file for file in artifacts.user_files()} >= {"service.de", "llm.de"}


def test_given_rows_are_compared_without_a_study(judged, capsys):
    call, table = re.findall(r"```\n(.*?)```", judged[judged.index("## Without a study") :], flags=re.S)
    program, *arguments = shlex.split(call)
    assert program == "docmt"
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(table)


@pytest.mark.parametrize("name", ["study", "node"])
def test_the_batch_script_is_valid_bash(name):
    (script,) = re.findall(rf"<!-- file: {name}.sbatch -->\n```bash\n(.*?)```", read_page("slurm.md"), flags=re.S)
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.startswith("#!/bin/bash\n#SBATCH ")
