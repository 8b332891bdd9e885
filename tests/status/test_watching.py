"""Time left, progress of decoding, why jobs run again, and the line after Ctrl-C."""

import base64
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from smoke_study import smoke_config
from study_folders import BEGUN

from docmt.checksums import record_of
from docmt.commands import as_argument
from docmt.config.plan import Plan
from docmt.snakemake import Workflow
from docmt.status.display import farewell
from docmt.status.remaining_work import Progress, estimate, read_progress, unfinished
from docmt.status.rerun_reasons import explain
from docmt.status.trainings import Training

IDLE = Workflow("idle")
METER = "05:31:30 INFO translate: 320 of 1200 sentences, 8.0 per second, 01:50 left\n"


def make(folder, *artifacts):
    """Files as finished jobs leave them, with the fingerprints of the plan."""
    for artifact in artifacts:
        for file in artifact.files:
            if not (folder.path / file).is_dir():
                path = folder.write(file, "x")
                record_of(path).parent.mkdir(exist_ok=True)
                record_of(path).write_text(f"{'0' * 64}  {path.name}\n# fingerprint {artifact.fingerprint}\n")


def changed(**sections):
    return Plan(smoke_config(sections))


def test_the_last_line_of_a_meter_is_the_progress_and_others_are_not(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("05:31:00 INFO device cpu\n" + METER.replace("320", "160") + METER)
    assert read_progress(log) == Progress(320, 1200, "sentences", 110.0)
    log.write_text(METER.replace("8.0", "0.0").replace("01:50", "?"))
    assert read_progress(log) == Progress(320, 1200, "sentences", None)
    log.write_text("05:31:00 INFO 3 of 5 files were read\n")
    assert read_progress(log) is None
    assert read_progress(tmp_path / "missing.log") is None


def test_a_meter_writes_what_is_read(tmp_path, monkeypatch):
    log = tmp_path / "x.log"
    code = (
        "import docmt.logs as logs; logs.LOG_SECONDS = 0; logs.set_up_logging()\n"
        "with logs.Meter(10, label='translate', unit='sentences') as meter: meter.add(4)"
    )
    with open(log, "w") as file:
        subprocess.run([sys.executable, "-c", code], stderr=file, check=True)
    assert (found := read_progress(log)) is not None
    assert (found.done, found.total, found.unit) == (4, 10, "sentences")


def test_a_running_translation_shows_how_far_it_is(folder, capsys):
    log, output = "logs/translate/x.log", "results/d/runs/s/seed1/decoding/t.jsonl"
    folder.lock()
    folder.snakemake(BEGUN.format(rule="translate", outputs=output, log=log, number=1), host="elsewhere")
    folder.mark(output)
    folder.write(log, METER)
    assert folder.status() == 0
    text = capsys.readouterr().out
    assert "320/1,200 sentences, 1m left" in text
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert folder.status("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["snakemake"]["running"][0]["progress"]["done"] == 320
    assert found["remaining"]["jobs"] == len(unfinished(folder.path, folder.plan, IDLE))


def test_what_led_to_a_file_that_exists_is_not_left(folder):
    study = folder.plan.artifacts
    run = [(run.dataset, run.system, str(run.seed)) for run in study.trained]
    everything = unfinished(folder.path, folder.plan, IDLE)
    assert {"train", "tokenize", "translate", "render"} <= {artifact.rules[0] for artifact in everything}
    assert sum(artifact.rules == ("train",) for artifact in everything) == len(run)
    make(folder, study.report(), study.reader(), *(study.model(*names) for names in run[1:]))
    left = unfinished(folder.path, folder.plan, IDLE)
    assert study.model(*run[0]).files[0] in {file for artifact in left for file in artifact.files}
    assert "translate" not in {artifact.rules[0] for artifact in left}
    make(folder, study.model(*run[0]))
    assert unfinished(folder.path, folder.plan, IDLE) == []


def test_the_time_left_is_that_of_trainings_and_of_jobs_like_finished_ones(folder):
    study = folder.plan.artifacts
    first, *others = [(run.dataset, run.system, str(run.seed)) for run in study.trained]
    make(folder, study.reader(), *(study.model(*names) for names in others))
    folder.write("results/benchmarks/render/render.tsv", "s\tmax_rss\n20\t1\n")
    folder.write("results/benchmarks/gather/gather.tsv", "half")
    training = Training(first[0], first[1], 1, "interrupted", step=100, max_steps=300, seconds=50.0)

    def left(**running):
        return estimate(folder.path, folder.plan, IDLE, trainings=[training], running=running)

    alone = left()
    assert alone.eta_seconds == pytest.approx(100 + 20), "200 updates of half a second, and the page"
    assert alone.unknown == alone.jobs - 2 > 0
    assert left(a=None, b=None).eta_seconds == pytest.approx(100), "no sooner than the longest job alone"
    make(folder, *study.finals, study.model(*first))
    assert left().jobs == 0
    assert left().eta_seconds is None


def recorded(folder, artifact):
    """Snakemake's record of a job: of the parameters, it has the settings alone."""
    name = base64.urlsafe_b64encode(artifact.files[0].encode()).decode()
    folder.write(f".snakemake/metadata/{name}", {"params": [repr(as_argument(artifact.params["settings"]))]})


def test_a_job_that_runs_again_says_which_setting_changed_and_the_others_that_they_follow(folder):
    study = folder.plan.artifacts
    hypotheses = study.hypotheses("controlled", "rst_mix", "1", "test_controlled")
    scores = study.scores("controlled", "rst_mix", "1", "test_controlled")
    make(folder, hypotheses, scores)
    recorded(folder, hypotheses)
    assert explain(folder.path, folder.plan, IDLE) == []
    reasons = explain(folder.path, changed(decoding={"beam_size": 7}), IDLE)
    assert [(reason.rule, reason.words, reason.is_root) for reason in reasons] == [
        ("translate", "changed: beam_size: 2 → 7", True),
        ("evaluate_translation", f"its input {hypotheses.files[0]} is made again", False),
    ]


def test_changed_settings_of_the_report_are_compared_with_settings_alone(folder):
    """Its other parameters are mappings, too, which Snakemake does not record."""
    page = folder.plan.artifacts.report()
    make(folder, page)
    recorded(folder, page)
    (reason,) = explain(folder.path, changed(report={"title": "Other"}), IDLE)
    assert reason.words == "changed: title: Smoke test → Other"


def test_other_reasons_have_words_too(folder):
    study = folder.plan.artifacts
    hypotheses = study.hypotheses("controlled", "rst_mix", "1", "test_controlled")
    make(folder, hypotheses)
    plan = changed(decoding={"beam_size": 7})
    (reason,) = explain(folder.path, plan, IDLE)
    assert "copied without the records in .snakemake" in reason.words
    recorded(folder, plan.artifacts.hypotheses("controlled", "rst_mix", "1", "test_controlled"))
    (reason,) = explain(folder.path, plan, IDLE)
    assert "a new version of docmt" in reason.words
    (reason,) = explain(folder.path, folder.plan, Workflow("idle", started={hypotheses.files[0]: None}))
    assert reason.words == "a job that was making it did not finish"


def test_a_result_that_is_accepted_as_it_is_does_not_run_again(folder):
    """Without a record of docmt's, one of Snakemake's suffices."""
    hypotheses = folder.plan.artifacts.hypotheses("controlled", "rst_mix", "1", "test_controlled")
    folder.write(hypotheses.file)
    assert len(explain(folder.path, folder.plan, IDLE)) == 1
    recorded(folder, hypotheses)
    assert explain(folder.path, folder.plan, IDLE) == []


def test_why_on_the_command_line(folder, tmp_path, capsys):
    study = folder.plan.artifacts
    hypotheses = study.hypotheses("controlled", "rst_mix", "1", "test_controlled")
    make(folder, hypotheses, study.scores("controlled", "rst_mix", "1", "test_controlled"))
    recorded(folder, hypotheses)
    beam = tmp_path / "beam.yaml"
    beam.write_text("decoding: {beam_size: 7}\n")
    assert folder.status("--why") == 0
    assert capsys.readouterr().out == "no finished job runs again\n"
    assert folder.status(str(beam), "--why") == 0
    assert capsys.readouterr().out == (
        f"translate  {hypotheses.files[0]}\n  changed: beam_size: 2 → 7\n\nbecause of these: evaluate_translation 1\n"
    )
    assert folder.status(str(beam), "--why", "--json") == 0
    assert [reason["is_root"] for reason in json.loads(capsys.readouterr().out)] == [True, False]


def test_the_line_after_ctrl_c_says_what_is_saved(folder):
    n_all = sum(map(len, folder.plan.targets().values()))
    line = farewell(folder.path, folder.plan)
    assert line == f"docmt: stopped: 0 of {n_all} results are made and stay; the same command makes the rest"
    folder.checkpoint("progress.json", {"step": 4, "seconds": 2.0})
    line = farewell(folder.path, folder.plan)
    assert f"saved: {folder.run.system}/seed1 after update 4 of 6; the same command resumes" in line
    assert "\n" not in line


SNAKEFILE = """
from docmt.snakemake import note_farewell

say = note_farewell(workflow, lambda: "docmt: farewell")

onerror:
    say()

rule all:
    output: "x"
    shell: "{command}"
"""


CTRL_C = "kill -INT $PPID; sleep 1; "


@pytest.mark.parametrize(("command", "lines"), [(CTRL_C + "exit 1", 1), (CTRL_C * 2 + "exit 1", 1), ("exit 1", 0)])
def test_only_ctrl_c_makes_snakemake_say_farewell(command, lines, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("{command}", command))
    arguments = [str(Path(sys.executable).with_name("snakemake")), "--cores", "1"]
    # Where the tests run in the background, Ctrl-C is ignored.
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    # On a busy machine the signal may come while Snakemake closes one of its event loops, where nobody can catch it.
    for _attempt in range(3):
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=120, preexec_fn=heeding)
        if "asyncio/runners.py" not in done.stderr:
            break
    assert done.returncode != 0
    assert done.stderr.splitlines().count("docmt: farewell") == lines
    assert "Traceback" not in done.stderr
    assert done.stderr.count("already stopping") == (command.count(CTRL_C) == 2)
