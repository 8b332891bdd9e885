import subprocess

import pytest


@pytest.fixture(scope="session")
def study_files(tmp_path_factory):
    """Text pipeline, vocabulary and instances of a tiny corpus (`core_fixtures.Study`); tests do not change them."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def overfitted(study_files, tmp_path_factory):
    """Model files that know the tiny corpus by heart, by architecture; trained when first asked for."""
    from core_fixtures import OVERFIT, run_training

    folder = tmp_path_factory.mktemp("overfitted")

    def train(architecture):
        path = folder / architecture / "model.pt"
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
        subprocess.run(["umount", str(folder)], check=False)
