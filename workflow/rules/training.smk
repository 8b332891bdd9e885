# Training: one model per run (dataset × system × seed).
#
# checkpoints/ and loggers/ next to the model are not declared as outputs. Snakemake would delete them after a failure,
# but a killed training resumes from its checkpoints.


rule train:
    """Train one model (dataset × system × seed)."""
    input:
        train=collect(
            "results/{{dataset}}/instances/{instances}/train/manifest.json",
            instances=plan.instances,
        ),
        dev=collect(
            "results/{{dataset}}/instances/{instances}/dev/manifest.json",
            instances=plan.instances,
        ),
        # results/{dataset}/instances/{instances}/{sentences,monolingual}/manifest.json for the dataset's
        # pre-training data, with the tasks `pairs` and `restoration` in the recipe.
        pairs=plan.input("model", "pairs"),
        monolingual=plan.input("model", "monolingual"),
        vocabulary="results/{dataset}/text/vocabulary.txt",
        pipeline="results/{dataset}/text/pipeline.json",
        # With `init`: the other system's model.pt, or a published model's config.json.
        init=plan.input("model", "init"),
        pretrained=plan.input("model", "pretrained"),  # other files next to your published model's config.json
    output:
        model="results/{dataset}/runs/{system}/seed{seed}/model.pt",
        history=report(
            "results/{dataset}/runs/{system}/seed{seed}/history.csv",
            category="Trainings",
            labels={
                "dataset": "{dataset}",
                "system": "{system}",
                "seed": "{seed}",
            },
            caption="../captions/history.rst",
        ),
    log:
        "logs/train/{dataset}/{system}/seed{seed}.log",
    benchmark:
        "results/benchmarks/train/{dataset}/{system}/seed{seed}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="is_published"),
    priority: plan.training_priority
    conda:
        "../../environment.yml"
    # On a CPU, parallel trainings of several small models are faster than one after another.
    threads: 1
    resources:
        # nodes, devices (per node), gpu (all nodes), mem_mb, slurm_extra, micro_batch_tokens: from `set-resources`.
        # The default is one node with one GPU and 16 GB. They are not parameters, because they do not change the model.
        **training_resources(workflow),
        runtime=1440,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.fingerprint("model"),
        settings=plan.settings("model"),
        monolingual_lang=plan.params("model", "monolingual_lang"),
        init=plan.file_option("model", "init"),
        init_fingerprint=plan.model_option("model", "init"),  # refuses models from another plan
        recipe_options=plan.options(
            "model",
            "loggers",
            "checkpoint_every_minutes",
            "checkpoint_every_steps",
            "keep_checkpoints",
            "graphs",
        ),
        folder=subpath(output.model, parent=True),
    shell:
        # With `exec`, a signal reaches the training directly, and Snakemake waits until it has saved.
        "exec docmt train --settings {params.settings:q} --train {input.train} --dev {input.dev}"
        " --pairs {input.pairs} --monolingual {input.monolingual} {params.monolingual_lang}"
        " --vocabulary {input.vocabulary} --pipeline {input.pipeline} {params.init} {params.init_fingerprint}"
        " --checkpoints {params.folder}/checkpoints --history {output.history} --out {output.model}"
        " --seed {wildcards.seed} --threads {threads} --devices {resources.devices} --nodes {resources.nodes}"
        " --micro-batch-tokens {resources.micro_batch_tokens} {params.recipe_options} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule models_import_for_study:
    """Convert a published model that is used as it is."""
    input:
        published=plan.input("published_model", "published"),  # files in `systems.{system}.init.pretrained`
        vocabulary="results/{dataset}/text/vocabulary.txt",
        pipeline="results/{dataset}/text/pipeline.json",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/model.pt",
    log:
        "logs/models_import_for_study/{dataset}/{system}/seed{seed}.log",
    benchmark:
        "results/benchmarks/models_import_for_study/{dataset}/{system}/seed{seed}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", where="is_published"),
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=16000, runtime=60),
    params:
        fingerprint=plan.fingerprint("published_model"),
        folder=plan.param("published_model", "folder"),
        settings=plan.settings("published_model"),  # `instances`, which limits documents of test sets
    shell:
        "docmt models import-for-study {params.folder:q} --settings {params.settings:q}"
        " --vocabulary {input.vocabulary} --pipeline {input.pipeline}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"
