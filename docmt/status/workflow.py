"""What Snakemake left in a study's folder: its lock, jobs begun and not ended, and its messages."""

import base64
import binascii
import json
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

N_LOGS = 3
"""Newest message files of Snakemake that are read."""

BLOCK = re.compile(r"^(?P<error>Error in )?(?:local)?(?:rule|checkpoint) (?P<rule>\w+):$")
ENTRY = re.compile(r"^    (?P<key>\w+): (?P<value>.*)$")
SUBMITTED = re.compile(r"^Job (?P<number>\S+) has been submitted with SLURM jobid (?P<job>\S+) ")


@dataclass(frozen=True)
class Job:
    """A job as Snakemake announced it.

    Attributes:
        rule: its rule.
        log: its log file, relative to the folder; empty when it has none.
        outputs: its files, relative to the folder.
        job: id in the cluster's queue, of one that failed or that Snakemake marks as begun.
        is_failed: whether Snakemake said so, and did not begin it anew.
        message: what Snakemake said of a failed job, without the advice after it.
    """

    rule: str
    log: str = ""
    outputs: tuple[str, ...] = ()
    job: str | None = None
    is_failed: bool = False
    message: str | None = None

    @property
    def name(self) -> str:
        """What tells it from other jobs of its rule."""
        return Path(self.log).stem if self.log else ", ".join(self.outputs)


@dataclass(frozen=True)
class Workflow:
    """What Snakemake says.

    Attributes:
        state: `idle`, `running`, `killed` (a lock, and no Snakemake on its host), or `locked` (a lock, and from here
            one cannot tell).
        host, pid: where it runs or ran last; the process only when it is seen here.
        started: files begun and not ended, with the id of their job in the cluster's queue or None.
        jobs: the last announcement of each job, by log file, from the newest message files.
        configfiles: as given in the last call; empty when the default was taken.
    """

    state: str
    host: str | None = None
    pid: int | None = None
    started: dict[str, str | None] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    configfiles: tuple[str, ...] = ()

    def job_of(self, output: str) -> Job | None:
        """The job that makes a file, when Snakemake announced it."""
        return next((job for job in self.jobs.values() if output in job.outputs), None)

    @property
    def is_alive(self) -> bool:
        """Whether it runs, as far as one can tell from here."""
        return self.state in ("running", "locked")

    def running(self) -> list[Job]:
        """The jobs begun and not ended, while Snakemake runs; one that is unknown is named by its file."""
        if not self.is_alive:
            return []
        jobs: dict[str, Job] = {}
        for output, number in self.started.items():
            job = self.job_of(output) or Job(rule="?", outputs=(output,))
            jobs[job.log or output] = replace(job, job=number or job.job)
        return list(jobs.values())


def read_workflow(folder: Path) -> Workflow:
    """Read `.snakemake` of a study's folder; a missing or foreign one is an idle Snakemake."""
    home = folder / ".snakemake"
    texts = [_read(path) for path in sorted((home / "log").glob("*.snakemake.log"))[-N_LOGS:]]
    jobs: dict[str, Job] = {}
    for text in texts:
        jobs |= {job.log: job for job in read_jobs(text) if job.log}
    facts = _facts(texts[-1]) if texts else {}
    host = facts.get("Host")
    pid = _find_process(folder) if any((home / "locks").glob("*.lock")) else None
    state = "idle"
    if pid is not None:
        state, host = "running", platform.node()
    elif any((home / "locks").glob("*.lock")):
        state = "killed" if host == platform.node() and Path("/proc").is_dir() else "locked"
    configfiles = tuple(re.findall(r"Path\('([^']*)'\)", facts.get("Config file(s)", "")))
    return Workflow(state, host, pid, dict(_started(home / "incomplete")), jobs, configfiles)


def read_jobs(text: str) -> Iterator[Job]:
    """The jobs in Snakemake's messages, in order; a job that is begun anew or fails comes again."""
    numbers: dict[str, str] = {}
    rule, is_failed, entries = None, False, {}
    for line in [*text.splitlines(), ""]:
        if rule is not None and (entry := ENTRY.match(line)):
            entries[entry["key"]] = entry["value"]
            continue
        if rule is not None and not line.startswith(" "):
            yield _job(rule, entries, numbers, is_failed=is_failed)
            rule = None
        if block := BLOCK.match(line):
            rule, is_failed, entries = block["rule"], bool(block["error"]), {}
        elif submitted := SUBMITTED.match(line):
            numbers[submitted["number"]] = submitted["job"]


def _job(rule: str, entries: dict[str, str], numbers: dict[str, str], *, is_failed: bool) -> Job:
    outputs = tuple(name.removesuffix(" (update)") for name in entries.get("output", "").split(", ") if name)
    log = entries.get("log", "").removesuffix(" (check log file(s) for error details)").split(", ")[0]
    # A job that begins is submitted after its announcement: a number known then is that of an earlier attempt.
    job = (entries.get("external_jobid") or numbers.get(entries.get("jobid", ""))) if is_failed else None
    message = entries.get("message", "None").partition(" Detailed failure reason")[0]
    return Job(rule, log, outputs, job, is_failed, None if message == "None" or not is_failed else message)


def _facts(text: str) -> dict[str, str]:
    """The head of a message file: `Host: …`, `Config file(s): …`."""
    lines = (line.strip().partition(": ") for line in text.splitlines()[:20])
    return {key: value for key, colon, value in lines if colon}


def _started(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Files that Snakemake marks as begun. Marks are named by the base64 of the path, cut at the length of a name."""
    for mark in folder.rglob("*"):
        if mark.is_file():
            name = "".join(part.removeprefix("@") for part in mark.relative_to(folder).parts)
            try:
                output = base64.urlsafe_b64decode(name).decode("utf-8")
                number = json.loads(_read(mark)).get("external_jobid")
            except (binascii.Error, ValueError, AttributeError):
                continue
            yield output, None if number is None else str(number)


def _find_process(folder: Path) -> int | None:
    """The Snakemake of this host that works in a folder. Processes of other users may be hidden."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            # `snakemake …`, `python /path/snakemake …`, `python -m snakemake …`; not `bash -c "… snakemake …"`.
            if any(Path(word.decode(errors="replace")).name == "snakemake" for word in words[:4]) and (
                (entry / "cwd").resolve() == folder.resolve()
            ):
                return int(entry.name)
        except OSError:
            continue
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
