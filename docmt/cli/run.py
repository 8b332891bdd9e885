"""`docmt run`: Snakemake called with a study's configuration."""

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
from docmt.config.artifacts.base import rules_by_stage
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import check_user_files, load_config, read_config_file
from docmt.config.systems import merge
from docmt.errors import UserError
from docmt.files import atomic_writer
from docmt.settings import nearest

TARGETS = ("all", "demo", "tables", "figures", "claims")
"""Targets of the Snakefile besides its stages and rules."""
PLACES = {"--cores", "-c", "--jobs", "-j", "--profile", "--executor", "-e"}
"""Options that tell Snakemake where, or on how many cores, jobs run."""
MERGED = Path("results/config.yaml")
MERGED_DRY_RUN = Path(".snakemake/dry_run.yaml")

command = CommandGroup("run", usage="Usage: docmt run [FILE.yaml …] [TARGET …] [OPTION …]")


@command.default
def run(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    changes: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    dry_run: Annotated[bool, Parameter(alias="-n")] = False,
    directory: Annotated[Path, Parameter(alias="-d")] = Path(),
) -> None:
    """Run a study, or a part of it, with Snakemake: on all cores of this machine, or with a profile.

    Example:
        docmt run my.yaml training --set decoding.beam_size=4

    Args:
        words: configuration files (default: the demo's), targets (default: all), then options of Snakemake, such as
            `--cores 4` or `--profile slurm`.
        changes: `KEY=VALUE` on top of the configuration, for a quick try; recorded in results/config.yaml.
        dry_run: only show what would run.
        directory: folder of the results; paths in the configuration are relative to it.
    """
    files = [Path(word) for word in takewhile(lambda word: word.endswith((".yaml", ".yml")), words)]
    targets = list(takewhile(lambda word: not word.startswith("-"), words[len(files) :]))
    options = list(words[len(files) + len(targets) :])
    workflow = Path.cwd() if Path("Snakefile").is_file() else find_workflow()
    values: dict[str, Any] = {}
    for file in (files := files or [workflow / "config/config.yaml"]):
        values = merge(values, read_config_file(file))
    for change in changes or []:
        values = merge(values, read_change(change))
    directory.mkdir(parents=True, exist_ok=True)
    with chdir(directory):
        check_user_files(load_config(values))
    known = [*TARGETS, *(name for stage in rules_by_stage(StudyArtifacts).items() for name in (stage[0], *stage[1]))]
    for target in targets:
        if "/" not in target and target not in known:
            raise UserError(f"target {target!r}: neither a stage, a rule nor a path; {nearest(target, known)}")
    if changes:
        merged = (directory / (MERGED_DRY_RUN if dry_run else MERGED)).absolute()
        with atomic_writer(merged, checksum=False) as file:
            names = " ".join(path.name for path in files)
            file.write(f"# {names} with {', '.join(changes)}: merged by `docmt run`\n")
            yaml.safe_dump(values, file, sort_keys=False, allow_unicode=True, width=120)
        files = [merged]
    if not any(option.split("=")[0] in PLACES or re.match("-[cj][0-9]", option) for option in options):
        options += [] if "SNAKEMAKE_PROFILE" in os.environ else ["--cores", "all"]
    # Targets come first and files last: some options of Snakemake take several values, and would swallow what follows.
    call = [*targets, "--snakefile", str(workflow / "Snakefile"), "--directory", str(directory), *options]
    call += ["--dry-run"] if dry_run else []
    sys.stdout.flush()
    # In place of this process, so that Ctrl-C and the signals of a cluster reach Snakemake alone.
    os.execv(
        sys.executable,
        [sys.executable, "-m", "snakemake", *call, "--configfile", *(str(file.absolute()) for file in files)],
    )


def read_change(change: str) -> dict[str, Any]:
    """The nested mapping of one `KEY=VALUE`, whose value is YAML. Raises UserError when it is neither."""
    key, equals, text = change.partition("=")
    try:
        value: Any = yaml.safe_load(text)
    except yaml.YAMLError:
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
