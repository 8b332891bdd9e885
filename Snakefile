# docmt: from corpora to the report. Targets are described in docs/workflow.md.
import os
import sys
from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from docmt.config.discourse import TREEBANKS
from docmt.config.plan import (
    annotation_job_threads,
    scale_with_attempt,
    shard_options,
    text_job_threads,
    wildcard_regex,
)
from docmt.config.references import (
    CONTROLLED_SPLITS,
    CONTROLLED_SUITES,
    NESTED_SUITES,
)
from docmt.config.run_file import load_plan, start_run
from docmt.errors import UserError
from docmt.gpu_locks import LOCAL_JOBS
from docmt.model_owners import configuration_names, guard_deletion
from docmt.models.published.catalog import load_models
from docmt.replaced_models import describe_trainings
from docmt.slurm import watch_jobs
from docmt.snakemake import cores_per_gpu, training_resources
from docmt.snakemake_messages import shorten_messages
from docmt.snakemake_patches import (
    patch_group_errors,
    patch_job_errors,
    patch_request_limits,
    patch_scheduler_timer,
    patch_sigterm_deadlock,
    patch_slurm_outages,
    patch_step_cores,
    patch_unfinished_marks,
)
from docmt.snakemake_records import check_records
from docmt.status.study import describe_failures, describe_pages, describe_results
from docmt.utf8 import use_utf8

min_version("9.27")
use_utf8()

# Workarounds for bugs in Snakemake 9.27 and its Slurm plugin, described in docs/upstream.md.
patch_scheduler_timer()
patch_sigterm_deadlock()
patch_group_errors()
if not workflow.is_main_process:
    patch_step_cores()
    patch_unfinished_marks()


# Files after --configfile are complete. Without such files, the demo's configuration is used.
if not workflow.overwrite_configfiles:

    configfile: Path(workflow.basedir) / "config" / "config.yaml"


# Jobs on other nodes get the main process's configuration, even if the files have changed.
try:
    plan = load_plan(workflow, config)
    if workflow.is_main_process:
        shorten_messages(
            partial(describe_results, Path.cwd(), plan),
            lambda: describe_trainings(
                workflow.dag.needrun_jobs(),
                configuration_names(workflow.configfiles),
                is_dry_run=workflow.dryrun,
            ),
            partial(describe_failures, Path.cwd()),
        )
        guard_deletion(workflow)
        # Settings of results are unknown without records.
        check_records(plan.files())
except UserError as error:
    raise WorkflowError(str(error)) from None


# `plan` contains everything that depends on the config. These methods return functions of the wildcards. Their first
# argument is a declaration in docmt/config/artifacts. It is named after the output files of the rule, such as "model":
#   plan.input("model", "init")           input files with this name, which can be none; without a name: all
#   plan.settings("model")                settings of the command, as JSON
#   plan.param("model", "name")           one value
#   plan.params("codes", "src_lang")      `--src-lang VALUE`, quoted for the shell, or nothing if the value is null
#   plan.options("model", "loggers")      the same for options that do not change the result and are not recorded
#   plan.file_option("instances", "discourse")  `--discourse FILES`, quoted, for inputs that can be your own files
#   plan.fingerprint("model")             hash of all parameters and everything upstream; a job runs again if it changes
# `settings` come from these sections of the config. Keys in system and dataset rows take precedence.
#   corpora       the row in `corpora.mtdata`, `corpora.controlled` or `corpora.filters`
#   text          `text`; for tokens and truecasers only the keys that affect tokens
#   discourse     `settings` and `seed` of the row in `discourse.segmenters` or `discourse.parsers`; the row in
#                 `discourse.trees`
#   instances     the row in `instances`
#   training      the model (`size`, `architecture` and `model` of the system) and its recipe in `training`
#   decoding      `decoding`
#   evaluation    `evaluation` without `comet`, or only `comet`
#   report        `report`; for claims and case studies only `labels` and their rows
# Other methods return values for paths, or patterns for wildcards (`…_pattern`).
#
# A command only reads files that its line names as `{input.…}`. Without such a file, the option is empty. Some
# parameters contain prefixes, folders or NAME=FILE pairs for inputs (docs/workflow.md#files-of-a-job).
#
# Rules with `localrule: True` run on Snakemake's node. They download, or take seconds. Other rules only specify memory
# and minutes that exceed the `default-resources` in a cluster profile. A second attempt gets twice as much. The number
# of threads (`…_job_threads`) grows with the text size, up to 8. Priorities should keep all cores busy until the end.
# Text has the highest priority (30), because all trainings need it. Trees (20) come before trainings (above 10, see
# `Plan.training_priority`), and translations (5) before shorter jobs.
wildcard_constraints:
    corpus="[^/]+",
    dataset=plan.row_pattern("datasets"),
    system=plan.row_pattern("systems"),
    baseline=plan.row_pattern("systems"),
    instances=plan.row_pattern("instances"),
    split=plan.split_pattern(),
    suite="[A-Za-z0-9_-]+",
    part="[A-Za-z0-9_-]+",
    treebank=wildcard_regex(TREEBANKS),
    segmenter=plan.row_pattern("discourse.segmenters"),
    parser=plan.row_pattern("discourse.parsers"),
    seed="[0-9]+",
    table=plan.row_pattern("report.tables"),
    cases=plan.row_pattern("report.cases"),
    figure=wildcard_regex(plan.config.report.drawn),
    lang="[a-z]{2,3}",
    src="[a-z]{2,3}",
    tgt="[a-z]{2,3}",


onstart:
    start_run(workflow, config, plan)
    if workflow.local_exec:
        os.environ[LOCAL_JOBS] = (
            "1"  # jobs that share this machine's GPUs wait for each other
        )
    else:
        patch_job_errors()
        patch_request_limits()
        patch_slurm_outages()
        try:
            watch_jobs(Path.cwd())
        except UserError as error:
            raise WorkflowError(str(error)) from None


onsuccess:
    for line in describe_pages(Path.cwd(), workflow.dag.jobs):
        print(line, file=sys.stderr)


include: "workflow/rules/corpora.smk"
include: "workflow/rules/text.smk"
include: "workflow/rules/discourse.smk"
include: "workflow/rules/instances.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/report.smk"


rule all:
    """The report, the reader, and everything that they need."""
    default_target: True
    input:
        "results/report/report.html",
        "results/report/reader.html",


# One target per stage. For a single system or dataset, you can request its table of scores, for example
# results/{dataset}/runs/{system}/scores.csv (docs/workflow.md).


rule corpora:
    """The splits of all datasets as text, and their contrastive test sets."""
    input:
        plan.targets()["corpora"],


rule text:
    """Subwords, vocabularies, and the share of lines that are restored from subwords without changes."""
    input:
        plan.targets()["text"],


rule discourse:
    """The trees that systems read, their statistics, and the scores of the segmenters and parsers behind them."""
    input:
        plan.targets()["discourse"],


rule instances:
    """All instances that systems use, and their statistics."""
    input:
        plan.targets()["instances"],


rule training:
    """All models."""
    input:
        plan.targets()["training"],


rule decoding:
    """All translations and log probabilities."""
    input:
        plan.targets()["decoding"],


rule evaluation:
    """The scores of all runs."""
    input:
        plan.targets()["evaluation"],


rule tables:
    """Tables of `report.tables` and `report.cases`, as in the report, as soon as their systems are ready."""
    input:
        expand(
            "results/tables/{table}.txt",
            table=[*plan.config.report.tables, *plan.config.report.cases],
        ),


rule figures:
    """Pictures of `report.figures` and `report.curves`, as in the report, as soon as their systems are ready."""
    input:
        expand("results/figures/{figure}.svg", figure=plan.config.report.drawn),


rule claims:
    """Claims of `report.claims`, one by one as soon as their systems are ready, and together."""
    input:
        expand("results/claims/{claim}.txt", claim=plan.config.report.claims),
        "results/claims.txt",


rule report:
    """The same as `all`, by the name of the stage."""
    input:
        rules.all.input,
