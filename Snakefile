# docmt: from corpora to the report. Targets are described in docs/workflow.md.
import os
from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from docmt.config.discourse import TREEBANKS
from docmt.config.plan import (
    Plan,
    annotation_job_threads,
    scale_with_attempt,
    text_job_threads,
    wildcard_regex,
)
from docmt.config.references import (
    CONTROLLED_SPLITS,
    CONTROLLED_SUITES,
    SEGMENTS_SUITES,
)
from docmt.errors import UserError
from docmt.gpu_locks import LOCAL_JOBS
from docmt.models.published.catalog import load_models
from docmt.slurm import watch_jobs
from docmt.snakemake import check_records, cores_per_gpu, training_resources
from docmt.snakemake_messages import shorten_messages
from docmt.snakemake_patches import (
    patch_scheduler_timer,
    patch_sigterm_deadlock,
    patch_squeue_fallback,
)
from docmt.status.study import describe_results

min_version("9.27")

patch_scheduler_timer()
patch_sigterm_deadlock()


# A config given with --configfile is complete by itself; without one, the demo's is used.
if not workflow.overwrite_configfiles:

    configfile: Path(workflow.basedir) / "config" / "config.yaml"


try:
    plan = Plan.load(config, files=workflow.configfiles)
    if workflow.is_main_process:
        shorten_messages(partial(describe_results, Path.cwd(), plan))
        check_records()
except UserError as error:
    raise WorkflowError(str(error)) from None


# What the config decides is read from `plan`, by the name of a declaration in docmt/config/artifacts, here `model`:
#   plan.input("model", "init")      the files under this name, of which there may be none
#   plan.settings("model")           the settings of the command as JSON
#   plan.param("model", "name")      one value
#   plan.options("model", "name")    the option `--name VALUE`, or nothing
#   plan.fingerprint("model")        a hash of the settings and of all that lies upstream: a job runs again if it differs
# `settings` come from these sections of the config, by stage. Keys in the row of a system or dataset take precedence.
#   corpora      the row in `corpora.mtdata`, `corpora.controlled` or `corpora.filters`
#   text         `text`, the keys that matter to the rule
#   discourse    `settings` of the row in `discourse.segmenters` or `discourse.parsers`
#   instances    the row in `instances`
#   training     model: size, architecture and `model` of the system. training: the recipe in `training`
#   decoding     `decoding`
#   evaluation   `evaluation` without `comet`, or only `comet`
#   report       `report`, the keys that matter to the rule
#
# Paths are parameters where a command takes prefixes or `name=path`, for which a rule has several files.
#
# Rules with `localrule: True` run where Snakemake runs: they download, or gather what others made. Rules state memory and minutes
# only if they need more than the defaults of the profile. Priorities keep all cores busy to the end: what all trainings
# wait for (30) comes before trees (20), trees before trainings (above 10, see `Plan.training_priority`), and
# translations (5) before shorter jobs.
wildcard_constraints:
    corpus="[^/]+",
    dataset=plan.row_pattern("datasets"),
    system=plan.row_pattern("systems"),
    baseline=plan.row_pattern("systems"),
    instances=plan.row_pattern("instances"),
    split=plan.splits(),
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
    if workflow.local_exec:
        os.environ[LOCAL_JOBS] = "1"
    else:
        patch_squeue_fallback()
        try:
            watch_jobs(Path.cwd())
        except UserError as error:
            raise WorkflowError(str(error)) from None


include: "workflow/rules/corpora.smk"
include: "workflow/rules/text.smk"
include: "workflow/rules/discourse.smk"
include: "workflow/rules/instances.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/report.smk"


rule all:
    """Everything, up to the report."""
    default_target: True
    input:
        "results/report/report.html",
        "results/report/reader.html",


rule demo:
    """Everything, under the name of the default study."""
    input:
        rules.all.input,


# One target per stage. For one system or dataset alone, ask for its scores.csv (docs/workflow.md).


rule corpora:
    """The splits of all datasets as text, and their contrastive test sets."""
    input:
        plan.targets()["corpora"],


rule text:
    """Subwords, vocabularies, and the share of lines restored from subwords."""
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
    """The tables of `report.tables` and `report.cases`, each from the scores or translations of its systems."""
    input:
        expand(
            "results/tables/{table}.txt",
            table=[*plan.config.report.tables, *plan.config.report.cases],
        ),


rule figures:
    """The pictures of `report.figures` and `report.curves`, each from the scores or histories of its systems."""
    input:
        expand("results/figures/{figure}.svg", figure=plan.config.report.drawn),


rule claims:
    """The claims of `report.claims`: each as soon as its systems are scored, then all in one table."""
    input:
        expand("results/claims/{claim}.txt", claim=plan.config.report.claims),
        "results/claims.txt",


rule report:
    """Tables and pictures on one page, translations on another."""
    input:
        "results/report/report.html",
        "results/report/reader.html",
