# Training: one model per run (dataset × system × seed).
#
# Reads:  results/{dataset}/instances/{cutting}/train/, dev/
#         results/{dataset}/text/vocabulary.txt, pipeline.json
#         results/{dataset}/instances/{cutting}/sentences/, monolingual/    for the tasks of cross-task pre-training
#         the model of the system named as `init`, for the same dataset and seed
# Makes:  results/{dataset}/runs/{system}/seed{seed}/model.pt       weights, and everything else that translating needs
#         results/{dataset}/runs/{system}/seed{seed}/history.csv    one row per logging step
# Also:   results/{dataset}/runs/{system}/seed{seed}/checkpoints/   not an output: a killed training resumes from them
#         results/{dataset}/runs/{system}/seed{seed}/loggers/       of `loggers`, if there are any; not an output either


rule train:
    """Train {wildcards.system} on {wildcards.dataset} with seed {wildcards.seed}."""
    input:
        train=plan.model.input("train"),
        dev=plan.model.input("dev"),
        vocabulary="results/{dataset}/text/vocabulary.txt",
        pipeline="results/{dataset}/text/pipeline.json",
        init=plan.model.input("init"),
        sentences=plan.model.input("sentences"),
        monolingual=plan.model.input("monolingual"),
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
        "logs/train/{dataset}_{system}_seed{seed}.log",
    benchmark:
        "results/benchmarks/train/{dataset}_{system}_seed{seed}.tsv"
    priority: plan.urgency
    conda:
        "../../environment.yml"
    # One thread each: on a CPU, several small models train faster side by side than one after another on many threads.
    resources:
        **spread_training(workflow),  # nodes, gpu (of all nodes together), slurm_extra
        mem_mb=growing(16000),
        runtime=1440,
        cpus_per_gpu=cores_per_gpu,
        device_tokens=0,  # of a micro-batch; 0 is chosen by memory
    params:
        settings=plan.model.param("settings"),
        init=option("--init", "init"),
        sentences=option("--sentences", "sentences"),
        monolingual=option("--monolingual", "monolingual"),
        monolingual_lang=plan.monolingual_lang,
        loggers=plan.loggers,
        checkpoints="results/{dataset}/runs/{system}/seed{seed}/checkpoints",
        fingerprint=plan.model.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        # `exec`, so that a signal reaches the training itself, and Snakemake waits until it has saved.
        " exec docmt train --settings {params.settings:q} --train {input.train} --dev {input.dev}"
        " --vocabulary {input.vocabulary} --pipeline {input.pipeline} {params.init}"
        " {params.sentences} {params.monolingual} {params.monolingual_lang} {params.loggers} --seed {wildcards.seed}"
        " --devices $(({resources.gpu} / {resources.nodes})) --nodes {resources.nodes} --threads {threads}"
        " --device-tokens {resources.device_tokens}"
        " --checkpoints {params.checkpoints} --history {output.history} --out {output.model} 2> {log}"
