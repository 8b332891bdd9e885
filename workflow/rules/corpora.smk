# Corpora: from the catalogue, from docmt's own generator or from files of one's own to the splits of a dataset.
#
# Reads:  what the config names under `corpora` and `datasets`.
# Makes:  resources/corpora/{corpus}/{version}/{split}/             files as fetched; a folder for each split, so that
#                                                                   jobs side by side never share a file
#         results/corpora/{corpus}/{src}-{tgt}/{split}.{lang}       one split of one corpus, with documents.tsv, counts.json
#         results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl contrastive test sets
#         results/corpora/{corpus}/en-de/{split}.discourse.jsonl    gold EDUs and trees, of generated corpora only
#         results/{dataset}/corpora/{src}-{tgt}/{split}.{lang}      the splits of a dataset, with documents.tsv, counts.json
#         results/{dataset}/corpora/overlap.json                    what training and test data share


rule fetch_corpus:
    """Fetch the files of {wildcards.corpus} {wildcards.split}: from the mirror, or from the network."""
    output:
        # A mark, not the folder: Snakemake would delete a folder with its half-fetched files when the network fails.
        touch("resources/corpora/{corpus}/{version}/{split}.fetched"),
    log:
        "logs/fetch_corpus/{corpus}_{version}_{split}.log",
    benchmark:
        "results/benchmarks/fetch_corpus/{corpus}_{version}_{split}.tsv"
    wildcard_constraints:
        corpus=plan.corpora.catalogue_names(),
        version="[^/]+",
    retries: 2
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(120),
    params:
        folder="resources/corpora/{corpus}/{version}/{split}",
        mirror=plan.corpora.mirror,
    shell:
        "docmt corpora fetch --corpus {wildcards.corpus} --splits {wildcards.split} {params.mirror}"
        " --out {params.folder} 2> {log}"


rule read_corpus:
    """Read split {wildcards.split} of {wildcards.corpus} into aligned sentences of documents."""
    input:
        fetched=plan.corpora.fetched,
    output:
        src="results/corpora/{corpus}/{src}-{tgt}/{split}.{src}",
        tgt="results/corpora/{corpus}/{src}-{tgt}/{split}.{tgt}",
        documents="results/corpora/{corpus}/{src}-{tgt}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/read_corpus/{corpus}_{src}-{tgt}_{split}.log",
    benchmark:
        "results/benchmarks/read_corpus/{corpus}_{src}-{tgt}_{split}.tsv"
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
        prefix="results/corpora/{corpus}/{src}-{tgt}/{split}",
        fingerprint=plan.fingerprints.corpus,
    shell:
        "docmt corpora read --corpus {wildcards.corpus} --split {wildcards.split}"
        " --src-lang {wildcards.src} --tgt-lang {wildcards.tgt} --files {params.folder} --out {params.prefix} 2> {log}"


rule convert_suite:
    """Convert the contrastive test set {wildcards.suite} of {wildcards.corpus}."""
    input:
        fetched=plan.corpora.fetched,
    output:
        "results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl",
    log:
        "logs/convert_suite/{corpus}_{src}-{tgt}_{suite}.log",
    benchmark:
        "results/benchmarks/convert_suite/{corpus}_{src}-{tgt}_{suite}.tsv"
    wildcard_constraints:
        corpus=plan.corpora.catalogue_names(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        folder=plan.corpora.folder,
        fingerprint=plan.fingerprints.corpus_suite,
    shell:
        "docmt corpora suite --corpus {wildcards.corpus} --split {wildcards.suite} --files {params.folder}"
        " --out {output} 2> {log}"


rule read_custom:
    """Read split {wildcards.split} of the user's own corpus {wildcards.corpus}."""
    input:
        plan.corpora.custom_files,
    output:
        src="results/corpora/{corpus}/{src}-{tgt}/{split}.{src}",
        tgt="results/corpora/{corpus}/{src}-{tgt}/{split}.{tgt}",
        documents="results/corpora/{corpus}/{src}-{tgt}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/read_custom/{corpus}_{src}-{tgt}_{split}.log",
    benchmark:
        "results/benchmarks/read_custom/{corpus}_{src}-{tgt}_{split}.tsv"
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
        prefix="results/corpora/{corpus}/{src}-{tgt}/{split}",
        fingerprint=plan.fingerprints.corpus,
    shell:
        "docmt corpora read --spec {params.settings:q} --split {wildcards.split} --src-lang {wildcards.src}"
        " --tgt-lang {wildcards.tgt} --out {params.prefix} 2> {log}"


rule generate_corpus:
    """Generate the controlled corpus {wildcards.corpus} with its contrastive test sets."""
    output:
        text=expand(
            "results/corpora/{{corpus}}/en-de/{split}.{end}",
            split=CONTROLLED_SPLITS,
            end=["en", "de"],
        ),
        documents=expand(
            "results/corpora/{{corpus}}/en-de/{split}.documents.tsv",
            split=CONTROLLED_SPLITS,
        ),
        suites=expand(
            "results/corpora/{{corpus}}/en-de/suites/{suite}.jsonl",
            suite=CONTROLLED_SUITES,
        ),
        discourse=expand(
            "results/corpora/{{corpus}}/en-de/{split}.discourse.jsonl",
            split=CONTROLLED_SPLITS,
        ),
        suite_discourse=expand(
            "results/corpora/{{corpus}}/en-de/suites/discourse/{suite}.jsonl",
            suite=CONTROLLED_SUITES,
        ),
    log:
        "logs/generate_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/generate_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=plan.corpora.controlled_names(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        settings=plan.corpora.controlled_settings,
        fingerprint=plan.fingerprints.corpus,
    shell:
        "docmt corpora generate --settings {params.settings:q} --out results/corpora/{wildcards.corpus}/en-de 2> {log}"


rule combine_corpora:
    """Join the corpora of split {wildcards.split} of dataset {wildcards.dataset}."""
    input:
        plan.corpora.member_files,
    output:
        src="results/{dataset}/corpora/{src}-{tgt}/{split}.{src}",
        tgt="results/{dataset}/corpora/{src}-{tgt}/{split}.{tgt}",
        documents="results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/combine_corpora/{dataset}_{src}-{tgt}_{split}.log",
    benchmark:
        "results/benchmarks/combine_corpora/{dataset}_{src}-{tgt}_{split}.tsv"
    wildcard_constraints:
        split=plan.parallel_splits(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        members=plan.corpora.members,
        prefix="results/{dataset}/corpora/{src}-{tgt}/{split}",
        fingerprint=plan.fingerprints.dataset_split,
    shell:
        "docmt corpora combine --inputs {params.members} --src-lang {wildcards.src} --tgt-lang {wildcards.tgt}"
        " --out {params.prefix} 2> {log}"


rule count_overlap:
    """Count what the training data of {wildcards.dataset} share with its development and test data."""
    input:
        plan.corpora.all_files,
    output:
        "results/{dataset}/corpora/overlap.json",
    log:
        "logs/count_overlap/{dataset}.log",
    benchmark:
        "results/benchmarks/count_overlap/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        train=plan.corpora.train_prefixes,
        tests=plan.corpora.other_prefixes,
        languages=plan.corpora.language_options,
        fingerprint=plan.fingerprints.overlap,
    shell:
        "docmt corpora overlap --train {params.train} --tests {params.tests} {params.languages} --out {output} 2> {log}"
