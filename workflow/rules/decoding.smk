# Translations of test splits and suites, and log probabilities of candidates and references.

# Model of the system, or of the system in `use_model_of`.
MODEL = collect(
    "results/{{dataset}}/runs/{owner}/seed{{seed}}/model.pt",
    owner=plan.model_owner,
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
        model=plan.model_option("hypotheses", "model"),  # refuses a model of another plan
        settings=plan.settings("hypotheses"),
    shell:
        "docmt decode translate --settings {params.settings:q} --model {input.model} {params.model}"
        " --instances {input.instances} --out {output} --threads {threads} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule contrast:
    """Compute log probabilities for the candidates of a contrastive test set."""
    input:
        model=MODEL,
        suite=plan.input("probabilities", "suite"),  # results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl
        # If the system reads trees: results/{dataset}/discourse/{trees}/suite_{suite}.*. Gold trees:
        # results/corpora/{corpus}/{src}-{tgt}/suites/discourse/{suite}.jsonl.
        discourse=plan.input("probabilities", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/suite_{suite}.json",
    log:
        "logs/contrast/{dataset}/{system}/seed{seed}/{suite}.log",
    benchmark:
        "results/benchmarks/contrast/{dataset}/{system}/seed{seed}/{suite}.tsv"
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
        model=plan.model_option("probabilities", "model"),  # refuses a model of another plan
        # Only `decoding.context`, or all of `decoding` with `evaluation.contrast.context: own`.
        settings=plan.settings("probabilities"),
        discourse=plan.options("probabilities", "discourse"),
        scoring=plan.options("probabilities", "score", "target_context"),  # from `evaluation.contrast`
    shell:
        "docmt decode score-candidates --settings {params.settings:q} --model {input.model} {params.model}"
        " --suite {input.suite} {params.discourse} {params.scoring} --out {output} --threads {threads}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule generate:
    """Translate the documents of a generative test set."""
    input:
        model=MODEL,
        suite=plan.input("generated_documents", "suite"),  # as in `contrast`
        discourse=plan.input("generated_documents", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/decoding/generated_{suite}.jsonl",
    log:
        "logs/generate/{dataset}/{system}/seed{seed}/{suite}.log",
    benchmark:
        "results/benchmarks/generate/{dataset}/{system}/seed{seed}/{suite}.tsv"
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
        model=plan.model_option("generated_documents", "model"),  # refuses a model of another plan
        settings=plan.settings("generated_documents"),
        discourse=plan.options("generated_documents", "discourse"),
    shell:
        "docmt decode translate-suite --settings {params.settings:q} --model {input.model} {params.model}"
        " --suite {input.suite} {params.discourse} --out {output} --threads {threads}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule score_cxmi:
    """Compute what context adds to the log probability of the reference (CXMI)."""
    input:
        model=MODEL,
        # Of a split: results/{dataset}/corpora/{src}-{tgt}/{part}.*. Of a suite: as in `contrast`.
        text=plan.input("cxmi", "text"),
        discourse=plan.input("cxmi", "discourse"),
    output:
        "results/{dataset}/runs/{system}/seed{seed}/scores/cxmi_{part}.json",
    log:
        "logs/score_cxmi/{dataset}/{system}/seed{seed}/{part}.log",
    benchmark:
        "results/benchmarks/score_cxmi/{dataset}/{system}/seed{seed}/{part}.tsv"
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
        model=plan.model_option("cxmi", "model"),  # refuses a model of another plan
        settings=plan.settings("cxmi"),  # only `decoding.context`
        # Of a split: --prefix and languages. Of a suite: --suite.
        text=plan.options("cxmi", "prefix", "src_lang", "tgt_lang", "suite"),
        discourse=plan.options("cxmi", "discourse"),
        test=plan.param("cxmi", "test"),
    shell:
        "docmt evaluate cxmi --settings {params.settings:q} --model {input.model} {params.model} {params.text}"
        " {params.discourse} --dataset {wildcards.dataset} --system {wildcards.system} --seed {wildcards.seed}"
        " --test {params.test} --out {output} --threads {threads} --fingerprint {params.fingerprint} 2> {log}"


rule import_output:
    """Check and convert the output of an external system for a test split or suite."""
    input:
        # Your file in `systems.{system}.hypotheses` or `log_probabilities`.
        own=plan.input("user_output", "own"),
        # The document index of the split, or the file of the suite.
        tested=plan.input("user_output", "tested"),
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
        tested=plan.options("user_output", "prefix", "suite"),
    shell:
        # With `=`, because the name of the file can begin with a hyphen.
        "docmt evaluate import-output --file={input.own:q} {params.tested} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
