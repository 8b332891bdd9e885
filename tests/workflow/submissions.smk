# The shipped workflow with a scheduler that submits one job of each kind at once, without waiting for its inputs.
import os

from snakemake.scheduling.job_scheduler import JobScheduler


include: "../../Snakefile"


def submit_all_kinds(scheduler):
    """Submit the first job of each rule and each kind of group by the plugin of the profile. Print local rules."""
    dag = scheduler.workflow.dag
    kinds = {}
    for job in sorted(dag.needrun_jobs(), key=str):
        if job.is_local:
            print("local rule:", job.rule.name)
            continue
        group = dag.get_job_group(job)
        kind = group.name.partition("_")[0] if group else job.rule.name
        kinds.setdefault(kind, group or job)
    for kind, job in kinds.items():
        os.environ["KIND"] = kind  # for sbatch
        if job.is_group():
            job.finalize()
        scheduler._executor.run_job(job)
    return True


JobScheduler.schedule = submit_all_kinds
