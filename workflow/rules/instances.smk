# Instances: documents cut into instances of whole sentences.
#
# Reads:  results/{dataset}/text/{split}.bpe.{lang}, vocabulary.txt
#         results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv
#         results/{dataset}/discourse/{trees}/{split}.{shard}-of-{n}.discourse.jsonl, where a segmentation names trees
# Makes:  results/{dataset}/instances/{segmentation}/{split}/     arrays and manifest.json
#         results/{dataset}/instances/statistics.csv


rule build_instances:
    """Cut the documents of {wildcards.dataset} {wildcards.split} into instances: {wildcards.segmentation}."""
    input:
        src=plan.text.subwords_src,
        tgt=plan.text.subwords_tgt,
        documents=plan.corpora.documents,
        vocabulary="results/{dataset}/text/vocabulary.txt",
        trees=plan.discourse.trees_of_split,
    output:
        directory("results/{dataset}/instances/{segmentation}/{split}"),
    log:
        "logs/build_instances/{dataset}_{segmentation}_{split}.log",
    benchmark:
        "results/benchmarks/build_instances/{dataset}_{segmentation}_{split}.tsv"
    wildcard_constraints:
        split=plan.parallel_splits(),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        settings=plan.runs.instances_settings,
        trees=plan.discourse.trees_option,
        fingerprint=plan.fingerprints.instances,
    shell:
        "docmt instances build --settings {params.settings:q} --src {input.src} --tgt {input.tgt}"
        " --documents {input.documents} --vocabulary {input.vocabulary} {params.trees} --out {output} 2> {log}"


rule count_instances:
    """Count sentences, documents, instances and tokens of {wildcards.dataset}."""
    input:
        plan.runs.instance_folders,
    output:
        "results/{dataset}/instances/statistics.csv",
    log:
        "logs/count_instances/{dataset}.log",
    benchmark:
        "results/benchmarks/count_instances/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        folders=plan.runs.named_instances,
        fingerprint=plan.fingerprints.statistics,
    shell:
        "docmt instances statistics --folders {params.folders} --out {output} 2> {log}"
