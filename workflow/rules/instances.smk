# Instances: documents cut into instances of whole sentences.
#
# Reads:  results/{dataset}/text/{split}.bpe.{lang}, vocabulary.txt
#         results/{dataset}/corpora/{src}-{tgt}/{split}.documents.tsv
#         results/{dataset}/discourse/{trees}/{split}.{shard}-of-{n}.discourse.jsonl, where a cutting names trees
# Makes:  results/{dataset}/instances/{cutting}/{split}/     arrays and manifest.json
#         results/{dataset}/instances/statistics.csv


rule build_instances:
    """Cut the documents of {wildcards.dataset} {wildcards.split} into instances: {wildcards.cutting}."""
    input:
        texts=plan.instances.input("texts"),
        documents=plan.instances.input("documents"),
        vocabulary="results/{dataset}/text/vocabulary.txt",
        trees=plan.instances.input("trees"),
    output:
        directory("results/{dataset}/instances/{cutting}/{split}"),
    log:
        "logs/build_instances/{dataset}_{cutting}_{split}.log",
    benchmark:
        "results/benchmarks/build_instances/{dataset}_{cutting}_{split}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        settings=plan.instances.param("settings"),
        trees=option("--discourse", "trees"),
        fingerprint=plan.instances.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt instances build --settings {params.settings:q} --texts {input.texts} --documents {input.documents}"
        " --vocabulary {input.vocabulary} {params.trees} --out {output} 2> {log}"


rule count_instances:
    """Count sentences, documents, instances and tokens of {wildcards.dataset}."""
    input:
        plan.instance_statistics.input(),
    output:
        "results/{dataset}/instances/statistics.csv",
    log:
        "logs/count_instances/{dataset}.log",
    benchmark:
        "results/benchmarks/count_instances/{dataset}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        folders=plan.instance_statistics.param("folders"),
        fingerprint=plan.instance_statistics.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt instances statistics --folders {params.folders} --out {output} 2> {log}"
