# Text: from the sentences of a dataset to subwords with one shared vocabulary.


rule tokenize:
    """Normalize and tokenize the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        input=plan.tokens.input("input"),
    output:
        out=temp("results/{dataset}/text/{split}.tok.{lang}"),
    log:
        "logs/tokenize/{dataset}_{split}_{lang}.log",
    benchmark:
        "results/benchmarks/tokenize/{dataset}_{split}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: processes
    resources:
        **growing(mem_mb=4000, runtime=120),
    params:
        settings=plan.tokens.settings,
        fingerprint=plan.tokens.fingerprint,
        flags=plan.tokens.flags,
    shell:
        "docmt text tokenize {params.flags} 2> {log}"


rule learn_truecaser:
    """Learn how {wildcards.lang} words are written inside sentences of {wildcards.dataset}."""
    input:
        inputs=plan.truecaser.input("inputs"),
    output:
        out="results/{dataset}/text/truecaser.{lang}.json",
    log:
        "logs/learn_truecaser/{dataset}_{lang}.log",
    benchmark:
        "results/benchmarks/learn_truecaser/{dataset}_{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: processes
    params:
        settings=plan.truecaser.settings,
        fingerprint=plan.truecaser.fingerprint,
        flags=plan.truecaser.flags,
    shell:
        "docmt text learn-truecaser {params.flags} 2> {log}"


rule truecase:
    """Truecase the {wildcards.lang} side of {wildcards.dataset} {wildcards.split}."""
    input:
        model="results/{dataset}/text/truecaser.{lang}.json",
        input="results/{dataset}/text/{split}.tok.{lang}",
    output:
        out="results/{dataset}/text/{split}.true.{lang}",
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
        flags=plan.truecased.flags,
    shell:
        "docmt text truecase {params.flags} 2> {log}"


rule learn_bpe:
    """Learn BPE merges on both sides of the training split of {wildcards.dataset}."""
    input:
        inputs=plan.codes.input("inputs"),
        published=plan.codes.input("published"),
    output:
        out="results/{dataset}/text/bpe.codes",
    log:
        "logs/learn_bpe/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_bpe/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    resources:
        **growing(mem_mb=8000, runtime=240),
    params:
        settings=plan.codes.settings,
        fingerprint=plan.codes.fingerprint,
        flags=plan.codes.flags,
    shell:
        "docmt text learn-bpe {params.flags} 2> {log}"


rule apply_bpe:
    """Split the {wildcards.lang} side of {wildcards.dataset} {wildcards.split} into subwords."""
    input:
        codes="results/{dataset}/text/bpe.codes",
        input="results/{dataset}/text/{split}.true.{lang}",
    output:
        out="results/{dataset}/text/{split}.bpe.{lang}",
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
        flags=plan.subwords.flags,
    shell:
        "docmt text apply-bpe {params.flags} 2> {log}"


rule learn_vocabulary:
    """List the subwords of both sides of the training split of {wildcards.dataset}."""
    input:
        inputs=plan.vocabulary.input("inputs"),
        published=plan.vocabulary.input("published"),
    output:
        out="results/{dataset}/text/vocabulary.txt",
    log:
        "logs/learn_vocabulary/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_vocabulary/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.vocabulary.fingerprint,
        flags=plan.vocabulary.flags,
    shell:
        "docmt text learn-vocabulary {params.flags} 2> {log}"


rule pack_pipeline:
    """Pack settings, truecasers and codes of {wildcards.dataset} into one file."""
    input:
        truecasers=plan.pipeline.input("truecasers"),
        codes="results/{dataset}/text/bpe.codes",
    output:
        out="results/{dataset}/text/pipeline.json",
    log:
        "logs/pack_pipeline/{dataset}.log",
    benchmark:
        "results/benchmarks/pack_pipeline/{dataset}.tsv"
    priority: 30
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.pipeline.settings,
        fingerprint=plan.pipeline.fingerprint,
        flags=plan.pipeline.flags,
    shell:
        "docmt text pack {params.flags} 2> {log}"


rule count_roundtrip:
    """Count the lines of {wildcards.dataset} that are restored unchanged from subwords."""
    input:
        files=plan.roundtrip.input("files"),
        pipeline="results/{dataset}/text/pipeline.json",
    output:
        out="results/{dataset}/text/roundtrip.json",
    log:
        "logs/count_roundtrip/{dataset}.log",
    benchmark:
        "results/benchmarks/count_roundtrip/{dataset}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.roundtrip.fingerprint,
        flags=plan.roundtrip.flags,
    shell:
        "docmt text roundtrip {params.flags} > {log} 2>&1"
