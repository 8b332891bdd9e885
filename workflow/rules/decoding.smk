# Translations of the test splits, and log probabilities of given targets.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/model.pt
#         results/{dataset}/instances/{cutting}/{split}/
#         results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl
#         results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl, for systems that read trees
#         the user's files, for systems whose output is given
# Makes:  results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl           hypotheses
# Makes:  results/{dataset}/runs/{system}/seed{seed}/decoding/attention_{split}.json   attention in some documents
#         results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl           hypotheses
#         results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json      log probabilities
#         results/{dataset}/runs/{system}/seed{seed}/scores/cxmi_{split}.json, cxmi_suite_{suite}.json
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
    wildcard_constraints:
        system=plan.decoding_systems(),
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
    wildcard_constraints:
        system=plan.decoding_systems(),
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


rule measure_context:
    """Measure what context adds for {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.part}."""
    input:
        model=plan.cxmi.input("model"),
        text=plan.cxmi.input("text"),
        trees=plan.cxmi.input("trees"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/cxmi_{part}.json",
    log:
        "logs/measure_context/{dataset}_{system}_seed{seed}_{part}.log",
    benchmark:
        "results/benchmarks/measure_context/{dataset}_{system}_seed{seed}_{part}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        settings=plan.cxmi.param("settings"),
        source=plan.cxmi.param("source"),
        test=plan.cxmi.param("test"),
        trees=option("--discourse", "trees"),
        fingerprint=plan.cxmi.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode cxmi --settings {params.settings:q} --model {input.model} {params.source} {params.trees}"
        " --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed} test={params.test}"
        " fingerprint={params.fingerprint} --threads {threads} --out {output} 2> {log}"


rule take_hypotheses:
    """Check the translations of {wildcards.dataset} {wildcards.split} that {wildcards.system} made elsewhere."""
    input:
        own=plan.hypotheses.input("own"),
        documents=plan.hypotheses.input("documents"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    log:
        "logs/take_hypotheses/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/take_hypotheses/{dataset}_{system}_seed{seed}_{split}.tsv"
    wildcard_constraints:
        system=plan.given_systems(),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        prefix=plan.hypotheses.param("prefix"),
        fingerprint=plan.hypotheses.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode take-hypotheses --hypotheses {input.own:q} --prefix {params.prefix} --out {output} 2> {log}"


rule take_log_probabilities:
    """Check the scores of suite {wildcards.suite} that {wildcards.system} made elsewhere."""
    input:
        own=plan.probabilities.input("own"),
        suite=plan.probabilities.input("suite"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    log:
        "logs/take_log_probabilities/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/take_log_probabilities/{dataset}_{system}_seed{seed}_{suite}.tsv"
    wildcard_constraints:
        system=plan.given_systems(),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.probabilities.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt decode take-log-probabilities --scores {input.own:q} --suite {input.suite} --out {output} 2> {log}"
