# Discourse: EDUs and RST trees of the source documents, for systems that read them.
#
# Reads:  resources/corpora/{treebank}/{version}/all/        treebanks of the catalog, as fetched
#         results/corpora/{corpus}/en-de/                    gold trees of generated corpora
#         results/{dataset}/corpora/{src}-{tgt}/{split}.{src}, documents.tsv
# Makes:  results/treebanks/{treebank}/{train,dev,test}.discourse.jsonl, counts.json
#                                                            and, where the treebank has syntax, {split}.syntax.jsonl
#         results/discourse/segmenters/{segmenter}/segmenter.pt, evaluation.json
#         results/discourse/parsers/{parser}/parser.pt, evaluation.json
#         results/{dataset}/discourse/{trees}/{split}.{shard}-of-{n}.discourse.jsonl, suite_{suite}.discourse.jsonl
#         results/{dataset}/discourse/{trees}/statistics.csv, relations.csv
#         results/{dataset}/discourse/{trees}/{split}.svg    a picture of the first tree of a split


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
        format=plan.treebank.param("format"),
        files=plan.treebank.param("files"),
        folder="results/treebanks/{treebank}",
        fingerprint=plan.treebank.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse treebank --format {params.format} --files {params.files} --out {params.folder} 2> {log}"


rule train_segmenter:
    """Train the EDU segmenter {wildcards.segmenter}."""
    input:
        plan.segmenter.input("files"),
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
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=plan.segmenter.param("settings"),
        prefix=plan.segmenter.param("prefix"),
        seed=plan.segmenter.param("seed"),
        fingerprint=plan.segmenter.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse train-segmenter --settings {params.settings:q} --train {params.prefix}/train"
        " --dev {params.prefix}/dev --seed {params.seed} --out {output} 2> {log}"


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
    localrule: True
    conda:
        "../../environment.yml"
    params:
        prefix=plan.segmenter_evaluation.param("prefix"),
        fingerprint=plan.segmenter_evaluation.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse evaluate-segmenter --model {input.model} --gold {params.prefix}/test.discourse.jsonl"
        " --out {output} 2> {log}"


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
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=plan.parser.param("settings"),
        prefix=plan.parser.param("prefix"),
        segmenter=option("--segmenter", "segmenter"),
        seed=plan.parser.param("seed"),
        fingerprint=plan.parser.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse train-parser --settings {params.settings:q} --train {params.prefix}/train"
        " --dev {params.prefix}/dev {params.segmenter} --seed {params.seed} --out {output} 2> {log}"


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
    localrule: True
    conda:
        "../../environment.yml"
    params:
        prefix=plan.parser_evaluation.param("prefix"),
        baselines="chain right_branching sentence_branching paragraph_branching",
        fingerprint=plan.parser_evaluation.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse evaluate-parser --parser {input.model} --gold {params.prefix}/test.discourse.jsonl"
        " --baselines {params.baselines} --out {output} 2> {log}"


rule annotate:
    """Segment and parse {wildcards.dataset} {wildcards.split}, part {wildcards.shard} of {wildcards.n_shards}."""
    input:
        models=plan.trees.input("models"),
        text=plan.trees.input("text"),
        documents=plan.trees.input("documents"),
    output:
        "results/{dataset}/discourse/{trees}/{split}.{shard}-of-{n_shards}.discourse.jsonl",
    log:
        "logs/annotate/{dataset}_{trees}_{split}_{shard}-of-{n_shards}.log",
    benchmark:
        "results/benchmarks/annotate/{dataset}_{trees}_{split}_{shard}-of-{n_shards}.tsv"
    wildcard_constraints:
        trees=plan.annotated_trees(),
        shard="[0-9]+",
        n_shards="[0-9]+",
    priority: 20
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        models=plan.trees.param("models"),
        lang=plan.trees.param("lang"),
        fingerprint=plan.trees.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse annotate {params.models} --text {input.text} --lang {params.lang}"
        " --documents {input.documents} --shard {wildcards.shard}/{wildcards.n_shards} --out {output} 2> {log}"


rule annotate_suite:
    """Segment and parse the source documents of suite {wildcards.suite} of {wildcards.dataset}."""
    input:
        models=plan.suite_trees.input("models"),
        suite=plan.suite_trees.input("suite"),
    output:
        "results/{dataset}/discourse/{trees}/suite_{suite}.discourse.jsonl",
    log:
        "logs/annotate_suite/{dataset}_{trees}_{suite}.log",
    benchmark:
        "results/benchmarks/annotate_suite/{dataset}_{trees}_{suite}.tsv"
    wildcard_constraints:
        trees=plan.annotated_trees(),
    conda:
        "../../environment.yml"
    params:
        models=plan.suite_trees.param("models"),
        lang=plan.suite_trees.param("lang"),
        fingerprint=plan.suite_trees.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse annotate {params.models} --suite {input.suite} --lang {params.lang} --out {output} 2> {log}"


rule gather_gold:
    """Gather the gold trees of {wildcards.dataset} {wildcards.split}."""
    input:
        trees=plan.trees.input("trees"),
        documents=plan.trees.input("documents"),
    output:
        "results/{dataset}/discourse/{trees}/{split}.1-of-1.discourse.jsonl",
    log:
        "logs/gather_gold/{dataset}_{trees}_{split}.log",
    benchmark:
        "results/benchmarks/gather_gold/{dataset}_{trees}_{split}.tsv"
    wildcard_constraints:
        trees=plan.gold_trees(),
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.trees.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse gather --inputs {input.trees} --documents {input.documents} --out {output} 2> {log}"


rule count_trees:
    """Count EDUs, depths and relations of the trees {wildcards.trees} of {wildcards.dataset}."""
    input:
        plan.tree_statistics.input(),
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
        files=plan.tree_statistics.param("files"),
        fingerprint=plan.tree_statistics.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse statistics --files {params.files:q} --out {output.statistics} --relations {output.relations}"
        " 2> {log}"


rule draw_tree:
    """Draw the tree of the first document of {wildcards.dataset} {wildcards.split}."""
    input:
        "results/{dataset}/discourse/{trees}/{split}.1-of-1.discourse.jsonl",
    output:
        "results/{dataset}/discourse/{trees}/{split}.svg",
    log:
        "logs/draw_tree/{dataset}_{trees}_{split}.log",
    benchmark:
        "results/benchmarks/draw_tree/{dataset}_{trees}_{split}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.tree_picture.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt discourse draw --input {input} --number 1 --out {output} 2> {log}"
