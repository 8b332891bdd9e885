# Evaluation: scores of one run on one test split or contrastive test set, and tables of a system or dataset.


rule evaluate_translation:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split}."""
    input:
        text=plan.scores.input("text"),
        references=plan.scores.input("references"),
        training=plan.scores.input("training"),
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    output:
        out="results/{dataset}/runs/{system}/seed{seed}/scores/{split}.json",
    log:
        "logs/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.scores.settings,
        fingerprint=plan.scores.fingerprint,
        flags=plan.scores.flags,
    shell:
        "docmt evaluate scores {params.flags} 2> {log}"


rule evaluate_comet:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split} with COMET."""
    input:
        text=plan.comet.input("text"),
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
        model=plan.comet.input("model"),
    output:
        out="results/{dataset}/runs/{system}/seed{seed}/scores/comet_{split}.json",
    log:
        "logs/evaluate_comet/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/evaluate_comet/{dataset}_{system}_seed{seed}_{split}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **growing(mem_mb=12000, runtime=120),
        gpu=int(
            plan.config.evaluation.comet is not None
            and plan.config.evaluation.comet.gpus
        ),
    params:
        settings=plan.comet.settings,
        fingerprint=plan.comet.fingerprint,
        flags=plan.comet.flags,
    shell:
        "docmt evaluate comet {params.flags} 2> {log}"


rule compare_translation:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.dataset} {wildcards.split}."""
    input:
        text=plan.differences.input("text"),
        references=plan.differences.input("references"),
        system=plan.differences.input("system"),
        baseline=plan.differences.input("baseline"),
    output:
        out="results/{dataset}/runs/{system}/against/{baseline}/{split}.json",
    log:
        "logs/compare_translation/{dataset}_{system}_{baseline}_{split}.log",
    benchmark:
        "results/benchmarks/compare_translation/{dataset}_{system}_{baseline}_{split}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.differences.settings,
        fingerprint=plan.differences.fingerprint,
        flags=plan.differences.flags,
    shell:
        "docmt evaluate difference {params.flags} 2> {log}"


rule evaluate_contrast:
    """Count how often {wildcards.system}, seed {wildcards.seed}, prefers the right candidate of {wildcards.suite}."""
    input:
        suite=plan.suite_scores.input("suite"),
        log_probabilities="results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    output:
        out="results/{dataset}/runs/{system}/seed{seed}/scores/suite_{suite}.json",
    log:
        "logs/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.suite_scores.fingerprint,
        flags=plan.suite_scores.flags,
    shell:
        "docmt evaluate contrast {params.flags} 2> {log}"


rule compare_contrast:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.suite} of {wildcards.dataset}."""
    input:
        suite=plan.suite_differences.input("suite"),
        system=plan.suite_differences.input("system"),
        baseline=plan.suite_differences.input("baseline"),
    output:
        out="results/{dataset}/runs/{system}/against/{baseline}/suite_{suite}.json",
    log:
        "logs/compare_contrast/{dataset}_{system}_{baseline}_{suite}.log",
    benchmark:
        "results/benchmarks/compare_contrast/{dataset}_{system}_{baseline}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.suite_differences.fingerprint,
        flags=plan.suite_differences.flags,
    shell:
        "docmt evaluate contrast-difference {params.flags} 2> {log}"


rule evaluate_generation:
    """Count how often {wildcards.system}, seed {wildcards.seed}, generates what {wildcards.suite} expects."""
    input:
        suite=plan.generation_scores.input("suite"),
        translations="results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    output:
        out="results/{dataset}/runs/{system}/seed{seed}/scores/generated_{suite}.json",
    log:
        "logs/evaluate_generation/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/evaluate_generation/{dataset}_{system}_seed{seed}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.generation_scores.fingerprint,
        flags=plan.generation_scores.flags,
    shell:
        "docmt evaluate generation {params.flags} 2> {log}"


rule compare_generation:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.suite} of {wildcards.dataset}."""
    input:
        suite=plan.generation_differences.input("suite"),
        system=plan.generation_differences.input("system"),
        baseline=plan.generation_differences.input("baseline"),
    output:
        out="results/{dataset}/runs/{system}/against/{baseline}/generated_{suite}.json",
    log:
        "logs/compare_generation/{dataset}_{system}_{baseline}_{suite}.log",
    benchmark:
        "results/benchmarks/compare_generation/{dataset}_{system}_{baseline}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.generation_differences.fingerprint,
        flags=plan.generation_differences.flags,
    shell:
        "docmt evaluate generation-difference {params.flags} 2> {log}"


rule gather_system:
    """Gather scores into one table."""
    input:
        scores=plan.system_scores.input("scores"),
    output:
        out="results/{dataset}/runs/{system}/scores.csv",
    log:
        "logs/gather_system/{dataset}_{system}.log",
    benchmark:
        "results/benchmarks/gather_system/{dataset}_{system}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.system_scores.fingerprint,
        flags=plan.system_scores.flags,
    shell:
        "docmt report gather {params.flags} 2> {log}"


use rule gather_system as gather_dataset with:
    input:
        scores=plan.dataset_scores.input("scores"),
    output:
        out="results/{dataset}/scores.csv",
    log:
        "logs/gather_dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/gather_dataset/{dataset}.tsv"
    localrule: True
    params:
        fingerprint=plan.dataset_scores.fingerprint,
        flags=plan.dataset_scores.flags,
