# Evaluation: scores of one run on one test split or contrastive test set, and tables of a system or dataset.


rule evaluate_translation:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split}."""
    input:
        text=plan.scores.input("text"),
        references=plan.scores.input("references"),
        training=plan.scores.input("training"),
        hypotheses="results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/{split}.json",
    log:
        "logs/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.log",
    benchmark:
        "results/benchmarks/evaluate_translation/{dataset}_{system}_seed{seed}_{split}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.scores.fingerprint,
        settings=plan.scores.settings,
        text=plan.scores.options("prefix", "src_lang", "tgt_lang"),
        references=plan.scores.options("references"),
        training=plan.scores.options("training"),
        test=plan.scores.param("test"),
    shell:
        "docmt evaluate scores --settings {params.settings:q} {params.text} {params.references}"
        " --hypotheses {input.hypotheses} {params.training} --dataset {wildcards.dataset}"
        " --system {wildcards.system} --seed {wildcards.seed} --test {params.test} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


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
        **growing(mem_mb=12000, runtime=120),
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


rule compare_translation:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.dataset} {wildcards.split}."""
    input:
        text=plan.differences.input("text"),
        references=plan.differences.input("references"),
        system=plan.differences.input("system"),
        baseline=plan.differences.input("baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}/{split}.json",
    log:
        "logs/compare_translation/{dataset}_{system}_{baseline}_{split}.log",
    benchmark:
        "results/benchmarks/compare_translation/{dataset}_{system}_{baseline}_{split}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.differences.fingerprint,
        settings=plan.differences.settings,
        text=plan.differences.options("prefix", "src_lang", "tgt_lang"),
        references=plan.differences.options("references"),
        test=plan.differences.param("test"),
    shell:
        "docmt evaluate difference --settings {params.settings:q} {params.text} {params.references}"
        " --system {input.system} --baseline {input.baseline} --names {wildcards.system} {wildcards.baseline}"
        " --dataset {wildcards.dataset} --test {params.test} --out {output} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule evaluate_contrast:
    """Count how often {wildcards.system}, seed {wildcards.seed}, prefers the right candidate of {wildcards.suite}."""
    input:
        suite=plan.suite_scores.input("suite"),
        log_probabilities="results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/suite_{suite}.json",
    log:
        "logs/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/evaluate_contrast/{dataset}_{system}_seed{seed}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.suite_scores.fingerprint,
        ties=plan.suite_scores.param("ties"),
    shell:
        "docmt evaluate contrast --suite {input.suite} --log-probabilities {input.log_probabilities}"
        " --ties {params.ties} --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --test {wildcards.suite} --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule compare_contrast:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.suite} of {wildcards.dataset}."""
    input:
        suite=plan.suite_differences.input("suite"),
        system=plan.suite_differences.input("system"),
        baseline=plan.suite_differences.input("baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}/suite_{suite}.json",
    log:
        "logs/compare_contrast/{dataset}_{system}_{baseline}_{suite}.log",
    benchmark:
        "results/benchmarks/compare_contrast/{dataset}_{system}_{baseline}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.suite_differences.fingerprint,
        ties=plan.suite_differences.param("ties"),
    shell:
        "docmt evaluate contrast-difference --suite {input.suite} --ties {params.ties} --system {input.system}"
        " --baseline {input.baseline} --names {wildcards.system} {wildcards.baseline} --dataset {wildcards.dataset}"
        " --test {wildcards.suite} --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_generation:
    """Count how often {wildcards.system}, seed {wildcards.seed}, generates what {wildcards.suite} expects."""
    input:
        suite=plan.generation_scores.input("suite"),
        translations="results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/generated_{suite}.json",
    log:
        "logs/evaluate_generation/{dataset}_{system}_seed{seed}_{suite}.log",
    benchmark:
        "results/benchmarks/evaluate_generation/{dataset}_{system}_seed{seed}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.generation_scores.fingerprint,
        tgt_lang=plan.generation_scores.param("tgt_lang"),
    shell:
        "docmt evaluate generation --suite {input.suite} --tgt-lang {params.tgt_lang}"
        " --translations {input.translations} --dataset {wildcards.dataset} --system {wildcards.system}"
        " --seed {wildcards.seed} --test {wildcards.suite} --out {output} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule compare_generation:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.suite} of {wildcards.dataset}."""
    input:
        suite=plan.generation_differences.input("suite"),
        system=plan.generation_differences.input("system"),
        baseline=plan.generation_differences.input("baseline"),
    output:
        "results/{dataset}/runs/{system}/against/{baseline}/generated_{suite}.json",
    log:
        "logs/compare_generation/{dataset}_{system}_{baseline}_{suite}.log",
    benchmark:
        "results/benchmarks/compare_generation/{dataset}_{system}_{baseline}_{suite}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.generation_differences.fingerprint,
        tgt_lang=plan.generation_differences.param("tgt_lang"),
    shell:
        "docmt evaluate generation-difference --suite {input.suite} --tgt-lang {params.tgt_lang}"
        " --system {input.system} --baseline {input.baseline} --names {wildcards.system} {wildcards.baseline}"
        " --dataset {wildcards.dataset} --test {wildcards.suite} --out {output} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule gather_system:
    """Gather scores into one table."""
    input:
        plan.system_scores.input("scores"),
    output:
        "results/{dataset}/runs/{system}/scores.csv",
    log:
        "logs/gather_system/{dataset}_{system}.log",
    benchmark:
        "results/benchmarks/gather_system/{dataset}_{system}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.system_scores.fingerprint,
        fingerprints=plan.system_scores.score_fingerprints,
    shell:
        "docmt report gather --scores {input} {params.fingerprints} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


use rule gather_system as gather_dataset with:
    input:
        plan.dataset_scores.input("scores"),
    output:
        "results/{dataset}/scores.csv",
    log:
        "logs/gather_dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/gather_dataset/{dataset}.tsv"
    localrule: True
    params:
        fingerprint=plan.dataset_scores.fingerprint,
        fingerprints=plan.dataset_scores.score_fingerprints,
