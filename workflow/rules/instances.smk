# Instances: documents cut into instances of whole sentences.


rule instances_build:
    """Cut the documents of a split into instances of whole sentences."""
    input:
        texts=collect(
            "results/{{dataset}}/text/{{split}}.bpe.{lang}", lang=plan.languages
        ),
        documents=collect(
            "results/{{dataset}}/corpora/{direction}/{{split}}.documents.tsv",
            direction=plan.direction,
        ),
        vocabulary="results/{dataset}/text/vocabulary.txt",
        discourse=plan.input("instances", "discourse"),  # the split's trees, if the row has `trees`
    output:
        # The manifest contains the checksums of the arrays next to it, because Snakemake cannot compare folders.
        "results/{dataset}/instances/{instances}/{split}/manifest.json",
    log:
        "logs/instances_build/{dataset}/{instances}/{split}.log",
    benchmark:
        "results/benchmarks/instances_build/{dataset}/{instances}/{split}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=60),
    params:
        fingerprint=plan.fingerprint("instances"),
        settings=plan.settings("instances"),
        discourse=plan.file_option("instances", "discourse"),  # quoted, because these can be your files
    shell:
        "docmt instances build --settings {params.settings:q} --texts {input.texts} --documents {input.documents}"
        " --vocabulary {input.vocabulary} {params.discourse} --out {output} 2> {log}"


rule instances_count:
    """Count sentences, documents, instances and tokens of a dataset."""
    input:
        plan.input("instance_statistics"),  # results/{dataset}/instances/{instances}/{split}/manifest.json for all
    output:
        "results/{dataset}/instances/statistics.csv",
    log:
        "logs/instances_count/{dataset}.log",
    benchmark:
        "results/benchmarks/instances_count/{dataset}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("instance_statistics"),
    shell:
        "docmt instances count --manifests {input} --out {output} 2> {log}"
