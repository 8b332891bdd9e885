# Corpora: from the catalog, docmt's generator or the user's files to the splits of a dataset.


rule fetch_corpus:
    """Fetch the files of {wildcards.corpus} {wildcards.split}: from the mirror, or from the network."""
    output:
        # A marker, not the folder: if the network fails, Snakemake would delete the folder with its half-fetched files.
        touch("resources/corpora/{corpus}/{version}/{split}.fetched"),
    log:
        "logs/fetch_corpus/{corpus}/{version}/{split}.log",
    benchmark:
        "results/benchmarks/fetch_corpus/{corpus}/{version}/{split}.tsv"
    wildcard_constraints:
        corpus=plan.catalog_corpora(),
        version="[^/]+",
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=1000, runtime=120),
    params:
        mirror=plan.options("fetched", "mirror", is_recorded=False),
    shell:
        "docmt corpora fetch --corpus {wildcards.corpus} --splits {wildcards.split}"
        " --out resources/corpora/{wildcards.corpus}/{wildcards.version}/{wildcards.split} {params.mirror} 2> {log}"


rule fetch_model:
    """Fetch the published model {wildcards.published}: from the mirror, or from the network."""
    output:
        # The last of its files; the others are not named, so that a failure leaves what has been fetched.
        "resources/models/{published}/{version}/config.json",
    log:
        "logs/fetch_model/{published}/{version}.log",
    benchmark:
        "results/benchmarks/fetch_model/{published}/{version}.tsv"
    wildcard_constraints:
        published=wildcard_regex(load_models()),
        version="[^/]+",
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=1000, runtime=240),
    params:
        mirror=plan.options("fetched_model", "mirror", is_recorded=False),
    shell:
        "docmt models fetch --model {wildcards.published}"
        " --out resources/models/{wildcards.published}/{wildcards.version} {params.mirror} 2> {log}"


rule fetch_mtdata:
    """Fetch {wildcards.dataset_id} by mtdata: from its cache, or from the network."""
    output:
        "resources/corpora/mtdata/{dataset_id}.tsv",
    log:
        "logs/fetch_mtdata/{dataset_id}.log",
    benchmark:
        "results/benchmarks/fetch_mtdata/{dataset_id}.tsv"
    wildcard_constraints:
        dataset_id=plan.mtdata_corpora(),
    retries: 2
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=1000, runtime=120),
    params:
        settings=plan.settings("fetched_mtdata"),
        python=plan.options("fetched_mtdata", "python", is_recorded=False),
    shell:
        "docmt corpora fetch-mtdata --settings {params.settings:q} {params.python} --out {output} 2> {log}"


rule read_corpus:
    """Read split {wildcards.split} of {wildcards.corpus} into sentences of documents, aligned if it has two sides."""
    input:
        plan.input("corpus"),
    output:
        src="results/corpora/{corpus}/{src}-{tgt}/{split}.{src}",
        tgt="results/corpora/{corpus}/{src}-{tgt}/{split}.{tgt}",
        documents="results/corpora/{corpus}/{src}-{tgt}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/read_corpus/{corpus}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/read_corpus/{corpus}/{src}-{tgt}/{split}.tsv"
    wildcard_constraints:
        corpus=plan.corpora_of_files(),
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("corpus"),
        source=plan.options("corpus", "corpus", "spec", "files"),
        languages=plan.param("corpus", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora read {params.source} --split {wildcards.split} --languages {params.languages}"
        " --out {params.out} --fingerprint {params.fingerprint} 2> {log}"


use rule read_corpus as read_monolingual with:
    output:
        text="results/corpora/{corpus}/{lang}/{split}.{lang}",
        documents="results/corpora/{corpus}/{lang}/{split}.documents.tsv",
        counts="results/corpora/{corpus}/{lang}/{split}.counts.json",
    log:
        "logs/read_monolingual/{corpus}/{lang}/{split}.log",
    benchmark:
        "results/benchmarks/read_monolingual/{corpus}/{lang}/{split}.tsv"


rule convert_suite:
    """Convert the contrastive or generative test set {wildcards.suite} of {wildcards.corpus}."""
    input:
        plan.input("corpus_suite"),
    output:
        "results/corpora/{corpus}/{src}-{tgt}/suites/{suite}.jsonl",
    log:
        "logs/convert_suite/{corpus}/{src}-{tgt}/{suite}.log",
    benchmark:
        "results/benchmarks/convert_suite/{corpus}/{src}-{tgt}/{suite}.tsv"
    wildcard_constraints:
        corpus=plan.corpora_of_files(),
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("corpus_suite"),
        source=plan.options("corpus_suite", "corpus", "spec", "files"),
    shell:
        "docmt corpora suite {params.source} --split {wildcards.suite} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule generate_corpus:
    """Generate the controlled corpus {wildcards.corpus} with its contrastive test sets."""
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
        "logs/generate_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/generate_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=plan.controlled_corpora("flat"),
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("generated"),
        settings=plan.settings("generated"),
    shell:
        "docmt controlled generate --settings {params.settings:q} --out results/corpora/{wildcards.corpus}/en-de"
        " --fingerprint {params.fingerprint} 2> {log}"


use rule generate_corpus as generate_segments with:
    output:
        splits=expand(
            "results/corpora/{{corpus}}/en-de/{split}.{end}",
            split=CONTROLLED_SPLITS,
            end=["en", "de", "documents.tsv", "discourse.jsonl"],
        ),
        suites=expand(
            "results/corpora/{{corpus}}/en-de/{folder}/{suite}.jsonl",
            folder=["suites", "suites/discourse"],
            suite=SEGMENTS_SUITES,
        ),
    log:
        "logs/generate_segments/{corpus}.log",
    benchmark:
        "results/benchmarks/generate_segments/{corpus}.tsv"
    wildcard_constraints:
        corpus=plan.controlled_corpora("nested"),


rule combine_corpora:
    """Join the corpora of split {wildcards.split} of {wildcards.dataset}."""
    input:
        plan.input("dataset_split", "members"),
    output:
        src="results/{dataset}/corpora/{src}-{tgt}/{split}.{src}",
        tgt="results/{dataset}/corpora/{src}-{tgt}/{split}.{tgt}",
        documents="results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/combine_corpora/{dataset}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/combine_corpora/{dataset}/{src}-{tgt}/{split}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("dataset_split"),
        inputs=plan.param("dataset_split", "inputs"),
        languages=plan.param("dataset_split", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora combine --inputs {params.inputs:q} --languages {params.languages} --out {params.out}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule filter_corpora:
    """Join the corpora of split {wildcards.split} of {wildcards.dataset} without pairs that break the rules."""
    input:
        plan.input("dataset_split"),
    output:
        src="results/{dataset}/corpora/{src}-{tgt}/{split}.{src}",
        tgt="results/{dataset}/corpora/{src}-{tgt}/{split}.{tgt}",
        documents="results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{src}-{tgt}/{split}.counts.json",
    log:
        "logs/filter_corpora/{dataset}/{src}-{tgt}/{split}.log",
    benchmark:
        "results/benchmarks/filter_corpora/{dataset}/{src}-{tgt}/{split}.tsv"
    wildcard_constraints:
        dataset=plan.filtered_datasets(),
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.fingerprint("dataset_split"),
        settings=plan.settings("dataset_split"),
        tests=plan.options("dataset_split", "tests"),
        inputs=plan.param("dataset_split", "inputs"),
        languages=plan.param("dataset_split", "languages"),
        out=subpath(output.documents, strip_suffix=".documents.tsv"),
    shell:
        "docmt corpora filter --settings {params.settings:q} --inputs {params.inputs:q} --languages {params.languages}"
        " {params.tests} --out {params.out} --jobs {threads} --fingerprint {params.fingerprint} > {log} 2>&1"


ruleorder: filter_corpora > combine_corpora


use rule combine_corpora as combine_monolingual with:
    output:
        text="results/{dataset}/corpora/{lang}/{split}.{lang}",
        documents="results/{dataset}/corpora/{lang}/{split}.documents.tsv",
        counts="results/{dataset}/corpora/{lang}/{split}.counts.json",
    log:
        "logs/combine_monolingual/{dataset}/{lang}/{split}.log",
    benchmark:
        "results/benchmarks/combine_monolingual/{dataset}/{lang}/{split}.tsv"


rule count_overlap:
    """Count what the training data of {wildcards.dataset} share with its development and test data."""
    input:
        plan.input("overlap"),
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
        languages=plan.options("overlap", "src_lang", "tgt_lang"),
    shell:
        "docmt corpora overlap --train {params.train:q} --tests {params.tests:q} {params.languages} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
