"""The run file: configuration, checksums of user-supplied files and docmt's version when a run was planned.

Snakemake starts a new process for each job on a cluster, which would read the configuration again. A file that was
edited in the meantime would give results with the new settings, which the main process records under the old ones.
Therefore jobs read the run file instead. An edit takes effect in the next run.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmt import __version__
from docmt.config.artifacts.study import user_files
from docmt.config.loading import load_config
from docmt.config.plan import Plan
from docmt.current_run import RUN_FOLDER, RUN_KEY, RUN_VARIABLE, check_version
from docmt.errors import UserError
from docmt.files import modified, write_lines
from docmt.model_owners import configuration_names
from docmt.provenance import fingerprint
from docmt.snakemake_records import RECORDS

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

DAYS_KEPT = 60
"""Days after which a run file is removed. Jobs of a killed run can wait in a queue for weeks."""


def load_plan(workflow: "Workflow", values: Mapping[str, Any]) -> Plan:
    """Return the plan in Snakemake's main process, and in the processes of its jobs the same plan.

    `values` is Snakemake's merged configuration, which is the run file in a job.
    """
    if workflow.is_main_process:
        os.environ.pop(RUN_VARIABLE, None)  # of another study, in whose job this run was started
        for folder in (Path.cwd(), RECORDS.parent):
            if folder.exists() and not os.access(folder, os.W_OK):
                raise UserError(f"{folder}: is read-only: run a copy of the study, made with `cp -a`")
        return Plan.load(values, files=workflow.configfiles)
    if RUN_KEY not in values:
        raise UserError("this job was started without a run file: run Snakemake without --no-hooks")
    os.environ[RUN_VARIABLE] = str(workflow.configfiles[0])
    check_version(values[RUN_KEY])
    # Missing user-supplied files are no error here. The job that reads them fails.
    configuration = dict(values)
    del configuration[RUN_KEY]
    return Plan(load_config(configuration))


def start_run(workflow: "Workflow", values: Mapping[str, Any], plan: Plan) -> None:
    """Write the run file and pass it to all jobs of this run."""
    files = {}
    for user_file in user_files(plan.study):
        # A container can have a folder in place of the host's link.
        for path in (os.path.realpath(user_file.file), os.path.abspath(user_file.file)):
            files[path] = user_file.fingerprint
    # In the order of the configuration, which is the order of tables.
    run = {"version": __version__, "configuration": configuration_names(workflow.configfiles), "files": files}
    text = json.dumps({**values, RUN_KEY: run}, ensure_ascii=False)
    path = RUN_FOLDER.absolute() / f"{fingerprint(text)}.json"
    # An existing file is written again, so that its modification time is the time of its last use.
    write_lines(path, [text], checksum=False)
    for former in RUN_FOLDER.glob("*.json"):
        if modified(former) < time.time() - DAYS_KEPT * 86400:
            former.unlink(missing_ok=True)
    os.environ[RUN_VARIABLE] = str(path)
    workflow.config_settings.configfiles = [path]  # option --configfiles of jobs
