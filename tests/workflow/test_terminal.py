"""Terminal output of a run: one line per job, and docmt's lines after a missing input."""

import re

import pytest
import warm
from studies import SMOKE, clean_environment
from test_planned_runs import editing

JOB_LINE = re.compile(r"\d\d:\d\d:\d\d \[(\d+)/(\d+)\] (\w+)( \S+)?")


@pytest.mark.slow
def test_run_prints_one_line_per_job(tmp_path):
    words = ["run", str(SMOKE), "--directory", str(tmp_path), "--cores", "2", "corpora"]
    done = warm.run("docmt", words, environment=clean_environment())
    assert done.returncode == 0, done.stderr
    terminal = done.stderr
    (file,) = (tmp_path / ".snakemake/log").glob("*.log")
    log = file.read_text(encoding="utf-8")
    jobs = [match for line in terminal.splitlines() if (match := JOB_LINE.fullmatch(line))]
    n_jobs = int(re.findall(r"^total +(\d+)$", terminal, re.MULTILINE)[0])
    assert [int(job[1]) for job in jobs] == list(range(1, n_jobs + 1))
    assert {int(job[2]) for job in jobs} == {n_jobs}
    assert (jobs[0][3], jobs[-1][3]) == ("controlled_generate", "corpora")
    n_rules = len({job[3] for job in jobs})
    assert len(terminal.splitlines()) <= n_jobs + n_rules + 15
    assert log.count("Finished jobid") == n_jobs
    assert "    output: results/corpora/smoke/en-de/train.en, " in log
    assert not JOB_LINE.search(log)


def test_run_ends_with_paths_of_pages(study):
    folder = study.folder / "results/report"
    (folder / "reader.html").unlink()
    lines = [f"docmt: tables and pictures: {folder / 'report.html'}", f"docmt: translations: {folder / 'reader.html'}"]
    planned = study.run("--dry-run")
    done = study.run()
    assert [line for line in planned.stderr.splitlines() if line.startswith("docmt: t")] == []
    assert [line for line in done.stderr.splitlines() if line.startswith("docmt: t")] == lines


@pytest.mark.slow
def test_removed_reference_is_named_last(study, tmp_path):
    changes = {
        "datasets": {"smoke": {"references": {"smoke": ["second.de"]}}},
        "decoding": {"beam_size": 3},
    }
    (study.folder / "second.de").write_text("Hallo .\n", encoding="utf-8")
    programs = editing(tmp_path / "bin", "rm -f second.de")
    run = "results/smoke/runs/sentence_transformer/seed1/scores.json"
    done = study.run(run, changes=changes, programs=[programs])
    assert done.returncode != 0
    assert "filesystem latency" in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "docmt: error: second.de: was removed after this run was planned: restore it if it is yours, and start the run "
        "again",
        "docmt: 69 of 70 results are made; the same command resumes; `docmt status` shows what failed",
    ]
