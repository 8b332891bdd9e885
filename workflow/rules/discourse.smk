# Discourse: EDUs and RST trees of the source documents, for systems that read them.


rule read_treebank:
    """Read the treebank {wildcards.treebank} into documents with EDUs and trees."""
    input:
        fetched=plan.treebank.input("fetched"),
    output:
        discourse=expand(
            "results/treebanks/{{treebank}}/{split}.discourse.jsonl",
            split=CONTROLLED_SPLITS,
        ),
        counts="results/treebanks/{treebank}/counts.json",
    log:
        "logs/read_treebank/{treebank}.log",
    benchmark:
        "results/benchmarks/read_treebank/{treebank}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.treebank.fingerprint,
        format=plan.treebank.param("format"),
        files=plan.treebank.param("files"),
    shell:
        "docmt discourse treebank --format {params.format} --files {params.files:q}"
        " --out results/treebanks/{wildcards.treebank} --fingerprint {params.fingerprint} 2> {log}"


rule train_segmenter:
    """Train the EDU segmenter {wildcards.segmenter}."""
    input:
        files=plan.segmenter.input("files"),
    output:
        "results/discourse/segmenters/{segmenter}/segmenter.pt",
    log:
        "logs/train_segmenter/{segmenter}.log",
    benchmark:
        "results/benchmarks/train_segmenter/{segmenter}.tsv"
    priority: 20
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
    params:
        fingerprint=plan.segmenter.fingerprint,
        settings=plan.segmenter.settings,
        train=plan.segmenter.param("train"),
        dev=plan.segmenter.param("dev"),
        seed=plan.segmenter.param("seed"),
    shell:
        "docmt discourse train-segmenter --settings {params.settings:q} --train {params.train:q} --dev {params.dev:q}"
        " --seed {params.seed} --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule evaluate_segmenter:
    """Score the EDU segmenter {wildcards.segmenter} on the test split of its treebank."""
    input:
        files=plan.segmenter_evaluation.input("files"),
        model="results/discourse/segmenters/{segmenter}/segmenter.pt",
    output:
        "results/discourse/segmenters/{segmenter}/evaluation.json",
    log:
        "logs/evaluate_segmenter/{segmenter}.log",
    benchmark:
        "results/benchmarks/evaluate_segmenter/{segmenter}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.segmenter_evaluation.fingerprint,
        gold=plan.segmenter_evaluation.param("gold"),
    shell:
        "docmt discourse evaluate-segmenter --model {input.model} --gold {params.gold} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule train_parser:
    """Train the RST parser {wildcards.parser}."""
    input:
        files=plan.parser.input("files"),
        segmenter=plan.parser.input("segmenter"),
    output:
        "results/discourse/parsers/{parser}/parser.pt",
    log:
        "logs/train_parser/{parser}.log",
    benchmark:
        "results/benchmarks/train_parser/{parser}.tsv"
    priority: 20
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
    params:
        fingerprint=plan.parser.fingerprint,
        settings=plan.parser.settings,
        train=plan.parser.param("train"),
        dev=plan.parser.param("dev"),
        seed=plan.parser.param("seed"),
    shell:
        "docmt discourse train-parser --settings {params.settings:q} --train {params.train:q} --dev {params.dev:q}"
        " --segmenter {input.segmenter} --seed {params.seed} --out {output} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule evaluate_parser:
    """Score the RST parser {wildcards.parser} on the gold EDUs of the test split of its treebank."""
    input:
        files=plan.parser_evaluation.input("files"),
        model="results/discourse/parsers/{parser}/parser.pt",
    output:
        "results/discourse/parsers/{parser}/evaluation.json",
    log:
        "logs/evaluate_parser/{parser}.log",
    benchmark:
        "results/benchmarks/evaluate_parser/{parser}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.parser_evaluation.fingerprint,
        gold=plan.parser_evaluation.param("gold"),
        baselines=plan.parser_evaluation.param("baselines"),
    shell:
        "docmt discourse evaluate-parser --parser {input.model} --gold {params.gold} --baselines {params.baselines}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule annotate:
    """Segment and parse {wildcards.dataset} {wildcards.part}, part {wildcards.shard} of {wildcards.n_shards}."""
    input:
        models=plan.trees.input("models"),
        text=plan.trees.input("text"),
        documents=plan.trees.input("documents"),
        suite=plan.trees.input("suite"),
    output:
        "results/{dataset}/discourse/{trees}/{part}.{shard}-of-{n_shards}.discourse.jsonl",
    log:
        "logs/annotate/{dataset}_{trees}_{part}_{shard}-of-{n_shards}.log",
    benchmark:
        "results/benchmarks/annotate/{dataset}_{trees}_{part}_{shard}-of-{n_shards}.tsv"
    wildcard_constraints:
        trees=plan.row_pattern("discourse.trees", where="segmenter"),
        shard="[0-9]+",
        n_shards="[0-9]+",
    priority: 20
    conda:
        "../../environment.yml"
    threads: annotation_job_threads
    resources:
        **scale_with_attempt(mem_mb=6000, runtime=240),
    params:
        fingerprint=plan.trees.fingerprint,
        models=plan.trees.options("segmenter", "parser", "sentences"),
        text=plan.trees.options("text", "documents", "suite"),
        lang=plan.trees.param("lang"),
    shell:
        "docmt discourse annotate {params.models} {params.text} --lang {params.lang} --shard {wildcards.shard}"
        " --n-shards {wildcards.n_shards} --out {output} --jobs {threads} --fingerprint {params.fingerprint}"
        " 2> {log}"


rule gather_gold:
    """Gather the gold trees of {wildcards.dataset} {wildcards.part}."""
    input:
        inputs=plan.trees.input("inputs"),
        documents=plan.trees.input("documents"),
    output:
        "results/{dataset}/discourse/{trees}/{part}.1-of-1.discourse.jsonl",
    log:
        "logs/gather_gold/{dataset}_{trees}_{part}.log",
    benchmark:
        "results/benchmarks/gather_gold/{dataset}_{trees}_{part}.tsv"
    wildcard_constraints:
        trees=plan.row_pattern("discourse.trees", where="gold"),
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.trees.fingerprint,
    shell:
        "docmt discourse merge --inputs {input.inputs} --documents {input.documents} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule count_trees:
    """Count EDUs, depths and relations of the trees {wildcards.trees} of {wildcards.dataset}."""
    input:
        trees=plan.tree_statistics.input("trees"),
    output:
        statistics="results/{dataset}/discourse/{trees}/statistics.csv",
        relations="results/{dataset}/discourse/{trees}/relations.csv",
    log:
        "logs/count_trees/{dataset}_{trees}.log",
    benchmark:
        "results/benchmarks/count_trees/{dataset}_{trees}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.tree_statistics.fingerprint,
        files=plan.tree_statistics.param("files"),
    shell:
        "docmt discourse statistics --files {params.files:q} --out {output.statistics} --relations {output.relations}"
        " --fingerprint {params.fingerprint} 2> {log}"
