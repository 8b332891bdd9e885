import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from filelock import FileLock

# Where there is no GPU, Triton interprets its kernels. It reads this when it is imported, which torch may do.
if not any(map(os.path.exists, ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"))):
    os.environ["TRITON_INTERPRET"] = "1"

# pytest-xdist starts a process for each core: threads of NumPy would only wait for one another. They took two thirds of
# the time of paired tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

FIRST = ("/test_slurm_study", "/workflow/", "/training/", "/report/", "/standin/")
"""Path parts of long tests. They start first, so that at the end no process waits long for another."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One process more than cores for `-n logical`. Some tests wait for signals, time limits and other programs."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Assign whole test files to processes, tests on the finished study to one process, and Slurm tests one by one.

    xdist's `--dist=loadgroup` does not recognize groups under pytest 9.2. Every test would go to the next free process,
    and all processes would make the fixtures of all files.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            if "/slurm/" in path:
                return nodeid
            return "finished" if Path(path).name.startswith("test_workflow_") else path

    return Scheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Long tests come first. Tests that wait until no other test uses Slurm come last."""

    def rank(item):
        position = next((index for index, part in enumerate(FIRST) if part in str(item.path)), len(FIRST))
        return "alone" in item.fixturenames, position

    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter):
    """A line with the number of skipped tests and the reasons."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped if report.longrepr)
    if skipped:
        causes = "; ".join(f"{number} × {reason}" for reason, number in reasons.most_common())
        terminalreporter.write_line(f"skipped: {len(skipped)} ({causes})")


@pytest.fixture(scope="session")
def study_files(tmp_path_factory):
    """Text pipeline, vocabulary and instances for a tiny corpus (`core_fixtures.Study`). Tests do not change them."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder that all processes of pytest-xdist share."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def overfitted(study_files, shared_folder):
    """Model files, by architecture, that have memorized the tiny corpus. The first process that needs one trains it."""
    from core_fixtures import OVERFIT, run_training

    folder = shared_folder / "overfitted"
    folder.mkdir(exist_ok=True)

    def train(architecture):
        path = folder / architecture / "model.pt"
        with FileLock(folder / f"{architecture}.lock"):
            if not path.exists():
                cutting = "sentences" if architecture == "sentence_transformer" else "documents"
                run_training(study_files, path.parent, architecture=architecture, cutting=cutting, **OVERFIT)
        return path

    return train


@pytest.fixture
def small_disk(tmp_path):
    """Function that mounts a file system of some KiB and returns its folder. The user must be allowed to mount."""
    mounted = []

    def make(kib):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small file system here")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        # Lazily: a training that failed to save may still hold a file open.
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
