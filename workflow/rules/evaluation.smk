# Evaluation: scores of one run, and paired tests of a system against a baseline.


rule evaluate:
    """Score {wildcards.system}, seed {wildcards.seed}, on all test splits and suites of {wildcards.dataset}."""
    input:
        texts=plan.scores.input("texts"),
        training=plan.scores.input("training"),
        outputs=plan.scores.input("outputs"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores.json",
    log:
        "logs/evaluate/{dataset}_{system}_seed{seed}.log",
    benchmark:
        "results/benchmarks/evaluate/{dataset}_{system}_seed{seed}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.scores.fingerprint,
        settings=plan.scores.settings,
        tests=plan.scores.param("tests"),
        languages=plan.scores.options("src_lang", "tgt_lang"),
        training=plan.scores.options("training"),
    shell:
        "docmt evaluate run --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " {params.training} --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_comet:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split} with COMET."""
    input:
        text=plan.comet.input("text"),
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
        model=plan.comet.input("model"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/comet_{split}.json",
    log:
        "logs/evaluate_comet/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/evaluate_comet/{dataset}_{system}_seed{seed}_{split}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=12000, runtime=120),
        gpu=int(
            plan.config.evaluation.comet is not None
            and plan.config.evaluation.comet.gpus
        ),
    params:
        fingerprint=plan.comet.fingerprint,
        settings=plan.comet.settings,
        text=plan.comet.options("prefix", "src_lang", "tgt_lang"),
        test=plan.comet.param("test"),
    shell:
        "docmt evaluate comet --settings {params.settings:q} {params.text} --hypotheses {input.hypotheses}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed} --test {params.test}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule compare:
    """Test {wildcards.system} against {wildcards.baseline} on all test splits and suites of {wildcards.dataset}."""
    input:
        texts=plan.differences.input("texts"),
        outputs=plan.differences.input("outputs"),
        baseline=plan.differences.input("baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}.json",
    log:
        "logs/compare/{dataset}_{system}_{baseline}.log",
    benchmark:
        "results/benchmarks/compare/{dataset}_{system}_{baseline}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.differences.fingerprint,
        settings=plan.differences.settings,
        tests=plan.differences.param("tests"),
        languages=plan.differences.options("src_lang", "tgt_lang"),
    shell:
        "docmt evaluate difference --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " --dataset {wildcards.dataset} --names {wildcards.system} {wildcards.baseline} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
