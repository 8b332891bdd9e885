"""Files that were damaged or swapped after docmt wrote them are refused. All other files are read."""

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from docmt import checksums
from docmt.errors import UserError
from docmt.files import (
    atomic_path,
    atomic_writer,
    iterate_lines,
    read_bytes,
    read_json,
    read_jsonl,
    read_lines,
    read_text,
    write_json,
    write_jsonl,
    write_lines,
)
from docmt.report.input_files import read_table
from docmt.text.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
ROWS = [[f"system{number}", 20.25 + number] for number in range(9)]


def write_table(path, rows):
    with atomic_writer(path) as file:
        pd.DataFrame(rows, columns=["system", "score"]).to_csv(file, index=False)


def write_codes(path, words):
    with atomic_writer(path) as file:
        file.writelines(f"{word[:2]} {word[2:]}</w>\n" for word in words)


def read_scores(path):
    return read_table(path, needed=["score"], words=["system"])


def save_vocabulary(path, words):
    Vocabulary.from_sentences([words]).save(path)


WORDS = ["house", "garden", "river", "mountain"]
KINDS = {
    "text": ("test.en", write_lines, WORDS, lambda path: list(iterate_lines(path))),
    "subwords": ("test.bpe.en", write_lines, WORDS, read_lines),
    "hypotheses": ("test.jsonl", write_jsonl, [{"text": word} for word in WORDS], read_jsonl),
    "scores": ("test.json", write_json, {"scores": [1.5, 2.5]}, read_json),
    "table": ("scores.csv", write_table, ROWS, read_scores),
    "codes": ("codes.bpe", write_codes, WORDS, read_text),
    "vocabulary": ("vocabulary.tsv", save_vocabulary, WORDS, Vocabulary.load),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def flip(path, data):
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])


def cut(path, data):
    path.write_bytes(data[: len(data) // 2])


def empty(path, data):
    path.write_bytes(b"")


def append(path, data):
    path.write_bytes(data + data[-8:])


def swap(path, data):
    other = path.with_name("other")
    shutil.copy(path, path.with_name("third"))
    os.replace(other, path)
    os.replace(path.with_name("third"), other)


def take_from_another_run(path, data):
    shutil.copy(path.parent.parent / "run2" / path.name, path)


@pytest.mark.parametrize("tamper", [flip, cut, empty, append, swap, take_from_another_run])
def test_a_changed_file_is_refused_by_name(tmp_path, kind, tamper):
    name, write, values, read = kind
    others = {} if isinstance(values, dict) else values[1:]
    path = tmp_path / "run1" / name
    write(path, values)
    write(path.with_name("other"), others)
    write(tmp_path / "run2" / name, others)
    read(path)
    tamper(path, path.read_bytes())
    with pytest.raises(UserError) as caught:
        read(path)
    record = path.parent / ".checksums" / f"{name}.sha256"
    assert str(caught.value) == (
        f"{path}: was changed after docmt wrote it (its checksum differs): remove it and run again. If the "
        f"change is intended, delete {record}"
    )


def test_deleted_record_accepts_a_change(tmp_path):
    path = tmp_path / "test.en"
    write_lines(path, WORDS)
    path.write_text("edited\n")
    checksums.checksum_path(path).unlink()
    assert read_lines(path) == ["edited"]


def test_untouched_file_is_read(tmp_path, kind):
    name, write, values, read = kind
    path = tmp_path / "run" / name
    write(path, values)
    write(path, values)
    os.replace(path.parent, tmp_path / "moved")
    read(tmp_path / "moved" / name)
    checksums.checksum_path(tmp_path / "moved" / name).read_text()


def test_a_file_without_a_record_is_read(tmp_path, kind):
    name, write, values, read = kind
    write(tmp_path / name, values)
    shutil.rmtree(tmp_path / ".checksums")
    data = (tmp_path / name).read_bytes()
    append(tmp_path / name, data)
    assert read_bytes(tmp_path / name) == data + data[-8:]
    (tmp_path / name).write_bytes(data)
    read(tmp_path / name)


def test_a_damaged_record_is_refused(tmp_path):
    write_lines(tmp_path / "test.en", WORDS)
    checksums.checksum_path(tmp_path / "test.en").write_bytes(b"\xff\n")
    with pytest.raises(UserError, match=r"test\.en: was changed after"):
        read_lines(tmp_path / "test.en")


@pytest.fixture
def instances(tmp_path):
    """Write a folder with instances."""

    def write():
        with atomic_path(tmp_path / "instances") as folder:
            folder.mkdir()
            write_json(folder / "manifest.json", {"n": 1})
            (folder / "array.npy").write_bytes(b"1")
        return tmp_path / "instances"

    return write


def test_sha256sum_reads_the_records(instances, tmp_path):
    write_lines(tmp_path / "own.en", WORDS)
    write_lines(tmp_path / "train.en", WORDS)
    instances()
    done = subprocess.run(
        "sha256sum -c .checksums/*", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("own.en: OK\ntrain.en: OK\n", "")
    (tmp_path / "instances/array.npy").write_bytes(b"2")
    (tmp_path / "own.en").unlink()
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8").replace("find results", "find .")
    (find,) = re.findall(r"^find .*", page, re.MULTILINE)
    done = subprocess.run(find, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "array.npy: FAILED\n"


def test_a_folder_holds_records_of_its_files_only(instances, tmp_path):
    folder = instances()
    assert read_json(folder / "manifest.json") == {"n": 1}
    assert [path.name for path in sorted((folder / ".checksums").iterdir())] == [
        "array.npy.sha256",
        "manifest.json.sha256",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["instances"]


def test_unrecorded_file_loses_an_old_record(tmp_path):
    path = tmp_path / "progress.json"
    write_json(path, {"step": 1})
    write_json(path, {"step": 2}, checksum=False)
    assert list((tmp_path / ".checksums").iterdir()) == []
    path.write_text("[]")
    assert read_json(path) == []


@pytest.mark.parametrize("n_steps", range(4))
def test_kill_between_steps_is_no_alarm(tmp_path, monkeypatch, n_steps):
    path = tmp_path / "test.en"
    write_lines(path, ["before"])
    done = 0

    def killable(step):
        def run(*args, **kwargs):
            nonlocal done
            if done == n_steps:
                raise KeyboardInterrupt
            done += 1
            return step(*args, **kwargs)

        return run

    with monkeypatch.context() as patched:
        patched.setattr("docmt.checksums.os.replace", killable(os.replace))
        patched.setattr("pathlib.Path.unlink", killable(type(path).unlink))
        if n_steps < 3:
            with pytest.raises(KeyboardInterrupt):
                write_lines(path, ["after"])
        else:
            write_lines(path, ["after"])
    assert read_lines(path) == (["before"] if n_steps < 2 else ["after"])
    assert checksums.checksum_path(path).exists() == (n_steps in (0, 3))


def test_concurrent_writer_is_no_alarm(tmp_path, monkeypatch):
    path = tmp_path / "test.en"
    write_lines(path, ["before"])
    agrees = checksums._checksum_matches
    calls = []

    def write_first(file, name):
        if not calls:
            write_lines(path, ["after"])
        calls.append(name)
        return agrees(file, name)

    monkeypatch.setattr("docmt.checksums._checksum_matches", write_first)
    assert read_lines(path) == ["after"]
    assert len(calls) == 2


def test_unwritable_record_keeps_the_file(tmp_path, monkeypatch):
    def full(path, mode="r", **options):
        if "w" in mode:
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, mode, **options)

    path = tmp_path / "test.en"
    write_lines(path, ["before"])
    monkeypatch.setattr("docmt.checksums.open", full, raising=False)
    with pytest.raises(UserError, match=r"test\.en: cannot be written \(No space left on device\)"):
        write_lines(path, ["after"])
    assert read_lines(path) == ["before"]
    assert checksums.checksum_path(path).exists()


def test_first_process_compares_for_others(tmp_path, monkeypatch):
    path = tmp_path / "test.en"
    write_lines(path, WORDS)
    path.write_text("changed\n", encoding="utf-8")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert read_lines(path) == ["changed"]
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(UserError, match="was changed after"):
        read_lines(path)
