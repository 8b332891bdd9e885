"""Writing files when the disk is full."""

import functools
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest
import torch

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.files import atomic_path, read_text, write_json, write_lines

LINES = ["a line of some length"] * 20_000


def write_arrays(path):
    with atomic_path(path) as temporary:
        np.save(temporary.with_suffix(".npy"), np.zeros(100_000))


def write_tensors(path):
    with atomic_path(path) as temporary:
        torch.save({"weights": torch.zeros(100_000)}, temporary)


@pytest.mark.parametrize(
    "write",
    [lambda path: write_lines(path, LINES), lambda path: write_json(path, LINES), write_arrays, write_tensors],
    ids=["lines", "json", "numpy", "torch"],
)
def test_full_disk_keeps_the_old_file(small_disk, write):
    path = small_disk(200) / "corpus/train.en"
    write_lines(path, ["before"])
    with pytest.raises(UserError, match=r"corpus/train\.en: cannot be written \(No space left on device\): free some"):
        write(path)
    assert path.read_text() == "before\n"
    assert sorted(file.name for file in path.parent.iterdir()) == [".checksums", "train.en"]
    assert read_text(path) == "before\n"


def test_full_disk_for_a_folder(small_disk):
    disk = small_disk(100)
    with open(disk / "ballast", "wb") as file, pytest.raises(OSError, match="No space"):
        file.write(bytes(200_000))
    with pytest.raises(UserError, match="No space left"):
        write_lines(disk / "train.en", LINES)
    assert [file.name for file in disk.iterdir()] == ["ballast"]


def test_full_disk_names_the_final_path(small_disk):
    path = small_disk(100) / "instances/train"
    words = rf"^{path}/manifest\.json: cannot be written \(No space left on device\): free"
    with atomic_path(path) as folder:
        folder.mkdir()
        with pytest.raises(UserError, match=words):
            write_lines(folder / "manifest.json", ["x" * 200_000])


@pytest.mark.parametrize("error", [OSError("3 requested and 2 written"), RuntimeError("of another kind")])
def test_other_errors_stay_as_they_are(tmp_path, error):
    with pytest.raises(type(error), match=str(error)), atomic_path(tmp_path / "file"):
        raise error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_signal_removes_unfinished_output(tmp_path, number, jobs):
    (tmp_path / "in.en").write_text("Some words , of a line .\n" * 200_000, encoding="utf-8")
    command = ["text", "tokenize", "--lang", "en", "--jobs", jobs, "--input", "in.en", "--out", "out/o.en"]
    # Tests can run under nohup, which ignores SIGHUP.
    reset = functools.partial(signal.signal, number, signal.SIG_DFL)
    call = [sys.executable, "-m", "docmt", *command]
    with subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=reset) as process:
        end = time.monotonic() + 120
        # Some output, so that all processes have started: one that is just starting would complain of its parent's end.
        while not any(path.stat().st_size for path in tmp_path.glob("out/.o.en.*/o.en")) and time.monotonic() < end:
            time.sleep(0.05)
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["in.en"]


def test_unwritable_output_is_noticed_early(tmp_path, capsys):
    (tmp_path / "file").touch()
    missing = ["--model", f"{tmp_path}/no.pt", "--instances", f"{tmp_path}/no"]
    for out, message in (
        (tmp_path, "is a folder, not a file"),
        (tmp_path / "file/a/out", f"cannot be written, because {tmp_path}/file is a file"),
    ):
        assert main(["decode", "translate", *missing, "--out", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert main(["decode", "translate", *missing, "--out", f"{tmp_path}/new/folder/out"]) == 2
    assert "no.pt: no such file" in capsys.readouterr().err
    with mock.patch("os.access", return_value=False):
        assert main(["decode", "translate", *missing, "--out", f"{tmp_path}/new/out"]) == 2
    assert f"{tmp_path} is read-only" in capsys.readouterr().err
