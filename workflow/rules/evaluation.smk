# Evaluation: scores of a run, and paired tests of a system against a baseline.


rule evaluate_run:
    """Score a run on all test splits and suites."""
    input:
        # All files in results/{dataset}/runs/{system}/seed{seed}/decoding/
        outputs=plan.input("scores", "outputs"),
        texts=plan.input("scores", "texts"),  # results/{dataset}/corpora/{src}-{tgt}/test_*
        suites=plan.input("scores", "suites"),  # results/corpora/{corpus}/{src}-{tgt}/suites/*.jsonl
        references=plan.input("scores", "references"),  # your files in `datasets.{dataset}.references`
        external=plan.input("scores", "external"),  # your files in `evaluation.external`
        # The training split, if a metric reads it, such as APT.
        training=plan.input("scores", "training"),
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
        languages=plan.params("scores", "src_lang", "tgt_lang"),
        references=plan.options("scores", "references"),  # TEST=FILE
        external=plan.options("scores", "external"),  # TEST/METRIC=FILE
    shell:
        "docmt evaluate run --settings {params.settings:q} --outputs {input.outputs} --texts {input.texts}"
        " --suites {input.suites} {params.references} {params.external} {params.languages} --training {input.training}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_comet:
    """Score a run on a test split with COMET."""
    input:
        texts=plan.input("comet", "texts"),  # results/{dataset}/corpora/{src}-{tgt}/{split}.*
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
        # Your file in `evaluation.comet.checkpoint`. `--settings` contains its path.
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
        settings=plan.options("comet", "settings"),
        languages=plan.params("comet", "src_lang", "tgt_lang"),
        test=plan.param("comet", "test"),
    shell:
        "docmt evaluate comet {params.settings} --texts {input.texts} {params.languages} --hypotheses {input.hypotheses}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed} --test {params.test}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_difference:
    """Compare a system with a baseline on all test splits and suites, over all seeds."""
    input:
        # All files in results/{dataset}/runs/{system}/seed*/decoding/ on tests of both systems
        outputs=plan.input("differences", "outputs"),
        baseline=plan.input("differences", "baseline"),
        texts=plan.input("differences", "texts"),  # as in `evaluate_run`
        suites=plan.input("differences", "suites"),
        references=plan.input("differences", "references"),
        external=plan.input("differences", "external"),
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
        languages=plan.params("differences", "src_lang", "tgt_lang"),
        references=plan.options("differences", "references"),  # TEST=FILE
        external=plan.options("differences", "external"),  # TEST/METRIC=FILE
    shell:
        "docmt evaluate difference --settings {params.settings:q} --outputs {input.outputs} --baseline {input.baseline}"
        " --texts {input.texts} --suites {input.suites} {params.references} {params.external} {params.languages}"
        " --dataset {wildcards.dataset} --names {wildcards.system} {wildcards.baseline} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
