# Evaluation: scores of one run on one test split or contrastive test set, and tables of a system or dataset.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/decoding/
#         results/{dataset}/corpora/{src}-{tgt}/{split}.{lang}, .documents.tsv; also of the training split for APT
# Makes:  results/{dataset}/runs/{system}/seed{seed}/scores/{split}.json, suite_{suite}.json
#         results/{dataset}/runs/{system}/scores.csv      all scores of one system: the target for one system
#         results/{dataset}/scores.csv                    all scores on one dataset: the target for one dataset


rule evaluate_translation:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split}."""
    input:
        references=plan.runs.reference_files,
        training=plan.runs.alignment_files,
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/{split}.json",
    log:
        "logs/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        settings=plan.runs.evaluation_settings,
        languages=plan.corpora.language_options,
        prefix=plan.corpora.prefix,
        training=plan.runs.alignment_option,
        test=plan.runs.test_name,
        fingerprint=plan.fingerprints.scores,
    shell:
        "docmt evaluate bleu --settings {params.settings:q} --hypotheses {input.hypotheses} --prefix {params.prefix}"
        " {params.languages} {params.training} --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed}"
        " test={params.test} fingerprint={params.fingerprint} --out {output} 2> {log}"


rule evaluate_contrast:
    """Count how often {wildcards.system}, seed {wildcards.seed}, prefers the right candidate of {wildcards.suite}."""
    input:
        suite=plan.corpora.suite,
        probabilities="results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/suite_{suite}.json",
    log:
        "logs/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        fingerprint=plan.fingerprints.suite_scores,
    shell:
        "docmt evaluate contrast --suite {input.suite} --log-probabilities {input.probabilities}"
        " --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed} test={wildcards.suite} fingerprint={params.fingerprint}"
        " --out {output} 2> {log}"


rule gather_system:
    """Gather all scores of {wildcards.system} on {wildcards.dataset}."""
    input:
        plan.runs.system_scores,
    output:
        "results/{dataset}/runs/{system}/scores.csv",
    log:
        "logs/gather_system/{dataset}_{system}.log",
    benchmark:
        "results/benchmarks/gather_system/{dataset}_{system}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        fingerprint=plan.runs.system_fingerprint,
    shell:
        "docmt report gather --scores {input} --out {output} 2> {log}"


rule gather_dataset:
    """Gather all scores on {wildcards.dataset}."""
    input:
        plan.runs.dataset_scores,
    output:
        "results/{dataset}/scores.csv",
    log:
        "logs/gather_dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/gather_dataset/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        fingerprint=plan.runs.dataset_fingerprint,
    shell:
        "docmt report gather --scores {input} --out {output} 2> {log}"
