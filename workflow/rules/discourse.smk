# Discourse: EDUs and RST trees for the source documents.


rule read_treebank:
    """Read a treebank into documents with EDUs and trees."""
    input:
        fetched=plan.input("treebank", "fetched"),  # resources/corpora/{treebank}/{version}/all.fetched
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
    priority: 20
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("treebank"),
        format=plan.param("treebank", "format"),
        files=plan.options("treebank", "files"),  # the folder next to the .fetched file
    shell:
        "docmt discourse read-treebank --format {params.format} {params.files}"
        " --out results/treebanks/{wildcards.treebank} 2> {log}"


rule train_segmenter:
    """Train an EDU segmenter."""
    input:
        # {train,dev}.discourse.jsonl in results/treebanks/{treebank}/, or in a controlled corpus
        train=plan.input("segmenter_model", "train"),
        dev=plan.input("segmenter_model", "dev"),
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
        fingerprint=plan.fingerprint("segmenter_model"),
        settings=plan.settings("segmenter_model"),
        seed=plan.param("segmenter_model", "seed"),
    shell:
        "docmt discourse train-segmenter --settings {params.settings:q} --train {input.train} --dev {input.dev}"
        " --seed {params.seed} --out {output} 2> {log}"


rule evaluate_segmenter:
    """Score an EDU segmenter on the test split of its treebank."""
    input:
        gold=plan.input("segmenter_evaluation", "test"),  # test.discourse.jsonl in its treebank
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
        fingerprint=plan.fingerprint("segmenter_evaluation"),
    shell:
        "docmt discourse evaluate-segmenter --model {input.model} --gold {input.gold} --out {output} 2> {log}"


rule train_parser:
    """Train an RST parser."""
    input:
        train=plan.input("parser_model", "train"),  # as in `train_segmenter`
        dev=plan.input("parser_model", "dev"),
        segmenter=collect(
            "results/discourse/segmenters/{segmenter}/segmenter.pt",
            segmenter=plan.parser_segmenter,
        ),
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
        fingerprint=plan.fingerprint("parser_model"),
        settings=plan.settings("parser_model"),
        seed=plan.param("parser_model", "seed"),
    shell:
        "docmt discourse train-parser --settings {params.settings:q} --train {input.train} --dev {input.dev}"
        " --segmenter {input.segmenter} --seed {params.seed} --out {output} 2> {log}"


rule evaluate_parser:
    """Score an RST parser on the gold EDUs in the test split of its treebank."""
    input:
        gold=plan.input("parser_evaluation", "test"),  # test.discourse.jsonl in its treebank
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
        fingerprint=plan.fingerprint("parser_evaluation"),
    shell:
        "docmt discourse evaluate-parser --parser {input.model} --gold {input.gold} --baselines chain"
        " --out {output} 2> {log}"


rule annotate:
    """Segment and parse the source side of a split or suite, or one shard of it."""
    input:
        segmenter=plan.input("document_trees", "segmenter"),  # segmenter.pt
        parser=plan.input("document_trees", "parser"),  # parser.pt, or nothing for a control
        # For a split: its source text and document index. For a suite: its file.
        text=plan.input("document_trees", "text"),
        documents=plan.input("document_trees", "documents"),
        suite=plan.input("document_trees", "suite"),
    output:
        "results/{dataset}/discourse/{trees}/{part}.{shard}-of-{n_shards}.discourse.jsonl",
    log:
        "logs/annotate/{dataset}/{trees}/{part}/{shard}-of-{n_shards}.log",
    benchmark:
        "results/benchmarks/annotate/{dataset}/{trees}/{part}/{shard}-of-{n_shards}.tsv"
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
        fingerprint=plan.fingerprint("document_trees"),
        control=plan.param("document_trees", "parser"),  # `chain` or `random`, instead of a trained parser
        options=plan.params("document_trees", "sentences", "lang"),
    shell:
        "docmt discourse annotate --segmenter {input.segmenter} --parser {input.parser} {params.control}"
        " --text {input.text} --documents {input.documents} --suite {input.suite} {params.options}"
        " --shard {wildcards.shard} --n-shards {wildcards.n_shards} --out {output} --jobs {threads} 2> {log}"


rule merge_trees:
    """Gather the gold trees of a split."""
    input:
        inputs=plan.input("document_trees", "inputs"),  # {split}.discourse.jsonl from all corpora in the split
        documents=plan.input("document_trees", "documents"),  # results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv
    output:
        # Annotation with one shard uses the same names.
        "results/{dataset}/discourse/{trees}/{part}.1-of-1.discourse.jsonl",
    log:
        "logs/merge_trees/{dataset}/{trees}/{part}.log",
    benchmark:
        "results/benchmarks/merge_trees/{dataset}/{trees}/{part}.tsv"
    wildcard_constraints:
        trees=plan.row_pattern("discourse.trees", where="gold"),
    priority: 20
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("document_trees"),
    shell:
        "docmt discourse merge-trees --inputs {input.inputs} --documents {input.documents} --out {output} 2> {log}"


rule count_trees:
    """Count EDUs, depths and relations in the trees of a dataset."""
    input:
        trees=plan.input("tree_statistics", "trees"),  # for all splits, as in `annotate` and `merge_trees`
    output:
        statistics="results/{dataset}/discourse/{trees}/statistics.csv",
        relations="results/{dataset}/discourse/{trees}/relations.csv",
    log:
        "logs/count_trees/{dataset}/{trees}.log",
    benchmark:
        "results/benchmarks/count_trees/{dataset}/{trees}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("tree_statistics"),
        files=plan.options("tree_statistics", "files"),  # NAME=FILE
    shell:
        "docmt discourse count-trees {params.files} --out {output.statistics} --relations {output.relations} 2> {log}"
