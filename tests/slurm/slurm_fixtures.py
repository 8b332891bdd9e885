"""A real Slurm with two nodes on this machine, and runs of Snakemake that tests can disturb.

The tests mostly wait, so several run at the same time, in processes of pytest-xdist that share the cluster.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from filelock import FileLock

from docmt.config.loading import merge, read_config_file
from docmt.models.model_file import load_content

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUDY = HERE / "study.yaml"
RUN = Path("results/controlled/runs/sentence_transformer/seed1")
MODEL = f"{RUN}/model.pt"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol")
LONG = {"training": {"scratch": {"max_steps": 600, "log_every_steps": 10, "checkpoint_every_steps": 5000}}}
"""A training of some seconds that only writes checkpoints at validations and on request."""
LONG["training"]["scratch"] |= {"validate_every_steps": 200}
SIZE = {"SLURM_CI_CPUS": "64", "SLURM_CI_MEM": "500000", "SLURM_CI_GPUS": "4"}
"""Size of a node. It is large enough that no parallel test waits for another."""
PATIENCE_SECONDS = 500
"""Jobs start slowly on a busy machine."""


def slurm(*command):
    """Output of a Slurm command."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def wait_until(condition, *, seconds=PATIENCE_SECONDS, what="it"):
    """Wait for a condition and return its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.1)
    return value


class Cluster:
    """The Slurm for these tests."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"SLURM_CI_DIR": str(folder)} | SIZE

    def start(self):
        subprocess.run(["bash", HERE / "start_slurm.sh"], env=self.environment, check=True, timeout=60)

    def stop(self):
        subprocess.run(["bash", HERE / "stop_slurm.sh"], env=self.environment, check=True, timeout=120)

    def stop_controller(self):
        """`kill -9` of slurmctld."""
        pid = int((self.folder / "slurmctld.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), what="the end of slurmctld")

    def start_controller(self):
        subprocess.run(["slurmctld"], check=True, timeout=60)
        ping = ["scontrol", "ping"]  # ends with an error while it is down
        wait_until(lambda: subprocess.run(ping, capture_output=True).returncode == 0, what="the start of slurmctld")


@dataclass
class Call:
    """A running Snakemake."""

    process: subprocess.Popen
    log: Path
    folder: Path

    @property
    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, condition, *, what):
        """Like the function with this name, but only while Snakemake runs."""

        def is_there():
            value = condition()
            assert value or self.process.poll() is None, f"{what} did not happen: {self.text[-3000:]}"
            return value

        return wait_until(is_there, what=what)

    def wait_for(self, pattern):
        """Wait for a text in the log."""
        return self.wait_until(lambda: re.search(pattern, self.text), what=repr(pattern))

    def finish(self, seconds=PATIENCE_SECONDS):
        """Wait for the exit code."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running: {self.text[-3000:]}") from None

    def jobs(self):
        """Ids of all submitted jobs, in order."""
        return re.findall(r"submitted with SLURM jobid (\d+)", self.text)

    def job(self, number=1):
        """Id of the n-th submitted job. Waits for it."""
        return self.wait_until(lambda: len(self.jobs()) >= number and self.jobs()[number - 1], what=f"job {number}")

    def wait_for_update(self, step):
        """Wait until the training has reached an update in this run."""

        def is_there():
            updates = re.findall(r"update (\d+) ", training_log(self.folder))
            return updates and int(updates[-1]) >= step

        self.wait_until(is_there, what=f"update {step}")


class Study:
    """A study in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def config(self, changes):
        file = self.folder / "study.yaml"
        file.write_text(yaml.safe_dump(merge(read_config_file(STUDY), changes)), encoding="utf-8")
        return file

    def call(self, *targets, changes=LONG, options=(), profile="slurm"):
        """Start `snakemake --profile slurm` in the repository root."""
        command = [sys.executable, "-m", "snakemake", *targets, "--directory", str(self.folder), *options]
        if profile:
            command += ["--profile", profile, "--slurm-init-seconds-before-status-checks", "2"]
            command += ["--max-jobs-per-timespan", "600/1m"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DOCMT"))}
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{HERE / 'polling'}"
        command += ["--configfile", str(self.config(changes))]
        number = len(list(self.folder.glob("call-*.log"))) + 1
        log = self.folder / f"call-{number}.log"
        with open(log, "w") as file:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # A test run in the background ignores Ctrl-C, and so would its children.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        return Call(process, log, self.folder)

    def run(self, *targets, **options):
        """Run to the end, which must be successful."""
        call = self.call(*targets, **options)
        assert call.finish(3 * PATIENCE_SECONDS) == 0, call.text[-5000:]
        return call

    def run_here(self, *targets, changes=LONG, options=()):
        """Run without Slurm."""
        return self.run(*targets, changes=changes, options=("--cores", "2", *options), profile=None)

    def queue(self, *options):
        """Ids of this study's unfinished jobs. Other tests have jobs at the same time."""
        lines = slurm("squeue", "--me", "--noheader", *options, "--Format", "JobID:|,STDOUT:|").splitlines()
        return [line.split("|")[0] for line in lines if f"{self.folder}/" in line]

    def checkpoints(self):
        """Steps of all sentence model checkpoints."""
        paths = (self.folder / RUN / "checkpoints").glob("*/step-*.json")
        return sorted(int(path.stem.removeprefix("step-")) for path in paths)

    def assert_saved_at_the_signal(self):
        """The newest checkpoint has the update of the first signal, according to the log. Returns its step.

        On a busy machine, a signal often comes during a validation, so the step of a checkpoint from there is also
        accepted.
        """
        before, signal, _ = self.training_log().partition("SIGTERM: saving a checkpoint")
        assert signal, before
        step, logged = self.checkpoints()[-1], re.findall(r" update (\d+)  loss", before)
        assert 0 <= step - int(logged[-1]) <= 2 * LONG["training"]["scratch"]["log_every_steps"], (step, logged)
        return step

    def training_log(self):
        return training_log(self.folder)


def training_log(folder):
    """Training log so far. Empty before a job starts, for the first time or again."""
    try:
        return (folder / "logs/train/controlled/sentence_transformer/seed1.log").read_text(encoding="utf-8")
    except FileNotFoundError:  # Snakemake removes it before each start.
        return ""


def copy_of(study, folder):
    """Copy of a study in a folder, including file times."""
    shutil.copytree(study.folder, folder / "study")
    return Study(folder / "study")


def trainers(study):
    """Processes of `docmt train` in a study, and their arguments."""
    lines = subprocess.run(["pgrep", "-f", "-a", "docmt.* train "], capture_output=True, text=True).stdout.splitlines()
    return [
        int(line.split()[0])
        for line in lines
        if os.path.exists(f"/proc/{line.split()[0]}/cwd")
        and os.readlink(f"/proc/{line.split()[0]}/cwd") == str(study.folder)
        and os.readlink(f"/proc/{line.split()[0]}/exe").rpartition("/")[2].startswith("python")
    ]


def environment(pid):
    """Environment of a process."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def assert_same_model(study, expected):
    """The same weights bit by bit, and the same history except for times."""
    weights, others = (load_content(each.folder / MODEL)["weights"] for each in (study, expected))
    assert list(weights) == list(others)
    assert not [name for name in weights if not torch.equal(weights[name], others[name])]
    histories = [
        pd.read_csv(each.folder / RUN / "history.csv").drop(columns=["seconds", "tokens_per_second"])
        for each in (study, expected)
    ]
    pd.testing.assert_frame_equal(*histories, check_exact=True)


@pytest.fixture(scope="session")
def running_cluster(shared_folder):
    """A Slurm with two nodes. Needs Slurm programs, and root, because its configuration has to be in /etc/slurm.

    The first pytest process that needs it starts it, and the last one stops it.
    """
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (packages slurmctld, slurmd, slurm-client, munge)")
    if os.geteuid() != 0:
        pytest.skip("not root: a test Slurm cannot be started")
    # munged wants its socket within reach of all users. Pytest's folders are closed.
    folder = Path(tempfile.gettempdir()) / f"docmt-slurm-{shared_folder.name}"
    lock, users = FileLock(shared_folder / "cluster.lock"), shared_folder / "cluster.users"
    cluster = Cluster(folder)
    with lock:
        if not (n_users := count(users)):
            folder.mkdir()
            folder.chmod(0o711)
            cluster.start()
        users.write_text(str(n_users + 1))
    try:
        yield cluster
    finally:
        with lock:
            users.write_text(str(n_users := count(users) - 1))
            if not n_users:
                cluster.stop()
                shutil.rmtree(folder)


def count(file):
    """Number in a file. 0 without a file."""
    return int(file.read_text()) if file.exists() else 0


@pytest.fixture
def alone():
    """For tests that stop the controller, or count seconds of computing. No other test uses the cluster."""


@pytest.fixture
def cluster(running_cluster, shared_folder, request):
    """The cluster. Several tests use it at the same time."""
    with open(shared_folder / "cluster.use", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if "alone" in request.fixturenames else fcntl.LOCK_SH)
        yield running_cluster


def made_once(shared_folder, name, make):
    """Study in a folder that all pytest processes share. The first process that needs it makes it."""
    folder = shared_folder / name
    with FileLock(f"{folder}.lock"):
        if not (folder / "is_made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "is_made").touch()
    return Study(folder / "study")


@pytest.fixture(scope="session")
def prepared(shared_folder):
    """A study with all stages before training finished."""

    def make(folder):
        (folder / "study").mkdir()
        Study(folder / "study").run_here("instances", "results/controlled/text/pipeline.json")

    return made_once(shared_folder, "prepared", make)


@pytest.fixture(scope="session")
def expected(prepared, shared_folder):
    """The study with its sentence model, trained on this machine without a fault."""
    return made_once(shared_folder, "expected", lambda folder: copy_of(prepared, folder).run_here(MODEL))


@pytest.fixture(scope="session")
def expected_of_two(prepared, shared_folder):
    """The same study, trained on two devices of this machine."""
    options = ("--set-resources", "train:gpu=2")
    return made_once(
        shared_folder, "expected_of_two", lambda folder: copy_of(prepared, folder).run_here(MODEL, options=options)
    )


@pytest.fixture
def study(cluster, prepared, tmp_path):
    """Copy of `prepared` for one test, including file times."""
    study = copy_of(prepared, tmp_path)
    yield study
    if jobs := study.queue():
        subprocess.run(["scancel", *jobs], check=False, timeout=60)
    wait_until(lambda: not study.queue(), what="the end of all jobs")
