# Translations of the test splits, and log probabilities of given targets.


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
        system=plan.row_pattern("systems", unless="has_user_output"),
    priority: 5
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.hypotheses.fingerprint,
        settings=plan.hypotheses.settings,
    shell:
        "docmt decode translate --settings {params.settings:q} --model {input.model} --instances {input.instances}"
        " --out {output} --threads {threads} --fingerprint {params.fingerprint} 2> {log}"


rule contrast:
    """Score the candidates of suite {wildcards.suite} with {wildcards.system}, seed {wildcards.seed}."""
    input:
        model=plan.probabilities.input("model"),
        suite=plan.probabilities.input("suite"),
        discourse=plan.probabilities.input("discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    log:
        "logs/contrast/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/contrast/{dataset}_{system}_seed{seed}_{suite}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="has_user_output"),
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.probabilities.fingerprint,
        settings=plan.probabilities.settings,
        discourse=plan.probabilities.options("discourse"),
        rules=plan.probabilities.options("score", "target_context"),
    shell:
        "docmt decode score-candidates --settings {params.settings:q} --model {input.model} --suite {input.suite}"
        " {params.discourse} {params.rules} --out {output} --threads {threads} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule generate:
    """Translate the documents of suite {wildcards.suite} with {wildcards.system}, seed {wildcards.seed}."""
    input:
        model=plan.generated_documents.input("model"),
        suite=plan.generated_documents.input("suite"),
        discourse=plan.generated_documents.input("discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    log:
        "logs/generate/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/generate/{dataset}_{system}_seed{seed}_{suite}.tsv"
    priority: 5
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.generated_documents.fingerprint,
        settings=plan.generated_documents.settings,
        discourse=plan.generated_documents.options("discourse"),
    shell:
        "docmt decode translate-suite --settings {params.settings:q} --model {input.model} --suite {input.suite}"
        " {params.discourse} --out {output} --threads {threads} --fingerprint {params.fingerprint} 2> {log}"


rule score_cxmi:
    """Measure what context adds for {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.part}."""
    input:
        model=plan.cxmi.input("model"),
        text=plan.cxmi.input("text"),
        discourse=plan.cxmi.input("discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/cxmi_{part}.json",
    log:
        "logs/score_cxmi/{dataset}_{system}_seed{seed}_{part}.log",
    benchmark:
        "results/benchmarks/score_cxmi/{dataset}_{system}_seed{seed}_{part}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.cxmi.fingerprint,
        settings=plan.cxmi.settings,
        text=plan.cxmi.options("prefix", "src_lang", "tgt_lang", "suite"),
        discourse=plan.cxmi.options("discourse"),
        test=plan.cxmi.param("test"),
    shell:
        "docmt evaluate cxmi --settings {params.settings:q} --model {input.model} {params.text} {params.discourse}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed} --test {params.test}"
        " --out {output} --threads {threads} --fingerprint {params.fingerprint} 2> {log}"


rule import_output:
    """Check what {wildcards.system}, made elsewhere, wrote for {wildcards.dataset}: {wildcards.file}."""
    input:
        own=plan.user_output.input("own"),
        tested=plan.user_output.input("tested"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{file}",
    log:
        "logs/import_output/{dataset}_{system}_seed{seed}_{file}.log",
    benchmark:
        "results/benchmarks/import_output/{dataset}_{system}_seed{seed}_{file}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", where="has_user_output"),
        file=r"test_[A-Za-z0-9_-]+\.jsonl|suite_[A-Za-z0-9_-]+\.json",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.user_output.fingerprint,
        tested=plan.user_output.options("prefix", "suite"),
    shell:
        "docmt evaluate import-output --file={input.own:q} {params.tested} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
