import subprocess
from collections import Counter

import pytest
from filelock import FileLock

STUDIES = ("finished", "suites")
"""Fixtures that run a whole study: all tests that use one run in the same process, so that it is run once."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Divide tests among processes (pytest-xdist): by file, or by the study that they use; studies come first."""
    for item in items:
        study = next((name for name in STUDIES if name in getattr(item, "fixturenames", ())), None)
        item.add_marker(pytest.mark.xdist_group(study or str(item.path)))
    items.sort(key=lambda item: STUDIES.index(group) if (group := group_of(item)) in STUDIES else len(STUDIES))


def group_of(item):
    """The group of tests that run in one process."""
    return item.get_closest_marker("xdist_group").args[0]


def pytest_terminal_summary(terminalreporter):
    """One line that says how many tests were skipped, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped if report.longrepr)
    if skipped:
        causes = "; ".join(f"{number} × {reason}" for reason, number in reasons.most_common())
        terminalreporter.write_line(f"skipped: {len(skipped)} ({causes})")


@pytest.fixture(scope="session")
def study_files(tmp_path_factory):
    """Text pipeline, vocabulary and instances of a tiny corpus (`core_fixtures.Study`); tests do not change them."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def overfitted(study_files, tmp_path_factory, worker_id):
    """Model files that know the tiny corpus by heart, by architecture; trained by the first process that asks."""
    from core_fixtures import OVERFIT, run_training

    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "overfitted"
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
    """A function that makes a file system of so many KiB and returns its folder; needs the right to mount."""
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
