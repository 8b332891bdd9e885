# docmt: from corpora to the report. Targets are described in docs/workflow.md.
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from docmt.config.plan import Plan
from docmt.config.plan.resources import growing
from docmt.config.references import CONTROLLED_SPLITS, CONTROLLED_SUITES
from docmt.errors import UserError
from docmt.slurm import keep_asking_squeue, watch_jobs

min_version("9.0")


# A config given with --configfile stands alone; without one, the demo's is taken.
if not workflow.overwrite_configfiles:

    configfile: Path(workflow.basedir) / "config" / "config.yaml"


try:
    plan = Plan.load(config, files=workflow.configfiles)
except UserError as error:
    raise WorkflowError(str(error)) from None


wildcard_constraints:
    corpus="[^/]+",
    dataset=plan.names("datasets"),
    system=plan.names("systems"),
    segmentation=plan.names("instances"),
    split=plan.splits(),
    suite="[A-Za-z0-9_-]+",
    seed="[0-9]+",
    table=plan.report.table_names(),
    lang="[a-z]{2,3}",
    src="[a-z]{2,3}",
    tgt="[a-z]{2,3}",


# With a cluster's profile these run where Snakemake runs: they fetch, or take seconds.
localrules:
    fetch_corpus,
    convert_suite,
    count_overlap,
    pack_pipeline,
    count_roundtrip,
    count_trees,
    draw_tree,
    count_instances,
    evaluate_segmenter,
    evaluate_parser,
    evaluate_translation,
    evaluate_contrast,
    gather_gold,
    gather_system,
    gather_dataset,
    gather,
    study_table,
    render,


onstart:
    if not workflow.local_exec:
        keep_asking_squeue()
        try:
            watch_jobs(Path.cwd())
        except UserError as error:
            raise WorkflowError(str(error)) from None


include: "workflow/rules/corpora.smk"
include: "workflow/rules/text.smk"
include: "workflow/rules/discourse.smk"
include: "workflow/rules/instances.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/report.smk"


rule all:
    """Everything, up to the report."""
    default_target: True
    input:
        "results/report/report.html",


rule demo:
    """The same by the name of the config that is taken when none is given."""
    input:
        "results/report/report.html",


# One target per stage. One system or dataset alone: its scores.csv, see docs/workflow.md.


rule corpora:
    """The splits of all datasets as text, and their contrastive test sets."""
    input:
        plan.corpora.targets(),


rule text:
    """Subwords, vocabularies, and how much of the text comes back."""
    input:
        plan.text.targets(),


rule discourse:
    """The trees that systems read, their statistics, and the scores of the segmenters and parsers behind them."""
    input:
        plan.discourse.targets(),


rule instances:
    """Instances in all segmentations that systems use, and their statistics."""
    input:
        plan.runs.instances_targets(),


rule training:
    """All models."""
    input:
        plan.runs.training_targets(),


rule decoding:
    """All translations and log probabilities."""
    input:
        plan.runs.decoding_targets(),


rule evaluation:
    """The scores of all runs."""
    input:
        plan.runs.scores(),


rule tables:
    """The tables of `report.tables`, each from the scores of its systems."""
    input:
        plan.report.table_targets(),


rule report:
    """Tables, pictures and the page."""
    input:
        "results/report/report.html",
