"""`docmt status`: the state of a study at a glance."""

import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import CommandGroup, option
from docmt.config.artifacts.report import STAGES
from docmt.config.artifacts.runs import run_folder
from docmt.config.loading import load_config, read_config_files
from docmt.config.plan import Plan
from docmt.config.systems import list_runs
from docmt.errors import UserError
from docmt.snakemake import read_workflow
from docmt.status.display import show_reasons, show_study
from docmt.status.rerun_reasons import explain
from docmt.status.study import read_study
from docmt.status.trainings import job_name
from docmt.status.verification import verify_results


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """Options that name a study: its folder and its configuration."""

    directory: Annotated[Path, option("folder of the study.")] = Path(".")
    configfile: Annotated[
        list[Path] | None, option("configuration files, as for Snakemake; by default config/config.yaml.")
    ] = None

    @property
    def configfiles(self) -> list[Path]:
        """The configuration files; by default the one in the current folder or in the repository of this docmt."""
        if self.configfile:
            return self.configfile
        places = [Path("config/config.yaml"), Path(__file__).parents[2] / "config/config.yaml"]
        found = next((path for path in places if path.is_file()), None)
        if found is None:
            raise UserError(f"{places[0]}: no such file: give the study's configuration with --configfile")
        return [found]

    @contextmanager
    def opened(self) -> Iterator[tuple[Plan, Path]]:
        """The plan of the study, and its folder: the working directory, as paths in the configuration start there.

        Raises UserError for a bad configuration or a folder that is not one.
        """
        if not self.directory.is_dir():
            what = "is a file" if self.directory.exists() else "no such folder"
            raise UserError(f"--directory {self.directory}: {what}: give the folder of a study")
        values = read_config_files(self.configfiles)
        with chdir(self.directory):
            yield Plan(load_config(values)), Path.cwd()


command = CommandGroup("status")


@command.default
def status(
    *,
    study: StudyFolder = StudyFolder(),
    costs: bool = False,
    why: bool = False,
    verify: bool = False,
    as_json: Annotated[bool, option("print JSON.", name="--json")] = False,
) -> int:
    """Show the state of a study (done, running, failed), and its costs.

    Example:
        docmt status --configfile config/examples/smoke.yaml --why

    Args:
        costs: show the time, CPU, GPU and memory use of jobs instead.
        why: show why finished jobs run again instead.
        verify: compare all results with their checksums instead; the exit code is 1 if one is damaged.
    """
    files = study.configfiles
    with study.opened() as (plan, folder):
        if costs:
            print_costs(folder, plan, as_json=as_json)
        elif why:
            reasons = explain(folder, plan, read_workflow(folder))
            print(json.dumps([asdict(reason) for reason in reasons], indent=1) if as_json else show_reasons(reasons))
        elif verify:
            n_files, problems = verify_results(folder, plan)
            lines = [*problems, f"{n_files:,} files compared with their checksums, {len(problems)} damaged"]
            found = {"files": n_files, "problems": problems}
            print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else "\n".join(lines))
            return int(bool(problems))
        else:
            state = read_study(folder, plan, configfiles=files)
            print(json.dumps(state.to_json(), indent=1, ensure_ascii=False) if as_json else show_study(state))
    return 0


def print_costs(folder: Path, plan: Plan, *, as_json: bool) -> None:
    """Print the costs of all finished jobs."""
    from docmt.report.costs import costs_table, read_costs, summarize_costs
    from docmt.report.tables import to_text

    runs = {job_name(run): folder / run_folder(run.dataset, run.system, run.seed) for run in list_runs(plan.config)}
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
