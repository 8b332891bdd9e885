"""The tutorial and the page on rows that users bring: their files and commands do what the pages say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docmt.cli.main import main
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, read_config_file

ROOT = Path(__file__).parents[1]
SENTENCES = {
    "en": ["First Paul paints the steak.", "By the way Emma praises a tart.", "Anyway it looks good."],
    "de": ["Zuerst malt Paul das Steak.", "Übrigens lobt Emma eine Torte.", "Jedenfalls sieht es gut aus."],
}


def read_page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def write_files(page, folder):
    """The files of a page, and the names of them."""
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", page, flags=re.S))
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return files


def write_documents(prefix, n_documents, lang):
    document = "\n".join(SENTENCES[lang])
    Path(f"{prefix}.{lang}").write_text("\n\n".join([document] * n_documents) + "\n", encoding="utf-8")


@pytest.fixture
def tutorial(tmp_path, monkeypatch, capsys):
    """The commands of the page with what they print, in the study that its first command makes of a corpus."""
    monkeypatch.chdir(tmp_path)
    page = read_page("tutorial.md")
    (tmp_path / "data").mkdir()
    for split, n_documents in {"train": 60, "dev": 6, "test": 6}.items():
        for lang in SENTENCES:
            write_documents(f"data/{split}", n_documents, lang)
    calls = re.findall(r"^\$ (.*)\n((?:(?!```|\$ ).*\n)*)", page, flags=re.M)
    (init, shown), (change, _), *others = [(shlex.split(call), shown) for call, shown in calls]
    assert init[:3] == ["docmt", "init", change[1]]
    assert main(init[1:]) == 0
    check_printed(shown, capsys.readouterr().out, init)
    monkeypatch.chdir(change[1])
    made = Path("my.yaml").read_text(encoding="utf-8")
    assert write_files(page, Path())["my.yaml"] == made
    return others


def test_the_study_of_the_tutorial_is_planned_as_it_says(tutorial, capsys):
    (check, shown), (plan, _) = tutorial[:2]
    assert main(check[1:]) == 0
    check_printed(shown, capsys.readouterr().out, check)
    done = subprocess.run([sys.executable, "-m", *plan], capture_output=True, text=True, check=False)
    assert re.search(r"^train +3$", done.stdout, flags=re.M), done.stderr
    config = load_config(read_config_file(Path("my.yaml")))
    chains = {name: [config.systems.get(row.init), row] for name, row in config.systems.items()}
    updates = {
        name: sum(config.training[one.recipe].max_steps for one in chain if one) for name, chain in chains.items()
    }
    assert updates == {"sentence": 900, "longer": 1050, "g_transformer": 1050}  # the control has as many


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_runs_and_prints_what_it_says(tutorial):
    assert len(tutorial) == 9
    for call, shown in tutorial:
        command = [sys.executable, "-m", *call] if call[0] == "docmt" else call
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{call}\n{done.stderr[-3000:]}"
        check_printed(shown, done.stdout + done.stderr, call)
    assert re.search(r"^translate +\d", done.stdout, flags=re.M)
    assert not re.search(r"^train +\d", done.stdout, flags=re.M)
    assert Path("results/report/report.html").exists()
    assert len(Path("letter.de.txt").read_text(encoding="utf-8").splitlines()) == 2


def check_printed(shown, output, call):
    """Asserts that the lines that a page shows occur in the output, in order."""
    printed = iter([normal(line) for line in output.splitlines()])
    for line in filter(None, map(normal, shown.splitlines())):
        assert any(line in other for other in printed), f"{call} does not print {line!r}"


def normal(line):
    """A line without what differs between corpora and machines: numbers, stars, widths of columns."""
    line = re.sub(r"[\d.,]*\d", "N", re.sub(r" *\*+|…", "", line))
    return re.sub(r"-+", "-", re.sub(r" +", " ", line)).strip()


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """The page on rows that users bring, in a folder with its files, a test set and two translations."""
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
    artifacts = StudyArtifacts(load_config(read_config_file(Path("judge.yaml"))))
    assert not artifacts.targets["training"]
    assert "results/report/report.html" in artifacts.targets["report"]
    assert {file.file for file in artifacts.user_files()} >= {"service.de", "llm.de"}


def test_given_rows_are_compared_without_a_study(judged, capsys):
    call, table = re.findall(r"```\n(.*?)```", judged[judged.index("## Without a study") :], flags=re.S)
    program, *arguments = shlex.split(call)
    assert program == "docmt"
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(table)


def test_the_profile_of_the_made_up_university_names_rules_and_resources_that_exist():
    (profile,) = re.findall(r"<!-- file: uni/config.yaml -->\n```yaml\n(.*?)```", read_page("slurm.md"), flags=re.S)
    uni = yaml.safe_load(profile)
    shipped = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
    assert set(uni) == {*shipped, "set-resources"}
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    on_gpus = re.findall(
        r"^rule (\w+):(?:(?!^rule ).*\n)*?.*(?:\bgpu=1|training_resources\(workflow\))", rules, flags=re.M
    )
    assert sorted(uni["set-resources"]) == sorted(on_gpus)


def test_snakemake_plans_jobs_by_the_profile_of_the_made_up_university(tmp_path):
    (profile,) = re.findall(r"<!-- file: uni/config.yaml -->\n```yaml\n(.*?)```", read_page("slurm.md"), flags=re.S)
    uni = yaml.safe_load(profile)
    # The variant for clusters that want --gres, which the page describes.
    uni["set-resources"]["translate"] |= {"gpu": 0, "gres": "gpu:v100:1"}
    del uni["set-resources"]["translate"]["gpu_model"]
    (tmp_path / "uni").mkdir()
    (tmp_path / "uni/config.yaml").write_text(yaml.safe_dump(uni), encoding="utf-8")
    options = ["--profile", str(tmp_path / "uni"), "--dry-run", "--directory", str(tmp_path)]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *options]
    smoke = str(ROOT / "config/examples/smoke.yaml")
    done = subprocess.run([*command, "--configfile", smoke], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    jobs = re.findall(
        r"^rule (\w+):\n(?:    (?!resources).*\n)*    resources: (.*)", done.stdout + done.stderr, flags=re.M
    )
    wanted = {rule: dict(each.split("=", 1) for each in text.split(", ") if "=" in each) for rule, text in jobs}
    assert {found["slurm_account"] for found in wanted.values()} == {"nlp-group"}
    assert {rule for rule, found in wanted.items() if found["slurm_partition"] == "gpu"} >= {"train", "translate"}
    assert wanted["tokenize"]["slurm_partition"] == "cpu"
    shown = {name: wanted["train"][name] for name in ("gpu", "gpu_model", "devices", "mem_mb", "runtime")}
    assert shown == {"gpu": "2", "gpu_model": "a100", "devices": "2", "mem_mb": "32000", "runtime": "700"}
    asked = wanted["translate"]
    assert (asked["gpu"], asked["gres"]) == ("0", "gpu:v100:1")


def test_the_batch_script_is_valid_bash():
    (script,) = re.findall(r"<!-- file: study.sbatch -->\n```bash\n(.*?)```", read_page("slurm.md"), flags=re.S)
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.startswith("#!/bin/bash\n#SBATCH ")


def test_the_container_gets_the_words_of_a_job(tmp_path, monkeypatch):
    (wrapper,) = re.findall(r"<!-- file: bin/docmt -->\n```bash\n(.*?)```", read_page("slurm.md"), flags=re.S)
    for name, text in {"docmt": wrapper, "apptainer": '#!/bin/sh\nprintf "%s\\n" "$@"\n'}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = subprocess.run("exec docmt train --settings '{\"a b\": 1}'", shell=True, capture_output=True, text=True)
    given = ["exec", "--nv", "--bind", "/scratch", "/projects/nlp/docmt.sif", "docmt"]
    assert done.stdout.splitlines() == [*given, "train", "--settings", '{"a b": 1}']
    assert (ROOT / "docmt/__main__.py").is_file()
