# Text: from the sentences of a dataset to subwords with one shared vocabulary.
#
# Reads:  results/{dataset}/corpora/{src}-{tgt}/{split}.{lang}
# Makes:  results/{dataset}/text/{split}.tok.{lang}        tokens; deleted after truecasing
#         results/{dataset}/text/{split}.true.{lang}       truecased; kept, so that changed BPE merges start here
#         results/{dataset}/text/{split}.bpe.{lang}        subwords
#         results/{dataset}/text/truecaser.{lang}.json, bpe.codes, vocabulary.txt     learned on the training split
#         results/{dataset}/text/pipeline.json             settings, truecasers and codes, for `docmt translate`
#         results/{dataset}/text/roundtrip.json            the share of lines restored unchanged from subwords


rule tokenize:
    """Normalize and tokenize the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        plan.tokens.input("text"),
    output:
        temp("results/{dataset}/text/{split}.tok.{lang}"),
    log:
        "logs/tokenize/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/tokenize/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: processes
    resources:
        mem_mb=growing(4000),
        runtime=growing(120),
    params:
        settings=plan.tokens.param("settings"),
        fingerprint=plan.tokens.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text tokenize --settings {params.settings:q} --lang {wildcards.lang} --jobs {threads}"
        " --input {input} --out {output} 2> {log}"


rule learn_truecaser:
    """Learn how {wildcards.lang} words are written inside sentences of {wildcards.dataset}."""
    input:
        plan.truecaser.input("tokens"),
    output:
        "results/{dataset}/text/truecaser.{lang}.json",
    log:
        "logs/learn_truecaser/{dataset}_{lang}.log",
    benchmark:
        "results/benchmarks/learn_truecaser/{dataset}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: processes
    params:
        settings=plan.truecaser.param("settings"),
        fingerprint=plan.truecaser.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text learn-truecaser --settings {params.settings:q} --input {input} --jobs {threads} --out {output}"
        " 2> {log}"


rule truecase:
    """Truecase the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        model="results/{dataset}/text/truecaser.{lang}.json",
        tokens="results/{dataset}/text/{split}.tok.{lang}",
    output:
        "results/{dataset}/text/{split}.true.{lang}",
    log:
        "logs/truecase/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/truecase/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: processes
    params:
        fingerprint=plan.truecased.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text truecase --model {input.model} --input {input.tokens} --jobs {threads} --out {output} 2> {log}"


rule learn_bpe:
    """Learn BPE merges on both sides of the training split of {wildcards.dataset}."""
    input:
        text=plan.codes.input("text"),
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
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        settings=plan.codes.param("settings"),
        languages=plan.codes.param("languages"),
        fingerprint=plan.codes.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text learn-bpe --settings {params.settings:q} {params.languages} --inputs {input.text}"
        " --out {output} 2> {log}"


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
    threads: processes
    params:
        fingerprint=plan.subwords.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text apply-bpe --codes {input.codes} --lang {wildcards.lang} --input {input.text} --jobs {threads}"
        " --out {output} 2> {log}"


rule learn_vocabulary:
    """List the subwords of both sides of the training split of {wildcards.dataset}."""
    input:
        text=plan.vocabulary.input("text"),
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
        tags=plan.tags,
        published=plan.vocabulary.param("published"),
        fingerprint=plan.vocabulary.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text learn-vocabulary --inputs {input.text} {params.tags} {params.published} --out {output} 2> {log}"


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
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.pipeline.param("settings"),
        languages=plan.pipeline.param("languages"),
        fingerprint=plan.pipeline.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text pack --settings {params.settings:q} {params.languages} --truecasers {input.truecasers}"
        " --codes {input.codes} --out {output} 2> {log}"


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
    localrule: True
    conda:
        "../../environment.yml"
    params:
        texts=plan.roundtrip.param("texts"),
        fingerprint=plan.roundtrip.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt text roundtrip --pipeline {input.pipeline} --inputs {params.texts} --out {output} > {log} 2>&1"
