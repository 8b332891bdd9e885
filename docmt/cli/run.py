"""`docmt run`: run Snakemake with a study's configuration."""

import contextlib
import io
import itertools
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any

import yaml
from cyclopts import Parameter

from docmt.cli.init import find_workflow
from docmt.cli.status import find_configuration, warn_of_other_files
from docmt.commands import CommandGroup, print_table
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.study import STAGES, all_artifacts, check_user_files
from docmt.config.by_hand import describe_by_hand
from docmt.config.costs import describe_costs
from docmt.config.loading import load_config, read_config_file, read_config_files
from docmt.errors import UserError
from docmt.files import atomic_writer, create_folder
from docmt.gpu_locks import visible_gpus
from docmt.model_owners import MERGED, MERGED_DRY_RUN, MERGED_HEAD, REPLACE_VARIABLE, configuration_sources
from docmt.replaced_models import REFUSED, REPLACED
from docmt.settings import nearest
from docmt.snakemake import LOCKS, read_jobs
from docmt.snakemake_messages import JOB_LINES

log = logging.getLogger(__name__)

TARGETS = ("all", "tables", "figures", "claims")
"""Snakefile targets, in addition to stages and rules."""
WITH_YAML = {"--profile", "--workflow-profile", "--report-metadata", "--slurm-partition-config"}
"""Snakemake options whose value can be a YAML file."""
MESSAGE_OPTIONS = ("verbose", "quiet", "printshellcmds", "logger")
"""Snakemake options that select Snakemake's format of messages."""
SETTING = re.compile(r'"(\w+)": ("[^"]*"|\[[^\]]*\]|[^\s,{}\[\]]+)')
"""Pattern for a key and its value in JSON settings."""
REASON_WIDTH = 160
"""Maximum reason length in a dry run's table, in characters."""

command = CommandGroup("run", usage="Usage: docmt run [CONFIG …] [TARGET …] [OPTION …]")


@command.default
def run(
    *words: Annotated[str, Parameter(name="ARGUMENTS", allow_leading_hyphen=True)],
    changes: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    dry_run: Annotated[bool, Parameter(alias=["-n", "--dryrun"])] = False,
    directory: Annotated[Path, Parameter(alias="-d")] = Path(),
    replace: bool = False,
) -> None:
    """Run a study, or parts of it, with Snakemake.

    Example:
        docmt run my.yaml training --set decoding.beam_size=4

    Args:
        words: configuration files (default: the files of the last run in this folder, with its `--set`), targets
            (default: all), and options of Snakemake, such as `--cores 4` or `--profile slurm`. Targets must
            precede these options. Files can be anywhere.
        changes: `KEY=VALUE` that overrides the configuration, recorded in results/config.yaml.
        dry_run: print the number of jobs per rule and one reason, without running them. --verbose prints all jobs.
        directory: folder for the results. Paths in the configuration are relative to it.
        replace: also replace models that another configuration trained in this folder.
    """
    files: list[Path] = []
    others: list[str] = []
    previous = ""
    for word in words:
        if word.lower().endswith((".yaml", ".yml")) and not word.startswith("-") and previous not in WITH_YAML:
            files.append(Path(word))
        else:
            others.append(word)
        previous = word
    targets = list(itertools.takewhile(lambda word: not word.startswith("-"), others))
    options = others[len(targets) :]
    _refuse_configuration(options, files)
    workflow = Path.cwd() if Path("workflow/rules").is_dir() else find_workflow()
    profile = os.environ.get("SNAKEMAKE_PROFILE")
    if profile and not any(option.startswith("--profile") for option in options):
        options += ["--profile", profile]
    options = find_profiles(options, workflow)
    parsed = _parse_options(options)
    is_plan = dry_run and "--verbose" not in options
    if dry_run and not is_plan:
        options.remove("--verbose")  # Snakemake would print its internal messages
    changes = changes or []
    files, last_changes = find_configuration(files, directory)
    values = read_config_files(files, [*last_changes, *changes])
    # Snakemake refuses files without keys, such as an addition whose lines are all comments.
    files = [file.absolute() for number, file in enumerate(files) if number == 0 or read_config_file(file)]
    with create_folder(directory), chdir(directory):
        study = Study(load_config(values))
        check_user_files(study)
        names, merged_changes = configuration_sources(files)
        warn_of_other_files(names)
    _check_targets(targets, study)
    if last_changes or changes:
        earlier = [change for change in (*merged_changes, *last_changes) if change not in changes]
        head = {"files": names, "--set": [*earlier, *changes]}
        files = [_write_merged(values, head, directory, is_dry=dry_run or "--unlock" in options)]
    has_profile = bool(parsed.get("profile"))
    if not has_profile and not any(parsed.get(name) for name in ("cores", "jobs", "executor")):
        options += ["--cores", "all"]
    if not has_profile and not parsed.get("executor"):
        options = limit_gpus(options)
    # Targets come first and files last, because some Snakemake options take several values.
    call = [*targets, "--snakefile", str(workflow / "Snakefile"), "--directory", str(directory), *options]
    if dry_run:
        call.append("--dry-run")
    call = [sys.executable, "-m", "snakemake", *call, "--configfile", *map(str, files)]
    if replace:
        os.environ[REPLACE_VARIABLE] = "1"
    if is_plan:
        planned = _print_plan(call, study)
        with chdir(directory):
            facts = [*describe_costs(study, planned), *describe_by_hand(study, planned, folder=directory)]
        if facts:
            print("", *facts, sep="\n")
        return
    has_format = any(parsed.get(name) for name in MESSAGE_OPTIONS)
    job_lines = "" if has_format else "1"
    sys.stdout.flush()
    # Replace this process, so that Ctrl-C and cluster signals only reach Snakemake.
    os.execve(sys.executable, call, {**os.environ, JOB_LINES: job_lines})


def _check_targets(targets: Sequence[str], study: Study) -> None:
    """Raise UserError if a target is not a stage, a rule or a path."""
    names = [*TARGETS, *STAGES, *itertools.chain.from_iterable(STAGES.values())]
    for target in targets:
        if "/" not in target and target not in names:
            hint = nearest(target, names)
            if target in study.config.report.tables:
                hint = f"did you mean 'results/tables/{target}.txt'?"
            raise UserError(f"target {target!r}: not a stage, a rule or a path; {hint}")


def _write_merged(values: Mapping[str, Any], head: Mapping[str, Any], directory: Path, *, is_dry: bool) -> Path:
    """Write the configuration with all changes, and return its path. `head` is written into its first line."""
    if not is_dry and any((directory / LOCKS).glob("*.lock")):
        raise UserError(
            f"{directory / MERGED}: Snakemake is running in this folder, with this file: wait until it has ended. If "
            "it was killed, remove its lock with --unlock"
        )
    name = MERGED_DRY_RUN if is_dry else MERGED
    merged = (directory / name).absolute()
    with atomic_writer(merged, checksum=False) as file:
        file.write(f"{MERGED_HEAD}{json.dumps(head, ensure_ascii=False)}\n")
        yaml.safe_dump(values, file, sort_keys=False, allow_unicode=True, width=120)
    if not is_dry:
        log.info("configuration: %s (default of `docmt run`, `status` and `clean`)", directory / MERGED)
    return merged


def _print_plan(call: Sequence[str], study: Study) -> set[str]:
    """Print a dry run's jobs by rule, with one reason per rule. Return the jobs' outputs.

    Raises UserError if a target is not a file of the study, or if a run would be refused.
    """
    done = subprocess.run(
        call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False
    )
    jobs = list(read_jobs(done.stdout))
    makers: dict[str, str] = {}
    for job in jobs:
        makers |= dict.fromkeys(job.outputs, job.rule)
    reasons: dict[str, list[str]] = {}
    for job in jobs:
        reasons.setdefault(job.rule, []).append(shorten_reason(job.reason, makers))
    unknown = re.search(r"^No rule to produce (\S+)", done.stdout, re.MULTILINE)
    if unknown:
        files: list[str] = []
        for artifact in all_artifacts(study):
            files += artifact.files
        raise UserError(f"target {unknown[1]!r}: not a file of this study; {nearest(unknown[1], files)}")
    if done.returncode:
        sys.stderr.write(done.stdout)
        sys.exit(done.returncode)
    if not reasons:
        print("nothing to be done")
        return set()
    remarks = [line for line in dict.fromkeys(done.stdout.splitlines()) if line.startswith(REPLACED)]
    refusals = [line for line in remarks if line.startswith(REFUSED)]
    for line in remarks:
        if line not in refusals:
            print(line, end="\n\n")
    rows = []
    for rule, rule_reasons in reasons.items():
        # Reasons that only name another job's output are less informative.
        reason = min(rule_reasons, key=lambda reason: reason.startswith("after "))
        rows.append({"rule": rule, "jobs": len(rule_reasons), "reason": reason})
    print_table([*rows, {"rule": "total", "jobs": len(jobs), "reason": ""}])
    if refusals:
        raise UserError(refusals[0].removeprefix("docmt: "))
    return set(makers)


def shorten_reason(reason: str, makers: Mapping[str, str]) -> str:
    """Return a job's first reason, in short. For changed settings, return keys with old and new values.

    `makers` maps files that are made in the same run to their rules.
    """
    reason, _, details = reason.partition("; ")[0].partition(": ")
    before, is_changed, now = details.partition(" now: ")
    rules: dict[str, None] = {}
    if "by another" in reason:
        rules = dict.fromkeys(makers[file] for file in details.split(", ") if file in makers)
    if is_changed:
        old = dict(SETTING.findall(before))
        new = dict(SETTING.findall(now))
        changes = []
        for key in old | new:
            if old.get(key) != new.get(key):
                changes.append(f"{key} {old.get(key)} → {new.get(key)}")
        text = f"changed: {', '.join(changes) or 'settings or data of an earlier stage'}"
    elif rules:
        text = f"after {', '.join(rules)}"
    elif details:
        first, *others = details.split(", ")
        text = f"{reason}: {first}"
        if others:
            text += f" and {len(others)} more"
    else:
        text = reason
    if len(text) > REASON_WIDTH:
        return f"{text[:REASON_WIDTH]}…"
    return text


def _refuse_configuration(options: list[str], files: list[Path]) -> None:
    """Raise UserError if Snakemake options contain settings or a Snakefile, because these would not be checked."""
    for option in options:
        name, _, value = option.partition("=")
        # Snakemake accepts abbreviated long options, and values right after short options.
        if re.fullmatch(r"--conf\S*|--sn\S*|-C\S*|-s\S*", name):
            words = " ".join(map(str, files))
            if not words:
                words = value if value.endswith((".yaml", ".yml")) else "my.yaml"
            raise UserError(
                f"{name}: use `docmt run {words}`, and --set KEY=VALUE for changes; {name} is an option of `snakemake`"
            )


def _parse_options(options: list[str]) -> dict[str, Any]:
    """Return the options as parsed by Snakemake, by name. Raises UserError instead of printing Snakemake's usage."""
    if not options:
        return {}
    from snakemake.cli import get_argument_parser, get_profile_dir  # takes half a second
    from snakemake.exceptions import CliException, WorkflowError

    with contextlib.redirect_stderr(io.StringIO()) as printed:
        try:
            parsed = vars(get_argument_parser().parse_args(options))
        except SystemExit as end:
            if not end.code:  # --version
                raise
            raise UserError(printed.getvalue().rpartition("error: ")[2]) from None
        except (CliException, WorkflowError, ValueError) as error:
            raise UserError(f"{' '.join(options)}: {error}") from None
    for name in ("cores", "jobs"):
        number = parsed.get(name)
        if number is not None and number < 1:
            raise UserError(f"--{name} {number}: must be at least 1")
    for profile in parsed["profile"] or []:
        if profile != "none" and get_profile_dir(profile) is None:
            raise UserError(f"--profile {profile}: no such profile, a folder with config.yaml (docs/slurm.md)")
    rules = list(itertools.chain.from_iterable(STAGES.values()))
    for name in ("set_threads", "set_resources"):
        for rule in parsed.get(name) or {}:
            if rule not in rules:
                raise UserError(f"--{name.replace('_', '-')} {rule}: no rule has this name; {nearest(rule, rules)}")
    return parsed


def find_profiles(options: list[str], workflow: Path) -> list[str]:
    """Return the options with the paths of shipped profiles, such as `slurm`, that are not in the current folder."""
    words = _split("--profile", options)
    for i in range(1, len(words)):
        shipped = workflow / words[i]
        if words[i - 1] == "--profile" and not Path(words[i]).exists() and (shipped / "config.yaml").is_file():
            words[i] = str(shipped)
    return words


def _split(name: str, options: list[str]) -> list[str]:
    """Return the options with the value of one, such as `--profile=slurm`, as a separate word."""
    words: list[str] = []
    for option in options:
        if option.startswith(f"{name}="):
            words += option.split("=", 1)
        else:
            words.append(option)
    return words


def limit_gpus(options: list[str]) -> list[str]:
    """Return the options with a limit on concurrent GPU jobs. Default: this machine's number of GPUs."""
    n_gpus = len(visible_gpus())
    options = _split("--resources", options)
    if not n_gpus or any(option.startswith("gpu=") for option in options):
        return options
    log.info("%d GPU job(s) at a time; --resources gpu=N allows more", n_gpus)
    if "--resources" not in options:
        return [*options, "--resources", f"gpu={n_gpus}"]
    before = options.index("--resources") + 1
    return [*options[:before], f"gpu={n_gpus}", *options[before:]]
