# Text for cross-task pre-training: what datasets with `sentences` or `monolingual` have besides the other rules.
#
# Sentence pairs are the split `sentences` of the rules for parallel text; monolingual documents are the split
# `monolingual`, which has one language.
#
# Reads:  what the config names under `datasets.*.sentences` and `datasets.*.monolingual`.
# Makes:  results/corpora/{corpus}/{lang}/{split}.{lang}                one split of a monolingual corpus
#         results/{dataset}/corpora/{lang}/monolingual.{lang}             the monolingual documents of a dataset
#         results/{dataset}/text/vocabulary.txt                         with masks and language tags
#         results/{dataset}/instances/{segmentation}/monolingual/       arrays of one side and manifest.json


rule read_monolingual:
    """Read split {wildcards.split} of {wildcards.corpus} into documents of one language."""
    input:
        fetched=plan.corpora.fetched,
    output:
        text="results/corpora/{corpus}/{lang}/{split}.{lang}",
        documents="results/corpora/{corpus}/{lang}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{lang}/{split}.counts.json",
    log:
        "logs/read_monolingual/{corpus}_{lang}_{split}.log",
    benchmark:
        "results/benchmarks/read_monolingual/{corpus}_{lang}_{split}.tsv"
    wildcard_constraints:
        corpus=plan.corpora.catalogue_names(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        folder=plan.corpora.folder,
        prefix="results/corpora/{corpus}/{lang}/{split}",
        fingerprint=plan.fingerprints.corpus,
    shell:
        "docmt corpora read-monolingual --corpus {wildcards.corpus} --split {wildcards.split}"
        " --files {params.folder} --out {params.prefix} 2> {log}"


rule read_custom_monolingual:
    """Read split {wildcards.split} of the user's own monolingual corpus {wildcards.corpus}."""
    input:
        plan.corpora.custom_files,
    output:
        text="results/corpora/{corpus}/{lang}/{split}.{lang}",
        documents="results/corpora/{corpus}/{lang}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{lang}/{split}.counts.json",
    log:
        "logs/read_custom_monolingual/{corpus}_{lang}_{split}.log",
    benchmark:
        "results/benchmarks/read_custom_monolingual/{corpus}_{lang}_{split}.tsv"
    wildcard_constraints:
        corpus=plan.corpora.custom_names(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        settings=plan.corpora.custom_settings,
        prefix="results/corpora/{corpus}/{lang}/{split}",
        fingerprint=plan.fingerprints.corpus,
    shell:
        "docmt corpora read-monolingual --spec {params.settings:q} --split {wildcards.split} --out {params.prefix} 2> {log}"


rule combine_monolingual:
    """Join the monolingual documents of dataset {wildcards.dataset}."""
    input:
        plan.corpora.monolingual_member_files,
    output:
        text="results/{dataset}/corpora/{lang}/{split}.{lang}",
        documents="results/{dataset}/corpora/{lang}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{lang}/{split}.counts.json",
    log:
        "logs/combine_monolingual/{dataset}_{lang}_{split}.log",
    benchmark:
        "results/benchmarks/combine_monolingual/{dataset}_{lang}_{split}.tsv"
    wildcard_constraints:
        split="monolingual",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        members=plan.corpora.monolingual_members,
        prefix="results/{dataset}/corpora/{lang}/{split}",
        fingerprint=plan.fingerprints.dataset_split,
    shell:
        "docmt corpora combine-monolingual --inputs {params.members} --lang {wildcards.lang} --out {params.prefix} 2> {log}"


rule learn_tagged_vocabulary:
    """List the subwords of all training text of {wildcards.dataset}, with masks and language tags."""
    input:
        plan.text.subwords_train,
    output:
        "results/{dataset}/text/vocabulary.txt",
    log:
        "logs/learn_tagged_vocabulary/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_tagged_vocabulary/{dataset}.tsv"
    wildcard_constraints:
        dataset=plan.text.tagged_datasets(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        tags=plan.text.tags,
        fingerprint=plan.fingerprints.bpe,
    shell:
        "docmt text learn-vocabulary --inputs {input} --tags {params.tags} --out {output} 2> {log}"


rule build_monolingual_instances:
    """Cut the monolingual documents of {wildcards.dataset} into instances: {wildcards.segmentation}."""
    input:
        text=plan.text.subwords_monolingual,
        documents=plan.corpora.documents,
        vocabulary="results/{dataset}/text/vocabulary.txt",
    output:
        directory("results/{dataset}/instances/{segmentation}/{split}"),
    log:
        "logs/build_monolingual_instances/{dataset}_{segmentation}_{split}.log",
    benchmark:
        "results/benchmarks/build_monolingual_instances/{dataset}_{segmentation}_{split}.tsv"
    wildcard_constraints:
        split="monolingual",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        settings=plan.runs.instances_settings,
        fingerprint=plan.fingerprints.monolingual_instances,
    shell:
        "docmt instances build-monolingual --settings {params.settings:q} --text {input.text}"
        " --documents {input.documents} --vocabulary {input.vocabulary} --out {output} 2> {log}"
