"""`docmt run`: Snakemake called with a study's configuration."""

import logging
import os
import re
import sys
from contextlib import chdir
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import yaml
from cyclopts import Parameter

from docmt.cli.init import find_workflow
from docmt.commands import CommandGroup
from docmt.config.artifacts.report import STAGES
from docmt.config.loading import check_user_files, load_config, parse_yaml, read_config_files
from docmt.config.systems import merge
from docmt.errors import UserError
from docmt.files import atomic_writer, temporary_folder
from docmt.gpu_locks import visible_gpus
from docmt.settings import nearest
from docmt.snakemake import LOCKS

log = logging.getLogger(__name__)

TARGETS = ("all", "demo", "tables", "figures", "claims")
"""Targets of the Snakefile besides its stages and rules."""
PLACES = {"--cores", "-c", "--jobs", "-j", "--profile", "--executor", "-e"}
"""Options that tell Snakemake where, or on how many cores, jobs run."""
ELSEWHERE = {"--profile", "--executor", "-e"}
"""Options with which jobs may run on other machines than this one."""
WITH_YAML = {"--profile", "--workflow-profile", "--report-metadata", "--slurm-partition-config"}
"""Options of Snakemake whose value can be a YAML file."""
MERGED = Path("results/config.yaml")
MERGED_DRY_RUN = Path(".snakemake/dry_run.yaml")

command = CommandGroup("run", usage="Usage: docmt run [FILE.yaml …] [TARGET …] [OPTION …]")


@command.default
def run(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    changes: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    dry_run: Annotated[bool, Parameter(alias=["-n", "--dryrun"])] = False,
    directory: Annotated[Path, Parameter(alias="-d")] = Path(),
) -> None:
    """Run a study, or a part of it, with Snakemake: on all cores of this machine, or with a profile.

    Example:
        docmt run my.yaml training --set decoding.beam_size=4

    Args:
        words: configuration files (default: the demo's), targets (default: all), then options of Snakemake, such as
            `--cores 4` or `--profile slurm`. Files can stand anywhere.
        changes: `KEY=VALUE` on top of the configuration, for a quick try; recorded in results/config.yaml.
        dry_run: only show what would run.
        directory: folder of the results; paths in the configuration are relative to it.
    """
    files: list[Path] = []
    others: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        if word.endswith((".yaml", ".yml")) and not word.startswith("-") and before not in WITH_YAML:
            files.append(Path(word))
        else:
            others.append(word)
    targets = list(takewhile(lambda word: not word.startswith("-"), others))
    options = others[len(targets) :]
    _refuse_configuration(options, files)
    workflow = Path.cwd() if Path("Snakefile").is_file() else find_workflow()
    files = files or [workflow / "config/config.yaml"]
    values = read_config_files(files)
    for change in changes or []:
        values = merge(values, read_change(change))
    with temporary_folder(directory), chdir(directory):
        check_user_files(load_config(values))
    known = [*TARGETS, *STAGES, *(rule for rules in STAGES.values() for rule in rules)]
    for target in targets:
        if "/" not in target and target not in known:
            raise UserError(f"target {target!r}: neither a stage, a rule nor a path; {nearest(target, known)}")
    if changes:
        is_dry = dry_run or "--unlock" in options
        if not is_dry and any((directory / LOCKS).glob("*.lock")):
            raise UserError(
                f"--set: Snakemake is running in this folder, and reads {directory / MERGED}: wait until it has ended, "
                "or, if it was killed, remove its lock with --unlock"
            )
        merged = (directory / (MERGED_DRY_RUN if is_dry else MERGED)).absolute()
        with atomic_writer(merged, checksum=False) as file:
            names = " ".join(path.name for path in files)
            file.write(f"# {names} with {', '.join(changes)}: merged by `docmt run`\n")
            yaml.safe_dump(values, file, sort_keys=False, allow_unicode=True, width=120)
        files = [merged]
        if not is_dry:
            log.info("configuration: %s (give it to docmt status and tidy as --configfile)", directory / MERGED)
    has_profile = "SNAKEMAKE_PROFILE" in os.environ
    if not any(option.split("=")[0] in PLACES or re.match("-[cj][0-9]", option) for option in options):
        options += [] if has_profile else ["--cores", "all"]
    if not has_profile and {option.split("=")[0] for option in options}.isdisjoint(ELSEWHERE):
        options = limit_gpus(options)
    # Targets come first and files last: some options of Snakemake take several values, and would swallow what follows.
    call = [*targets, "--snakefile", str(workflow / "Snakefile"), "--directory", str(directory), *options]
    call += ["--dry-run"] if dry_run else []
    sys.stdout.flush()
    # In place of this process, so that Ctrl-C and the signals of a cluster reach Snakemake alone.
    os.execv(
        sys.executable,
        [sys.executable, "-m", "snakemake", *call, "--configfile", *(str(file.absolute()) for file in files)],
    )


def _refuse_configuration(options: list[str], files: list[Path]) -> None:
    """Raise UserError when Snakemake is given settings or a Snakefile, which nobody would check."""
    for option in options:
        name, _, value = option.partition("=")
        # Snakemake takes the beginnings of long options, and values right after the letters of short ones.
        if re.fullmatch(r"--conf\S*|--sn\S*|-C\S*|-s\S*", name):
            given = " ".join(map(str, files)) or (value if value.endswith((".yaml", ".yml")) else "my.yaml")
            raise UserError(
                f"{name}: write `docmt run {given}`, and changes as `--set KEY=VALUE`; only `snakemake` itself "
                f"takes {name}"
            )


def limit_gpus(options: list[str]) -> list[str]:
    """The options of Snakemake with as many GPU jobs at once as this machine has GPUs, unless they say how many."""
    n_gpus = len(visible_gpus())
    if not n_gpus or any(option.startswith("gpu=") for option in options):
        return options
    log.info("%d GPU job(s) at a time; --resources gpu=N for more", n_gpus)
    if "--resources" not in options:
        return [*options, "--resources", f"gpu={n_gpus}"]
    before = options.index("--resources") + 1
    return [*options[:before], f"gpu={n_gpus}", *options[before:]]


def read_change(change: str) -> dict[str, Any]:
    """The nested mapping of one `KEY=VALUE`, whose value is YAML."""
    key, equals, text = change.partition("=")
    try:
        value = parse_yaml(text, where=key)
    except UserError:
        value, equals = None, ""
    if not equals or not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", key):
        raise UserError(f"--set {change}: give KEY=VALUE, such as decoding.beam_size=4")
    # YAML 1.1 takes 1e-4 for text; here it can only be a number.
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+", value):
        value = float(value)
    first, *rest = key.split(".")
    for name in reversed(rest):
        value = {name: value}
    return {first: value}
