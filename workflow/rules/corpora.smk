# Corpora: splits of datasets from the catalog, docmt's generator or your files.


rule corpora_fetch:
    """Fetch the files of a split in the catalog, from `corpora.mirror` or from the network."""
    output:
        # A marker file, because Snakemake would delete a folder with incomplete files after a network failure.
        touch("resources/corpora/{corpus}/{version}/{split}.fetched"),
    log:
        "logs/corpora_fetch/{corpus}/{version}/{split}.log",
    benchmark:
        "results/benchmarks/corpora_fetch/{corpus}/{version}/{split}.tsv"
    wildcard_constraints:
        corpus=plan.catalog_pattern(),
        version="[^/]+",
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    params:
        mirror=plan.options("fetched", "mirror"),
    shell:
        "docmt corpora fetch --corpus {wildcards.corpus} --splits {wildcards.split}"
        " --out resources/corpora/{wildcards.corpus}/{wildcards.version}/{wildcards.split} {params.mirror} 2> {log}"


rule models_fetch:
    """Fetch a published model in the catalog, from `corpora.mirror` or from the network."""
    output:
        # The last file. Other files are not declared, so that Snakemake keeps them after a network failure.
        "resources/models/{published}/{version}/config.json",
    log:
        "logs/models_fetch/{published}/{version}.log",
    benchmark:
        "results/benchmarks/models_fetch/{published}/{version}.tsv"
    wildcard_constraints:
        published=wildcard_regex(load_models()),
        version="[^/]+",
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    params:
        mirror=plan.options("fetched_model", "mirror"),
    shell:
        "docmt models fetch --model {wildcards.published}"
        " --out resources/models/{wildcards.published}/{wildcards.version} {params.mirror} 2> {log}"


rule fetch_mtdata:
    """Fetch a dataset with mtdata, from its cache or from the network."""
    output:
        "resources/corpora/mtdata/{dataset_id}.tsv",
    log:
        "logs/fetch_mtdata/{dataset_id}.log",
    benchmark:
        "results/benchmarks/fetch_mtdata/{dataset_id}.tsv"
    wildcard_constraints:
        dataset_id=plan.mtdata_pattern(),
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.settings("fetched_mtdata"),  # with the dataset id
        python=plan.options("fetched_mtdata", "python"),
    shell:
        "docmt corpora fetch-mtdata --settings {params.settings:q} {params.python} --out {output} 2> {log}"


rule corpora_read:
    """Read a split of a corpus into sentences, aligned if it has two languages, with a document index."""
    input:
        # The .fetched file from the catalog, the .tsv file from mtdata, or your files in `corpora.custom`.
        plan.input("corpus_text"),
    output:
        src="results/corpora/{corpus}/{src}-{tgt}/{split}.{src}",
        tgt="results/corpora/{corpus}/{src}-{tgt}/{split}.{tgt}",
        documents="results/corpora/{corpus}/{src}-{tgt}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/corpora_read/{corpus}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/corpora_read/{corpus}/{src}-{tgt}/{split}.tsv"
    wildcard_constraints:
        corpus=plan.readable_pattern(),
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("corpus_text"),
        # --corpus NAME from the catalog, or --spec with the split's settings as JSON, and --files FOLDER.
        source=plan.options("corpus_text", "corpus", "spec", "files"),
        languages=plan.param("corpus_text", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora read {params.source} --split {wildcards.split} --languages {params.languages}"
        " --out {params.out} 2> {log}"


use rule corpora_read as read_monolingual with:
    output:
        text="results/corpora/{corpus}/{lang}/{split}.{lang}",
        documents="results/corpora/{corpus}/{lang}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{lang}/{split}.counts.json",
    log:
        "logs/read_monolingual/{corpus}/{lang}/{split}.log",
    benchmark:
        "results/benchmarks/read_monolingual/{corpus}/{lang}/{split}.tsv"


rule convert_suite:
    """Convert a contrastive or generative test set."""
    input:
        plan.input("corpus_suite"),  # as in `corpora_read`
    output:
        "results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl",
    log:
        "logs/convert_suite/{corpus}/{src}-{tgt}/{suite}.log",
    benchmark:
        "results/benchmarks/convert_suite/{corpus}/{src}-{tgt}/{suite}.tsv"
    wildcard_constraints:
        corpus=plan.readable_pattern(),
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("corpus_suite"),
        source=plan.options("corpus_suite", "corpus", "spec", "files"),  # as in `corpora_read`
    shell:
        "docmt corpora convert-suite {params.source} --split {wildcards.suite} --out {output} 2> {log}"


rule controlled_generate:
    """Generate a controlled corpus with its gold trees and contrastive test sets."""
    output:
        splits=expand(
            "results/corpora/{{corpus}}/en-de/{split}.{end}",
            split=CONTROLLED_SPLITS,
            end=["en", "de", "documents.tsv", "discourse.jsonl"],
        ),
        suites=expand(
            "results/corpora/{{corpus}}/en-de/{folder}/{suite}.jsonl",
            folder=["suites", "suites/discourse"],
            suite=CONTROLLED_SUITES,
        ),
    log:
        "logs/controlled_generate/{corpus}.log",
    benchmark:
        "results/benchmarks/controlled_generate/{corpus}.tsv"
    wildcard_constraints:
        corpus=plan.generator_pattern("flat"),
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("generated"),
        settings=plan.settings("generated"),
    shell:
        "docmt controlled generate --settings {params.settings:q} --out results/corpora/{wildcards.corpus}/en-de"
        " 2> {log}"


use rule controlled_generate as generate_nested with:
    output:
        splits=rules.controlled_generate.output.splits,
        suites=expand(
            "results/corpora/{{corpus}}/en-de/{folder}/{suite}.jsonl",
            folder=["suites", "suites/discourse"],
            suite=NESTED_SUITES,
        ),
    log:
        "logs/generate_nested/{corpus}.log",
    benchmark:
        "results/benchmarks/generate_nested/{corpus}.tsv"
    wildcard_constraints:
        corpus=plan.generator_pattern("nested"),


rule corpora_combine:
    """Join the corpora of a dataset's split."""
    input:
        # results/corpora/{corpus}/{src}-{tgt}/{split}.* for all corpora in the split. `--inputs` are their prefixes.
        plan.input("dataset_split", "members"),
    output:
        src="results/{dataset}/corpora/{src}-{tgt}/{split}.{src}",
        tgt="results/{dataset}/corpora/{src}-{tgt}/{split}.{tgt}",
        documents="results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/corpora_combine/{dataset}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/corpora_combine/{dataset}/{src}-{tgt}/{split}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("dataset_split"),
        inputs=plan.param("dataset_split", "inputs"),
        languages=plan.param("dataset_split", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora combine --inputs {params.inputs:q} --languages {params.languages} --out {params.out} 2> {log}"


use rule corpora_combine as combine_monolingual with:
    output:
        text="results/{dataset}/corpora/{lang}/{split}.{lang}",
        documents="results/{dataset}/corpora/{lang}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{lang}/{split}.counts.json",
    log:
        "logs/combine_monolingual/{dataset}/{lang}/{split}.log",
    benchmark:
        "results/benchmarks/combine_monolingual/{dataset}/{lang}/{split}.tsv"


rule corpora_filter:
    """Join the corpora of a dataset's split, without the pairs that its filters reject."""
    input:
        members=plan.input("dataset_split", "members"),  # as in `corpora_combine`
        # Your files with scores or flags. With `max_test_overlap`, also the dataset's other splits.
        external=plan.input("dataset_split", "external"),
        tests=plan.input("dataset_split", "tests"),
    output:
        src="results/{dataset}/corpora/{src}-{tgt}/{split}.{src}",
        tgt="results/{dataset}/corpora/{src}-{tgt}/{split}.{tgt}",
        documents="results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/corpora_filter/{dataset}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/corpora_filter/{dataset}/{src}-{tgt}/{split}.tsv"
    wildcard_constraints:
        dataset=plan.filtered_pattern(),
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.fingerprint("dataset_split"),
        settings=plan.settings("dataset_split"),
        files=plan.options("dataset_split", "external", "tests"),
        inputs=plan.param("dataset_split", "inputs"),
        languages=plan.param("dataset_split", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora filter --settings {params.settings:q} --inputs {params.inputs:q} --languages {params.languages}"
        " {params.files} --out {params.out} --jobs {threads} 2> {log}"


# Only the splits in `datasets.NAME.filters` match both.
ruleorder: corpora_filter > corpora_combine


rule count_overlap:
    """Count sentences and documents that occur in both training and test data."""
    input:
        # results/{dataset}/corpora/{src}-{tgt}/{split}.* for all parallel splits. The parameters are their prefixes.
        train=plan.input("overlap", "train"),
        tests=plan.input("overlap", "tests"),  # and `dev`
    output:
        "results/{dataset}/corpora/overlap.json",
    log:
        "logs/count_overlap/{dataset}.log",
    benchmark:
        "results/benchmarks/count_overlap/{dataset}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("overlap"),
        train=plan.param("overlap", "train"),
        tests=plan.param("overlap", "tests"),
        languages=plan.params("overlap", "src_lang", "tgt_lang"),
    shell:
        "docmt corpora count-overlap --train {params.train:q} --tests {params.tests:q} {params.languages} --out {output}"
        " 2> {log}"
