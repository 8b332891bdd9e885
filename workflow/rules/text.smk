# Text: from the sentences of a dataset to subwords with one shared vocabulary.


rule tokenize:
    """Normalize and tokenize the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        plan.tokens.input("input"),
    output:
        temp("results/{dataset}/text/{split}.tok.{lang}"),
    log:
        "logs/tokenize/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/tokenize/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    resources:
        **scale_with_attempt(mem_mb=4000, runtime=120),
    params:
        fingerprint=plan.tokens.fingerprint,
        settings=plan.tokens.settings,
    shell:
        "docmt text tokenize --settings {params.settings:q} --lang {wildcards.lang} --input {input} --out {output}"
        " --jobs {threads} --fingerprint {params.fingerprint} 2> {log}"


rule learn_truecaser:
    """Learn how {wildcards.lang} words are written inside sentences of {wildcards.dataset}."""
    input:
        plan.truecaser.input("inputs"),
    output:
        "results/{dataset}/text/truecaser.{lang}.json",
    log:
        "logs/learn_truecaser/{dataset}_{lang}.log",
    benchmark:
        "results/benchmarks/learn_truecaser/{dataset}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.truecaser.fingerprint,
        settings=plan.truecaser.settings,
    shell:
        "docmt text learn-truecaser --settings {params.settings:q} --inputs {input} --out {output} --jobs {threads}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule truecase:
    """Truecase the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        model="results/{dataset}/text/truecaser.{lang}.json",
        text="results/{dataset}/text/{split}.tok.{lang}",
    output:
        "results/{dataset}/text/{split}.true.{lang}",
    log:
        "logs/truecase/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/truecase/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.truecased.fingerprint,
    shell:
        "docmt text truecase --model {input.model} --input {input.text} --out {output} --jobs {threads}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule learn_bpe:
    """Learn BPE merges on both sides of the training split of {wildcards.dataset}."""
    input:
        inputs=plan.codes.input("inputs"),
        published=plan.codes.input("published"),
    output:
        "results/{dataset}/text/bpe.codes",
    log:
        "logs/learn_bpe/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_bpe/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
    params:
        fingerprint=plan.codes.fingerprint,
        settings=plan.codes.settings,
        languages=plan.codes.options("src_lang", "tgt_lang"),
    shell:
        "docmt text learn-bpe --settings {params.settings:q} --inputs {input.inputs} {params.languages}"
        " --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule apply_bpe:
    """Split the {wildcards.lang} side of {wildcards.dataset} {wildcards.split} into subwords."""
    input:
        codes="results/{dataset}/text/bpe.codes",
        text="results/{dataset}/text/{split}.true.{lang}",
    output:
        "results/{dataset}/text/{split}.bpe.{lang}",
    log:
        "logs/apply_bpe/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/apply_bpe/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.subwords.fingerprint,
    shell:
        "docmt text apply-bpe --codes {input.codes} --lang {wildcards.lang} --input {input.text} --out {output}"
        " --jobs {threads} --fingerprint {params.fingerprint} 2> {log}"


rule learn_vocabulary:
    """List the subwords of both sides of the training split of {wildcards.dataset}."""
    input:
        inputs=plan.vocabulary.input("inputs"),
        published=plan.vocabulary.input("published"),
    output:
        "results/{dataset}/text/vocabulary.txt",
    log:
        "logs/learn_vocabulary/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_vocabulary/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.vocabulary.fingerprint,
        tags=plan.vocabulary.options("tags"),
        published=plan.vocabulary.options("pretrained", "keep", "src_lang", "tgt_lang"),
    shell:
        "docmt text learn-vocabulary --inputs {input.inputs} {params.tags} {params.published} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule pack_pipeline:
    """Pack settings, truecasers and codes of {wildcards.dataset} into one file."""
    input:
        truecasers=plan.pipeline.input("truecasers"),
        codes="results/{dataset}/text/bpe.codes",
    output:
        "results/{dataset}/text/pipeline.json",
    log:
        "logs/pack_pipeline/{dataset}.log",
    benchmark:
        "results/benchmarks/pack_pipeline/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.pipeline.fingerprint,
        settings=plan.pipeline.settings,
        languages=plan.pipeline.options("src_lang", "tgt_lang"),
    shell:
        "docmt text save-pipeline --settings {params.settings:q} {params.languages} --truecasers {input.truecasers}"
        " --codes {input.codes} --out {output} --fingerprint {params.fingerprint} 2> {log}"


rule count_roundtrip:
    """Count the lines of {wildcards.dataset} that are restored unchanged from subwords."""
    input:
        files=plan.roundtrip.input("files"),
        pipeline="results/{dataset}/text/pipeline.json",
    output:
        "results/{dataset}/text/roundtrip.json",
    log:
        "logs/count_roundtrip/{dataset}.log",
    benchmark:
        "results/benchmarks/count_roundtrip/{dataset}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.roundtrip.fingerprint,
        inputs=plan.roundtrip.param("inputs"),
    shell:
        "docmt text roundtrip --pipeline {input.pipeline} --inputs {params.inputs:q} --out {output}"
        " --fingerprint {params.fingerprint} > {log} 2>&1"
