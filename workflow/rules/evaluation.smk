# Evaluation: scores of one run, and paired tests of a system against a baseline.


rule evaluate:
    """Score {wildcards.system}, seed {wildcards.seed}, on all test splits and suites of {wildcards.dataset}."""
    input:
        texts=plan.input("scores", "texts"),
        training=plan.input("scores", "training"),
        outputs=plan.input("scores", "outputs"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores.json",
    log:
        "logs/evaluate/{dataset}/{system}/seed{seed}.log",
    benchmark:
        "results/benchmarks/evaluate/{dataset}/{system}/seed{seed}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("scores"),
        settings=plan.settings("scores"),
        # JSON: name, text prefix, outputs and baseline files of each test. It names all inputs.
        tests=plan.param("scores", "tests"),
        languages=plan.options("scores", "src_lang", "tgt_lang"),
        training=plan.options("scores", "training"),
    shell:
        "docmt evaluate run --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " {params.training} --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_comet:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split} with COMET."""
    input:
        text=plan.input("comet", "text"),
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
        # `settings` name the checkpoint. It is an input so that Snakemake waits for it and compares it.
        model=plan.input("comet", "model"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/comet_{split}.json",
    log:
        "logs/evaluate_comet/{dataset}/{system}/seed{seed}/{split}.log",
    benchmark:
        "results/benchmarks/evaluate_comet/{dataset}/{system}/seed{seed}/{split}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=12000, runtime=120),
        gpu=int(
            plan.config.evaluation.comet is not None
            and plan.config.evaluation.comet.gpus
        ),
    params:
        fingerprint=plan.fingerprint("comet"),
        settings=plan.settings("comet"),
        text=plan.options("comet", "prefix", "src_lang", "tgt_lang"),
        test=plan.param("comet", "test"),
    shell:
        "docmt evaluate comet --settings {params.settings:q} {params.text} --hypotheses {input.hypotheses}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed} --test {params.test}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule compare:
    """Test {wildcards.system} against {wildcards.baseline} on all test splits and suites of {wildcards.dataset}."""
    input:
        texts=plan.input("differences", "texts"),
        outputs=plan.input("differences", "outputs"),
        baseline=plan.input("differences", "baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}.json",
    log:
        "logs/compare/{dataset}/{system}/{baseline}.log",
    benchmark:
        "results/benchmarks/compare/{dataset}/{system}/{baseline}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("differences"),
        settings=plan.settings("differences"),
        # As in `evaluate`.
        tests=plan.param("differences", "tests"),
        languages=plan.options("differences", "src_lang", "tgt_lang"),
    shell:
        "docmt evaluate difference --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " --dataset {wildcards.dataset} --names {wildcards.system} {wildcards.baseline} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
