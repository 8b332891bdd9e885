# Translations of the test splits, and log probabilities of given targets.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/model.pt
#         results/{dataset}/instances/{cutting}/{split}/
#         results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl
#         results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl, for systems that read trees
# Makes:  results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl           hypotheses
#         results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json      log probabilities
#         results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl translations of generative test sets


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
        rules=plan.probabilities.param("rules"),
        trees=option("--discourse", "trees"),
        fingerprint=plan.probabilities.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode contrast --settings {params.settings:q} --model {input.model} --suite {input.suite}"
        " {params.trees} {params.rules} --threads {threads} --out {output} 2> {log}"


rule generate:
    """Translate the documents of suite {wildcards.suite} with {wildcards.system}, seed {wildcards.seed}."""
    input:
        model=plan.generated_documents.input("model"),
        suite=plan.generated_documents.input("suite"),
        trees=plan.generated_documents.input("trees"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    log:
        "logs/generate/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/generate/{dataset}_{system}_seed{seed}_{suite}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        settings=plan.generated_documents.param("settings"),
        trees=option("--discourse", "trees"),
        fingerprint=plan.generated_documents.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode generate --settings {params.settings:q} --model {input.model} --suite {input.suite}"
        " {params.trees} --threads {threads} --out {output} 2> {log}"
