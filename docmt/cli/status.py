"""`docmt status`: the state of a study at a glance."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.config.artifacts.report import STAGES
from docmt.config.artifacts.runs import run_folder
from docmt.config.loading import load_config_files
from docmt.config.plan import Plan
from docmt.config.systems import list_runs
from docmt.errors import UserError
from docmt.snakemake import read_workflow
from docmt.status.reasons import explain
from docmt.status.study import read_study
from docmt.status.text import show_reasons, show_study
from docmt.status.trainings import job_name


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    add_study_options(parser)
    parser.add_argument("--costs", action="store_true", help="show the time, CPU, GPU and memory use of jobs instead")
    parser.add_argument("--why", action="store_true", help="show why finished jobs run again instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def add_study_options(parser: CommandParser) -> None:
    """Add the options that say which study: its folder and its configuration."""
    parser.add_argument("--directory", type=Path, default=Path("."), metavar="FOLDER", help="folder of the study")
    parser.add_argument(
        "--configfile",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="configuration files, as for Snakemake (default: config/config.yaml)",
    )


def read_plan(options: argparse.Namespace) -> Plan:
    """The plan of the study that the options name. Raises UserError as `run` does."""
    if not options.directory.is_dir():
        what = "is a file" if options.directory.exists() else "no such folder"
        raise UserError(f"--directory {options.directory}: {what}: give the folder of a study")
    return Plan(load_config_files(options.configfile or [default_config()]))


def run(options: argparse.Namespace) -> None:
    """Print the state or the costs. Raises UserError for a bad configuration or a folder that is not one."""
    plan = read_plan(options)
    configfiles = options.configfile or [default_config()]
    folder = options.directory.resolve()
    if options.costs:
        print_costs(folder, plan, as_json=options.json)
        return
    if options.why:
        print_reasons(folder, plan, as_json=options.json)
        return
    status = read_study(folder, plan, configfiles=configfiles)
    print(json.dumps(status.to_json(), indent=1, ensure_ascii=False) if options.json else show_study(status))


def print_reasons(folder: Path, plan: Plan, *, as_json: bool) -> None:
    """Print why jobs that have finished run again."""
    reasons = explain(folder, plan, read_workflow(folder))
    print(json.dumps([asdict(reason) for reason in reasons], indent=1) if as_json else show_reasons(reasons))


def default_config() -> Path:
    """The default configuration, in the current folder or in the repository of this docmt."""
    places = [Path("config/config.yaml"), Path(__file__).parents[2] / "config/config.yaml"]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise UserError(f"{places[0]}: no such file: give the study's configuration with --configfile")
    return found


def print_costs(folder: Path, plan: Plan, *, as_json: bool) -> None:
    """Print the costs of all finished jobs."""
    from docmt.report.costs import costs_table, read_costs, summarize_costs
    from docmt.report.tables import to_text

    runs = {job_name(run): folder / run_folder(run) for run in list_runs(plan.config)}
    costs = read_costs(folder / "results/benchmarks", run_folders=runs, stages=STAGES)
    if as_json:
        rows = [
            {key: None if value != value else value for key, value in row.items()}  # JSON has no NaN
            for row in summarize_costs(costs)
        ]
        print(json.dumps(rows, indent=1))
        return
    table = costs_table(costs)
    print("no job has finished yet" if table is None else f"{to_text(table)}\n\n{table.caption}")
