"""Trials of damage: a file in a finished study changes, and a command that reads it runs again."""

import io
import os
import random
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from docmt.checksums import checksum_path
from docmt.cli.main import main

DAMAGES = ("flipped", "cut", "emptied", "swapped", "reordered", "doubled")
INSTANCES = re.compile(r"(results/[^/]+/instances/.*)/manifest\.json")
VOLATILE = re.compile(rb'"(?:seconds|cpu_seconds|started|finished|wall_seconds)": [^,}\n]*')


@dataclass(frozen=True)
class Job:
    """A job in a dry run with its command."""

    rule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: tuple[str, ...]

    def reads(self, path):
        """True if a file is an input, or in an input folder."""
        return any(path == source or path.startswith(f"{source}/") for source in self.inputs)


@dataclass(frozen=True)
class Trial:
    """A single damage to a file.

    Attributes:
        damage: kind of damage, in `DAMAGES`.
        path: damaged file.
        job: job that then read the file.
        outcome: `named`, `harmless`, `silent` (another result, exit code 0) or `crash`.
        message: last line that the command printed.
    """

    damage: str
    path: str
    job: Job
    outcome: str
    message: str


def read_commands(text):
    """Jobs in a dry run that prints shell commands."""
    for block in text.split("\n\n"):
        if not (rule := re.search(r"^(?:local)?rule (\w+):$", block, re.MULTILINE)):
            continue
        command = re.search(r"^Shell command: (?:exec )?docmt (.*)$", block, re.MULTILINE)
        if command is None:
            continue
        lists = {}
        for key in ("input", "output"):
            named = re.search(rf"^    {key}: (.*)$", block, re.MULTILINE)
            # Instances are a folder, which the rules name by its manifest.
            lists[key] = tuple(INSTANCES.sub(r"\1", name) for name in named[1].split(", ")) if named else ()
        written = re.sub(r" 2?> \S+( 2>&1| 2> \S+)?$", "", command[1])
        yield Job(rule[1], lists["input"], lists["output"], tuple(shlex.split(written)))


def files_of(folder, jobs):
    """All files that jobs read, by path below the folder, without files of Snakemake and checksums."""
    files = set()
    for job in jobs:
        for source in job.inputs:
            path = folder / source
            files |= {file for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()}
    names = (str(file.relative_to(folder)) for file in files)
    return sorted(name for name in names if ".checksums/" not in name and not name.endswith(".snakemake_timestamp"))


class Laboratory:
    """A copy of a finished study, in which files are damaged and restored one at a time."""

    def __init__(self, finished, folder, *, dry_run, capsys, seed):
        shutil.copytree(finished, folder)
        self.folder, self.capsys = folder, capsys
        self.jobs = list(read_commands(dry_run))
        self.files = files_of(folder, self.jobs)
        self.jobs = [job for job in self.jobs if any(map(job.reads, self.files))]
        self.rules = sorted({job.rule for job in self.jobs})
        self.chance = random.Random(seed)
        self.made = {}

    def run(self, n_trials, rules=()):
        """Damage random files, with all kinds of damage equally often. Damage without effect on a file is skipped.

        `rules` restricts the damage to inputs of some rules.
        """
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            trials = []
            while len(trials) < n_trials:
                if trial := self._try(DAMAGES[len(trials) % len(DAMAGES)], rules or self.rules):
                    trials.append(trial)
            return trials
        finally:
            os.chdir(before)

    def _try(self, damage, rules):
        rule = self.chance.choice(rules)
        job = self.chance.choice([job for job in self.jobs if job.rule == rule])
        path = self.chance.choice([file for file in self.files if job.reads(file)])
        changed = self._damaged(damage, path)
        if changed is None or changed[path] == Path(path).read_bytes():
            return None
        backup = self._contents([*changed, *_all_files(job.outputs)])
        for name, content in changed.items():
            Path(name).write_bytes(content)
        outputs_before = _lasting_files(job.outputs)  # a swap may have changed one of them
        code, message = self._command(job)
        left = _lasting_files(job.outputs)
        self._restore(backup)
        if code == 0:
            return Trial(damage, path, job, "harmless" if left == self._undisturbed(job) else "silent", message)
        is_named = code == 2 and message.startswith("docmt: error: ")
        return Trial(damage, path, job, "named" if is_named and left == outputs_before else f"crash {code}", message)

    def _command(self, job):
        """Run a job's command in this process. Returns its exit code, or an error, and its last message."""
        try:
            code = main(["--force", *job.words])  # Snakemake removes outputs before a job
        except (Exception, SystemExit) as error:
            code = repr(error)
        return code, self.capsys.readouterr().err.strip().rpartition("\n")[2]

    def _undisturbed(self, job):
        """Results of a job's command on undamaged files, with the current code."""
        if job not in self.made:
            backup = self._contents(_all_files(job.outputs))
            assert self._command(job)[0] == 0
            self.made[job] = _lasting_files(job.outputs)
            self._restore(backup)
        return self.made[job]

    def _contents(self, names):
        """Content of files and their checksums."""
        paths = [each for name in names for each in (Path(name), checksum_path(Path(name))) if each.exists()]
        return {path: path.read_bytes() for path in paths}

    def _restore(self, contents):
        for path, content in contents.items():
            path.write_bytes(content)

    def _damaged(self, damage, path):
        """New content of a file, and of its partner in a swap."""
        content = Path(path).read_bytes()
        if not content:
            return None
        if damage == "flipped":
            position = self.chance.randrange(len(content))
            flipped = content[position] ^ (1 << self.chance.randrange(8))
            return {path: content[:position] + bytes([flipped]) + content[position + 1 :]}
        if damage == "cut":
            return {path: content[: self.chance.randrange(len(content))]}
        if damage == "emptied":
            return {path: b""}
        if damage == "doubled":
            return {path: content + content}
        if damage == "reordered":
            lines = content.splitlines(keepends=True)
            self.chance.shuffle(lines)
            return {path: b"".join(lines)}
        others = [other for other in self.files if other != path and Path(other).suffix == Path(path).suffix]
        if not others:
            return None
        other = self.chance.choice(others)
        return {path: Path(other).read_bytes(), other: content}


def _all_files(outputs):
    for name in outputs:
        path = Path(name)
        yield from (str(file) for file in ([path] if path.is_file() else sorted(path.rglob("*"))) if file.is_file())


def _lasting_files(outputs):
    return {name: lasting(Path(name)) for name in _all_files(outputs)}


def lasting(path):
    """Content of a file without times."""
    if path.suffix == ".pt":
        content = torch.load(path, weights_only=True)
        file = io.BytesIO()
        torch.save({key: value for key, value in content.items() if key != "provenance"}, file)
        return file.getvalue()
    return VOLATILE.sub(b"", path.read_bytes())
