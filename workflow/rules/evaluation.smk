# Evaluation: scores of one run, and paired tests of a system against a baseline.


rule evaluate_run:
    """Score a run on all test splits and suites."""
    input:
        # The command gets all inputs with the parameters `tests` and `training`.
        # texts: splits of the dataset, files in `datasets.{dataset}.references`, and suites
        texts=plan.input("scores", "texts"),
        # The training split, if a metric reads it, such as APT.
        training=plan.input("scores", "training"),
        # All files in results/{dataset}/runs/{system}/seed{seed}/decoding/
        outputs=plan.input("scores", "outputs"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores.json",
    log:
        "logs/evaluate_run/{dataset}/{system}/seed{seed}.log",
    benchmark:
        "results/benchmarks/evaluate_run/{dataset}/{system}/seed{seed}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("scores"),
        settings=plan.settings("scores"),
        tests=plan.param("scores", "tests"),  # JSON with the name and files of each test
        languages=plan.options("scores", "src_lang", "tgt_lang"),
        training=plan.options("scores", "training"),
    shell:
        "docmt evaluate run --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " {params.training} --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_comet:
    """Score a run on a test split with COMET."""
    input:
        text=plan.input("comet", "text"),  # results/{dataset}/corpora/{src}-{tgt}/{split}.*
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
        # Your file in `evaluation.comet.checkpoint`. `settings` name it for the command.
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


rule evaluate_difference:
    """Compare a system with a baseline on all test splits and suites, over all seeds."""
    input:
        texts=plan.input("differences", "texts"),  # as in `evaluate_run`
        # All files in results/{dataset}/runs/{system}/seed*/decoding/ on tests of both systems
        outputs=plan.input("differences", "outputs"),
        baseline=plan.input("differences", "baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}.json",
    log:
        "logs/evaluate_difference/{dataset}/{system}/{baseline}.log",
    benchmark:
        "results/benchmarks/evaluate_difference/{dataset}/{system}/{baseline}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("differences"),
        settings=plan.settings("differences"),
        tests=plan.param("differences", "tests"),  # as in `evaluate_run`, with files of the baseline
        languages=plan.options("differences", "src_lang", "tgt_lang"),
    shell:
        "docmt evaluate difference --settings {params.settings:q} --tests {params.tests:q} {params.languages}"
        " --dataset {wildcards.dataset} --names {wildcards.system} {wildcards.baseline} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
