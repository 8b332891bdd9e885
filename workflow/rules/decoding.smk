# Translations for test splits and suites, and log probabilities for candidates and references.

# The system's model, or the model in `use_model_of`.
MODEL = collect(
    "results/{{dataset}}/runs/{trained_system}/seed{{seed}}/model.pt",
    trained_system=plan.trained_system,
)


rule translate:
    """Translate a test split."""
    input:
        model=MODEL,
        instances=collect(
            "results/{{dataset}}/instances/{instances}/{{split}}/manifest.json",
            instances=plan.instances,
        ),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    log:
        "logs/translate/{dataset}/{system}/seed{seed}/{split}.log",
    benchmark:
        "results/benchmarks/translate/{dataset}/{system}/seed{seed}/{split}.tsv"
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
        fingerprint=plan.fingerprint("hypotheses"),
        model=plan.model_option("hypotheses", "model"),  # refuses models from another plan
        settings=plan.settings("hypotheses"),
        shard=shard_options,  # only in `translate_shard`
    shell:
        "docmt decode translate --settings {params.settings:q} --model {input.model} {params.model}"
        " --instances {input.instances} {params.shard} --out {output} --threads {threads} 2> {log}"


use rule translate as translate_shard with:
    output:
        temp(
            "results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.{shard}-of-{n_shards}.jsonl"
        ),
    log:
        "logs/translate_shard/{dataset}/{system}/seed{seed}/{split}.{shard}-of-{n_shards}.log",
    benchmark:
        "results/benchmarks/translate_shard/{dataset}/{system}/seed{seed}/{split}.{shard}-of-{n_shards}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="has_user_output"),
        shard="[0-9]+",
        n_shards="[0-9]+",


rule join_translations:
    """Join the shards of a translation."""
    input:
        shards=collect(
            "results/{{dataset}}/runs/{{system}}/seed{{seed}}/decoding/{{split}}.{shard}.jsonl",
            shard=plan.shards,
        ),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{split}.jsonl",
    log:
        "logs/join_translations/{dataset}/{system}/seed{seed}/{split}.log",
    benchmark:
        "results/benchmarks/join_translations/{dataset}/{system}/seed{seed}/{split}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="has_user_output"),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        # The same as in `translate`, so that another number of shards reruns nothing.
        fingerprint=plan.fingerprint("hypotheses"),
        model=plan.model_option("hypotheses", "model"),
        settings=plan.settings("hypotheses"),
    shell:
        "docmt decode join-translations --shards {input.shards} --out {output} 2> {log}"


if plan.config.decoding.n_shards > 1:

    ruleorder: join_translations > translate

else:

    ruleorder: translate > join_translations


rule score_candidates:
    """Compute log probabilities for the candidates of a contrastive test set."""
    input:
        model=MODEL,
        suite=plan.input("probabilities", "suite"),  # results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl
        # For systems with trees: results/{dataset}/discourse/{trees}/suite_{suite}.*, or gold trees in
        # results/corpora/{corpus}/{src}-{tgt}/suites/discourse/{suite}.jsonl.
        discourse=plan.input("probabilities", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    log:
        "logs/score_candidates/{dataset}/{system}/seed{seed}/{suite}.log",
    benchmark:
        "results/benchmarks/score_candidates/{dataset}/{system}/seed{seed}/{suite}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="has_user_output"),
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.fingerprint("probabilities"),
        discourse=plan.file_option("probabilities", "discourse"),
        model=plan.model_option("probabilities", "model"),  # refuses models from another plan
        # Only `decoding.context`, or all of `decoding` with `evaluation.contrast.context: own`.
        settings=plan.settings("probabilities"),
        scoring=plan.params("probabilities", "score", "target_context"),  # from `evaluation.contrast`
    shell:
        "docmt decode score-candidates --settings {params.settings:q} --model {input.model} {params.model}"
        " --suite {input.suite} {params.discourse} {params.scoring} --out {output} --threads {threads} 2> {log}"


rule translate_suite:
    """Translate the documents of a generative test set."""
    input:
        model=MODEL,
        suite=plan.input("generated_documents", "suite"),  # as in `score_candidates`
        discourse=plan.input("generated_documents", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    log:
        "logs/translate_suite/{dataset}/{system}/seed{seed}/{suite}.log",
    benchmark:
        "results/benchmarks/translate_suite/{dataset}/{system}/seed{seed}/{suite}.tsv"
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
        fingerprint=plan.fingerprint("generated_documents"),
        discourse=plan.file_option("generated_documents", "discourse"),
        model=plan.model_option("generated_documents", "model"),  # refuses models from another plan
        settings=plan.settings("generated_documents"),
    shell:
        "docmt decode translate-suite --settings {params.settings:q} --model {input.model} {params.model}"
        " --suite {input.suite} {params.discourse} --out {output} --threads {threads} 2> {log}"


rule evaluate_cxmi:
    """Compute what context adds to the log probability of the reference (CXMI)."""
    input:
        model=MODEL,
        # For a split: results/{dataset}/corpora/{src}-{tgt}/{part}.*. For a suite: as in `score_candidates`.
        texts=plan.input("cxmi", "texts"),
        suite=plan.input("cxmi", "suite"),
        discourse=plan.input("cxmi", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/cxmi_{part}.json",
    log:
        "logs/evaluate_cxmi/{dataset}/{system}/seed{seed}/{part}.log",
    benchmark:
        "results/benchmarks/evaluate_cxmi/{dataset}/{system}/seed{seed}/{part}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", unless="has_user_output"),
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=120),
        gpu=1,
        cpus_per_gpu=cores_per_gpu,
    params:
        fingerprint=plan.fingerprint("cxmi"),
        discourse=plan.file_option("cxmi", "discourse"),
        model=plan.model_option("cxmi", "model"),  # refuses models from another plan
        settings=plan.settings("cxmi"),  # only `decoding.context`
        languages=plan.params("cxmi", "src_lang", "tgt_lang"),  # for a split
        test=plan.param("cxmi", "test"),
    shell:
        "docmt evaluate cxmi --settings {params.settings:q} --model {input.model} {params.model}"
        " --texts {input.texts} --suite {input.suite} {params.languages} {params.discourse}"
        " --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed} --test {params.test}"
        " --out {output} --threads {threads} --fingerprint {params.fingerprint} 2> {log}"


rule import_output:
    """Check and convert the output of an external system for a test split or suite."""
    input:
        # Your file in `systems.{system}.hypotheses` or `log_probabilities`.
        user_file=plan.input("user_output", "user_file"),
        # Document index and target side of the split, or the file of the suite.
        texts=plan.input("user_output", "texts"),
        suite=plan.input("user_output", "suite"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/{file}",
    log:
        "logs/import_output/{dataset}/{system}/seed{seed}/{file}.log",
    benchmark:
        "results/benchmarks/import_output/{dataset}/{system}/seed{seed}/{file}.tsv"
    wildcard_constraints:
        system=plan.row_pattern("systems", where="has_user_output"),
        file=r"test_[A-Za-z0-9_-]+\.jsonl|suite_[A-Za-z0-9_-]+\.json",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("user_output"),
        language=plan.params("user_output", "tgt_lang"),  # of a split
    shell:
        # With `=`, because the file name can begin with a hyphen.
        "docmt evaluate import-output --file={input.user_file:q} --texts {input.texts} {params.language}"
        " --suite {input.suite} --out {output} 2> {log}"
