# Evaluation: scores of one run on one test split or contrastive test set, and tables of a system or dataset.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/decoding/
#         results/{dataset}/corpora/{src}-{tgt}/{split}.{lang}, .documents.tsv; for APT, also of the training split
# Makes:  results/{dataset}/runs/{system}/seed{seed}/scores/{split}.json, suite_{suite}.json,
#         generated_{suite}.json, comet_{split}.json
#         results/{dataset}/runs/{system}/against/{baseline}/{split}.json, suite_{suite}.json, generated_{suite}.json
#                                                         paired tests, all seeds
#         results/{dataset}/runs/{system}/scores.csv      all scores of one system: the target for one system
#         results/{dataset}/scores.csv                    all scores on one dataset: the target for one dataset


rule evaluate_translation:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split}."""
    input:
        references=plan.scores.input("references"),
        more=plan.scores.input("more"),
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
        settings=plan.scores.param("settings"),
        languages=plan.scores.param("languages"),
        prefix=plan.scores.param("prefix"),
        more=option("--references", "more"),
        training=plan.scores.param("training"),
        test=plan.scores.param("test"),
        fingerprint=plan.scores.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate scores --settings {params.settings:q} --hypotheses {input.hypotheses} --prefix {params.prefix}"
        " {params.languages} {params.more} {params.training} --run dataset={wildcards.dataset} system={wildcards.system}"
        " seed={wildcards.seed} test={params.test} fingerprint={params.fingerprint} --out {output} 2> {log}"


rule evaluate_comet:
    """Score {wildcards.system}, seed {wildcards.seed}, on {wildcards.dataset} {wildcards.split} with COMET."""
    input:
        references=plan.comet.input("references"),
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
        mem_mb=growing(12000),
        runtime=growing(120),
        gpu=int(
            plan.config.evaluation.comet is not None
            and plan.config.evaluation.comet.gpus
        ),
    params:
        settings=plan.comet.param("settings"),
        languages=plan.comet.param("languages"),
        prefix=plan.comet.param("prefix"),
        test=plan.comet.param("test"),
        fingerprint=plan.comet.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate comet --settings {params.settings:q} --hypotheses {input.hypotheses} --prefix {params.prefix}"
        " {params.languages} --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed}"
        " test={params.test} fingerprint={params.fingerprint} --out {output} 2> {log}"


rule compare_translation:
    """Test {wildcards.system} against {wildcards.baseline} on {wildcards.dataset} {wildcards.split}."""
    input:
        references=plan.differences.input("references"),
        more=plan.differences.input("more"),
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
        settings=plan.differences.param("settings"),
        languages=plan.differences.param("languages"),
        prefix=plan.differences.param("prefix"),
        more=option("--references", "more"),
        test=plan.differences.param("test"),
        fingerprint=plan.differences.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate difference --settings {params.settings:q} --prefix {params.prefix} {params.languages}"
        " {params.more} --system {input.system} --baseline {input.baseline} --names {wildcards.system} {wildcards.baseline}"
        " --dataset {wildcards.dataset} --test {params.test} --fingerprint {params.fingerprint} --out {output} 2> {log}"


rule evaluate_contrast:
    """Count how often {wildcards.system}, seed {wildcards.seed}, prefers the right candidate of {wildcards.suite}."""
    input:
        suite=plan.suite_scores.input("suite"),
        probabilities="results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
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
        ties=plan.suite_scores.param("ties"),
        fingerprint=plan.suite_scores.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate contrast --suite {input.suite} --log-probabilities {input.probabilities} {params.ties}"
        " --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed} test={wildcards.suite}"
        " fingerprint={params.fingerprint} --out {output} 2> {log}"


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
        ties=plan.suite_differences.param("ties"),
        fingerprint=plan.suite_differences.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate contrast-difference --suite {input.suite} --system {input.system} --baseline {input.baseline}"
        " {params.ties} --names {wildcards.system} {wildcards.baseline} --dataset {wildcards.dataset} --test {wildcards.suite}"
        " --fingerprint {params.fingerprint} --out {output} 2> {log}"


rule evaluate_generation:
    """Count how often {wildcards.system}, seed {wildcards.seed}, generates what {wildcards.suite} expects."""
    input:
        suite=plan.generation_scores.input("suite"),
        generated="results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
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
        lang=plan.generation_scores.param("lang"),
        fingerprint=plan.generation_scores.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate generation --suite {input.suite} --translations {input.generated} --tgt-lang {params.lang}"
        " --run dataset={wildcards.dataset} system={wildcards.system} seed={wildcards.seed} test={wildcards.suite}"
        " fingerprint={params.fingerprint} --out {output} 2> {log}"


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
        lang=plan.generation_differences.param("lang"),
        fingerprint=plan.generation_differences.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt evaluate generation-difference --suite {input.suite} --tgt-lang {params.lang} --system {input.system}"
        " --baseline {input.baseline} --names {wildcards.system} {wildcards.baseline} --dataset {wildcards.dataset}"
        " --test {wildcards.suite} --fingerprint {params.fingerprint} --out {output} 2> {log}"


rule gather_system:
    """Gather scores into one table."""
    input:
        plan.system_scores.input(),
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
        fingerprints=plan.system_scores.fingerprints("scores"),
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report gather --scores {input} --fingerprints {params.fingerprints} --out {output} 2> {log}"


use rule gather_system as gather_dataset with:
    input:
        plan.dataset_scores.input(),
    output:
        "results/{dataset}/scores.csv",
    log:
        "logs/gather_dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/gather_dataset/{dataset}.tsv"
    localrule: True
    params:
        fingerprint=plan.dataset_scores.fingerprint,
        fingerprints=plan.dataset_scores.fingerprints("scores"),
