# Translations of the test splits, and log probabilities of given targets.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/model.pt
#         results/{dataset}/instances/{cutting}/{split}/
#         results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl
#         results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl, for systems that read trees
# Makes:  results/{dataset}/runs/{system}/seed{seed}/decoding/attention_{split}.json   attention in some documents
#         results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl           hypotheses
#         results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json      log probabilities


rule translate:
    """Translate {wildcards.dataset} {wildcards.split} with {wildcards.system}, seed {wildcards.seed}."""
    input:
        model=plan.hypotheses.input("model"),
        instances=plan.hypotheses.input("instances"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    log:
        "logs/translate/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/translate/{dataset}_{system}_seed{seed}_{split}.tsv"
    priority: 5
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        settings=plan.hypotheses.param("settings"),
        fingerprint=plan.hypotheses.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode translate --settings {params.settings:q} --model {input.model} --instances {input.instances}"
        " --threads {threads} --out {output} 2> {log}"


rule attend:
    """Note what {wildcards.system}, seed {wildcards.seed}, looks at in some documents of {wildcards.split}."""
    input:
        model=plan.attention.input("model"),
        instances=plan.attention.input("instances"),
        hypotheses=plan.attention.input("hypotheses"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/attention_{split}.json",
    log:
        "logs/attend/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/attend/{dataset}_{system}_seed{seed}_{split}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        settings=plan.attention.param("settings"),
        documents=plan.attention.param("documents"),
        fingerprint=plan.attention.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode attention --settings {params.settings:q} --model {input.model} --instances {input.instances}"
        " --hypotheses {input.hypotheses} --documents {params.documents} --threads {threads} --out {output} 2> {log}"


rule contrast:
    """Score the candidates of suite {wildcards.suite} with {wildcards.system}, seed {wildcards.seed}."""
    input:
        model=plan.probabilities.input("model"),
        suite=plan.probabilities.input("suite"),
        trees=plan.probabilities.input("trees"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    log:
        "logs/contrast/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/contrast/{dataset}_{system}_seed{seed}_{suite}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        settings=plan.probabilities.param("settings"),
        trees=option("--discourse", "trees"),
        fingerprint=plan.probabilities.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode contrast --settings {params.settings:q} --model {input.model} --suite {input.suite}"
        " {params.trees} --threads {threads} --out {output} 2> {log}"
